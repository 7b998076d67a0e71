//! The effective configuration as YAML that loads again, made from the tables of keys. Secrets are never in it.

use std::fmt::Write;

use wire::visible::{quoted, visible};

use super::key::Described;
use super::provider_table::{PREFIX, PROVIDER_KEYS};
use super::table::KEYS;
use super::{Alias, Config, ProviderConfig, Proxy, Secret};

impl Config {
    /// Every setting with the value that is in force, secrets as `<redacted>`.
    pub fn print(&self) -> String {
        let mut out = format!("# from: {}\n", visible(&self.origin.to_string()));
        out.push_str(&table(KEYS, "", self));
        for key in &self.unused {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "# no effect in this version: {key}");
        }
        out
    }
}

/// The keys of a table with their values, each below the mappings that it is in.
fn table<C>(keys: &[&dyn Described<C>], prefix: &str, config: &C) -> String {
    let mut out = String::new();
    let mut open: Vec<&str> = Vec::new();
    for key in keys {
        let Some(value) = key.print(config) else { continue };
        let path = key.path().strip_prefix(prefix).unwrap_or(key.path());
        let (parents, name) =
            path.rsplit_once('.').map_or((Vec::new(), path), |(above, name)| (above.split('.').collect(), name));
        let shared = open.iter().zip(&parents).take_while(|(open, parent)| open == parent).count();
        for (depth, parent) in parents.iter().enumerate().skip(shared) {
            let _ = writeln!(out, "{:indent$}{parent}:", "", indent = 2 * depth);
        }
        out.push_str(&entry(2 * parents.len(), name, &value));
        open = parents;
    }
    out
}

/// A key with its value: on the same line, or, where it begins with a line break, on the lines after it.
fn entry(indent: usize, name: &str, value: &str) -> String {
    let Some(block) = value.strip_prefix('\n') else { return format!("{:indent$}{name}: {value}\n", "") };
    let below = indent + 2;
    let mut out = format!("{:indent$}{name}:\n", "");
    for line in block.lines() {
        let _ = writeln!(out, "{:below$}{line}", "");
    }
    out
}

fn block(lines: impl IntoIterator<Item = String>) -> String {
    lines.into_iter().fold(String::new(), |block, line| block + "\n" + &line)
}

pub(super) fn aliases(config: &Config) -> Option<String> {
    let line = |(alias, target): &(String, Alias)| format!("{}: {}", quote_key(alias), alias_text(target));
    (!config.aliases.is_empty()).then(|| block(config.aliases.iter().map(line)))
}

pub(super) fn providers(config: &Config) -> String {
    let provider = |provider: &ProviderConfig| {
        let keys = table(PROVIDER_KEYS, PREFIX, provider);
        entry(0, &quote_key(&provider.name), &format!("\n{keys}"))
    };
    format!("\n{}", config.providers.iter().map(provider).collect::<String>())
}

fn alias_text(alias: &Alias) -> String {
    let names = || alias.targets.iter().map(|target| quote(&target.to_string()));
    match &alias.weights {
        Some(weights) => {
            let target = |(name, weight): (String, &u32)| format!("{{model: {name}, weight: {weight}}}");
            format!("{{targets: [{}]}}", names().zip(weights).map(target).collect::<Vec<_>>().join(", "))
        }
        None if alias.targets.len() == 1 => names().collect(),
        None => format!("[{}]", names().collect::<Vec<_>>().join(", ")),
    }
}

/// A built-in spec by its name, the user's as it says it.
pub(super) fn spec(config: &ProviderConfig) -> String {
    let Some(lines) = config.provider.user_spec() else { return quote(&config.provider.spec_name) };
    // An empty one extends the root, and must not read as none at all.
    let nothing = lines.is_empty().then(|| "extends: openai-compatible".to_owned());
    block(lines.into_iter().chain(nothing))
}

/// The names that are listed, and what the user says of single models.
pub(super) fn models(config: &ProviderConfig) -> String {
    let entries = config.provider.entry_models();
    if entries.is_empty() {
        return list(config.models.iter().map(String::as_str));
    }
    let names = config.models.iter().map(|model| format!("- {}", quote(model)));
    // They come indented by what they are below.
    let entries = entries.into_iter().map(|line| line.strip_prefix("  ").map(str::to_owned).unwrap_or(line));
    block(names.chain(entries))
}

/// What fills the placeholders of the address, as far as the file says it.
pub(super) fn params(config: &ProviderConfig) -> Option<String> {
    let lines = config.provider.params.iter().map(|(name, value)| format!("{name}: {}", quote(value)));
    (!config.provider.params.is_empty()).then(|| block(lines))
}

pub(super) fn prices(config: &ProviderConfig) -> Option<String> {
    let lines = config.provider.entry_prices();
    (!lines.is_empty()).then(|| block(lines))
}

pub(super) fn headers(config: &ProviderConfig) -> Option<String> {
    secrets(&config.headers)
}

pub(super) fn secrets(headers: &[(String, Secret)]) -> Option<String> {
    let lines = headers.iter().map(|(name, value)| format!("{}: {value}", quote(name)));
    (!headers.is_empty()).then(|| block(lines))
}

pub(super) fn proxy(proxy: &Proxy) -> String {
    let user = if proxy.authorization.is_some() { "redacted@" } else { "" };
    quote(&format!("http://{user}{}", proxy.authority))
}

pub(super) fn list<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", texts.map(quote).collect::<Vec<_>>().join(", "))
}

/// A string as the key of something: variables are looked for in values only, so nothing is escaped for them.
pub fn quote_key(text: &str) -> String {
    if text.contains("${") { quoted(text) } else { quote(text) }
}

/// A string as it may be in YAML: bare when nothing in it could mean something else.
pub fn quote(text: &str) -> String {
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let word = matches!(text, "true" | "false" | "null" | "yes" | "no" | "on" | "off");
    if starts_well && text.chars().all(plain) && !word {
        return text.to_owned();
    }
    // A JSON string is a YAML string; `${` would be a variable when read again.
    quoted(&text.replace("${", "$${"))
}
