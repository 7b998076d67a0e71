//! The translation kernel: a Responses request becomes a chat request, a chat answer becomes a Responses
//! answer. Sans I/O: bytes, ids and time come in as arguments, bytes go out; nothing here reads a clock,
//! draws a random number, logs, or knows a vendor's name.
#![forbid(unsafe_code)]

mod client;
mod context;
mod dialect;
mod escaped;
mod events;
mod failure;
mod json;
mod keys;
mod note;
mod plan;
mod reader;
mod replay;
mod response;
mod seal;
mod shown;

pub use client::{ClientForms, Heartbeat, ReasoningChannel, WaitInWords};
pub use context::{
    AnswerContext, AnswerWire, InputGrammar, InputSyntax, NativeContext, OfferedTool, OutputContract, RenamedKey,
    RenamedKeys, ToolKind,
};
pub use dialect::{
    AbsentContent, AfterTool, AnswerDialect, BlockCache, BlockRules, Bounds, CacheKeyField, CacheMarks, CallIds,
    ChoiceKind, ContentRules, CustomForm, DeveloperRole, Dialect, Effort, EffortField, EmptyText, EofTolerance,
    ErrorMeaning, ErrorRule, ErrorRules, Exclusion, FinishMeaning, ForcedWhileThinking, Hosted, ImageInput, ItemIds,
    JsonSchema, Lacking, LastMessage, LateSystem, LimitField, MessageRules, NativeRules, OptionRules, Parallel,
    Parameter, ReasoningRules, RefusalForm, Replay, ReplayField, RequestRules, RequiredWord, SchemaRule, StreamUsage,
    ThinkTags, Thinking, ThinkingType, ThoughtDisplay, Tokenizer, ToolImages, ToolRules, Turns, UserField,
};
pub use events::{Events, Frame};
pub use failure::{Basis, Failure, FailureClass, Proof, Refusal, Unsupported, adapted};
pub use note::{Action, Note, NoteCode, Severity, code as note_code};
pub use plan::{
    CallRole, CompactionWish, FileTexts, Hosting, ImageTexts, InlineFile, Link, Needs, PdfText, PdfUnread, Plan,
    PlanTarget, Policy, Round, SearchFunctions, Unsearched, call_role, check_metadata, each_sent_item, echo,
    first_sent, forward, forward_linked, plan, plan_linked, plan_messages, plan_messages_linked,
};
pub use reader::{
    ChatReader, Checks, End, Flow, HeldCall, HostedCall, IncompleteReason, InputCheck, InputReading, InputSoFar,
    InputVerdict, Look, MessagesReader, NativeReader, Opening, OutputCheck, OutputProblem, Reader, RejectedCall,
    Repair, RoundEnd, Setup, Source, Sources,
};
pub use replay::{EventReplay, LoggedItems, Lost, replay, replay_terminal};
pub use response::{ClientCall, HostedEnd, HostedItem, HostedStart, ResponseWriter};
pub use seal::{Encrypted, PromptEnd, Seal, SealedReasoning, SealedSummary, ThoughtPlace, Unsealed};
pub use shown::{holds_secrets, shown_item, shown_tool, shown_tools};
