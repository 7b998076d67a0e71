//! The order of messages, and which result answers which call.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{blocks, demand, object, only};

pub(super) fn check(body: &Map<String, Value>, pause: bool) -> Result<(), String> {
    if let Some(system) = body.get("system") {
        blocks::texts(system, "system")?;
    }
    let messages = body.get("messages").and_then(Value::as_array).filter(|messages| !messages.is_empty());
    let messages = messages.ok_or_else(|| "messages: at least one message is required".to_owned())?;
    let mut state = Conversation::default();
    for (index, message) in messages.iter().enumerate() {
        state.message(message, &format!("messages[{index}]"))?;
    }
    state.end(pause)
}

/// What the messages so far demand of the next one.
#[derive(Default)]
struct Conversation<'v> {
    last: &'v str,
    /// The last one that was the user's or the assistant's.
    turn: &'v str,
    /// Calls of the assistant's last message.
    open: Vec<&'v str>,
    ids: BTreeSet<&'v str>,
    /// The assistant's last message ends with what a tool of the server did.
    has_paused: bool,
}

impl<'v> Conversation<'v> {
    fn message(&mut self, message: &'v Value, at: &str) -> Result<(), String> {
        only(object(message, at)?, &["role", "content"], at)?;
        let (role, content) = (message["role"].as_str().unwrap_or_default(), &message["content"]);
        match role {
            "user" => {
                demand(self.turn != "user", || format!("{at}: two messages of the user in a row"))?;
                demand(self.last != "system", || format!("{at}: only the assistant may follow a system message"))?;
                self.results(content, at)?;
            }
            "assistant" => {
                demand(self.turn == "user", || format!("{at}: the assistant may only answer the user"))?;
                demand(self.open.is_empty(), || format!("{at}: results are missing before it: {:?}", self.open))?;
                self.calls(content, at)?;
            }
            "system" => {
                demand(self.turn == "user", || format!("{at}: a system message must follow the user's"))?;
                demand(self.open.is_empty(), || format!("{at}: between calls and their results"))?;
                blocks::texts(content, at)?;
            }
            other => return Err(format!("{at}.role: {other:?}")),
        }
        self.last = role;
        if role != "system" {
            self.turn = role;
        }
        Ok(())
    }

    fn end(&self, pause: bool) -> Result<(), String> {
        demand(self.open.is_empty(), || format!("messages: the end has no results of {:?}", self.open))?;
        // One that paused in the midst of what its server's tools do goes on from there.
        demand(self.turn == "user" || self.has_paused || pause, || {
            "messages: the last one must be the user's (no prefill)".to_owned()
        })
    }

    /// The user's message: all results of the calls before it, each once, and first; then the rest.
    fn results(&mut self, content: &'v Value, at: &str) -> Result<(), String> {
        let mut rest = false;
        for block in blocks::list(content, at)? {
            if block["type"] == "tool_result" {
                demand(!rest, || format!("{at}: a result behind other content"))?;
                let id = block["tool_use_id"].as_str().unwrap_or_default();
                let known = self.open.iter().position(|open| *open == id);
                let known = known.ok_or_else(|| format!("{at}: a result of no call before it: {id:?}"))?;
                self.open.remove(known);
            } else {
                rest = true;
            }
            blocks::of_user(block, at)?;
        }
        demand(self.open.is_empty(), || format!("{at}: no results of {:?}", self.open))
    }

    /// The assistant's message: text and thoughts, then calls, among which only thoughts may be.
    fn calls(&mut self, content: &'v Value, at: &str) -> Result<(), String> {
        let list = blocks::list(content, at)?;
        let mut served: Vec<&Value> = Vec::new();
        for block in &list {
            let kind = block["type"].as_str().unwrap_or_default();
            if kind == "server_tool_use" {
                served.push(&block["id"]);
            } else if kind.ends_with("_tool_result") {
                let known = served.iter().position(|id| **id == block["tool_use_id"]);
                served.remove(known.ok_or_else(|| format!("{at}: a result of no use before it: {block}"))?);
            }
            if kind == "tool_use" {
                let id = block["id"].as_str().unwrap_or_default();
                demand(self.ids.insert(id), || format!("{at}: tool_use ids must be unique: {id:?}"))?;
                self.open.push(id);
            }
            demand(kind != "text" || self.open.is_empty(), || format!("{at}: text behind a call"))?;
            blocks::of_assistant(block, at)?;
        }
        demand(served.is_empty(), || format!("{at}: server_tool_use without a result: {served:?}"))?;
        let last = list.last().map(|block| block["type"].as_str().unwrap_or_default()).unwrap_or_default();
        self.has_paused = last.ends_with("_tool_result");
        demand(!matches!(last, "thinking" | "redacted_thinking"), || format!("{at}: a thought cannot be its end"))
    }
}
