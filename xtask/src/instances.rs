//! `cargo xtask instances`: real processes on one Postgres, killed, frozen and asked on either side, and what each of them
//! promised. The tests are in `crates/cli/tests/instances`; most of their time is that of a claim that runs out.

use anyhow::Result;
use clap::Args;

use crate::process;
use crate::test::{cargo, has_nextest};

#[derive(Args)]
pub(crate) struct Arguments {
    /// 10,000 resumes and turns, 1,000 cancels and keys, instead of 500, 100 and 50.
    #[arg(long)]
    full: bool,
    /// Only tests whose names contain this, such as `resumes` or `frozen`.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
}

impl Arguments {
    /// What the gate runs.
    pub(crate) const CI: Self = Self { full: false, only: None };
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut command = cargo();
    let only = arguments.only.as_deref();
    if has_nextest() {
        command.args(["nextest", "run", "--workspace", "--locked", "--no-fail-fast", "--test", "instances"]);
        command.args(["--profile", "instances"]).args(only);
    } else {
        command.args(["test", "--workspace", "--locked", "--test", "instances", "--", "--nocapture"]).args(only);
    }
    if arguments.full {
        command.env("GODEX_FULL", "1");
    }
    process::run(&mut command)
}
