//! What every handler gets with a request: the server, the configuration of this moment, who asks, the account.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use hyper::body::Incoming;
use tokio::time::Instant;
use wire::id::{IdKind, Ids};
use wire::json::Text;
use wire::responses::{CreateResponse, Usage};

use crate::account::Account;
use crate::app::{App, Snapshot};
use crate::body;
use crate::caller::Caller;
use crate::clock;
use crate::config::ModelError;
use crate::error::ApiError;
use crate::limits::{Asks, Tokens};
use crate::prefix::SessionKey;
use crate::session::Session;
use crate::spending;
use crate::tokens::TokenCounts;
use crate::trace::Kind;
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
        account.observed_by(&app.runtime.observers);
        account.routed("background", &caller);
        account.driven(Kind::Background);
        Self { app: Arc::clone(app), snapshot: app.snapshot(), caller, account, ids: clock::ids() }
    }

    /// The surroundings of something that the operator only wants to look at, with a tenant's eyes.
    pub(crate) fn of_onlooker(app: &Arc<App>, caller: Caller) -> Self {
        Self {
            app: Arc::clone(app),
            snapshot: app.snapshot(),
            caller,
            account: Account::of_nobody(),
            ids: clock::ids(),
        }
    }

    /// The surroundings of a turn that the operator runs for a tenant.
    pub(crate) fn of_operator(app: &Arc<App>, caller: Caller, route: &'static str) -> Result<Self, ApiError> {
        let mut ids = clock::ids();
        let account = Account::of_job(ids.make(IdKind::Request).as_str());
        account.observed_by(&app.runtime.observers);
        account.routed(route, &caller);
        account.works_for(app.runtime.presence.enter(caller.tenant())?);
        Ok(Self { app: Arc::clone(app), snapshot: app.snapshot(), caller, account, ids })
    }

    /// The surroundings of the turn that this request puts into the background: it has a line of its own in the log.
    pub(crate) fn for_background(&self) -> Self {
        let account = Account::of_job(self.account.request_id().to_str().unwrap_or_default());
        account.routed("background", &self.caller);
        self.account.passes_trace_to(&account);
        account.driven(Kind::Background);
        account.observed_by(&self.app.runtime.observers);
        self.account.passes_work_to(&account);
        Self { account, ..self.clone() }
    }

    /// An upstream took this body: what is to be learned from it is looked at now, before it is gone.
    pub(crate) fn sent(&self, failover: &Failover, request: &CreateResponse<'_>, body: &[u8]) {
        let (provider, model) = (&failover.provider().name, failover.model());
        self.compare(&format!("{provider}/{model}"), request, body);
        if let Some(estimated) = self.tokens().sample(provider, model, body) {
            self.account.estimated(provider, model, estimated);
        }
    }

    /// How much of the body the target saw in the request before, of the session that the client names: by a key, as a
    /// conversation, or as the response that this one follows.
    fn compare(&self, target: &str, request: &CreateResponse<'_>, body: &[u8]) {
        let Some(response_id) = self.account.response_id() else { return };
        let tenant = self.caller.tenant().name();
        let key = |session| SessionKey { tenant, session, target };
        let named = request.prompt_cache_key.or(request.conversation.map(|conversation| conversation.id));
        let (named, previous) = (named.map(Text::decode), request.previous_response_id.map(Text::decode));
        let (before, after) = match (&named, &previous) {
            (Some(session), _) => (Some(&**session), &**session),
            (None, previous) => (previous.as_deref(), response_id.as_str()),
        };
        if let Some(shared) = self.app.runtime.prefixes.measure(before.map(key), key(after), body) {
            self.account.shared(shared);
        }
    }

    /// An upstream answer has ended, and this is what it took, if the provider says so.
    pub(crate) fn reported(&self, usage: Option<Usage>) {
        if let (Some(usage), Some((provider, model, estimated))) = (usage, self.account.take_estimated()) {
            self.tokens().learn(&provider, &model, estimated, usage.input_tokens);
        }
    }

    /// What is known of the tokens of models from the caller's requests.
    pub(crate) fn tokens(&self) -> Arc<TokenCounts> {
        self.app.runtime.tokens.of(self.caller.tenant())
    }

    /// Those who may serve this `model` for the caller.
    pub(crate) fn failover(&self, model: &str) -> Result<Failover, ModelError> {
        self.snapshot.failover(model, &self.app.runtime, self.caller.tenant(), &self.account)
    }

    /// Ready when this request must end at once: the server does, or all of its tenant's work.
    pub(crate) async fn must_end(&self) {
        self.app.runtime.presence.must_end(self.caller.tenant()).await;
    }

    /// The caller's sessions.
    pub(crate) fn session(&self) -> Session {
        self.app.runtime.session(&self.caller)
    }

    /// Lets something begin, if whoever asks may, and the server can bear it. Its place is kept until the account closes.
    /// `targets`: who may be sent about so many tokens.
    pub(crate) async fn admit(
        &self,
        asks: Asks,
        targets: Option<&Failover>,
        tokens: impl Fn() -> Tokens + Copy,
    ) -> Result<(), ApiError> {
        let runtime = &self.app.runtime;
        self.account.counted_by(&runtime.spending);
        // A background turn that the store could not serve is begun again: its own place must not be in its way.
        self.account.give_up_permit();
        let grant = self.caller.grant();
        let mut counted = None;
        if let Some(grant) = grant.filter(|grant| spending::is_limited(grant)) {
            let nanodollars = targets.map_or(0, |failover| failover.cost(*counted.insert(tokens())));
            match runtime.spending.check(grant, nanodollars).await {
                Ok(reservation) => self.account.reserved(reservation),
                Err(error) => {
                    self.account.limited(runtime.limits.left(grant).await);
                    return Err(error);
                }
            }
        }
        let admitted = runtime.limits.admit(grant, asks, || counted.unwrap_or_else(tokens)).await;
        if grant.is_some() {
            self.account.limited(admitted.rates);
        }
        self.account.permitted(admitted.permit?);
        Ok(())
    }

    /// What a turn continues costs as well, which is known only now.
    pub(crate) async fn set_aside(
        &self,
        failover: &Failover,
        tokens: impl FnOnce() -> Tokens,
        past: usize,
    ) -> Result<(), ApiError> {
        let Some(grant) = self.caller.grant().filter(|grant| past > 0 && spending::is_limited(grant)) else {
            return Ok(());
        };
        self.account.not_reserved();
        let nanodollars = failover.cost(tokens().after(past));
        self.account.reserved(self.app.runtime.spending.check(grant, nanodollars).await?);
        Ok(())
    }

    /// The whole body of a request that says it is JSON.
    pub(crate) async fn read_json(&self, headers: &HeaderMap, incoming: Incoming) -> Result<Bytes, ApiError> {
        let (limits, began) = (self.snapshot.body_limits(&self.app.runtime, &self.caller), Instant::now());
        let bytes = body::read_json(headers, incoming, &limits).await;
        self.account.pace().waited_client(began.elapsed());
        let bytes = bytes?;
        self.account.received(bytes.len());
        Ok(bytes)
    }
}
