//! `cargo xtask overload`: ten times as many requests as the server can bear. Those that are let in are answered as if
//! nobody else were there, and stored; all others are told so at once.

mod load;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::drain::instance::Instance;
use crate::test::build_godex;
use load::{Load, Seen};

#[derive(Args)]
pub(crate) struct Arguments {
    /// A minute of it, instead of ten seconds.
    #[arg(long)]
    full: bool,
}

impl Arguments {
    /// What the gate runs.
    pub(crate) const CI: Self = Self { full: false };
}

/// Turns at once.
const TURNS: usize = 16;
/// As many times what the server can bear.
const TIMES: usize = 10;
const MEMORY: u64 = 512 << 20;
/// How long it takes until all is as before.
const RECOVERY: Duration = Duration::from_secs(5);

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    build_godex()?;
    let config = format!(
        "session: {{backend: sqlite, sqlite: {{path: sessions.db}}}}\nmodels: {{aliases: {{steady: demo/demo}}}}\nlimits: \
         {{turns: {TURNS}, memory: {}MiB}}\nlogging: {{console: {{level: warn}}}}\n",
        MEMORY >> 20
    );
    let mut instance = Instance::new("overload", &config)?;
    // Half of what it can bear: how long an answer takes when nobody is in the way.
    let calm = load(&instance, TURNS / 2, Duration::ZERO, Duration::from_secs(4))?;
    ensure!(calm.refused.is_empty(), "{} were refused without need", calm.refused.len());
    let usual = calm.percentile(99)?;
    // Whoever is refused comes back as late as if it had been answered: so many ask in each of these times.
    let time = if arguments.full { Duration::from_mins(1) } else { Duration::from_secs(10) };
    let began = Instant::now();
    let busy = load(&instance, TURNS * TIMES, calm.percentile(50)?, time)?;
    let took = began.elapsed();
    let (slowest, fast) = (busy.percentile(99)?, percentile(&busy.refused, 99)?);
    println!(
        "{} answered (p99 {} ms, {} ms when calm), {} refused (p99 {} ms), {} MiB",
        busy.answered.len(),
        slowest.as_millis(),
        usual.as_millis(),
        busy.refused.len(),
        fast.as_millis(),
        instance.peak_memory()? >> 20,
    );
    ensure!(slowest <= usual * 2, "those who were let in waited for {slowest:?} instead of {usual:?}");
    ensure!(fast <= usual / 2, "a refusal took {fast:?}, nearly as long as an answer");
    ensure!(busy.refused.len() > busy.answered.len() * (TIMES / 2), "there was no overload");
    let could = took.as_secs_f64() / calm.percentile(50)?.as_secs_f64() * f64::from(u32::try_from(TURNS)?);
    let did = f64::from(u32::try_from(busy.answered.len())?);
    ensure!(did >= could * 0.7, "{did} were answered, and {could:.0} could have been");
    ensure!(instance.peak_memory()? < MEMORY, "it used {} bytes", instance.peak_memory()?);
    recovered(&instance, usual)?;
    let stored = load::stored(instance.address, calm.ids.iter().chain(&busy.ids))?;
    println!("all {stored} answers are stored");
    instance.end()
}

fn load(instance: &Instance, clients: usize, pause: Duration, time: Duration) -> Result<Seen> {
    Load { address: instance.address, clients, pause, time }.run()
}

/// Soon after, an answer takes as long as ever.
fn recovered(instance: &Instance, usual: Duration) -> Result<()> {
    let began = Instant::now();
    loop {
        let seen = load(instance, 1, Duration::ZERO, Duration::ZERO)?;
        if seen.answered.iter().any(|took| *took <= usual * 2) {
            return Ok(());
        }
        ensure!(began.elapsed() < RECOVERY, "it does not recover");
    }
}

/// Of durations in any order.
fn percentile(all: &[Duration], percent: usize) -> Result<Duration> {
    let mut sorted = all.to_vec();
    sorted.sort_unstable();
    sorted.get((all.len() * percent / 100).min(all.len().saturating_sub(1))).copied().context("there were none")
}
