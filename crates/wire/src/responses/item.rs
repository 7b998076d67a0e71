//! Items: what a conversation is made of. All kinds, in the open form in which clients send them back.

use super::content::{Content, Part};
use super::tool::Tool;
use crate::json::{FromRaw, Invalid, Kept, Kind, Raw, Text};
use crate::open::{open_struct, tagged};

/// An item of the input or of the history.
pub type InputItem<'a> = Kept<'a, Item<'a>>;

tagged! {
    /// One item.
    pub enum Item {
        Message(Message) = "message",
        Reasoning(Reasoning) = "reasoning",
        FunctionCall(FunctionCall) = "function_call",
        FunctionCallOutput(FunctionCallOutput) = "function_call_output",
        CustomToolCall(CustomToolCall) = "custom_tool_call",
        CustomToolCallOutput(CustomToolCallOutput) = "custom_tool_call_output",
        ShellCall(ShellCall) = "shell_call",
        ShellCallOutput(ShellCallOutput) = "shell_call_output",
        LocalShellCall(LocalShellCall) = "local_shell_call",
        LocalShellCallOutput(LocalShellCallOutput) = "local_shell_call_output",
        ApplyPatchCall(ApplyPatchCall) = "apply_patch_call",
        ApplyPatchCallOutput(ApplyPatchCallOutput) = "apply_patch_call_output",
        ToolSearchCall(ToolSearchCall) = "tool_search_call",
        ToolSearchOutput(ToolSearchOutput) = "tool_search_output",
        WebSearchCall(WebSearchCall) = "web_search_call",
        FileSearchCall(FileSearchCall) = "file_search_call",
        CodeInterpreterCall(CodeInterpreterCall) = "code_interpreter_call",
        ImageGenerationCall(ImageGenerationCall) = "image_generation_call",
        ComputerCall(ComputerCall) = "computer_call",
        ComputerCallOutput(ComputerCallOutput) = "computer_call_output",
        McpListTools(McpListTools) = "mcp_list_tools",
        McpCall(McpCall) = "mcp_call",
        McpApprovalRequest(McpApprovalRequest) = "mcp_approval_request",
        McpApprovalResponse(McpApprovalResponse) = "mcp_approval_response",
        Compaction(Compaction) = "compaction" | "compaction_summary",
        CompactionTrigger(CompactionTrigger) = "compaction_trigger",
        AdditionalTools(AdditionalTools) = "additional_tools",
        AgentMessage(AgentMessage) = "agent_message",
        Program(Program) = "program",
        ProgramOutput(ProgramOutput) = "program_output",
        ConfigurationUpdate(ConfigurationUpdate) = "configuration_update",
        ItemReference(ItemReference) = "item_reference",
    }
    // `{role, content}` is a message; `{id}` alone refers to a stored item.
    untagged: |raw| match (raw.get("role"), raw.get("id")) {
        (Some(_), _) => "message",
        (None, Some(_)) if raw.get("content").is_none() => "item_reference",
        _ => "",
    }
}

/// A tool's output: a string, or parts.
#[derive(Debug, Clone, PartialEq)]
pub enum Output<'a> {
    Text(Text<'a>),
    Parts(Vec<Part<'a>>),
    /// Neither: some clients send the tool's JSON as it is.
    Json(Raw<'a>),
}

impl<'a> FromRaw<'a> for Output<'a> {
    fn from_raw(raw: Raw<'a>) -> Result<Self, Invalid> {
        match raw.kind() {
            Kind::String => Text::from_raw(raw).map(Self::Text),
            Kind::Array if raw.elements().all(|part| part.kind() == Kind::Object) => {
                Vec::from_raw(raw).map(Self::Parts)
            }
            _ => Ok(Self::Json(raw)),
        }
    }
}

open_struct! {
    /// A message of any role, easy or full form.
    pub struct Message { id: Text<'a>, role: Text<'a>, content: Content<'a>, status: Text<'a>, phase: Text<'a> }
}

open_struct! {
    pub struct Reasoning {
        id: Text<'a>, summary: Vec<Part<'a>>, content: Vec<Part<'a>>, encrypted_content: Text<'a>, status: Text<'a>,
    }
}

open_struct! {
    pub struct FunctionCall {
        id: Text<'a>, call_id: Text<'a>, name: Text<'a>, namespace: Text<'a>, arguments: Text<'a>, status: Text<'a>,
        caller: Raw<'a>,
    }
}

open_struct! {
    pub struct FunctionCallOutput {
        id: Text<'a>, call_id: Text<'a>, name: Text<'a>, namespace: Text<'a>, output: Output<'a>, status: Text<'a>,
        caller: Raw<'a>,
    }
}

open_struct! {
    pub struct CustomToolCall {
        id: Text<'a>, call_id: Text<'a>, name: Text<'a>, namespace: Text<'a>, input: Text<'a>, status: Text<'a>,
        caller: Raw<'a>,
    }
}

open_struct! {
    pub struct CustomToolCallOutput {
        id: Text<'a>, call_id: Text<'a>, name: Text<'a>, output: Output<'a>, status: Text<'a>, caller: Raw<'a>,
    }
}

open_struct! {
    pub struct ShellCall {
        id: Text<'a>, call_id: Text<'a>, action: Raw<'a>, status: Text<'a>, environment: Raw<'a>, caller: Raw<'a>,
    }
}

open_struct! {
    pub struct ShellCallOutput {
        id: Text<'a>, call_id: Text<'a>, output: Raw<'a>, status: Text<'a>, max_output_length: Raw<'a>, caller: Raw<'a>,
    }
}

open_struct! {
    pub struct LocalShellCall { id: Text<'a>, call_id: Text<'a>, action: Raw<'a>, status: Text<'a> }
}

open_struct! {
    pub struct LocalShellCallOutput { id: Text<'a>, call_id: Text<'a>, output: Output<'a>, status: Text<'a> }
}

open_struct! {
    pub struct ApplyPatchCall { id: Text<'a>, call_id: Text<'a>, operation: Raw<'a>, status: Text<'a>, caller: Raw<'a> }
}

open_struct! {
    pub struct ApplyPatchCallOutput {
        id: Text<'a>, call_id: Text<'a>, output: Output<'a>, status: Text<'a>, caller: Raw<'a>,
    }
}

open_struct! {
    pub struct ToolSearchCall {
        id: Text<'a>, call_id: Text<'a>, execution: Text<'a>, arguments: Raw<'a>, status: Text<'a>,
    }
}

open_struct! {
    pub struct ToolSearchOutput {
        id: Text<'a>, call_id: Text<'a>, execution: Text<'a>, tools: Vec<Tool<'a>>, status: Text<'a>,
    }
}

open_struct! {
    pub struct WebSearchCall { id: Text<'a>, status: Text<'a>, action: Raw<'a>, godex_output: HostedOutput<'a> }
}

open_struct! {
    pub struct FileSearchCall { id: Text<'a>, status: Text<'a>, queries: Raw<'a>, results: Raw<'a> }
}

open_struct! {
    pub struct CodeInterpreterCall {
        id: Text<'a>, status: Text<'a>, container_id: Text<'a>, code: Text<'a>, outputs: Raw<'a>,
    }
}

open_struct! {
    pub struct ImageGenerationCall { id: Text<'a>, status: Text<'a>, result: Text<'a> }
}

open_struct! {
    pub struct ComputerCall {
        id: Text<'a>, call_id: Text<'a>, action: Raw<'a>, actions: Raw<'a>, pending_safety_checks: Raw<'a>,
        status: Text<'a>,
    }
}

open_struct! {
    pub struct ComputerCallOutput {
        id: Text<'a>, call_id: Text<'a>, output: Raw<'a>, acknowledged_safety_checks: Raw<'a>, status: Text<'a>,
    }
}

open_struct! {
    pub struct McpListTools { id: Text<'a>, server_label: Text<'a>, tools: Raw<'a>, error: Raw<'a> }
}

open_struct! {
    pub struct McpCall {
        id: Text<'a>, server_label: Text<'a>, name: Text<'a>, arguments: Text<'a>, output: Raw<'a>, error: Raw<'a>,
        status: Text<'a>, approval_request_id: Text<'a>, godex_output: HostedOutput<'a>,
    }
}

open_struct! {
    pub struct McpApprovalRequest {
        id: Text<'a>, server_label: Text<'a>, name: Text<'a>, arguments: Text<'a>, godex_output: HostedOutput<'a>,
    }
}

open_struct! {
    pub struct McpApprovalResponse { id: Text<'a>, approval_request_id: Text<'a>, approve: bool, reason: Text<'a> }
}

open_struct! {
    /// What is kept beside a call of a tool that godex ran, and never shown: how the model called it, and what it was
    /// told. `ends_round`: the model was asked again with that, so what follows is its next message.
    pub struct HostedOutput { call_id: Text<'a>, output: Kept<'a, Output<'a>>, sources: Raw<'a>, ends_round: bool }
}

open_struct! {
    pub struct Compaction { id: Text<'a>, encrypted_content: Text<'a> }
}

open_struct! {
    pub struct CompactionTrigger {}
}

open_struct! {
    /// Tools that arrive in the middle of the input.
    pub struct AdditionalTools { id: Text<'a>, role: Text<'a>, tools: Vec<Tool<'a>> }
}

open_struct! {
    pub struct AgentMessage { id: Text<'a>, author: Raw<'a>, recipient: Raw<'a>, content: Content<'a> }
}

open_struct! {
    pub struct Program { id: Text<'a>, call_id: Text<'a>, code: Text<'a>, fingerprint: Text<'a> }
}

open_struct! {
    pub struct ProgramOutput { id: Text<'a>, call_id: Text<'a>, result: Text<'a>, status: Text<'a> }
}

open_struct! {
    pub struct ConfigurationUpdate { id: Text<'a>, reasoning: Raw<'a>, text: Raw<'a> }
}

open_struct! {
    pub struct ItemReference { id: Text<'a> }
}
