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
use crate::error::{ApiError, Code};
use crate::limits::{Asks, Tokens};
use crate::prefix::SessionKey;
use crate::session::Session;
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

    /// What is said then.
    pub(crate) fn must_end_because(&self) -> ApiError {
        self.app.runtime.presence.ended()
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
        let grant = self.caller.grant();
        let (mut counted, mut reservation) = (None, None);
        if let Some(grant) = grant.filter(|grant| grant.has_budget()) {
            let is_later = !asks.runs();
            let cost = |failover: &Failover| failover.cost(*counted.insert(tokens()));
            let nanodollars = targets.filter(|_| !is_later).map_or(0, cost);
            match runtime.spending.check(grant, nanodollars).await {
                // What runs later sets aside what it costs then, and waits for it.
                Ok(_) if is_later => {}
                Err(error) if is_later && error.code == Code::BudgetInUse => {}
                Ok(made) => reservation = Some(made),
                Err(error) => {
                    self.account.limited(runtime.limits.left(grant).await);
                    return Err(error);
                }
            }
        }
        let admitted = runtime.limits.admit(grant, asks, || counted.unwrap_or_else(tokens)).await;
        self.account.admitted(admitted, reservation)
    }

    /// What a background turn runs in, with its place among the turns of its key: taken before it is put into the queue, so
    /// that nobody else can have it and nothing more waits than may. None if it has to wait for it: others do, or there is
    /// none. Nobody is told of it before it runs: if it is put into the queue, it runs in another.
    pub(crate) async fn take_place(
        &self,
        failover: &Failover,
        tokens: impl Fn() -> Tokens + Copy,
        past: usize,
    ) -> Option<Self> {
        let run = self.for_background();
        run.account.is_told(false);
        let limited = self.caller.grant().filter(|grant| grant.waits_in_line());
        let Some(grant) = limited.filter(|_| !self.app.is_draining()) else { return Some(run) };
        if self.app.runtime.jobs.lines.any(grant.limited_as()) {
            return None;
        }
        let admitted = match run.admit(Asks::Runs, Some(failover), tokens).await {
            Ok(()) => run.set_aside(failover, tokens, past).await,
            refused => refused,
        };
        match admitted {
            Err(error) if error.code.waits_for_place() => None,
            // It finds out once more when it runs, and fails with it.
            Err(_) => {
                run.account.waits();
                Some(run)
            }
            Ok(()) => Some(run),
        }
    }

    /// What a turn continues costs and counts as well, which is known only now; if anything is set aside or held back for it.
    pub(crate) async fn set_aside(
        &self,
        failover: &Failover,
        tokens: impl Fn() -> Tokens,
        past: usize,
    ) -> Result<(), ApiError> {
        let (runtime, tokens) = (&self.app.runtime, || tokens().after(past));
        let Some(grant) = self.caller.grant().filter(|_| past > 0) else { return Ok(()) };
        if self.account.not_reserved() {
            self.account.reserved(runtime.spending.check(grant, failover.cost(tokens())).await?);
        }
        match self.account.permit_with_tokens() {
            Some(permit) => self.account.admitted(runtime.limits.admit_longer(grant, permit, tokens).await, None),
            None => Ok(()),
        }
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
