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

/// The block of a part; none for a text without words.
pub(super) fn block<'a>(part: Part<'a>, notes: &mut Notes) -> Option<Content<'a>> {
    match part {
        Part::Text(text) => (!text.is_blank()).then(|| one_text(text)),
        Part::ImageUrl { url, .. } => Some(match media(url, Kind::Image) {
            Some(media) => Content::Image(media),
            None => omitted("image", "an image must be a PNG, JPEG, GIF or WebP, as base64 or at a web address", notes),
        }),
        Part::File { filename, data } => Some(match media(data, Kind::Pdf) {
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

/// What a URL leads to, or holds, if its bytes are of such a kind: an API that is told another refuses them.
fn media(url: Str<'_>, kind: Kind) -> Option<Media<'_>> {
    if is_address(&url.decode()) {
        return Some(Media::Url(url));
    }
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

fn is_address(url: &str) -> bool {
    let starts = |scheme: &str| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    starts("https://") || starts("http://")
}
