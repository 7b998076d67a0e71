//! The one line that a request leaves in the log.

use std::time::Duration;

use bridge::FailureClass;
use store::dollars;
use wire::id::Id;
use wire::responses::Usage;

use crate::caller::Caller;
use crate::compat;
use crate::trace::{Attempted, Facts, Outcome, Trace};

/// What it is logged under.
const TARGET: &str = "server::request";

/// The one line. Balancers and monitors ask every few seconds how we are; that is for those who look closer.
pub(super) fn write(trace: &Trace) {
    let Trace { head, facts } = trace;
    let is_watching = matches!(facts.route, Some("/health" | "/ready" | "/metrics"));
    if is_watching && facts.status.is_some_and(|status| status < 400) {
        tracing::debug!(target: TARGET, method = %head.method, path = &*head.path, status = facts.status, "request");
        return;
    }
    if !tracing::enabled!(target: TARGET, tracing::Level::INFO) {
        return;
    }
    let Facts { caller, times, usage, prefix, .. } = facts;
    let last = facts.attempts.last().map(Attempted::names);
    let request_id = head.request_id.to_str().unwrap_or_default();
    let counts = facts.response_id.is_some();
    let outcome = facts.outcome.unwrap_or(Outcome::ClientLeft);
    let (class, deadline) = match outcome {
        Outcome::Failed(class) => (Some(class.code()), None),
        Outcome::Late(deadline) => (Some(FailureClass::Timeout.code()), Some(deadline.name())),
        _ => (None, None),
    };
    tracing::info!(
        target: TARGET,
        method = %head.method,
        path = &*head.path,
        address = facts.address.map(tracing::field::display),
        status = facts.status,
        background = (facts.route == Some("background")).then_some(true),
        outcome = outcome.name(),
        error = facts.error.or(class),
        deadline,
        duration_ms = ms(Some(head.took)),
        model = facts.model.as_deref(),
        provider = last.map(|(provider, _)| provider),
        upstream_model = last.map(|(_, model)| model),
        replica = facts.attempts.last().and_then(|attempt| attempt.replica.as_deref()),
        attempts = counts.then_some(facts.attempts.len()),
        tried = tried(&facts.attempts).as_deref(),
        input_tokens = usage.map(|usage| usage.input_tokens),
        output_tokens = usage.map(|usage| usage.output_tokens),
        cached_tokens = usage.map(|usage| usage.cached_tokens),
        cache_ratio = usage.and_then(cache_ratio),
        own_input_tokens = facts.usage_beside.map(|usage| usage.input_tokens),
        own_output_tokens = facts.usage_beside.map(|usage| usage.output_tokens),
        prefix_shared = prefix.map(|prefix| prefix.shared),
        prefix_bytes = prefix.map(|prefix| prefix.earlier),
        prefix_ratio = prefix.map(|prefix| ratio(prefix.shared as u64, prefix.earlier as u64)),
        queue_ms = ms(times.opened),
        plan_ms = ms(counts.then_some(times.planning)),
        connect_ms = ms(times.connecting),
        first_byte_ms = ms(times.first_byte),
        first_token_ms = ms(times.first_token),
        last_byte_ms = ms(times.last_byte),
        commit_ms = ms(times.committing),
        bytes_in = facts.received,
        bytes_out = facts.sent,
        notes = (!facts.notes.is_empty()).then(|| compat::short(facts.notes.iter())).as_deref(),
        tenant = caller.as_ref().map(|caller| caller.tenant().name()).filter(|tenant| *tenant != "default"),
        key = caller.as_ref().and_then(Caller::grant).map(|grant| grant.label()),
        cost_usd = facts.cost().map(dollars).as_deref(),
        cost_estimated = facts.charges.iter().any(|charge| charge.estimated).then_some(true),
        client = caller.as_ref().map(|caller| caller.client().name()).filter(|name| *name != "other"),
        trace_id = facts.span.as_ref().map(|span| span.trace_id()).as_deref(),
        request_id,
        response_id = facts.response_id.as_ref().map(Id::as_str),
        "request"
    );
    for note in &facts.notes {
        let (code, severity, action) = (note.code.name(), note.severity.name(), note.action.name());
        // Nothing that anybody said.
        let (path, detail) = (&*note.path, (!facts.has_words(note)).then_some(&*note.message));
        tracing::debug!(target: TARGET, request_id, code, severity, action, path, detail, "not done as asked");
    }
}

/// What was tried before what came last: `a/m:upstream_error:12ms, b/m:accepted:80ms`. Only if there was more than one try.
fn tried(attempts: &[Attempted]) -> Option<String> {
    let entry = |attempt: &Attempted| {
        let outcome = attempt.outcome.unwrap_or("waiting");
        let at = attempt.replica.as_deref().map(|url| format!("@{url}")).unwrap_or_default();
        format!("{}{at}:{outcome}:{}ms", attempt.target, attempt.took.as_millis())
    };
    (attempts.len() > 1).then(|| attempts.iter().take(16).map(entry).collect::<Vec<_>>().join(", "))
}

/// The part of the input that the provider had cached.
fn cache_ratio(usage: Usage) -> Option<f64> {
    (usage.input_tokens > 0 && usage.cached_tokens > 0).then(|| ratio(usage.cached_tokens, usage.input_tokens))
}

/// With two digits after the point.
#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
fn ratio(part: u64, whole: u64) -> f64 {
    (part as f64 / whole as f64 * 100.0).round() / 100.0
}

/// A time for the log: milliseconds with one digit after the point.
fn ms(time: Option<Duration>) -> Option<f64> {
    time.map(|time| (time.as_secs_f64() * 10_000.0).round() / 10.0)
}
