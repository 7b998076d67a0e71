//! An answer, read: what was said, or why not.

use std::time::Duration;

use bridge::{AnswerDialect, Failure, FailureClass};
use serde_json::{Value, json};
use wire::json::without_mark;
use wire::sse::Decoder;

use crate::ask::Answer;

/// The largest event of a stream that is read.
const LARGEST_EVENT: usize = 4 << 20;

/// The members under which servers put reasoning.
pub(crate) const REASONING_FIELDS: &[&str] = &["reasoning_content", "reasoning", "reasoning_details", "thinking"];

/// What an answer says.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChatReply {
    pub(crate) text: String,
    /// Reasoning by the member that carried it.
    pub(crate) reasoning: Vec<(&'static str, String)>,
    pub(crate) calls: Vec<Call>,
    pub(crate) finish: Option<String>,
    pub(crate) usage: Option<Usage>,
    /// The message as it came, for answers that were not streamed.
    pub(crate) message: Value,
    /// The shape of a stream; None for an answer in one piece.
    pub(crate) stream: Option<Shape>,
    pub(crate) took: Duration,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// How many deltas it came in.
    pub(crate) deltas: usize,
    /// The number that its first delta carried, if any.
    pub(crate) index: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) reasoning: Option<u64>,
    /// Tokens of the input that it had already; None where it does not say.
    pub(crate) cached: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) chunks: usize,
    /// Chunks with text, reasoning or a call in them.
    pub(crate) speaking: usize,
    pub(crate) done: bool,
    pub(crate) whole: bool,
}

/// What came of one request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Answered(Box<ChatReply>),
    /// The upstream does not want this.
    Refused(Refusal),
    /// Nothing can be learnt: busy, too slow, broken off.
    Lost(String),
    /// It was not sent: the probe has used up what it may.
    Unsent(&'static str),
}

#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) failure: Failure,
    pub(crate) body: Vec<u8>,
}

impl Refusal {
    /// For a person: the status and the upstream's words, on one short line.
    pub(crate) fn words(&self) -> String {
        format!("{}: {}", self.status, clip(&self.failure.message, 140))
    }
}

/// Reads an answer to a chat request.
pub(crate) fn read(answer: &Answer, dialect: &AnswerDialect) -> Reply {
    if !(200..300).contains(&answer.status) {
        return refused(answer, answer.status, &answer.body, dialect);
    }
    let text = String::from_utf8_lossy(without_mark(&answer.body));
    let streams = answer.content_type.contains("event-stream") || text.trim_start().starts_with("data:");
    let (documents, shape) = if streams { events(answer) } else { (vec![text.trim().to_owned()], None) };
    let mut said = ChatReply { stream: shape, took: answer.took, ..ChatReply::default() };
    for document in &documents {
        let Ok(value) = serde_json::from_str::<Value>(document) else {
            return Reply::Lost(format!("the answer is not JSON: {}", clip(document, 60)));
        };
        if is_error(&value) {
            return refused(answer, status_in(&value), document.as_bytes(), dialect);
        }
        said.add(&value);
    }
    finished(answer, said)
}

/// Reads an answer to a question that was asked by another wire: what its documents say, the events of a stream or one
/// object, becomes a chat reply.
pub(crate) fn read_as(answer: &Answer, dialect: &AnswerDialect, reader: fn(&[Value], &mut ChatReply)) -> Reply {
    if !(200..300).contains(&answer.status) {
        return refused(answer, answer.status, &answer.body, dialect);
    }
    let text = String::from_utf8_lossy(without_mark(&answer.body));
    let begins = ["data:", "event:", ":"].iter().any(|word| text.trim_start().starts_with(word));
    let streams = answer.content_type.contains("event-stream") || begins;
    let (documents, shape) = if streams { events(answer) } else { (vec![text.trim().to_owned()], None) };
    let mut values = Vec::with_capacity(documents.len());
    for document in &documents {
        let Ok(value) = serde_json::from_str::<Value>(document) else {
            return Reply::Lost(format!("the answer is not JSON: {}", clip(document, 60)));
        };
        if is_error(&value) || is_error(&value["response"]) {
            return refused(answer, status_in(&value), document.as_bytes(), dialect);
        }
        values.push(value);
    }
    let mut said = ChatReply { stream: shape, took: answer.took, ..ChatReply::default() };
    reader(&values, &mut said);
    finished(answer, said)
}

/// What was said, unless it is half an answer or none.
fn finished(answer: &Answer, said: ChatReply) -> Reply {
    if !answer.whole && said.finish.is_none() {
        return Reply::Lost("the answer broke off".to_owned());
    }
    if said.is_nothing() {
        return Reply::Lost("the answer is empty".to_owned());
    }
    Reply::Answered(Box::new(said))
}

/// Reads an answer to another request than a chat: what it says is in `message`, the events of a stream in a list.
pub(crate) fn read_other(answer: &Answer, dialect: &AnswerDialect) -> Reply {
    let message = if answer.content_type.contains("event-stream") {
        let (documents, _) = events(answer);
        documents.iter().map(|document| serde_json::from_str::<Value>(document).unwrap_or_default()).collect()
    } else {
        serde_json::from_slice(without_mark(&answer.body)).unwrap_or_default()
    };
    match answer.status {
        200..300 if is_error(&message) => refused(answer, status_in(&message), &answer.body, dialect),
        200..300 => Reply::Answered(Box::new(ChatReply { message, ..ChatReply::default() })),
        status => refused(answer, status, &answer.body, dialect),
    }
}

/// A refusal, unless it says nothing about the request itself.
fn refused(answer: &Answer, status: u16, body: &[u8], dialect: &AnswerDialect) -> Reply {
    let failure = Failure::from_answer_in(dialect, status, body);
    match failure.class {
        FailureClass::RateLimit | FailureClass::Overloaded | FailureClass::Timeout => {
            Reply::Lost(format!("{}: {}", answer.status, clip(&failure.message, 80)))
        }
        // Gateways say these of a server that is away.
        FailureClass::Server if matches!(status, 502 | 504) => Reply::Lost(format!("{status} from a gateway")),
        _ => Reply::Refused(Refusal { status: answer.status, failure, body: body.to_vec() }),
    }
}

fn is_error(value: &Value) -> bool {
    let error = &value["error"];
    let in_band = !error.is_null() && error != &json!({});
    in_band || value["base_resp"]["status_code"].as_i64().is_some_and(|code| code != 0)
}

/// The status that an error inside a successful answer means.
fn status_in(value: &Value) -> u16 {
    let code = &value["error"]["code"];
    let number = code.as_u64().or_else(|| code.as_str()?.parse().ok());
    number.and_then(|code| u16::try_from(code).ok()).filter(|code| (400..600).contains(code)).unwrap_or(400)
}

/// The data of a stream's events, and its shape.
fn events(answer: &Answer) -> (Vec<String>, Option<Shape>) {
    let mut decoder = Decoder::new(LARGEST_EVENT);
    decoder.push(&answer.body);
    let mut shape = Shape { whole: answer.whole, ..Shape::default() };
    let mut documents = Vec::new();
    let mut take = |data: &[u8]| {
        let data = String::from_utf8_lossy(data).trim().to_owned();
        if data == "[DONE]" {
            shape.done = true;
        } else if !data.is_empty() {
            documents.push(data);
        }
    };
    while let Ok(Some(event)) = decoder.next_event() {
        take(event.data);
    }
    if let Some(event) = decoder.rest() {
        take(event.data);
    }
    shape.chunks = documents.len();
    (documents, Some(shape))
}

impl ChatReply {
    fn add(&mut self, document: &Value) {
        if let Some(usage) = usage(&document["usage"]) {
            self.usage = Some(usage);
        }
        let choice = &document["choices"][0];
        if let Some(usage) = usage(&choice["usage"]) {
            self.usage = Some(usage);
        }
        if let Some(finish) = choice["finish_reason"].as_str().filter(|finish| !finish.is_empty()) {
            self.finish = Some(finish.to_owned());
        }
        let message = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
        self.text.push_str(&text_of(&message["content"]));
        for &field in REASONING_FIELDS {
            self.add_reasoning(field, &reasoning_of(&message[field]));
        }
        self.add_reasoning("content", &thinking_parts(&message["content"]));
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            self.add_call(call);
        }
        match &mut self.stream {
            Some(shape) => shape.speaking += usize::from(!is_silent(message)),
            None => self.message = message.clone(),
        }
    }

    pub(crate) fn add_reasoning(&mut self, field: &'static str, piece: &str) {
        if piece.is_empty() {
            return;
        }
        match self.reasoning.iter_mut().find(|(known, _)| *known == field) {
            Some((_, text)) => text.push_str(piece),
            None => self.reasoning.push((field, piece.to_owned())),
        }
    }

    /// A delta belongs to the call with its id, or else to the last one with its index.
    fn add_call(&mut self, delta: &Value) {
        let index = delta["index"].as_u64();
        let id = delta["id"].as_str().filter(|id| !id.is_empty());
        let known = match id {
            Some(id) => self.calls.iter().position(|call| call.id == id),
            None => self.calls.iter().rposition(|call| index.is_none() || call.index == index),
        };
        let at = known.unwrap_or_else(|| {
            self.calls.push(Call { id: id.unwrap_or_default().to_owned(), index, ..Call::default() });
            self.calls.len() - 1
        });
        let Some(call) = self.calls.get_mut(at) else { return };
        call.deltas += 1;
        if let Some(name) = delta["function"]["name"].as_str().filter(|_| call.name.is_empty()) {
            name.clone_into(&mut call.name);
        }
        match &delta["function"]["arguments"] {
            Value::String(piece) => call.arguments.push_str(piece),
            // Some servers send the object itself.
            Value::Object(object) => call.arguments.push_str(&Value::Object(object.clone()).to_string()),
            _ => {}
        }
    }

    fn is_nothing(&self) -> bool {
        self.text.is_empty() && self.reasoning.is_empty() && self.calls.is_empty() && self.finish.is_none()
    }

    /// Whether a limit cut it off.
    pub(crate) fn is_cut(&self) -> bool {
        self.finish.as_deref() == Some("length")
    }

    /// The members and tags in which reasoning came.
    pub(crate) fn reasoning_places(&self) -> Vec<&'static str> {
        let mut places: Vec<&'static str> = self.reasoning.iter().map(|(field, _)| *field).collect();
        if self.text.trim_start().starts_with("<think>") {
            places.push("<think>");
        } else if self.text.contains("</think>") {
            places.push("</think> without <think>");
        }
        places
    }

    /// About how many tokens it thought: as it says, else by the length of what it shows.
    pub(crate) fn thought(&self) -> u64 {
        let told = self.usage.and_then(|usage| usage.reasoning).filter(|tokens| *tokens > 0);
        told.unwrap_or_else(|| {
            let members: usize = self.reasoning.iter().map(|(_, text)| text.len()).max().unwrap_or(0);
            let tagged = self.text.split_once("</think>").map_or(0, |(thought, _)| thought.len());
            // Half of a thought that a limit cut has no closing tag.
            let open = if tagged == 0 && self.text.trim_start().starts_with("<think>") { self.text.len() } else { 0 };
            (members + tagged + open).div_ceil(4) as u64
        })
    }

    /// The answer without reasoning in tags.
    pub(crate) fn answer(&self) -> &str {
        self.text.rsplit_once("</think>").map_or(self.text.as_str(), |(_, answer)| answer).trim()
    }
}

fn is_silent(message: &Value) -> bool {
    let silent = |field: &&str| match &message[*field] {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    REASONING_FIELDS.iter().chain(["content", "tool_calls"].iter()).all(silent)
}

fn usage(value: &Value) -> Option<Usage> {
    Some(Usage {
        input: value["prompt_tokens"].as_u64()?,
        output: value["completion_tokens"].as_u64().unwrap_or(0),
        reasoning: value["completion_tokens_details"]["reasoning_tokens"].as_u64(),
        cached: cached(value),
    })
}

/// What was read from a cache, by the names that servers have for it.
pub(crate) fn cached(usage: &Value) -> Option<u64> {
    let nested = ["prompt_tokens_details", "input_tokens_details"].map(|name| &usage[name]["cached_tokens"]);
    let flat = ["prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens"].map(|name| &usage[name]);
    nested.into_iter().chain(flat).find_map(Value::as_u64)
}

/// Text of a message, be it a string or a list of parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

fn reasoning_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| ["text", "summary", "data"].iter().find_map(|name| part[*name].as_str()))
            .collect(),
        _ => String::new(),
    }
}

/// Reasoning as parts of the content.
fn thinking_parts(content: &Value) -> String {
    let parts = content.as_array().into_iter().flatten().filter(|part| part["type"] == "thinking");
    parts.map(|part| reasoning_of(&part["thinking"])).collect()
}

/// The start of a text, on one line.
pub(crate) fn clip(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
