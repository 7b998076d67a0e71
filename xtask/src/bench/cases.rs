//! What is measured. Every case runs on all three targets in turn, and again, so that a noisy moment of the
//! machine hits them alike; the median round counts.

use std::collections::HashMap;

use anyhow::{Context, Result};

use super::servers::{Servers, Target};
use crate::process;

const ROUNDS: usize = 3;
const EVENTS: f64 = 200.0;

/// One row: a label, its unit, and a value per target (none where it has no meaning).
pub(super) struct Row {
    pub(super) label: String,
    pub(super) unit: &'static str,
    pub(super) values: [Option<f64>; 3],
}

/// A kind of load.
pub(super) struct Load {
    pub(super) label: &'static str,
    pub(super) model: &'static str,
    pub(super) connections: usize,
    pub(super) requests: usize,
    pub(super) input_bytes: usize,
    /// Every response is stored, durably, where that means something.
    pub(super) stored: bool,
    /// godex calls a tool of an MCP server; where nobody does, what it costs is the two calls to the model.
    pub(super) hosted: bool,
    /// Which measurements become rows: key of the load tool or of ours, label, unit, factor.
    pub(super) show: &'static [(&'static str, &'static str, &'static str, f64)],
}

const SYNC: &[(&str, &str, &str, f64)] = &[
    ("per_second", "throughput", "req/s", 1.0),
    ("p50_us", "p50", "ms", 0.001),
    ("p99_us", "p99", "ms", 0.001),
    ("cpu_us", "CPU per request", "µs", 1.0),
];
const STREAM: &[(&str, &str, &str, f64)] = &[
    ("first_p50_us", "first delta p50", "ms", 0.001),
    ("first_p99_us", "first delta p99", "ms", 0.001),
    ("cpu_us", "CPU per event", "µs", 1.0 / EVENTS),
    ("cpu_us", "CPU per stream", "µs", 1.0),
];
const LONE: &[(&str, &str, &str, f64)] =
    &[("first_p50_us", "first delta", "ms", 0.001), ("max_gap_us", "longest gap", "ms", 0.001)];
const INPUT: &[(&str, &str, &str, f64)] = &[("p50_us", "median time", "ms", 0.001), ("cpu_us", "CPU", "µs", 1.0)];

pub(super) const SYNC_64: Load = Load {
    label: "sync ×64",
    model: "sync",
    connections: 64,
    requests: 10_000,
    input_bytes: 0,
    stored: false,
    hosted: false,
    show: SYNC,
};

const LOADS: &[Load] = &[
    Load {
        label: "sync ×1",
        model: "sync",
        connections: 1,
        requests: 4000,
        input_bytes: 0,
        stored: false,
        hosted: false,
        show: SYNC,
    },
    SYNC_64,
    Load {
        label: "sync ×256",
        model: "sync",
        connections: 256,
        requests: 10_000,
        input_bytes: 0,
        stored: false,
        hosted: false,
        show: SYNC,
    },
    Load {
        label: "stream 200 ×32",
        model: "stream-200-0",
        connections: 32,
        requests: 480,
        input_bytes: 0,
        stored: false,
        hosted: false,
        show: STREAM,
    },
    Load {
        label: "stream 5 ms",
        model: "stream-200-5",
        connections: 1,
        requests: 1,
        input_bytes: 0,
        stored: false,
        hosted: false,
        show: LONE,
    },
    Load {
        label: "input 200 KB",
        model: "sync",
        connections: 1,
        requests: 800,
        input_bytes: 200_000,
        stored: false,
        hosted: false,
        show: INPUT,
    },
    Load {
        label: "input 2 MB",
        model: "sync",
        connections: 1,
        requests: 120,
        input_bytes: 2_000_000,
        stored: false,
        hosted: false,
        show: INPUT,
    },
    Load {
        label: "stored ×1",
        model: "sync",
        connections: 1,
        requests: 1000,
        input_bytes: 0,
        stored: true,
        hosted: false,
        show: SYNC,
    },
    Load {
        label: "stored ×64",
        model: "sync",
        connections: 64,
        requests: 6000,
        input_bytes: 0,
        stored: true,
        hosted: false,
        show: SYNC,
    },
];

/// A response of two rounds, with one call of a tool between them.
pub(super) const ROUND: Load = Load {
    label: "one MCP call",
    model: "tool",
    connections: 1,
    requests: 1000,
    input_bytes: 0,
    stored: false,
    hosted: true,
    show: SYNC,
};

pub(super) fn measure(servers: &Servers, scale: usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for load in LOADS {
        rows.extend(run(servers, load, scale)?);
    }
    Ok(rows)
}

/// A value per target; those without a proxy have none.
pub(super) fn each(
    servers: &Servers,
    mut value: impl FnMut(&Target) -> Result<Option<f64>>,
) -> Result<[Option<f64>; 3]> {
    let mut values = [None; 3];
    for (place, target) in values.iter_mut().zip(&servers.targets) {
        if target.proxy.is_some() {
            *place = value(target)?;
        }
    }
    Ok(values)
}

pub(super) fn run(servers: &Servers, load: &Load, scale: usize) -> Result<Vec<Row>> {
    println!("measuring {} …", load.label);
    let mut measured: [Vec<Measured>; 3] = Default::default();
    for target in &servers.targets {
        // Warm: connections, allocator, page cache.
        once(servers, target, load, load.connections)?;
    }
    for _ in 0..ROUNDS {
        for (target, rounds) in servers.targets.iter().zip(&mut measured) {
            rounds.push(once(servers, target, load, load.requests * scale)?);
        }
    }
    let row = |(key, label, unit, factor): &(&str, &str, &'static str, f64)| Row {
        label: format!("{}, {label}", load.label),
        unit,
        values: std::array::from_fn(|index| {
            let meaningful = *key != "cpu_us" || servers.targets[index].proxy.is_some();
            meaningful.then(|| median(&measured[index], key) * factor)
        }),
    };
    Ok(load.show.iter().map(row).collect())
}

/// What one run of the load tool printed, and the CPU time per request of the proxy meanwhile.
pub(super) type Measured = HashMap<String, f64>;

pub(super) fn once(servers: &Servers, target: &Target, load: &Load, requests: usize) -> Result<Measured> {
    let mut tool = servers.load(target);
    tool.args(["--model", load.model]);
    tool.args(["--connections", &load.connections.to_string(), "--requests", &requests.to_string()]);
    if load.input_bytes > 0 {
        tool.args(["--input-bytes", &load.input_bytes.to_string()]);
    }
    if load.stored {
        tool.arg("--stored");
    }
    if load.hosted {
        tool.args(["--tool", if target.name == "godex" { "gateway" } else { "by-hand" }]);
    }
    let before = target.cpu()?;
    let printed = process::output(&mut tool).with_context(|| format!("{} on {}", load.label, target.name))?;
    let cpu = target.cpu()? - before;
    let pairs = printed.lines().filter_map(|line| line.split_once('='));
    let mut measured: Measured = pairs.filter_map(|(key, value)| Some((key.to_owned(), value.parse().ok()?))).collect();
    let count = measured.get("requests").copied().context("the load tool said nothing")?;
    measured.insert("cpu_us".to_owned(), cpu / count);
    Ok(measured)
}

fn median(rounds: &[Measured], key: &str) -> f64 {
    let mut values: Vec<f64> = rounds.iter().filter_map(|round| round.get(key).copied()).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
