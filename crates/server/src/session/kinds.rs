//! Every kind of item that can be stored and shown: what its ids begin with, and what its resource has beyond what a
//! client must send. One row per kind, and nothing about kinds anywhere else in sessions.

use wire::id::IdKind;
use wire::json::{Raw, Text};

/// Fields of a resource that a client need not send, and what they are then, as JSON.
pub(super) type Defaults = &'static [(&'static str, &'static str)];

#[derive(Debug)]
pub(super) struct ItemKind {
    pub(super) name: &'static str,
    /// Of an item that comes without an id.
    pub(super) id: IdKind,
    pub(super) defaults: Defaults,
    /// Fields whose value is more in a resource than it need be in a request.
    pub(super) fields: &'static [(&'static str, Field)],
    /// A field that the resource has besides another one with the same value.
    pub(super) twin: Option<Twin>,
}

/// How a field's value is completed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Field {
    /// Content, as text or as parts: the resource has parts.
    Content,
    /// Parts, unless it is a text, which stays one.
    Parts,
    /// An object with what it lacks.
    Object(Defaults),
    /// The status of a screenshot: what is not whole yet is incomplete.
    ScreenshotStatus,
}

/// The same value under two names.
#[derive(Debug, Clone, Copy)]
pub(super) enum Twin {
    /// `call_id` is the `id` that was sent.
    CallId,
    /// `request_id` is `approval_request_id`.
    RequestId,
}

const COMPLETED: (&str, &str) = ("status", r#""completed""#);
const BY_CLIENT: (&str, &str) = ("execution", r#""client""#);

const fn kind(name: &'static str, defaults: Defaults) -> ItemKind {
    ItemKind { name, id: IdKind::Item, defaults, fields: &[], twin: None }
}

impl ItemKind {
    const fn id(self, id: IdKind) -> Self {
        Self { id, ..self }
    }

    const fn fields(self, fields: &'static [(&'static str, Field)]) -> Self {
        Self { fields, ..self }
    }

    const fn twin(self, twin: Twin) -> Self {
        Self { twin: Some(twin), ..self }
    }

    /// What an item says it is: one without a type is a message.
    pub(super) fn of(item: Raw<'_>) -> Option<&'static Self> {
        match item.get("type").and_then(Raw::text) {
            Some(name) => Self::named(&name.decode()),
            None => Self::named("message"),
        }
    }

    pub(super) fn named(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// How this field's value is completed, if it is.
    pub(super) fn field(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|(field, _)| *field == name).map(|(_, how)| *how)
    }
}

const SHELL_ACTION: Defaults = &[("timeout_ms", "null"), ("max_output_length", "null")];

static KINDS: [ItemKind; 28] = [
    kind("message", &[COMPLETED, ("content", "[]")]).id(IdKind::Message).fields(&[("content", Field::Content)]),
    kind("reasoning", &[("summary", "[]")]).id(IdKind::Reasoning),
    kind("function_call", &[COMPLETED]).id(IdKind::FunctionCall),
    kind("function_call_output", &[COMPLETED]).id(IdKind::FunctionCallOutput).fields(&[("output", Field::Parts)]),
    kind("custom_tool_call", &[COMPLETED]).id(IdKind::CustomToolCall),
    kind("custom_tool_call_output", &[COMPLETED]).id(IdKind::CustomToolCallOutput).fields(&[("output", Field::Parts)]),
    kind("shell_call", &[COMPLETED, ("environment", "null")]).fields(&[("action", Field::Object(SHELL_ACTION))]),
    kind("shell_call_output", &[COMPLETED, ("max_output_length", "null")]),
    kind("local_shell_call", &[COMPLETED]).fields(&[("action", Field::Object(&[("env", "{}")]))]),
    kind("local_shell_call_output", &[]).twin(Twin::CallId),
    kind("apply_patch_call", &[COMPLETED]),
    kind("apply_patch_call_output", &[COMPLETED]),
    kind("tool_search_call", &[COMPLETED, ("call_id", "null"), BY_CLIENT]),
    kind("tool_search_output", &[COMPLETED, ("call_id", "null"), BY_CLIENT]),
    kind("additional_tools", &[("role", r#""developer""#)]),
    kind("web_search_call", &[COMPLETED, ("action", r#"{"type":"search","query":"","queries":[]}"#)])
        .id(IdKind::WebSearchCall),
    kind("file_search_call", &[COMPLETED, ("queries", "[]")]),
    kind("code_interpreter_call", &[COMPLETED, ("code", "null"), ("outputs", "null")]),
    kind("image_generation_call", &[COMPLETED, ("result", "null")]),
    kind("computer_call", &[COMPLETED, ("pending_safety_checks", "[]")]),
    kind("computer_call_output", &[COMPLETED]).fields(&[("status", Field::ScreenshotStatus)]),
    kind("mcp_list_tools", &[("tools", "[]")]).id(IdKind::McpListTools),
    kind("mcp_call", &[]).id(IdKind::McpCall),
    kind("mcp_approval_request", &[]).id(IdKind::McpApprovalRequest),
    kind("mcp_approval_response", &[]).twin(Twin::RequestId),
    kind("compaction", &[]).id(IdKind::Compaction),
    kind("program", &[]),
    kind("program_output", &[COMPLETED]),
];

/// The name under which an item of this kind is shown: one that it had for a while is another's.
pub(super) fn shown_name(item: Raw<'_>) -> std::borrow::Cow<'_, str> {
    match item.get("type").and_then(Raw::text).map(Text::decode) {
        None => "message".into(),
        Some(name) if name == "compaction_summary" => "compaction".into(),
        Some(name) => name,
    }
}
