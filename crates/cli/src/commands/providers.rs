//! `godex providers`, `godex providers show NAME` and `godex providers test`.

mod test;

use providers::{Library, Wire, resolve_named};
use serde_json::json;
use server::config::{Config, KeyFrom, ProviderConfig};
use wire::visible::visible;

use crate::args::{Flags, ProvidersCommand};
use crate::output;

pub(crate) fn run(flags: &Flags, command: Option<&ProvidersCommand>, json: bool) -> anyhow::Result<()> {
    let config = flags.look()?;
    let out = match command {
        Some(ProvidersCommand::Show { name, model }) => show(&config, name, model.as_deref())?,
        Some(ProvidersCommand::Test(args)) => return test::run(&config, args),
        None if json => list_json(&config),
        None => list(&config),
    };
    output::print(&out)
}

/// The spec of a configured provider, or a built-in one.
fn show(config: &Config, name: &str, model: Option<&str>) -> anyhow::Result<String> {
    let of = model.map(|model| format!(", for the model {model}")).unwrap_or_default();
    if let Some(entry) = config.provider(name) {
        let spec = &entry.provider.spec_name;
        let head = format!("# provider {name}, spec {spec}{of}");
        return Ok(format!("{}\n{}", visible(&head), entry.provider.show(model)));
    }
    let configured: Vec<&str> = config.providers.iter().map(|provider| provider.name.as_str()).collect();
    let none = |_: &str| None;
    let provider = resolve_named(Library::BUILTIN, name, &none).map_err(|problems| {
        let help = problems.0.first().and_then(|problem| problem.help.clone()).unwrap_or_default();
        anyhow::anyhow!("there is no provider or spec `{name}`; configured: {}; {help}", configured.join(", "))
    })?;
    let head = format!("# built-in spec {name}{of}, not configured");
    Ok(format!("{}\n{}", visible(&head), provider.show(model)))
}

/// Whether it can be used.
fn status(provider: &ProviderConfig) -> &'static str {
    match provider.key_from {
        _ if provider.provider.wire == Wire::Demo => "offline",
        KeyFrom::Missing(_) => "no key",
        KeyFrom::Nowhere | KeyFrom::File(_) | KeyFrom::Variable(_) | KeyFrom::Command(_) => "ready",
    }
}

fn key(provider: &ProviderConfig) -> String {
    match &provider.key_from {
        KeyFrom::Nowhere => "not needed".to_owned(),
        KeyFrom::File(place) => format!("from {place}"),
        KeyFrom::Variable(name) => format!("from ${name}"),
        KeyFrom::Command(program) => format!("printed by {program}"),
        KeyFrom::Missing(Some(name)) => format!("missing: set {name}"),
        KeyFrom::Missing(None) => "missing: set credentials.api_key".to_owned(),
    }
}

fn list(config: &Config) -> String {
    let head = ["NAME", "SPEC", "STATUS", "KEY", "MODELS", "BASE URL"].map(str::to_owned);
    let row = |provider: &ProviderConfig| {
        let (name, spec) = (provider.name.clone(), provider.provider.spec_name.clone());
        let models = provider.models.len().to_string();
        let row = [name, spec, status(provider).to_owned(), key(provider), models, provider.base_url.clone()];
        row.map(|cell| visible(&cell).into_owned())
    };
    let rows: Vec<[String; 6]> = std::iter::once(head).chain(config.providers.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..6).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}", width = *width)).collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    for reason in &config.left_out {
        out.extend(["\n", &*visible(reason), "\n"]);
    }
    let others = others(config);
    if !others.is_empty() {
        out.push('\n');
        out.push_str(&output::filled("not configured: ", &others));
        out.push_str("(godex providers show NAME prints what is known of one)\n");
    }
    out
}

/// Built-in specs that no configured provider uses.
fn others(config: &Config) -> Vec<&'static str> {
    let used = |name: &str| config.providers.iter().any(|provider| provider.provider.spec_name == name);
    Library::BUILTIN.names().filter(|name| !used(name)).collect()
}

fn list_json(config: &Config) -> String {
    let entry = |provider: &ProviderConfig| {
        let command = match &provider.key_from {
            KeyFrom::Command(program) => Some(program),
            _ => None,
        };
        let (place, variable) = match &provider.key_from {
            KeyFrom::Nowhere | KeyFrom::Command(_) => (None, None),
            KeyFrom::File(place) => (Some(place), None),
            KeyFrom::Variable(name) => (None, Some(name)),
            KeyFrom::Missing(name) => (None, name.as_ref()),
        };
        json!({
            "name": provider.name,
            "spec": provider.provider.spec_name,
            "status": status(provider),
            "base_url": (!provider.base_url.is_empty()).then_some(&provider.base_url),
            "auth": provider.provider.auth.name(),
            "key": {"present": !provider.api_keys.is_empty(), "file": place, "variable": variable, "command": command},
            "models": provider.models,
        })
    };
    let providers: Vec<_> = config.providers.iter().map(entry).collect();
    format!("{:#}\n", json!({"providers": providers, "not_configured": others(config)}))
}
