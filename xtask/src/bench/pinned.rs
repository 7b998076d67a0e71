//! What a request costs where the proxy has one core to itself: CPU time, which holds on a machine that others use, too,
//! beside the least that hyper allows.

use std::path::Path;

use anyhow::Result;

use super::Gateway;
use super::cases::{self, Load, Row};
use super::servers::{Place, Servers, Setup};

const REQUEST: &[(&str, &str, &str, f64)] = &[("cpu_us", "CPU per request", "µs", 1.0)];
const EVENT: &[(&str, &str, &str, f64)] = &[("cpu_us", "CPU per event", "µs", 1.0 / 200.0)];

const SYNC: Load = Load {
    label: "one core: sync",
    model: "sync",
    connections: 64,
    requests: 20_000,
    input_bytes: 0,
    stored: false,
    hosted: false,
    show: REQUEST,
};
const STREAM: Load = Load {
    label: "one core: stream",
    model: "stream-200-0",
    connections: 32,
    requests: 600,
    input_bytes: 0,
    stored: false,
    hosted: false,
    show: EVENT,
};
const SYNC_STORED: Load = Load { label: "one core: stored", requests: 8_000, stored: true, ..SYNC };
const STREAM_STORED: Load = Load { label: "one core: stored stream", stored: true, ..STREAM };
const STREAM_RESUMABLE: Load = Load { label: "one core: resumable stream", stored: true, ..STREAM };

/// What is in godex's `session` section, and the loads on it.
const SETUPS: &[(&str, &[Load])] =
    &[("", &[SYNC, SYNC_STORED, STREAM, STREAM_STORED]), ("  resume_foreground: true\n", &[STREAM_RESUMABLE])];

pub(super) fn measure(gateway: Gateway, binary: &Path, scale: usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    if std::thread::available_parallelism()?.get() < 2 {
        println!("one core: not measured, since the load needs another");
        return Ok(rows);
    }
    for (session, loads) in SETUPS {
        let setup = Setup { place: Place::Pinned, bare: true, session, ..Setup::default() };
        let servers = Servers::start(gateway, binary, setup)?;
        for load in *loads {
            rows.extend(cases::run(&servers, load, scale)?);
        }
    }
    Ok(rows)
}
