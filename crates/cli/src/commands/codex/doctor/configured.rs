//! What Codex's own files say about us. They may say nothing: `godex codex` needs none of it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use server::config::Config;
use server::peer::Peer;
use toml_edit::{Document, Item, TableLike};

use super::super::installed::Version;
use super::super::setup::{edit, profile};
use super::super::{KEY_VARIABLE, PROVIDER, catalog, gateway, own_key};
use super::Check;
use crate::args::variable;
use crate::files;

/// Ids that Codex keeps for itself.
const RESERVED: [&str; 5] = ["openai", "ollama", "lmstudio", "amazon-bedrock", "amazon-bedrock-runtime"];
/// Names by which Codex takes a provider for another one.
const MISTAKEN: [&str; 2] = ["openai", "azure"];
/// What Codex insists on in each entry of a catalogue.
const REQUIRED: [&str; 11] = [
    "slug",
    "display_name",
    "supported_reasoning_levels",
    "shell_type",
    "visibility",
    "supported_in_api",
    "priority",
    "base_instructions",
    "support_verbosity",
    "truncation_policy",
    "experimental_supported_tools",
];
const SET_UP: &str = "run `godex codex setup`";
const LOOK: Duration = Duration::from_secs(5);

/// Everything in Codex's folder that has to do with us.
pub(super) async fn look(home: &Path, version: Option<Version>, config: Option<&Config>) -> Vec<Check> {
    let path = home.join("config.toml");
    let text = match files::read(&path) {
        Ok(text) => text.unwrap_or_default(),
        Err(error) => return vec![Check::fail("config.toml", format!("{error:#}"), "make it readable")],
    };
    let document = match edit::parse(&text) {
        Ok(document) => document,
        Err(error) => {
            let message = format!("{}: {error:#}", path.display());
            return vec![Check::fail("config.toml", message, "mend it: Codex does not start with it")];
        }
    };
    let mut checks = reserved(&document);
    checks.extend(named_catalogue(&document));
    let Some((id, provider)) = provider(&document, config) else {
        let advice = "`godex codex` needs nothing there; for `codex` by itself run `godex codex setup`";
        checks.push(Check::warn("provider", format!("{} has none for godex", path.display()), advice));
        return checks;
    };
    checks.extend(about(&id, provider));
    if let Some(url) = provider.get("base_url").and_then(Item::as_str) {
        checks.push(reachable(url, config).await);
    }
    checks.extend(profiles(home, &text, &document, version, config).await);
    checks
}

fn reserved(document: &Document<&str>) -> Vec<Check> {
    let providers = document.get("model_providers").and_then(Item::as_table_like);
    let defined = |id: &&&str| providers.is_some_and(|providers| providers.contains_key(id));
    let check = |id: &&str| {
        Check::fail("provider", format!("model_providers.{id} is reserved: Codex refuses it"), "give it another name")
    };
    RESERVED.iter().filter(defined).map(check).collect()
}

/// Whether the catalogue is there that Codex reads without a profile: it does not start without it.
fn named_catalogue(document: &Document<&str>) -> Option<Check> {
    let named = document.get("model_catalog_json")?.as_str()?;
    if !Path::new(named).is_absolute() {
        return Some(Check::warn("catalogue", format!("{named} in config.toml is relative"), "write all of its path"));
    }
    let advice = format!("take `model_catalog_json` out of config.toml, or {SET_UP}");
    let message = format!("config.toml names {named}, which is no file: Codex does not start");
    (!Path::new(named).is_file()).then(|| Check::fail("catalogue", message, advice))
}

/// The provider that is us: by its name, or by its address.
fn provider<'d>(document: &'d Document<&str>, config: Option<&Config>) -> Option<(String, &'d dyn TableLike)> {
    let providers = document.get("model_providers")?.as_table_like()?;
    let table = |id: &str| providers.get(id)?.as_table_like();
    if let Some(found) = table(PROVIDER) {
        return Some((PROVIDER.to_owned(), found));
    }
    let url = config.map(gateway::url)?;
    let points_here = |(_, item): &(&str, &Item)| {
        item.get("base_url")
            .and_then(Item::as_str)
            .is_some_and(|base_url| base_url.trim_end_matches('/').strip_suffix("/v1") == Some(&*url))
    };
    let (id, _) = providers.iter().find(points_here)?;
    Some((id.to_owned(), table(id)?))
}

/// What a provider says of itself.
fn about(id: &str, provider: &dyn TableLike) -> Vec<Check> {
    let text = |key: &str| provider.get(key).and_then(Item::as_str);
    let mut checks = Vec::new();
    if text("base_url").is_none() {
        checks.push(Check::fail("provider", format!("model_providers.{id} has no base_url"), SET_UP));
    }
    if let Some(wire) = text("wire_api").filter(|wire| *wire != "responses") {
        let message = format!("model_providers.{id}: wire_api is `{wire}`");
        checks.push(Check::fail("provider", message, "set wire_api = \"responses\", the only one that Codex has"));
    }
    if let Some(name) = text("name").filter(|name| MISTAKEN.contains(&name.to_lowercase().as_str())) {
        let message = format!("model_providers.{id}: by the name `{name}` Codex takes it for another server");
        checks.push(Check::warn("provider", message, "set name = \"godex\""));
    }
    if let Some(key) = text("env_key").filter(|key| variable(key).is_none_or(|value| value.is_empty())) {
        let message = format!("model_providers.{id}: env_key names {key}, which is not set");
        let advice =
            format!("set {key} to your godex key, or to anything where godex has no keys; or take env_key out");
        checks.push(Check::fail("provider", message, advice));
    }
    if checks.is_empty() {
        checks.push(Check::ok("provider", format!("model_providers.{id}")));
    }
    checks
}

/// Whether a godex answers where Codex will ask.
async fn reachable(base_url: &str, config: Option<&Config>) -> Check {
    let trimmed = base_url.trim_end_matches('/');
    let Some(root) = trimmed.strip_suffix("/v1") else {
        let advice = format!("set it to {trimmed}/v1, or whatever leads to godex's /v1");
        return Check::warn("base_url", format!("{base_url} does not end in /v1"), advice);
    };
    let health = async {
        let peer = Peer::new(root, own_key(), &[], &variable)?;
        let answer = peer.get("/health", LOOK).await?;
        Ok::<_, String>(serde_json::from_slice::<Value>(&answer.body).unwrap_or_default())
    };
    match health.await {
        Ok(health) if health["name"] == "godex" => match health["version"].as_str() {
            Some(version) => Check::ok("base_url", format!("{base_url}: godex {version} answers")),
            // Strangers are not told it.
            None => {
                let advice = format!("set {KEY_VARIABLE} to one that `godex keys create NAME` has made there");
                Check::warn("base_url", format!("{base_url}: godex answers and wants an API key"), advice)
            }
        },
        Ok(_) => Check::fail("base_url", format!("{base_url}: what answers is not godex"), SET_UP),
        Err(reason) => {
            let here = config.is_some_and(|config| gateway::url(config) == root);
            let advice = if here {
                "start `godex` (or use `godex codex`)".to_owned()
            } else {
                format!("start a godex there, or {SET_UP}")
            };
            Check::warn("base_url", format!("{base_url}: {reason}"), advice)
        }
    }
}

/// The profiles that are ours, and what stands in their way.
async fn profiles(
    home: &Path,
    text: &str,
    document: &Document<&str>,
    version: Option<Version>,
    config: Option<&Config>,
) -> Vec<Check> {
    let mut checks = Vec::new();
    let in_files = version.is_none_or(|version| version >= Version::PROFILE_FILES);
    if in_files && let Some(old) = document.get("profile").and_then(Item::as_str) {
        let message = format!("profile = \"{old}\" in config.toml: Codex does not start with it since 0.134");
        checks.push(Check::fail("profile", message, "take that line out, and use `codex --profile`"));
    }
    let files = profile::all(home);
    let tables = edit::own_tables(text, "profiles").unwrap_or_default();
    match (in_files, files.is_empty(), tables.is_empty()) {
        (true, true, false) | (false, false, true) => {
            checks.push(Check::fail("profile", "it was written for another version of Codex", SET_UP));
        }
        (_, true, true) => {
            checks.push(Check::warn("profile", "there is none that `godex codex setup` wrote", SET_UP));
        }
        _ => {}
    }
    for name in tables.iter().filter(|_| !in_files) {
        checks.push(Check::ok("profile", format!("codex --profile {name}")));
    }
    for path in files {
        checks.extend(profile_file(&path, document, in_files, config).await);
    }
    checks
}

async fn profile_file(path: &Path, base: &Document<&str>, in_files: bool, config: Option<&Config>) -> Vec<Check> {
    let shown = path.display();
    let name = path.file_name().map(|name| name.to_string_lossy().replace(".config.toml", "")).unwrap_or_default();
    let text = files::read(path).ok().flatten().unwrap_or_default();
    let own = match edit::parse(&text) {
        Ok(own) => own,
        Err(error) => {
            return vec![Check::fail("profile", format!("{shown}: {error:#}"), "mend it, or run `godex codex setup`")];
        }
    };
    if in_files && base.get("profiles").and_then(|profiles| profiles.get(&name)).is_some() {
        let message = format!("[profiles.{name}] in config.toml: Codex refuses --profile {name} because of it");
        return vec![Check::fail("profile", message, "take that table out")];
    }
    let value = |key: &str| own.get(key).or_else(|| base.get(key)).cloned();
    let text = |key: &str| value(key).and_then(|item| item.as_str().map(str::to_owned));
    let model = text("model").unwrap_or_default();
    let mut checks = vec![Check::ok("profile", format!("codex --profile {name}: {model}"))];
    let catalog = text("model_catalog_json").map(PathBuf::from);
    let window = value("model_context_window").is_some();
    checks.push(match &catalog {
        None if window => Check::ok("catalogue", "none; model_context_window is set"),
        None => Check::warn("catalogue", format!("none: Codex takes the window of {model} for 272000 tokens"), SET_UP),
        Some(catalog) => catalogue(catalog, &model, window, config).await,
    });
    checks
}

/// Whether Codex can read the catalogue, finds the model in it, and whether that is what we would write now.
async fn catalogue(path: &Path, model: &str, window: bool, config: Option<&Config>) -> Check {
    let shown = path.display();
    if !path.is_absolute() {
        return Check::warn("catalogue", format!("{shown} is relative"), SET_UP);
    }
    let bytes = match files::read(path) {
        Ok(Some(text)) => text.into_bytes(),
        Ok(None) => return Check::fail("catalogue", format!("{shown} is not there"), SET_UP),
        Err(error) => return Check::fail("catalogue", format!("{shown}: {error}"), SET_UP),
    };
    let models = catalog::models(&bytes);
    if models.is_empty() {
        return Check::fail("catalogue", format!("{shown} holds no models"), SET_UP);
    }
    let lacks = |entry: &Value| REQUIRED.iter().find(|key| entry.get(**key).is_none()).copied();
    if let Some(key) = models.iter().find_map(lacks) {
        return Check::fail("catalogue", format!("{shown}: an entry lacks `{key}`, so that Codex drops all"), SET_UP);
    }
    if !window && !models.iter().any(|entry| entry["slug"] == model && entry["context_window"].is_u64()) {
        let message = format!("{shown} does not have {model}: Codex takes its window for 272000 tokens");
        return Check::warn("catalogue", message, SET_UP);
    }
    let now = match config {
        Some(config) => catalog::of(config).await.ok(),
        None => None,
    };
    match now {
        Some(now) if catalog::models(&now) != models => {
            Check::warn("catalogue", format!("{shown} is not what godex would write now"), SET_UP)
        }
        _ => Check::ok("catalogue", format!("{shown} ({})", catalog::counted(models.len()))),
    }
}
