//! This machine: folders, room on disks, the log file, the clock.

use std::io::Read;
use std::path::Path;

use server::checkup;
use server::config::Config;

use crate::report::Check;

/// 2026-01-01: godex is younger than that.
const TOO_EARLY: u64 = 1_767_225_600;
/// Seconds that a clock may be wrong before tokens and signatures suffer.
const ODD: i64 = 60;
const WRONG: i64 = 300;

/// Whether files can be made in a folder, or in the nearest one above it that is there.
pub(super) fn writable(folder: &Path) -> Result<(), String> {
    let there = folder.ancestors().find(|folder| here(folder).exists()).unwrap_or(folder);
    let there = here(there);
    if !there.is_dir() {
        return Err(format!("{} is not a folder", there.display()));
    }
    let trial = there.join(format!(".godex-doctor-{}", std::process::id()));
    let made = std::fs::OpenOptions::new().write(true).create_new(true).open(&trial);
    made.map_err(|error| format!("{}: {error}", there.display()))?;
    let _ = std::fs::remove_file(&trial);
    Ok(())
}

/// The folder of a bare file name is this one.
fn here(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

/// Bytes that this user may still write, if the system says.
#[cfg(unix)]
pub(super) fn room(folder: &Path) -> Option<u64> {
    let there = folder.ancestors().find(|folder| here(folder).exists())?;
    let found = rustix::fs::statvfs(here(there)).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(not(unix))]
pub(super) fn room(_: &Path) -> Option<u64> {
    None
}

#[cfg(unix)]
pub(super) fn others_may_read(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o044 != 0)
}

#[cfg(not(unix))]
pub(super) fn others_may_read(_: &Path) -> bool {
    false
}

/// Whether it begins as every SQLite file does; what begins otherwise is somebody else's.
pub(super) fn is_sqlite(path: &Path) -> bool {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let mut start = [0; MAGIC.len()];
    std::fs::File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok() && start == MAGIC)
}

/// The log file, if there is to be one.
pub(super) fn logs(config: &Config) -> Vec<Check> {
    let Some(file) = &config.logging.file else { return Vec::new() };
    let path = file.path();
    let folder = path.parent().unwrap_or(Path::new("."));
    vec![match writable(folder) {
        Ok(()) => Check::ok("log", format!("{}, up to {} files", path.display(), file.max_files)),
        Err(why) => {
            let advice = "godex serves without it; let this user write there, or name another logging.file.dir";
            Check::warn("log", format!("{} cannot be written: {why}", path.display()), advice)
        }
    }]
}

/// By providers' clocks, of which most are right.
pub(super) fn clock(ahead: &[i64]) -> Check {
    let advice = "set this machine's clock (NTP): TLS, tokens and expiry depend on it";
    if checkup::unix_seconds() < TOO_EARLY {
        return Check::fail("clock", "this machine's clock is years behind", advice);
    }
    let mut sorted = ahead.to_vec();
    sorted.sort_unstable();
    let Some(median) = sorted.get(sorted.len() / 2) else {
        return Check::ok("clock", "plausible; no provider was asked for the time");
    };
    let message = match median.abs() {
        0..=ODD => return Check::ok("clock", "as providers have it"),
        seconds if *median > 0 => format!("{seconds} s behind providers' clocks"),
        seconds => format!("{seconds} s ahead of providers' clocks"),
    };
    if median.abs() > WRONG { Check::fail("clock", message, advice) } else { Check::warn("clock", message, advice) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Status;

    #[test]
    fn the_clock_is_judged_by_the_middle() {
        for (ahead, expected) in [
            (&[][..], Status::Ok),
            (&[0, 1, -2], Status::Ok),
            (&[90, 100, 0], Status::Warn),
            (&[-4000, -4001], Status::Fail),
            (&[-4000, 0, 1], Status::Ok),
        ] {
            assert_eq!(clock(ahead).status, expected, "{ahead:?}");
        }
    }
}
