//! Where things are: the root of the project, and the folder of shared references beside it, which a
//! checkout may lack.

use std::path::{Path, PathBuf};

/// The root of the workspace.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// A file of the `shared` folder that stands beside the checkout, at any level above it.
pub(crate) fn shared(file: &str) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().map(|folder| folder.join("shared").join(file)).find(|path| path.is_file())
}

/// The files below a folder of `shared` whose names pass, sorted; empty where the folder is absent.
pub fn shared_files(folder: &str, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = here.ancestors().map(|above| above.join("shared").join(folder)).find(|path| path.is_dir());
    let mut files = Vec::new();
    let mut folders: Vec<PathBuf> = found.into_iter().collect();
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
    files.sort();
    files
}
