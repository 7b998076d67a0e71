//! Items of tools that godex runs, from their announcement to their end. The events between are those of their kind, in
//! the order in which OpenAI sends them. Between answers, or before the first one; in the middle of one only where its
//! upstream ran the tool.

use wire::id::{Id, IdKind};
use wire::json::ObjectWriter;
use wire::responses::EventKind;

use super::ResponseWriter;
use super::hosted_kind::{NOT_LISTED, NOT_SEARCHED};
use crate::events::Events;

/// What begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostedStart {
    /// A server is asked for its tools.
    ListTools { server_label: String },
    /// A tool of a server is called.
    McpCall { server_label: String, name: String, arguments: String, approval_request_id: Option<String> },
    /// Something is searched, opened, or looked for in a page.
    WebSearch,
}

/// What it came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostedEnd {
    /// The tools, as a JSON array of what `mcp_list_tools` shows of each.
    Tools(String),
    /// What a tool said, as the model is told it.
    Output(String),
    /// The `action`, as JSON.
    Searched { action: String },
    /// A search that came to nothing, with its `action`.
    NotSearched { action: String },
    /// `error` as JSON: of a list a string, of a call an object.
    Failed { error: String },
}

/// How far an item has come.
#[derive(Clone, Copy)]
enum Stage<'a> {
    Begun,
    Ended(&'a HostedEnd),
    Abandoned,
}

/// An item that has begun.
#[derive(Debug, Clone)]
pub struct HostedItem {
    start: HostedStart,
    id: Id,
    output_index: u32,
}

impl HostedItem {
    pub const fn id(&self) -> &Id {
        &self.id
    }

    pub const fn start(&self) -> &HostedStart {
        &self.start
    }

    fn write(&self, stage: Stage<'_>, out: &mut Vec<u8>) {
        let mut item = ObjectWriter::new(out);
        item.text("id", self.id.as_str());
        match &self.start {
            HostedStart::ListTools { server_label } => {
                item.text("type", "mcp_list_tools").text("server_label", server_label);
                let (tools, error) = match stage {
                    Stage::Ended(HostedEnd::Tools(tools)) => (tools.as_str(), None),
                    Stage::Ended(HostedEnd::Failed { error }) => ("[]", Some(error.as_str())),
                    Stage::Begun | Stage::Ended(_) => ("[]", None),
                    Stage::Abandoned => ("[]", Some(NOT_LISTED)),
                };
                item.json("tools", tools.as_bytes());
                // Some clients take no null here.
                if let Some(error) = error {
                    item.json("error", error.as_bytes());
                }
            }
            HostedStart::McpCall { server_label, name, arguments, approval_request_id } => {
                let status = match stage {
                    Stage::Begun => "in_progress",
                    Stage::Ended(HostedEnd::Failed { .. }) => "failed",
                    Stage::Ended(_) => "completed",
                    Stage::Abandoned => "incomplete",
                };
                item.text("type", "mcp_call").text("status", status);
                match approval_request_id {
                    Some(id) => item.text("approval_request_id", id),
                    None => item.null("approval_request_id"),
                };
                item.text("arguments", if matches!(stage, Stage::Begun) { "" } else { arguments });
                match stage {
                    Stage::Ended(HostedEnd::Failed { error }) => item.json("error", error.as_bytes()),
                    _ => item.null("error"),
                };
                item.text("name", name);
                match stage {
                    Stage::Ended(HostedEnd::Output(output)) => item.text("output", output),
                    _ => item.null("output"),
                };
                item.text("server_label", server_label);
            }
            HostedStart::WebSearch => {
                let (status, action) = match stage {
                    Stage::Begun => ("in_progress", None),
                    Stage::Ended(HostedEnd::Searched { action }) => ("completed", Some(action.as_str())),
                    Stage::Ended(HostedEnd::NotSearched { action }) => ("failed", Some(action.as_str())),
                    Stage::Ended(_) | Stage::Abandoned => ("failed", Some(NOT_SEARCHED)),
                };
                item.text("type", "web_search_call").text("status", status);
                if let Some(action) = action {
                    item.json("action", action.as_bytes());
                }
            }
        }
        item.end();
    }
}

impl ResponseWriter {
    /// Announces the item.
    pub fn open_hosted(&mut self, start: HostedStart, out: &mut Events) -> HostedItem {
        let kind = match start {
            HostedStart::ListTools { .. } => IdKind::McpListTools,
            HostedStart::McpCall { .. } => IdKind::McpCall,
            HostedStart::WebSearch => IdKind::WebSearchCall,
        };
        let item = HostedItem { start, id: self.make_id(kind), output_index: self.output_index() };
        self.event(EventKind::OutputItemAdded, out, |event| {
            event.int("output_index", item.output_index);
            item.write(Stage::Begun, event.key("item"));
        });
        match &item.start {
            HostedStart::ListTools { .. } => self.of_hosted(EventKind::McpListToolsInProgress, &item, out, |_| {}),
            HostedStart::McpCall { arguments, .. } => {
                self.of_hosted(EventKind::McpCallInProgress, &item, out, |_| {});
                if !arguments.is_empty() {
                    self.of_hosted(EventKind::McpCallArgumentsDelta, &item, out, |event| {
                        event.text("delta", arguments);
                    });
                }
                self.of_hosted(EventKind::McpCallArgumentsDone, &item, out, |event| {
                    event.text("arguments", arguments);
                });
            }
            HostedStart::WebSearch => {
                self.of_hosted(EventKind::WebSearchCallInProgress, &item, out, |_| {});
                self.of_hosted(EventKind::WebSearchCallSearching, &item, out, |_| {});
            }
        }
        item
    }

    /// Closes it and puts it into the output.
    pub fn close_hosted(&mut self, item: &HostedItem, end: &HostedEnd, out: &mut Events) {
        self.close_hosted_in_answer(item, end, out);
        self.keep_all();
    }

    /// The same, in the middle of an answer whose upstream ran the tool.
    pub(crate) fn close_hosted_in_answer(&mut self, item: &HostedItem, end: &HostedEnd, out: &mut Events) {
        let kind = match (&item.start, end) {
            (HostedStart::ListTools { .. }, HostedEnd::Failed { .. }) => Some(EventKind::McpListToolsFailed),
            (HostedStart::ListTools { .. }, _) => Some(EventKind::McpListToolsCompleted),
            (HostedStart::McpCall { .. }, HostedEnd::Failed { .. }) => Some(EventKind::McpCallFailed),
            (HostedStart::McpCall { .. }, _) => Some(EventKind::McpCallCompleted),
            (HostedStart::WebSearch, HostedEnd::Searched { .. }) => Some(EventKind::WebSearchCallCompleted),
            // There is no event for it.
            (HostedStart::WebSearch, _) => None,
        };
        self.end_hosted(kind, item, Stage::Ended(end), out);
    }

    /// Closes an item that nothing will come of any more: the response ends before the tool does.
    pub fn abandon_hosted(&mut self, item: &HostedItem, out: &mut Events) {
        let kind = match &item.start {
            HostedStart::ListTools { .. } => Some(EventKind::McpListToolsFailed),
            // What became of the call nobody knows.
            HostedStart::McpCall { .. } | HostedStart::WebSearch => None,
        };
        self.end_hosted(kind, item, Stage::Abandoned, out);
        self.keep_all();
    }

    /// A call that somebody has to approve before it is run. `arguments`: as the model wrote them.
    pub fn approval_request(&mut self, id: &Id, server_label: &str, name: &str, arguments: &str, out: &mut Events) {
        let mut request = Vec::with_capacity(arguments.len() + 256);
        let mut item = ObjectWriter::new(&mut request);
        item.text("id", id.as_str()).text("type", "mcp_approval_request").text("arguments", arguments);
        item.text("name", name).text("server_label", server_label);
        item.end();
        self.item(&request, &request, out);
    }

    fn end_hosted(&mut self, kind: Option<EventKind>, item: &HostedItem, stage: Stage<'_>, out: &mut Events) {
        if let Some(kind) = kind {
            self.of_hosted(kind, item, out, |_| {});
        }
        let mut done = Vec::new();
        item.write(stage, &mut done);
        self.close_item(item.output_index, &done, out);
    }

    fn of_hosted(
        &mut self,
        kind: EventKind,
        item: &HostedItem,
        out: &mut Events,
        more: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        self.event(kind, out, |event| {
            event.int("output_index", item.output_index).text("item_id", item.id.as_str());
            more(event);
        });
    }
}
