//! `godex`: the command line. Reads flags, the environment and the configuration once, then hands over to a
//! command. No logic of the gateway lives here.
#![forbid(unsafe_code)]

mod args;
mod banner;
mod commands;
mod logs;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        // `godex models | head -1`: the reader has what it wanted.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // With stderr gone there is nobody left to tell.
            let _ = writeln!(std::io::stderr().lock(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

fn run(args: &Args) -> anyhow::Result<()> {
    match &args.command {
        None | Some(Command::Serve) => commands::serve::run(&args.flags),
        Some(Command::Config { command }) => commands::config::run(&args.flags, command),
        Some(Command::Models) => commands::models::run(&args.flags),
        Some(Command::Probe(probe)) => commands::probe::run(&args.flags, probe),
        Some(Command::Providers { command, json }) => commands::providers::run(&args.flags, command.as_ref(), *json),
        Some(Command::Demo) => commands::demo::run(),
        Some(Command::Completions { shell }) => commands::completions::run(*shell),
    }
}
