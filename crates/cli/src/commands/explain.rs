//! `godex explain`: what a request became on its way to the provider, and why; and what one would become, for every
//! provider side by side, without being sent.

mod side_by_side;
pub(crate) mod turn;
mod words;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args as ClapArgs;
use serde_json::{Value, json};
use server::admin::AdminClient;
use server::config::{Config, keyless};

use crate::admin::{self, Look, ask, block_on, pretty, segment};
use crate::args::{Flags, some_id, variable};
use crate::output;
use crate::screen::Screen;

/// No request is longer.
const LARGEST: u64 = 64 << 20;

/// Of what is UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[derive(Debug, ClapArgs)]
pub(crate) struct ExplainArgs {
    /// A response, a request, or the number of a trace.
    #[arg(required_unless_present = "dry_run", conflicts_with = "dry_run", value_parser = some_id)]
    id: Option<String>,
    /// Plan the request in this file (`-`: stdin) without sending it.
    #[arg(long, value_name = "FILE")]
    dry_run: Option<PathBuf>,
    /// For this model; with --dry-run there may be several [default: the one that was asked; every provider].
    #[arg(long, short, value_name = "MODEL")]
    model: Vec<String>,
    /// For this built-in spec, configured or not, and without a key; there may be several.
    #[arg(long, value_name = "SPEC", requires = "dry_run")]
    provider: Vec<String>,
    /// Whose response it is [default: whoever has it].
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(flags: &Flags, args: &ExplainArgs) -> anyhow::Result<()> {
    match (&args.id, &args.dry_run) {
        (_, Some(file)) => dry_run(flags, args, file),
        (Some(id), None) => made(flags, args, id),
        (None, None) => bail!("name a response, or a request with --dry-run FILE"),
    }
}

/// One that was made.
fn made(flags: &Flags, args: &ExplainArgs, id: &str) -> anyhow::Result<()> {
    let model = match args.model.as_slice() {
        [] => None,
        [model] => Some(model.as_str()),
        _ => bail!("a request that was made is explained for one model at a time"),
    };
    let query = [("tenant", args.tenant.as_deref()), ("model", model)];
    let query: Vec<String> =
        query.iter().filter_map(|(name, value)| Some(format!("{name}={}", segment((*value)?)))).collect();
    let path = format!("/admin/traces/{}/explain?{}", segment(id), query.join("&"));
    let explained = admin::look(flags, Look::Plans, async |client: &AdminClient| ask(client, "GET", &path, None).await);
    let explained = explained?;
    let screen = Screen::of_stdout();
    output::print(&if args.json { pretty(&explained) } else { turn::shown(&explained, id, screen) })
}

/// One that nobody has sent.
fn dry_run(flags: &Flags, args: &ExplainArgs, file: &Path) -> anyhow::Result<()> {
    let bytes = read(file)?;
    let request: Value = server::explain::read(&bytes).context("the request is not JSON")?;
    if !request.is_object() {
        bail!("the request is not a JSON object");
    }
    let planned = if refers(&request) && args.provider.is_empty() {
        let body = json!({"request": request, "models": args.model, "tenant": args.tenant});
        let asked = async |client: &AdminClient| ask(client, "POST", "/admin/explain", Some(&body)).await;
        admin::look(flags, Look::Plans, asked)?
    } else {
        let mut config = flags.look()?;
        let models =
            with_specs(&mut config, &args.provider, &args.model, request["model"].as_str().unwrap_or_default())?;
        let planned = block_on(async { Ok(server::explain::dry_run(config, bytes, &models).await) })?;
        planned.map_err(anyhow::Error::msg)?
    };
    if args.json {
        return output::print(&pretty(&planned));
    }
    output::print(&side_by_side::shown(&request, &planned, Screen::of_stdout()))
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        std::io::stdin().lock().take(LARGEST + 1).read_to_end(&mut bytes).context("cannot read stdin")?;
    } else {
        let opened = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
        opened.take(LARGEST + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {}", file.display()))?;
    }
    if bytes.len() as u64 > LARGEST {
        bail!("the request is larger than {} MiB", LARGEST >> 20);
    }
    // Editors put it there; it is no part of the JSON.
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    Ok(bytes)
}

/// Whether a request means something that only a store has.
fn refers(request: &Value) -> bool {
    let named = |name: &str| request.get(name).is_some_and(|value| !value.is_null());
    let items = request["input"].as_array().into_iter().flatten();
    let mut referring = items.filter(|item| {
        item["type"] == "item_reference" || item.get("encrypted_content").is_some_and(|sealed| !sealed.is_null())
    });
    named("previous_response_id") || named("conversation") || referring.next().is_some()
}

/// The models to plan for, where specs are named, too: each is a provider of its own then.
fn with_specs(config: &mut Config, specs: &[String], models: &[String], asked: &str) -> anyhow::Result<Vec<String>> {
    let mut all = models.to_vec();
    for spec in specs {
        if config.provider(spec).is_none() {
            let provider = keyless(spec, &variable).map_err(anyhow::Error::msg)?;
            config.providers.push(provider);
        }
        let is_of_spec = |model: &String| model.strip_prefix(spec.as_str()).is_some_and(|rest| rest.starts_with('/'));
        match model_of(config, spec, asked) {
            _ if models.iter().any(is_of_spec) => {}
            Some(model) => all.push(format!("{spec}/{model}")),
            None => bail!("neither the request nor the spec `{spec}` names a model: add --model {spec}/MODEL"),
        }
    }
    Ok(all)
}

/// The model that the request names, unless that is somebody else's; else the spec's own.
fn model_of(config: &Config, spec: &str, asked: &str) -> Option<String> {
    let provider = config.provider(spec)?;
    let own = || provider.provider.default_model.clone().or_else(|| provider.models.first().cloned());
    let is_alias = config.aliases.iter().any(|(name, _)| name == asked);
    match asked.split_once('/') {
        Some((prefix, model)) if prefix == spec => Some(model.to_owned()),
        Some((prefix, model)) if is_provider(config, prefix) => own().or_else(|| Some(model.to_owned())),
        _ if asked.is_empty() || is_alias => own(),
        _ => Some(asked.to_owned()),
    }
}

fn is_provider(config: &Config, name: &str) -> bool {
    config.provider(name).is_some() || keyless(name, &variable).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_a_store_has_is_seen() {
        for (request, expected) in [
            (json!({"input": "Hi"}), false),
            (json!({"input": [{"role": "user", "content": "Hi"}], "previous_response_id": null}), false),
            (json!({"input": "Hi", "previous_response_id": "resp_1"}), true),
            (json!({"input": "Hi", "conversation": "conv_1"}), true),
            (json!({"input": [{"type": "item_reference", "id": "msg_1"}]}), true),
            (json!({"input": [{"type": "reasoning", "encrypted_content": "gx1.a"}]}), true),
            (json!({"input": [{"type": "reasoning", "encrypted_content": null}]}), false),
        ] {
            assert_eq!(refers(&request), expected, "{request}");
        }
    }
}
