//! Which model Codex is to use, and why.

use anyhow::Context;
use providers::Wire;
use server::config::{Config, KeyFrom};

/// A model that this configuration knows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// As clients ask for it.
    pub(super) model: String,
    pub(super) provider: String,
    /// The model inside this binary: it follows a few commands and knows nothing.
    pub(super) offline: bool,
}

/// The one that was asked for; else the default provider's, else that of the first provider with a key, else the demo.
pub(super) fn choose(config: &Config, asked: Option<&str>) -> anyhow::Result<Choice> {
    let model = match asked {
        Some(model) => model.to_owned(),
        None => config.sample_model().or_else(|| first_with_key(config)).unwrap_or_else(|| "demo".to_owned()),
    };
    let (provider, _) = config.resolve(&model).with_context(|| format!("--model {model}"))?;
    Ok(Choice {
        model: model.trim().to_owned(),
        provider: provider.name.clone(),
        offline: provider.provider.wire == Wire::Demo,
    })
}

/// The first model that is listed for a provider that can be asked.
fn first_with_key(config: &Config) -> Option<String> {
    let usable = |owner: &str| {
        config.provider(owner).is_some_and(|provider| {
            provider.provider.wire != Wire::Demo && !matches!(provider.key_from, KeyFrom::Missing(_))
        })
    };
    config.models().into_iter().find(|model| usable(&model.owned_by)).map(|model| model.id)
}
