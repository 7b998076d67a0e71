//! The life of the response: created, in progress, items one at a time, one terminal event.
//!
//! ```text
//! Start ─created─▶ Created ─[queued]─ in_progress ─▶ Running ─items, in_progress…─▶ Ended
//!                                                       └──error──▶ Failing ─failed─▶ Ended
//! ```
//!
//! What is cancelled ends with `failed` around a cancelled response, without `error`. What is queued may fail or be
//! cancelled before anybody works on it.

use serde_json::Value;

use super::fields::{ensure, equals, field, list, non_empty, one_of, same, text};
use super::items::{OpenItem, has_status};

#[derive(Default)]
pub(super) struct Checker {
    life: Life,
    /// The snapshot of `response.created`.
    created: Value,
    done: Vec<Value>,
    open: Option<OpenItem>,
    text: String,
    terminal: Value,
}

#[derive(Default, Clone, Copy, PartialEq, Eq, Debug)]
enum Life {
    #[default]
    Start,
    Created,
    Queued,
    Running,
    Failing,
    Ended,
}

impl Checker {
    pub(super) fn event(&mut self, index: usize, name: &str, event: &Value) -> Result<(), String> {
        equals(event, "sequence_number", index)?;
        match (self.life, name) {
            (Life::Start, "response.created") => self.created(event),
            (Life::Created, "response.queued") => {
                self.life = Life::Queued;
                same(&self.created, field(event, "response")?, "status")?;
                self.snapshot(event, &["queued"])
            }
            (Life::Created | Life::Queued, "response.in_progress") => {
                ensure(self.life == Life::Queued || self.created["status"] != "queued", "it was not queued before")?;
                self.life = Life::Running;
                self.snapshot(event, &["in_progress"])
            }
            // A repeated in_progress is the heartbeat; it may come between any two events.
            (Life::Running, "response.in_progress") => self.snapshot(event, &["in_progress"]),
            (Life::Running | Life::Queued, "error") => {
                self.life = Life::Failing;
                error(event)
            }
            (Life::Running, "response.completed" | "response.incomplete") | (Life::Failing, "response.failed") => {
                self.terminal(name, event)
            }
            (Life::Running | Life::Queued, "response.failed") if event["response"]["status"] == "cancelled" => {
                self.terminal(name, event)
            }
            (Life::Running | Life::Queued, "response.failed") => Err("no `error` event directly before it".to_owned()),
            (Life::Running, "response.output_item.added") => self.added(event),
            (Life::Running, "response.output_item.done") => self.item_done(event),
            (Life::Running, _) => self.open_item()?.body(name, event),
            (life, _) => Err(format!("not allowed here ({life:?})")),
        }
    }

    pub(super) fn finish(self) -> Result<(Value, String), String> {
        ensure(self.life == Life::Ended, "no terminal event")?;
        Ok((self.terminal, self.text))
    }

    fn created(&mut self, event: &Value) -> Result<(), String> {
        self.life = Life::Created;
        self.created = field(event, "response")?.clone();
        non_empty(&self.created, "id")?;
        self.snapshot(event, &["in_progress", "queued"])
    }

    /// A response object before the end.
    fn snapshot(&self, event: &Value, statuses: &[&str]) -> Result<(), String> {
        let response = field(event, "response")?;
        self.same_response(response)?;
        one_of(response, "status", statuses)?;
        equals(response, "output", Vec::<Value>::new())?;
        for name in ["usage", "error", "incomplete_details", "completed_at"] {
            equals(response, name, Value::Null)?;
        }
        Ok(())
    }

    fn same_response(&self, response: &Value) -> Result<(), String> {
        equals(response, "object", "response")?;
        same(&self.created, response, "id")?;
        same(&self.created, response, "created_at")
    }

    fn added(&mut self, event: &Value) -> Result<(), String> {
        ensure(self.open.is_none(), "another item is still open")?;
        equals(event, "output_index", self.done.len())?;
        let item = OpenItem::new(event)?;
        ensure(self.done.iter().all(|done| done["id"] != *item.id()), "this item id was used before")?;
        self.open = Some(item);
        Ok(())
    }

    fn open_item(&mut self) -> Result<&mut OpenItem, String> {
        self.open.as_mut().ok_or_else(|| "no item is open".to_owned())
    }

    fn item_done(&mut self, event: &Value) -> Result<(), String> {
        self.open_item()?.done(event)?;
        if let Some(item) = self.open.take() {
            self.text.push_str(item.output_text());
        }
        self.done.push(field(event, "item")?.clone());
        Ok(())
    }

    fn terminal(&mut self, name: &str, event: &Value) -> Result<(), String> {
        let life = std::mem::replace(&mut self.life, Life::Ended);
        ensure(self.open.is_none(), "an item is still open")?;
        let response = field(event, "response")?;
        self.same_response(response)?;
        // Whether there was an `error` before it is known by now.
        let cancelled = life != Life::Failing && name == "response.failed";
        let status = if cancelled { "cancelled" } else { name.strip_prefix("response.").unwrap_or(name) };
        equals(response, "status", status)?;
        finished(response)?;
        equals(response, "output", self.done.clone()).map_err(|problem| format!("not the done items: {problem}"))?;
        self.terminal = response.clone();
        Ok(())
    }
}

/// What holds for a response object at its end, streamed or not.
pub(super) fn finished(response: &Value) -> Result<(), String> {
    equals(response, "object", "response")?;
    non_empty(response, "id")?;
    let status = text(response, "status")?;
    let null_unless = |name: &str, owner: &str| {
        if status == owner { Ok(()) } else { equals(response, name, Value::Null) }
    };
    null_unless("error", "failed")?;
    null_unless("incomplete_details", "incomplete")?;
    null_unless("completed_at", "completed")?;
    for (index, item) in list(response, "output")?.iter().enumerate() {
        closed_item(item, status).map_err(|problem| format!("output[{index}]: {problem}"))?;
    }
    match status {
        "completed" => ensure(response["completed_at"].is_i64(), "`completed_at` is not an integer"),
        "incomplete" => non_empty(&response["incomplete_details"], "reason").map(drop),
        "failed" => {
            non_empty(&response["error"], "code")?;
            text(&response["error"], "message").map(drop)
        }
        "cancelled" => Ok(()),
        _ => Err(format!("`status` {status:?} is not an end")),
    }
}

fn closed_item(item: &Value, status: &str) -> Result<(), String> {
    non_empty(item, "id")?;
    non_empty(item, "type")?;
    if !has_status(item) {
        return Ok(());
    }
    // What somebody else ran may have failed without the answer failing.
    let hosted =
        !["message", "reasoning", "function_call", "custom_tool_call"].iter().any(|kind| item["type"] == *kind);
    let allowed: &[&str] = match status {
        "completed" if hosted => &["completed", "failed"],
        "completed" => &["completed"],
        _ => &["completed", "incomplete", "failed"],
    };
    one_of(item, "status", allowed)
}

/// Clients read either the flat or the nested form: both must be there, and agree.
fn error(event: &Value) -> Result<(), String> {
    let nested = field(event, "error")?;
    text(event, "message")?;
    text(nested, "type")?;
    for name in ["code", "message", "param"] {
        same(event, nested, name).map_err(|problem| format!("flat and nested: {problem}"))?;
    }
    Ok(())
}
