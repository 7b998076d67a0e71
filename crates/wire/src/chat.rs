//! Chat Completions: what we send (closed), and what we read (borrowed, lenient).

mod answer;
mod request;

pub use answer::{Answer, Choice, Delta, FunctionDelta, ToolCallDelta};
pub use request::{Call, Content, Function, Message, Part, Request, ResponseFormat, Str, ToolChoice};
