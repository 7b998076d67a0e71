//! Programs that the gate calls, and whether they are there.

use std::process::{Command, Stdio};

use anyhow::Result;

use crate::process;

/// The cargo that runs us, in the root of the workspace.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(crate::root());
    command
}

/// Builds `target/debug/godex`, from the same pieces as the tests: with a test among what is asked for, cargo gives all
/// dependencies the features that they have there. Without, it would compile most of them once more, for minutes.
pub(crate) fn build_godex() -> Result<()> {
    process::run(cargo().args(["build", "--workspace", "--locked", "--bin", "godex", "--test", "instances"]))
}

/// Else tests run with `cargo test`, one binary after the other.
pub(crate) fn has_nextest() -> bool {
    works(cargo().args(["nextest", "--version"]))
}

/// Whether the command can be started and succeeds; its output is not shown.
pub(super) fn works(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
