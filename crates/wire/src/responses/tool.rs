//! Tools that a request declares, and which of them the model may or must call.

use crate::json::{FromRaw, Invalid, Kind, Object, Raw, Text};
use crate::open::{open_struct, tagged};

tagged! {
    /// One declared tool.
    pub enum Tool {
        Function(FunctionTool) = "function",
        Custom(CustomTool) = "custom",
        Namespace(NamespaceTool) = "namespace",
        Shell(ShellTool) = "shell",
        LocalShell(LocalShellTool) = "local_shell",
        ApplyPatch(ApplyPatchTool) = "apply_patch",
        ToolSearch(ToolSearchTool) = "tool_search",
        WebSearch(WebSearchTool)
            = "web_search" | "web_search_2025_08_26" | "web_search_preview" | "web_search_preview_2025_03_11",
        FileSearch(FileSearchTool) = "file_search",
        CodeInterpreter(CodeInterpreterTool) = "code_interpreter",
        ImageGeneration(ImageGenerationTool) = "image_generation",
        Computer(ComputerTool) = "computer" | "computer_use" | "computer_use_preview",
        Mcp(McpTool) = "mcp",
        Programmatic(ProgrammaticTool) = "programmatic_tool_calling",
    }
    untagged: |_| ""
}

open_struct! {
    pub struct FunctionTool {
        name: Text<'a>, description: Text<'a>, parameters: Object<'a>, strict: bool, output_schema: Raw<'a>,
        defer_loading: bool, allowed_callers: Raw<'a>,
    }
}

open_struct! {
    pub struct CustomTool {
        name: Text<'a>, description: Text<'a>, format: Object<'a>, defer_loading: bool, allowed_callers: Raw<'a>,
    }
}

open_struct! {
    pub struct NamespaceTool { name: Text<'a>, description: Text<'a>, tools: Vec<Tool<'a>> }
}

open_struct! {
    pub struct ShellTool { environment: Raw<'a>, allowed_callers: Raw<'a> }
}

open_struct! {
    pub struct LocalShellTool {}
}

open_struct! {
    pub struct ApplyPatchTool { allowed_callers: Raw<'a> }
}

open_struct! {
    pub struct ToolSearchTool { execution: Text<'a>, description: Text<'a>, parameters: Object<'a> }
}

open_struct! {
    pub struct WebSearchTool {
        external_web_access: bool, filters: Raw<'a>, user_location: Raw<'a>, search_context_size: Text<'a>,
        search_content_types: Raw<'a>,
    }
}

open_struct! {
    pub struct FileSearchTool {
        vector_store_ids: Raw<'a>, max_num_results: i64, ranking_options: Raw<'a>, filters: Raw<'a>,
    }
}

open_struct! {
    pub struct CodeInterpreterTool { container: Raw<'a>, allowed_callers: Raw<'a> }
}

open_struct! {
    pub struct ImageGenerationTool { model: Text<'a>, quality: Text<'a>, size: Text<'a>, partial_images: i64 }
}

open_struct! {
    pub struct ComputerTool { environment: Text<'a>, display_width: i64, display_height: i64 }
}

open_struct! {
    pub struct McpTool {
        server_label: Text<'a>, server_url: Text<'a>, connector_id: Text<'a>, authorization: Text<'a>,
        headers: Raw<'a>, allowed_tools: Raw<'a>, require_approval: Raw<'a>, server_description: Text<'a>,
        defer_loading: bool,
    }
}

open_struct! {
    pub struct ProgrammaticTool {}
}

/// `tool_choice`: a mode, or an object that names something.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolChoice<'a> {
    None,
    Auto,
    Required,
    Object { raw: Raw<'a>, choice: ToolChoiceObject<'a> },
}

const MODES: &[&str] = &["none", "auto", "required"];

impl<'a> FromRaw<'a> for ToolChoice<'a> {
    fn from_raw(raw: Raw<'a>) -> Result<Self, Invalid> {
        match (raw.kind(), raw.as_str()) {
            (Kind::String, "\"none\"") => Ok(Self::None),
            (Kind::String, "\"auto\"") => Ok(Self::Auto),
            (Kind::String, "\"required\"") => Ok(Self::Required),
            (Kind::String, _) => Err(Invalid::value(&Text::from_raw(raw)?.decode(), MODES)),
            (Kind::Object, _) => ToolChoiceObject::from_raw(raw).map(|choice| Self::Object { raw, choice }),
            _ => Err(Invalid::expected("one of an object or a string", raw)),
        }
    }
}

tagged! {
    /// The forms of `tool_choice` that are objects.
    pub enum ToolChoiceObject {
        Function(NamedChoice) = "function",
        Custom(NamedChoice) = "custom",
        Mcp(NamedChoice) = "mcp",
        Allowed(AllowedTools) = "allowed_tools",
        ApplyPatch(PlainChoice) = "apply_patch",
        Shell(PlainChoice) = "shell",
        LocalShell(PlainChoice) = "local_shell",
        Programmatic(PlainChoice) = "programmatic_tool_calling",
        Hosted(PlainChoice) = "file_search" | "web_search" | "web_search_preview" | "web_search_preview_2025_03_11"
            | "computer" | "computer_use" | "computer_use_preview" | "image_generation" | "code_interpreter",
    }
    untagged: |_| ""
}

open_struct! {
    pub struct NamedChoice { name: Text<'a>, namespace: Text<'a>, server_label: Text<'a> }
}

open_struct! {
    pub struct AllowedTools { mode: Text<'a>, tools: Vec<Tool<'a>> }
}

open_struct! {
    pub struct PlainChoice {}
}
