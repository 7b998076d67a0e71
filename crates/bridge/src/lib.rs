//! The translation kernel: a Responses request becomes a chat request, a chat answer becomes a Responses
//! answer. Sans I/O: bytes, ids and time come in as arguments, bytes go out; nothing here reads a clock,
//! draws a random number, logs, or knows a vendor's name.
#![forbid(unsafe_code)]

mod dialect;
mod failure;
mod machine;
mod note;
mod plan;
mod reading;
mod seal;
mod shown;

pub use dialect::{
    AbsentContent, AfterTool, AnswerDialect, Bounds, CacheKeyField, CallIds, ChoiceKind, ContentRules, CustomForm,
    DeveloperRole, Dialect, Effort, EffortField, EmptyText, EofTolerance, ErrorMeaning, ErrorRule, ErrorRules,
    Exclusion, FinishMeaning, ForcedWhileThinking, Hosted, ImageInput, ItemIds, JsonSchema, Lacking, LateSystem,
    LimitField, MessageRules, NativeRules, OptionRules, Parallel, Parameter, ReasoningRules, RefusalForm, Replay,
    ReplayField, RequestRules, RequiredWord, SchemaRule, StreamUsage, ThinkTags, Thinking, ToolImages, ToolRules,
    Turns, UserField,
};
pub use failure::{Basis, Failure, FailureClass, Proof, Refusal, Unsupported, adapted};
pub use machine::{Checks, End, Flow, Framing, Look, Machine, Opening, OutputCheck, OutputProblem, Repair, Setup};
pub use note::{Action, Note, NoteCode, Severity, code as note_code};
pub use plan::{Needs, Plan, PlanTarget, Policy, check_metadata, forward, plan};
pub use reading::{NativeReading, OfferedTool, OutputContract, Reading, ToolKind};
pub use seal::{Encrypted, Seal, Thought, Unsealed};
pub use shown::{shown_item, shown_tool, shown_tools};
