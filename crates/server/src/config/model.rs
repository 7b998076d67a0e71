//! From the `model` of a request to a provider and its model, and the list of models.

use providers::{Library, Wire};

use super::{Alias, Config, KeyFrom, ProviderConfig};

bridge::vocabulary! {
    /// Which providers are asked for their own lists of models.
    pub enum Discover {
        Off = "off",
        /// Those on this machine or a private network.
        Local = "local",
        All = "all",
    }
}

/// A model of a provider, written `provider/model`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRef {
    pub provider: String,
    pub model: String,
}

impl ModelRef {
    /// Splits at the first slash; the model may hold more of them.
    pub fn parse(text: &str) -> Option<Self> {
        let (provider, model) = text.trim().split_once('/')?;
        let (provider, model) = (provider.trim(), model.trim());
        let whole = !provider.is_empty() && !model.is_empty();
        whole.then(|| Self { provider: provider.to_owned(), model: model.to_owned() })
    }
}

impl std::fmt::Display for ModelRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

/// Why a model's name leads nowhere. Answered as 404 `model_not_found`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error("The model `{model}` does not exist: the name is incomplete.")]
    Incomplete { model: String },
    #[error("The model `{model}` does not exist: there is no provider `{provider}` (configured: {}).", configured.join(", "))]
    UnknownProvider { model: String, provider: String, configured: Vec<String> },
}

/// One line of the list of models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedModel {
    pub id: String,
    pub owned_by: String,
}

impl Config {
    pub fn provider(&self, name: &str) -> Option<&ProviderConfig> {
        self.providers.iter().find(|provider| provider.name == name)
    }

    /// The provider for a request's `model`, and the name of the model there: the first of several.
    ///
    /// # Errors
    /// The name is empty or half a `provider/model`.
    pub fn resolve(&self, model: &str) -> Result<(&ProviderConfig, String), ModelError> {
        let mut targets = self.targets(model, 0)?;
        Ok(targets.swap_remove(0))
    }

    /// All that may serve a request's `model`, in the order in which they should be tried; there is at least one.
    /// An alias of exactly that name comes first, then the provider before the first slash; what names neither goes
    /// to the alias `*`, or to the default provider.
    /// `draw` decides among those with weights, and should be spread evenly over all numbers.
    ///
    /// # Errors
    /// As [`Config::resolve`].
    pub fn targets(&self, model: &str, draw: u64) -> Result<Vec<(&ProviderConfig, String)>, ModelError> {
        let name = model.trim();
        // `provider/` and slashes alone name no model.
        if name.trim_matches('/').is_empty() || name.strip_suffix('/').is_some_and(|name| self.has_provider(name)) {
            return Err(ModelError::Incomplete { model: name.to_owned() });
        }
        let alias = |wanted: &str| self.aliases.iter().find(|(alias, _)| alias == wanted).map(|(_, alias)| alias);
        let all = |alias: &Alias| alias.order(draw).into_iter().map(|target| self.target(name, target)).collect();
        if let Some(alias) = alias(name) {
            return all(alias);
        }
        let one = if let Some(target) = ModelRef::parse(name).filter(|target| self.has_provider(&target.provider)) {
            target
        } else if self.is_offline(name) {
            // Documentation says `"model": "demo"`: that works whatever else is configured.
            ModelRef { provider: name.to_owned(), model: name.to_owned() }
        } else if let Some(alias) = alias("*") {
            return all(alias);
        } else if let Some(provider) = self.lacks(name) {
            return Err(self.unknown(name, provider));
        } else {
            // Whole: many models have a slash in their own name.
            ModelRef { provider: self.default_provider.clone(), model: name.to_owned() }
        };
        Ok(vec![self.target(name, &one)?])
    }

    /// The provider that is meant and not there, where only the offline model would answer for it: a client that asked for
    /// another must not take that for an answer.
    fn lacks<'n>(&self, name: &'n str) -> Option<&'n str> {
        let (provider, _) = name.split_once('/')?;
        let is_known = Library::BUILTIN.names().any(|known| known == provider);
        (is_known && self.is_offline(&self.default_provider)).then_some(provider)
    }

    fn unknown(&self, model: &str, provider: &str) -> ModelError {
        ModelError::UnknownProvider {
            model: model.to_owned(),
            provider: provider.to_owned(),
            configured: self.providers.iter().map(|provider| provider.name.clone()).collect(),
        }
    }

    fn has_provider(&self, name: &str) -> bool {
        self.provider(name.trim()).is_some()
    }

    fn target(&self, name: &str, target: &ModelRef) -> Result<(&ProviderConfig, String), ModelError> {
        match self.provider(&target.provider) {
            Some(provider) => Ok((provider, target.model.clone())),
            None => Err(self.unknown(name, &target.provider)),
        }
    }

    /// Whether a provider of that name is the model inside this binary.
    fn is_offline(&self, name: &str) -> bool {
        self.provider(name).is_some_and(|provider| provider.provider.wire == Wire::Demo)
    }

    /// The aliases, then every provider's models under the shortest name that leads to them.
    pub fn models(&self) -> Vec<ListedModel> {
        let aliases = self.aliases.iter().filter(|(alias, _)| alias != "*");
        let mut list: Vec<ListedModel> = aliases
            .filter_map(|(id, alias)| {
                let owned_by = alias.targets.first()?.provider.clone();
                Some(ListedModel { id: id.clone(), owned_by })
            })
            .collect();
        for provider in &self.providers {
            for model in &provider.models {
                let id = self.shortest(provider, model);
                if !list.iter().any(|listed| listed.id == id) {
                    list.push(ListedModel { id, owned_by: provider.name.clone() });
                }
            }
        }
        list
    }

    /// Whether this provider may be asked for its own list of models.
    pub(crate) fn discovers(&self, provider: &ProviderConfig) -> bool {
        let may = match self.discover {
            Discover::Off => false,
            Discover::Local => provider.is_private(),
            Discover::All => provider.provider.wire != Wire::Demo,
        };
        may && provider.provider.discovery.path.is_some() && !matches!(provider.key_from, KeyFrom::Missing(_))
    }

    /// A model to try first: the default provider's own choice, if it has one.
    pub fn sample_model(&self) -> Option<String> {
        let provider = self.provider(&self.default_provider)?;
        let model = provider.provider.default_model.as_ref().or(provider.models.first())?;
        Some(self.shortest(provider, model))
    }

    /// The shortest name that leads to this model of a provider.
    pub(crate) fn shortest(&self, provider: &ProviderConfig, model: &str) -> String {
        match self.resolve(model) {
            Ok((found, name)) if found.name == provider.name && name == model => model.to_owned(),
            _ => format!("{}/{model}", provider.name),
        }
    }
}
