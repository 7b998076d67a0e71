//! The store: whether it is there, whole, ours to write, and has room.

use std::path::{Path, PathBuf};

use server::admin::{AdminClient, Unreachable};
use server::checkup::{Encryption, OpenError, PostgresLook, SqliteLook, inspect_postgres, inspect_sqlite, is_held};
use server::config::{Backend, Config, TracePlace};

use super::machine;
use crate::report::{Check, Status};

/// A file of ours, and what is said of it.
struct Kind {
    name: &'static str,
    /// The key that says where it is.
    key: &'static str,
    /// What is done about damage.
    mend: &'static str,
    /// What is done about a file that is no database at all.
    replace: &'static str,
    /// How long what is in it is kept.
    ttl: &'static str,
    /// Whether a start refuses one of another version.
    refuses: bool,
}

const SESSIONS: Kind = Kind {
    name: "store",
    key: "session.sqlite.path",
    mend: "restore a backup; keep the damaged file",
    replace: "restore a backup; keep the damaged file",
    ttl: "`session.ttl` says how long responses are kept",
    refuses: true,
};
const TRACES: Kind = Kind {
    name: "traces",
    key: "trace.path",
    mend: "the next start moves it aside and begins a new one; or move it away now",
    replace: "move it away, or name another trace.path: until then no traces are kept",
    ttl: "`trace.ttl` and `trace.max_bytes` say how many are kept",
    refuses: false,
};

/// What is done about a schema that is not ours.
const NEWER: &str = "use the godex that wrote it, or restore a backup: this one does not start with it";

/// What is done about a key that is not there.
const SEALED: &str = "this godex does not start with it: look at session.encryption";

/// Larger files are not read from end to end: that would take minutes.
const LARGEST: u64 = 1 << 30;
/// What a start needs at the least, and what it should have.
const LEAST_ROOM: u64 = 64 << 20;
const GOOD_ROOM: u64 = 1 << 30;

pub(super) async fn look(config: &Config) -> Vec<Check> {
    let keys = &config.session.encryption.keys;
    let mut checks = match &config.session.backend {
        Backend::Memory { .. } => vec![Check::ok("store", "in memory: what is stored is gone with the process")],
        Backend::Sqlite { path } => file(&SESSIONS, path, keys),
        Backend::Postgres(postgres) => match inspect_postgres(postgres.url.expose(), &postgres.options, keys).await {
            Ok(PostgresLook { refused: Some(why), .. }) => {
                vec![Check::fail("store", format!("Postgres: {why}"), NEWER)]
            }
            Ok(PostgresLook { sealed: Some(why), .. }) => vec![Check::fail("store", why, SEALED)],
            Ok(look) if look.schema == 0 => {
                vec![Check::ok("store", format!("Postgres {}; its tables are made by the first start", look.version))]
            }
            Ok(look) => vec![Check::ok("store", format!("Postgres {}, schema {}", look.version, look.schema))],
            Err(error) => {
                let advice = "look at session.postgres.url, and whether the server runs and lets this user in";
                vec![Check::fail("store", error_chain(&error), advice)]
            }
        },
    };
    if let Some(path) = traces(config) {
        let found = file(&TRACES, &path, keys).into_iter();
        // Of a file that the first start makes there is nothing to say but that it cannot.
        let worth = found.filter(|check| path.exists() || (check.name == TRACES.name && check.status != Status::Ok));
        // Without them godex serves all the same.
        checks.extend(worth.map(|check| match check.status {
            Status::Fail => check.softened(),
            Status::Ok | Status::Warn => check,
        }));
    }
    checks
}

/// A database that another has: a start is refused, unless who has it is what was started with this configuration.
pub(super) async fn holder(config: &Config, running: bool) -> Option<Check> {
    let Backend::Sqlite { path } = &config.session.backend else { return None };
    if !is_held(path) {
        return None;
    }
    let whose = match Box::pin(AdminClient::started_with(config)).await {
        Err(Unreachable::Other(_, theirs)) => format!("the godex of {theirs}"),
        // That one says nothing, was told of.
        Ok(_) | Err(Unreachable::Silent(_)) => return None,
        // Nobody can be asked whose it is, but what serves here is like this one.
        Err(_) if running => return None,
        Err(_) => "another process".to_owned(),
    };
    let message = format!("{} is used by {whose}", path.display());
    Some(Check::fail("store", message, "end it, or name another session.sqlite.path: a start is refused"))
}

/// The file of traces, where there is one.
fn traces(config: &Config) -> Option<PathBuf> {
    match &config.trace.place {
        TracePlace::File(path) if config.trace.enabled => Some(path.clone()),
        _ => None,
    }
}

fn file(kind: &Kind, path: &Path, keys: &Encryption) -> Vec<Check> {
    let name = kind.name;
    let shown = path.display();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut checks = Vec::new();
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            let advice = format!("name another {}", kind.key);
            return vec![Check::fail(name, format!("{shown} is not a file"), advice)];
        }
        Ok(found) => checks.push(database(kind, path, found.len(), keys)),
        Err(_) => match machine::writable(folder) {
            Ok(()) => checks.push(Check::ok(name, format!("{shown}: not there yet; the first start makes it"))),
            Err(why) => {
                let advice = "make the folder, or let this user write in it";
                checks.push(Check::fail(name, format!("{shown} cannot be made: {why}"), advice));
            }
        },
    }
    checks.extend(machine::room(folder).map(|free| room(kind, path, free)));
    checks
}

fn room(kind: &Kind, path: &Path, free: u64) -> Check {
    let left = if free < 1 << 20 { format!("{} kB", free >> 10) } else { format!("{} MB", free >> 20) };
    let message = format!("{left} free for {}", path.display());
    match free {
        ..LEAST_ROOM => {
            Check::fail("disk", message, format!("make room: once these {left} are used, nothing can be stored"))
        }
        LEAST_ROOM..GOOD_ROOM => Check::warn("disk", message, format!("make room soon; {}", kind.ttl)),
        _ => Check::ok("disk", message),
    }
}

/// A file that is there.
fn database(kind: &Kind, path: &Path, bytes: u64, keys: &Encryption) -> Check {
    let name = kind.name;
    let shown = path.display();
    if let Err(error) = std::fs::OpenOptions::new().write(true).open(path) {
        return Check::fail(name, format!("{shown} cannot be written: {error}"), "let this user write it");
    }
    if let Err(why) = path.parent().map_or(Ok(()), machine::writable) {
        let message = format!("{shown}: its folder cannot be written: {why}");
        return Check::fail(name, message, "SQLite makes files beside it: let this user write in the folder");
    }
    let whole = bytes <= LARGEST;
    match inspect_sqlite(path, whole, keys) {
        Ok(SqliteLook { damage: Some(damage), .. }) => {
            Check::fail(name, format!("{shown} is damaged: {}", one_line(&damage)), kind.mend)
        }
        // Others may count so what they have in the file of traces.
        Ok(SqliteLook { refused: Some(why), .. }) if kind.refuses => {
            Check::fail(name, format!("{shown}: {why}"), NEWER)
        }
        Ok(SqliteLook { sealed: Some(why), .. }) if kind.refuses => Check::fail(name, why, SEALED),
        Ok(look) => {
            let schema = if look.schema > 0 { format!(", schema {}", look.schema) } else { String::new() };
            let state = if whole { ", whole" } else { "; too large to be read whole here" };
            let (size, unit) = if whole { (bytes >> 10, "kB") } else { (bytes >> 20, "MB") };
            Check::ok(name, format!("{shown}, {size} {unit}{schema}{state}"))
        }
        Err(OpenError::Sqlite { source, .. }) => {
            let advice = if machine::is_sqlite(path) { kind.mend } else { kind.replace };
            Check::fail(name, format!("{shown} cannot be read: {source}"), advice)
        }
        Err(error) => Check::fail(name, error_chain(&error), kind.mend),
    }
}

/// What SQLite found, without the line that names the database.
fn one_line(damage: &str) -> String {
    let lines = damage.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("***"));
    lines.collect::<Vec<_>>().join("; ")
}

/// Whether there are API keys in the store; None: that cannot be told.
pub(super) async fn has_keys(config: &Config) -> Option<bool> {
    let keys = &config.session.encryption.keys;
    match &config.session.backend {
        Backend::Memory { .. } => Some(false),
        Backend::Sqlite { path } if matches!(path.try_exists(), Ok(false)) => Some(false),
        Backend::Sqlite { path } => inspect_sqlite(path, false, keys).ok().map(|look| look.keys),
        Backend::Postgres(postgres) => {
            let look = inspect_postgres(postgres.url.expose(), &postgres.options, keys).await;
            look.ok().map(|look| look.keys)
        }
    }
}

/// With all causes, each said once.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut out = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let text = next.to_string();
        if !out.contains(&text) {
            out.push_str(": ");
            out.push_str(&text);
        }
        cause = next.source();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst(path: &Path) -> (Status, String) {
        let checks = file(&SESSIONS, path, &Encryption::default());
        let found = checks.iter().find(|check| check.name == "store").unwrap();
        (found.status, found.line())
    }

    #[test]
    fn what_room_is_left_is_said() {
        for (free, status, expected) in [
            (5 << 10, Status::Fail, "5 kB free for s.db; make room: once these 5 kB are used"),
            (7 << 20, Status::Fail, "7 MB free for s.db; make room: once these 7 MB are used"),
            (100 << 20, Status::Warn, "100 MB free for s.db"),
            (4 << 30, Status::Ok, "4096 MB free for s.db"),
        ] {
            let check = room(&SESSIONS, Path::new("s.db"), free);
            assert!(check.status == status && check.line().contains(expected), "{}", check.line());
        }
    }

    #[test]
    fn damage_is_one_line() {
        let found =
            "*** in database main ***\nTree 3 page 5: btreeInitPage() returns error code 11\nPage 9: never used";
        assert_eq!(one_line(found), "Tree 3 page 5: btreeInitPage() returns error code 11; Page 9: never used");
        assert_eq!(one_line("row 1 missing from index i"), "row 1 missing from index i");
    }

    #[test]
    fn files_that_are_missing_damaged_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (status, line) = worst(&at("new/deeper/s.db"));
        assert!(status == Status::Ok && line.contains("not there yet"), "{line}");
        assert!(!at("new").exists());
        std::fs::write(at("text.db"), "not a database at all, but some text ".repeat(40)).unwrap();
        let (status, line) = worst(&at("text.db"));
        assert!(status == Status::Fail && line.contains("not a database"), "{line}");
        let (status, line) = worst(folder.path());
        assert!(status == Status::Fail && line.contains("not a file"), "{line}");
        std::fs::write(at("file"), "").unwrap();
        let (status, line) = worst(&at("file/s.db"));
        assert!(status == Status::Fail && line.contains("cannot be made"), "{line}");
    }
}
