//! `Idempotency-Key`: a request that is sent again under the same key asks no provider again. It gets the response of the
//! first one, for a day; while that one runs, the news that it does.
//!
//! A key is claimed in the store for the id of the response that will be made, before anybody is asked. Whether the
//! response was stored says then whether the request was answered: a process that died in between has stored nothing, and
//! its key is free when its claim has run out. With `store: false` nothing is written: the key is known here, while the
//! request runs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest;
use bytes::Bytes;
use http::HeaderMap;
use store::{KeyClaim, NewKey, Tenant};
use tokio::sync::Notify;
use wire::id::Id;

use crate::error::{ApiError, Code};
use crate::request::RequestContext;
use crate::session::{LEASE, Session};

/// How long a key is known.
const KEEP: Duration = Duration::from_hours(24);

const LONGEST: usize = 255;

/// The key that a client sent.
#[derive(Debug, Clone)]
pub(crate) struct Key(Box<str>);

/// A request that was made before.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) response_id: String,
    pub(crate) stream: bool,
}

/// The keys of requests that run here.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    state: Mutex<State>,
    returned: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Of requests of which nothing is written.
    unwritten: HashMap<(Tenant, Box<str>), [u8; 32]>,
    /// Claimed in the store.
    claimed: usize,
    /// To be given back there.
    returned: Vec<(Session, Box<str>, String)>,
}

/// A key that is this request's, until its response is stored. Dropped before that, it is free again.
#[derive(Debug)]
pub(crate) struct Held {
    keys: Arc<Keys>,
    kind: HeldKind,
}

#[derive(Debug)]
enum HeldKind {
    Unwritten(Tenant, Box<str>),
    Claimed { session: Session, key: Box<str>, response: String, kept: bool },
}

impl Key {
    /// The request's, if it has one.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Option<Self>, ApiError> {
        let mut values = headers.get_all("idempotency-key").into_iter();
        let Some(value) = values.next() else { return Ok(None) };
        let plain = |key: &[u8]| (1..=LONGEST).contains(&key.len()) && key.iter().all(u8::is_ascii_graphic);
        match value.to_str().ok().filter(|key| plain(key.as_bytes())) {
            Some(key) if values.next().is_none() => Ok(Some(Self(key.into()))),
            _ => {
                let message = format!("The Idempotency-Key must be sent once, with 1 to {LONGEST} visible characters.");
                Err(ApiError::new(Code::InvalidIdempotencyKey, message))
            }
        }
    }

    /// Takes the key for the response of this id; or says which response the request has already.
    pub(crate) async fn claim(
        self,
        context: &RequestContext,
        body: &Bytes,
        store: bool,
        id: &Id,
    ) -> Result<Result<Held, String>, ApiError> {
        let fingerprint = fingerprint(body);
        let keys = &context.app.runtime.keys;
        if !store {
            return keys.enter(context.caller.tenant().clone(), self.0, fingerprint).map(Ok);
        }
        let session = context.session();
        session.ensure_up().await?;
        // Held before it is claimed: a client that leaves in between gives it back all the same.
        keys.state().claimed += 1;
        let (key, response) = (self.0, id.to_string());
        let kind = HeldKind::Claimed { session: session.clone(), key: key.clone(), response, kept: false };
        let mut held = Held { keys: Arc::clone(keys), kind };
        let worker = context.app.runtime.background.worker;
        let new = NewKey { key: &key, fingerprint, response_id: id.as_str(), worker };
        let claimed = session.store().claim_key(new, LEASE, KEEP).await;
        let claimed = session.observe(claimed, || ApiError::response_not_found(id.as_str()))?;
        if claimed != KeyClaim::New {
            held.is_not_ours();
        }
        match claimed {
            KeyClaim::New => Ok(Ok(held)),
            KeyClaim::Known(response) => Ok(Err(response)),
            KeyClaim::Running => Err(in_use()),
            KeyClaim::Different => Err(reused()),
        }
    }
}

/// Of all that makes two requests the same.
fn fingerprint(body: &[u8]) -> [u8; 32] {
    let hash = digest::digest(&digest::SHA256, body);
    hash.as_ref().first_chunk().copied().unwrap_or_default()
}

fn in_use() -> ApiError {
    let message = "A request with the same Idempotency-Key is being answered. Please retry in a moment.";
    ApiError { retry_after: Some(1), ..ApiError::new(Code::IdempotencyKeyInUse, message) }
}

fn reused() -> ApiError {
    ApiError::new(Code::IdempotencyKeyReused, "The Idempotency-Key was used for another request.")
}

impl Keys {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(self: &Arc<Self>, tenant: Tenant, key: Box<str>, fingerprint: [u8; 32]) -> Result<Held, ApiError> {
        let mut state = self.state();
        match state.unwritten.get(&(tenant.clone(), key.clone())) {
            Some(same) if *same == fingerprint => return Err(in_use()),
            Some(_) => return Err(reused()),
            None => {}
        }
        state.unwritten.insert((tenant.clone(), key.clone()), fingerprint);
        Ok(Held { keys: Arc::clone(self), kind: HeldKind::Unwritten(tenant, key) })
    }

    /// Whether there are any whose claims are to be extended.
    pub(crate) fn any(&self) -> bool {
        self.state().claimed > 0
    }

    /// Waits until there is something to give back.
    pub(crate) async fn returned(&self) {
        self.returned.notified().await;
    }

    pub(crate) async fn give_back(&self) {
        let returned = std::mem::take(&mut self.state().returned);
        for (session, key, response) in returned {
            if let Err(error) = session.store().release_key(&key, &response).await {
                // It runs out by itself.
                tracing::debug!(%error, "an idempotency key was not given back");
            }
        }
    }
}

impl Held {
    /// The response is stored: whoever sends the request again gets it.
    pub(crate) fn keep(mut self) {
        self.is_not_ours();
    }

    fn is_not_ours(&mut self) {
        if let HeldKind::Claimed { kept, .. } = &mut self.kind {
            *kept = true;
        }
    }

    /// Gives it back before anybody is told that the request failed: the next try may come at once.
    pub(crate) async fn release(mut self) {
        if let HeldKind::Claimed { session, key, response, kept } = &mut self.kind {
            *kept = session.store().release_key(key, response).await.is_ok();
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.keys.state();
        match &mut self.kind {
            HeldKind::Unwritten(tenant, key) => drop(state.unwritten.remove(&(tenant.clone(), key.clone()))),
            HeldKind::Claimed { session, key, response, kept } => {
                state.claimed -= 1;
                if !*kept {
                    state.returned.push((session.clone(), std::mem::take(key), std::mem::take(response)));
                    self.keys.returned.notify_one();
                }
            }
        }
    }
}
