//! Content parts of messages, of reasoning and of tool outputs.

use crate::json::{Cursor, FromRaw, Invalid, Kind, Raw, Text};
use crate::open::{open_struct, tagged};

/// `content` of a message: a string, or parts.
#[derive(Debug, Clone, PartialEq)]
pub enum Content<'a> {
    Text(Text<'a>),
    Parts(Vec<Part<'a>>),
}

impl<'a> FromRaw<'a> for Content<'a> {
    fn from_raw(raw: Raw<'a>) -> Result<Self, Invalid> {
        Self::from_cursor(&mut Cursor::new(raw))
    }

    fn from_cursor(cursor: &mut Cursor<'a>) -> Result<Self, Invalid> {
        match cursor.kind() {
            Kind::String => Text::from_cursor(cursor).map(Self::Text),
            Kind::Array => Vec::from_cursor(cursor).map(Self::Parts),
            _ => Err(Invalid::expected("one of an array of objects or a string", cursor.raw())),
        }
    }
}

tagged! {
    /// One part of a message's content.
    pub enum Part {
        InputText(InputText) = "input_text" | "text",
        InputImage(InputImage) = "input_image",
        InputFile(InputFile) = "input_file",
        InputAudio(InputAudio) = "input_audio",
        OutputText(OutputText) = "output_text",
        Refusal(Refusal) = "refusal",
        ReasoningText(ReasoningText) = "reasoning_text" | "summary_text",
        Screenshot(Screenshot) = "computer_screenshot",
        EncryptedContent(EncryptedContent) = "encrypted_content",
    }
    untagged: |_| ""
}

open_struct! {
    pub struct InputText { text: Text<'a>, prompt_cache_breakpoint: Raw<'a> }
}

open_struct! {
    pub struct InputImage { image_url: Text<'a>, file_id: Text<'a>, detail: Text<'a>, prompt_cache_breakpoint: Raw<'a> }
}

open_struct! {
    pub struct InputFile {
        file_id: Text<'a>, filename: Text<'a>, file_data: Text<'a>, file_url: Text<'a>, detail: Text<'a>,
        prompt_cache_breakpoint: Raw<'a>,
    }
}

open_struct! {
    pub struct InputAudio { input_audio: Raw<'a> }
}

open_struct! {
    pub struct OutputText { text: Text<'a>, annotations: Raw<'a>, logprobs: Raw<'a> }
}

open_struct! {
    pub struct Refusal { refusal: Text<'a> }
}

open_struct! {
    pub struct ReasoningText { text: Text<'a> }
}

open_struct! {
    pub struct Screenshot { image_url: Text<'a>, file_id: Text<'a>, detail: Text<'a> }
}

open_struct! {
    /// What one agent tells another: an argument that was declared as `encrypted`, as the model's call had it.
    pub struct EncryptedContent { encrypted_content: Text<'a> }
}
