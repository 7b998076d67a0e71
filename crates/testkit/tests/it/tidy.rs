//! Tidiness that nobody has to remember.

use std::fs;
use std::path::Path;

use crate::source::{self, Source};

const FILE_LIMIT: usize = 600;
const FUNCTION_LIMIT: usize = 80;
const ARCHITECTURE_LIMIT: usize = 150;

#[test]
fn no_file_is_too_long() {
    for file in source::all() {
        let lines = file.logic().count();
        assert!(lines <= FILE_LIMIT, "{} has {lines} lines of logic: split it by idea", file.path.display());
    }
}

#[test]
fn no_function_is_too_long() {
    for file in source::all() {
        for (line, length) in functions(&file) {
            assert!(length <= FUNCTION_LIMIT, "{}: a function of {length} lines", file.at(line));
        }
    }
}

/// Start and length of every function with a body. By the formatter's layout: from the line with `fn` to the
/// first line that closes a brace at the same indentation. A function that the formatter leaves alone (inside
/// a macro, or after `rustfmt::skip`) and one inside a string are measured wrongly or not at all.
fn functions(file: &Source) -> Vec<(usize, usize)> {
    let lines: Vec<(usize, &str)> = file.logic().collect();
    let mut found = Vec::new();
    for (index, (number, line)) in lines.iter().enumerate() {
        if !starts_function(line) {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let close = format!("{}}}", &line[..indent]);
        let one_line = line.trim_end().ends_with('}') || line.trim_end().ends_with(';');
        let end = lines[index..].iter().find(|(_, later)| *later == close);
        if let (false, Some((end, _))) = (one_line, end) {
            found.push((*number, end - number + 1));
        }
    }
    found
}

fn starts_function(line: &str) -> bool {
    let mut words = line.trim_start().split(' ');
    let modifier = |word: &&str| matches!(*word, "const" | "async") || word.starts_with("pub");
    words.find(|word| !modifier(word)) == Some("fn")
}

#[test]
fn no_trailing_whitespace_and_no_todo() {
    // Spelt in two parts, so that this line is not its own offender.
    let todo = ["todo", "!("].concat();
    for file in source::all() {
        assert!(file.text.ends_with('\n') || file.text.is_empty(), "{} ends without a newline", file.path.display());
        for (index, line) in file.text.lines().enumerate() {
            assert_eq!(line, line.trim_end(), "{} has trailing whitespace", file.at(index + 1));
            assert!(!line.contains(&todo), "{} is not done", file.at(index + 1));
        }
    }
}

#[test]
fn modules_are_named_after_what_they_hold() {
    for file in source::all() {
        let stem = file.path.file_stem().unwrap().to_string_lossy();
        let vague = ["mod", "utils", "util", "common", "helpers", "misc"].contains(&&*stem);
        assert!(!vague, "{} says nothing about its contents", file.path.display());
    }
}

#[test]
fn the_map_stays_a_map() {
    let Ok(text) = fs::read_to_string(testkit::root().join("ARCHITECTURE.md")) else { return };
    let lines = text.lines().count();
    assert!(lines <= ARCHITECTURE_LIMIT, "ARCHITECTURE.md has {lines} lines, more than {ARCHITECTURE_LIMIT}");
}

#[test]
fn functions_are_measured() {
    let text =
        "impl X {\n    pub async fn a(\n        x: u8,\n    ) {\n        b();\n    }\n\n    fn c() {}\n}\nfn d();\n";
    let file = Source { path: Path::new("src/x.rs").to_owned(), text: text.to_owned() };
    assert_eq!(functions(&file), [(2, 5)]);
}
