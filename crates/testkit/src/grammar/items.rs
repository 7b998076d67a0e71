//! The open item: which body events its type allows, and whether its `done` is what they said.

use serde_json::{Value, json};

use super::fields::{ensure, equals, field, list, non_empty, one_of, same, text};
use super::hosted::Hosted;
use super::parts::Parts;

pub(super) struct OpenItem {
    /// The item as it was added.
    added: Value,
    output_index: Value,
    body: Body,
    output_text: String,
}

enum Body {
    Message {
        content: Parts,
    },
    Reasoning {
        content: Parts,
        summary: Parts,
    },
    /// A call whose argument string is streamed: `function_call` and `custom_tool_call`.
    Call {
        call: &'static Call,
        streamed: String,
        done: bool,
    },
    /// What a hosted tool did, of a kind whose events have an order.
    Hosted(Hosted),
    /// Other hosted tools and whatever else: events named after the item type, or none.
    Other,
}

/// The names of a streamed call's parts on the wire.
struct Call {
    item: &'static str,
    delta: &'static str,
    done: &'static str,
    /// The field of the item and of the done event that holds the whole string.
    field: &'static str,
    /// `function_call_arguments.done` repeats the name; the custom tool's event does not.
    named: bool,
}

static CALLS: [Call; 2] = [
    Call {
        item: "function_call",
        delta: "response.function_call_arguments.delta",
        done: "response.function_call_arguments.done",
        field: "arguments",
        named: true,
    },
    Call {
        item: "custom_tool_call",
        delta: "response.custom_tool_call_input.delta",
        done: "response.custom_tool_call_input.done",
        field: "input",
        named: false,
    },
];

impl OpenItem {
    pub(super) fn new(event: &Value) -> Result<Self, String> {
        let item = field(event, "item")?;
        non_empty(item, "id")?;
        let kind = non_empty(item, "type")?;
        if has_status(item) {
            equals(item, "status", "in_progress")?;
        } else {
            ensure(item.get("status").is_none(), "such an item has no `status`")?;
        }
        let body = match kind {
            "message" => {
                equals(item, "role", "assistant")?;
                equals(item, "content", json!([]))?;
                Body::Message { content: Parts::new("content_index", &["output_text", "refusal"]) }
            }
            "reasoning" => {
                equals(item, "summary", json!([]))?;
                if item.get("content").is_some() {
                    equals(item, "content", json!([]))?;
                }
                let content = Parts::new("content_index", &["reasoning_text"]);
                Body::Reasoning { content, summary: Parts::new("summary_index", &["summary_text"]) }
            }
            _ => match CALLS.iter().find(|call| call.item == kind) {
                Some(call) => {
                    equals(item, call.field, "")?;
                    non_empty(item, "call_id")?;
                    non_empty(item, "name")?;
                    Body::Call { call, streamed: String::new(), done: false }
                }
                None => Hosted::of(item)?.map_or(Body::Other, Body::Hosted),
            },
        };
        let output_index = field(event, "output_index")?.clone();
        Ok(Self { added: item.clone(), output_index, body, output_text: String::new() })
    }

    pub(super) fn id(&self) -> &Value {
        &self.added["id"]
    }

    pub(super) fn output_text(&self) -> &str {
        &self.output_text
    }

    /// Any event between `added` and `done`.
    pub(super) fn body(&mut self, name: &str, event: &Value) -> Result<(), String> {
        equals(event, "output_index", self.output_index.clone())?;
        // Shell events carry no item id, only the index.
        if !matches!(self.body, Body::Other) || event.get("item_id").is_some() {
            equals(event, "item_id", self.added["id"].clone())?;
        }
        if name == "response.output_text.delta" {
            self.output_text.push_str(text(event, "delta")?);
        }
        let kind = &self.added["type"];
        match &mut self.body {
            Body::Reasoning { summary, .. } if name.starts_with("response.reasoning_summary_") => {
                summary.event(name, event)
            }
            Body::Message { content } | Body::Reasoning { content, .. } => content.event(name, event),
            Body::Call { call, streamed, done } => call.event(&self.added, streamed, done, name, event),
            Body::Hosted(hosted) => hosted.event(name, event),
            Body::Other => {
                let prefix = format!("response.{}", kind.as_str().unwrap_or_default());
                ensure(name.starts_with(&prefix), "no event of the open item's type")
            }
        }
    }

    /// The `output_item.done` event.
    pub(super) fn done(&self, event: &Value) -> Result<(), String> {
        equals(event, "output_index", self.output_index.clone())?;
        let item = field(event, "item")?;
        same(&self.added, item, "id")?;
        same(&self.added, item, "type")?;
        if has_status(item) {
            one_of(item, "status", &["completed", "incomplete", "failed"])?;
        } else {
            ensure(item.get("status").is_none(), "such an item has no `status`")?;
        }
        match &self.body {
            Body::Message { content } => {
                same(&self.added, item, "role")?;
                equals(item, "content", content.closed()?.to_vec())
            }
            Body::Reasoning { content, summary } => {
                equals(item, "summary", summary.closed()?.to_vec())?;
                match content.closed()? {
                    [] if item.get("content").is_none() => Ok(()),
                    parts => equals(item, "content", parts.to_vec()),
                }
            }
            Body::Call { call, streamed, done } => {
                ensure(*done, "the call was not closed by its done event")?;
                same(&self.added, item, "call_id")?;
                same(&self.added, item, "name")?;
                equals(item, call.field, streamed.as_str())
            }
            Body::Hosted(hosted) => hosted.done(&self.added, item),
            Body::Other => self.closed_other(item),
        }
    }

    fn closed_other(&self, item: &Value) -> Result<(), String> {
        if self.added.get("call_id").is_some() {
            same(&self.added, item, "call_id")?;
        }
        // A list that is there must be a list: clients iterate over it.
        for name in ["tools", "results", "outputs"] {
            if item.get(name).is_some_and(|value| !value.is_null()) {
                list(item, name)?;
            }
        }
        Ok(())
    }
}

/// Some items are there or not.
pub(super) fn has_status(item: &Value) -> bool {
    item["type"] != "compaction" && !Hosted::is_stateless(&item["type"])
}

impl Call {
    fn event(
        &self,
        added: &Value,
        streamed: &mut String,
        done: &mut bool,
        name: &str,
        event: &Value,
    ) -> Result<(), String> {
        ensure(!*done, "the call is closed already")?;
        if name == self.delta {
            streamed.push_str(text(event, "delta")?);
            return Ok(());
        }
        ensure(name == self.done, "no event of the open item's type")?;
        *done = true;
        if self.named {
            same(added, event, "name")?;
        }
        equals(event, self.field, streamed.as_str()).map_err(|problem| format!("not the deltas: {problem}"))
    }
}
