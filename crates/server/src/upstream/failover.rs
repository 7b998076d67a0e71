//! One request goes to the targets that may serve it, one after the other, until one accepts.
//!
//! Every target gets its turn before any gets a second one; second turns come after a wait, within the target's
//! budget. All of this ends before anything of the answer was sent on: what has begun to answer is never replaced.

mod place;

use std::borrow::Cow;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bridge::{Action, AnswerDialect, Dialect, Failure, FailureClass, LimitField, Needs, Note, Refusal, Unsupported};
use bytes::Bytes;
use http::HeaderValue;
use providers::{Price, Wire};
use store::Tenant;
use tokio::time::Instant;
use wire::responses::Usage;

use super::affinity::Affinity;
use super::budget::{Budget, Counted};
use super::health::ModelHealth;
use super::load::OpenRequest;
use super::provider::{ModelProfile, Provider};
use super::refused::{Refused, Remedy};
use super::replica::Replica;
use super::watching::{self, Watching};
use super::{Accepted, Deadlines, Outgoing, breaker, fit};
use crate::account::{Account, Body};
use crate::clock;
use crate::config::ResilienceConfig;
use crate::limits::Tokens;
use crate::tokens::TokenCounts;
use crate::trace::Attempted;
use place::unless_it_falls;

/// How many members one target may refuse, one after the other, before its refusal counts.
const REPAIRS: usize = 4;

/// The targets of one request, and what each has said so far.
#[derive(Debug)]
pub(crate) struct Failover {
    candidates: Vec<Candidate>,
    policy: ResilienceConfig,
    /// Whose turn it is.
    at: usize,
    sent: usize,
    retries: u32,
    /// The client asks again by itself when a target asks to slow down.
    leaves_rate_limits: bool,
    /// The client hears nothing before all of the answer is there.
    patient: bool,
    wasted: Option<Usage>,
    /// The conversation that the request belongs to, where anything depends on it.
    affinity: Option<Affinity>,
    /// Who has answered an earlier round.
    stays: Option<Arc<Replica>>,
    /// Counts at the address that was chosen, until it is sent there.
    chosen: Option<OpenRequest>,
    /// Which targets' refusals named what they will not take, and what.
    repaired: Vec<(usize, Refusal)>,
    /// What was refused last, and is to be sent in another way: if it turns out the same, that refusal counts.
    mending: Option<(Bytes, Option<HeaderValue>, Refused)>,
    /// What was learned before and changed this request without the plan's knowing.
    used: Vec<Unsupported>,
    /// Knows when the request came, which its one deadline counts from, and learns of every try.
    account: Account,
    /// For whom what targets say is remembered.
    learner: Learner,
    /// What is reported if nothing helps, and whether waiting might help the client.
    failure: Option<(Refused, Remedy)>,
    live: Option<Counted>,
    retrying: Option<Counted>,
}

/// Whose request it is, and what is known of models from that tenant's requests alone.
#[derive(Debug, Clone)]
pub(crate) struct Learner {
    pub(crate) tenant: Tenant,
    /// Learns how much a target takes, from one that says so.
    pub(crate) tokens: Arc<TokenCounts>,
}

/// A target that may serve the request, at one of its provider's addresses.
#[derive(Debug)]
struct Candidate {
    /// The number of the target; its addresses are side by side.
    target: usize,
    provider: Arc<Provider>,
    model: String,
    profile: Arc<ModelProfile>,
    replica: Arc<Replica>,
    /// How the model fares there.
    health: Arc<ModelHealth>,
    /// What it does not take, wherever it is.
    lessons: Arc<ModelHealth>,
    /// The addresses of this target are in the order in which they are to be asked.
    placed: bool,
    /// It will not do for this request.
    out: bool,
    /// When it wants to be asked again.
    not_before: Option<Instant>,
    /// What it costs, once that was asked.
    price: OnceLock<Option<Arc<Price>>>,
}

impl Candidate {
    fn price(&self) -> Option<&Arc<Price>> {
        self.price.get_or_init(|| self.provider.price(&self.model)).as_ref()
    }
}

/// What came of sending.
#[derive(Debug)]
pub(crate) enum Step {
    Accepted(Box<Accepted>),
    /// It is another target's turn, or the same one's in another way: plan anew.
    Again,
    Failed(Refused),
}

impl Failover {
    /// In the order in which they should be tried; at least one.
    pub(crate) fn new(
        targets: Vec<(Arc<Provider>, String)>,
        policy: ResilienceConfig,
        account: Account,
        learner: Learner,
    ) -> Self {
        let candidates = targets
            .into_iter()
            .enumerate()
            .flat_map(|(target, (provider, model))| Candidate::at_each_address(target, &provider, &model));
        Self {
            candidates: candidates.collect(),
            policy,
            at: 0,
            sent: 0,
            retries: 0,
            leaves_rate_limits: false,
            patient: false,
            wasted: None,
            affinity: None,
            stays: None,
            chosen: None,
            repaired: Vec::new(),
            mending: None,
            used: Vec::new(),
            account,
            learner,
            failure: None,
            live: None,
            retrying: None,
        }
    }

    /// Leaves out targets that lack what the request cannot do without, unless all do. Asked only if there is a
    /// choice.
    pub(crate) fn require(&mut self, needs: impl FnOnce() -> Needs) {
        if self.candidates.len() < 2 {
            return;
        }
        let needs = needs();
        let meets = |candidate: &Candidate| needs.are_met_by(&candidate.profile.dialect);
        if !self.candidates.iter().any(meets) {
            return;
        }
        for candidate in &mut self.candidates {
            candidate.out = !needs.are_met_by(&candidate.profile.dialect);
        }
        self.at = self.candidates.iter().position(|candidate| !candidate.out).unwrap_or(0);
    }

    /// A target that asks to slow down is not asked again for this request, until something has been made that the
    /// client's next try would lose. Others still have their turns.
    pub(crate) const fn leave_rate_limits(&mut self) {
        self.leaves_rate_limits = true;
    }

    /// The client hears nothing before all of the answer is there: until its first content another target can take
    /// over, however late that comes.
    pub(crate) const fn wait_for_content(&mut self) {
        self.patient = true;
    }

    /// The response goes on with another upstream answer: the same target first, with as many tries as before.
    pub(crate) fn next_round(&mut self) {
        self.leaves_rate_limits = false;
        (self.sent, self.retries, self.failure) = (0, 0, None);
        self.used.clear();
        let addresses = self.addresses();
        self.at = addresses.start;
        let several = addresses.len() > 1;
        for candidate in &mut self.candidates[addresses] {
            (candidate.out, candidate.placed) = (false, !several);
        }
    }

    pub(crate) fn provider(&self) -> &Arc<Provider> {
        &self.candidates[self.at].provider
    }

    /// How long the target may take, and until when.
    pub(crate) fn deadlines(&self, stream: bool) -> Deadlines {
        self.provider().deadlines(stream, self.account.began())
    }

    /// The model's name at the provider.
    pub(crate) fn model(&self) -> &str {
        &self.candidates[self.at].model
    }

    /// The target's dialect, as far as we have come to know it.
    pub(crate) fn dialect(&self) -> Cow<'_, Dialect> {
        let profile = &self.candidates[self.at].profile;
        let lessons = self.lessons();
        if lessons.is_empty() {
            return Cow::Borrowed(&profile.dialect);
        }
        Cow::Owned(bridge::adapted(&profile.dialect, &lessons))
    }

    /// What is tried out with the request, as far as the target takes it.
    fn betas(&self) -> Option<HeaderValue> {
        match self.dialect() {
            Cow::Borrowed(_) => self.candidates[self.at].profile.betas.clone(),
            Cow::Owned(dialect) => ModelProfile::betas_of(&dialect),
        }
    }

    /// What the target does not take: as it said of the tenant's earlier requests, and of this very one.
    fn lessons(&self) -> Vec<Unsupported> {
        let mut lessons = self.candidates[self.at].lessons.lessons(&self.learner.tenant);
        lessons.extend(self.repairs().map(|refusal| refusal.unsupported));
        lessons
    }

    /// What the target whose turn it is refused in this request.
    fn repairs(&self) -> impl Iterator<Item = Refusal> {
        let now = self.candidates[self.at].target;
        self.repaired.iter().filter(move |(target, _)| *target == now).map(|(_, refusal)| *refusal)
    }

    /// Whether no target would need to be told what is in a file.
    pub(crate) fn all_take_files(&self) -> bool {
        let takes = |profile: &ModelProfile| profile.wire == Wire::Responses || profile.dialect.request.content.files;
        self.candidates.iter().all(|candidate| candidate.out || takes(&candidate.profile))
    }

    /// Whether any target gets tools and items as the client wrote them, and may run what nobody here knows.
    pub(crate) fn may_forward(&self) -> bool {
        self.candidates.iter().any(|candidate| candidate.profile.wire == Wire::Responses)
    }

    pub(crate) fn wire(&self) -> Wire {
        self.candidates[self.at].profile.wire
    }

    /// What it costs, where that is known.
    pub(crate) fn price(&self) -> Option<Arc<Price>> {
        self.candidates[self.at].price().cloned()
    }

    /// Leaves out the targets whose price nobody knows. False, and nothing is changed: it is known of none. To be called
    /// before anybody is asked.
    pub(crate) fn keep_priced(&mut self) -> bool {
        let is_priced = |candidate: &Candidate| candidate.price().is_some();
        if !self.candidates.iter().any(is_priced) {
            return false;
        }
        self.candidates.retain(is_priced);
        self.at = 0;
        true
    }

    /// What so many tokens cost at the most, in nanodollars.
    pub(crate) fn cost(&self, tokens: Tokens) -> u64 {
        let usage = Usage { input_tokens: tokens.input, output_tokens: tokens.output, ..Usage::default() };
        let prices = self.candidates.iter().filter_map(Candidate::price);
        prices.map(|price| price.cost(&usage)).max().unwrap_or(0)
    }

    /// How many tokens it takes, input and output together, where that is known.
    pub(crate) fn context_window(&self) -> Option<u64> {
        let Candidate { provider, model, .. } = &self.candidates[self.at];
        self.learner.tokens.window(&provider.name, model, provider.context_window(model))
    }

    /// How its answers read.
    pub(crate) fn answer(&self) -> Arc<AnswerDialect> {
        Arc::clone(&self.candidates[self.at].profile.answer)
    }

    /// What this way of getting an answer has cost the client.
    pub(crate) fn notes(&self) -> Vec<Note> {
        let note = |unsupported: &Unsupported| {
            Note::new(Action::Repaired, unsupported.member(), "the provider said that it does not take it")
        };
        let mut notes: Vec<Note> = self.used.iter().map(note).collect();
        let is_another = self.candidates[self.at].target != self.candidates[0].target;
        if let Some((refused, _)) = &self.failure.as_ref().filter(|_| is_another) {
            let class = refused.failure.class.code();
            let message = format!("answered by {}, after another failed ({class})", self.name());
            notes.push(Note::new(Action::Degraded, "model", message));
        }
        notes
    }

    /// The request cannot be planned for this target. Gives what went wrong before, if nobody else is left; None if
    /// nothing was sent at all.
    pub(crate) fn unfit(&mut self) -> Result<(), Option<Box<Refused>>> {
        let addresses = self.addresses();
        self.candidates[addresses].iter_mut().for_each(|candidate| candidate.out = true);
        match self.first_turn() {
            Some(at) => {
                self.at = at;
                Ok(())
            }
            None => Err(self.failure.take().map(|(refused, _)| Box::new(refused))),
        }
    }

    /// Sends the request to the target whose turn it is, and waits until that has accepted or refused it.
    pub(crate) async fn send(&mut self, body: &Bytes, cache_key: Option<&str>, stream: bool) -> Step {
        let betas = self.betas();
        if let Some((refused, before, refusal)) = self.mending.take()
            && refused == *body
            && before == betas
        {
            return self.refused(refusal).await;
        }
        self.place();
        let Candidate { provider, health, replica, .. } = &self.candidates[self.at];
        let (provider, health, replica) = (Arc::clone(provider), Arc::clone(health), Arc::clone(replica));
        let open = self.chosen.take().unwrap_or_else(|| replica.load.enter());
        let alone = self.first_turn().is_none();
        if let Err(class) = health.breaker.enter(alone) {
            count(&health.counts.kept_away);
            drop(open);
            self.asked(0);
            self.account.attempted(Attempted::KEPT_AWAY, None, Duration::ZERO);
            return self.refused(kept_away(class)).await;
        }
        self.live.get_or_insert_with(|| Budget::live(&health));
        self.sent += 1;
        count(&health.counts.sent);
        self.asked(body.len());
        let began = Instant::now();
        let (dialect, outgoing) = (self.answer(), self.outgoing(body, betas.clone(), cache_key));
        let sending = replica.client.send(outgoing, stream, &dialect, self.deadlines(stream), alone);
        let sent = unless_it_falls(&replica, alone, pin!(sending)).await;
        let refused = match sent {
            Ok(mut accepted) => {
                count(&health.counts.accepted);
                if accepted.resent {
                    count(&health.counts.resent);
                    self.account.attempted(Attempted::CONNECTION_ENDED, None, Duration::ZERO);
                    self.asked(body.len());
                }
                self.account.attempted(Attempted::ACCEPTED, Some(200), began.elapsed());
                self.capture(&provider, body, None);
                if health.breaker.begins() {
                    self.recovered();
                }
                self.used = used(&self.lessons(), body, stream);
                self.learn();
                accepted.body.report_to(Watching { name: self.name(), health, replica: Arc::clone(&replica) }, open);
                replica.served();
                (self.live, self.retrying, self.stays) = (None, None, Some(replica));
                return Step::Accepted(Box::new(accepted));
            }
            Err(refused) => self.too_long(refused, body),
        };
        self.wasted = refused.usage;
        drop(open);
        if refused.failure.class == FailureClass::Unreachable
            && refused.remedy == Remedy::Elsewhere
            && provider.connections.replicas.are_several()
        {
            replica.unreachable();
        }
        let status = refused.status.or(refused.failure.by_status);
        self.account.attempted(refused.failure.class.code(), status, began.elapsed());
        self.capture(&provider, body, refused.body.as_deref());
        match refused.is_trouble() {
            Some(true) if health.breaker.bad(refused.failure.class) => watching::failing(&self.name()),
            Some(false) => self.alive(&health),
            _ => {}
        }
        if self.repair(&refused, body) {
            self.mending = Some((body.clone(), betas, refused));
            return Step::Again;
        }
        self.refused(refused).await
    }
}

// === what is next ===

impl Failover {
    fn outgoing(&self, body: &Bytes, betas: Option<HeaderValue>, cache_key: Option<&str>) -> Outgoing {
        Outgoing {
            wire: self.wire(),
            model: self.model().to_owned(),
            body: body.clone(),
            betas,
            cache_key: cache_key.map(str::to_owned),
            propagated: self.account.propagated(),
            affinity: self.affinity,
            patient: self.patient,
            account: self.account.clone(),
        }
    }

    /// What the last target that was asked has counted, of an answer that came to nothing; once.
    pub(crate) const fn wasted(&mut self) -> Option<Usage> {
        self.wasted.take()
    }

    /// A refusal that names what it will not take: once more without it. Servers name one member at a time; one that
    /// names the same again does not mean it.
    fn repair(&mut self, refused: &Refused, body: &[u8]) -> bool {
        let Some(refusal) = refused.failure.unsupported else { return false };
        let Some(unsupported) = refusal.unsupported.within(body) else { return false };
        let is_known = self.repairs().any(|before| before.unsupported == unsupported);
        if is_known || self.repairs().count() >= REPAIRS {
            return false;
        }
        count(&self.candidates[self.at].health.counts.repaired);
        self.repaired.push((self.candidates[self.at].target, Refusal { unsupported, ..refusal }));
        true
    }

    /// What was refused with some members was accepted without them: later requests of the tenant need not try, if it was
    /// not the client who said so.
    fn learn(&self) {
        for refusal in self.repairs() {
            let (upstream, member) = (self.name(), refusal.unsupported.member());
            if self.candidates[self.at].lessons.learn(&self.learner.tenant, refusal) {
                tracing::warn!(upstream, member, proof = ?refusal.proof, "not taken there; left out for a while");
            } else {
                tracing::info!(upstream, member, "not taken there, or the client's own words: left out this once");
            }
        }
    }

    /// Learns from a refusal of what does not fit, and says which part of it is too much.
    fn too_long(&self, refused: Refused, body: &[u8]) -> Refused {
        if refused.failure.class != FailureClass::ContextOverflow {
            return refused;
        }
        let (provider, model) = (&self.provider().name, self.model());
        if !refused.failure.basis.is_hearsay() {
            self.learner.tokens.overflowed(provider, model, &refused.failure.message);
        }
        let input = || self.learner.tokens.estimate(provider, model, body);
        Refused { failure: fit::judged(refused.failure, body, input), ..refused }
    }

    async fn refused(&mut self, refused: Refused) -> Step {
        let (failure, mut remedy) = (&refused.failure, refused.remedy);
        // An upstream may repeat what it was sent, whatever its status, and that is not for the log; what we say ourselves of
        // the way there is.
        let ours = failure.class == FailureClass::Unreachable;
        tracing::info!(
            upstream = self.name(),
            attempt = self.sent,
            class = failure.class.code(),
            ?remedy,
            detail = ours.then(|| failure.shown()).as_deref(),
            "refused"
        );
        let is_left = self.leaves_rate_limits && failure.class == FailureClass::RateLimit;
        let wait = failure.retry_after.map(|seconds| Duration::from_secs(u64::from(seconds)));
        if remedy == Remedy::Again && wait.is_some_and(|wait| wait > self.policy.max_wait) {
            remedy = Remedy::Elsewhere;
        }
        let candidate = &mut self.candidates[self.at];
        candidate.out = remedy != Remedy::Again || is_left;
        candidate.not_before = wait.map(|wait| Instant::now() + wait);
        // Of several failures the one counts that will pass.
        let passing = |remedy: Remedy| remedy == Remedy::Again;
        if !self.failure.as_ref().is_some_and(|(_, before)| passing(*before) && !passing(remedy)) {
            self.failure = Some((refused, remedy));
        }
        if remedy != Remedy::Nothing && self.next().await {
            return Step::Again;
        }
        let unknown = || Failure::new(FailureClass::Server, "The provider failed.").into();
        Step::Failed(self.failure.take().map_or_else(unknown, |(refused, _)| refused))
    }

    /// Makes it somebody's turn, after a wait if need be. False: nobody is left, or it would take too long.
    async fn next(&mut self) -> bool {
        (self.live, self.retrying) = (None, None);
        self.leave_out_the_late();
        if let Some(at) = self.first_turn() {
            count(&self.candidates[self.at].health.counts.left);
            self.at = at;
            return true;
        }
        let Some(at) = self.candidates.iter().position(|candidate| !candidate.out) else { return false };
        // With several targets, those were the retries.
        if self.sent > self.policy.retries as usize {
            return false;
        }
        let Candidate { provider, health, not_before, .. } = &self.candidates[at];
        let Some(retrying) = Budget::retry(health) else {
            tracing::info!(upstream = self.name(), "too many retries are under way");
            return false;
        };
        let now = Instant::now();
        let asked = not_before.map_or(Duration::ZERO, |then| then.saturating_duration_since(now));
        let wait = asked + jitter(self.policy.backoff, self.retries, clock::random());
        if now + wait >= provider.deadlines(true, self.account.began()).until {
            return false;
        }
        count(&health.counts.retried);
        (self.live, self.retrying) = (Some(Budget::live(health)), Some(retrying));
        (self.at, self.retries) = (at, self.retries + 1);
        tokio::time::sleep(wait).await;
        self.account.pace().waited_upstream(wait);
        true
    }

    /// What was sent, and what came of it if that was a refusal, where bodies are kept.
    fn capture(&self, provider: &Provider, sent: &[u8], refusal: Option<&[u8]>) {
        let redactor = provider.connections.redactor();
        for (body, bytes) in [(Body::ChatRequest, Some(sent)), (Body::ChatResponse, refusal)] {
            if let (Some(bytes), Some(mut tape)) = (bytes, self.account.tape()) {
                tape.push(bytes);
                self.account.capture(body, Some(tape), |bytes| redactor.bytes(bytes, 0));
            }
        }
    }

    /// The next target that has not had a turn.
    fn first_turn(&self) -> Option<usize> {
        let untried = self.at + 1..self.candidates.len();
        (self.retries == 0).then_some(untried)?.find(|at| !self.candidates[*at].out)
    }

    fn alive(&self, health: &ModelHealth) {
        if health.breaker.good() {
            self.recovered();
        }
    }

    fn recovered(&self) {
        watching::recovered(&self.name(), &self.candidates[self.at].replica);
    }

    fn name(&self) -> String {
        format!("{}/{}", self.provider().name, self.model())
    }
}

/// The lessons that changed this request: of the others the plan has said so.
fn used(lessons: &[Unsupported], body: &[u8], stream: bool) -> Vec<Unsupported> {
    let changed = |lesson: &Unsupported| match lesson {
        Unsupported::Limit(name) => {
            let other = match name {
                LimitField::MaxTokens => LimitField::MaxCompletionTokens,
                LimitField::MaxCompletionTokens => LimitField::MaxTokens,
            };
            Unsupported::Limit(other).is_in(body)
        }
        Unsupported::StreamOptions => stream,
        Unsupported::Thoughts => true,
        _ => false,
    };
    lessons.iter().copied().filter(changed).collect()
}

/// What the breaker remembers, as something that will pass soon.
fn kept_away(class: FailureClass) -> Refused {
    let retry_after = Some(u32::try_from(breaker::PROBE.as_secs()).unwrap_or(1));
    let failure = Failure::new(class, "The provider has been failing and is left alone for a moment.");
    Refused::new(Failure { retry_after, ..failure }, Remedy::Elsewhere)
}

/// A random part of a bound that doubles with each retry: clients that failed together do not come back together.
fn jitter(backoff: Duration, retries: u32, draw: u64) -> Duration {
    let bound = backoff.saturating_mul(1 << retries.min(6));
    let most = u64::try_from(bound.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(if most == 0 { 0 } else { draw % (most + 1) })
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_random_and_their_bound_doubles() {
        let backoff = Duration::from_millis(100);
        for (retries, bound) in [(0, 100), (1, 200), (2, 400), (60, 6400)] {
            let waits: Vec<Duration> = (0..1000).map(|draw| jitter(backoff, retries, draw * 7919 * 7919)).collect();
            let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
            assert!(*most <= Duration::from_millis(bound) && *most > Duration::from_millis(bound * 9 / 10), "{most:?}");
            assert!(*least < Duration::from_millis(bound / 10), "{least:?}");
        }
        assert_eq!(jitter(Duration::ZERO, 3, u64::MAX), Duration::ZERO);
    }
}
