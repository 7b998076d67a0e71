//! The tables in `docs/` are made from the tables that the program reads. `cargo xtask docs` writes them; without
//! that, these tests fail when a file is stale.
//!
//! A page keeps its prose; what is between `<!-- table: NAME -->` and `<!-- end -->` is replaced.

mod config;
mod dependencies;
mod errors;
mod metrics;
mod providers;
mod specs;

use std::path::{Path, PathBuf};

/// Set by `cargo xtask docs`: write what is stale.
const WRITE: &str = "GODEX_WRITE_DOCS";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares a page with these tables, each under its name.
fn check(page: &str, tables: &[(&str, String)]) {
    let path = root().join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let fresh = filled(&text, tables);
    if text == fresh {
        return;
    }
    if std::env::var_os(WRITE).is_none() {
        let line = text.lines().zip(fresh.lines()).position(|(old, new)| old != new).map_or(0, |line| line + 1);
        panic!("{page} is stale from line {line} on: run `cargo xtask docs`");
    }
    std::fs::write(&path, fresh).unwrap();
}

/// The page with its tables filled in. Each table must be in it exactly once, and no other.
fn filled(page: &str, tables: &[(&str, String)]) -> String {
    let mut out = String::new();
    let mut used = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let Some(name) = line.strip_prefix("<!-- table: ").and_then(|line| line.strip_suffix(" -->")) else { continue };
        let table = tables.iter().find(|(known, _)| *known == name);
        let (_, table) = table.unwrap_or_else(|| panic!("there is no table `{name}`"));
        assert!(lines.any(|line| line == "<!-- end -->"), "the table `{name}` has no end");
        out.push_str(table);
        out.push_str("<!-- end -->\n");
        used.push(name);
    }
    for (name, _) in tables {
        assert_eq!(used.iter().filter(|used| used == &name).count(), 1, "the table `{name}` is not in the page once");
    }
    out
}

/// A table of Markdown.
fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let row = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut out = row(&head.map(str::to_owned)) + &row(&head.map(|_| "---".to_owned()));
    for cells in rows {
        out.push_str(&row(&cells.map(|cell| cell.replace('|', "\\|"))));
    }
    out
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

#[test]
fn only_what_is_between_the_marks_is_replaced() {
    let page = "a\n<!-- table: t -->\nold\n<!-- end -->\nb\n";
    let tables = [("t", table(["x"], [["1|2".to_owned()]]))];
    let fresh = filled(page, &tables);
    assert_eq!(fresh, "a\n<!-- table: t -->\n| x |\n| --- |\n| 1\\|2 |\n<!-- end -->\nb\n");
    assert_eq!(filled(&fresh, &tables), fresh);
}
