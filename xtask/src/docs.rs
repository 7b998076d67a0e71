//! `cargo xtask docs`: writes the tables of `docs/` anew. They are made by the tests that say when they are stale.

use std::process::Command;

use crate::process::run as run_command;

pub(crate) fn run() -> anyhow::Result<()> {
    // With the whole workspace: the same features as everything else here, so that nothing is built twice.
    let mut command = Command::new("cargo");
    command
        .args(["test", "--workspace", "--test", "it", "docs::"])
        .env("GODEX_WRITE_DOCS", "1")
        .current_dir(crate::root());
    run_command(&mut command)
}
