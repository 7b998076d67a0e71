//! The chat request: closed. What is here can be sent, in this order of members, and nothing else.
//!
//! Strings that came from the client are copied as they were escaped; the same conversation gives the same
//! bytes, so the provider's prefix cache keeps hitting.

use std::borrow::Cow;

use crate::json::{Number, ObjectWriter, Raw, Text, escape_into, sanitize_into};

/// A string on its way out: the client's own escapes, or text of ours.
#[derive(Debug, Clone, PartialEq)]
pub enum Str<'a> {
    Wire(Text<'a>),
    Ours(Cow<'a, str>),
}

impl Str<'_> {
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(b'"');
        self.write_inner(out);
        out.push(b'"');
    }

    fn write_inner(&self, out: &mut Vec<u8>) {
        match self {
            Self::Wire(text) => {
                if !sanitize_into(out, text.escaped()).is_empty() {
                    out.extend_from_slice(b"\\ufffd");
                }
            }
            Self::Ours(text) => escape_into(out, text),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::Wire(text) => text.is_empty(),
            Self::Ours(text) => text.is_empty(),
        }
    }
}

impl<'a> From<Text<'a>> for Str<'a> {
    fn from(text: Text<'a>) -> Self {
        Self::Wire(text)
    }
}

/// A message.
#[derive(Debug, Clone, PartialEq)]
pub enum Message<'a> {
    /// System, developer, user.
    Plain {
        role: &'static str,
        content: Content<'a>,
    },
    Assistant {
        content: Vec<Str<'a>>,
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: Str<'a>,
        content: Content<'a>,
    },
}

/// Content: a string in one or more pieces, or parts where something else than text is among them.
#[derive(Debug, Clone, PartialEq)]
pub enum Content<'a> {
    Text(Vec<Str<'a>>),
    Parts(Vec<Part<'a>>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Part<'a> {
    Text(Str<'a>),
    ImageUrl { url: Text<'a>, detail: Option<Text<'a>> },
}

/// A tool call that the model made earlier.
#[derive(Debug, Clone, PartialEq)]
pub struct Call<'a> {
    pub id: Str<'a>,
    pub name: Str<'a>,
    pub arguments: Str<'a>,
}

/// A function that the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Function<'a> {
    pub name: Text<'a>,
    pub description: Option<Text<'a>>,
    pub parameters: Option<Raw<'a>>,
    pub strict: Option<bool>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ToolChoice<'a> {
    Mode(&'static str),
    Function(Text<'a>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum ResponseFormat<'a> {
    JsonObject,
    JsonSchema { name: Text<'a>, description: Option<Text<'a>>, schema: Raw<'a>, strict: Option<bool> },
}

/// The request body.
#[derive(Debug, Default)]
pub struct Request<'a> {
    pub model: &'a str,
    pub messages: Vec<Message<'a>>,
    pub stream: bool,
    pub include_usage: bool,
    /// The limit and the name of the field that carries it.
    pub limit: Option<(&'static str, i64)>,
    pub temperature: Option<Number<'a>>,
    pub top_p: Option<Number<'a>>,
    pub presence_penalty: Option<Number<'a>>,
    pub frequency_penalty: Option<Number<'a>>,
    pub top_logprobs: Option<i64>,
    pub tools: Vec<Function<'a>>,
    pub tool_choice: Option<ToolChoice<'a>>,
    pub parallel_tool_calls: Option<bool>,
    pub response_format: Option<ResponseFormat<'a>>,
    /// Strings that keep their name: `reasoning_effort`, `verbosity`, `user`, …
    pub strings: Vec<(&'static str, Text<'a>)>,
}

impl Request<'_> {
    /// The body. The messages come last, so that the next turn's bytes extend this turn's.
    pub fn write(&self, capacity: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(capacity);
        let mut body = ObjectWriter::new(&mut out);
        body.text("model", self.model);
        self.write_tools(&mut body);
        self.write_format(&mut body);
        self.write_options(&mut body);
        list(body.key("messages"), &self.messages, |out, message| message.write(out));
        body.end();
        out
    }

    fn write_tools(&self, body: &mut ObjectWriter<'_>) {
        if self.tools.is_empty() {
            return;
        }
        list(body.key("tools"), &self.tools, |out, function| function.write(out));
        match &self.tool_choice {
            Some(ToolChoice::Mode(mode)) => {
                body.text("tool_choice", mode);
            }
            Some(ToolChoice::Function(name)) => {
                let mut choice = ObjectWriter::new(body.key("tool_choice"));
                choice.text("type", "function");
                let mut function = ObjectWriter::new(choice.key("function"));
                function.raw("name", name.raw());
                function.end();
                choice.end();
            }
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
                inner.raw("name", name.raw());
                if let Some(description) = description {
                    inner.raw("description", description.raw());
                }
                inner.raw("schema", *schema);
                if let Some(strict) = strict {
                    inner.bool("strict", *strict);
                }
                inner.end();
            }
        }
        object.end();
    }

    fn write_options(&self, body: &mut ObjectWriter<'_>) {
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
        if let Some(count) = self.top_logprobs {
            body.bool("logprobs", true).int("top_logprobs", count);
        }
        for (name, value) in &self.strings {
            body.raw(name, value.raw());
        }
        body.bool("stream", self.stream);
        if self.stream && self.include_usage {
            body.json("stream_options", br#"{"include_usage":true}"#);
        }
    }
}

impl Message<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let mut message = ObjectWriter::new(out);
        match self {
            Self::Plain { role, content } => {
                message.text("role", role);
                content.write(message.key("content"));
            }
            Self::Assistant { content, tool_calls } => {
                message.text("role", "assistant");
                if content.is_empty() {
                    message.null("content");
                } else {
                    write_joined(message.key("content"), content, "");
                }
                if !tool_calls.is_empty() {
                    list(message.key("tool_calls"), tool_calls, |out, call| call.write(out));
                }
            }
            Self::Tool { tool_call_id, content } => {
                message.text("role", "tool");
                tool_call_id.write(message.key("tool_call_id"));
                content.write(message.key("content"));
            }
        }
        message.end();
    }
}

impl Content<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(pieces) => write_joined(out, pieces, "\\n"),
            Self::Parts(parts) => list(out, parts, |out, part| part.write(out)),
        }
    }
}

impl Part<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let mut part = ObjectWriter::new(out);
        match self {
            Self::Text(text) => {
                part.text("type", "text");
                text.write(part.key("text"));
            }
            Self::ImageUrl { url, detail } => {
                part.text("type", "image_url");
                let mut image = ObjectWriter::new(part.key("image_url"));
                image.raw("url", url.raw());
                if let Some(detail) = detail {
                    image.raw("detail", detail.raw());
                }
                image.end();
            }
        }
        part.end();
    }
}

impl Call<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let mut call = ObjectWriter::new(out);
        self.id.write(call.key("id"));
        call.text("type", "function");
        let mut function = ObjectWriter::new(call.key("function"));
        self.name.write(function.key("name"));
        self.arguments.write(function.key("arguments"));
        function.end();
        call.end();
    }
}

impl Function<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let mut tool = ObjectWriter::new(out);
        tool.text("type", "function");
        let mut function = ObjectWriter::new(tool.key("function"));
        function.raw("name", self.name.raw());
        if let Some(description) = self.description {
            function.raw("description", description.raw());
        }
        // Some servers demand parameters of a function that has none.
        let parameters = self.parameters.map_or(r#"{"type":"object","properties":{}}"#, Raw::as_str);
        function.json("parameters", parameters.as_bytes());
        if let Some(strict) = self.strict {
            function.bool("strict", strict);
        }
        function.end();
        tool.end();
    }
}

/// One string out of pieces, with the (escaped) `glue` between them.
fn write_joined(out: &mut Vec<u8>, pieces: &[Str<'_>], glue: &str) {
    out.push(b'"');
    for (i, piece) in pieces.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(glue.as_bytes());
        }
        piece.write_inner(out);
    }
    out.push(b'"');
}

fn list<T>(out: &mut Vec<u8>, values: &[T], write: impl Fn(&mut Vec<u8>, &T)) {
    out.push(b'[');
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write(out, value);
    }
    out.push(b']');
}
