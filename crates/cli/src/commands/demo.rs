//! `godex demo`: what the demo model understands.

use std::fmt::Write as _;

use providers::demo::COMMANDS;

use crate::output;

pub(crate) fn run() -> anyhow::Result<()> {
    output::print(&help())
}

/// The commands as a table.
pub(crate) fn help() -> String {
    let width = COMMANDS.iter().map(|(command, _)| command.len()).max().unwrap_or_default();
    let mut out = "The demo model answers offline. Lines at the start of a message tell it what to do:\n\n".to_owned();
    for (command, help) in COMMANDS {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "  {command:width$}  {help}");
    }
    out
}
