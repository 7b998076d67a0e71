//! The parts of a message, of a reasoning text or of a reasoning summary: one open at a time, its deltas
//! adding up to its `done`, its `done` to the part in the finished item.

use serde_json::{Value, json};

use super::fields::{ensure, equals, field, list, text};

pub(super) struct Parts {
    /// `content_index` or `summary_index`.
    index: &'static str,
    allowed: &'static [&'static str],
    closed: Vec<Value>,
    open: Option<Part>,
}

struct Part {
    kind: &'static Kind,
    streamed: String,
    annotations: Vec<Value>,
    text_done: bool,
}

/// The names of one kind of part on the wire.
struct Kind {
    part: &'static str,
    added: &'static str,
    delta: &'static str,
    text_done: &'static str,
    done: &'static str,
    /// The field of the part and of the done event that holds the text.
    field: &'static str,
}

const ADDED: &str = "response.content_part.added";
const DONE: &str = "response.content_part.done";

static KINDS: [Kind; 4] = [
    Kind {
        part: "output_text",
        added: ADDED,
        delta: "response.output_text.delta",
        text_done: "response.output_text.done",
        done: DONE,
        field: "text",
    },
    Kind {
        part: "refusal",
        added: ADDED,
        delta: "response.refusal.delta",
        text_done: "response.refusal.done",
        done: DONE,
        field: "refusal",
    },
    Kind {
        part: "reasoning_text",
        added: ADDED,
        delta: "response.reasoning_text.delta",
        text_done: "response.reasoning_text.done",
        done: DONE,
        field: "text",
    },
    Kind {
        part: "summary_text",
        added: "response.reasoning_summary_part.added",
        delta: "response.reasoning_summary_text.delta",
        text_done: "response.reasoning_summary_text.done",
        done: "response.reasoning_summary_part.done",
        field: "text",
    },
];

impl Parts {
    pub(super) fn new(index: &'static str, allowed: &'static [&'static str]) -> Self {
        Self { index, allowed, closed: Vec::new(), open: None }
    }

    pub(super) fn closed(&self) -> Result<&[Value], String> {
        ensure(self.open.is_none(), "a part is still open")?;
        Ok(&self.closed)
    }

    pub(super) fn event(&mut self, name: &str, event: &Value) -> Result<(), String> {
        equals(event, self.index, self.closed.len())?;
        let Some(part) = &mut self.open else {
            self.open = Some(self.added(name, event)?);
            return Ok(());
        };
        let closes = name == part.kind.done;
        part.event(name, event)?;
        if closes {
            self.closed.push(field(event, "part")?.clone());
            self.open = None;
        }
        Ok(())
    }

    fn added(&self, name: &str, event: &Value) -> Result<Part, String> {
        ensure(KINDS.iter().any(|kind| kind.added == name), "no part is open, or not allowed in this item")?;
        let part = field(event, "part")?;
        let kind = text(part, "type")?;
        let kind = KINDS
            .iter()
            .find(|known| known.part == kind && known.added == name && self.allowed.contains(&known.part))
            .ok_or_else(|| format!("part type {kind:?} is not allowed here"))?;
        equals(part, kind.field, "")?;
        if kind.part == "output_text" {
            equals(part, "annotations", json!([]))?;
        }
        Ok(Part { kind, streamed: String::new(), annotations: Vec::new(), text_done: false })
    }
}

impl Part {
    fn event(&mut self, name: &str, event: &Value) -> Result<(), String> {
        let kind = self.kind;
        if name == kind.done {
            ensure(self.text_done, "the part's text is not done")?;
            return self.done(field(event, "part")?);
        }
        ensure(!self.text_done, "the part's text is done already")?;
        if name == kind.delta {
            self.streamed.push_str(text(event, "delta")?);
            Ok(())
        } else if name == kind.text_done {
            self.text_done = true;
            equals(event, kind.field, self.streamed.as_str()).map_err(|problem| format!("not the deltas: {problem}"))
        } else if name == "response.output_text.annotation.added" && kind.part == "output_text" {
            equals(event, "annotation_index", self.annotations.len())?;
            self.annotations.push(field(event, "annotation")?.clone());
            Ok(())
        } else {
            Err(format!("no event of the open part ({})", kind.part))
        }
    }

    fn done(&self, part: &Value) -> Result<(), String> {
        equals(part, "type", self.kind.part)?;
        equals(part, self.kind.field, self.streamed.as_str())?;
        if self.kind.part == "output_text" {
            equals(part, "annotations", self.annotations.clone())?;
            list(part, "logprobs")?;
        }
        Ok(())
    }
}
