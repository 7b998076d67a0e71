//! A page as text: HTML becomes Markdown, in parts that a model can ask for one by one. Whatever is in a page, this takes
//! time and memory in proportion to its length, and never fails.

mod address;
mod charset;
mod clean;
mod html;
mod markdown;
mod passages;

pub use address::{addresses, normalised, same_address};
pub use charset::decoded;
pub use clean::clean;
pub use passages::{MOST_AT_ONCE, find, part};
use url::Url;

/// A page that was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// Where it was found in the end.
    pub url: String,
    /// Empty if it has none.
    pub title: String,
    /// Markdown, or whatever kind of text it is.
    pub text: String,
    /// Where its links lead.
    pub links: Vec<String>,
    /// Not all of it was read.
    pub is_cut: bool,
}

/// What kind of text a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Html,
    Xhtml,
    Plain,
}

/// Links of a page that is no HTML.
const MOST_LINKS: usize = 5000;

/// The page that this text at this address is.
pub fn read(text: &str, kind: Kind, url: &Url) -> Page {
    let mut page = Page { url: url.to_string(), ..Page::default() };
    if kind == Kind::Plain {
        clean(text).trim().clone_into(&mut page.text);
        page.links = addresses(&page.text).take(MOST_LINKS).collect();
        return page;
    }
    let read = markdown::markdown(text, url, kind == Kind::Xhtml);
    (page.title, page.text, page.links) = (read.title, read.text, read.links);
    page.is_cut = page.text.len() > markdown::MOST_TEXT;
    page
}

/// Whether these bytes, which are said to be text, are something else. What is written in any character set has few control
/// characters.
pub fn is_binary(bytes: &[u8]) -> bool {
    const MAGIC: &[&[u8]] = &[
        b"%PDF-",
        b"PK\x03\x04",
        b"\x89PNG",
        b"GIF8",
        b"\xff\xd8\xff",
        b"\x7fELF",
        b"\x1f\x8b",
        b"\x28\xb5\x2f\xfd",
        b"RIFF",
        b"OggS",
        b"ID3",
    ];
    let head = &bytes[..bytes.len().min(4096)];
    if MAGIC.iter().any(|magic| head.starts_with(magic)) {
        return true;
    }
    // UTF-16 is full of zeros.
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return false;
    }
    let controls = head.iter().filter(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace() && **byte != 0x1b);
    head.contains(&0) || controls.count() * 20 > head.len()
}

#[cfg(test)]
#[path = "page/laws_tests.rs"]
mod laws;
