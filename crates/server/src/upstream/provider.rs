//! A provider as the configuration has it: how its models are spoken to, how long it may take. Its connections, and
//! what is known of its models, outlive the configuration.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use bridge::{AnswerDialect, Dialect};
use http::HeaderValue;
use providers::{Matches, ModelSpec, Price, Wire};
use tokio::time::Instant;

use super::health::ModelState;
use super::{Deadlines, KnownListing, Redactor, ReplicaState, Replicas, UpstreamClient};
use crate::config::{ProviderConfig, ResilienceConfig, Timeouts};
use crate::start::StartError;

/// What is known of so many models is kept by name: clients may name any model.
const MODELS: usize = 256;
/// Longer names are not kept.
const LONGEST_NAME: usize = 256;

/// A provider that can be called.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) name: String,
    spec: providers::Provider,
    /// What the spec comes to for the models that were asked for so far: one for each set of its entries.
    profiles: RwLock<HashMap<Matches, Arc<ModelProfile>>>,
    /// The same, and what it costs, for each model by name: a name is looked for among the spec's patterns once.
    models: RwLock<HashMap<Box<str>, Model>>,
    timeouts: Timeouts,
    pub(super) connections: Arc<Connections>,
}

/// What stays of a provider when the configuration around it changes.
#[derive(Debug)]
pub(crate) struct Connections {
    pub(crate) replicas: Replicas,
    /// What it lists of its models itself.
    pub(crate) listing: KnownListing,
}

/// What the spec says of one model.
#[derive(Debug, Clone)]
struct Model {
    profile: Arc<ModelProfile>,
    price: Option<Arc<Price>>,
}

/// How one model is spoken to.
#[derive(Debug)]
pub(crate) struct ModelProfile {
    pub(crate) wire: Wire,
    /// How many tokens a request may have, if the spec says.
    pub(crate) context_window: Option<u64>,
    pub(crate) dialect: Dialect,
    /// What is tried out with each request.
    pub(crate) betas: Option<HeaderValue>,
    /// The answer's half of it, in the reader's own form.
    pub(crate) answer: Arc<AnswerDialect>,
}

impl Connections {
    pub(crate) fn new(config: &ProviderConfig, resilience: ResilienceConfig) -> Result<Self, StartError> {
        Self::following(config, resilience, None)
    }

    /// The same for a provider that differs from an earlier one in its addresses only.
    pub(crate) fn following(
        config: &ProviderConfig,
        resilience: ResilienceConfig,
        before: Option<&Self>,
    ) -> Result<Self, StartError> {
        let replicas = Replicas::new(config, resilience, before.map(|before| &before.replicas))?;
        Ok(Self { replicas, listing: KnownListing::default() })
    }

    /// Whoever can be asked what does not depend on the address.
    pub(super) fn client(&self) -> Option<&UpstreamClient> {
        self.replicas.any().map(|replica| &replica.client)
    }

    /// Closes those that nobody will want.
    pub(crate) fn tidy(&self) {
        self.replicas.all().iter().for_each(|replica| replica.client.tidy());
    }

    /// Closes those that nobody uses at the moment.
    pub(crate) fn shed(&self) {
        self.replicas.all().iter().for_each(|replica| replica.client.shed());
    }

    /// Takes the provider's keys out of what is shown or kept.
    pub(crate) fn redactor(&self) -> Redactor {
        match self.client() {
            Some(UpstreamClient::Http(client)) => client.redactor(),
            Some(UpstreamClient::Demo) | None => Redactor::default(),
        }
    }

    /// What is known of the models that were asked for.
    pub(crate) fn health(&self) -> Vec<(String, ModelState)> {
        self.replicas.models()
    }

    /// How its addresses fare, if it has several.
    pub(crate) fn replicas(&self) -> Vec<ReplicaState> {
        self.replicas.states()
    }
}

impl Provider {
    pub(crate) fn new(config: &ProviderConfig, connections: Arc<Connections>) -> Self {
        Self {
            name: config.name.clone(),
            spec: config.provider.clone(),
            profiles: RwLock::default(),
            models: RwLock::default(),
            timeouts: config.timeouts,
            connections,
        }
    }

    /// The deadlines of a request that came at `began`. What is not streamed begins when it is whole, and may take
    /// longer to begin.
    pub(super) fn deadlines(&self, stream: bool, began: Instant) -> Deadlines {
        let Timeouts { first_byte, whole, idle, total, .. } = self.timeouts;
        Deadlines { first_byte: if stream { first_byte } else { whole }, idle, until: began + total }
    }

    /// How many tokens a request to this model may have, if anybody says: the spec first, then the provider's own list.
    pub(crate) fn context_window(&self, model: &str) -> Option<u64> {
        let listed = || self.connections.listing.get()?.find(model)?.context_window;
        self.profile(model).context_window.or_else(listed)
    }

    /// What the model costs, if anybody says.
    pub(super) fn price(&self, model: &str) -> Option<Arc<Price>> {
        self.model(model, |known| known.price.clone())
    }

    /// Whether it matters which conversation a request belongs to.
    pub(super) fn has_choice(&self) -> bool {
        self.connections.replicas.has_choice()
    }

    pub(crate) const fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    /// How this model is spoken to.
    pub(super) fn profile(&self, model: &str) -> Arc<ModelProfile> {
        self.model(model, |known| Arc::clone(&known.profile))
    }

    fn model<T>(&self, name: &str, look: impl Fn(&Model) -> T) -> T {
        if let Some(known) = self.models.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return look(known);
        }
        let model = Model {
            profile: self.profile_of(self.spec.matches(name)),
            price: self.spec.price(name).cloned().map(Arc::new),
        };
        let mut models = self.models.write().unwrap_or_else(PoisonError::into_inner);
        if models.len() < MODELS && name.len() <= LONGEST_NAME {
            models.insert(name.into(), model.clone());
        }
        look(&model)
    }

    /// Worked out once for all models that the spec speaks of alike.
    fn profile_of(&self, matches: Matches) -> Arc<ModelProfile> {
        let known = self.profiles.read().unwrap_or_else(PoisonError::into_inner).get(&matches).cloned();
        known.unwrap_or_else(|| {
            let profile = Arc::new(ModelProfile::new(self.spec.with(&matches)));
            self.profiles.write().unwrap_or_else(PoisonError::into_inner).insert(matches, Arc::clone(&profile));
            profile
        })
    }
}

impl ModelProfile {
    fn new(spec: ModelSpec) -> Self {
        let context_window = spec.request_window();
        let ModelSpec { wire, dialect, .. } = spec;
        let answer = AnswerDialect { family: dialect.family().to_owned(), ..dialect.answer.clone() };
        let betas = Self::betas_of(&dialect);
        Self { wire, context_window, dialect, betas, answer: Arc::new(answer) }
    }

    /// What is tried out with each request, as a header says it.
    pub(super) fn betas_of(dialect: &Dialect) -> Option<HeaderValue> {
        let betas = dialect.request.blocks.all_betas().collect::<Vec<_>>().join(",");
        // Names that a spec takes are names that a header takes.
        HeaderValue::try_from(betas).ok().filter(|betas| !betas.is_empty())
    }
}
