//! `godex probe`: what a provider really does, beside what its spec declares.

mod progress;
mod target;

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use probe::{Estimate, Limits, Origin, Report, Settings};
use server::config::ProviderConfig;
use server::probe::Client;

use crate::args::{Flags, ProbeArgs};
use progress::Progress;
use target::Target;

/// One request may not take all the time.
const EACH: Duration = Duration::from_mins(2);

pub(crate) fn run(flags: &Flags, args: &ProbeArgs) -> anyhow::Result<()> {
    if let Some(path) = &args.write {
        writable(path)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let target = runtime.block_on(Target::find(flags, args))?;
    let Target { config, model, key_env } = &target;
    let settings = Settings {
        model: model.clone(),
        dialect: config.provider.for_model(model).dialect,
        allow_overflow: args.allow_overflow,
        limits: Limits { requests: args.max_requests as usize, tokens: args.max_tokens },
    };
    let estimate = probe::estimate(&settings);
    if !agreed(args, config, model, estimate)? {
        bail!("nothing was sent");
    }
    let total = Duration::from_secs(args.timeout.into());
    let mut progress = Progress::new(estimate.requests);
    let result = runtime.block_on(async {
        let mut client = Client::new(config, total, EACH.min(total), |request| progress.step(request.about))?;
        anyhow::Ok(probe::run(&mut client, &settings).await)
    });
    progress.finish();
    let (findings, spent) = result?.with_context(|| format!("probe of {} ended early", target.name()))?;
    let spec = config.provider.spec_name.clone();
    let report = Report { target: target.name().to_owned(), model: model.clone(), spec, findings, spent };
    let text = if args.json { report.json() } else { report.table() };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    if let Some(path) = &args.write {
        let origin = Origin::of(&config.provider, &config.base_url, key_env.clone(), model);
        let text = probe::spec(&origin, &report.findings);
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        // With stderr gone there is nobody left to tell.
        let _ = writeln!(std::io::stderr().lock(), "wrote {}", path.display());
    }
    Ok(())
}

/// Better said before the tokens are spent than after.
fn writable(path: &Path) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let exists = folder.is_none_or(Path::is_dir);
    ensure!(exists && !path.is_dir(), "cannot write {}: the folder does not exist, or it is one", path.display());
    Ok(())
}

/// Says what it will cost, and asks whether that is all right where there is somebody to ask.
fn agreed(args: &ProbeArgs, config: &ProviderConfig, model: &str, estimate: Estimate) -> anyhow::Result<bool> {
    let mut err = std::io::stderr().lock();
    let Estimate { requests, input_tokens, output_tokens, thoughts, overflow_tokens } = estimate;
    let place = if config.base_url.is_empty() { "inside this binary" } else { &config.base_url };
    writeln!(
        err,
        "probing {} ({place}), model {model}, against the spec `{}`",
        config.name, config.provider.spec_name
    )?;
    writeln!(
        err,
        "about {requests} requests, {input_tokens} tokens in and at most {output_tokens} out{}; never more than {} requests, \
         about {} tokens, {} s",
        if thoughts { "" } else { ", more if the model reasons" },
        args.max_requests,
        args.max_tokens,
        args.timeout
    )?;
    if overflow_tokens > 0 {
        writeln!(err, "and one input of about {overflow_tokens} tokens, which should be refused")?;
    }
    if args.yes || !std::io::stdin().is_terminal() || !err.is_terminal() {
        return Ok(true);
    }
    write!(err, "Go on? [y/N] ")?;
    err.flush()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}
