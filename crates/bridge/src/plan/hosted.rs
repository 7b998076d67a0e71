//! What the items of tools that somebody else than the client ran say to the model, whichever API it is told in: the call as
//! it was made, and what came of it. What the model saw is kept beside an item in `godex_output`; without that, as in
//! histories that clients keep, what the item itself says has to do.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use wire::chat::Str;
use wire::json::{Kind, ObjectWriter, Raw, Text};
use wire::responses::{Item, McpApprovalResponse, McpCall, WebSearchCall};

use super::content::clean;
use super::item_path::Items;
use super::json;
use crate::context::ToolKind;

const NO_RESULT: &str = "(no result was kept)";
const FAILED: &str = "The call failed.";
const NOT_APPROVED: &str = "The user did not approve this call. It was not made.";
const NO_VERDICT: &str = "The user has not said whether this call may be made. It was not made.";
const APPROVED: &str = "The user approved this call, but what came of it is not known.";

/// Which approval of an MCP call is answered by what. Decided for all items at once: a call is told where its approval
/// was asked for, because there the model made it.
#[derive(Debug, Default)]
pub(super) struct Approvals<'a> {
    /// The ids of all requests.
    requests: BTreeSet<Cow<'a, str>>,
    /// The calls that were made with an approval, by the id of its request.
    calls: BTreeMap<Cow<'a, str>, usize>,
    /// The same calls, by their places.
    moved: BTreeSet<usize>,
    verdicts: BTreeMap<Cow<'a, str>, Verdict<'a>>,
}

#[derive(Debug, Clone, Copy)]
struct Verdict<'a> {
    approves: bool,
    reason: Option<Text<'a>>,
}

/// What came of a call that needed an approval.
#[derive(Debug)]
pub(super) enum Outcome<'a> {
    /// It was made: the item at this place says how.
    Called(usize),
    /// It was not, and this is why.
    Not(Vec<Str<'a>>),
}

impl<'a> Approvals<'a> {
    pub(super) fn of(items: &Items<'_, 'a>) -> Self {
        let mut approvals = Self::default();
        for (item, _) in &items.sent {
            if let Item::McpApprovalRequest(request) = item {
                approvals.requests.extend(request.id.map(Text::decode).filter(|id| !id.is_empty()));
            }
        }
        if approvals.requests.is_empty() {
            return approvals;
        }
        for (index, (item, _)) in items.sent.iter().enumerate() {
            match item {
                Item::McpCall(call) => approvals.called(call, index),
                Item::McpApprovalResponse(response) => approvals.answered(response),
                _ => {}
            }
        }
        approvals
    }

    /// The first call with an approval is the one that it was for.
    fn called(&mut self, call: &McpCall<'a>, index: usize) {
        let id = call.approval_request_id.map(Text::decode).filter(|id| self.requests.contains(id));
        if let Some(id) = id.filter(|id| !self.calls.contains_key(id)) {
            self.calls.insert(id, index);
            self.moved.insert(index);
        }
    }

    fn answered(&mut self, response: &McpApprovalResponse<'a>) {
        let verdict = Verdict {
            approves: response.approve == Some(true),
            reason: response.reason.filter(|reason| !reason.is_empty()),
        };
        if let Some(id) = response.approval_request_id {
            self.verdicts.entry(id.decode()).or_insert(verdict);
        }
    }

    /// Whether the request of that id is in the conversation.
    pub(super) fn has(&self, id: Text<'_>) -> bool {
        self.requests.contains(&*id.decode())
    }

    /// Whether the call at this place is told where its approval was asked for.
    pub(super) fn has_moved(&self, index: usize) -> bool {
        self.moved.contains(&index)
    }

    /// What came of the call for which the request of that id asked.
    pub(super) fn outcome(&self, id: Option<Text<'a>>) -> Outcome<'a> {
        let id = id.map(Text::decode).unwrap_or_default();
        if let Some(index) = self.calls.get(&id) {
            return Outcome::Called(*index);
        }
        Outcome::Not(match self.verdicts.get(&id) {
            None => vec![NO_VERDICT.into()],
            Some(Verdict { approves: true, .. }) => vec![APPROVED.into()],
            Some(Verdict { reason: None, .. }) => vec![NOT_APPROVED.into()],
            Some(Verdict { reason: Some(reason), .. }) => {
                vec![NOT_APPROVED.into(), Str::Pieces(vec!["Reason: ".into(), reason.decode()])]
            }
        })
    }
}

/// What the item of an MCP call itself says of its result.
pub(super) fn shown_result<'a>(call: &McpCall<'a>) -> Vec<Str<'a>> {
    let failed = call.status.is_some_and(|status| status.is("failed"));
    match (call.output, call.error) {
        (Some(output), _) => vec![text(output)],
        (None, Some(error)) => {
            let mut said: Vec<Str<'a>> = vec![FAILED.into()];
            said.extend(error_texts(error));
            said
        }
        (None, None) if failed => vec![FAILED.into()],
        (None, None) => vec![NO_RESULT.into()],
    }
}

/// The words in an error: a text, a message, or the content of a result.
fn error_texts(error: Raw<'_>) -> Vec<Str<'_>> {
    if error.kind() != Kind::Object {
        return vec![text(error)];
    }
    let content = error.get("content").filter(|content| !content.is_null());
    let parts = content.filter(|content| content.kind() == Kind::Array).into_iter().flat_map(Raw::elements);
    let parts: Vec<Str<'_>> = parts.filter_map(|part| part.get("text").and_then(Raw::text)).map(Str::Wire).collect();
    let message = error.get("message").filter(|message| message.kind() == Kind::String);
    match (parts.is_empty(), message.or(content)) {
        (false, _) => parts,
        (true, Some(said)) => vec![text(said)],
        (true, None) => vec![text(error)],
    }
}

fn text(value: Raw<'_>) -> Str<'_> {
    value.text().map_or_else(|| Str::Ours(clean(value.as_str())), Str::Wire)
}

/// A call of one of the functions that stand for `web_search`, as the action of its item shows it.
#[derive(Debug)]
pub(super) struct Searched {
    pub(super) kind: ToolKind,
    pub(super) arguments: String,
}

impl Searched {
    pub(super) fn of(action: Option<Raw<'_>>) -> Self {
        let member = |name: &str| action.and_then(|action| action.get(name)).filter(|value| !value.is_null());
        let kind = match member("type").and_then(Raw::text).map(Text::decode).as_deref() {
            Some("open_page") => ToolKind::OpenPage,
            Some("find_in_page" | "find") => ToolKind::FindInPage,
            _ => ToolKind::WebSearch,
        };
        let arguments = json::text(|out| {
            let mut object = ObjectWriter::new(out);
            let mut copy = |name: &str| {
                if let Some(value) = member(name) {
                    object.json(name, clean(value.as_str()).as_bytes());
                }
            };
            match kind {
                ToolKind::OpenPage => ["url", "start"].into_iter().for_each(copy),
                ToolKind::FindInPage => ["url", "pattern"].into_iter().for_each(copy),
                _ => match (member("queries"), member("query")) {
                    (None, Some(query)) => {
                        object.json("queries", format!("[{}]", clean(query.as_str())).as_bytes());
                    }
                    _ => copy("queries"),
                },
            }
            object.end();
        });
        Self { kind, arguments }
    }
}

/// What the item of a search itself says of what was found.
pub(super) fn shown_search<'a>(call: &WebSearchCall<'a>) -> Vec<Str<'a>> {
    if call.status.is_some_and(|status| status.is("failed")) {
        return vec![FAILED.into()];
    }
    let mut said: Vec<Str<'a>> = vec!["(what was found was not kept)".into()];
    let sources = call.action.and_then(|action| action.get("sources")).into_iter().flat_map(Raw::elements);
    let addresses = sources.filter_map(|source| source.get("url").and_then(Raw::text));
    let addresses = addresses.filter(|url| !url.is_empty()).map(Str::Wire);
    said.extend(addresses);
    if said.len() > 1 {
        said.insert(1, "Sources:".into());
    }
    said
}
