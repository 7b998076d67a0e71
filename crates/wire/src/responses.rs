//! The Responses API: what clients send, and what they get.

mod content;
mod conversation;
mod event;
mod incoming;
mod item;
mod request;
mod response;
mod tool;

pub use content::{
    Content, EncryptedContent, InputAudio, InputFile, InputImage, InputText, OutputText, Part, ReasoningText, Refusal,
    Screenshot,
};
pub use conversation::{CreateConversation, CreateConversationItems, UpdateConversation};
pub use event::EventKind;
pub use incoming::{Incoming, Whole};
pub use item::{
    AdditionalTools, AgentMessage, ApplyPatchCall, ApplyPatchCallOutput, CodeInterpreterCall, Compaction,
    CompactionTrigger, ComputerCall, ComputerCallOutput, ConfigurationUpdate, CustomToolCall, CustomToolCallOutput,
    FileSearchCall, FunctionCall, FunctionCallOutput, HostedOutput, ImageGenerationCall, InputItem, Item,
    ItemReference, LocalShellCall, LocalShellCallOutput, McpApprovalRequest, McpApprovalResponse, McpCall,
    McpListTools, Message, Output, Program, ProgramOutput, Reasoning, ShellCall, ShellCallOutput, ToolSearchCall,
    ToolSearchOutput, WebSearchCall,
};
pub use request::{Conversation, CreateResponse, Input, ReasoningConfig, StreamOptions, TextConfig, TextFormat};
pub use response::{Echo, ResponseError, ServiceTier, Snapshot, Status, Tail, Usage};
pub use tool::{
    AllowedTools, ApplyPatchTool, CodeInterpreterTool, ComputerTool, CustomTool, FileSearchTool, FunctionTool,
    ImageGenerationTool, LocalShellTool, McpTool, NamedChoice, NamespaceTool, PlainChoice, ProgrammaticTool, ShellTool,
    Tool, ToolChoice, ToolChoiceObject, ToolSearchTool, WebSearchTool,
};
