//! Messages and the blocks that they are made of. Text stays as it was escaped; what a model thought goes out as the
//! very bytes in which it came.

use crate::chat::Str;
use crate::json::ObjectWriter;
use crate::messages::CacheMark;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    User,
    Assistant,
    /// The application, in the midst of a conversation.
    System,
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Message<'a> {
    pub role: Role,
    pub blocks: Vec<Block<'a>>,
}

/// A block, and whether what was sent up to here is to be cached.
#[derive(Debug, Clone, PartialEq)]
pub struct Block<'a> {
    pub content: Content<'a>,
    pub is_marked: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Content<'a> {
    /// Pieces of one text, with this (escaped) text between them.
    Text {
        pieces: Vec<Str<'a>>,
        glue: &'static str,
    },
    Image(Media<'a>),
    Document {
        media: Media<'a>,
        title: Option<Str<'a>>,
    },
    /// A call; its input is the JSON text of an object.
    ToolUse {
        id: Str<'a>,
        name: Str<'a>,
        input: Str<'a>,
    },
    ToolResult {
        id: Str<'a>,
        content: Vec<Self>,
    },
    /// A block that came from the provider, as it came.
    Raw(String),
}

/// Where an image or a document is.
#[derive(Debug, Clone, PartialEq)]
pub enum Media<'a> {
    Base64 { media_type: &'static str, data: Str<'a> },
    Url(Str<'a>),
}

impl<'a> From<Content<'a>> for Block<'a> {
    fn from(content: Content<'a>) -> Self {
        Self { content, is_marked: false }
    }
}

impl Content<'_> {
    /// Whether a mark may be put here: not on what the model thought.
    pub const fn takes_mark(&self) -> bool {
        !matches!(self, Self::Raw(_))
    }

    fn write(&self, mark: Option<CacheMark>, out: &mut Vec<u8>) {
        if let Self::Raw(json) = self {
            return out.extend_from_slice(json.as_bytes());
        }
        let mut block = ObjectWriter::new(out);
        match self {
            Self::Raw(_) => {}
            Self::Text { pieces, glue } => {
                block.text("type", "text");
                Str::write_joined(block.key("text"), pieces, glue);
            }
            Self::Image(media) => {
                block.text("type", "image");
                media.write(block.key("source"));
            }
            Self::Document { media, title } => {
                block.text("type", "document");
                media.write(block.key("source"));
                if let Some(title) = title {
                    title.write(block.key("title"));
                }
            }
            Self::ToolUse { id, name, input } => {
                block.text("type", "tool_use");
                id.write(block.key("id"));
                name.write(block.key("name"));
                block.json("input", input.decode().as_bytes());
            }
            Self::ToolResult { id, content } => {
                block.text("type", "tool_result");
                id.write(block.key("tool_use_id"));
                list(block.key("content"), content, |out, content| content.write(None, out));
            }
        }
        if let Some(mark) = mark {
            mark.write(block.key("cache_control"));
        }
        block.end();
    }
}

impl Media<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let mut source = ObjectWriter::new(out);
        match self {
            Self::Base64 { media_type, data } => {
                source.text("type", "base64").text("media_type", media_type);
                data.write(source.key("data"));
            }
            Self::Url(url) => {
                source.text("type", "url");
                url.write(source.key("url"));
            }
        }
        source.end();
    }
}

impl Message<'_> {
    pub(super) fn write(&self, mark: CacheMark, out: &mut Vec<u8>) {
        let mut message = ObjectWriter::new(out);
        message.text("role", self.role.name());
        write_blocks(&self.blocks, mark, message.key("content"));
        message.end();
    }
}

pub(super) fn write_blocks(blocks: &[Block<'_>], mark: CacheMark, out: &mut Vec<u8>) {
    list(out, blocks, |out, block| block.content.write(block.is_marked.then_some(mark), out));
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
