//! Chat Completions: what we send (closed), and what we read (borrowed, lenient).

mod answer;

pub use answer::{Answer, Choice, Delta, Function, ToolCall};
