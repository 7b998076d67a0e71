//! What one thing costs: two godex on one core, one without it and one with it, asked in turn. The first stands in the
//! column of the floor. And where there is valgrind: the instructions of both, which no neighbour changes, but which are
//! without those of the kernel.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::Gateway;
use super::cases::{self, Load, Row};
use super::servers::{Place, Servers, Setup};

/// Pairs of runs; the median of their ratios counts.
const ROUNDS: usize = 15;

/// What is measured.
struct Pair {
    load: Load,
    without: Setup,
    with: Setup,
}

const PINNED: Setup = Setup { place: Place::Pinned, bare: true, spec: "", session: "", provider: "", more: "" };

const fn load(label: &'static str) -> Load {
    Load { label, show: &[], ..cases::SYNC_64 }
}

/// An answer as agents get them. There are 200 deltas in it.
const fn stream(label: &'static str) -> Load {
    Load { model: "stream-200-0", connections: 32, requests: 480, ..load(label) }
}

/// Every limit that a key can have, none of which is reached, and a price, so that its budget is counted.
const KEYED: Setup = Setup {
    provider: "    prices:\n      \"*\": {input: 1, output: 2}\n",
    more: "keys:\n  - {name: bench, tenant: bench, key: the-key-of-the-load-generator, rpm: 1000000000, tpm: 1000000000000, \
           concurrency: 10000, budget: 1000000usd/month}\n",
    ..PINNED
};
const UNSEEN: Setup = Setup { more: "trace: {enabled: false}\nmetrics: {enabled: false}\n", ..PINNED };

const PAIRS: [Pair; 5] = [
    Pair { load: load("with a key"), without: PINNED, with: KEYED },
    Pair { load: stream("with a key, a stream"), without: PINNED, with: KEYED },
    Pair { load: load("with traces and metrics"), without: UNSEEN, with: PINNED },
    Pair { load: stream("with traces and metrics, a stream"), without: UNSEEN, with: PINNED },
    // The same text, of a provider that speaks Messages.
    Pair {
        load: stream("Messages instead of chat"),
        without: PINNED,
        with: Setup { spec: "messages-compatible", ..PINNED },
    },
];

pub(super) fn measure(gateway: Gateway, binary: &Path, scale: usize) -> Result<Vec<Row>> {
    if gateway == Gateway::Floor || std::thread::available_parallelism()?.get() < 2 {
        println!("with and without: not measured, since that needs godex and two cores");
        return Ok(Vec::new());
    }
    let counts = Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success());
    if !counts {
        println!("instructions: not counted, since there is no valgrind");
    }
    let mut rows = Vec::new();
    for pair in &PAIRS {
        rows.push(one(gateway, binary, scale, pair)?);
        if counts {
            rows.push(instructions(gateway, binary, pair)?);
        }
    }
    Ok(rows)
}

fn instructions(gateway: Gateway, binary: &Path, pair: &Pair) -> Result<Row> {
    let load = &pair.load;
    println!("counting {} …", load.label);
    let few = load.connections;
    let more = u32::try_from(load.requests / 4)?;
    let run = |setup: Setup, requests: u32| -> Result<f64> {
        let setup = Setup { place: Place::Counted, ..setup };
        let servers = Servers::start(gateway, binary, setup)?;
        cases::once(&servers, &servers.targets[2], load, few + requests as usize)?;
        servers.counted(setup)
    };
    // What the start and the end take is in both.
    let each = |setup: Setup| -> Result<f64> { Ok((run(setup, more)? - run(setup, 0)?) / f64::from(more)) };
    let values = [None, Some(each(pair.without)?), Some(each(pair.with)?)];
    Ok(Row { label: format!("{}, instructions", load.label), unit: "", values })
}

fn one(gateway: Gateway, binary: &Path, scale: usize, pair: &Pair) -> Result<Row> {
    let load = &pair.load;
    println!("measuring {} …", load.label);
    let without = Servers::start(gateway, binary, pair.without)?;
    let with = Servers::start(gateway, binary, pair.with)?;
    let cpu = |servers: &Servers| -> Result<f64> {
        let measured = cases::once(servers, &servers.targets[2], load, load.requests * scale)?;
        Ok(measured.get("cpu_us").copied().unwrap_or(f64::NAN))
    };
    cpu(&without)?;
    cpu(&with)?;
    let mut pairs = Vec::new();
    for round in 0..ROUNDS {
        // Whoever is first has the warmer, or the colder, core.
        let (one, other) = if round % 2 == 0 { (&without, &with) } else { (&with, &without) };
        let (one, other) = (cpu(one)?, cpu(other)?);
        pairs.push(if round % 2 == 0 { (one, other) } else { (other, one) });
    }
    pairs.sort_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)));
    let (without, with) = pairs[pairs.len() / 2];
    let label = format!("{}, CPU per request", load.label);
    Ok(Row { label, unit: "µs", values: [None, Some(without), Some(with)] })
}
