//! `cargo xtask bench`: the same load on the upstream itself, on the byte-forwarding floor and on godex, side
//! by side, and whether godex is as close to the floor as we promise. Ratios mean something on any machine;
//! absolutes only on a quiet one.

mod cases;
mod kernel;
mod memory;
mod pairs;
mod pinned;
mod servers;
mod startup;
mod table;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::process;
use cases::{Load, Row};
use servers::{Servers, Setup};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Five times the requests.
    #[arg(long)]
    full: bool,
    /// What is in the gateway's column; `floor` tries out the bench itself.
    #[arg(long, value_enum, default_value_t = Gateway::Godex)]
    gateway: Gateway,
    /// Another godex in that column, such as one of an earlier version.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Only what one thing costs: a key, traces, another wire.
    #[arg(long)]
    pairs: bool,
    /// Of these, only those with this in their name.
    #[arg(long, value_name = "TEXT", requires = "pairs", default_value = "")]
    only: String,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Gateway {
    Godex,
    Floor,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    build(arguments.gateway)?;
    let started = Instant::now();
    let binary = arguments.binary.clone().unwrap_or_else(|| crate::root().join("target/release/godex"));
    let scale = if arguments.full { 5 } else { 1 };
    if arguments.pairs {
        table::print(&pairs::measure(arguments.gateway, &binary, scale, &arguments.only)?);
        return Ok(());
    }
    let start_up = startup::measure(&binary)?;
    let mut results = memory::measure(arguments.gateway, &binary, arguments.full)?;
    let servers = Servers::start(arguments.gateway, &binary, Setup::default())?;
    results.extend(cases::measure(&servers, scale)?);
    drop(servers);
    // An earlier version may not know what these need.
    let known = |rows: Result<Vec<Row>>| match (rows, &arguments.binary) {
        (Err(error), Some(_)) => {
            println!("not measured: {error:#}");
            Ok(Vec::new())
        }
        (rows, _) => rows,
    };
    results.extend(known(rounds(arguments.gateway, &binary, scale))?);
    results.extend(pinned::measure(arguments.gateway, &binary, scale)?);
    results.extend(known(pairs::measure(arguments.gateway, &binary, scale, ""))?);
    results.extend(start_up);
    table::print(&results);
    kernel::run()?;
    println!("\nmeasured in {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// What a round of a hosted tool costs.
fn rounds(gateway: Gateway, binary: &Path, scale: usize) -> Result<Vec<Row>> {
    if gateway == Gateway::Floor {
        println!("a call of an MCP server: not measured, since the floor makes none");
        return Ok(Vec::new());
    }
    let more = "tools:\n  mcp:\n    servers:\n      bench: {url: 'http://{upstream}/mcp', require_approval: never}\n";
    let servers = Servers::start(gateway, binary, Setup { more, ..Setup::default() })?;
    let mut rows = Vec::new();
    for load in [cases::ROUND, Load { label: "one MCP call ×64", connections: 64, requests: 3000, ..cases::ROUND }] {
        rows.extend(cases::run(&servers, &load, scale)?);
    }
    Ok(rows)
}

fn build(gateway: Gateway) -> Result<()> {
    let mut build = cargo();
    build.args(["build", "--release", "--locked", "--package", "benches"]);
    if gateway == Gateway::Godex {
        build.args(["--package", "godex"]);
    }
    process::run(&mut build)
}

fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(crate::root());
    cargo
}
