//! `godex`: the command line. Reads flags, the environment and the configuration once, then hands over to a
//! command. No logic of the gateway lives here.
#![forbid(unsafe_code)]

mod admin;
mod args;
mod banner;
mod commands;
mod diff;
mod files;
mod logs;
mod output;
mod progress;
mod prompt;
mod reload;
mod report;
mod screen;
mod terminal;

use std::process::ExitCode;

use clap::Parser;
use wire::visible::visible_lines;

use args::{Args, Command};

/// It gives memory back that is not used any more; the usual one keeps it, and a server after a peak would look as full as
/// in it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            output::tell(&format!("error: {}\n", visible_lines(&causes(&error))));
            ExitCode::FAILURE
        }
    }
}

/// The error and what caused it, each said once: some errors repeat their cause in their own words.
fn causes(error: &anyhow::Error) -> String {
    let mut out = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !out.ends_with(&cause) {
            out.push_str(if out.is_empty() { "" } else { ": " });
            out.push_str(&cause);
        }
    }
    out
}

fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Some(Command::Codex(codex)) => return commands::codex::run(&args.flags, codex),
        Some(Command::Doctor(doctor)) => return commands::doctor::run(&args.flags, doctor),
        Some(Command::Mcp { command }) => return commands::mcp::run(&args.flags, command),
        Some(Command::Probe(probe)) => return commands::probe::run(&args.flags, probe),
        None | Some(Command::Serve) => commands::serve::run(&args.flags),
        Some(Command::Init(init)) => commands::init::run(&args.flags, init),
        Some(Command::Import { command }) => commands::import::run(command),
        Some(Command::Config { command }) => commands::config::run(&args.flags, command),
        Some(Command::Models) => commands::models::run(&args.flags),
        Some(Command::Keys(keys)) => commands::keys::run(&args.flags, keys),
        Some(Command::Tenants(tenants)) => commands::tenants::run(&args.flags, tenants),
        Some(Command::Traces(traces)) => commands::traces::run(&args.flags, traces),
        Some(Command::Reload) => commands::reload::run(&args.flags),
        Some(Command::Drain) => commands::drain::run(&args.flags),
        Some(Command::Search { query, json }) => commands::search::run(&args.flags, query, *json),
        Some(Command::Providers { command, json }) => commands::providers::run(&args.flags, command.as_ref(), *json),
        Some(Command::Store { command }) => commands::store::run(&args.flags, command),
        Some(Command::Env { shell }) => commands::env::run(&args.flags, *shell),
        Some(Command::Usage(usage)) => commands::usage::run(&args.flags, usage),
        Some(Command::Explain(explain)) => commands::explain::run(&args.flags, explain),
        Some(Command::Replay(replay)) => commands::replay::run(&args.flags, replay),
        Some(Command::Page(page)) => commands::page::run(&args.flags, *page),
        Some(Command::Health(health)) => commands::health::run(&args.flags, health),
        Some(Command::Man { folder }) => commands::man::run(folder),
        Some(Command::ReadPdf(read)) => commands::read_pdf::run(*read),
        Some(Command::Demo) => commands::demo::run(),
        Some(Command::Completions { shell }) => commands::completions::run(*shell),
    }?;
    Ok(ExitCode::SUCCESS)
}
