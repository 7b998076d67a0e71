//! How answers end, as far as that says something of who gave them. An answer that begins well and breaks off is no better
//! than none: without this, a target that always does so would be asked for good.

use std::sync::Arc;

use bridge::Failure;

use super::health::ModelHealth;
use super::refused::is_trouble;
use super::replica::Replica;

/// Whom an answer is from.
#[derive(Debug)]
pub(crate) struct Watching {
    /// For the log.
    pub(super) name: String,
    pub(super) health: Arc<ModelHealth>,
    pub(super) replica: Arc<Replica>,
}

impl Watching {
    /// The answer is over, to its end or with a failure. One that its client has left says nothing, and is never told.
    pub(super) fn ended(self, failure: Option<&Failure>) {
        let Self { name, health, replica } = self;
        match failure.map(|failure| (failure, is_trouble(failure))) {
            Some((failure, Some(true))) if health.breaker.broke_off(failure.class) => failing(&name),
            Some((_, Some(false))) | None if health.breaker.good() => recovered(&name, &replica),
            _ => {}
        }
    }
}

pub(super) fn failing(name: &str) {
    tracing::warn!(upstream = name, "failing; from now on one request per second goes there");
}

pub(super) fn recovered(name: &str, replica: &Replica) {
    replica.recovered();
    tracing::info!(upstream = name, "it works again");
}
