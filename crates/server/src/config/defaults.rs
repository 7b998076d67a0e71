//! Providers that nobody configured: the demo model, and one for each known key in the environment.

use providers::yaml::Reader;
use providers::{Library, Provider, Wire, resolve_named};

use super::provider::{UNSENDABLE, can_be_sent, listed};
use super::{KeyFrom, Problem, ProviderConfig, Secret, Sources, Timeouts, TransportConfig};

/// One provider for every built-in spec whose key is in the environment, in the order of preference.
pub(super) fn from_environment(reader: &Reader<'_>, sources: &Sources<'_>) -> Vec<ProviderConfig> {
    // Several ways to the same provider have one key: the first is the usual one.
    let mut used: Vec<String> = Vec::new();
    let found = |name: &str| {
        let provider = resolve_named(Library::BUILTIN, name, sources.env).ok()?;
        let variable = provider.key_env.clone()?;
        let key = (sources.env)(&variable)?.trim().to_owned();
        // Without an address of its own it needs a configuration.
        provider.base_url.as_ref()?;
        if key.is_empty() || provider.wire == Wire::Demo {
            return None;
        }
        if used.contains(&variable) {
            return None;
        }
        used.push(variable.clone());
        if !can_be_sent(&key) {
            let (file, path) = ("environment".to_owned(), variable);
            reader.report(Problem { file, position: None, path, message: UNSENDABLE.to_owned(), help: None });
        }
        Some(entry(name, provider, Some(Secret::new(key))))
    };
    Library::BUILTIN.names().filter_map(found).collect()
}

/// The demo model as a provider.
pub(super) fn demo(sources: &Sources<'_>) -> Option<ProviderConfig> {
    let provider = resolve_named(Library::BUILTIN, "demo", sources.env).ok()?;
    Some(entry("demo", provider, None))
}

pub(super) fn entry(name: &str, provider: Provider, api_key: Option<Secret>) -> ProviderConfig {
    ProviderConfig {
        name: name.to_owned(),
        key_from: provider.key_env.clone().filter(|_| api_key.is_some()).map(KeyFrom::Variable).unwrap_or_default(),
        api_keys: api_key.into_iter().collect(),
        base_url: provider.base_url.clone().unwrap_or_default(),
        base_urls: Vec::new(),
        health: None,
        timeouts: Timeouts::default(),
        models: listed(&provider),
        headers: Vec::new(),
        transport: TransportConfig::default(),
        provider,
    }
}
