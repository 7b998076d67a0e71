//! `godex probe`: what a provider really does, beside what its spec declares.

mod target;

use std::fmt::Write;
use std::io::{BufRead, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use probe::{Abort, Check, Estimate, Limits, Origin, Probed, Report, Settings, Was};
use providers::Wire;
use server::config::{ProviderConfig, print_duration};
use server::probe::Client;
use tokio::runtime::Runtime;
use wire::visible::{visible, visible_lines};

use crate::args::{Flags, ProbeArgs};
use crate::output;
use crate::progress::Progress;
use target::Target;

/// One request may not take all the time.
const EACH: Duration = Duration::from_mins(2);

/// Exit status 1: the probe ended early, or `--diff` has found something; without that, differences are no failure.
pub(crate) fn run(flags: &Flags, args: &ProbeArgs) -> anyhow::Result<ExitCode> {
    if let Some(path) = &args.write {
        writable(path)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let mut target = runtime.block_on(Target::find(flags, args))?;
    let mut probed = asked(&runtime, args, &target, &args.only)?;
    // A server of another API refuses all that is asked as chat.
    if let (Err(abort), Some(other)) = (&probed, target.by_messages()?)
        && may_be_another_api(abort)
        && run_probe(&runtime, args, &other, &settings(args, &other, &[Check::Plain]), 1)?.is_ok()
    {
        output::tell("note: it is no chat server, but it answers as a Messages API: it is asked as one\n");
        probed = asked(&runtime, args, &other, &args.only)?;
        target = other;
    }
    let Target { config, model, key_env, .. } = &target;
    let probed = probed.with_context(|| ended_early(&target))?;
    let report = Report::new(target.name(), model, &config.provider.spec_name, probed);
    let diff = report.diff(|path| {
        let (value, origin) = config.provider.setting(path, model)?;
        Some(Was { value, origin })
    });
    let text = match (args.diff, args.json) {
        (true, true) => diff.json(),
        (true, false) => diff.yaml(),
        (false, true) => report.json(),
        (false, false) => report.table(),
    };
    output::print(&text)?;
    if let Some(path) = &args.write {
        let origin = Origin::of(&config.provider, &config.base_url, key_env.clone(), model);
        let text = probe::spec(&origin, &report.findings);
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        output::tell(&format!("wrote {}\n", visible(&path.display().to_string())));
    }
    if let Some(abort) = &report.ended {
        output::tell(&format!("error: the probe ended early: {}\n", visible(&abort.to_string())));
        return Ok(ExitCode::FAILURE);
    }
    Ok(if args.diff && diff.differs() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Asks the target, once its costs were agreed to.
fn asked(
    runtime: &Runtime,
    args: &ProbeArgs,
    target: &Target,
    only: &[Check],
) -> anyhow::Result<Result<Probed, Abort>> {
    let settings = settings(args, target, only);
    let estimate = probe::estimate(&settings);
    if !agreed(args, &target.config, &target.model, &estimate)? {
        bail!("nothing was sent");
    }
    run_probe(runtime, args, target, &settings, estimate.requests)
}

fn settings(args: &ProbeArgs, Target { config, model, .. }: &Target, only: &[Check]) -> Settings {
    let spec = config.provider.for_model(model);
    Settings {
        model: model.clone(),
        wire: spec.wire,
        dialect: spec.dialect,
        context_window: spec.context_window,
        discovery: config.provider.discovery.clone(),
        allow_overflow: args.allow_overflow,
        image_url: args.image_url.clone(),
        only: only.to_vec(),
        limits: Limits { requests: args.max_requests as usize, tokens: args.max_tokens },
    }
}

fn run_probe(
    runtime: &Runtime,
    args: &ProbeArgs,
    target: &Target,
    settings: &Settings,
    requests: usize,
) -> anyhow::Result<Result<Probed, Abort>> {
    let total = args.timeout;
    let (progress, mut sent) = (Progress::start("probing"), 0);
    let result = runtime.block_on(async {
        let mut client = Client::new(&target.config, total, EACH.min(total), |request| {
            sent += 1;
            progress.step(sent, requests, request.about);
        })?;
        anyhow::Ok(probe::run(&mut client, settings).await)
    });
    drop(progress);
    result
}

/// What is said before the reason. Of what only a chat is probed in full, a turn may tell more.
fn ended_early(target: &Target) -> String {
    let name = target.name();
    let is_chat = matches!(target.config.provider.for_model(&target.model).wire, Wire::Chat | Wire::Demo);
    if is_chat || name.contains("://") {
        return format!("probe of {name} ended early");
    }
    format!("probe of {name} ended early (`godex providers test {name}` asks it for a whole turn)")
}

/// Whether a server that only knows another API could have said this to a chat request.
fn may_be_another_api(abort: &Abort) -> bool {
    matches!(abort, Abort::Refused(..) | Abort::Unreadable(_) | Abort::Model(_) | Abort::Auth(_))
}

/// Better said before the tokens are spent than after.
fn writable(path: &Path) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let exists = folder.is_none_or(Path::is_dir);
    ensure!(exists && !path.is_dir(), "cannot write {}: the folder does not exist, or it is one", path.display());
    Ok(())
}

/// Says what it will cost, and asks whether that is all right where there is somebody to ask.
fn agreed(args: &ProbeArgs, config: &ProviderConfig, model: &str, estimate: &Estimate) -> anyhow::Result<bool> {
    let mut out = String::new();
    let Estimate { requests, costs, input_tokens, output_tokens, thoughts, overflow_tokens } = estimate;
    let place = if config.base_url.is_empty() { "inside this binary" } else { &config.base_url };
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "probing {} ({place}), model {}, against the spec `{}`",
        config.name,
        visible(model),
        config.provider.spec_name
    );
    let _ = writeln!(
        out,
        "about {requests} requests, {input_tokens} tokens in and at most {output_tokens} out{}; never more than {} requests, \
         about {} tokens, {}",
        if *thoughts { "" } else { ", more if the model reasons" },
        args.max_requests,
        args.max_tokens,
        print_duration(args.timeout)
    );
    let _ = writeln!(out, "requests by check: {}", probe::costs(costs));
    if *overflow_tokens > 0 {
        let _ = writeln!(out, "and one input of about {overflow_tokens} tokens, which should be refused");
    }
    output::tell(&visible_lines(&out));
    if args.yes || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(true);
    }
    output::tell("Go on? [y/N] ");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}
