//! One instance that is told to read its configuration again and again, good ones and bad ones in turn.

use std::time::Duration;

use anyhow::{Result, ensure};
use rustix::process::Signal;

use super::client::Load;
use super::drains::until;
use super::instance::Instance;
use crate::process::get;

const STREAMING: usize = 50;
const ASKING: usize = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// What clients use is in every one; what is around it is not.
fn config(round: usize) -> String {
    let other = if round.is_multiple_of(4) { "  spare: {spec: demo}\n" } else { "" };
    let connect = 1000 + round;
    format!(
        "session: {{backend: memory}}\nlogging: {{format: human}}\nmodels: {{aliases: {{steady: demo/demo, round-{round}: \
         demo/demo}}}}\nproviders:\n  demo: {{spec: demo, timeouts: {{connect_ms: {connect}}}}}\n{other}"
    )
}

pub(super) fn run(reloads: usize) -> Result<()> {
    let mut instance = Instance::new("reloaded", &config(0))?;
    let load = Load::start(instance.address, STREAMING, ASKING, PAUSE)?;
    until("the streams run", || load.streaming() > STREAMING * 9 / 10)?;
    let (mut taken, mut refused) = (0, 0);
    let mut good = 0;
    for round in 1..=reloads {
        let before = load.requests();
        until("requests come", || load.requests() > before + ASKING)?;
        if round % 2 == 1 {
            good = round;
            taken += 1;
            instance.configure(&config(round))?;
        } else {
            refused += 1;
            instance.configure(&(config(round) + "servr: {}\n"))?;
        }
        instance.signal(Signal::HUP)?;
        until("the log says so", || {
            let log = instance.log().unwrap_or_default();
            let said = |what: &str| log.matches(what).count();
            said("configuration reloaded") == taken && said("the configuration stays as it was: godex.yaml:") == refused
        })?;
        let models = get(instance.address, "/v1/models")?;
        let named = |name: &str| models.matches(name).count();
        let (wanted, all) = (named(&format!("\"round-{good}\"")), named("\"round-"));
        ensure!(wanted > 0 && wanted == all, "after reload {round} not that of {good} is in force: {models}");
    }
    let requests = load.end()?;
    instance.signal(Signal::TERM)?;
    instance.ended()?;
    println!("{taken} reloads and {refused} of bad files: {requests} requests, 0 failed");
    Ok(())
}
