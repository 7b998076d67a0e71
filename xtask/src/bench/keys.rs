//! What it costs that a caller has a key with limits and a budget: two godex on one core, one that wants no key and one that
//! does, asked in turn. The first stands in the column of the floor.

use std::path::Path;

use anyhow::Result;

use super::Gateway;
use super::cases::{self, Load, Row};
use super::servers::{Place, Servers, Setup};

/// Pairs of runs; the median of their ratios counts.
const ROUNDS: usize = 9;

const LOAD: Load = Load {
    label: "with a key",
    model: "sync",
    connections: 64,
    requests: 10_000,
    input_bytes: 0,
    stored: false,
    hosted: false,
    show: &[],
};

/// Every limit that a key can have, none of which is reached, and a price, so that its budget is counted.
const KEYS: &str = "keys:\n  - {name: bench, tenant: bench, key: the-key-of-the-load-generator, rpm: 1000000000, \
                    tpm: 1000000000000, concurrency: 10000, budget: 1000000usd/month}\n";

const PRICES: &str = "    prices:\n      \"*\": {input: 1, output: 2}\n";

pub(super) fn measure(gateway: Gateway, binary: &Path, scale: usize) -> Result<Vec<Row>> {
    if gateway == Gateway::Floor || std::thread::available_parallelism()?.get() < 2 {
        println!("with a key: not measured, since that needs godex and two cores");
        return Ok(Vec::new());
    }
    println!("measuring {} …", LOAD.label);
    let plain = Setup { place: Place::Pinned, bare: true, ..Setup::default() };
    let without = Servers::start(gateway, binary, plain)?;
    let with = Servers::start(gateway, binary, Setup { provider: PRICES, more: KEYS, ..plain })?;
    let cpu = |servers: &Servers| -> Result<f64> {
        let measured = cases::once(servers, &servers.targets[2], &LOAD, LOAD.requests * scale)?;
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
    let label = format!("{}, CPU per request", LOAD.label);
    Ok(vec![Row { label, unit: "µs", values: [None, Some(without), Some(with)] }])
}
