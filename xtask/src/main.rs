//! The project's chores: `cargo xtask test` is the whole gate, `cargo xtask bench` compares the gateway with
//! a byte-forwarding proxy, `cargo xtask crash` kills it, `cargo xtask drain` ends it well, `cargo xtask instances`
//! runs several on one database, `cargo xtask overload` asks too much of it, `cargo xtask fixture` runs an earlier version, `cargo xtask dist` makes the files of a release, `cargo xtask deploy` tries them, `cargo xtask llm` puts it in front of a real model, `cargo xtask docs` writes the tables of the
//! documentation, `cargo xtask bare` does what the README says on a bare system.
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "a tool of the developers: it reads the environment and the clock")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "its output is for the terminal")]

mod bare;
mod bench;
mod crash;
mod deploy;
mod dist;
mod docs;
mod drain;
mod fixture;
mod instances;
mod llm;
mod overload;
mod process;
mod test;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
#[command(about = "The project's chores")]
enum Chore {
    /// Everything that must hold: format, lints, docs, tests, and the official clients against a running godex.
    Test(test::Arguments),
    /// The gateway beside a byte-forwarding proxy and beside no proxy at all.
    Bench(bench::Arguments),
    /// kill -9, power cuts, and what must never reach the disk.
    Crash(crash::Arguments),
    /// Ends and reloads under load: no request fails.
    Drain(drain::Arguments),
    /// Several processes on one Postgres, killed and frozen: what one promised, the others keep.
    Instances(instances::Arguments),
    /// Ten times as much as it can bear: who is let in is answered as ever, all others are told so at once.
    Overload(overload::Arguments),
    /// The files of a release: binary, archive, package, what it is made of, checksums.
    Dist(dist::Arguments),
    /// What is in deploy/, and the package: validated, installed on a bare system, started and ended.
    Deploy(deploy::Arguments),
    /// An earlier version's databases, made anew, and that version beside this one.
    Fixture(fixture::Arguments),
    /// A real model server: what the probe finds out about it, and godex in front of it.
    Llm(llm::Arguments),
    /// The tables in docs/ anew, from the tables that the program reads.
    Docs,
    /// Both commands of the README on a minimal Debian, made below target/bare; needs root.
    Bare(bare::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Chore::parse() {
        Chore::Test(arguments) => test::run(&arguments),
        Chore::Bench(arguments) => bench::run(&arguments),
        Chore::Crash(arguments) => crash::run(&arguments),
        Chore::Drain(arguments) => drain::run(&arguments),
        Chore::Instances(arguments) => instances::run(&arguments),
        Chore::Overload(arguments) => overload::run(&arguments),
        Chore::Docs => docs::run(),
        Chore::Dist(arguments) => dist::run(&arguments),
        Chore::Deploy(arguments) => deploy::run(&arguments),
        Chore::Fixture(arguments) => fixture::run(&arguments),
        Chore::Llm(arguments) => llm::run(&arguments),
        Chore::Bare(arguments) => bare::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // Without a backtrace: what failed is a command, and it has said why.
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the workspace.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}
