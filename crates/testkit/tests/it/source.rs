//! Our source files as text, with comments and tests told apart. By lines, not by syntax: good enough for
//! laws, and anything odd enough to fool it is odd enough to rewrite.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct Source {
    /// Relative to the root of the project.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// Every `.rs` file of the workspace.
pub(crate) fn all() -> Vec<Source> {
    ["crates", "xtask", "benches"].iter().flat_map(|folder| below(folder)).collect()
}

/// Every `.rs` file below this folder of the project.
pub(crate) fn below(folder: &str) -> Vec<Source> {
    let root = testkit::root();
    let mut sources = Vec::new();
    collect(&root, &root.join(folder), &mut sources);
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

fn collect(root: &Path, folder: &Path, sources: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            collect(root, &path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            sources.push(Source { path: path.strip_prefix(root).unwrap().to_owned(), text });
        }
    }
}

impl Source {
    /// Whether the whole file is tests: under `tests/`, named `tests.rs` or `*_tests.rs`, or below such a module.
    pub(crate) fn is_test(&self) -> bool {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        stem == "tests" || stem.ends_with("_tests") || self.path.components().any(|part| part.as_os_str() == "tests")
    }

    /// The lines before the first `#[cfg(test)]`, numbered from 1; none for a test file.
    pub(crate) fn logic(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().take_while(|line| !line.trim_start().starts_with("#[cfg(test)]"));
        lines.enumerate().map(|(index, line)| (index + 1, line)).filter(|_| !self.is_test())
    }

    /// The logic without `//` comments.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.logic().map(|(number, line)| (number, line.split("//").next().unwrap_or_default()))
    }

    pub(crate) fn at(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }
}

/// Whether `word` is in `line` by itself, in any case. `-` and `_` are part of words.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    let split = |c: char| !(c.is_alphanumeric() || c == '-' || c == '_');
    line.split(split).any(|found| found.eq_ignore_ascii_case(word))
}

#[test]
fn words_are_whole() {
    assert!(has_word("match \"DeepSeek\" {", "deepseek"));
    assert!(!has_word("groqqed", "groq"));
    assert!(has_word("operand, rand::random()", "rand"));
    assert!(!has_word("operand", "rand"));
}
