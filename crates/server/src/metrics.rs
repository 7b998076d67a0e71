//! Numbers for those who watch many servers: counted where something happens, read by whoever asks for `/metrics`
//! (`scrape`). What labels may say is bounded, whatever clients send: names that nobody has configured or listed are
//! `other`. Nothing here waits, and a request that is over takes no lock for longer than a look into a table.

mod distribution;
mod labels;
mod table;

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use foldhash::fast::RandomState;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::pace::Gaps;
use crate::trace::{Attempted, Charge, Facts, Outcome, Trace};
use distribution::Distribution;
pub(crate) use labels::Names;
use labels::{
    CodeLabels, KindLabels, OutcomeLabels, RequestLabels, RouteLabels, TargetLabels, TokenLabels, ToolLabels,
};
pub use table::{METRICS, MetricKind, MetricRow};
pub(crate) use table::{live, register};

/// So many label sets one family may have: beyond them, all labels say `other`.
const MOST_SETS: usize = 5_000;
/// So many targets are known one by one.
const MOST_TARGETS: usize = 2_000;

/// All that is counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// Whether anything is.
    enabled: bool,
    registry: Registry,
    families: Families,
    names: RwLock<Arc<Names>>,
    /// What is counted of each target, by its name; what has no name of its own is there by that of its provider.
    targets: RwLock<HashMap<Arc<str>, Arc<Target>>>,
    /// What is counted of requests that are alike, by a hash of what makes them so.
    rows: RwLock<HashMap<u64, Arc<Row>>>,
    hasher: RandomState,
    /// How many label sets there are of requests, of their durations, and of what of these is ours.
    sets: [AtomicUsize; 3],
    streams: [Gauge; 2],
}

type Dollars = Counter<f64, AtomicU64>;
type Distributions<S> = Family<S, Distribution, fn() -> Distribution>;

#[derive(Debug)]
struct Families {
    requests: Family<RequestLabels, Counter>,
    duration: Distributions<RouteLabels>,
    overhead: Distributions<RouteLabels>,
    errors: Family<CodeLabels, Counter>,
    notes: Family<CodeLabels, Counter>,
    received: Counter,
    sent: Counter,
    attempts: Family<OutcomeLabels, Counter>,
    retries: Family<OutcomeLabels, Counter>,
    latency: Distributions<TargetLabels>,
    first_token: Distributions<TargetLabels>,
    gaps: Distributions<TargetLabels>,
    tokens: Family<TokenLabels, Counter>,
    cost: Family<TargetLabels, Dollars>,
    tools: Family<ToolLabels, Counter>,
    reading: Distribution,
    committing: Distribution,
    streams: Family<KindLabels, Gauge>,
}

/// What is counted of requests that are alike, found once.
#[derive(Debug)]
struct Row {
    requests: Counter,
    duration: Distribution,
    overhead: Distribution,
    target: Option<Arc<Target>>,
}

/// What is counted of one target, found once.
#[derive(Debug)]
struct Target {
    labels: TargetLabels,
    accepted: Counter,
    latency: Distribution,
    first_token: Distribution,
    gaps: Distribution,
    tokens: [Counter; TokenLabels::KINDS.len()],
    cost: Dollars,
}

/// A stream that is being sent, until this is gone.
#[derive(Debug)]
pub(crate) struct OpenStream(Gauge);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// How a client is told of events.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StreamKind {
    Sse,
    WebSocket,
}

/// Who is paid for calls of hosted tools, among providers. No provider has such a name: a slash would be in its targets.
const TOOLS: &str = "(tools)";

#[expect(clippy::cast_precision_loss, reason = "a sum for people")]
fn in_dollars(nanodollars: u64) -> f64 {
    nanodollars as f64 / 1e9
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new(true)
    }
}

impl Metrics {
    pub(crate) fn new(enabled: bool) -> Self {
        let (families, mut registry) = (Families::new(), Registry::default());
        families.register(&mut registry);
        let stream = |kind| families.streams.get_or_create_owned(&KindLabels { kind });
        let streams = [stream("sse"), stream("websocket")];
        Self {
            enabled,
            registry,
            families,
            names: RwLock::default(),
            targets: RwLock::default(),
            rows: RwLock::default(),
            hasher: RandomState::default(),
            sets: Default::default(),
            streams,
        }
    }

    /// From now on these names have labels of their own.
    pub(crate) fn know(&self, names: Names) {
        *self.names.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(names);
        self.rows.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(crate) fn names(&self) -> Arc<Names> {
        Arc::clone(&self.names.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// A stream begins.
    pub(crate) fn open_stream(&self, kind: StreamKind) -> OpenStream {
        let gauge = &self.streams[kind as usize];
        gauge.inc();
        OpenStream(gauge.clone())
    }

    /// Writes all of it, in the text format of `OpenMetrics` without its end.
    pub(crate) fn write(&self, text: &mut String) {
        // A string takes whatever is written.
        let _ = encode_registry(text, &self.registry);
    }

    /// A request is over.
    pub(crate) fn count(&self, trace: &Trace) {
        if !self.enabled {
            return;
        }
        let Trace { head, facts } = trace;
        let outcome = facts.outcome.unwrap_or(Outcome::ClientLeft);
        let row = self.row(facts, outcome);
        row.requests.inc();
        row.duration.observe(head.took);
        // Of a request that asked nobody, that nobody waited for, or that only follows what runs in the background, it would say
        // nothing.
        if facts.times.opened.is_some() && outcome != Outcome::ClientLeft && !facts.put_off {
            row.overhead.observe(facts.times.own(head.took));
        }
        // What runs in the background came with the request that asked for it.
        if facts.route != Some("background") {
            self.families.received.inc_by(facts.received);
        }
        self.families.sent.inc_by(facts.sent);
        if let Some(time) = facts.times.reading {
            self.families.reading.observe(time);
        }
        if let Some(time) = facts.times.committing {
            self.families.committing.observe(time);
        }
        for note in &facts.notes {
            self.families.notes.get_or_create(&CodeLabels { code: note.code.name() }).inc();
        }
        if let Some(code) = error(facts, outcome) {
            self.families.errors.get_or_create(&CodeLabels { code }).inc();
        }
        if let Some(target) = &row.target {
            self.count_attempts(facts, target);
        }
        for charge in &facts.charges {
            self.count_charge(charge, facts, row.target.as_ref());
        }
    }

    /// What is counted of requests like this one: nearly always found by one look.
    fn row(&self, facts: &Facts, outcome: Outcome) -> Arc<Row> {
        let (route, status) = (facts.route.unwrap_or("none"), facts.status.unwrap_or(0));
        let asked = facts.attempts.last().map(|attempt| attempt.target.as_str());
        // Only names that are known are entered, so two that have the same hash are chance. Of what is named in the program, the place is enough.
        let place = |name: &'static str| (name.as_ptr().addr(), name.len());
        let key = self.hasher.hash_one((place(route), place(outcome.name()), status, facts.model.as_deref(), asked));
        if let Some(row) = self.rows.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Arc::clone(row);
        }
        let names = self.names();
        let model = facts.model.as_deref().map_or_else(|| names.none(), |model| names.model(model));
        let target = asked.map(|target| self.target(target));
        let label = target.as_ref().map_or_else(|| names.none(), |target| Arc::clone(&target.labels.target));
        // What is found again by the same names is what the names say.
        let is_named =
            facts.model.as_deref().is_none_or(|asked| asked == &*model) && asked.is_none_or(|asked| asked == &*label);
        let of_route = RouteLabels { route, model: Arc::clone(&model) };
        let labels = RequestLabels { route, status, outcome: outcome.name(), model, target: label };
        let row = Arc::new(self.families.row(labels, of_route, target, &self.sets));
        if is_named {
            let mut rows = self.rows.write().unwrap_or_else(PoisonError::into_inner);
            if rows.len() < MOST_SETS {
                rows.insert(key, Arc::clone(&row));
            }
        }
        row
    }

    fn count_attempts(&self, facts: &Facts, last: &Arc<Target>) {
        for (number, attempt) in facts.attempts.iter().enumerate() {
            let is_last = number + 1 == facts.attempts.len();
            let earlier = (!is_last).then(|| self.target(&attempt.target));
            let target = earlier.as_ref().unwrap_or(last);
            let outcome = attempt.outcome.unwrap_or("waiting");
            if outcome == Attempted::ACCEPTED {
                target.accepted.inc();
                target.latency.observe(attempt.took);
                continue;
            }
            let labels = OutcomeLabels::of(&target.labels, outcome);
            self.families.attempts.get_or_create(&labels).inc();
            if !is_last {
                self.families.retries.get_or_create(&labels).inc();
            }
        }
        if let Some(time) = facts.times.first_token {
            last.first_token.observe(time);
        }
        // One whole answer has none.
        if facts.gaps != Gaps::default() {
            last.gaps.add(&facts.gaps.counts, facts.gaps.nanoseconds);
        }
    }

    fn count_charge(&self, charge: &Charge, facts: &Facts, last: Option<&Arc<Target>>) {
        if charge.tool_calls > 0 {
            let tool = match charge.model.as_str() {
                "web_search" => "web_search",
                _ if facts.attempts.iter().any(|attempt| attempt.is_of(&charge.provider)) => "provider",
                _ => "mcp",
            };
            self.families.tools.get_or_create(&ToolLabels { tool }).inc_by(charge.tool_calls);
            if let Some(nanodollars) = charge.nanodollars.filter(|nanodollars| *nanodollars > 0) {
                let labels = TargetLabels { provider: TOOLS.into(), target: format!("{TOOLS}/{tool}").into() };
                self.families.cost.get_or_create(&labels).inc_by(in_dollars(nanodollars));
            }
            return;
        }
        let of_last = last.filter(|_| facts.attempts.last().is_some_and(|attempt| attempt.serves(charge)));
        let other = of_last.is_none().then(|| self.target(&format!("{}/{}", charge.provider, charge.model)));
        let Some(target) = of_last.or(other.as_ref()) else { return };
        let usage = &charge.usage;
        let amounts = [usage.input_tokens, usage.cached_tokens, usage.output_tokens, usage.reasoning_tokens];
        for (counter, amount) in target.tokens.iter().zip(amounts).filter(|(_, amount)| *amount > 0) {
            counter.inc_by(amount);
        }
        if let Some(nanodollars) = charge.nanodollars {
            target.cost.inc_by(in_dollars(nanodollars));
        }
    }

    /// What is counted of the target of that name. One without a label of its own is its provider's `other`.
    fn target(&self, name: &str) -> Arc<Target> {
        let known = |name: &str| self.targets.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if let Some(target) = known(name) {
            return target;
        }
        let names = self.names();
        let labels = names.target(name);
        if let Some(target) = known(&labels.target) {
            return target;
        }
        let mut targets = self.targets.write().unwrap_or_else(PoisonError::into_inner);
        let labels = if targets.len() < MOST_TARGETS { labels } else { names.other() };
        let new = || Arc::new(self.families.target(labels.clone()));
        Arc::clone(targets.entry(Arc::clone(&labels.target)).or_insert_with(new))
    }
}

/// The code of what went wrong, for whatever reason.
fn error(facts: &Facts, outcome: Outcome) -> Option<&'static str> {
    facts.error.or(match outcome {
        Outcome::Failed(class) => Some(class.code()),
        Outcome::Late(_) => Some(bridge::FailureClass::Timeout.code()),
        _ => None,
    })
}

/// One of a family, as long as there is room for its labels: then that of the labels that were cut.
fn bounded<S, M, C>(family: &Family<S, M, C>, labels: S, cut: impl FnOnce(&S) -> S, sets: &AtomicUsize) -> M
where
    S: Clone + Hash + Eq,
    M: Clone,
    C: MetricConstructor<M>,
{
    if let Some(metric) = family.get(&labels) {
        return metric.clone();
    }
    let is_room = sets.fetch_update(Relaxed, Relaxed, |sets| (sets < MOST_SETS).then_some(sets + 1)).is_ok();
    family.get_or_create_owned(&if is_room { labels } else { cut(&labels) })
}

impl Families {
    fn new() -> Self {
        Self {
            requests: Family::default(),
            duration: Family::new_with_constructor(Distribution::of_answers),
            overhead: Family::new_with_constructor(Distribution::of_work),
            errors: Family::default(),
            notes: Family::default(),
            received: Counter::default(),
            sent: Counter::default(),
            attempts: Family::default(),
            retries: Family::default(),
            latency: Family::new_with_constructor(Distribution::of_answers),
            first_token: Family::new_with_constructor(Distribution::of_answers),
            gaps: Family::new_with_constructor(Distribution::of_gaps),
            tokens: Family::default(),
            cost: Family::default(),
            tools: Family::default(),
            reading: Distribution::of_work(),
            committing: Distribution::of_work(),
            streams: Family::default(),
        }
    }

    fn register(&self, registry: &mut Registry) {
        register(registry, &table::REQUESTS, self.requests.clone());
        register(registry, &table::DURATION, self.duration.clone());
        register(registry, &table::OVERHEAD, self.overhead.clone());
        register(registry, &table::ERRORS, self.errors.clone());
        register(registry, &table::NOTES, self.notes.clone());
        register(registry, &table::RECEIVED, self.received.clone());
        register(registry, &table::SENT, self.sent.clone());
        register(registry, &table::ATTEMPTS, self.attempts.clone());
        register(registry, &table::RETRIES, self.retries.clone());
        register(registry, &table::LATENCY, self.latency.clone());
        register(registry, &table::FIRST_TOKEN, self.first_token.clone());
        register(registry, &table::GAPS, self.gaps.clone());
        register(registry, &table::TOKENS, self.tokens.clone());
        register(registry, &table::COST, self.cost.clone());
        register(registry, &table::TOOL_CALLS, self.tools.clone());
        register(registry, &table::READING, self.reading.clone());
        register(registry, &table::COMMITTING, self.committing.clone());
        register(registry, &table::STREAMS, self.streams.clone());
    }

    fn row(
        &self,
        labels: RequestLabels,
        of_route: RouteLabels,
        target: Option<Arc<Target>>,
        sets: &[AtomicUsize; 3],
    ) -> Row {
        Row {
            requests: bounded(&self.requests, labels, RequestLabels::cut, &sets[0]),
            duration: bounded(&self.duration, of_route.clone(), RouteLabels::cut, &sets[1]),
            overhead: bounded(&self.overhead, of_route, RouteLabels::cut, &sets[2]),
            target,
        }
    }

    fn target(&self, labels: TargetLabels) -> Target {
        let tokens = TokenLabels::KINDS.map(|kind| self.tokens.get_or_create_owned(&TokenLabels::of(&labels, kind)));
        Target {
            accepted: self.attempts.get_or_create_owned(&OutcomeLabels::of(&labels, Attempted::ACCEPTED)),
            latency: self.latency.get_or_create_owned(&labels),
            first_token: self.first_token.get_or_create_owned(&labels),
            gaps: self.gaps.get_or_create_owned(&labels),
            tokens,
            cost: self.cost.get_or_create_owned(&labels),
            labels,
        }
    }
}

#[cfg(test)]
mod tests;
