//! `cargo xtask test`: the whole gate, in the order in which failures are cheapest to learn of. It installs
//! what it needs, so that a clean checkout and a registry are enough.

mod browser;
mod clients;
mod install;
mod programs;
mod report;
mod types;

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use clap::Args;

use crate::{crash, deploy, drain, instances, overload, process};
pub(crate) use install::{once, system_package, venv};
use programs::works;
pub(crate) use programs::{build_godex, cargo, has_nextest};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Also the documentation's examples and, where cargo-deny is installed, licences and sources.
    #[arg(long)]
    full: bool,
    /// Also a real model server, which is installed from package registries (130 MB).
    #[arg(long)]
    llm: bool,
    /// Only this step (and none of what it may need).
    #[arg(long, value_name = "STEP")]
    only: Option<String>,
}

struct Step {
    name: &'static str,
    run: fn() -> Result<()>,
}

const STEPS: &[Step] = &[
    Step { name: "install", run: install::all },
    Step { name: "format", run: || process::run(cargo().args(["fmt", "--all", "--check"])) },
    Step { name: "lints", run: lints },
    Step { name: "docs", run: docs },
    Step { name: "tests", run: || tests(Size::Ci) },
    Step { name: "types", run: types::run },
    Step { name: "fuzz", run: fuzz },
    Step { name: "clients", run: clients::run },
    Step { name: "browser", run: browser::run },
    Step { name: "deploy", run: || deploy::run(&deploy::Arguments::CI) },
    Step { name: "crash", run: || crash::all(crash::Arguments::CI, false, 1) },
    Step { name: "drain", run: || drain::run(&drain::Arguments::CI) },
    Step { name: "overload", run: || overload::run(&overload::Arguments::CI) },
    Step { name: "instances", run: || instances::run(&instances::Arguments::CI) },
];

const FULL: &[Step] = &[
    Step { name: "tests, full size", run: || tests(Size::Full) },
    Step { name: "doc tests", run: || process::run(cargo().args(["test", "--workspace", "--locked", "--doc"])) },
    Step { name: "deny", run: deny },
];

const LLM: &[Step] = &[Step { name: "llm", run: crate::llm::check }];

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let wanted = |step: &&Step| arguments.only.as_deref().is_none_or(|only| only == step.name);
    let more = if arguments.full { FULL } else { &[] };
    let more = more.iter().chain(if arguments.llm { LLM } else { &[] });
    let steps: Vec<&Step> = STEPS.iter().chain(more).filter(wanted).collect();
    ensure!(!steps.is_empty(), "no such step");
    report::clear();
    let (mut taken, mut failure) = (Vec::new(), None);
    for step in steps {
        println!("── {}", step.name);
        let started = Instant::now();
        let outcome = (step.run)();
        let mark = if outcome.is_ok() { "ok" } else { "FAILED" };
        println!("── {}: {mark} ({})", step.name, seconds(started.elapsed()));
        taken.push((step.name, mark, started.elapsed()));
        if let Err(error) = outcome {
            failure = Some(error);
            break;
        }
    }
    report::print(&taken);
    failure.map_or(Ok(()), Err)
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

fn lints() -> Result<()> {
    process::run(cargo().args(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]))
}

fn docs() -> Result<()> {
    let mut cargo = cargo();
    process::run(cargo.args(["doc", "--workspace", "--no-deps", "--locked"]).env("RUSTDOCFLAGS", "-D warnings"))
}

/// How much the slow suites do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    Ci,
    Full,
}

fn tests(size: Size) -> Result<()> {
    let mut command = cargo();
    if has_nextest() {
        command.args(["nextest", "run", "--workspace", "--locked", "--no-fail-fast"]);
    } else {
        command.args(["test", "--workspace", "--locked", "--no-fail-fast", "--lib", "--bins", "--tests"]);
    }
    if size == Size::Full {
        command.env("GODEX_FULL", "1");
    }
    process::run(&mut command)
}

/// That the fuzz targets compile: they are a workspace of their own, and running them needs another toolchain.
fn fuzz() -> Result<()> {
    process::run(cargo().args([
        "check",
        "--locked",
        "--manifest-path",
        "fuzz/Cargo.toml",
        "--target-dir",
        "target/fuzz",
    ]))
}

fn deny() -> Result<()> {
    if !works(cargo().args(["deny", "--version"])) {
        println!("cargo-deny is not installed: skipped");
        return Ok(());
    }
    process::run(cargo().args(["deny", "check", "bans", "licenses", "sources"]))
}

/// Fails with the names of the packages when the probe does not work.
fn require(command: &mut Command, packages: &str) -> Result<()> {
    if works(command) {
        return Ok(());
    }
    bail!("missing: {packages}. Install these packages and run again")
}
