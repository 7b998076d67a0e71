//! A provider as the configuration has it: how its models are spoken to, how long it may take. Its connections, and
//! what is known of its models, outlive the configuration.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use bridge::{AnswerDialect, Dialect};
use providers::{Matches, ModelSpec, Price, Wire};
use tokio::time::Instant;

use super::health::ModelState;
use super::{Deadlines, HealthByModel, HttpClient, KnownListing, Redactor, UpstreamClient};
use crate::config::{ProviderConfig, ResilienceConfig, Timeouts};
use crate::start::StartError;

/// So many models' prices are kept: clients may name any model.
const PRICES: usize = 256;

/// A provider that can be called.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) name: String,
    spec: providers::Provider,
    /// What the spec comes to for the models that were asked for so far: one for each set of its entries.
    profiles: RwLock<HashMap<Matches, Arc<ModelProfile>>>,
    /// What those models cost.
    prices: RwLock<HashMap<String, Option<Arc<Price>>>>,
    timeouts: Timeouts,
    pub(super) connections: Arc<Connections>,
}

/// What stays of a provider when the configuration around it changes.
#[derive(Debug)]
pub(crate) struct Connections {
    pub(super) client: UpstreamClient,
    pub(super) models: HealthByModel,
    /// What it lists of its models itself.
    pub(crate) listing: KnownListing,
}

/// How one model is spoken to.
#[derive(Debug)]
pub(crate) struct ModelProfile {
    pub(crate) wire: Wire,
    /// How many tokens a request may have, if the spec says.
    pub(crate) context_window: Option<u64>,
    pub(crate) dialect: Dialect,
    /// The answer's half of it, in the reader's own form.
    pub(crate) answer: Arc<AnswerDialect>,
}

impl Connections {
    pub(crate) fn new(config: &ProviderConfig, resilience: ResilienceConfig) -> Result<Self, StartError> {
        let (client, resilience) = match config.provider.wire {
            Wire::Chat | Wire::Responses => (UpstreamClient::Http(Box::new(HttpClient::new(config)?)), resilience),
            // What fails there was asked to fail.
            Wire::Demo => (UpstreamClient::Demo, ResilienceConfig { breaker_failures: 0, ..resilience }),
        };
        Ok(Self { client, models: HealthByModel::new(resilience), listing: KnownListing::default() })
    }

    /// Closes those that nobody will want.
    pub(crate) fn tidy(&self) {
        self.client.tidy();
    }

    /// Takes the provider's keys out of what is shown or kept.
    pub(super) fn redactor(&self) -> Redactor {
        match &self.client {
            UpstreamClient::Http(client) => client.redactor(),
            UpstreamClient::Demo => Redactor::default(),
        }
    }

    /// What is known of the models that were asked for.
    pub(crate) fn health(&self) -> Vec<(String, ModelState)> {
        self.models.states()
    }
}

impl Provider {
    pub(crate) fn new(config: &ProviderConfig, connections: Arc<Connections>) -> Self {
        Self {
            name: config.name.clone(),
            spec: config.provider.clone(),
            profiles: RwLock::default(),
            prices: RwLock::default(),
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
        if let Some(price) = self.prices.read().unwrap_or_else(PoisonError::into_inner).get(model) {
            return price.clone();
        }
        let price = self.spec.price(model).cloned().map(Arc::new);
        let mut prices = self.prices.write().unwrap_or_else(PoisonError::into_inner);
        if prices.len() < PRICES {
            prices.insert(model.to_owned(), price.clone());
        }
        price
    }

    pub(crate) const fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    /// How this model is spoken to. Worked out once for all models that the spec speaks of alike.
    pub(super) fn profile(&self, model: &str) -> Arc<ModelProfile> {
        let matches = self.spec.matches(model);
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
        Self { wire, context_window, dialect, answer: Arc::new(answer) }
    }
}
