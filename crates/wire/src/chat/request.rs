//! The chat request: closed. What is here can be sent, in this order of members, and nothing else.
//!
//! The same conversation gives the same bytes, so the provider's prefix cache keeps hitting.

use super::message::{Json, Message, Str, Style, list, write_joined};
use crate::json::{Number, ObjectWriter, Raw, Text};

/// One entry of `tools`.
#[derive(Debug, Clone, PartialEq)]
pub enum Declared<'a> {
    Function(Function<'a>),
    Custom(Custom<'a>),
    /// A tool that the provider runs itself, in its own shape; JSON.
    Native(String),
}

/// A function that the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Function<'a> {
    pub name: String,
    /// Paragraphs; none: no description.
    pub description: Vec<Str<'a>>,
    pub parameters: Json<'a>,
    pub strict: Option<bool>,
}

/// A tool whose input is text, not arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct Custom<'a> {
    pub name: String,
    /// Paragraphs; none: no description.
    pub description: Vec<Str<'a>>,
    /// What the input must match; none: any text.
    pub grammar: Option<Grammar<'a>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Grammar<'a> {
    pub syntax: &'static str,
    pub definition: Text<'a>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChoice {
    Mode(&'static str),
    Function(String),
    Custom(String),
}

#[derive(Debug, Clone, PartialEq)]
pub enum ResponseFormat<'a> {
    JsonObject,
    JsonSchema { name: Text<'a>, description: Option<Text<'a>>, schema: Json<'a>, strict: Option<bool> },
}

/// The request body.
#[derive(Debug, Default)]
pub struct Request<'a> {
    pub model: &'a str,
    pub messages: Vec<Message<'a>>,
    /// The places of those messages up to which the provider is to cache what it has read, in order.
    pub marked: Vec<usize>,
    pub style: Style,
    pub stream: bool,
    pub include_usage: bool,
    /// The limit and the name of the field that carries it.
    pub limit: Option<(&'static str, i64)>,
    pub tools: Vec<Declared<'a>>,
    pub tool_choice: Option<ToolChoice>,
    pub parallel_tool_calls: Option<bool>,
    pub response_format: Option<ResponseFormat<'a>>,
    pub temperature: Option<Number<'a>>,
    pub top_p: Option<Number<'a>>,
    pub presence_penalty: Option<Number<'a>>,
    pub frequency_penalty: Option<Number<'a>>,
    /// Token probabilities, and how many alternatives to each.
    pub logprobs: bool,
    pub top_logprobs: Option<i64>,
    pub stop: Option<Raw<'a>>,
    /// Strings that keep their name or get another: `verbosity`, `user`, …
    pub strings: Vec<(&'static str, Str<'a>)>,
    /// Objects whose members become members of the body; JSON.
    pub extra: Vec<&'a str>,
}

impl Request<'_> {
    /// The body. The messages come last, so that the next turn's bytes extend this turn's.
    pub fn write(&self, capacity: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(capacity);
        let mut body = ObjectWriter::new(&mut out);
        body.text("model", self.model);
        self.write_tools(&mut body);
        self.write_format(&mut body);
        self.write_numbers(&mut body);
        self.write_rest(&mut body);
        self.write_messages(body.key("messages"));
        body.end();
        out
    }

    fn write_messages(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (place, message) in self.messages.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            message.write(self.style, self.marked.binary_search(&place).is_ok(), out);
        }
        out.push(b']');
    }

    fn write_tools(&self, body: &mut ObjectWriter<'_>) {
        if self.tools.is_empty() {
            return;
        }
        list(body.key("tools"), &self.tools, |out, tool| tool.write(out));
        match &self.tool_choice {
            Some(ToolChoice::Mode(mode)) => {
                body.text("tool_choice", mode);
            }
            Some(ToolChoice::Function(name)) => write_named("function", name, body.key("tool_choice")),
            Some(ToolChoice::Custom(name)) => write_named("custom", name, body.key("tool_choice")),
            None => {}
        }
        if let Some(parallel) = self.parallel_tool_calls {
            body.bool("parallel_tool_calls", parallel);
        }
    }

    fn write_format(&self, body: &mut ObjectWriter<'_>) {
        let Some(format) = &self.response_format else { return };
        let mut object = ObjectWriter::new(body.key("response_format"));
        match format {
            ResponseFormat::JsonObject => {
                object.text("type", "json_object");
            }
            ResponseFormat::JsonSchema { name, description, schema, strict } => {
                object.text("type", "json_schema");
                let mut inner = ObjectWriter::new(object.key("json_schema"));
                Str::Wire(*name).write(inner.key("name"));
                if let Some(description) = description {
                    Str::Wire(*description).write(inner.key("description"));
                }
                schema.write(inner.key("schema"));
                if let Some(strict) = strict {
                    inner.bool("strict", *strict);
                }
                inner.end();
            }
        }
        object.end();
    }

    fn write_numbers(&self, body: &mut ObjectWriter<'_>) {
        let numbers = [
            ("temperature", self.temperature),
            ("top_p", self.top_p),
            ("presence_penalty", self.presence_penalty),
            ("frequency_penalty", self.frequency_penalty),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                body.raw(name, number.raw);
            }
        }
        if let Some((field, limit)) = self.limit {
            body.int(field, limit);
        }
        if self.logprobs {
            body.bool("logprobs", true);
        }
        if let Some(count) = self.top_logprobs {
            body.int("top_logprobs", count);
        }
    }

    fn write_rest(&self, body: &mut ObjectWriter<'_>) {
        if let Some(stop) = self.stop {
            Json::Wire(stop).write(body.key("stop"));
        }
        for (name, value) in &self.strings {
            value.write(body.key(name));
        }
        for object in &self.extra {
            for (key, value) in Raw::parse(object).unwrap_or(Raw::NULL).fields() {
                body.raw(&key.decode(), value);
            }
        }
        body.bool("stream", self.stream);
        if self.stream && self.include_usage {
            body.json("stream_options", br#"{"include_usage":true}"#);
        }
    }
}

impl Declared<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Function(function) => function.write(out),
            Self::Custom(custom) => custom.write(out),
            Self::Native(json) => out.extend_from_slice(json.as_bytes()),
        }
    }
}

/// `{"type":"function","function":{"name":…}}`.
fn write_named(kind: &str, name: &str, out: &mut Vec<u8>) {
    let mut choice = ObjectWriter::new(out);
    choice.text("type", kind);
    let mut named = ObjectWriter::new(choice.key(kind));
    named.text("name", name);
    named.end();
    choice.end();
}

impl Custom<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let mut tool = ObjectWriter::new(out);
        tool.text("type", "custom");
        let mut custom = ObjectWriter::new(tool.key("custom"));
        custom.text("name", &self.name);
        if !self.description.is_empty() {
            write_joined(custom.key("description"), &self.description, "\\n\\n");
        }
        if let Some(Grammar { syntax, definition }) = &self.grammar {
            let mut format = ObjectWriter::new(custom.key("format"));
            format.text("type", "grammar");
            let mut grammar = ObjectWriter::new(format.key("grammar"));
            Str::Wire(*definition).write(grammar.key("definition"));
            grammar.text("syntax", syntax);
            grammar.end();
            format.end();
        }
        custom.end();
        tool.end();
    }
}

impl Function<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let mut tool = ObjectWriter::new(out);
        tool.text("type", "function");
        let mut function = ObjectWriter::new(tool.key("function"));
        self.write_members(&mut function);
        if let Some(strict) = self.strict {
            function.bool("strict", strict);
        }
        function.end();
        tool.end();
    }

    /// The same as the Responses API has it: one object less, and strict unless it says that it is not.
    pub fn write_flat(&self, out: &mut Vec<u8>) {
        let mut tool = ObjectWriter::new(out);
        tool.text("type", "function");
        self.write_members(&mut tool);
        tool.bool("strict", self.strict.unwrap_or(false));
        tool.end();
    }

    fn write_members(&self, function: &mut ObjectWriter<'_>) {
        function.text("name", &self.name);
        if !self.description.is_empty() {
            write_joined(function.key("description"), &self.description, "\\n\\n");
        }
        self.parameters.write(function.key("parameters"));
    }
}
