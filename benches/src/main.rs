//! The parts of `cargo xtask bench`: a fast fake upstream, a byte-forwarding proxy as the floor that no
//! gateway can be cheaper than, and a load generator. Each is a process of its own, so that its CPU time and
//! memory can be told apart from the others'.
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "a bench tool: it measures real time and spawns its own tasks")]
#![expect(clippy::print_stdout, reason = "what the parts print is their interface to xtask")]

mod chunks;
mod floor;
mod history;
mod load;
mod mcp;
mod serve;
mod upstream;

use anyhow::Result;
use clap::Parser;

#[derive(Parser)]
enum Part {
    /// The fake chat upstream; prints its address.
    Upstream,
    /// The byte-forwarding proxy in front of it; prints its address.
    Floor {
        /// The upstream's address, HOST:PORT.
        upstream: String,
        /// The least that hyper allows, instead of the usual client with its pool.
        #[arg(long)]
        bare: bool,
    },
    /// The load generator; prints what it measured as KEY=VALUE lines.
    Load(load::Arguments),
}

#[tokio::main]
async fn main() -> Result<()> {
    match Part::parse() {
        Part::Upstream => upstream::run().await,
        Part::Floor { upstream, bare: true } => floor::run_bare(upstream).await,
        Part::Floor { upstream, bare: false } => floor::run(&upstream).await,
        Part::Load(arguments) => load::run(arguments).await,
    }
}
