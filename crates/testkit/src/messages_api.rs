//! A Messages API, simulated and strict: what its own server would refuse is refused here, without a key and offline.
//!
//! It signs each thought with a hash of all that was before it (tools, system, messages, and what it said itself in the
//! same answer) and of its text, and refuses a thought whose signature does not fit where it comes back. It keeps a prefix
//! cache as marks ask for it, and counts what was read and written. What the model says is the test's to decide.

mod cache;
mod signed;
mod stream;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use serde_json::{Value, json};

use crate::{Received, Script, Upstream};
pub use cache::CacheUse;
use cache::PrefixCache;
pub use stream::events;

/// What the model does: its blocks, whole and without signatures, and why it stops.
#[derive(Debug, Clone)]
pub struct Reply {
    pub blocks: Vec<Value>,
    pub stop_reason: &'static str,
}

impl Reply {
    pub fn new(stop_reason: &'static str, blocks: &[Value]) -> Self {
        Self { blocks: blocks.to_vec(), stop_reason }
    }

    /// Text, and nothing else.
    pub fn text(text: &str) -> Self {
        Self::new("end_turn", &[json!({"type": "text", "text": text})])
    }
}

/// What became of all requests so far.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Why requests were refused.
    pub refused: Vec<String>,
    /// How many thoughts came back, and how many of them were dropped, as the request asked for.
    pub replayed: usize,
    pub dropped: usize,
    /// How each accepted request used the cache.
    pub cache: Vec<CacheUse>,
}

/// The simulated API, and what it has seen.
#[derive(Debug, Clone)]
pub struct MessagesApi {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    seen: Seen,
    cache: PrefixCache,
    answers: usize,
    /// The last answer did.
    has_paused: bool,
}

/// The trial without which a request may say nothing about what its thoughts are bound to.
const BINDING: &str = "thinking-binding-controls";

impl MessagesApi {
    /// Starts it. `model` is given the request, and the number of the answer, from 0.
    pub async fn start(model: impl Fn(&Value, usize) -> Reply + Send + Sync + 'static) -> Result<(Upstream, Self)> {
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let upstream = Upstream::start_with(move |received| answer(received, &mut lock(&shared), &model)).await?;
        Ok((upstream, Self { state }))
    }

    pub fn seen(&self) -> Seen {
        lock(&self.state).seen.clone()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // A test that panicked elsewhere must not turn this one into noise.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(received: &Received, state: &mut State, model: &dyn Fn(&Value, usize) -> Reply) -> Script {
    let request = received.json();
    match accept(received, &request, state) {
        Ok(dropped) => {
            let reply = model(&request, state.answers);
            state.answers += 1;
            state.has_paused = reply.stop_reason == "pause_turn";
            let used = state.cache.use_for(&request);
            state.seen.cache.push(used);
            let blocks = signed::sign(&request, &reply.blocks);
            let events = events(state.answers, &blocks, reply.stop_reason, used, dropped);
            let event = |event: &Value| format!("event: {}\ndata: {event}\n\n", text(&event["type"]));
            let body = events.iter().map(event).collect::<Vec<_>>().concat();
            Script::sse_bytes(body).header("request-id", "req_simulated")
        }
        Err(problem) => {
            state.seen.refused.push(problem.clone());
            let error = json!({"type": "invalid_request_error", "message": problem});
            Script::json(400, &json!({"type": "error", "error": error, "request_id": "req_simulated"}))
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// How many thoughts are dropped, or what is wrong.
fn accept(received: &Received, request: &Value, state: &mut State) -> Result<usize, String> {
    crate::messages::check_request_after(request, state.has_paused)?;
    let model = text(&request["model"]);
    if model.contains("claude") {
        crate::messages::check_for_model(model, request)?;
    }
    let has_trial = received.header("anthropic-beta").is_some_and(|betas| betas.contains(BINDING));
    if request["thinking"].get("block_binding").is_some() && !has_trial {
        return Err("thinking.block_binding: Extra inputs are not permitted".to_owned());
    }
    if received.header("x-api-key").is_none() && received.header("authorization").is_none() {
        return Err("x-api-key: required".to_owned());
    }
    if received.header("anthropic-version").is_none() {
        return Err("anthropic-version: header is required".to_owned());
    }
    let found = signed::check(request);
    state.seen.replayed += found.fitting + found.strange.len();
    match found.strange.first() {
        None => Ok(0),
        Some(_) if request["thinking"]["block_binding"]["prefix_mismatch_behavior"] == "drop_block" => {
            state.seen.dropped += found.strange.len();
            Ok(found.strange.len())
        }
        Some(place) => Err(format!(
            "{place}: Invalid signature in thinking block. The block is bound to a different conversation."
        )),
    }
}

#[cfg(test)]
mod tests;
