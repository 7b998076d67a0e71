//! `godex doctor`: everything that a godex needs, looked at one after the other, each with what to do about it. It changes
//! nothing, and may be run beside a godex that serves.

mod machine;
mod network;
mod store;

use std::process::ExitCode;

use anyhow::Context;
use server::checkup;
use server::config::{Config, KeyFrom, Origin, Problem, ProviderConfig, Purpose};

use super::codex::{doctor as codex_doctor, installed};
use crate::args::{CheckArgs, Flags, variable};
use crate::progress::Progress;
use crate::report::{Check, Report, Status};

pub(crate) fn run(flags: &Flags, args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let mut report = Report::new(args.json);
    let progress = Progress::start("looking");
    report.add(versions())?;
    let config = configuration(flags, &mut report)?;
    if let Some(config) = &config {
        progress.say("looking at the store");
        report.all(runtime.block_on(store::look(config)))?;
        report.all(machine::logs(config))?;
        progress.say("looking at the port and the admin listener");
        report.all(runtime.block_on(network::listeners(config)))?;
        report.all(runtime.block_on(network::guard(config)).into_iter().collect())?;
        let mut skews = Vec::new();
        if !args.offline {
            progress.say("asking the providers");
            let (checks, found) = runtime.block_on(network::providers(config));
            report.all(checks)?;
            report.all(runtime.block_on(network::collector(config)).into_iter().collect())?;
            skews = found;
        }
        report.add(machine::clock(&skews))?;
    }
    progress.say("looking at Codex");
    report.add(codex())?;
    drop(progress);
    report.finish()
}

fn versions() -> Check {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let message = format!("{}, {os} {arch}, SQLite {}", env!("CARGO_PKG_VERSION"), checkup::sqlite_version());
    Check::ok("godex", message)
}

/// Every problem that it has; the configuration if it can be looked at all the same.
fn configuration(flags: &Flags, report: &mut Report) -> anyhow::Result<Option<Config>> {
    let problems = match flags.read(Purpose::Serve)? {
        Ok(config) => {
            report.add(Check::ok("config", config.origin.to_string()))?;
            if config.providers.iter().all(|provider| provider.name == "demo") {
                let none = "there is no provider, and no key of one in the environment: only `demo` answers";
                let advice = "`godex init` writes a file with one; or set a key such as DEEPSEEK_API_KEY";
                report.add(Check::warn("config", none, advice))?;
            }
            report.all(remarks(&config))?;
            return Ok(Some(config));
        }
        Err(problems) => problems.0,
    };
    let missing: Vec<String> = problems.iter().filter_map(|problem| missing_variable(&problem.message)).collect();
    for Problem { file, position, path, message, help } in problems {
        let place = position.map_or_else(|| file.clone(), |position| format!("{file}:{}", position.line));
        let path = if path.is_empty() { String::new() } else { format!("{path}: ") };
        let advice = help.unwrap_or_else(|| format!("correct it in {file}"));
        report.add(Check::fail("config", format!("{place}: {path}{message}"), advice))?;
    }
    // Without the keys the rest can often be looked at.
    let env = |name: &str| {
        variable(name).or_else(|| missing.iter().any(|missing| missing == name).then(|| NOT_SET.to_owned()))
    };
    Ok(flags.read_in(Purpose::Look, &env)?.ok())
}

/// What stands for a variable that is not set, so that the rest can be looked at. Nobody is asked with it.
pub(super) const NOT_SET: &str = "not-set-in-this-environment";

/// The variable that a problem is about, if it is only that.
fn missing_variable(message: &str) -> Option<String> {
    Some(message.strip_prefix("the environment variable ")?.strip_suffix(" is not set")?.to_owned())
}

/// What loads, and should be known.
fn remarks(config: &Config) -> Vec<Check> {
    let mut checks = Vec::new();
    if !config.unused.is_empty() {
        let message = format!("no effect in this version: {}", config.unused.join(", "));
        checks.push(Check::warn("config", message, "take them out, or look for a newer godex"));
    }
    if let Origin::File(path) = &config.origin
        && machine::others_may_read(path)
        && holds_keys(config, path)
    {
        let message = format!("{} holds keys, and others may read it", path.display());
        checks.push(Check::warn("config", message, format!("`chmod 600 {}`", path.display())));
    }
    checks
}

/// Whether a provider's key is in the file itself.
fn holds_keys(config: &Config, path: &std::path::Path) -> bool {
    let from_file = |provider: &ProviderConfig| matches!(provider.key_from, KeyFrom::File(_));
    let literal = |line: &str| line.contains("api_key") && !line.contains("${");
    config.providers.iter().any(from_file) && std::fs::read_to_string(path).is_ok_and(|text| text.lines().any(literal))
}

/// Not having it is fine.
fn codex() -> Check {
    let Ok(path) = installed::find(None) else {
        return Check::ok("codex", "not installed; nothing here needs it");
    };
    let version = installed::version(&path).ok();
    let check = codex_doctor::program(Ok(&path), version);
    if check.status == Status::Fail { check.softened() } else { check }
}
