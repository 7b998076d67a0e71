//! Which file it is: one that was removed, or replaced by another of its name, is not it any more.

use std::path::Path;

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
