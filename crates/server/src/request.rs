//! What every handler gets with a request: the server, the configuration of this moment, who asks, the account.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use hyper::body::Incoming;
use wire::id::Ids;
use wire::responses::Usage;

use crate::account::Account;
use crate::app::{App, Snapshot};
use crate::body;
use crate::caller::Caller;
use crate::clock;
use crate::error::ApiError;
use crate::session::Session;
use crate::upstream::Failover;

/// One request's surroundings.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    pub(crate) app: Arc<App>,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) caller: Caller,
    pub(crate) account: Account,
    pub(crate) ids: Ids,
}

impl RequestContext {
    /// The surroundings of a background turn that was taken from the queue: with the configuration of this moment.
    pub(crate) fn of_job(app: &Arc<App>, caller: Caller, request_id: &str) -> Self {
        let account = Account::of_job(request_id);
        account.routed("background", &caller);
        Self { app: Arc::clone(app), snapshot: app.snapshot(), caller, account, ids: clock::ids() }
    }

    /// The surroundings of the turn that this request puts into the background: it has a line of its own in the log.
    pub(crate) fn for_background(&self) -> Self {
        let account = Account::of_job(self.account.request_id().to_str().unwrap_or_default());
        account.routed("background", &self.caller);
        Self { account, ..self.clone() }
    }

    /// An upstream took this body: what is to be learned from it is looked at now, before it is gone.
    pub(crate) fn sent(&self, failover: &Failover, body: &[u8]) {
        let (provider, model) = (&failover.provider().name, failover.model());
        if let Some(estimated) = self.app.runtime.tokens.sample(provider, model, body) {
            self.account.estimated(provider, model, estimated);
        }
    }

    /// An upstream answer has ended, and this is what it took, if the provider says so.
    pub(crate) fn reported(&self, usage: Option<Usage>) {
        if let (Some(usage), Some((provider, model, estimated))) = (usage, self.account.take_estimated()) {
            self.app.runtime.tokens.learn(&provider, &model, estimated, usage.input_tokens);
        }
    }

    /// The caller's sessions.
    pub(crate) fn session(&self) -> Session {
        self.app.runtime.session(&self.caller)
    }

    /// The whole body of a request that says it is JSON.
    pub(crate) async fn read_json(&self, headers: &HeaderMap, incoming: Incoming) -> Result<Bytes, ApiError> {
        let limits = self.snapshot.body_limits(&self.app.runtime);
        let bytes = body::read_json(headers, incoming, &limits).await?;
        self.account.received(bytes.len());
        Ok(bytes)
    }
}
