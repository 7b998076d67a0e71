//! Items of hosted tools: the events of each kind in their order, and whether `done` is what they said.
//!
//! ```text
//! mcp_list_tools        in_progress ─▶ completed | failed
//! mcp_call              in_progress ─▶ arguments.delta… ─▶ arguments.done ─▶ completed | failed | nothing: incomplete
//! web_search_call       in_progress ─▶ searching ─▶ completed | nothing: failed, incomplete
//! mcp_approval_request  nothing
//! ```

use serde_json::{Value, json};

use super::fields::{ensure, equals, field, list, non_empty, one_of, same, text};

pub(super) struct Hosted {
    kind: Kind,
    /// The last part of the name of the last event.
    last: String,
    arguments: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    ListTools,
    Call,
    Approval,
    WebSearch,
}

/// What may come after what, per kind: the event before (nothing at first), and the events that may follow.
const LIST_TOOLS: &[(&str, &[&str])] = &[
    ("", &["mcp_list_tools.in_progress"]),
    ("mcp_list_tools.in_progress", &["mcp_list_tools.completed", "mcp_list_tools.failed"]),
];
const CALL: &[(&str, &[&str])] = &[
    ("", &["mcp_call.in_progress"]),
    ("mcp_call.in_progress", &["mcp_call_arguments.delta", "mcp_call_arguments.done"]),
    ("mcp_call_arguments.delta", &["mcp_call_arguments.delta", "mcp_call_arguments.done"]),
    ("mcp_call_arguments.done", &["mcp_call.completed", "mcp_call.failed"]),
];
const WEB_SEARCH: &[(&str, &[&str])] = &[
    ("", &["web_search_call.in_progress"]),
    ("web_search_call.in_progress", &["web_search_call.searching"]),
    ("web_search_call.searching", &["web_search_call.completed"]),
];

impl Hosted {
    /// Of an item as it is announced, if it is one.
    pub(super) fn of(item: &Value) -> Result<Option<Self>, String> {
        let kind = match text(item, "type")? {
            "mcp_list_tools" => {
                equals(item, "tools", json!([]))?;
                ensure(item.get("error").is_none(), "a list is announced with an `error`")?;
                Kind::ListTools
            }
            "mcp_call" => {
                equals(item, "arguments", "")?;
                ensure(item.get("output").is_none_or(Value::is_null), "a call is announced with its `output`")?;
                ensure(item.get("error").is_none_or(Value::is_null), "a call is announced with an `error`")?;
                text(item, "name")?;
                Kind::Call
            }
            "mcp_approval_request" => {
                text(item, "arguments")?;
                text(item, "name")?;
                Kind::Approval
            }
            "web_search_call" => {
                ensure(item.get("action").is_none(), "a search is announced with its `action`")?;
                Kind::WebSearch
            }
            _ => return Ok(None),
        };
        if !matches!(kind, Kind::WebSearch) {
            non_empty(item, "server_label")?;
        }
        Ok(Some(Self { kind, last: String::new(), arguments: String::new() }))
    }

    /// Items of this type are there or not: they have no status.
    pub(super) fn is_stateless(item_type: &Value) -> bool {
        ["mcp_list_tools", "mcp_approval_request"].iter().any(|kind| item_type == kind)
    }

    pub(super) fn event(&mut self, name: &str, event: &Value) -> Result<(), String> {
        let order = match self.kind {
            Kind::ListTools => LIST_TOOLS,
            Kind::Call => CALL,
            Kind::WebSearch => WEB_SEARCH,
            Kind::Approval => &[],
        };
        let name = name.strip_prefix("response.").unwrap_or(name);
        let may_follow = order.iter().filter(|(before, _)| *before == self.last).flat_map(|(_, after)| *after);
        let allowed: Vec<&&str> = may_follow.collect();
        ensure(allowed.iter().any(|other| **other == name), &format!("after {:?} may come {allowed:?}", self.last))?;
        name.clone_into(&mut self.last);
        match name {
            "mcp_call_arguments.delta" => self.arguments.push_str(non_empty(event, "delta")?),
            "mcp_call_arguments.done" => equals(event, "arguments", self.arguments.as_str())
                .map_err(|problem| format!("not the deltas: {problem}"))?,
            _ => {}
        }
        Ok(())
    }

    pub(super) fn done(&self, added: &Value, item: &Value) -> Result<(), String> {
        let fixed: &[&str] =
            if self.kind == Kind::WebSearch { &[] } else { &["server_label", "name", "approval_request_id"] };
        for name in fixed {
            if added.get(name).is_some() || item.get(name).is_some() {
                same(added, item, name)?;
            }
        }
        match self.kind {
            Kind::Approval => ensure(added == item, "an approval request changes"),
            Kind::ListTools => self.listed(item),
            Kind::Call => self.called(item),
            Kind::WebSearch => self.searched(item),
        }
    }

    fn listed(&self, item: &Value) -> Result<(), String> {
        for tool in list(item, "tools")? {
            non_empty(tool, "name")?;
            ensure(field(tool, "input_schema")?.is_object(), "`input_schema` is not an object")?;
            for name in ["description", "annotations"] {
                ensure(tool.get(name).is_none_or(|value| !value.is_null()), &format!("`{name}` is null"))?;
            }
        }
        match &*self.last {
            "mcp_list_tools.completed" => ensure(item.get("error").is_none(), "a list that is there has an `error`"),
            "mcp_list_tools.failed" => {
                equals(item, "tools", json!([]))?;
                non_empty(item, "error").map(drop)
            }
            _ => Err("the list was neither completed nor failed".to_owned()),
        }
    }

    fn called(&self, item: &Value) -> Result<(), String> {
        equals(item, "arguments", self.arguments.as_str())?;
        let (status, may_fail) = match &*self.last {
            "mcp_call.completed" => ("completed", false),
            "mcp_call.failed" => ("failed", true),
            "mcp_call_arguments.done" => ("incomplete", false),
            _ => return Err("the call was not closed by its done event".to_owned()),
        };
        equals(item, "status", status)?;
        let null = |name: &str| item.get(name).is_none_or(Value::is_null);
        ensure(may_fail || null("error"), "a call that has not failed has an `error`")?;
        ensure(status == "completed" || null("output"), "a call that was not completed has an `output`")
    }

    fn searched(&self, item: &Value) -> Result<(), String> {
        match &*self.last {
            "web_search_call.completed" => equals(item, "status", "completed")?,
            "web_search_call.searching" => one_of(item, "status", &["failed", "incomplete"])?,
            _ => return Err("nothing was searched".to_owned()),
        }
        match item.get("action") {
            None => Ok(()),
            Some(action) => non_empty(action, "type").map(drop),
        }
    }
}
