//! `cargo xtask crash`: what godex promised is kept when it is killed, when the power goes, and when it promised to keep
//! nothing.

mod background;
mod book;
mod canary;
mod chance;
mod check;
mod client;
mod http;
mod kill;
mod server;
mod socket;

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};
use clap::Args;

use crate::process;
use crate::test::{build_godex, cargo};

#[derive(Args)]
pub(crate) struct Arguments {
    /// 1,000 cycles, 2,000 power cuts and 10,000 requests, instead of 60, 200 and 500.
    #[arg(long)]
    full: bool,
    /// Only this part: kill, canary or power.
    #[arg(long, value_name = "PART")]
    only: Option<String>,
    /// Repeats what a failed run said it was.
    #[arg(long)]
    seed: Option<u64>,
}

impl Arguments {
    /// What the gate runs; the power cuts are among the store's tests there.
    pub(crate) const CI: &'static [&'static str] = &["kill", "canary"];
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let parts = ["kill", "canary", "power"];
    let wanted: Vec<&str> =
        parts.into_iter().filter(|part| arguments.only.as_deref().is_none_or(|only| only == *part)).collect();
    ensure!(!wanted.is_empty(), "no such part");
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.subsec_nanos().into());
    all(&wanted, arguments.full, arguments.seed.unwrap_or_else(clock))
}

/// These parts, one after the other.
pub(crate) fn all(parts: &[&str], full: bool, seed: u64) -> Result<()> {
    build_godex()?;
    for part in parts {
        let began = Instant::now();
        match *part {
            "kill" => kill::run(if full { 1_000 } else { 60 }, seed)?,
            "canary" => canary::run(if full { 10_000 } else { 500 }, seed)?,
            _ => power(full)?,
        }
        println!("{part}: ok ({:.0} s)", began.elapsed().as_secs_f64());
    }
    Ok(())
}

/// The store's own tests: a replay of its writes up to a power cut, and syncs that fail.
fn power(full: bool) -> Result<()> {
    let mut command = cargo();
    command.args(["test", "--locked", "--package", "store", "--lib", "sqlite::tests", "--", "--nocapture"]);
    if full {
        command.env("GODEX_FULL", "1");
    }
    process::run(&mut command)
}
