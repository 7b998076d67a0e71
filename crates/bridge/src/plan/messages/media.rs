//! Parts of content → blocks. What is neither an image nor a document that such a provider takes becomes a short text in
//! its place, with a note.

use std::borrow::Cow;

use wire::chat::{Part, Str};
use wire::messages::{Content, Media};

use crate::plan::content::{InlineFile, standard};
use crate::plan::notes::{Notes, code};

/// What such an API takes.
#[derive(Clone, Copy)]
enum Kind {
    Image,
    Pdf,
}

/// Why something is not taken.
#[derive(Clone, Copy)]
enum Unfit {
    /// It is at an address that is not opened.
    Address,
    Bytes,
}

/// The block of a part; none for a text without words.
pub(super) fn block<'a>(part: Part<'a>, notes: &mut Notes) -> Option<Content<'a>> {
    match part {
        Part::Text(text) => (!text.is_blank()).then(|| one_text(text)),
        Part::ImageUrl { url, .. } => Some(match media(url, Kind::Image) {
            Ok(media) => Content::Image(media),
            Err(Unfit::Address) => unreachable("image", notes),
            Err(Unfit::Bytes) => {
                omitted("image", "an image must be a PNG, JPEG, GIF or WebP, as base64 or at a web address", notes)
            }
        }),
        Part::File { filename, data } => Some(match media(data, Kind::Pdf) {
            Ok(media) => Content::Document { media, title: filename.filter(|name| !name.is_empty()).map(Str::Wire) },
            Err(Unfit::Address) => unreachable("file", notes),
            Err(Unfit::Bytes) => omitted("file", "only PDF documents are taken", notes),
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

/// The same words as of what only OpenAI has: there is as little to be read of it.
fn unreachable<'a>(what: &str, notes: &mut Notes) -> Content<'a> {
    let note = format!("{what} left out: this model has no access to it, only to https addresses");
    notes.degraded(code::CONTENT_DEGRADED, "input", note);
    one_text(Str::Ours(format!("[{what} omitted: this model has no access to it]").into()))
}

/// What a URL leads to, or holds. Such an API opens https addresses only, and refuses all of a request with another, then
/// and ever after; and it refuses bytes that are not of the kind that it is told.
fn media(url: Str<'_>, kind: Kind) -> Result<Media<'_>, Unfit> {
    if begins(&url, "https://") {
        return Ok(Media::Url(url));
    }
    if begins(&url, "http://") {
        return Err(Unfit::Address);
    }
    inline(url, kind).ok_or(Unfit::Bytes)
}

/// What a URL holds, if its bytes are of that kind.
fn inline(url: Str<'_>, kind: Kind) -> Option<Media<'_>> {
    let url = match url {
        // Borrowed, unless something in it is escaped.
        Str::Wire(text) => text.decode(),
        Str::Ours(text) => text,
        Str::Pieces(pieces) => pieces.concat().into(),
    };
    let inline = InlineFile::new("", &url);
    let media_type = match kind {
        Kind::Image => inline.image_type()?,
        Kind::Pdf => inline.pdf_type()?,
    };
    let start = url.len() - inline.data().len();
    let data = match standard(inline.data())? {
        Cow::Owned(data) => Cow::Owned(data),
        Cow::Borrowed(_) => match url {
            Cow::Borrowed(url) => Cow::Borrowed(url.get(start..)?),
            Cow::Owned(mut url) => Cow::Owned(url.split_off(start)),
        },
    };
    Some(Media::Base64 { media_type, data: Str::Ours(data) })
}

fn begins(url: &Str<'_>, scheme: &str) -> bool {
    url.decode().get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
}
