//! The store: whether it is there, whole, ours to write, and has room.

use std::path::{Path, PathBuf};

use server::checkup::{inspect_postgres, inspect_sqlite};
use server::config::{Backend, Config, TracePlace};

use super::machine;
use crate::report::Check;

/// Larger files are not read from end to end: that would take minutes.
const LARGEST: u64 = 1 << 30;
/// What a start needs at the least, and what it should have.
const LEAST_ROOM: u64 = 64 << 20;
const GOOD_ROOM: u64 = 1 << 30;

pub(super) async fn look(config: &Config) -> Vec<Check> {
    let mut checks = match &config.session.backend {
        Backend::Memory { .. } => vec![Check::ok("store", "in memory: what is stored is gone with the process")],
        Backend::Sqlite { path } => file("store", path),
        Backend::Postgres(postgres) => match inspect_postgres(postgres.url.expose(), &postgres.options).await {
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
    if let Some(path) = traces(config).filter(|path| path.exists()) {
        checks.extend(file("traces", &path));
    }
    checks
}

/// The file of traces, where there is one.
fn traces(config: &Config) -> Option<PathBuf> {
    match &config.trace.place {
        TracePlace::File(path) if config.trace.enabled => Some(path.clone()),
        _ => None,
    }
}

fn file(name: &'static str, path: &Path) -> Vec<Check> {
    let shown = path.display();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut checks = Vec::new();
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            let advice = "name another session.sqlite.path";
            return vec![Check::fail(name, format!("{shown} is not a file"), advice)];
        }
        Ok(found) => checks.push(database(name, path, found.len())),
        Err(_) => match machine::writable(folder) {
            Ok(()) => checks.push(Check::ok(name, format!("{shown}: not there yet; the first start makes it"))),
            Err(why) => {
                let advice = "make the folder, or let this user write in it";
                checks.push(Check::fail(name, format!("{shown} cannot be made: {why}"), advice));
            }
        },
    }
    checks.extend(machine::room(folder).map(|free| {
        let megabytes = free >> 20;
        let message = format!("{megabytes} MB free for {shown}");
        match free {
            ..LEAST_ROOM => Check::fail("disk", message, "make room: nothing can be stored"),
            LEAST_ROOM..GOOD_ROOM => {
                Check::warn("disk", message, "make room soon; `session.ttl` says how long responses are kept")
            }
            _ => Check::ok("disk", message),
        }
    }));
    checks
}

/// A file that is there.
fn database(name: &'static str, path: &Path, bytes: u64) -> Check {
    let shown = path.display();
    if let Err(error) = std::fs::OpenOptions::new().write(true).open(path) {
        return Check::fail(name, format!("{shown} cannot be written: {error}"), "let this user write it");
    }
    if let Err(why) = path.parent().map_or(Ok(()), machine::writable) {
        let message = format!("{shown}: its folder cannot be written: {why}");
        return Check::fail(name, message, "SQLite makes files beside it: let this user write in the folder");
    }
    let whole = bytes <= LARGEST;
    match inspect_sqlite(path, whole) {
        Ok(look) => match look.damage {
            Some(damage) => {
                let advice = "restore a backup; keep the damaged file";
                Check::fail(name, format!("{shown} is damaged: {damage}"), advice)
            }
            None if whole => Check::ok(name, format!("{shown}, {} kB, schema {}, whole", bytes >> 10, look.schema)),
            None => {
                let message =
                    format!("{shown}, {} MB, schema {}; too large to be read whole here", bytes >> 20, look.schema);
                Check::ok(name, message)
            }
        },
        Err(error) => Check::fail(name, error_chain(&error), "restore a backup, or name another file"),
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
    use crate::report::Status;

    fn worst(path: &Path) -> (Status, String) {
        let checks = file("store", path);
        let found = checks.iter().find(|check| check.name == "store").unwrap();
        (found.status, found.line())
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
