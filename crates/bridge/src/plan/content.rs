//! Content parts → chat content. What the provider cannot take becomes a short text in its place and a note, or
//! refuses the request, as the dialect says. Nothing is ever fetched.

mod file;
mod inline;
mod limits;
mod side;

use std::borrow::Cow;

use wire::chat::{self, Str};
use wire::json::{Invalid, InvalidCode, Raw, Text};
use wire::responses::{Content, InputImage, Output, Part};

use super::item_path::{ItemPath, MemberPath};
use super::notes::{Notes, code};
use super::{FileTexts, ImageTexts};
use crate::dialect::{ContentRules, ImageInput, Lacking, ToolImages};

pub use inline::InlineFile;
pub(super) use inline::standard;
pub(super) use limits::keep_to_limits;

/// In the place of an image that the model cannot see.
const UNSEEN: &str = "[image omitted: this model cannot see it]";

/// A tool's result: its text, and what has to go into a message of its own.
#[derive(Debug, Default)]
pub(super) struct ToolResult<'a> {
    pub(super) texts: Vec<Str<'a>>,
    pub(super) media: Vec<chat::Part<'a>>,
}

impl ToolResult<'_> {
    pub(super) fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self { texts: vec![Str::Ours(text.into())], media: Vec::new() }
    }
}

/// One part of content on its way out.
enum ContentPiece<'a> {
    Text(Str<'a>),
    Media(chat::Part<'a>),
}

/// Turns parts into pieces.
#[derive(Debug)]
pub(super) struct Renderer<'t> {
    pub(super) rules: &'t ContentRules,
    /// Who knows what is in images that cannot be sent.
    pub(super) images: Option<&'t dyn ImageTexts>,
    /// Who knows what is in files that cannot be sent.
    pub(super) files: Option<&'t dyn FileTexts>,
    /// What there is of them so far.
    pub(super) read: &'t mut FilesRead,
    pub(super) notes: &'t mut Notes,
}

/// What was read of files in what is before: what comes next has the rest.
#[derive(Debug, Default)]
pub(super) struct FilesRead {
    bytes: usize,
    pdfs: usize,
}

impl Renderer<'_> {
    /// A message's content: a string where all of it is text, as some servers take no parts.
    pub(super) fn message<'a>(&mut self, content: &Content<'a>, path: ItemPath) -> chat::Content<'a> {
        let parts = match content {
            Content::Text(text) => return chat::Content::Text(vec![(*text).into()]),
            Content::Parts(parts) => parts,
        };
        let at = path.member("content");
        let mut pieces = Vec::with_capacity(parts.len());
        for (index, part) in parts.iter().enumerate() {
            pieces.extend(self.piece(part, at.element(index)));
        }
        if pieces.iter().all(|piece| matches!(piece, ContentPiece::Text(_))) {
            let texts = pieces.into_iter().filter_map(|piece| match piece {
                ContentPiece::Text(text) => Some(text),
                ContentPiece::Media(_) => None,
            });
            return chat::Content::Text(texts.collect());
        }
        chat::Content::Parts(pieces.into_iter().map(ContentPiece::into_part).collect())
    }

    /// The text of a message that can hold nothing else.
    pub(super) fn texts<'a>(&mut self, content: &Content<'a>, path: ItemPath) -> Vec<Str<'a>> {
        match self.message(content, path) {
            chat::Content::Text(texts) => texts,
            chat::Content::Parts(parts) => {
                self.notes.ignored(code::CONTENT_IGNORED, path, "an assistant's message can hold only text");
                let text = |part| if let chat::Part::Text(text) = part { Some(text) } else { None };
                parts.into_iter().filter_map(text).collect()
            }
        }
    }

    /// A tool's result; images are marked where they were, and hoisted: hardly any server takes them in a tool's message.
    pub(super) fn output<'a>(&mut self, output: &Output<'a>, path: ItemPath) -> ToolResult<'a> {
        let mut result = ToolResult::default();
        match output {
            Output::Text(text) => result.texts.push((*text).into()),
            Output::Json(raw) => result.texts.push(Str::Ours(clean(raw.as_str()))),
            Output::Parts(parts) => {
                let at = path.member("output");
                for (index, part) in parts.iter().enumerate() {
                    match self.piece(part, at.element(index)) {
                        Some(ContentPiece::Text(text)) => result.texts.push(text),
                        Some(ContentPiece::Media(media)) => self.hoist(media, at.element(index), &mut result),
                        None => {}
                    }
                }
            }
        }
        result
    }

    /// An image that is a result by itself.
    pub(super) fn picture<'a>(&mut self, image: &InputImage<'a>, path: ItemPath) -> ToolResult<'a> {
        let mut result = ToolResult::default();
        match self.image(image.image_url, image.detail, path.member("output")) {
            ContentPiece::Text(text) => result.texts.push(text),
            ContentPiece::Media(media) => self.hoist(media, path.member("output"), &mut result),
        }
        result
    }

    fn hoist<'a>(&mut self, media: chat::Part<'a>, at: MemberPath, result: &mut ToolResult<'a>) {
        if self.rules.tool_images == ToolImages::Hoist {
            result.texts.push("[image: in the next message]".into());
            self.notes.lowered(code::CONTENT_DEGRADED, at, "moved to a user message after the results");
        }
        result.media.push(media);
    }

    fn piece<'a>(&mut self, part: &Part<'a>, at: MemberPath) -> Option<ContentPiece<'a>> {
        let text = match part {
            Part::InputText(part) => part.text,
            Part::OutputText(part) => part.text,
            Part::Refusal(part) => part.refusal,
            Part::ReasoningText(part) => part.text,
            Part::InputImage(image) => return Some(self.image(image.image_url, image.detail, at)),
            Part::Screenshot(image) => return Some(self.image(image.image_url, image.detail, at)),
            Part::InputFile(file) => return Some(self.file(file, at)),
            Part::InputAudio(audio) => {
                return Some(match audio.input_audio.filter(|_| self.rules.audio) {
                    Some(audio) => ContentPiece::Media(chat::Part::InputAudio(audio)),
                    None => self.lacking("audio", "cannot hear", at),
                });
            }
            Part::EncryptedContent(part) => self.told(part.encrypted_content, at),
            Part::Other { raw, .. } => {
                self.notes.ignored(code::CONTENT_IGNORED, at, "this kind of content is not known");
                // Some clients tag plain text with a name of their own.
                raw.get("text").and_then(Raw::text)
            }
        };
        text.filter(|text| !text.is_empty()).map(|text| ContentPiece::Text(text.into()))
    }

    /// What one agent told another. The arguments of the call that did so were encrypted only where OpenAI's own
    /// server read them first; a model behind the chat API wrote them as they are.
    fn told<'a>(&mut self, content: Option<Text<'a>>, at: MemberPath) -> Option<Text<'a>> {
        let foreign = content.is_some_and(|content| is_ciphertext(content.escaped()));
        if foreign {
            self.notes.ignored(code::CONTENT_IGNORED, at, "it was encrypted by another server");
        }
        content.filter(|_| !foreign)
    }

    fn image<'a>(&mut self, url: Option<Text<'a>>, detail: Option<Text<'a>>, at: MemberPath) -> ContentPiece<'a> {
        let seen = url.filter(|url| match self.rules.images {
            ImageInput::None => false,
            ImageInput::Data => url.escaped().starts_with("data:"),
            ImageInput::All => true,
        });
        match seen {
            Some(url) => {
                ContentPiece::Media(chat::Part::ImageUrl { url: url.into(), detail: detail.and_then(detail_name) })
            }
            None => match (url, self.images) {
                (None, _) => self.lacking("image", "has no access to", at),
                (Some(_), None) => self.lacking("image", "cannot see", at),
                (Some(url), Some(images)) => self.described(images.of(&url.decode()).as_deref(), at),
            },
        }
    }

    /// Words in the place of an image, where somebody was to find some.
    fn described<'a>(&mut self, text: Option<&str>, at: MemberPath) -> ContentPiece<'a> {
        let Some(text) = text else {
            self.notes.degraded(
                code::CONTENT_DEGRADED,
                at,
                "image left out: this model cannot see it, and it could not be described",
            );
            return ContentPiece::Text(Str::Ours(UNSEEN.into()));
        };
        self.notes.degraded(
            code::CONTENT_DEGRADED,
            at,
            "image described in words by another model: this one cannot see it",
        );
        ContentPiece::Text(Str::Ours(format!("[image: {text}]").into()))
    }

    /// A text in the place of what cannot be sent.
    fn lacking<'a>(&mut self, what: &'static str, why: &'static str, at: MemberPath) -> ContentPiece<'a> {
        if self.rules.lacking == Lacking::Reject {
            let mut invalid =
                Invalid::sentence(InvalidCode::UnsupportedValue, format!("Unsupported {what}: this model {why} it."));
            invalid.path = at.to_string();
            self.notes.refuse(invalid);
        } else {
            self.notes.degraded(code::CONTENT_DEGRADED, at, format!("{what} left out: this model {why} it"));
        }
        ContentPiece::Text(Str::Ours(format!("[{what} omitted: this model {why} it]").into()))
    }
}

impl<'a> ContentPiece<'a> {
    fn into_part(self) -> chat::Part<'a> {
        match self {
            Self::Text(text) => chat::Part::Text(text),
            Self::Media(part) => part,
        }
    }
}

/// Whether this is a token of the Fernet format: a version, the time, and no less than two blocks and a signature,
/// all as base64. Nobody writes such a thing by hand.
fn is_ciphertext(content: &str) -> bool {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'=');
    content.len() >= 100 && content.starts_with("gAAAAA") && content.bytes().all(safe)
}

/// Chat knows three; `original` is as good as it gets.
fn detail_name(detail: Text<'_>) -> Option<&'static str> {
    let names = [("low", "low"), ("high", "high"), ("auto", "auto"), ("original", "high")];
    names.iter().find(|(name, _)| detail.is(name)).map(|(_, sent)| *sent)
}

/// JSON text that goes into a string: without halves of surrogate pairs, which only look harmless while escaped.
pub(super) fn clean(json: &str) -> Cow<'_, str> {
    if !(json.contains("\\ud") || json.contains("\\uD")) {
        return Cow::Borrowed(json);
    }
    let mut out = Vec::with_capacity(json.len());
    if !wire::json::sanitize_into(&mut out, json).is_empty() {
        out.extend_from_slice(b"\\ufffd");
    }
    String::from_utf8(out).map_or(Cow::Borrowed(json), Cow::Owned)
}
