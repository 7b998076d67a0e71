//! `cargo xtask fixture`: an earlier version, built from its commit, beside this one. It makes the databases that later
//! versions must open, and shows that both versions can share one while an upgrade is under way.
//!
//! The work itself is two tests of the server; this builds what they need. Nothing but the fixture's own folder is
//! written outside `target`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

use crate::process;
use crate::test::cargo;

/// The first version whose databases every later one opens.
const COMMIT: &str = "d9233fe";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Only runs both versions side by side, and leaves the fixture as it is.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let binary = earlier().with_context(|| format!("cannot build {COMMIT}"))?;
    if !arguments.check {
        test("sessions::upgrade::record", &binary)?;
    }
    test("sessions::upgrade::beside::the_earlier_version_and_this_one_share_a_database", &binary)
}

/// The earlier version's binary. It has a worktree and a target folder of its own.
fn earlier() -> Result<PathBuf> {
    let folder = crate::root().join("target/old").join(COMMIT);
    if !folder.join("Cargo.toml").exists() {
        // Of a worktree whose folder was removed git still knows.
        let git = || {
            let mut git = Command::new("git");
            git.current_dir(crate::root());
            git
        };
        process::run(git().args(["worktree", "prune"]))?;
        process::run(git().args(["worktree", "add", "--detach"]).arg(&folder).arg(COMMIT))?;
    }
    let mut build = cargo();
    build.args(["build", "--locked", "--bin", "godex"]).current_dir(&folder).env_remove("CARGO_TARGET_DIR");
    process::run(&mut build)?;
    Ok(folder.join("target/debug/godex"))
}

fn test(name: &str, binary: &std::path::Path) -> Result<()> {
    let mut command = cargo();
    command.args(["test", "--locked", "--package", "server", "--test", "it", "--"]);
    command.args(["--exact", name, "--ignored", "--nocapture"]).env("GODEX_OLD", binary);
    process::run(&mut command)
}
