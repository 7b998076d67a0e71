//! `godex demo`: what the demo model understands.

use std::fmt::Write as _;

use providers::demo::{COMMANDS, PLAIN_WORDS};

use crate::output;

pub(crate) fn run() -> anyhow::Result<()> {
    output::print(&help())
}

/// The commands as a table, and what it understands beside them.
pub(crate) fn help() -> String {
    let mut out = "The demo model answers offline. Lines at the start of a message tell it what to do:\n\n".to_owned();
    table(&mut out, COMMANDS);
    out.push_str("\nWhere tools are offered, it also understands:\n\n");
    table(&mut out, PLAIN_WORDS);
    out
}

fn table(out: &mut String, rows: &[(&str, &str)]) {
    let width = rows.iter().map(|(said, _)| said.chars().count()).max().unwrap_or_default();
    for (said, help) in rows {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "  {said:width$}  {help}");
    }
}
