//! `cargo xtask drain`: instances that end, start again and reload their configuration under load, and clients that retry
//! nothing: not one request fails.

mod balancer;
pub(crate) mod client;
mod drains;
pub(crate) mod instance;
mod reloads;

use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Args;

use crate::test::build_godex;

#[derive(Args)]
pub(crate) struct Arguments {
    /// 50 drains and 100 reloads, instead of 5 and 20.
    #[arg(long)]
    full: bool,
    /// Only this part: drains or reloads.
    #[arg(long, value_name = "PART")]
    only: Option<String>,
}

impl Arguments {
    /// What the gate runs.
    pub(crate) const CI: Self = Self { full: false, only: None };
}

type Part = fn(bool) -> Result<()>;

const PARTS: &[(&str, Part)] = &[
    ("drains", |full| drains::run(if full { 50 } else { 5 })),
    ("reloads", |full| reloads::run(if full { 100 } else { 20 })),
];

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let wanted = |(name, _): &&(&str, Part)| arguments.only.as_deref().is_none_or(|only| only == *name);
    ensure!(PARTS.iter().any(|part| wanted(&part)), "no such part");
    build_godex()?;
    for (name, part) in PARTS.iter().filter(wanted) {
        let began = Instant::now();
        part(arguments.full)?;
        println!("{name}: ok ({:.0} s)", began.elapsed().as_secs_f64());
    }
    Ok(())
}
