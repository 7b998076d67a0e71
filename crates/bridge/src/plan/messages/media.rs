//! Parts of content → blocks. What is neither an image nor a document that such a provider takes becomes a short text in
//! its place, with a note.

use std::borrow::Cow;

use wire::chat::{Part, Str};
use wire::json::Text;
use wire::messages::{Content, Media};

use crate::plan::notes::{Notes, code};

const PDF: &str = "application/pdf";

const IMAGES: &[(&str, &str)] = &[
    ("image/png", "image/png"),
    ("image/jpeg", "image/jpeg"),
    ("image/jpg", "image/jpeg"),
    ("image/gif", "image/gif"),
    ("image/webp", "image/webp"),
];

const PDFS: &[(&str, &str)] = &[(PDF, PDF)];

/// The block of a part; none for a text without words.
pub(super) fn block<'a>(part: Part<'a>, notes: &mut Notes) -> Option<Content<'a>> {
    match part {
        Part::Text(text) => (!text.is_blank()).then(|| one_text(text)),
        Part::ImageUrl { url, .. } => Some(match media(url, IMAGES) {
            Some(media) => Content::Image(media),
            None => omitted("image", "an image must be a PNG, JPEG, GIF or WebP, as base64 or at a web address", notes),
        }),
        Part::File { filename, data } => Some(match document(filename, data) {
            Some(media) => Content::Document { media, title: filename.filter(|name| !name.is_empty()).map(Str::Wire) },
            None => omitted("file", "only PDF documents are taken", notes),
        }),
        Part::VideoUrl { .. } => Some(omitted("video", "this API has no video", notes)),
        Part::InputAudio(_) => Some(omitted("audio", "this API has no audio", notes)),
    }
}

pub(super) fn one_text(text: Str<'_>) -> Content<'_> {
    Content::Text { pieces: vec![text], glue: "" }
}

fn omitted<'a>(what: &str, why: &'static str, notes: &mut Notes) -> Content<'a> {
    notes.degraded(code::CONTENT_DEGRADED, "input", format!("{what} left out: {why}"));
    one_text(Str::Ours(format!("[{what} omitted: this model cannot read it]").into()))
}

/// A document by its data URL, its address, or its name and its data.
fn document<'a>(name: Option<Text<'a>>, data: Str<'a>) -> Option<Media<'a>> {
    let bare = !data.decode().starts_with("data:") && !is_address(&data.decode());
    if !bare {
        return media(data, PDFS);
    }
    let is_pdf = name.is_some_and(|name| name.decode().to_ascii_lowercase().ends_with(".pdf"));
    (is_pdf && is_base64(&data.decode())).then_some(Media::Base64 { media_type: PDF, data })
}

/// What a URL holds or leads to, if its kind is among these.
fn media<'a>(url: Str<'a>, kinds: &[(&str, &'static str)]) -> Option<Media<'a>> {
    if is_address(&url.decode()) {
        return Some(Media::Url(url));
    }
    let url = match url {
        // Borrowed, unless something in it is escaped.
        Str::Wire(text) => text.decode(),
        Str::Ours(text) => text,
        Str::Pieces(pieces) => pieces.concat().into(),
    };
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let named = head.strip_suffix(";base64")?.split(';').next().unwrap_or_default();
    let (_, media_type) = kinds.iter().find(|(name, _)| named.eq_ignore_ascii_case(name))?;
    if !is_base64(data) {
        return None;
    }
    let start = url.len() - data.len();
    let data = match url {
        Cow::Borrowed(url) => Cow::Borrowed(url.get(start..)?),
        Cow::Owned(mut url) => Cow::Owned(url.split_off(start)),
    };
    Some(Media::Base64 { media_type, data: Str::Ours(data) })
}

fn is_address(url: &str) -> bool {
    let starts = |scheme: &str| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    starts("https://") || starts("http://")
}

fn is_base64(data: &str) -> bool {
    let digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    !data.is_empty() && data.bytes().all(digit)
}
