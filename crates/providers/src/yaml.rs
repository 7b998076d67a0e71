//! YAML with positions: a tree whose every node knows its line and column, and a reader on top of it that
//! collects all problems of a file instead of stopping at the first.
//!
//! The tree keeps scalars as text: what a scalar means is decided by the reader of the key, which knows the
//! type it wants. The tree must stay bounded whatever the text says (aliases can multiply, nesting can dig).

mod interpolate;
mod problem;
mod reader;
mod tree;

pub use interpolate::Filled;
pub use problem::{Position, Problem, Problems};
pub use reader::{Env, Field, Reader, Section, nearest};
pub use tree::Document;

/// A value at its place in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub position: Position,
    pub value: Value,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Scalar(Scalar),
    Map(Vec<(Key, Node)>),
    Seq(Vec<Node>),
}

/// A scalar as written. A plain one may mean a number, a boolean or nothing; a quoted one is a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scalar {
    pub text: String,
    pub plain: bool,
}

/// A key of a mapping at its place in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub position: Position,
    pub name: String,
}

impl Node {
    /// Whether this is YAML's null (`~`, `null`, or nothing at all), which we read as "not given".
    pub fn is_null(&self) -> bool {
        match &self.value {
            Value::Scalar(scalar) => scalar.plain && matches!(&*scalar.text, "" | "~" | "null" | "Null" | "NULL"),
            Value::Map(_) | Value::Seq(_) => false,
        }
    }

    /// What this is, in the words of an error message.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            _ if self.is_null() => "nothing",
            Value::Map(_) => "a mapping",
            Value::Seq(_) => "a list",
            Value::Scalar(scalar) if scalar.plain && matches!(&*scalar.text, "true" | "false") => "a boolean",
            Value::Scalar(scalar) if scalar.plain && scalar.text.parse::<f64>().is_ok() => "a number",
            Value::Scalar(_) => "a string",
        }
    }
}
