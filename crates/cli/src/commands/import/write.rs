//! The imported configuration as commented YAML.

use std::fmt::Write;

use server::config::{quote, quote_key};
use wire::visible::visible;

use super::deployment::{Deployment, Provider};
use super::litellm::{Group, Plan};
use super::notes::Note;
use super::settings::{MasterKey, Settings};

/// Writing to a String cannot fail.
pub(super) fn yaml(plan: &Plan, notes: &[Note], file: &str) -> String {
    let mut out = format!("# The configuration of godex, out of {} by `godex import litellm`.\n", visible(file));
    if !notes.is_empty() {
        out.push_str("# What has no equal, by the lines of that file:\n");
    }
    for note in notes {
        let _ = writeln!(out, "#   {}", visible(&note.to_string()));
    }
    out.push_str("\n# LiteLLM listens on all addresses at port 4000; godex on 127.0.0.1:5678, unless `host` and `port` say otherwise.\n");
    server(&mut out, &plan.settings);
    let first = plan.default_provider.as_ref().or_else(|| plan.providers.first().map(|(name, _)| name));
    if let Some(name) = first {
        let _ = writeln!(out, "default_provider: {}\n", quote(name));
    }
    if plan.providers.is_empty() {
        out.push_str("providers: {}\n\n");
    } else {
        out.push_str("providers:\n");
        for (name, provider) in &plan.providers {
            let own: Vec<&Deployment> =
                plan.deployments.iter().filter(|(of, _)| of == name).map(|(_, deployment)| deployment).collect();
            section(&mut out, name, provider, &own);
        }
        out.push('\n');
    }
    aliases(&mut out, &plan.groups);
    rest(&mut out, &plan.settings);
    while out.ends_with("\n\n") {
        out.pop();
    }
    out
}

fn server(out: &mut String, settings: &Settings) {
    match settings.max_body_bytes {
        Some(bytes) => {
            let _ = writeln!(out, "server:\n  max_body_bytes: {}MiB\n", bytes >> 20);
        }
        None => out.push_str("server: {}\n\n"),
    }
}

fn section(out: &mut String, name: &str, provider: &Provider, deployments: &[&Deployment]) {
    let spec = quote(provider.spec);
    let over: Vec<String> = provider.over.iter().map(|(name, word)| format!("{name}: {word}")).collect();
    let spec = if over.is_empty() { spec } else { format!("{{extends: {spec}, {}}}", over.join(", ")) };
    let _ = writeln!(out, "  {}:\n    spec: {spec}", quote_key(name));
    if provider.base_url.is_some() || provider.path.is_some() || !provider.params.is_empty() {
        out.push_str("    endpoint:\n");
    }
    if let Some((url, end)) = &provider.base_url {
        let _ = writeln!(out, "      base_url: {}", url.yaml(end));
    }
    if provider.plain_http {
        out.push_str("      allow_plain_http: true\n");
    }
    if let Some(path) = provider.path {
        let _ = writeln!(out, "      path: {}", quote(path));
    }
    for (key, values) in [("params", &provider.params), ("query", &provider.query)] {
        let members: Vec<String> =
            values.iter().map(|(name, value)| format!("{}: {}", quote_key(name), value.yaml(""))).collect();
        if !members.is_empty() {
            let _ = writeln!(out, "      {key}: {{{}}}", members.join(", "));
        }
    }
    if let Some(key) = &provider.key {
        let _ = writeln!(out, "    credentials:\n      api_key: {}", key.yaml(""));
    }
    if !provider.headers.is_empty() {
        out.push_str("    headers:\n");
        for (name, value) in &provider.headers {
            let _ = writeln!(out, "      {}: {}", quote_key(name), value.yaml(""));
        }
    }
    let times: Vec<String> = provider.times.members().iter().map(|(name, time)| format!("{name}: {time}")).collect();
    if !times.is_empty() {
        let _ = writeln!(out, "    timeouts: {{{}}}", times.join(", "));
    }
    models(out, deployments);
}

/// What is listed, and what is known of single models.
fn models(out: &mut String, deployments: &[&Deployment]) {
    let mut names: Vec<&str> = Vec::new();
    for deployment in deployments.iter().filter(|deployment| !deployment.model.contains('*')) {
        if !names.contains(&deployment.model.as_str()) {
            names.push(&deployment.model);
        }
    }
    if names.is_empty() {
        return;
    }
    out.push_str("    models:\n");
    for name in &names {
        let _ = writeln!(out, "      - {}", quote(name));
    }
    let of =
        |name: &str| deployments.iter().filter(move |deployment| deployment.model == name).copied().collect::<Vec<_>>();
    for name in &names {
        let own = of(name);
        let known = [
            ("context_window", own.iter().find_map(|deployment| deployment.context_window)),
            ("max_output", own.iter().find_map(|deployment| deployment.max_output)),
        ];
        let known: String = known.iter().filter_map(|(key, tokens)| Some(format!(", {key}: {}", (*tokens)?))).collect();
        if !known.is_empty() {
            let _ = writeln!(out, "      - {{match: {}{known}}}", quote(name));
        }
    }
    let priced: Vec<_> =
        names.iter().filter_map(|name| Some((name, of(name).into_iter().find_map(|d| d.price.as_ref())?))).collect();
    if !priced.is_empty() {
        out.push_str("    prices:\n");
    }
    for (name, (input, output, cached)) in priced {
        let cached = cached.as_ref().map(|cached| format!(", cached_input: {cached}")).unwrap_or_default();
        let _ = writeln!(out, "      {}: {{input: {input}{cached}, output: {output}}}", quote_key(name));
    }
}

fn aliases(out: &mut String, groups: &[Group]) {
    // Those that mean what they say need no word.
    let telling = |group: &&Group| !matches!(group.targets.as_slice(), [(target, _)] if *target == group.name);
    let groups: Vec<&Group> = groups.iter().filter(telling).collect();
    if groups.is_empty() {
        return;
    }
    out.push_str("models:\n  aliases:\n");
    for Group { name, targets } in groups {
        let value = match targets.as_slice() {
            [(target, _)] => quote(target),
            [(_, Some(_)), ..] => {
                let target = |(target, weight): &(String, Option<u64>)| {
                    format!("{{model: {}, weight: {}}}", quote(target), weight.unwrap_or_default())
                };
                format!("{{targets: [{}]}}", targets.iter().map(target).collect::<Vec<_>>().join(", "))
            }
            _ => format!("[{}]", targets.iter().map(|(target, _)| quote(target)).collect::<Vec<_>>().join(", ")),
        };
        let _ = writeln!(out, "    {}: {value}", quote_key(name));
    }
    out.push('\n');
}

fn rest(out: &mut String, settings: &Settings) {
    let resilience = [("retries", settings.retries), ("breaker_failures", settings.breaker_failures)];
    let resilience: Vec<String> =
        resilience.iter().filter_map(|(name, value)| Some(format!("  {name}: {}\n", (*value)?))).collect();
    if !resilience.is_empty() {
        let _ = writeln!(out, "resilience:\n{}", resilience.concat());
    }
    if let Some(turns) = settings.turns {
        let _ = writeln!(out, "limits:\n  turns: {turns}\n");
    }
    match &settings.master_key {
        Some(MasterKey::Variable(name)) => {
            let _ = writeln!(out, "keys:\n  - {{name: master, key: \"${{{name}}}\"}}\n");
        }
        Some(MasterKey::Hash(hash)) => {
            let _ = writeln!(out, "keys:\n  - {{name: master, hash: \"{hash}\"}}\n");
        }
        None => {}
    }
    if settings.debug || settings.json_logs {
        out.push_str("logging:\n");
        if settings.debug {
            out.push_str("  level: debug\n");
        }
        if settings.json_logs {
            out.push_str("  format: json\n");
        }
    }
}
