//! One request as spans: its own, one for each try of a provider, one for each call of a hosted tool. A pure function of
//! what is known of it.

use std::time::Duration;

use super::protobuf::Message;
use super::{Address, Encoded, Providers, host_and_port};
use crate::span::{Span, SpanId};
use crate::trace::{Attempted, Facts, Head, Outcome, ToolCall, Trace};

/// Field numbers of `opentelemetry.proto.trace.v1` and what it uses.
mod field {
    pub(super) const RESOURCE_SPANS: u64 = 1;
    pub(super) const RESOURCE: u64 = 1;
    pub(super) const RESOURCE_ATTRIBUTES: u64 = 1;
    pub(super) const SCOPE_SPANS: u64 = 2;
    pub(super) const SCOPE: u64 = 1;
    pub(super) const SCOPE_NAME: u64 = 1;
    pub(super) const SCOPE_VERSION: u64 = 2;
    pub(super) const SPANS: u64 = 2;
    pub(super) const TRACE_ID: u64 = 1;
    pub(super) const SPAN_ID: u64 = 2;
    pub(super) const TRACE_STATE: u64 = 3;
    pub(super) const PARENT: u64 = 4;
    pub(super) const NAME: u64 = 5;
    pub(super) const KIND: u64 = 6;
    pub(super) const START: u64 = 7;
    pub(super) const END: u64 = 8;
    pub(super) const ATTRIBUTES: u64 = 9;
    pub(super) const STATUS: u64 = 15;
    pub(super) const FLAGS: u64 = 16;
    pub(super) const STATUS_CODE: u64 = 3;
    pub(super) const KEY: u64 = 1;
    pub(super) const VALUE: u64 = 2;
    pub(super) const TEXT: u64 = 1;
    pub(super) const INT: u64 = 3;
    pub(super) const DOUBLE: u64 = 4;
    pub(super) const ARRAY: u64 = 5;
    pub(super) const VALUES: u64 = 1;
}

/// Kinds of spans.
const INTERNAL: u64 = 1;
const SERVER: u64 = 2;
const CLIENT: u64 = 3;
/// The status of what went wrong.
const ERROR: u64 = 2;
/// The trace is kept.
const SAMPLED: u32 = 1;
/// It is known whether the parent is somewhere else, and it is not, or it is.
const HAS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

/// What the conventions call providers otherwise than their specs; the rest is called as in the configuration.
const NAMES: &[(&str, &str)] = &[
    ("azure", "azure.ai.openai"),
    ("deepseek", "deepseek"),
    ("gemini", "gcp.gemini"),
    ("groq", "groq"),
    ("mistral", "mistral_ai"),
    ("moonshot", "moonshot_ai"),
    ("openai", "openai"),
    ("xai", "x_ai"),
];

/// The value of `gen_ai.provider.name` for a provider with this spec and name.
pub(super) fn conventional<'a>(spec: &str, name: &'a str) -> &'a str {
    NAMES.iter().find(|(known, _)| *known == spec).map_or(name, |(_, conventional)| *conventional)
}

/// A whole request to a collector with these spans.
pub(super) fn request(service: &str, spans: &[u8]) -> Vec<u8> {
    let mut request = Message(Vec::with_capacity(spans.len() + 256));
    request.message(field::RESOURCE_SPANS, |resource_spans| {
        resource_spans.message(field::RESOURCE, |resource| {
            attribute(resource, field::RESOURCE_ATTRIBUTES, "service.name", &Value::Text(service));
            let version = Value::Text(env!("CARGO_PKG_VERSION"));
            attribute(resource, field::RESOURCE_ATTRIBUTES, "service.version", &version);
        });
        resource_spans.message(field::SCOPE_SPANS, |scope_spans| {
            scope_spans.message(field::SCOPE, |scope| {
                scope.text(field::SCOPE_NAME, "godex");
                scope.text(field::SCOPE_VERSION, env!("CARGO_PKG_VERSION"));
            });
            scope_spans.0.extend_from_slice(spans);
        });
    });
    request.0
}

/// The spans of a request.
pub(super) fn encoded(trace: &Trace, span: &Span, providers: &Providers) -> Encoded {
    let Trace { head, facts } = trace;
    let (mut out, mut spans) = (Message(Vec::with_capacity(1024)), 1);
    let times = Times { began_at: head.began_at.saturating_mul(1000) };
    out.message(field::SPANS, |own| {
        let name = format!("{} {}", head.method, facts.route.unwrap_or(""));
        let kind = Shape { id: span.id, parent: span.parent, remote: true, name: name.trim_end(), kind: SERVER };
        begin(own, span, &kind, times.at(Duration::ZERO), times.at(head.took));
        server_attributes(own, head, facts);
        if failed(facts) {
            own.message(field::STATUS, |status| status.int(field::STATUS_CODE, ERROR));
        }
    });
    let sent = facts.attempts.iter().filter(|attempt| attempt.outcome != Some(Attempted::CONNECTION_ENDED));
    for (number, attempt) in (0_u32..).zip(sent) {
        spans += 1;
        out.message(field::SPANS, |client| {
            let (provider, model) = attempt.names();
            let name = format!("chat {model}");
            let (id, parent) = (span.attempt(number), Some(span.id));
            let kind = Shape { id, parent, remote: false, name: &name, kind: CLIENT };
            let end = attempt.ended.unwrap_or(attempt.began + attempt.took);
            begin(client, span, &kind, times.at(attempt.began), times.at(end));
            client_attributes(client, facts, attempt, (provider, model), providers.get(provider));
        });
    }
    for (number, call) in (0_u32..).zip(&facts.tool_calls) {
        spans += 1;
        out.message(field::SPANS, |tool| {
            let name = format!("execute_tool {}", call.name);
            let shape =
                Shape { id: span.tool(number), parent: Some(span.id), remote: false, name: &name, kind: INTERNAL };
            begin(tool, span, &shape, times.at(call.ended.saturating_sub(call.took)), times.at(call.ended));
            tool_attributes(tool, call);
        });
    }
    Encoded { bytes: out.0, spans }
}

/// When the request came, in nanoseconds since 1970.
struct Times {
    began_at: u64,
}

impl Times {
    fn at(&self, offset: Duration) -> u64 {
        self.began_at.saturating_add(u64::try_from(offset.as_nanos()).unwrap_or(u64::MAX))
    }
}

struct Shape<'a> {
    id: SpanId,
    parent: Option<SpanId>,
    /// The parent is another system's.
    remote: bool,
    name: &'a str,
    kind: u64,
}

fn begin(message: &mut Message, span: &Span, shape: &Shape<'_>, start: u64, end: u64) {
    message.bytes(field::TRACE_ID, &span.trace);
    message.bytes(field::SPAN_ID, &shape.id);
    if let Some(state) = span.state.as_ref().and_then(|state| state.to_str().ok()) {
        message.text(field::TRACE_STATE, state);
    }
    let mut flags = SAMPLED | HAS_IS_REMOTE;
    if let Some(parent) = &shape.parent {
        message.bytes(field::PARENT, parent);
        flags |= if shape.remote { IS_REMOTE } else { 0 };
    }
    message.text(field::NAME, shape.name);
    message.int(field::KIND, shape.kind);
    message.fixed64(field::START, start);
    message.fixed64(field::END, end);
    message.fixed32(field::FLAGS, flags);
}

/// What is known of the request as a whole.
fn server_attributes(message: &mut Message, head: &Head, facts: &Facts) {
    let mut say = |key: &str, value: Value<'_>| attribute(message, field::ATTRIBUTES, key, &value);
    say("http.request.method", Value::Text(head.method.as_str()));
    if let Some(route) = facts.route {
        say("http.route", Value::Text(route));
    }
    if let Some(status) = facts.status {
        say("http.response.status_code", Value::Int(status.into()));
    }
    say("godex.request_id", Value::Text(head.request_id.to_str().unwrap_or_default()));
    say("godex.outcome", Value::Text(facts.outcome.unwrap_or(Outcome::ClientLeft).name()));
    if let Some(id) = &facts.response_id {
        say("gen_ai.response.id", Value::Text(id.as_str()));
        // What only follows a response that is made in the background waits, and for whom is not known.
        if !facts.put_off {
            say("godex.overhead", Value::Double(facts.times.own(head.took).as_secs_f64()));
        }
    }
    if let Some(id) = facts.asked.as_ref().and_then(|asked| asked.conversation_id.as_deref()) {
        say("gen_ai.conversation.id", Value::Text(id));
    }
    if let Some(model) = &facts.model {
        say("gen_ai.request.model", Value::Text(model));
    }
    if let Some(caller) = &facts.caller {
        say("godex.tenant", Value::Text(caller.tenant().name()));
        say("godex.client", Value::Text(caller.client().name()));
    }
    if let Some(usage) = facts.usage.or_else(|| facts.charged()) {
        say("gen_ai.usage.input_tokens", Value::Int(usage.input_tokens));
        say("gen_ai.usage.output_tokens", Value::Int(usage.output_tokens));
    }
    if let Some(nanodollars) = facts.cost() {
        #[expect(clippy::cast_precision_loss, reason = "a sum for people")]
        say("godex.cost_usd", Value::Double(nanodollars as f64 / 1e9));
    }
    if !facts.notes.is_empty() {
        let mut codes: Vec<&str> = facts.notes.iter().map(|note| note.code.name()).collect();
        codes.dedup();
        say("godex.notes", Value::Texts(&codes));
    }
    if failed(facts) {
        say("error.type", Value::Text(error(facts)));
    }
}

/// What is known of one try, in the words of the conventions for generative models.
fn client_attributes(
    message: &mut Message,
    facts: &Facts,
    attempt: &Attempted,
    (provider, model): (&str, &str),
    address: Option<&Address>,
) {
    let mut say = |key: &str, value: Value<'_>| attribute(message, field::ATTRIBUTES, key, &value);
    say("gen_ai.operation.name", Value::Text("chat"));
    say("gen_ai.provider.name", Value::Text(address.map_or(provider, |address| &address.name)));
    say("gen_ai.request.model", Value::Text(model));
    say("godex.provider", Value::Text(provider));
    if let Some(status) = attempt.status {
        say("http.response.status_code", Value::Int(status.into()));
    }
    let known = address.map(|Address { host, port, .. }| (host.clone(), *port));
    let replica = attempt.replica.as_deref().and_then(host_and_port);
    if let Some((host, port)) = replica.or(known).filter(|(host, _)| !host.is_empty()) {
        say("server.address", Value::Text(&host));
        say("server.port", Value::Int(port.into()));
    }
    if let Some(usage) = &attempt.usage {
        say("gen_ai.usage.input_tokens", Value::Int(usage.input_tokens));
        say("gen_ai.usage.output_tokens", Value::Int(usage.output_tokens));
        if usage.cached_tokens > 0 {
            say("gen_ai.usage.cache_read.input_tokens", Value::Int(usage.cached_tokens));
        }
        if usage.reasoning_tokens > 0 {
            say("gen_ai.usage.reasoning.output_tokens", Value::Int(usage.reasoning_tokens));
        }
    }
    let first = facts.attempts.iter().find(|attempt| attempt.outcome == Some(Attempted::ACCEPTED));
    if let Some(time) = facts.times.first_token.filter(|_| first.is_some_and(|first| std::ptr::eq(first, attempt))) {
        say("gen_ai.response.time_to_first_chunk", Value::Double(time.saturating_sub(attempt.began).as_secs_f64()));
    }
    let is_last = facts.attempts.last().is_some_and(|last| std::ptr::eq(last, attempt));
    let problem = match attempt.outcome {
        Some(Attempted::ACCEPTED) if is_last && failed(facts) => Some(error(facts)),
        Some(Attempted::ACCEPTED) => None,
        outcome => Some(outcome.unwrap_or("cancelled")),
    };
    if let Some(problem) = problem {
        say("error.type", Value::Text(problem));
        message.message(field::STATUS, |status| status.int(field::STATUS_CODE, ERROR));
    }
}

/// What is known of a hosted tool's call; not what it was called with, or what came of that.
fn tool_attributes(message: &mut Message, call: &ToolCall) {
    let mut say = |key: &str, value: Value<'_>| attribute(message, field::ATTRIBUTES, key, &value);
    say("gen_ai.operation.name", Value::Text("execute_tool"));
    say("gen_ai.tool.name", Value::Text(&call.name));
    say("gen_ai.tool.type", Value::Text("extension"));
    say("godex.tool_kind", Value::Text(call.kind));
    if call.outcome != "completed" {
        say("error.type", Value::Text(call.outcome));
        message.message(field::STATUS, |status| status.int(field::STATUS_CODE, ERROR));
    }
}

/// Whether it ended otherwise than it should have, for whatever reason of ours or a provider's.
fn failed(facts: &Facts) -> bool {
    let by_status = facts.status.is_some_and(|status| status >= 500);
    by_status || matches!(facts.outcome, Some(Outcome::Failed(_) | Outcome::Late(_) | Outcome::Stopped))
}

fn error(facts: &Facts) -> &'static str {
    match (facts.error, facts.outcome) {
        (Some(code), _) => code,
        (None, Some(Outcome::Failed(class))) => class.code(),
        (None, Some(Outcome::Late(_))) => bridge::FailureClass::Timeout.code(),
        (None, outcome) => outcome.unwrap_or(Outcome::ClientLeft).name(),
    }
}

enum Value<'a> {
    Text(&'a str),
    Texts(&'a [&'a str]),
    Int(u64),
    Double(f64),
}

fn attribute(message: &mut Message, at: u64, key: &str, value: &Value<'_>) {
    message.message(at, |pair| {
        pair.text(field::KEY, key);
        pair.message(field::VALUE, |any| match value {
            Value::Text(text) => any.text(field::TEXT, text),
            Value::Int(number) => any.int(field::INT, *number),
            Value::Double(number) => any.double(field::DOUBLE, *number),
            Value::Texts(texts) => any.message(field::ARRAY, |array| {
                for text in *texts {
                    array.message(field::VALUES, |value| value.text(field::TEXT, text));
                }
            }),
        });
    });
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, Method};
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
    use prost::Message as _;

    use super::*;

    fn head() -> Head {
        let (request_id, path) = (HeaderValue::from_static("req"), "/v1/responses".into());
        Head { method: Method::POST, path, request_id, began_at: 1_700_000_000_000_000, took: Duration::from_secs(3) }
    }

    fn call(outcome: &'static str) -> ToolCall {
        let (ended, took) = (Duration::from_secs(2), Duration::from_millis(500));
        ToolCall { name: "clock/now".into(), kind: "mcp", ended, took, outcome }
    }

    #[test]
    fn a_call_of_a_hosted_tool_is_a_span() {
        let span = Span::root(true);
        let facts = Facts {
            route: Some("/v1/responses"),
            tool_calls: vec![call("completed"), call("failed")],
            outcome: Some(Outcome::Completed),
            ..Facts::default()
        };
        let encoded = encoded(&Trace { head: head(), facts }, &span, &Providers::default());
        let request = ExportTraceServiceRequest::decode(&*request("edge", &encoded.bytes)).unwrap();
        let spans = &request.resource_spans[0].scope_spans[0].spans;
        assert_eq!((spans.len(), encoded.spans), (3, 3));
        let [server, good, bad] = &spans[..] else { panic!("{spans:?}") };
        for tool in [good, bad] {
            assert_eq!((&*tool.name, tool.kind, &tool.parent_span_id), ("execute_tool clock/now", 1, &server.span_id));
            let (start, end) = (tool.start_time_unix_nano, tool.end_time_unix_nano);
            assert_eq!((start, end - start), (1_700_000_001_500_000_000, 500_000_000));
            let said = |key: &str| {
                let pair = tool.attributes.iter().find(|pair| pair.key == key)?;
                match pair.value.as_ref()?.value.as_ref()? {
                    Any::StringValue(text) => Some(text.clone()),
                    other => panic!("{other:?}"),
                }
            };
            assert_eq!(said("gen_ai.operation.name").as_deref(), Some("execute_tool"));
            assert_eq!(said("gen_ai.tool.name").as_deref(), Some("clock/now"));
            assert_eq!(said("error.type").is_some(), tool.status.is_some());
        }
        assert!(good.status.is_none() && bad.status.as_ref().is_some_and(|status| status.code == 2));
        assert!(good.span_id != bad.span_id && server.status.is_none());
    }

    #[test]
    fn providers_have_the_names_of_the_conventions() {
        for (spec, name, expected) in [
            ("mistral", "mine", "mistral_ai"),
            ("openai", "openai", "openai"),
            ("openai-compatible", "local", "local"),
            ("vllm", "gpu", "gpu"),
        ] {
            assert_eq!(conventional(spec, name), expected);
        }
    }
}
