//! What connections cost in memory: streams that are open and silent, idle `WebSocket`s, and clients that ask for much and
//! read nothing of it. Each on fresh processes: pages that something else has freed would hide what a connection needs.

use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::Gateway;
use super::cases::{self, Load, Row, each};
use super::servers::{Servers, Setup, Target};
use crate::process::Running;

const HELD: usize = 2_000;
const HELD_FULL: usize = 9_000;
const STALLED: usize = 100;

/// What others ask for beside those who read nothing.
const OTHERS: Load = Load {
    label: "others of stalled readers",
    model: "sync",
    connections: 8,
    requests: 4_000,
    input_bytes: 0,
    stored: false,
    hosted: false,
    show: &[],
};

pub(super) fn measure(gateway: Gateway, binary: &Path, full: bool) -> Result<Vec<Row>> {
    let count = if full { HELD_FULL } else { HELD };
    let fresh = || Servers::start(gateway, binary, Setup::default());
    println!("measuring {count} held streams …");
    let servers = fresh()?;
    let idle = each(&servers, |target| Ok(Some(target.rss()? / 1024.0)))?;
    let held = each(&servers, |target| per_connection(&servers, target, "--hold", count))?;
    drop(servers);
    println!("measuring {count} idle WebSockets …");
    let servers = fresh()?;
    let sockets = each(&servers, |target| per_connection(&servers, target, "--websockets", count))?;
    drop(servers);
    let mut rows = vec![
        Row { label: "RSS at idle".to_owned(), unit: "MiB", values: idle },
        Row { label: format!("RSS per held stream (×{count})"), unit: "KiB", values: held },
        Row { label: format!("RSS per idle WebSocket (×{count})"), unit: "KiB", values: sockets },
    ];
    rows.extend(stalled(&fresh()?)?);
    Ok(rows)
}

/// What so many more connections add to a process that holds some already, so that the first use of pools and threads is
/// not counted. None where they are refused.
fn per_connection(servers: &Servers, target: &Target, kind: &str, count: usize) -> Result<Option<f64>> {
    let Some((some, _)) = open(servers, target, kind, "hold", count / 5)? else { return Ok(None) };
    let before = target.rss()?;
    let Some((more, held)) = open(servers, target, kind, "hold", count)? else { return Ok(None) };
    let after = target.rss()?;
    more.finish()?;
    some.finish()?;
    Ok(Some((after - before).max(0.0) / held))
}

/// Opens this many; they stay open until the returned process is finished. None where they are refused.
fn open(servers: &Servers, target: &Target, kind: &str, model: &str, count: usize) -> Result<Option<(Running, f64)>> {
    let mut load = servers.load(target);
    load.args(["--model", model, kind, "--connections", &count.to_string()]);
    let mut load = Running::start(load.stdin(Stdio::piped()))?;
    let held: f64 = load.line_after("held=")?.parse()?;
    if held > 0.0 {
        return Ok(Some((load, held)));
    }
    println!("{} does not serve them", target.name);
    load.finish().map(|()| None)
}

/// Who reads nothing of an answer of 10 MiB costs so much, and makes others wait so much longer.
fn stalled(servers: &Servers) -> Result<[Row; 2]> {
    println!("measuring {STALLED} stalled readers …");
    let mut longer = [None; 3];
    let mut others = longer.iter_mut().skip(1);
    let room = each(servers, |target| {
        let before = p99(servers, target)?;
        let rss = target.rss()?;
        let opened = open(servers, target, "--hold", "large", STALLED)?;
        let (stalled, count) = opened.context("a stream was refused")?;
        // Until no buffer can take any more.
        thread::sleep(Duration::from_secs(2));
        let each = (target.rss()? - rss).max(0.0) / count;
        let meanwhile = p99(servers, target)?;
        stalled.finish()?;
        let after = p99(servers, target)?;
        if let Some(longer) = others.next() {
            *longer = Some(2.0 * meanwhile / (before + after));
        }
        Ok(Some(each))
    })?;
    Ok([
        Row { label: format!("RSS per stalled reader (×{STALLED})"), unit: "KiB", values: room },
        Row { label: "  others' p99 beside them".to_owned(), unit: "×", values: longer },
    ])
}

fn p99(servers: &Servers, target: &Target) -> Result<f64> {
    let mut rounds = (0..3)
        .map(|_| cases::once(servers, target, &OTHERS, OTHERS.requests))
        .map(|measured| measured?.get("p99_us").copied().context("no p99"))
        .collect::<Result<Vec<f64>>>()?;
    rounds.sort_by(f64::total_cmp);
    Ok(rounds[rounds.len() / 2])
}
