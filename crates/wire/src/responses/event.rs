//! The names of stream events.

/// Pairs each event with its name on the wire.
macro_rules! events {
    ($($variant:ident = $name:literal),+ $(,)?) => {
        /// Every event of a Responses stream.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum EventKind { $($variant),+ }

        impl EventKind {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The event of that name.
            pub fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

events! {
    Error = "error",
    AudioDelta = "response.audio.delta",
    AudioDone = "response.audio.done",
    AudioTranscriptDelta = "response.audio.transcript.delta",
    AudioTranscriptDone = "response.audio.transcript.done",
    CodeInterpreterCallCompleted = "response.code_interpreter_call.completed",
    CodeInterpreterCallInProgress = "response.code_interpreter_call.in_progress",
    CodeInterpreterCallInterpreting = "response.code_interpreter_call.interpreting",
    CodeInterpreterCallCodeDelta = "response.code_interpreter_call_code.delta",
    CodeInterpreterCallCodeDone = "response.code_interpreter_call_code.done",
    Completed = "response.completed",
    ContentPartAdded = "response.content_part.added",
    ContentPartDone = "response.content_part.done",
    Created = "response.created",
    CustomToolCallInputDelta = "response.custom_tool_call_input.delta",
    CustomToolCallInputDone = "response.custom_tool_call_input.done",
    Failed = "response.failed",
    FileSearchCallCompleted = "response.file_search_call.completed",
    FileSearchCallInProgress = "response.file_search_call.in_progress",
    FileSearchCallSearching = "response.file_search_call.searching",
    FunctionCallArgumentsDelta = "response.function_call_arguments.delta",
    FunctionCallArgumentsDone = "response.function_call_arguments.done",
    ImageGenerationCallCompleted = "response.image_generation_call.completed",
    ImageGenerationCallGenerating = "response.image_generation_call.generating",
    ImageGenerationCallInProgress = "response.image_generation_call.in_progress",
    ImageGenerationCallPartialImage = "response.image_generation_call.partial_image",
    InProgress = "response.in_progress",
    Incomplete = "response.incomplete",
    McpCallCompleted = "response.mcp_call.completed",
    McpCallFailed = "response.mcp_call.failed",
    McpCallInProgress = "response.mcp_call.in_progress",
    McpCallArgumentsDelta = "response.mcp_call_arguments.delta",
    McpCallArgumentsDone = "response.mcp_call_arguments.done",
    McpListToolsCompleted = "response.mcp_list_tools.completed",
    McpListToolsFailed = "response.mcp_list_tools.failed",
    McpListToolsInProgress = "response.mcp_list_tools.in_progress",
    OutputItemAdded = "response.output_item.added",
    OutputItemDone = "response.output_item.done",
    OutputTextAnnotationAdded = "response.output_text.annotation.added",
    OutputTextDelta = "response.output_text.delta",
    OutputTextDone = "response.output_text.done",
    Queued = "response.queued",
    ReasoningSummaryPartAdded = "response.reasoning_summary_part.added",
    ReasoningSummaryPartDone = "response.reasoning_summary_part.done",
    ReasoningSummaryTextDelta = "response.reasoning_summary_text.delta",
    ReasoningSummaryTextDone = "response.reasoning_summary_text.done",
    ReasoningTextDelta = "response.reasoning_text.delta",
    ReasoningTextDone = "response.reasoning_text.done",
    RefusalDelta = "response.refusal.delta",
    RefusalDone = "response.refusal.done",
    ShellCallCommandAdded = "response.shell_call_command.added",
    ShellCallCommandDelta = "response.shell_call_command.delta",
    ShellCallCommandDone = "response.shell_call_command.done",
    ShellCallOutputContentDelta = "response.shell_call_output_content.delta",
    ShellCallOutputContentDone = "response.shell_call_output_content.done",
    WebSearchCallCompleted = "response.web_search_call.completed",
    WebSearchCallInProgress = "response.web_search_call.in_progress",
    WebSearchCallSearching = "response.web_search_call.searching",
}
