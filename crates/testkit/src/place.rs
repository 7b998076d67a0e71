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
