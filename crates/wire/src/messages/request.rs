//! The request: what is here can be sent, in this order of members, and nothing else.
//!
//! The same conversation gives the same bytes, but for the marks of the prompt cache, which move with its end.

use super::block::{Block, Message, list, write_blocks};
use crate::chat::{Json, Str, ToolChoice};
use crate::json::{Number, ObjectWriter, Raw};

/// How long a mark holds: what the server has as its default, or an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheMark {
    pub for_an_hour: bool,
}

impl CacheMark {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.for_an_hour {
            br#"{"type":"ephemeral","ttl":"1h"}"#
        } else {
            br#"{"type":"ephemeral"}"#
        });
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Tool<'a> {
    Function(Function<'a>),
    /// A tool that the provider runs itself, in its own shape; a JSON object.
    Native(String),
}

/// A function that the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Function<'a> {
    pub name: String,
    /// Paragraphs; none: no description.
    pub description: Vec<Str<'a>>,
    pub input_schema: Json<'a>,
    pub is_strict: bool,
    /// Its input comes while it is written, not when a value of it is whole.
    pub streams_input: bool,
}

/// The request body.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a member of the body, or a mark in it")]
pub struct Request<'a> {
    /// None: it is in the path.
    pub model: Option<&'a str>,
    pub max_tokens: i64,
    pub stream: bool,
    pub temperature: Option<Number<'a>>,
    pub top_p: Option<Number<'a>>,
    /// A JSON array of texts.
    pub stop_sequences: Option<Json<'a>>,
    pub user_id: Option<Str<'a>>,
    pub service_tier: Option<&'static str>,
    pub speed: Option<&'static str>,
    /// Members of `thinking`, each with its JSON; none: nothing is said about it.
    pub thinking: Vec<(String, String)>,
    /// Members of `output_config`, in the same way.
    pub output_config: Vec<(String, String)>,
    /// Objects whose members become members of the body; JSON.
    pub extra: Vec<String>,
    pub mark: CacheMark,
    /// The server places a mark itself.
    pub marks_itself: bool,
    pub tools: Vec<Tool<'a>>,
    /// The last tool has a mark.
    pub marks_tools: bool,
    pub tool_choice: Option<ToolChoice>,
    /// One call at a time.
    pub one_call: bool,
    pub system: Vec<Block<'a>>,
    pub messages: Vec<Message<'a>>,
}

impl Request<'_> {
    /// The body. What a prompt is made of comes last, in the order in which it is rendered and cached.
    pub fn write(&self, capacity: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(capacity);
        let mut body = ObjectWriter::new(&mut out);
        if let Some(model) = self.model {
            body.text("model", model);
        }
        body.int("max_tokens", self.max_tokens);
        self.write_options(&mut body);
        self.write_tools(&mut body);
        if !self.system.is_empty() {
            write_blocks(&self.system, self.mark, body.key("system"));
        }
        list(body.key("messages"), &self.messages, |out, message| message.write(self.mark, out));
        body.end();
        out
    }

    fn write_options(&self, body: &mut ObjectWriter<'_>) {
        body.bool("stream", self.stream);
        for (name, number) in [("temperature", self.temperature), ("top_p", self.top_p)] {
            if let Some(number) = number {
                body.raw(name, number.raw);
            }
        }
        if let Some(stop) = &self.stop_sequences {
            stop.write(body.key("stop_sequences"));
        }
        if let Some(user) = &self.user_id {
            let mut metadata = ObjectWriter::new(body.key("metadata"));
            user.write(metadata.key("user_id"));
            metadata.end();
        }
        for (name, word) in [("service_tier", self.service_tier), ("speed", self.speed)] {
            if let Some(word) = word {
                body.text(name, word);
            }
        }
        for (name, members) in [("thinking", &self.thinking), ("output_config", &self.output_config)] {
            if !members.is_empty() {
                let mut object = ObjectWriter::new(body.key(name));
                for (name, value) in members {
                    object.json(name, value.as_bytes());
                }
                object.end();
            }
        }
        for object in &self.extra {
            for (key, value) in Raw::parse(object).unwrap_or(Raw::NULL).fields() {
                body.raw(&key.decode(), value);
            }
        }
        if self.marks_itself {
            self.mark.write(body.key("cache_control"));
        }
    }

    fn write_tools(&self, body: &mut ObjectWriter<'_>) {
        let Some((last, tools)) = self.tools.split_last() else { return };
        self.write_choice(body);
        let out = body.key("tools");
        out.push(b'[');
        for tool in tools {
            tool.write(None, out);
            out.push(b',');
        }
        last.write(self.marks_tools.then_some(self.mark), out);
        out.push(b']');
    }

    fn write_choice(&self, body: &mut ObjectWriter<'_>) {
        let (kind, name) = match &self.tool_choice {
            Some(ToolChoice::Mode("none")) => {
                body.json("tool_choice", br#"{"type":"none"}"#);
                return;
            }
            Some(ToolChoice::Mode("auto")) | None if !self.one_call => return,
            Some(ToolChoice::Mode("auto")) | None => ("auto", None),
            Some(ToolChoice::Mode(_)) => ("any", None),
            Some(ToolChoice::Function(name) | ToolChoice::Custom(name)) => ("tool", Some(name)),
        };
        let mut choice = ObjectWriter::new(body.key("tool_choice"));
        choice.text("type", kind);
        if let Some(name) = name {
            choice.text("name", name);
        }
        if self.one_call {
            choice.bool("disable_parallel_tool_use", true);
        }
        choice.end();
    }
}

impl Tool<'_> {
    fn write(&self, mark: Option<CacheMark>, out: &mut Vec<u8>) {
        match self {
            Self::Native(json) => {
                let mut tool = ObjectWriter::new(out);
                for (key, value) in Raw::parse(json).unwrap_or(Raw::NULL).fields() {
                    tool.raw(&key.decode(), value);
                }
                write_mark(mark, tool);
            }
            Self::Function(function) => {
                let mut tool = ObjectWriter::new(out);
                tool.text("name", &function.name);
                if !function.description.is_empty() {
                    Str::write_joined(tool.key("description"), &function.description, "\\n\\n");
                }
                function.input_schema.write(tool.key("input_schema"));
                if function.is_strict {
                    tool.bool("strict", true);
                }
                if function.streams_input {
                    tool.bool("eager_input_streaming", true);
                }
                write_mark(mark, tool);
            }
        }
    }
}

fn write_mark(mark: Option<CacheMark>, mut object: ObjectWriter<'_>) {
    if let Some(mark) = mark {
        mark.write(object.key("cache_control"));
    }
    object.end();
}
