//! The kinds of items that have events of their own in a set order, for whoever writes these events out of an item: a
//! replay, and a reader of an upstream that ran the tool itself. What godex runs is written in `hosted`.

use wire::json::{ObjectWriter, Raw};
use wire::responses::EventKind;

use crate::escaped::Escaped;

/// The names of a kind of item.
#[derive(Debug)]
pub(crate) struct HostedKind {
    pub(crate) item_type: &'static str,
    /// Directly after the announcement.
    pub(crate) begun: &'static [EventKind],
    /// Then the arguments, where they have events: delta and done.
    pub(crate) arguments: Option<[EventKind; 2]>,
    completed: Option<EventKind>,
    failed: Option<EventKind>,
    /// Members that are announced with this in them.
    empty: &'static [(&'static str, &'static str)],
    /// Members that are not there before the end.
    absent: &'static [&'static str],
    pub(crate) has_status: bool,
    /// The status of one that was given up.
    given_up: &'static str,
    /// Members that it then has.
    lacking: &'static [(&'static str, &'static str)],
}

/// The `action` of a search that was given up before anything came of it. It has to be there.
pub(super) const NOT_SEARCHED: &str = r#"{"type":"search","query":"","queries":[]}"#;

/// `error` of a list that was given up.
pub(super) const NOT_LISTED: &str = "\"The response ended before the server had listed its tools.\"";

static KINDS: [HostedKind; 4] = [
    HostedKind {
        item_type: "mcp_list_tools",
        begun: &[EventKind::McpListToolsInProgress],
        arguments: None,
        completed: Some(EventKind::McpListToolsCompleted),
        failed: Some(EventKind::McpListToolsFailed),
        empty: &[("tools", "[]")],
        absent: &["error"],
        has_status: false,
        given_up: "",
        lacking: &[("error", NOT_LISTED)],
    },
    HostedKind {
        item_type: "mcp_call",
        begun: &[EventKind::McpCallInProgress],
        arguments: Some([EventKind::McpCallArgumentsDelta, EventKind::McpCallArgumentsDone]),
        completed: Some(EventKind::McpCallCompleted),
        failed: Some(EventKind::McpCallFailed),
        empty: &[("arguments", "\"\""), ("output", "null"), ("error", "null")],
        absent: &[],
        has_status: true,
        given_up: "incomplete",
        lacking: &[],
    },
    HostedKind {
        item_type: "mcp_approval_request",
        begun: &[],
        arguments: None,
        completed: None,
        failed: None,
        empty: &[],
        absent: &[],
        has_status: false,
        given_up: "",
        lacking: &[],
    },
    HostedKind {
        item_type: "web_search_call",
        begun: &[EventKind::WebSearchCallInProgress, EventKind::WebSearchCallSearching],
        arguments: None,
        completed: Some(EventKind::WebSearchCallCompleted),
        // There is no event for it.
        failed: None,
        empty: &[],
        absent: &["action"],
        has_status: true,
        given_up: "failed",
        lacking: &[("action", NOT_SEARCHED)],
    },
];

/// A member that an event has beside the usual ones.
pub(crate) type Member<'a> = Option<(&'static str, Escaped<'a>)>;

impl HostedKind {
    /// The kind that an item of this type is of.
    pub(crate) fn of(item_type: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.item_type == item_type)
    }

    /// Writes the item as it is announced.
    pub(crate) fn announced(&self, item: Raw<'_>, out: &mut Vec<u8>) {
        let status = self.has_status.then_some(("status", "\"in_progress\""));
        let empty: Vec<_> = self.empty.iter().copied().chain(status).collect();
        let mut copy = ObjectWriter::new(out);
        for (key, value) in item.fields() {
            let name = key.decode();
            if !self.absent.contains(&&*name) {
                let value = empty.iter().find(|(known, _)| *known == name).map_or(value.as_str(), |(_, value)| *value);
                copy.json(&name, value.as_bytes());
            }
        }
        copy.end();
    }

    /// The events between those of the announcement and `output_item.done`.
    pub(crate) fn rest<'a>(&self, item: Raw<'a>) -> Vec<(EventKind, Member<'a>)> {
        let mut events = Vec::new();
        if let Some([delta, done]) = self.arguments {
            let text = item.get("arguments").and_then(Raw::text).map(Escaped::of).unwrap_or_default();
            events.extend((!text.is_empty()).then_some((delta, Some(("delta", text)))));
            events.push((done, Some(("arguments", text))));
        }
        events.extend(self.end(item).map(|kind| (kind, None)));
        events
    }

    /// Closes an item of which only the announcement, the arguments and these events are known: gives the events that are
    /// missing, and writes the item.
    pub(crate) fn give_up<'a>(
        &self,
        item: Raw<'_>,
        arguments: Escaped<'a>,
        seen: &[EventKind],
        out: &mut Vec<u8>,
    ) -> Vec<(EventKind, Member<'a>)> {
        let was = |kind: Option<EventKind>| kind.is_some_and(|kind| seen.contains(&kind));
        let missing = |kind: &EventKind| !seen.contains(kind);
        let mut events: Vec<_> = self.begun.iter().copied().filter(missing).map(|kind| (kind, None)).collect();
        let arguments_done = self.arguments.map(|[_, done]| done).filter(missing);
        events.extend(arguments_done.map(|done| (done, Some(("arguments", arguments)))));
        let is_completed = was(self.completed);
        if !self.has_status && !is_completed && !was(self.failed) {
            events.extend(self.failed.map(|kind| (kind, None)));
        }
        let status = match (is_completed, was(self.failed)) {
            (true, _) => "completed",
            (false, true) => "failed",
            (false, false) => self.given_up,
        };
        let mut closed = ObjectWriter::new(out);
        for (key, value) in item.fields() {
            match &*key.decode() {
                "status" if self.has_status => drop(closed.text("status", status)),
                "arguments" if self.arguments.is_some() => arguments.write(closed.key("arguments")),
                name => drop(closed.raw(name, value)),
            }
        }
        for (name, json) in self.lacking.iter().filter(|_| self.has_status || !is_completed) {
            closed.json(name, json.as_bytes());
        }
        closed.end();
        events
    }

    /// The event that says what became of a finished item.
    fn end(&self, item: Raw<'_>) -> Option<EventKind> {
        let status = item.get("status").and_then(Raw::text).filter(|_| self.has_status);
        let is = |name: &str| status.is_some_and(|status| status.is(name));
        let has_error = item.get("error").is_some_and(|error| !error.is_null());
        if is("failed") || !self.has_status && has_error {
            self.failed
        } else {
            self.completed.filter(|_| is("completed") || !self.has_status)
        }
    }
}
