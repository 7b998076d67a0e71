//! What labels may say. A name that a client made up is never among it.

use std::collections::HashSet;
use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;

use crate::config::Config;

/// What stands for all that has no label of its own.
pub(super) const OTHER: &str = "other";

/// So many names of models there may be.
const MOST_NAMES: usize = 2_000;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RequestLabels {
    pub(super) route: &'static str,
    /// 0: it has none, as what runs in the background.
    pub(super) status: u16,
    pub(super) outcome: &'static str,
    pub(super) model: Arc<str>,
    pub(super) target: Arc<str>,
}

impl RequestLabels {
    /// The same, without what there may be much of.
    pub(super) fn cut(&self) -> Self {
        Self { model: OTHER.into(), target: OTHER.into(), ..self.clone() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RouteLabels {
    pub(super) route: &'static str,
    pub(super) model: Arc<str>,
}

impl RouteLabels {
    /// The same, without what there may be much of.
    pub(super) fn cut(&self) -> Self {
        Self { model: OTHER.into(), ..self.clone() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct TargetLabels {
    pub(crate) provider: Arc<str>,
    /// `provider/model`.
    pub(crate) target: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OutcomeLabels {
    provider: Arc<str>,
    target: Arc<str>,
    outcome: &'static str,
}

impl OutcomeLabels {
    pub(super) fn of(TargetLabels { provider, target }: &TargetLabels, outcome: &'static str) -> Self {
        Self { provider: Arc::clone(provider), target: Arc::clone(target), outcome }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct TokenLabels {
    provider: Arc<str>,
    target: Arc<str>,
    kind: &'static str,
}

impl TokenLabels {
    /// `cached_input` is a part of `input`, `reasoning` one of `output`.
    pub(super) const KINDS: [&'static str; 4] = ["input", "cached_input", "output", "reasoning"];

    pub(super) fn of(TargetLabels { provider, target }: &TargetLabels, kind: &'static str) -> Self {
        Self { provider: Arc::clone(provider), target: Arc::clone(target), kind }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct CodeLabels {
    pub(super) code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct KindLabels {
    pub(super) kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ToolLabels {
    pub(super) tool: &'static str,
}

/// The names that have labels of their own: what the configuration has, and what providers list.
#[derive(Debug)]
pub(crate) struct Names {
    /// As clients ask for them.
    models: HashSet<Arc<str>>,
    /// `provider/model`.
    targets: HashSet<Arc<str>>,
    providers: HashSet<Arc<str>>,
    none: Arc<str>,
    other: Arc<str>,
}

impl Default for Names {
    fn default() -> Self {
        let (models, targets, providers) = Default::default();
        Self { models, targets, providers, none: "".into(), other: OTHER.into() }
    }
}

impl Names {
    /// What the configuration has, and these models of providers.
    pub(crate) fn of<'a>(config: &Config, listed: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut names = Self::default();
        names.providers.extend(config.providers.iter().map(|provider| Arc::from(&*provider.name)));
        for (alias, to) in &config.aliases {
            names.add_model(alias);
            for target in &to.targets {
                names.add_target(&target.provider, &target.model);
            }
        }
        for provider in &config.providers {
            for model in &provider.models {
                names.add_model(&config.shortest(provider, model));
                names.add_target(&provider.name, model);
            }
        }
        for (provider, model) in listed {
            if let Some(provider) = config.providers.iter().find(|known| known.name == provider) {
                names.add_model(&config.shortest(provider, model));
                names.add_target(&provider.name, model);
            }
        }
        names
    }

    fn add_model(&mut self, name: &str) {
        if self.models.len() < MOST_NAMES {
            self.models.insert(name.into());
        }
    }

    fn add_target(&mut self, provider: &str, model: &str) {
        if self.targets.len() < MOST_NAMES {
            self.targets.insert(format!("{provider}/{model}").into());
        }
    }

    /// No name.
    pub(super) fn none(&self) -> Arc<str> {
        Arc::clone(&self.none)
    }

    /// The label of a model that was asked for by this name.
    pub(super) fn model(&self, asked: &str) -> Arc<str> {
        Arc::clone(self.models.get(asked).or_else(|| self.targets.get(asked)).unwrap_or(&self.other))
    }

    pub(super) fn other(&self) -> TargetLabels {
        TargetLabels { provider: Arc::clone(&self.other), target: Arc::clone(&self.other) }
    }

    /// The labels of `provider/model`.
    pub(crate) fn target(&self, name: &str) -> TargetLabels {
        // Names of providers have no slash.
        let provider = name.split_once('/').and_then(|(provider, _)| self.providers.get(provider));
        let Some(provider) = provider.cloned() else { return self.other() };
        let target = match self.targets.get(name) {
            Some(target) => Arc::clone(target),
            None => format!("{provider}/{OTHER}").into(),
        };
        TargetLabels { provider, target }
    }
}
