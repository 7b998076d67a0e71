//! `Idempotency-Key`: a request that is sent again under the same key asks no provider again. It gets the response of the
//! first one, for a day; while that one runs, the news that it does.
//!
//! A key is claimed in the store for the id of the response that will be made, before anybody is asked. Whether the
//! response was stored says then whether the request was answered: a process that died in between has stored nothing, and
//! its key is free when its claim has run out. One that stood still for so long cannot store its response if somebody else
//! has the key by then: the store looks, in the same write. With `store: false` nothing is written: the key is known here,
//! while the request runs.
//!
//! What may be used once, by whoever comes first, is kept in the same place: `used`.

mod used;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest;
use http::HeaderMap;
use store::{KeyClaim, NewKey, Tenant, Tenanted, Worker};
use tokio::sync::Notify;
use wire::id::Id;

use crate::error::{ApiError, Code};
pub(crate) use used::{HeldUse, NewUse, Use};

/// How long a key is known.
const KEEP: Duration = Duration::from_hours(24);

/// How long a key stays claimed when the process dies that has it.
const LEASE: Duration = Duration::from_secs(30);

const LONGEST: usize = 255;

/// How many keys are tried again to be given back to a store that is away.
const MOST_RETURNED: usize = 4096;

/// The key that a client sent.
#[derive(Debug, Clone)]
pub(crate) struct Key(Box<str>);

/// A request that was made before.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) response_id: String,
    pub(crate) stream: bool,
}

/// What a key means for the request that has it.
#[derive(Debug)]
pub(crate) enum Claimed {
    /// It is this request's.
    Ours(Held),
    /// The same request has this response already.
    Known(String),
    /// The same request is being answered.
    Running,
    /// Another request has it.
    Different,
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
    /// What was used and is not written.
    used: used::Remembered,
    /// Claimed in the store.
    claimed: usize,
    /// To be given back there.
    returned: Vec<(Tenanted, Box<str>, String)>,
}

/// A key that is this request's, until its response is stored. Dropped before that, it is free again.
#[derive(Debug)]
pub(crate) struct Held {
    keys: Arc<Keys>,
    kind: HeldKind,
}

#[derive(Debug)]
enum HeldKind {
    Unwritten((Tenant, Box<str>)),
    Claimed { store: Tenanted, key: Box<str>, response: String, kept: bool },
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
}

/// Of all that makes two requests the same.
fn fingerprint(body: &[u8]) -> [u8; 32] {
    let hash = digest::digest(&digest::SHA256, body);
    hash.as_ref().first_chunk().copied().unwrap_or_default()
}

impl Keys {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what is only here of a tenant of which nothing runs.
    pub(crate) fn forget(&self, tenant: &Tenant) {
        let mut state = self.state();
        state.unwritten.retain(|(other, _), _| other != tenant);
        state.used.forget(tenant);
    }

    /// Takes a key of which nothing is written.
    pub(crate) fn enter(self: &Arc<Self>, tenant: &Tenant, key: &Key, body: &[u8]) -> Claimed {
        let (name, fingerprint) = ((tenant.clone(), key.0.clone()), fingerprint(body));
        let mut state = self.state();
        match state.unwritten.get(&name) {
            Some(same) if *same == fingerprint => return Claimed::Running,
            Some(_) => return Claimed::Different,
            None => {}
        }
        state.unwritten.insert(name.clone(), fingerprint);
        Claimed::Ours(Held { keys: Arc::clone(self), kind: HeldKind::Unwritten(name) })
    }

    /// Takes a key for the response of this id.
    pub(crate) async fn claim(
        self: &Arc<Self>,
        store: &Tenanted,
        key: &Key,
        body: &[u8],
        id: &Id,
        worker: Worker,
    ) -> Result<Claimed, store::Error> {
        // Held before it is claimed: a client that leaves in between gives it back all the same.
        self.state().claimed += 1;
        let kind =
            HeldKind::Claimed { store: store.clone(), key: key.0.clone(), response: id.to_string(), kept: false };
        let mut held = Held { keys: Arc::clone(self), kind };
        let new = NewKey { key: &key.0, fingerprint: fingerprint(body), response_id: id.as_str(), worker };
        let claimed = store.claim_key(new, LEASE, KEEP).await?;
        if claimed != KeyClaim::New {
            held.settle();
        }
        Ok(match claimed {
            KeyClaim::New => Claimed::Ours(held),
            KeyClaim::Known(response) => Claimed::Known(response),
            KeyClaim::Running => Claimed::Running,
            KeyClaim::Different => Claimed::Different,
        })
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
        let mut returned = std::mem::take(&mut self.state().returned);
        while let Some((store, key, response)) = returned.pop() {
            if let Err(error) = store.release_key(&key, &response).await {
                // While this process lives, nobody else takes them: they are tried again, when the store is there again.
                tracing::debug!(%error, "an idempotency key was not given back");
                returned.push((store, key, response));
                break;
            }
        }
        let mut state = self.state();
        state.returned.append(&mut returned);
        state.returned.truncate(MOST_RETURNED);
    }
}

impl Held {
    /// The response is stored: whoever sends the request again gets it.
    pub(crate) fn keep(mut self) {
        self.settle();
    }

    fn settle(&mut self) {
        if let HeldKind::Claimed { kept, .. } = &mut self.kind {
            *kept = true;
        }
    }

    /// The key with which the response is to be stored.
    pub(crate) fn claimed(&self) -> Option<&str> {
        match &self.kind {
            HeldKind::Unwritten(_) => None,
            HeldKind::Claimed { key, .. } => Some(key),
        }
    }

    /// Gives it back before anybody is told that the request failed: the next try may come at once.
    pub(crate) async fn release(mut self) {
        if let HeldKind::Claimed { store, key, response, kept } = &mut self.kind {
            *kept = store.release_key(key, response).await.is_ok();
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.keys.state();
        match &mut self.kind {
            HeldKind::Unwritten(name) => drop(state.unwritten.remove(name)),
            HeldKind::Claimed { store, key, response, kept } => {
                state.claimed -= 1;
                if !*kept {
                    state.returned.push((store.clone(), std::mem::take(key), std::mem::take(response)));
                    self.keys.returned.notify_one();
                }
            }
        }
    }
}
