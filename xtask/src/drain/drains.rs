//! Two instances behind a balancer, ended and started again in turn, while all clients of one move to the other.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rustix::process::Signal;

use super::balancer::Balancer;
use super::client::Load;
use super::instance::Instance;

const STREAMING: usize = 200;
const ASKING: usize = 20;

/// Longer than the balancer needs to notice, and than any client's connection idles.
const DELAY: Duration = Duration::from_millis(600);
const PAUSE: Duration = Duration::from_millis(300);

const WELL: &str = "drain_delay: 600ms, drain_timeout: 30s";
const BADLY: &str = "drain_timeout: 100ms";

/// What drains came to.
struct Drained {
    /// How many there were, or what failed.
    requests: Result<usize>,
    /// Streams under way when one began.
    fewest: usize,
    longest: Duration,
}

pub(super) fn run(drains: usize) -> Result<()> {
    control()?;
    let Drained { requests, fewest, longest } = drain(WELL, drains)?;
    let requests = requests?;
    ensure!(longest >= DELAY, "it waited for nobody");
    println!(
        "{drains} drains with at least {fewest} streams under way, the longest {:.1} s: {requests} requests, 0 failed",
        longest.as_secs_f64()
    );
    Ok(())
}

/// The same with instances that wait for nobody: if nothing fails then, this finds nothing.
fn control() -> Result<()> {
    let failed = drain(BADLY, 1)?.requests.is_err();
    ensure!(failed, "an instance that cut everything off failed nobody: the clients are worth nothing");
    Ok(())
}

fn drain(server: &str, drains: usize) -> Result<Drained> {
    let config =
        format!("session: {{backend: memory}}\nmodels: {{aliases: {{steady: demo/demo}}}}\nserver: {{{server}}}\n");
    let mut instances = [Instance::new("one", &config)?, Instance::new("other", &config)?];
    let balancer = Balancer::start(&instances.each_ref().map(|instance| instance.address))?;
    until("both are ready", || balancer.ready() == 2)?;
    let load = Load::start(balancer.address, STREAMING, ASKING, PAUSE)?;
    let (mut fewest, mut longest) = (STREAMING, Duration::ZERO);
    for drain in 0..drains {
        until("the streams run", || load.streaming() > STREAMING * 9 / 10)?;
        fewest = fewest.min(load.streaming());
        let (began, instance) = (Instant::now(), &mut instances[drain % 2]);
        instance.signal(Signal::TERM)?;
        instance.ended()?;
        longest = longest.max(began.elapsed());
        instance.start()?;
        until("both are ready", || balancer.ready() == 2)?;
    }
    Ok(Drained { requests: load.end(), fewest, longest })
}

/// Waits for it.
pub(super) fn until(what: &str, mut holds: impl FnMut() -> bool) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        ensure!(Instant::now() < deadline, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
