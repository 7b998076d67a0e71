//! The addresses of one provider, of which each conversation has its own. What is known of an address outlives a
//! configuration that still has it.

mod watch;

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use providers::Wire;

use super::affinity::{self, Affinity, Seat};
use super::health::{HealthByModel, ModelHealth, ModelState};
use super::load::OpenRequest;
use super::replica::{Replica, ReplicaState};
use super::{HttpClient, UpstreamClient};
use crate::config::{ProviderConfig, ResilienceConfig};
use crate::start::StartError;

pub(crate) use watch::maintain;

/// One at least.
#[derive(Debug)]
pub(crate) struct Replicas {
    all: Vec<Arc<Replica>>,
    /// Where an address is asked how it is, after its base URL.
    health: String,
    /// Held while one is chosen: those who come together see each other.
    choosing: Mutex<()>,
}

impl Replicas {
    /// Those of `before` that are still among the addresses stay as they are.
    pub(super) fn new(
        config: &ProviderConfig,
        resilience: ResilienceConfig,
        before: Option<&Self>,
    ) -> Result<Self, StartError> {
        let known = |url: &str| before?.all.iter().find(|replica| *replica.url == *url);
        let shared = before.and_then(|before| match &before.all.first()?.client {
            UpstreamClient::Http(client) => Some(client),
            UpstreamClient::Demo => None,
        });
        let mut keys = shared.map(|client| client.keys());
        let mut all = Vec::new();
        for one in config.each_address() {
            if let Some(replica) = known(&one.base_url) {
                all.push(Arc::clone(replica));
                continue;
            }
            let (client, resilience) = match config.provider.wire {
                Wire::Chat | Wire::Responses | Wire::Messages => {
                    let client = HttpClient::sharing(&one, keys.take())?;
                    keys = Some(client.keys());
                    (UpstreamClient::Http(Box::new(client)), resilience)
                }
                // What fails there was asked to fail.
                Wire::Demo => (UpstreamClient::Demo, ResilienceConfig { breaker_failures: 0, ..resilience }),
            };
            let models = HealthByModel::new(resilience);
            all.push(Arc::new(Replica::new(&one.base_url, client, models, before.is_some())));
        }
        let health = config.health.clone().or_else(|| config.provider.discovery.path.clone());
        Ok(Self { all, health: health.unwrap_or_else(|| "/models".to_owned()), choosing: Mutex::default() })
    }

    pub(super) fn all(&self) -> &[Arc<Replica>] {
        &self.all
    }

    /// Whether there is a choice.
    pub(super) const fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    /// Whether there is one, of addresses or of keys.
    pub(super) fn has_choice(&self) -> bool {
        let keys = |replica: &Arc<Replica>| match &replica.client {
            UpstreamClient::Http(client) => client.keys().are_several(),
            UpstreamClient::Demo => false,
        };
        self.are_several() || self.all.first().is_some_and(keys)
    }

    /// One that is up, if any is.
    pub(super) fn any(&self) -> Option<&Arc<Replica>> {
        self.all.iter().find(|replica| replica.is_up()).or_else(|| self.all.first())
    }

    /// The order in which these are to be asked, and a place at the first of them. Who has been answered by one (`stays`)
    /// stays there while it is up.
    pub(super) fn choose(
        &self,
        affinity: Affinity,
        among: &[(&Arc<Replica>, &ModelHealth)],
        stays: Option<&Arc<Replica>>,
    ) -> (Vec<usize>, Option<OpenRequest>) {
        let _one_at_a_time = self.choosing.lock().unwrap_or_else(PoisonError::into_inner);
        let seats: Vec<Seat> = among.iter().map(|(replica, model)| replica.seat(model)).collect();
        let mut order = affinity::order(affinity, &seats);
        let is_same = |at: &usize| stays.is_some_and(|stays| Arc::ptr_eq(stays, among[*at].0)) && seats[*at].share > 0;
        if let Some(at) = order.iter().position(is_same) {
            order[..=at].rotate_right(1);
        }
        let Some(first) = order.first().map(|at| among[*at].0) else { return (order, None) };
        let home = affinity::home(affinity, self.all.iter().map(|replica| replica.place()));
        let is_home = home.is_some_and(|at| Arc::ptr_eq(&self.all[at], first));
        (if is_home { &first.own } else { &first.guests }).fetch_add(1, Ordering::Relaxed);
        let open = first.load.enter();
        (order, Some(open))
    }

    pub(super) fn states(&self) -> Vec<ReplicaState> {
        if self.are_several() { self.all.iter().map(|replica| replica.state()).collect() } else { Vec::new() }
    }

    /// How the models fare, wherever they are asked: one that fails at some addresses is open at none of them.
    pub(super) fn models(&self) -> Vec<(String, ModelState)> {
        let mut merged: HashMap<String, ModelState> = HashMap::new();
        for (name, state) in self.all.iter().flat_map(|replica| replica.models.states()) {
            let known = merged.remove(&name);
            let state = known.map_or(state, |known| known.and(state));
            merged.insert(name, state);
        }
        let mut models: Vec<_> = merged.into_iter().collect();
        models.sort_by(|one, other| one.0.cmp(&other.0));
        models
    }
}

#[cfg(test)]
mod tests;
