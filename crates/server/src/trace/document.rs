//! What is stored of a trace: the row that lists show, a document with the rest, and apart from both, as a body that is
//! encrypted where bodies are, what has words of others in it. What is nothing is left out of the document: whoever shows it
//! knows the form.

use std::borrow::Cow;
use std::time::Duration;

use bridge::{FailureClass, Note};
use store::{NewTrace, Payload, TraceDocument, TraceRow, member};
use wire::id::Id;
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

pub(super) fn make(trace: Trace, keeps_words: bool) -> NewTrace {
    let payloads = if keeps_words { words(&trace.facts).into_iter().collect() } else { Vec::new() };
    NewTrace { document: document(&trace).into_bytes(), row: row(trace), payloads }
}

fn row(trace: Trace) -> TraceRow {
    let Trace { head, facts } = trace;
    let (caller, usage) = (facts.caller.as_ref(), facts.usage);
    let attempts = count(facts.attempts.len());
    let (outcome, error, cost) = (outcome(&facts).name(), error(&facts), facts.cost());
    let kind = match (facts.route, facts.kind) {
        (Some(super::REPLAY), _) => "replay".into(),
        (_, Some(kind)) => kind.name().into(),
        (Some(route), None) => route.into(),
        (None, None) => head.path.into_string().into(),
    };
    let upstream_micros = (attempts > 0).then(|| micros(facts.times.others().min(head.took)));
    let (provider, upstream_model) = match facts.attempts.into_iter().next_back() {
        Some(Attempted { target, .. }) => {
            let (provider, model) = target.split_once('/').unwrap_or((&target, ""));
            (Some(provider.to_owned()), Some(model.to_owned()))
        }
        None => (None, None),
    };
    let (previous, conversation) = match facts.asked {
        Some(asked) => (asked.previous_response_id, asked.conversation_id),
        None => (None, None),
    };
    TraceRow {
        began_at: i64::try_from(head.began_at).unwrap_or(i64::MAX),
        took_micros: micros(head.took),
        first_token_micros: facts.times.first_token.map(micros),
        upstream_micros,
        tenant: caller.map(|caller| caller.tenant().name().to_owned()).unwrap_or_default(),
        key: caller.and_then(Caller::grant).map(|grant| grant.name.clone()),
        request_id: head.request_id.to_str().unwrap_or_default().to_owned(),
        response_id: facts.response_id.map(Id::into_string),
        previous_response_id: previous.map(String::from),
        conversation_id: conversation.map(String::from),
        kind,
        client: caller.map_or("", |caller| caller.client().name()).into(),
        model: facts.model.map(String::from),
        provider,
        upstream_model,
        status: facts.status,
        outcome: outcome.into(),
        error: error.map(Cow::Borrowed),
        attempts,
        rounds: count(facts.rounds.len()),
        input_tokens: usage.map(|usage| usage.input_tokens),
        cached_tokens: usage.map(|usage| usage.cached_tokens),
        output_tokens: usage.map(|usage| usage.output_tokens),
        reasoning_tokens: usage.map(|usage| usage.reasoning_tokens),
        nanodollars: cost,
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

fn document(trace: &Trace) -> TraceDocument {
    let Trace { head, facts } = trace;
    let mut document = TraceDocument::default();
    document.object(member::REQUEST, |members| request(head, facts, members));
    document.objects(member::ATTEMPTS, &facts.attempts, attempt);
    document.objects(member::ROUNDS, &facts.rounds, round);
    document.objects(member::TOOL_CALLS, &facts.tool_calls, tool_call);
    document.objects(member::NOTES, &facts.notes, note);
    document.object(member::TIMES, |members| times(facts, members));
    if facts.heard + facts.told > 0 {
        document.object(member::EVENTS, |members| {
            members.int(member::UPSTREAM, facts.heard).int(member::SENT, facts.told);
        });
    }
    for (name, usage) in [(member::USAGE, &facts.usage), (member::OWN_USAGE, &facts.usage_beside)] {
        if let Some(usage) = usage {
            document.object(name, |members| usage_members(usage, members));
        }
    }
    document.objects(member::CHARGES, &facts.charges, charge);
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
    document
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

fn note(note: &Note, members: &mut TraceDocument) {
    members.text(member::CODE, note.code.name()).text(member::SEVERITY, note.severity.name());
    members.text(member::ACTION, note.action.name()).text(member::PATH, short(&note.path));
    if !has_words(note) {
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

fn times(facts: &Facts, members: &mut TraceDocument) {
    let times = &facts.times;
    for (name, time) in [
        (member::OPENED, times.opened),
        (member::PLANNING, times.opened.map(|_| times.planning)),
        (member::CONNECTING, times.connecting),
        (member::FIRST_BYTE, times.first_byte),
        (member::FIRST_TOKEN, times.first_token),
        (member::LAST_BYTE, times.last_byte),
        (member::COMMITTING, times.committing),
    ] {
        if let Some(time) = time {
            members.time(name, time);
        }
    }
}
