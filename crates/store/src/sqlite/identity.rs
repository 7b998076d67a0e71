//! Which file it is: one that was removed, or replaced by another of its name, is not it any more.

use std::path::{Path, PathBuf};

use crate::Error;

/// What is said of a database whose name is gone, or another file's.
const REMOVED: &str = "the database file was removed or replaced";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity(Option<(u64, u64)>);

impl Identity {
    /// Of no file.
    pub(super) const GONE: Self = Self(None);

    pub(super) fn of(path: &Path) -> Self {
        Self(std::fs::metadata(path).ok().map(|file| numbers(&file)))
    }

    /// Whether the file of that name is this one. One that cannot be looked at for another reason is taken for it.
    pub(super) fn is_at(self, path: &Path) -> bool {
        match std::fs::metadata(path) {
            Ok(file) => self.0 == Some(numbers(&file)),
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        }
    }
}

/// A database file, and where it must be.
#[derive(Debug, Clone)]
pub(super) struct Place {
    path: PathBuf,
    file: Identity,
}

impl Place {
    /// Of a file that is there.
    pub(super) fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), file: Identity::of(path) }
    }

    /// The path, if the file is still there: what is written into one without a name is lost with the process. It may come
    /// back.
    pub(super) fn found(&self) -> Result<&Path, Error> {
        if self.file.is_at(&self.path) { Ok(&self.path) } else { Err(Error::unavailable(REMOVED)) }
    }
}

#[cfg(unix)]
fn numbers(file: &std::fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (file.dev(), file.ino())
}

/// Where a file that is open cannot be removed.
#[cfg(not(unix))]
const fn numbers(_: &std::fs::Metadata) -> (u64, u64) {
    (0, 0)
}
