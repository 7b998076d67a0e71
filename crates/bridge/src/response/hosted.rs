//! Items of tools that godex runs, from their announcement to their end. The events between are those of their kind, in
//! the order in which OpenAI sends them. Only between answers, or before the first one.

use wire::id::{Id, IdKind};
use wire::json::ObjectWriter;
use wire::responses::EventKind;

use super::ResponseWriter;
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
    /// `error` of a list or of a call, as JSON.
    Failed { error: String },
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

    fn write(&self, end: Option<&HostedEnd>, out: &mut Vec<u8>) {
        let mut item = ObjectWriter::new(out);
        item.text("id", self.id.as_str());
        let failed = matches!(end, Some(HostedEnd::Failed { .. } | HostedEnd::NotSearched { .. }));
        let status = match end {
            None => "in_progress",
            Some(_) if failed => "failed",
            Some(_) => "completed",
        };
        let error = match end {
            Some(HostedEnd::Failed { error }) => Some(error.as_bytes()),
            _ => None,
        };
        match &self.start {
            HostedStart::ListTools { server_label } => {
                item.text("type", "mcp_list_tools").text("server_label", server_label);
                match end {
                    Some(HostedEnd::Tools(tools)) => item.json("tools", tools.as_bytes()),
                    _ => item.json("tools", b"[]"),
                };
                // Some clients take no null here.
                if let Some(error) = error {
                    item.json("error", error);
                }
            }
            HostedStart::McpCall { server_label, name, arguments, approval_request_id } => {
                item.text("type", "mcp_call").text("status", status);
                match approval_request_id {
                    Some(id) => item.text("approval_request_id", id),
                    None => item.null("approval_request_id"),
                };
                item.text("arguments", if end.is_none() { "" } else { arguments });
                item.json("error", error.unwrap_or(b"null")).text("name", name);
                match end {
                    Some(HostedEnd::Output(output)) => item.text("output", output),
                    _ => item.null("output"),
                };
                item.text("server_label", server_label);
            }
            HostedStart::WebSearch => {
                item.text("type", "web_search_call").text("status", status);
                if let Some(HostedEnd::Searched { action } | HostedEnd::NotSearched { action }) = end {
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
            item.write(None, event.key("item"));
        });
        match &item.start {
            HostedStart::ListTools { .. } => self.of_hosted(EventKind::McpListToolsInProgress, &item, out, |_| {}),
            HostedStart::McpCall { arguments, .. } => {
                self.of_hosted(EventKind::McpCallInProgress, &item, out, |_| {});
                self.of_hosted(EventKind::McpCallArgumentsDelta, &item, out, |event| {
                    event.text("delta", arguments);
                });
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
        let kind = match (&item.start, end) {
            (HostedStart::ListTools { .. }, HostedEnd::Failed { .. }) => Some(EventKind::McpListToolsFailed),
            (HostedStart::ListTools { .. }, _) => Some(EventKind::McpListToolsCompleted),
            (HostedStart::McpCall { .. }, HostedEnd::Failed { .. }) => Some(EventKind::McpCallFailed),
            (HostedStart::McpCall { .. }, _) => Some(EventKind::McpCallCompleted),
            (HostedStart::WebSearch, HostedEnd::Searched { .. }) => Some(EventKind::WebSearchCallCompleted),
            // There is no event for it.
            (HostedStart::WebSearch, _) => None,
        };
        if let Some(kind) = kind {
            self.of_hosted(kind, item, out, |_| {});
        }
        let mut done = Vec::new();
        item.write(Some(end), &mut done);
        self.close_item(item.output_index, &done, out);
        self.keep_all();
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
