//! Tables of expected text: a file beside the test, for people to read. `GODEX_BLESS=1` in the environment
//! rewrites it instead of comparing.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Compares `produced` with the file, or blesses it.
pub fn compare(path: &Path, produced: &str) -> Result<()> {
    if std::env::var("GODEX_BLESS").is_ok_and(|value| value == "1") {
        return fs::write(path, produced).with_context(|| path.display().to_string());
    }
    let expected = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    for (number, (expected, produced)) in expected.lines().zip(produced.lines()).enumerate() {
        if expected != produced {
            let line = number + 1;
            bail!("{}:{line}\n  expected: {expected}\n  produced: {produced}\n(GODEX_BLESS=1 accepts)", path.display());
        }
    }
    if expected.lines().count() != produced.lines().count() {
        bail!("{}: another number of lines (GODEX_BLESS=1 accepts)", path.display());
    }
    Ok(())
}
