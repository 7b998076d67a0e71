//! Conversations that become too long: compacted, truncated, or rescued. Behind godex is a model with a small window that
//! knows only what it is sent.

mod asked;
mod ends;
mod grown;
mod long;
mod refused;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use testkit::{Received, Script, Upstream};

use crate::rig::{Rig, Settings};

/// The model's window, in tokens of four bytes.
const WINDOW: usize = 16_384;

/// What our prompt for a summary says, and nobody else does.
const PROMPT: &str = "Write a summary of the conversation above";

/// A provider that refuses what is longer than its window, as the real ones do; that, asked for a summary, writes down the
/// facts that it was sent; and, asked for a fact, knows only those that it was sent.
struct Scribe {
    /// How many summaries it wrote.
    summaries: Arc<AtomicUsize>,
    /// How many requests it refused for their length.
    refusals: Arc<AtomicUsize>,
}

impl Scribe {
    async fn start(settings: Settings) -> (Rig, Self) {
        Self::with_window(WINDOW, settings).await
    }

    async fn with_window(window: usize, settings: Settings) -> (Rig, Self) {
        let scribe = Self { summaries: Arc::default(), refusals: Arc::default() };
        let (summaries, refusals) = (Arc::clone(&scribe.summaries), Arc::clone(&scribe.refusals));
        let choose = move |received: &Received| {
            let tokens = received.body.len() / 4;
            if tokens > window {
                refusals.fetch_add(1, Ordering::Relaxed);
                return Script::json(400, &overflow(window, tokens));
            }
            let body = received.json();
            let said: Vec<String> = texts(&body);
            let asked = said.last().cloned().unwrap_or_default();
            let text = if asked.contains(PROMPT) {
                summaries.fetch_add(1, Ordering::Relaxed);
                assert!(body.get("tools").is_none(), "{body}");
                facts(&said)
            } else {
                answer(&said, &asked)
            };
            completion(&body, &text, tokens)
        };
        let upstream = Upstream::start_with(choose).await.unwrap();
        (Rig::before(upstream, settings).await, scribe)
    }

    fn summaries(&self) -> usize {
        self.summaries.load(Ordering::Relaxed)
    }

    fn refusals(&self) -> usize {
        self.refusals.load(Ordering::Relaxed)
    }
}

fn overflow(window: usize, tokens: usize) -> Value {
    let message = format!(
        "This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens. \
         Please reduce the length of the messages."
    );
    json!({"error": {"message": message, "type": "invalid_request_error", "param": "messages",
        "code": "context_length_exceeded"}})
}

/// The text of each message.
fn texts(body: &Value) -> Vec<String> {
    let text = |message: &Value| match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    };
    body["messages"].as_array().unwrap().iter().map(text).collect()
}

/// Every `FACT: name=value` line, each once.
fn facts(said: &[String]) -> String {
    let mut facts: Vec<&str> =
        said.iter().flat_map(|text| text.lines()).filter(|line| line.starts_with("FACT: ")).collect();
    facts.sort_unstable();
    facts.dedup();
    format!("The user plants facts.\n{}", facts.join("\n"))
}

/// `What is NAME?` is answered from the facts; all else with small talk.
fn answer(said: &[String], asked: &str) -> String {
    let Some((_, name)) = asked.rsplit_once("What is ") else { return format!("Noted. {}", "blah ".repeat(60)) };
    let name = name.split('?').next().unwrap_or_default();
    let line = format!("FACT: {name}=");
    let known = said.iter().flat_map(|text| text.lines()).find_map(|fact| fact.strip_prefix(&line));
    known.map_or_else(|| "I do not know.".to_owned(), |value| format!("It is {value}."))
}

fn completion(body: &Value, text: &str, tokens: usize) -> Script {
    let answered = text.len() / 4;
    let usage = json!({"prompt_tokens": tokens, "completion_tokens": answered, "total_tokens": tokens + answered});
    if body["stream"] != true {
        return Script::json(
            200,
            &json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            "usage": usage}),
        );
    }
    let chunk = |delta: Value, reason: Option<&str>| {
        json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
    };
    let mut last = chunk(json!({}), Some("stop"));
    last["usage"] = usage;
    Script::sse(&[chunk(json!({"role": "assistant", "content": text}), None), last])
}

fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

/// What the user says in a turn: a fact in the third, and much else.
fn turn_text(turn: usize) -> String {
    let fact = if turn == 3 { "FACT: code word=Zwiebelkuchen-4711\nFACT: port=58213\n" } else { "" };
    format!("{fact}Turn {turn}. {}", "There is much to be said about nothing at all. ".repeat(20))
}

/// The text of a response's messages.
fn text_of(response: &Value) -> String {
    let items = response["output"].as_array().unwrap().iter();
    items.filter_map(|item| item["content"][0]["text"].as_str()).collect()
}

/// The kinds of a response's items.
fn kinds(response: &Value) -> Vec<&str> {
    response["output"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect()
}
