//! What is stored of a trace: the row that lists show, a document with the rest, and apart from both, as a body that is
//! encrypted where bodies are, what has words of others in it. What is nothing is left out of the document: whoever shows it
//! knows the form.

use std::borrow::Cow;
use std::time::Duration;

use bridge::{FailureClass, Note};
use http::Method;
use store::{NewTrace, Payload, PlainTurn, TRACE_TIMES, TraceDocument, TraceRow, dollars, member};
use wire::json::ObjectWriter;
use wire::responses::Usage;

use super::record::{Attempted, Charge, Facts, Head, Outcome, Round, ToolCall, Trace};
use crate::caller::Caller;

/// The name of the body with what others said of errors and notes: `{"message": …, "details": {"0": …}}`, the notes by their
/// places in the list.
pub(crate) const WORDS: &str = "words";

/// How long an error's message and a note's detail may be.
const LONGEST: usize = 4 << 10;

pub(super) fn make(trace: &Trace, keeps_words: bool) -> NewTrace {
    let new = NewTrace::new(&row(trace), |document| write(trace, document));
    match keeps_words.then(|| words(&trace.facts)).flatten() {
        Some(words) => new.with_payloads(vec![words]),
        None => new,
    }
}

fn row(trace: &Trace) -> TraceRow<'_> {
    let Trace { head, facts } = trace;
    let attempts = count(facts.attempts.len());
    let (provider, upstream_model) = facts.attempts.last().map(Attempted::names).unzip();
    let (caller, usage) = (facts.caller.as_ref(), facts.usage.or_else(|| facts.charged()));
    let kind = match (facts.route, facts.kind) {
        (Some(super::REPLAY), _) => "replay",
        (route, Some(kind)) if !route.is_some_and(makes_none) => kind.name(),
        (Some(route), _) => route,
        (None, _) => &head.path,
    };
    let asked = facts.asked.as_deref();
    TraceRow {
        began_at: i64::try_from(head.began_at).unwrap_or(i64::MAX),
        took_micros: micros(head.took),
        first_token_micros: facts.times.first_token.map(micros),
        upstream_micros: (attempts > 0 || facts.times.opened.is_some())
            .then(|| micros(facts.times.others().min(head.took))),
        tenant: caller.map_or("", |caller| caller.tenant().name()).into(),
        key: caller.and_then(Caller::grant).map(|grant| grant.label().into()),
        request_id: str::from_utf8(head.request_id.as_bytes()).unwrap_or_default().into(),
        response_id: facts.response_id.as_ref().map(|id| id.as_str().into()),
        previous_response_id: asked.and_then(|asked| asked.previous_response_id.as_deref()).map(Cow::Borrowed),
        conversation_id: asked.and_then(|asked| asked.conversation_id.as_deref()).map(Cow::Borrowed),
        kind: kind.into(),
        client: caller.map_or("", |caller| caller.client().name()).into(),
        model: facts.model.as_deref().map(Cow::Borrowed),
        provider: provider.map(Cow::Borrowed),
        upstream_model: upstream_model.map(Cow::Borrowed),
        status: facts.status,
        outcome: outcome(facts).name().into(),
        error: error(facts).map(Cow::Borrowed),
        attempts,
        rounds: count(facts.rounds.len()),
        input_tokens: usage.map(|usage| usage.input_tokens),
        cached_tokens: usage.map(|usage| usage.cached_tokens),
        output_tokens: usage.map(|usage| usage.output_tokens),
        reasoning_tokens: usage.map(|usage| usage.reasoning_tokens),
        nanodollars: facts.cost(),
        notes: codes(&facts.notes),
    }
}

/// Whether a route makes no response, though it is asked as one is.
fn makes_none(route: &str) -> bool {
    route == "/v1/responses/compact" || route == "/v1/alpha/search"
}

fn outcome(facts: &Facts) -> Outcome {
    facts.outcome.unwrap_or(Outcome::ClientLeft)
}

/// The code of what went wrong, as the log has it.
fn error(facts: &Facts) -> Option<&'static str> {
    let class = match outcome(facts) {
        Outcome::Failed(class) => Some(class.code()),
        Outcome::Late(_) => Some(FailureClass::Timeout.code()),
        _ => None,
    };
    facts.error.or(class)
}

/// Each once, in the order in which they came.
fn codes(notes: &[Note]) -> Cow<'static, str> {
    if notes.is_empty() {
        return "".into();
    }
    let mut known: Vec<&str> = Vec::new();
    for note in notes {
        if !known.contains(&note.code.name()) {
            known.push(note.code.name());
        }
    }
    known.join(" ").into()
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// What others said, if they did.
fn words(facts: &Facts) -> Option<Payload> {
    let message = facts.message.as_deref();
    let details = || facts.notes.iter().enumerate().filter(|(_, note)| facts.has_words(note));
    if message.is_none() && details().next().is_none() {
        return None;
    }
    let mut out = Vec::new();
    let mut object = ObjectWriter::new(&mut out);
    if let Some(message) = message {
        object.text("message", short(message));
    }
    let mut of_notes = ObjectWriter::new(object.key("details"));
    for (at, note) in details() {
        of_notes.text(itoa::Buffer::new().format(at), short(&note.message));
    }
    of_notes.end();
    object.end();
    Some(Payload { name: WORDS.to_owned(), bytes: out.into(), cut_from: None })
}

fn short(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

// === the document ===

fn write(trace: &Trace, document: &mut TraceDocument) {
    let Trace { head, facts } = trace;
    let plain = plain_turn(head, facts);
    if let Some(turn) = &plain {
        document.plain_turn(turn);
    } else {
        document.object(member::REQUEST, |members| request(head, facts, members));
        document.objects(member::ATTEMPTS, &facts.attempts, attempt);
        document.objects(member::ROUNDS, &facts.rounds, round);
        document.objects(member::TOOL_CALLS, &facts.tool_calls, tool_call);
        document.object(member::TIMES, |members| {
            for (name, time) in TRACE_TIMES.into_iter().zip(times(facts)) {
                if let Some(time) = time {
                    members.time(name, time);
                }
            }
        });
        if facts.heard + facts.told > 0 {
            document.object(member::EVENTS, |members| {
                members.int(member::UPSTREAM, facts.heard).int(member::SENT, facts.told);
            });
        }
        // What makes no response has none but what was charged.
        if let Some(usage) = facts.usage.or_else(|| facts.charged().filter(|_| facts.response_id.is_none())) {
            document.object(member::USAGE, |members| usage_members(&usage, members));
        }
        document.objects(member::CHARGES, &facts.charges, charge);
    }
    document.objects(member::NOTES, &facts.notes, |told, members| note(facts, told, members));
    if let Some(usage) = &facts.usage_beside {
        document.object(member::OWN_USAGE, |members| usage_members(usage, members));
    }
    if let Some(prefix) = facts.prefix {
        document.object(member::PREFIX, |members| {
            members.int(member::SHARED, prefix.shared as u64).int(member::BYTES, prefix.earlier as u64);
        });
    }
    if let Some(code) = error(facts) {
        document.object(member::ERROR, |members| {
            members.text(member::CODE, code);
            if let Outcome::Late(deadline) = outcome(facts) {
                members.text(member::DEADLINE, deadline.name());
            }
        });
    }
}

/// The turn, if it is one whole answer of whoever was asked first. What was used and what it cost, [`row`] says.
fn plain_turn<'t>(head: &Head, facts: &'t Facts) -> Option<PlainTurn<'t>> {
    let ([attempt], [round], [charge]) = (&*facts.attempts, &*facts.rounds, &*facts.charges) else { return None };
    let asked = facts.asked.as_deref()?;
    let websocket = head.method == Method::GET;
    let is_plain = &*head.path == "/v1/responses"
        && (websocket || head.method == Method::POST)
        && attempt.replica.is_none()
        && attempt.outcome == Some(Attempted::ACCEPTED)
        && round.attempt == 1
        && round.usage == Some(charge.usage)
        && facts.usage == Some(charge.usage)
        && charge.tool_calls == 0
        && facts.tool_calls.is_empty()
        && attempt.serves(charge);
    is_plain.then(|| PlainTurn {
        websocket,
        stream: asked.stream,
        store: asked.store,
        background: asked.background,
        address: facts.address,
        items: asked.items as u64,
        tools: asked.tools as u64,
        bytes: facts.received,
        bytes_sent: facts.sent,
        wire: attempt.wire,
        status: attempt.status,
        took: attempt.took,
        upstream_bytes: attempt.bytes as u64,
        end: round.end,
        cache_write_tokens: charge.usage.cache_write_tokens,
        estimated: charge.estimated,
        times: times(facts),
        heard: facts.heard,
        told: facts.told,
    })
}

fn request(head: &Head, facts: &Facts, members: &mut TraceDocument) {
    members.text(member::METHOD, head.method.as_str()).text(member::PATH, &head.path);
    if let Some(address) = facts.address {
        members.text(member::ADDRESS, &address.to_string());
    }
    if let Some(asked) = &facts.asked {
        members.flag(member::STREAM, asked.stream).flag(member::STORE, asked.store);
        members.flag(member::BACKGROUND, asked.background);
        members.int(member::ITEMS, asked.items as u64).int(member::TOOLS, asked.tools as u64);
    }
    members.int(member::BYTES, facts.received).int(member::BYTES_SENT, facts.sent);
}

fn attempt(attempt: &Attempted, members: &mut TraceDocument) {
    members.text(member::TARGET, &attempt.target);
    if let Some(replica) = &attempt.replica {
        members.text(member::REPLICA, replica);
    }
    members.text(member::WIRE, attempt.wire);
    members.text(member::OUTCOME, attempt.outcome.unwrap_or("waiting"));
    if let Some(status) = attempt.status {
        members.int(member::STATUS, status.into());
    }
    members.time(member::TOOK, attempt.took).int(member::BYTES, attempt.bytes as u64);
}

fn round(round: &Round, members: &mut TraceDocument) {
    members.int(member::ATTEMPT, round.attempt as u64).text(member::ROUND_END, round.end);
    if let Some(usage) = &round.usage {
        members.object(member::USAGE, |members| usage_members(usage, members));
    }
}

fn tool_call(call: &ToolCall, members: &mut TraceDocument) {
    members.text(member::NAME, &call.name).text(member::KIND, call.kind).text(member::OUTCOME, call.outcome);
    members.time(member::TOOK, call.took);
}

fn note(facts: &Facts, note: &Note, members: &mut TraceDocument) {
    members.text(member::CODE, note.code.name()).text(member::SEVERITY, note.severity.name());
    members.text(member::ACTION, note.action.name()).text(member::PATH, short(&note.path));
    if !facts.has_words(note) {
        members.text(member::DETAIL, short(&note.message));
    }
}

fn charge(charge: &Charge, members: &mut TraceDocument) {
    members.text(member::PROVIDER, &charge.provider).text(member::MODEL, &charge.model);
    members.object(member::USAGE, |members| usage_members(&charge.usage, members));
    if charge.tool_calls > 0 {
        members.int(member::CALLS, charge.tool_calls);
    }
    if charge.estimated {
        members.flag(member::ESTIMATED, true);
    }
    if let Some(cost) = charge.nanodollars {
        members.text(member::COST, &dollars(cost));
    }
}

fn usage_members(usage: &Usage, members: &mut TraceDocument) {
    members.int(member::INPUT_TOKENS, usage.input_tokens).int(member::CACHED_TOKENS, usage.cached_tokens);
    if usage.cache_write_tokens > 0 {
        members.int(member::CACHE_WRITE_TOKENS, usage.cache_write_tokens);
    }
    members.int(member::OUTPUT_TOKENS, usage.output_tokens).int(member::REASONING_TOKENS, usage.reasoning_tokens);
}

/// Less than this is waited for any client, and worth no bytes.
const CLIENT: Duration = Duration::from_millis(1);

/// As [`TRACE_TIMES`] names them.
fn times(facts: &Facts) -> [Option<Duration>; TRACE_TIMES.len()] {
    let times = &facts.times;
    [
        times.opened,
        times.opened.map(|_| times.planning),
        times.connecting,
        times.first_byte,
        times.first_token,
        times.last_byte,
        times.committing,
        Some(times.client).filter(|waited| *waited >= CLIENT),
    ]
}
