//! Webhooks: others are told when a background response has ended.
//!
//! What is to be told is stored in the same commit as the end, and told by whichever instance comes to it, at least once:
//! until the receiver says that it has it, or for about a day. The secrets that it is signed with are in the configuration
//! and nowhere else: a stored notice has its receiver's URL, by which the secret is found again after a restart or a
//! reload. No turn ever waits for a receiver.
//!
//! ```text
//!  end of a turn ─▶ notices (stored with it) ─▶ deliver ─▶ outbound: a public address, unless it may be another
//!                                                  └─▶ done, or put off, or given up
//! ```

mod deliver;
mod send;

use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use store::{NewNotice, Status, Store, Tenant};
use tokio::sync::Notify;
use wire::id::{IdKind, Ids};
use wire::json::{ObjectWriter, Raw};

use crate::clock;
use crate::config::{WebhookConfig, WebhookEvent};
pub(crate) use deliver::deliver;

/// Who is told of the ends of background responses, and what is still to be told.
#[derive(Debug)]
pub(crate) struct Webhooks {
    store: Store,
    endpoints: RwLock<Arc<[WebhookConfig]>>,
    /// There may be something to tell.
    wake: Notify,
}

impl Webhooks {
    pub(crate) fn new(store: Store, endpoints: &[WebhookConfig]) -> Arc<Self> {
        Arc::new(Self { store, endpoints: RwLock::new(endpoints.into()), wake: Notify::new() })
    }

    /// From now on these are told, also of what ended before.
    pub(crate) fn replace(&self, endpoints: &[WebhookConfig]) {
        *self.endpoints.write().unwrap_or_else(PoisonError::into_inner) = endpoints.into();
        self.wake();
    }

    fn endpoints(&self) -> Arc<[WebhookConfig]> {
        Arc::clone(&self.endpoints.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is to be stored with the end of a tenant's response, of which this is the object without its output. Only ends of
    /// background responses are told.
    pub(crate) fn notices(&self, tenant: &Tenant, response: &str, status: Status, object: &[u8]) -> Vec<NewNotice> {
        let endpoints = self.endpoints();
        let Some(event) = event(status).filter(|_| !endpoints.is_empty() && is_background(object)) else {
            return Vec::new();
        };
        let mut ids = clock::ids();
        let wanted = endpoints.iter().filter(|endpoint| endpoint.wants(event, tenant));
        wanted.map(|endpoint| notice(&mut ids, endpoint, event, response)).collect()
    }

    /// Something to tell was stored.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }
}

const fn event(status: Status) -> Option<WebhookEvent> {
    match status {
        Status::Completed => Some(WebhookEvent::Completed),
        Status::Failed => Some(WebhookEvent::Failed),
        Status::Incomplete => Some(WebhookEvent::Incomplete),
        Status::Cancelled => Some(WebhookEvent::Cancelled),
        Status::Queued | Status::InProgress => None,
    }
}

fn is_background(object: &[u8]) -> bool {
    let object = str::from_utf8(object).ok().and_then(|text| Raw::parse(text).ok());
    object.and_then(|object| object.get("background")).is_some_and(|value| value.as_str() == "true")
}

fn notice(ids: &mut Ids, endpoint: &WebhookConfig, event: WebhookEvent, response: &str) -> NewNotice {
    let id = ids.make(IdKind::Event).to_string();
    let mut body = Vec::with_capacity(224);
    let mut object = ObjectWriter::new(&mut body);
    object.text("id", &id).text("object", "event").int("created_at", clock::unix_seconds());
    object.text("type", event.name());
    let mut data = ObjectWriter::new(object.key("data"));
    data.text("id", response);
    data.end();
    object.end();
    NewNotice { id, endpoint: endpoint.url.clone(), body: Bytes::from(body) }
}
