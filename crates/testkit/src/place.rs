//! Where things are: the root of the project, and the folder of shared references beside it, which a clone may
//! lack. `GODEX_SHARED` names another place for that folder.

use std::path::{Path, PathBuf};

/// What makes a folder of that name ours.
const MARKS: [&str; 2] = ["schemas", "fixtures"];

/// The root of the workspace.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// The folder of shared references: beside the clone, at any level above it.
fn folder() -> Option<PathBuf> {
    let is_ours = |folder: &PathBuf| MARKS.iter().any(|mark| folder.join(mark).is_dir());
    match std::env::var_os("GODEX_SHARED") {
        Some(named) => Some(PathBuf::from(named)).filter(is_ours),
        None => root().ancestors().map(|above| above.join("shared")).find(is_ours),
    }
}

/// A file or folder of the shared folder; `None` where there is no such folder.
///
/// # Panics
/// Where the shared folder is there without it: a gap in it must not look like a clone without it.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let path = folder()?.join(name);
    assert!(path.exists(), "{} is missing", path.display());
    Some(path)
}

/// The files below a folder of the shared folder whose names pass, sorted; `None`, and the test is reported as
/// skipped, where there is no shared folder.
///
/// # Panics
/// Where the shared folder is there without such files.
pub fn shared_files(below: &str, wanted: impl Fn(&str) -> bool) -> Option<Vec<PathBuf>> {
    let Some(shared) = folder() else {
        crate::skipped(&format!("../shared/{below}"));
        return None;
    };
    let mut files = Vec::new();
    let mut folders = vec![shared.join(below)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| wanted(&name.to_string_lossy())) {
                files.push(path);
            }
        }
    }
    assert!(!files.is_empty(), "nothing of {below} is in {}", shared.display());
    files.sort();
    Some(files)
}
