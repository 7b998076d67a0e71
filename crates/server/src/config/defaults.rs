//! Providers that nobody configured: the demo model, and one for each known key in the environment.

use providers::yaml::Reader;
use providers::{Gap, Library, Provider, Wire, resolve_named};

use super::client_key::for_provider;
use super::provider::{UNSENDABLE, can_be_sent, listed};
use super::{KeyFrom, Problem, ProviderConfig, Secret, Sources, Timeouts, TransportConfig};

/// What the environment comes to.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) providers: Vec<ProviderConfig>,
    /// Who has a key and cannot be used, with the reason.
    pub(super) left_out: Vec<String>,
}

/// One provider for every built-in spec whose key is in the environment, in the order of preference. A key is one
/// provider's: of specs that share a variable (regions and plans of one vendor) the first has it. Only the specs whose
/// keys are there are read.
pub(super) fn from_environment(reader: &Reader<'_>, sources: &Sources<'_>) -> Found {
    let (mut found, mut taken) = (Found::default(), Vec::new());
    let is_set = |name: &str| for_provider(sources.env, name).is_some();
    for name in Library::BUILTIN.names() {
        let variables = Library::BUILTIN.key_variables(name);
        let Some(variable) = variables.into_iter().find(|variable| is_set(variable)) else { continue };
        if taken.contains(&variable) {
            continue;
        }
        let provider = resolve_named(Library::BUILTIN, name, sources.env).ok();
        let Some(provider) = provider.filter(|provider| provider.automatic) else { continue };
        let key = for_provider(sources.env, variable).unwrap_or_default();
        let url = match provider.address(sources.env) {
            Ok(Some(url)) if provider.wire != Wire::Demo => url,
            // Without an address of its own it needs a configuration.
            Ok(_) => continue,
            Err(gaps) => {
                found.left_out.extend(gaps.iter().map(|gap| left_out(name, variable, gap)));
                taken.push(variable);
                continue;
            }
        };
        if !can_be_sent(&key) {
            let (file, path) = ("environment".to_owned(), variable.to_owned());
            reader.report(Problem { file, position: None, path, message: UNSENDABLE.to_owned(), help: None });
        }
        taken.push(variable);
        let key_from = KeyFrom::Variable(variable.to_owned());
        found.providers.push(ProviderConfig {
            key_from,
            base_url: url,
            ..entry(name, provider, Some(Secret::new(key)))
        });
    }
    found
}

fn left_out(name: &str, variable: &str, gap: &Gap) -> String {
    let what = if gap.is_unfit { "cannot be part of an address" } else { "is not known" };
    let wanted = match gap.variables.as_slice() {
        [] => format!("configure `providers: {{{name}: {{endpoint: {{params: {{{}: …}}}}}}}}`", gap.name),
        several => format!("set {}", several.join(" or ")),
    };
    format!("{name} is left out: {variable} is set, but its {} {what}; {wanted}", gap.name)
}

/// The demo model as a provider.
pub(super) fn demo(sources: &Sources<'_>) -> Option<ProviderConfig> {
    let provider = resolve_named(Library::BUILTIN, "demo", sources.env).ok()?;
    Some(entry("demo", provider, None))
}

/// Without an address.
pub(super) fn entry(name: &str, provider: Provider, api_key: Option<Secret>) -> ProviderConfig {
    ProviderConfig {
        name: name.to_owned(),
        key_from: KeyFrom::Nowhere,
        api_keys: api_key.into_iter().collect(),
        base_url: String::new(),
        base_urls: Vec::new(),
        health: None,
        timeouts: Timeouts::default(),
        models: listed(&provider),
        headers: Vec::new(),
        transport: TransportConfig::default(),
        provider,
    }
}
