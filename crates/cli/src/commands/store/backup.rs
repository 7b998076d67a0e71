//! `godex store backup` and `godex store restore`: a copy of the SQLite database, and the way back.

use std::fs::{self, File, OpenOptions};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use server::admin::Unreachable;
use server::config::Backend;

use crate::admin::{self, Look};
use crate::args::Flags;
use crate::output;

/// Bytes between two signs of life.
const SIGN: u64 = 16 << 20;

const POSTGRES: &str = "the sessions are in Postgres, whose own tools make backups while it is used: \
                        `pg_dump --format=custom --file=FILE URL`, and with every godex stopped \
                        `pg_restore --clean --if-exists --dbname=URL FILE`";

/// Writes a copy into a new file: first under another name, and only one that is whole gets its own.
pub(super) fn make(flags: &Flags, file: &Path) -> anyhow::Result<()> {
    let session = flags.manage()?.session;
    match session.backend {
        Backend::Sqlite { .. } => {}
        Backend::Postgres(_) => bail!("{POSTGRES}"),
        Backend::Memory { .. } => bail!("sessions are kept in memory only: there is nothing to back up"),
    }
    ensure!(fs::symlink_metadata(file).is_err(), "{} is there already", file.display());
    let mut part = file.as_os_str().to_owned();
    // Whatever else is beside it stays.
    part.push(format!(".part-{}", std::process::id()));
    let part = PathBuf::from(part);
    let written = write(flags, &part).and_then(|bytes| {
        let found = server::check_sqlite(&part, &session.encryption.keys)?;
        ensure!(!found.is_torn(), "the copy is not whole:\n{}", found.lines().join("\n"));
        if !found.is_empty() {
            // It is what there is, and all else in it is good.
            let count = found.count();
            output::tell(&format!(
                "warning: {count} found that cannot be read, and is no better in the copy, which `godex store restore` \
                 refuses; `godex store check` says what\n"
            ));
        }
        fs::rename(&part, file).with_context(|| format!("cannot write {}", file.display()))?;
        sync_folder(file);
        Ok(bytes)
    });
    if written.is_err() {
        // What there is of it is of no use.
        let _ = fs::remove_file(&part);
    }
    output::print(&format!("{}: {}\n", file.display(), size(written?)))
}

fn write(flags: &Flags, part: &Path) -> anyhow::Result<u64> {
    let cannot = || format!("cannot write {}", part.display());
    let mut file = private(part).with_context(cannot)?;
    let (mut bytes, mut answer) = (0_u64, Vec::new());
    admin::look(flags, Look::Sessions, async |client| {
        let (shown, mut sign) = (std::io::stderr().is_terminal(), SIGN);
        let mut keep = |chunk: &[u8]| {
            bytes += chunk.len() as u64;
            // An error is told in a few words.
            if bytes < 1 << 16 {
                answer.extend_from_slice(chunk);
            }
            if shown && bytes >= sign {
                sign = bytes + SIGN;
                output::tell(&format!("\r{}", size(bytes)));
            }
            file.write_all(chunk)
        };
        let status = client.read("GET", "/admin/store/backup", None, &mut keep).await;
        if shown {
            output::tell("\r\x1b[K");
        }
        let status = status.map_err(|error| match error {
            Unreachable::Sink(error) => anyhow::Error::from(error).context(cannot()),
            other => other.into(),
        });
        if status? >= 400 {
            let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
            bail!("{}", answer["error"]["message"].as_str().unwrap_or("refused"));
        }
        Ok(())
    })?;
    file.sync_all().with_context(cannot)?;
    Ok(bytes)
}

/// An empty file that nobody else can read, in the place of what an earlier try has left.
fn private(path: &Path) -> std::io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The name, too, is to survive a power cut; not every file system can promise that.
fn sync_folder(file: &Path) {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

fn size(bytes: u64) -> String {
    if bytes < 1 << 20 { format!("{} kB", bytes.div_ceil(1 << 10)) } else { format!("{} MB", bytes >> 20) }
}

pub(super) fn restore(flags: &Flags, file: &Path, force: bool) -> anyhow::Result<()> {
    let config = flags.manage()?;
    if matches!(config.session.backend, Backend::Postgres(_)) {
        bail!("{POSTGRES}");
    }
    let aside = server::restore(&config, file, force)?;
    let aside: Vec<String> = aside.iter().map(|path| format!("what was there before: {}\n", path.display())).collect();
    let aside = aside.concat();
    output::print(&format!(
        "restored from {}\n{aside}start godex, or look everything over first: godex store check\n",
        file.display()
    ))
}
