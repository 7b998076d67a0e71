//! What a test could not do here, and what it lacked: kept in `target/skipped.txt`, which `cargo xtask test` empties
//! before the tests and prints after them, and said on stderr past the capture, so that `cargo test` shows it too.
//! A test that returns early without a word counts as passed; one that comes here is known by its name.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use crate::place;

/// How much of the test did not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Extent {
    Whole,
    /// The rest of it did.
    Part,
}

/// The calling test does nothing, for want of this.
pub fn skipped(lacking: &str) {
    record(Extent::Whole, lacking);
}

/// The calling test goes on without the check that needs this.
pub(crate) fn skipped_in_part(lacking: &str) {
    record(Extent::Part, lacking);
}

fn record(extent: Extent, lacking: &str) {
    static KNOWN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let how = match extent {
        Extent::Whole => "skipped",
        Extent::Part => "in part",
    };
    let line = format!("{how}\t{lacking}\t{}\n", test());
    if !KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(line.clone()) {
        return;
    }
    // One write: tests of many processes write here at the same time.
    let file = OpenOptions::new().create(true).append(true).open(place::root().join("target/skipped.txt"));
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    // Not by a macro: those are captured. A report that is lost would make the test look passed.
    let said = std::io::stderr().write_all(line.as_bytes());
    assert!(written.is_ok() || said.is_ok(), "a skipped test cannot say so: {line}");
}

/// The crate and the name of the test that runs: the runner's word for it, the thread's name, or the argument that
/// chose it.
fn test() -> String {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let thread = || std::thread::current().name().filter(|name| *name != "main").map(str::to_owned);
    let argument = || std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let name = std::env::var("NEXTEST_TEST_NAME").ok().or_else(thread).or_else(argument);
    format!("{package} {}", name.unwrap_or_else(|| "(a test whose name is not known)".to_owned()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_test_knows_its_name() {
        assert_eq!(super::test(), "testkit skip::tests::a_test_knows_its_name");
    }
}
