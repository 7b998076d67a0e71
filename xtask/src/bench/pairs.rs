//! What one thing costs: two godex on one core, one without it and one with it, asked in turn. The first stands in the
//! column of the floor. And where there is valgrind: the instructions of both, which no neighbour changes, but which are
//! without those of the kernel.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::Gateway;
use super::cases::{self, Load, Row};
use super::servers::{Place, Servers, Setup};

/// Many short runs in turn: what neighbours take of the machine for a while hits both alike.
const ROUNDS: usize = 20;
/// Both are started anew so often: where its memory happens to be makes one process dearer than another of the same program, by
/// as much as what is measured.
const STARTS: usize = 8;

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

pub(super) fn measure(gateway: Gateway, binary: &Path, scale: usize, only: &str) -> Result<Vec<Row>> {
    if gateway == Gateway::Floor || std::thread::available_parallelism()?.get() < 2 {
        println!("with and without: not measured, since that needs godex and two cores");
        return Ok(Vec::new());
    }
    let counts = Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success());
    if !counts {
        println!("instructions: not counted, since there is no valgrind");
    }
    let mut rows = Vec::new();
    for pair in PAIRS.iter().filter(|pair| pair.load.label.contains(only)) {
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
    let requests = (load.requests * scale / 5).max(load.connections);
    let (mut used, mut ratios, mut of_starts) = ([0.0; 2], Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let start = started(gateway, binary, pair, requests)?;
        used = [used[0] + start.used[0], used[1] + start.used[1]];
        of_starts.push(start.used[1] / start.used[0]);
        ratios.extend(start.ratios);
    }
    ratios.sort_by(f64::total_cmp);
    of_starts.sort_by(f64::total_cmp);
    println!(
        "  {:.3} in half of the rounds at most, quartiles {:.3} and {:.3}; {STARTS} starts, from {:.3} to {:.3}",
        at(&ratios, 2),
        at(&ratios, 1),
        at(&ratios, 3),
        at(&of_starts, 0),
        at(&of_starts, 4)
    );
    let count = f64::from(u32::try_from(STARTS * ROUNDS * requests)?);
    let label = format!("{}, CPU per request", load.label);
    Ok(Row { label, unit: "µs", values: [None, Some(used[0] / count), Some(used[1] / count)] })
}

/// What both have used in all rounds together, in microseconds, and how much more the second did in each.
struct Started {
    used: [f64; 2],
    ratios: Vec<f64>,
}

fn started(gateway: Gateway, binary: &Path, pair: &Pair, requests: usize) -> Result<Started> {
    let servers = [Servers::start(gateway, binary, pair.without)?, Servers::start(gateway, binary, pair.with)?];
    let ask = |which: usize| cases::once(&servers[which], &servers[which].targets[2], &pair.load, requests);
    let cpu = || -> Result<[f64; 2]> { Ok([servers[0].targets[2].cpu()?, servers[1].targets[2].cpu()?]) };
    ask(0)?;
    ask(1)?;
    let first = cpu()?;
    let (mut before, mut ratios) = (first, Vec::with_capacity(ROUNDS));
    for round in 0..ROUNDS {
        // Whoever is first has the warmer, or the colder, core.
        ask(round % 2)?;
        ask(1 - round % 2)?;
        // What one does while the other is asked, such as writing its traces, is its own as well.
        let now = cpu()?;
        ratios.push((now[1] - before[1]) / (now[0] - before[0]));
        before = now;
    }
    Ok(Started { used: [before[0] - first[0], before[1] - first[1]], ratios })
}

/// So many quarters are not more.
fn at(sorted: &[f64], quarters: usize) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((sorted.len() * quarters / 4).min(last)).copied().unwrap_or(f64::NAN)
}
