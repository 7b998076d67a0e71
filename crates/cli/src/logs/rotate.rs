//! A log file that is begun anew when it is large: `godex.log` becomes `godex.log.1`, that `godex.log.2`, and the oldest
//! goes. It is appended to after a restart. Whatever is wrong with the disk costs lines and nothing else: the file is
//! opened again with the next lines, and also when somebody has moved it away.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use server::config::LogFileConfig;

pub(super) struct LogFile {
    path: PathBuf,
    max_bytes: u64,
    max_files: u64,
    open: Option<Open>,
    /// A write has failed, perhaps in the middle of a line.
    torn: bool,
}

struct Open {
    file: File,
    size: u64,
}

impl LogFile {
    pub(super) fn new(config: &LogFileConfig) -> Self {
        let (max_bytes, max_files) = (config.max_bytes, config.max_files);
        Self { path: config.path(), max_bytes, max_files, open: None, torn: false }
    }

    /// The file that lines go to now: the one under our name, with room for so much more.
    fn ready(&mut self, more: u64) -> io::Result<&mut Open> {
        let found = fs::metadata(&self.path).ok();
        let kept = self.open.take().filter(|open| is_same(open, found.as_ref()));
        let mut open = match kept {
            Some(open) => open,
            None => Open::at(&self.path)?,
        };
        // A line that is too large for any file gets one of its own.
        if open.size > 0 && open.size.saturating_add(more) > self.max_bytes && self.rotate() {
            open = Open::at(&self.path)?;
        }
        Ok(self.open.insert(open))
    }

    /// Gives each file the next number, from the oldest on: whoever is interrupted leaves a gap, and overwrites nothing.
    /// False where the newest could not be moved; it is then written to all the same.
    fn rotate(&self) -> bool {
        let last = self.max_files.saturating_sub(1);
        if last == 0 {
            return fs::remove_file(&self.path).is_ok();
        }
        // What comes before a gap need not move; what comes after it stays.
        let first_free = (1..last).find(|number| !self.numbered(*number).exists()).unwrap_or(last);
        for number in (1..first_free).rev() {
            let _ = fs::rename(self.numbered(number), self.numbered(number + 1));
        }
        fs::rename(&self.path, self.numbered(1)).is_ok()
    }

    fn numbered(&self, number: u64) -> PathBuf {
        let mut name = OsString::from(&self.path);
        name.push(format!(".{number}"));
        PathBuf::from(name)
    }
}

impl Open {
    fn at(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            let mut builder = DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(folder)?;
        }
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        let size = file.metadata()?.len();
        Ok(Self { file, size })
    }
}

/// Whether what is open is what is found under the name: somebody may have moved it, or deleted it.
#[cfg(unix)]
fn is_same(open: &Open, found: Option<&Metadata>) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(ours) = open.file.metadata() else { return false };
    found.is_some_and(|found| (found.dev(), found.ino()) == (ours.dev(), ours.ino()))
}

#[cfg(not(unix))]
fn is_same(_: &Open, found: Option<&Metadata>) -> bool {
    found.is_some()
}

impl Write for LogFile {
    /// All of it, or an error.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let torn = std::mem::replace(&mut self.torn, true);
        let open = self.ready(lines.len() as u64)?;
        if torn && open.size > 0 {
            open.file.write_all(b"\n")?;
            open.size += 1;
        }
        match open.file.write_all(lines) {
            Ok(()) => open.size += lines.len() as u64,
            Err(error) => {
                self.open = None;
                return Err(error);
            }
        }
        self.torn = false;
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use server::config::LogLevel;

    use super::*;

    fn log(folder: &Path, max_bytes: u64, max_files: u64) -> LogFile {
        let (dir, filename) = (folder.join("logs"), "godex.log".to_owned());
        LogFile::new(&LogFileConfig { dir, filename, level: LogLevel::Info, max_bytes, max_files })
    }

    /// The contents, the newest first.
    fn contents(folder: &Path) -> Vec<String> {
        let text = |name: &str| fs::read_to_string(folder.join("logs").join(name)).ok();
        let numbered = (1..9).map_while(|number| text(&format!("godex.log.{number}")));
        text("godex.log").into_iter().chain(numbered).collect()
    }

    #[test]
    fn a_large_file_makes_room_for_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut open = log(folder.path(), 8, 3);
        for line in ["one\n", "two\n", "three\n", "four\n", "a line that is too long\n", "six\n"] {
            open.write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(contents(folder.path()), ["six\n", "a line that is too long\n", "four\n"]);
        // After a restart it goes on where it was.
        let mut again = log(folder.path(), 8, 3);
        again.write_all(b"7\n").unwrap();
        again.write_all(b"eight\n").unwrap();
        assert_eq!(contents(folder.path()), ["eight\n", "six\n7\n", "a line that is too long\n"]);
        let mut alone = log(folder.path(), 8, 1);
        alone.write_all(b"nine\n").unwrap();
        assert_eq!(contents(folder.path())[0], "nine\n");
    }

    #[test]
    fn a_gap_is_filled_before_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let mut open = log(folder.path(), 4, 4);
        for line in ["1\n\n", "2\n\n", "3\n\n", "4\n\n"] {
            open.write_all(line.as_bytes()).unwrap();
        }
        fs::remove_file(folder.path().join("logs/godex.log.2")).unwrap();
        open.write_all(b"5\n\n").unwrap();
        assert_eq!(contents(folder.path()), ["5\n\n", "4\n\n", "3\n\n", "1\n\n"]);
    }

    #[cfg(unix)]
    #[test]
    fn who_moves_it_away_gets_no_more_lines_and_nobody_else_reads_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mut open = log(folder.path(), 100, 3);
        open.write_all(b"one\n").unwrap();
        let (logs, path) = (folder.path().join("logs"), folder.path().join("logs/godex.log"));
        fs::rename(&path, logs.join("moved")).unwrap();
        open.write_all(b"two\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two\n");
        fs::remove_dir_all(&logs).unwrap();
        open.write_all(b"three\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "three\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&logs).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_disk_that_fails_costs_lines_only() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("logs"), "a file where the folder should be").unwrap();
        let mut open = log(folder.path(), 100, 3);
        assert!(open.write_all(b"lost\n").is_err());
        assert!(open.write_all(b"lost\n").is_err());
        fs::remove_file(folder.path().join("logs")).unwrap();
        open.write_all(b"written\n").unwrap();
        assert_eq!(contents(folder.path()), ["written\n"]);
    }

    #[test]
    fn half_a_line_does_not_spoil_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let mut open = log(folder.path(), 100, 3);
        open.write_all(b"half a li").unwrap();
        open.torn = true;
        open.write_all(b"whole\n").unwrap();
        assert_eq!(contents(folder.path()), ["half a li\nwhole\n"]);
    }
}
