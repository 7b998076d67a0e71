//! Chat Completions: what we send (closed), and what we read (borrowed, lenient).

mod answer;
mod message;
mod request;

pub use answer::{Answer, Choice, CustomDelta, Delta, FunctionDelta, ToolCallDelta};
pub use message::{Absent, Call, Content, Json, Message, Part, Replay, Str, Style, ThoughtBlock};
pub use request::{Custom, Declared, Function, Grammar, Request, ResponseFormat, ToolChoice};
