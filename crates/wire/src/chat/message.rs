//! Messages of a chat request, and the strings in them. Strings that came from the client are copied as they
//! were escaped; half a surrogate pair becomes U+FFFD on the way, because one such string spoils a request.

use std::borrow::Cow;

use crate::json::{ObjectWriter, Raw, Text, escape_into, sanitize_into};

/// A string on its way out: the client's own escapes, or text of ours.
#[derive(Debug, Clone, PartialEq)]
pub enum Str<'a> {
    Wire(Text<'a>),
    Ours(Cow<'a, str>),
    /// Text of ours in pieces: JSON that is put into a string.
    Pieces(Vec<Cow<'a, str>>),
}

impl Str<'_> {
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(b'"');
        self.write_inner(out);
        out.push(b'"');
    }

    fn write_inner(&self, out: &mut Vec<u8>) {
        match self {
            Self::Wire(text) => write_clean(out, text.escaped()),
            Self::Ours(text) => escape_into(out, text),
            Self::Pieces(pieces) => pieces.iter().for_each(|piece| escape_into(out, piece)),
        }
    }

    /// The text itself.
    pub fn decode(&self) -> Cow<'_, str> {
        match self {
            Self::Wire(text) => text.decode(),
            Self::Ours(text) => Cow::Borrowed(text),
            Self::Pieces(pieces) => pieces.concat().into(),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::Wire(text) => text.is_empty(),
            Self::Ours(text) => text.is_empty(),
            Self::Pieces(pieces) => pieces.iter().all(|piece| piece.is_empty()),
        }
    }
}

impl<'a> From<Text<'a>> for Str<'a> {
    fn from(text: Text<'a>) -> Self {
        Self::Wire(text)
    }
}

impl From<&'static str> for Str<'_> {
    fn from(text: &'static str) -> Self {
        Self::Ours(Cow::Borrowed(text))
    }
}

/// A JSON value on its way out: as it came, or made by us.
#[derive(Debug, Clone, PartialEq)]
pub enum Json<'a> {
    Wire(Raw<'a>),
    Ours(Vec<u8>),
}

impl Json<'_> {
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Wire(raw) => write_clean(out, raw.as_str()),
            Self::Ours(bytes) => out.extend_from_slice(bytes),
        }
    }
}

fn write_clean(out: &mut Vec<u8>, escaped: &str) {
    if !sanitize_into(out, escaped).is_empty() {
        out.extend_from_slice(b"\\ufffd");
    }
}

/// What differs between providers in how the same message is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// `content` of an assistant message that only calls tools.
    pub absent: Absent,
    /// Text goes as one part of a list, never as a string.
    pub text_as_parts: bool,
    /// The member that carries earlier reasoning.
    pub reasoning_field: Option<&'static str>,
    /// It goes as a part of the content instead, before the text.
    pub thinking_parts: bool,
}

/// How no content is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Absent {
    #[default]
    Null,
    Empty,
    Omitted,
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
        /// Pieces of one text, nothing between them.
        content: Vec<Str<'a>>,
        tool_calls: Vec<Call<'a>>,
        replay: Replay<'a>,
    },
    Tool {
        tool_call_id: Str<'a>,
        content: Content<'a>,
    },
}

/// Earlier reasoning that goes back with its message.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Replay<'a> {
    /// Pieces of one text, a line break between them.
    pub text: Vec<Str<'a>>,
    /// Members that came with it and return untouched.
    pub members: Vec<(String, String)>,
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
    ImageUrl { url: Str<'a>, detail: Option<&'static str> },
    VideoUrl { url: Str<'a> },
    InputAudio(Raw<'a>),
    File { filename: Option<Text<'a>>, data: Str<'a> },
}

/// A tool call that the model made earlier.
#[derive(Debug, Clone, PartialEq)]
pub struct Call<'a> {
    pub id: Str<'a>,
    pub name: Str<'a>,
    /// The arguments of a function, or the input of a custom tool.
    pub arguments: Str<'a>,
    pub is_custom: bool,
    /// A signature or the like that belongs to this call; JSON.
    pub extra_content: Option<String>,
}

impl Message<'_> {
    /// Whether there is text in it; only text can be marked.
    pub fn has_text(&self) -> bool {
        match self {
            Self::Plain { content, .. } | Self::Tool { content, .. } => content.has_text(),
            Self::Assistant { content, .. } => content.iter().any(|piece| !piece.is_empty()),
        }
    }

    /// The message; `marked`: with a mark at the end of its text.
    pub(super) fn write(&self, style: Style, marked: bool, out: &mut Vec<u8>) {
        let mut message = ObjectWriter::new(out);
        match self {
            Self::Plain { role, content } => {
                message.text("role", role);
                content.write(style, marked, message.key("content"));
            }
            Self::Assistant { content, tool_calls, replay } => {
                message.text("role", "assistant");
                if style.thinking_parts && !replay.text.is_empty() {
                    write_thinking(&replay.text, content, marked, message.key("content"));
                } else {
                    write_said(content, style, marked, &mut message);
                }
                replay.write(style, &mut message);
                if !tool_calls.is_empty() {
                    list(message.key("tool_calls"), tool_calls, |out, call| call.write(out));
                }
            }
            Self::Tool { tool_call_id, content } => {
                message.text("role", "tool");
                tool_call_id.write(message.key("tool_call_id"));
                content.write(style, marked, message.key("content"));
            }
        }
        message.end();
    }
}

fn write_said(content: &[Str<'_>], style: Style, marked: bool, message: &mut ObjectWriter<'_>) {
    match style.absent {
        _ if !content.is_empty() => write_text(message.key("content"), content, "", style, marked),
        Absent::Null => {
            message.null("content");
        }
        Absent::Empty => {
            message.text("content", "");
        }
        Absent::Omitted => {}
    }
}

fn write_thinking(thoughts: &[Str<'_>], content: &[Str<'_>], marked: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"[{"type":"thinking","thinking":[{"type":"text","text":"#);
    write_joined(out, thoughts, "\\n");
    out.extend_from_slice(b"}]}");
    if !content.is_empty() {
        out.push(b',');
        write_text_part(out, content, "", marked);
    }
    out.push(b']');
}

impl Replay<'_> {
    fn write(&self, style: Style, message: &mut ObjectWriter<'_>) {
        if let Some(field) = style.reasoning_field.filter(|_| !self.text.is_empty()) {
            write_joined(message.key(field), &self.text, "\\n");
        }
        for (name, value) in &self.members {
            message.json(name, value.as_bytes());
        }
    }
}

impl Content<'_> {
    fn write(&self, style: Style, marked: bool, out: &mut Vec<u8>) {
        match self {
            Self::Text(pieces) => write_text(out, pieces, "\\n", style, marked),
            Self::Parts(parts) => {
                let mark = parts.iter().rposition(Part::is_text).filter(|_| marked);
                out.push(b'[');
                for (place, part) in parts.iter().enumerate() {
                    if place > 0 {
                        out.push(b',');
                    }
                    part.write(mark == Some(place), out);
                }
                out.push(b']');
            }
        }
    }

    fn has_text(&self) -> bool {
        match self {
            Self::Text(_) => !self.is_empty(),
            Self::Parts(parts) => parts.iter().any(Part::is_text),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(pieces) => pieces.iter().all(Str::is_empty),
            Self::Parts(parts) => parts.is_empty(),
        }
    }
}

impl Part<'_> {
    /// Whether it is text, and not empty.
    fn is_text(&self) -> bool {
        matches!(self, Self::Text(text) if !text.is_empty())
    }

    fn write(&self, marked: bool, out: &mut Vec<u8>) {
        let mut part = ObjectWriter::new(out);
        match self {
            Self::Text(text) => {
                part.text("type", "text");
                text.write(part.key("text"));
                if marked {
                    part.json("cache_control", MARK);
                }
            }
            Self::ImageUrl { url, detail } => {
                part.text("type", "image_url");
                let mut image = ObjectWriter::new(part.key("image_url"));
                url.write(image.key("url"));
                if let Some(detail) = detail {
                    image.text("detail", detail);
                }
                image.end();
            }
            Self::VideoUrl { url } => {
                part.text("type", "video_url");
                let mut video = ObjectWriter::new(part.key("video_url"));
                url.write(video.key("url"));
                video.end();
            }
            Self::InputAudio(audio) => {
                part.text("type", "input_audio");
                Json::Wire(*audio).write(part.key("input_audio"));
            }
            Self::File { filename, data } => {
                part.text("type", "file");
                let mut file = ObjectWriter::new(part.key("file"));
                if let Some(name) = filename {
                    Str::Wire(*name).write(file.key("filename"));
                }
                data.write(file.key("file_data"));
                file.end();
            }
        }
        part.end();
    }
}

impl Call<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let mut call = ObjectWriter::new(out);
        self.id.write(call.key("id"));
        let (kind, member) = if self.is_custom { ("custom", "input") } else { ("function", "arguments") };
        call.text("type", kind);
        let mut called = ObjectWriter::new(call.key(kind));
        self.name.write(called.key("name"));
        self.arguments.write(called.key(member));
        called.end();
        if let Some(extra) = &self.extra_content {
            call.json("extra_content", extra.as_bytes());
        }
        call.end();
    }
}

/// Up to here the provider is to cache what it has read.
const MARK: &[u8] = br#"{"type":"ephemeral"}"#;

fn write_text(out: &mut Vec<u8>, pieces: &[Str<'_>], glue: &str, style: Style, marked: bool) {
    if style.text_as_parts || marked {
        out.push(b'[');
        write_text_part(out, pieces, glue, marked);
        out.push(b']');
    } else {
        write_joined(out, pieces, glue);
    }
}

fn write_text_part(out: &mut Vec<u8>, pieces: &[Str<'_>], glue: &str, marked: bool) {
    out.extend_from_slice(br#"{"type":"text","text":"#);
    write_joined(out, pieces, glue);
    if marked {
        out.extend_from_slice(br#","cache_control":"#);
        out.extend_from_slice(MARK);
    }
    out.push(b'}');
}

/// One string out of pieces, with the (escaped) `glue` between them.
pub(super) fn write_joined(out: &mut Vec<u8>, pieces: &[Str<'_>], glue: &str) {
    out.push(b'"');
    for (i, piece) in pieces.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(glue.as_bytes());
        }
        piece.write_inner(out);
    }
    out.push(b'"');
}

pub(super) fn list<T>(out: &mut Vec<u8>, values: &[T], write: impl Fn(&mut Vec<u8>, &T)) {
    out.push(b'[');
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write(out, value);
    }
    out.push(b']');
}
