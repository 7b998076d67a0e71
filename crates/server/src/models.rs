//! The models that clients can ask for: those of the configuration, and those that providers list themselves. What is
//! known of each of them, as clients are told. Never decides how a request is sent: that is the provider's spec alone.

mod codex;
mod discover;
mod facts;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::config::{Config, ProviderConfig};
use crate::upstream::Listing;
pub use codex::codex_catalog;
pub(crate) use codex::write_catalog;
pub use discover::discover;
pub(crate) use discover::maintain;
use facts::Facts;

/// What providers list themselves, by the providers' names.
#[derive(Debug, Clone, Default)]
pub struct Discovered(pub(crate) BTreeMap<String, Arc<Listing>>);

/// What is known beyond the configuration.
#[derive(Clone, Copy)]
pub(crate) struct Known<'k> {
    pub(crate) discovered: &'k Discovered,
    /// How many tokens a request to a provider's model may have, as far as a running server has come to know it.
    pub(crate) window: &'k dyn Fn(&str, &str) -> Option<u64>,
}

impl<'k> Known<'k> {
    /// By whoever runs no server.
    fn only(discovered: &'k Discovered) -> Self {
        Self { discovered, window: &|_, _| None }
    }
}

/// A model that clients can ask for, as people are shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogModel {
    pub id: String,
    pub owned_by: String,
    /// How many tokens it takes, if anybody says.
    pub context_window: Option<u64>,
    /// Only its provider's own list has it.
    pub discovered: bool,
}

/// What the list of models shows.
pub fn catalog_models(config: &Config, discovered: &Discovered) -> Vec<CatalogModel> {
    let shown = |model: Model<'_>| {
        let context_window = model.facts(Known::only(discovered)).window.known();
        CatalogModel { id: model.id, owned_by: model.owned_by, context_window, discovered: model.discovered }
    };
    list(config, discovered).into_iter().map(shown).collect()
}

/// A model that clients can ask for.
#[derive(Debug)]
pub(crate) struct Model<'c> {
    pub(crate) id: String,
    pub(crate) owned_by: String,
    /// Who may serve it, and under which name; at least one.
    targets: Vec<(&'c ProviderConfig, String)>,
    /// Only its provider's own list has it.
    discovered: bool,
    /// Somebody describes images to those who cannot see them.
    describes: bool,
}

impl<'c> Model<'c> {
    /// The model of this name, listed or not.
    pub(crate) fn named(config: &'c Config, id: &str) -> Option<Self> {
        let targets = config.targets(id, 0).ok()?;
        let owned_by = targets.first()?.0.name.clone();
        let describes = config.images.describe.is_some();
        Some(Self { id: id.to_owned(), owned_by, targets, discovered: false, describes })
    }

    /// Each that it stands for, by its provider's name and its own.
    fn by_whole_names(&self) -> impl Iterator<Item = Self> {
        self.targets.iter().map(|(provider, model)| Self {
            id: format!("{}/{model}", provider.name),
            owned_by: provider.name.clone(),
            targets: vec![(*provider, model.clone())],
            ..*self
        })
    }

    fn facts(&self, known: Known<'_>) -> Facts {
        let of = |(provider, model): &(&ProviderConfig, String)| {
            let listing = known.discovered.0.get(&provider.name);
            let window = (known.window)(&provider.name, model);
            let listed = listing.and_then(|listing| listing.find(model));
            Facts::of(provider, model, listed, window, self.describes)
        };
        self.targets.iter().map(of).reduce(|all, one| all.and(&one)).unwrap_or_default()
    }
}

/// Those of them that somebody may use, by names that they may use: of a short name that they may not, the whole ones.
pub(crate) fn usable(models: Vec<Model<'_>>, may_use: impl Fn(&str) -> bool) -> Vec<Model<'_>> {
    let mut known: HashSet<String> = models.iter().map(|model| model.id.clone()).collect();
    let mut usable = Vec::with_capacity(models.len());
    for model in models {
        if may_use(&model.id) {
            usable.push(model);
        } else {
            usable.extend(model.by_whole_names().filter(|model| may_use(&model.id) && known.insert(model.id.clone())));
        }
    }
    usable
}

/// Every model that is listed: the configuration's first.
pub(crate) fn list<'c>(config: &'c Config, discovered: &Discovered) -> Vec<Model<'c>> {
    let mut models: Vec<Model<'c>> =
        config.models().into_iter().filter_map(|listed| Model::named(config, &listed.id)).collect();
    let mut known: HashSet<String> = models.iter().map(|model| model.id.clone()).collect();
    for provider in &config.providers {
        let Some(listing) = discovered.0.get(&provider.name) else { continue };
        for listed in &listing.models {
            let id = config.shortest(provider, &listed.name);
            if known.insert(id.clone()) {
                let targets = vec![(provider, listed.name.clone())];
                let (owned_by, describes) = (provider.name.clone(), config.images.describe.is_some());
                models.push(Model { id, owned_by, targets, discovered: true, describes });
            }
        }
    }
    models
}
