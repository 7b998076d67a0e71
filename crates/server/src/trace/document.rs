//! What is stored of a trace: the row that lists show, a JSON document with the rest, and apart from both, as a body that is
//! encrypted where bodies are, what has words of others in it. What is nothing is left out of the document: whoever shows it
//! knows the form.

use std::time::Duration;

use bridge::{FailureClass, Note};
use store::{NewTrace, Payload, TraceRow};
use wire::json::ObjectWriter;
use wire::responses::Usage;

use super::record::{Attempted, Charge, Facts, Head, Outcome, Round, ToolCall, Trace};
use crate::caller::Caller;
use crate::terms::dollars;

/// The name of the body with what others said of errors and notes: `{"message": …, "details": {"0": …}}`, the notes by their
/// places in the list.
pub(crate) const WORDS: &str = "words";

/// How long an error's message and a note's detail may be.
const LONGEST: usize = 4 << 10;

pub(super) fn make(trace: &Trace, keeps_words: bool) -> NewTrace {
    let payloads = if keeps_words { words(&trace.facts).into_iter().collect() } else { Vec::new() };
    NewTrace { row: row(trace), document: document(trace).into(), payloads }
}

fn row(trace: &Trace) -> TraceRow {
    let Trace { head, facts } = trace;
    let caller = facts.caller.as_ref();
    let target = facts.attempts.last().map(|attempt| attempt.target.split_once('/').unwrap_or((&attempt.target, "")));
    let usage = facts.usage;
    let asked = facts.asked.as_deref();
    let text = |text: &str| text.to_owned();
    let kind = facts.kind.map(super::Kind::name).or(facts.route).unwrap_or(&head.path);
    let kind = if facts.route == Some(super::REPLAY) { "replay" } else { kind };
    TraceRow {
        began_at: i64::try_from(head.began_at).unwrap_or(i64::MAX),
        took_micros: micros(head.took),
        first_token_micros: facts.times.first_token.map(micros),
        upstream_micros: (!facts.attempts.is_empty()).then(|| micros(facts.times.others().min(head.took))),
        tenant: caller.map(|caller| text(caller.tenant().name())).unwrap_or_default(),
        key: caller.and_then(Caller::grant).map(|grant| grant.name.clone()),
        request_id: text(head.request_id.to_str().unwrap_or_default()),
        response_id: facts.response_id.as_ref().map(|id| text(id.as_str())),
        previous_response_id: asked.and_then(|asked| asked.previous_response_id.as_deref()).map(text),
        conversation_id: asked.and_then(|asked| asked.conversation_id.as_deref()).map(text),
        kind: text(kind),
        client: text(caller.map_or("", |caller| caller.client().name())),
        model: facts.model.as_deref().map(text),
        provider: target.map(|(provider, _)| text(provider)),
        upstream_model: target.map(|(_, model)| text(model)),
        status: facts.status,
        outcome: text(outcome(facts).name()),
        error: error(facts).map(text),
        attempts: count(facts.attempts.len()),
        rounds: count(facts.rounds.len()),
        input_tokens: usage.map(|usage| usage.input_tokens),
        cached_tokens: usage.map(|usage| usage.cached_tokens),
        output_tokens: usage.map(|usage| usage.output_tokens),
        reasoning_tokens: usage.map(|usage| usage.reasoning_tokens),
        nanodollars: facts.cost(),
        notes: codes(&facts.notes),
    }
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
fn codes(notes: &[Note]) -> String {
    let mut known: Vec<&str> = Vec::new();
    for note in notes {
        if !known.contains(&note.code.name()) {
            known.push(note.code.name());
        }
    }
    known.join(" ")
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Whether a note's detail may have words of a client or a model in it: those on calls tell what is wrong with an input.
fn has_words(note: &Note) -> bool {
    note.path == "tool_calls"
}

/// What others said, if they did.
fn words(facts: &Facts) -> Option<Payload> {
    let message = facts.message.as_deref();
    let details = || facts.notes.iter().enumerate().filter(|(_, note)| has_words(note));
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

fn document(trace: &Trace) -> Vec<u8> {
    let Trace { head, facts } = trace;
    let mut out = Vec::with_capacity(512);
    let mut object = ObjectWriter::new(&mut out);
    request(head, facts, object.key("request"));
    list(&mut object, "attempts", &facts.attempts, attempt);
    list(&mut object, "rounds", &facts.rounds, round);
    list(&mut object, "tool_calls", &facts.tool_calls, tool_call);
    list(&mut object, "notes", &facts.notes, note);
    times(facts, object.key("times"));
    if facts.heard + facts.told > 0 {
        let mut events = ObjectWriter::new(object.key("events"));
        events.int("upstream", facts.heard).int("sent", facts.told);
        events.end();
    }
    for (name, usage) in [("usage", facts.usage), ("own_usage", facts.usage_beside)] {
        if let Some(usage) = usage {
            usage_members(&usage, object.key(name));
        }
    }
    list(&mut object, "charges", &facts.charges, charge);
    if let Some(prefix) = facts.prefix {
        let mut members = ObjectWriter::new(object.key("prefix"));
        members.int("shared", prefix.shared).int("bytes", prefix.earlier);
        members.end();
    }
    if let Some(code) = error(facts) {
        let mut members = ObjectWriter::new(object.key("error"));
        members.text("code", code);
        if let Outcome::Late(deadline) = outcome(facts) {
            members.text("deadline", deadline.name());
        }
        members.end();
    }
    object.end();
    out
}

fn list<T>(object: &mut ObjectWriter<'_>, name: &str, entries: &[T], write: impl Fn(&T, &mut ObjectWriter<'_>)) {
    if entries.is_empty() {
        return;
    }
    let out = object.key(name);
    for (at, entry) in entries.iter().enumerate() {
        out.push(if at == 0 { b'[' } else { b',' });
        let mut members = ObjectWriter::new(out);
        write(entry, &mut members);
        members.end();
    }
    out.push(b']');
}

fn request(head: &Head, facts: &Facts, out: &mut Vec<u8>) {
    let mut members = ObjectWriter::new(out);
    members.text("method", head.method.as_str()).text("path", &head.path);
    if let Some(address) = facts.address {
        members.text("address", &address.to_string());
    }
    if let Some(asked) = &facts.asked {
        members.bool("stream", asked.stream).bool("store", asked.store).bool("background", asked.background);
        members.int("items", asked.items).int("tools", asked.tools);
    }
    members.int("bytes", facts.received).int("bytes_sent", facts.sent);
    members.end();
}

fn attempt(attempt: &Attempted, members: &mut ObjectWriter<'_>) {
    members.text("target", &attempt.target);
    if let Some(replica) = &attempt.replica {
        members.text("replica", replica);
    }
    members.text("wire", attempt.wire);
    members.text("outcome", attempt.outcome.unwrap_or("waiting"));
    if let Some(status) = attempt.status {
        members.int("status", status);
    }
    ms(members.key("took_ms"), attempt.took);
    members.int("bytes", attempt.bytes);
}

fn round(round: &Round, members: &mut ObjectWriter<'_>) {
    members.int("attempt", round.attempt).text("end", round.end);
    if let Some(usage) = &round.usage {
        usage_members(usage, members.key("usage"));
    }
}

fn tool_call(call: &ToolCall, members: &mut ObjectWriter<'_>) {
    members.text("name", &call.name).text("kind", call.kind).text("outcome", call.outcome);
    ms(members.key("took_ms"), call.took);
}

fn note(note: &Note, members: &mut ObjectWriter<'_>) {
    members.text("code", note.code.name()).text("severity", note.severity.name()).text("action", note.action.name());
    members.text("path", short(&note.path));
    if !has_words(note) {
        members.text("detail", short(&note.message));
    }
}

fn charge(charge: &Charge, members: &mut ObjectWriter<'_>) {
    members.text("provider", &charge.provider).text("model", &charge.model);
    usage_members(&charge.usage, members.key("usage"));
    if charge.tool_calls > 0 {
        members.int("tool_calls", charge.tool_calls);
    }
    if charge.estimated {
        members.bool("estimated", true);
    }
    if let Some(cost) = charge.nanodollars {
        members.text("cost_usd", &dollars(cost));
    }
}

fn usage_members(usage: &Usage, out: &mut Vec<u8>) {
    let mut members = ObjectWriter::new(out);
    members.int("input_tokens", usage.input_tokens).int("cached_tokens", usage.cached_tokens);
    if usage.cache_write_tokens > 0 {
        members.int("cache_write_tokens", usage.cache_write_tokens);
    }
    members.int("output_tokens", usage.output_tokens).int("reasoning_tokens", usage.reasoning_tokens);
    members.end();
}

fn times(facts: &Facts, out: &mut Vec<u8>) {
    let times = &facts.times;
    let mut members = ObjectWriter::new(out);
    for (name, time) in [
        ("opened_ms", times.opened),
        ("planning_ms", times.opened.map(|_| times.planning)),
        ("connecting_ms", times.connecting),
        ("first_byte_ms", times.first_byte),
        ("first_token_ms", times.first_token),
        ("last_byte_ms", times.last_byte),
        ("committing_ms", times.committing),
    ] {
        if let Some(time) = time {
            ms(members.key(name), time);
        }
    }
    members.end();
}

/// Milliseconds, to the microsecond.
fn ms(out: &mut Vec<u8>, time: Duration) {
    let (whole, part) = (time.as_micros() / 1000, time.as_micros() % 1000);
    out.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
    if part > 0 {
        out.push(b'.');
        out.extend([part / 100, part / 10 % 10, part % 10].map(|digit| b'0' + u8::try_from(digit).unwrap_or(0)));
    }
}
