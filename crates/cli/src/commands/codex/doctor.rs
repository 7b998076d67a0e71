//! `godex codex doctor`: everything between Codex and a model, looked at one after the other, each with what to do about
//! it. It changes nothing.

mod configured;
mod roundtrip;
mod task;

use std::path::Path;
use std::process::ExitCode;

use server::config::{Config, KeyFrom};

use super::choice::{self, Choice};
use super::gateway::{self, Gateway};
use super::installed::{self, Version};
use super::{codex_home, launch};
use crate::args::{DoctorArgs, Flags};
use crate::report::{Check, Report};

pub(super) fn run(flags: &Flags, codex: Option<&Path>, args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let mut report = Report::new(args.json);
    let codex = installed::find(codex);
    let version = codex.as_ref().ok().and_then(|codex| installed::version(codex).ok());
    report.add(program(codex.as_deref(), version))?;
    let config = match flags.look() {
        Ok(config) => {
            report.add(Check::ok("godex.yaml", config.origin.to_string()))?;
            Some(config)
        }
        Err(error) => {
            report.add(Check::fail("godex.yaml", format!("{error:#}"), "see `godex config check`"))?;
            None
        }
    };
    let runtime = launch::runtime()?;
    for check in runtime.block_on(configured::look(&codex_home()?, version, config.as_ref())) {
        report.add(check)?;
    }
    if let Some(config) = &config {
        for check in keys(config) {
            report.add(check)?;
        }
        runtime.block_on(served(flags, args, codex.as_deref().ok(), &mut report))?;
    }
    report.finish()
}

/// The installed Codex.
pub(crate) fn program(codex: Result<&Path, &anyhow::Error>, version: Option<Version>) -> Check {
    let path = match codex {
        Ok(path) => path.display(),
        Err(error) => return Check::fail("codex", error.to_string(), installed::INSTALL),
    };
    match version {
        None => Check::fail("codex", format!("{path} says no version"), installed::INSTALL),
        Some(version) if version < Version::OLDEST => {
            let advice =
                format!("{} is the oldest that is known to work: `npm install -g @openai/codex`", Version::OLDEST);
            Check::warn("codex", format!("{version}, {path}"), advice)
        }
        Some(version) if version > Version::NEWEST => {
            let newest = format!("newer than 0.{}, the newest that is known to work", Version::NEWEST.1);
            Check::warn("codex", format!("{version}, {path}: {newest}"), "look for a newer godex if something is odd")
        }
        Some(version) => Check::ok("codex", format!("{version}, {path}")),
    }
}

/// Whether each provider has its key.
fn keys(config: &Config) -> Vec<Check> {
    let check = |provider: &server::config::ProviderConfig| match &provider.key_from {
        KeyFrom::Missing(variable) => {
            let advice = variable.as_ref().map_or_else(
                || format!("set providers.{}.credentials.api_key in godex.yaml", provider.name),
                |variable| format!("set {variable}"),
            );
            Check::fail("key", format!("{}: no key", provider.name), advice)
        }
        KeyFrom::Variable(variable) => Check::ok("key", format!("{}: from ${variable}", provider.name)),
        KeyFrom::File(place) => Check::ok("key", format!("{}: from {place}", provider.name)),
        KeyFrom::Command(program) => Check::ok("key", format!("{}: printed by {program}", provider.name)),
        KeyFrom::Nowhere => Check::ok("key", format!("{}: none needed", provider.name)),
    };
    config.providers.iter().map(check).collect()
}

/// What needs a godex that answers.
async fn served(flags: &Flags, args: &DoctorArgs, codex: Option<&Path>, report: &mut Report) -> anyhow::Result<()> {
    let config = match flags.load() {
        Ok(config) => config,
        // Keys that are missing were looked at one by one; nothing is served without them.
        Err(error) => return report.add(Check::fail("godex", format!("{error:#}"), "see `godex config check`")),
    };
    let choice = match choice::choose(&config, args.model.as_deref()) {
        Ok(choice) => choice,
        Err(error) => return report.add(Check::fail("model", format!("{error:#}"), "see `godex models`")),
    };
    report.add(model(&choice, args.model.is_some()))?;
    let found = match Gateway::find(&config).await {
        Ok(found) => found,
        Err(error) => return report.add(Check::fail("godex", format!("{error:#}"), "see `godex config check`")),
    };
    let url = gateway::url(&config);
    report.add(match &found.absent {
        None => Check::ok("godex", format!("runs at {url}")),
        Some(absent) => {
            let advice = "start `godex` for `codex --profile godex`; `godex codex` needs none";
            Check::warn("godex", format!("{url}: {absent}"), advice)
        }
    })?;
    let (url, key) = (found.url.clone(), found.key.clone());
    let work = async {
        let mut checks = vec![roundtrip::check(&url, &key, &choice).await];
        if args.run {
            checks.push(match codex {
                Some(codex) => task::check(codex, &url, &key, &choice).await,
                None => Check::fail("codex exec", "Codex is not installed", installed::INSTALL),
            });
        }
        checks
    };
    for check in Box::pin(found.during(work)).await? {
        report.add(check)?;
    }
    Ok(())
}

fn model(choice: &Choice, asked: bool) -> Check {
    let Choice { model, provider, offline } = choice;
    if *offline && !asked {
        let advice = "set a key such as DEEPSEEK_API_KEY, or configure a provider in godex.yaml";
        return Check::warn("model", format!("{model}: only the offline demo model is there"), advice);
    }
    Check::ok("model", format!("{model}, provider {provider}"))
}
