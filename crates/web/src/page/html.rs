//! HTML in pieces: text, tags, and the text of elements that have no tags inside. One pass from front to end, without a
//! tree: what is nested or repeated without end costs no more than its length. What is broken is read as browsers do,
//! where that needs no tree.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

/// One piece.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'h> {
    /// As it is written, with its character references.
    Text(&'h str),
    Start(Tag<'h>),
    /// With its name in small letters.
    End(Cow<'h, str>),
    /// An element whose content is all text, whole.
    Raw {
        name: Cow<'h, str>,
        text: &'h str,
    },
}

/// The beginning of an element.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tag<'h> {
    /// In small letters.
    pub(super) name: Cow<'h, str>,
    attributes: &'h str,
}

impl<'h> Tag<'h> {
    /// The value of an attribute, its references resolved; the first counts.
    pub(super) fn attribute(&self, wanted: &str) -> Option<Cow<'h, str>> {
        let mut attributes = Attributes { text: self.attributes, at: 0 };
        attributes.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| resolved(value))
    }
}

/// Where there is nothing but text until the end tag.
const RAW: &[&str] = &["iframe", "noembed", "noframes", "script", "style", "textarea", "title", "xmp"];

/// The pieces of a page.
#[derive(Debug)]
pub(super) struct Tokens<'h> {
    html: &'h str,
    pub(super) at: usize,
    /// `<script/>` is whole.
    xml: bool,
}

impl<'h> Tokens<'h> {
    pub(super) fn new(html: &'h str, xml: bool) -> Self {
        Self { html, at: 0, xml }
    }

    fn rest(&self) -> &'h str {
        self.html.get(self.at..).unwrap_or_default()
    }

    /// All until this, which is left out too. What has no end goes to the end of the page.
    fn skip_past(&mut self, end: &str) {
        self.at = self.rest().find(end).map_or(self.html.len(), |found| self.at + found + end.len());
    }

    fn comment(&mut self) {
        match self.rest() {
            rest if rest.starts_with("<!-->") || rest.starts_with("<!--->") => self.skip_past(">"),
            rest if rest.starts_with("<!--") => {
                self.at += 4;
                self.skip_past("-->");
            }
            _ => self.skip_past(">"),
        }
    }

    fn text(&mut self) -> Token<'h> {
        let rest = self.rest();
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let length = rest[first..].find('<').map_or(rest.len(), |found| first + found);
        self.at += length;
        Token::Text(&rest[..length])
    }

    /// A tag from its name on; none if the page ends in it.
    fn tag(&mut self, name_at: usize) -> Option<Tag<'h>> {
        let rest = &self.html[name_at..];
        let length = rest.find(|c: char| c.is_ascii_whitespace() || c == '/' || c == '>').unwrap_or(rest.len());
        let (name, rest) = rest.split_at(length);
        let mut attributes = Attributes { text: rest, at: 0 };
        attributes.by_ref().for_each(drop);
        let end = attributes.at;
        self.at = name_at + length + end + 1;
        (end < rest.len()).then(|| Tag { name: lower(name), attributes: &rest[..end] })
    }

    /// The text of the element that has just begun, and past its end.
    fn raw(&mut self, name: Cow<'h, str>) -> Token<'h> {
        let rest = self.rest();
        let ends = |at: &usize| {
            let after = &rest.as_bytes()[at + 2..];
            after.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
                && after.get(name.len()).is_none_or(|next| next.is_ascii_whitespace() || matches!(next, b'/' | b'>'))
        };
        let end = rest.match_indices("</").map(|(at, _)| at).find(ends);
        let text = &rest[..end.unwrap_or(rest.len())];
        self.at += text.len();
        if end.is_some() {
            self.skip_past(">");
        }
        Token::Raw { name, text }
    }
}

impl<'h> Iterator for Tokens<'h> {
    type Item = Token<'h>;

    fn next(&mut self) -> Option<Token<'h>> {
        loop {
            let rest = self.rest();
            let mut bytes = rest.bytes();
            let is_letter = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphabetic());
            match (bytes.next()?, bytes.next()) {
                (b'<', Some(b'/')) if is_letter(bytes.next()) => {
                    return self.tag(self.at + 2).map(|tag| Token::End(tag.name));
                }
                (b'<', Some(b'/' | b'?')) => self.skip_past(">"),
                (b'<', Some(b'!')) => self.comment(),
                (b'<', next) if is_letter(next) => {
                    let tag = self.tag(self.at + 1)?;
                    let whole = self.xml && tag.attributes.ends_with('/');
                    if RAW.contains(&&*tag.name) && !whole {
                        return Some(self.raw(tag.name));
                    }
                    return Some(Token::Start(tag));
                }
                _ => return Some(self.text()),
            }
        }
    }
}

/// Attributes of a tag as they are written, up to the end of it.
struct Attributes<'h> {
    text: &'h str,
    /// After the last: at the tag's end, or at the end of the page.
    at: usize,
}

impl Attributes<'_> {
    fn skip(&mut self, over: impl Fn(u8) -> bool) -> usize {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        self.at += rest.iter().position(|byte| !over(*byte)).unwrap_or(rest.len());
        self.at
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

impl<'h> Iterator for Attributes<'h> {
    type Item = (&'h str, &'h str);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.skip(|byte| byte.is_ascii_whitespace() || byte == b'/');
        if self.byte().is_none_or(|byte| byte == b'>') {
            return None;
        }
        // An equals sign that begins a name is one of its letters.
        self.at += 1;
        let end = self.skip(|byte| !byte.is_ascii_whitespace() && !matches!(byte, b'/' | b'>' | b'='));
        let name = self.text.get(start..end).unwrap_or_default();
        self.skip(|byte| byte.is_ascii_whitespace());
        if self.byte() != Some(b'=') {
            return Some((name, ""));
        }
        self.at += 1;
        let start = self.skip(|byte| byte.is_ascii_whitespace());
        let value = match self.byte() {
            Some(quote @ (b'"' | b'\'')) => {
                self.at += 1;
                let end = self.skip(|byte| byte != quote);
                self.at = (end + 1).min(self.text.len());
                self.text.get(start + 1..end)
            }
            _ => {
                let end = self.skip(|byte| !byte.is_ascii_whitespace() && byte != b'>');
                self.text.get(start..end)
            }
        };
        Some((name, value.unwrap_or_default()))
    }
}

pub(super) fn lower(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    }
}

/// Text with its character references resolved. What is none stays as it is.
pub(super) fn resolved(text: &str) -> Cow<'_, str> {
    let Some(mut at) = text.find('&') else { return Cow::Borrowed(text) };
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    loop {
        let (before, reference) = rest.split_at(at);
        out.push_str(before);
        rest = match reference_at(reference) {
            Some((character, length)) => {
                out.push(character);
                &reference[length..]
            }
            None => {
                out.push('&');
                &reference[1..]
            }
        };
        let Some(next) = rest.find('&') else {
            out.push_str(rest);
            return Cow::Owned(out);
        };
        at = next;
    }
}

/// No name is longer.
const LONGEST: usize = 12;

/// The character that is meant by what begins with `&`, and how long that is.
fn reference_at(text: &str) -> Option<(char, usize)> {
    let Some(number) = text.strip_prefix("&#") else {
        let end = text.bytes().take(LONGEST).position(|byte| byte == b';')?;
        return named(text.get(1..end)?).map(|character| (character, end + 1));
    };
    let (digits, radix) = match number.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (number, 10),
    };
    let length = digits.bytes().take_while(|byte| char::from(*byte).is_digit(radix)).count();
    // Too large a number is an unknown character, as is none at all where one was meant.
    let code = u32::from_str_radix(digits.get(..length).filter(|digits| !digits.is_empty())?, radix);
    let character = match code {
        Ok(code @ 0x80..=0x9f) => u8::try_from(code).map_or(char::REPLACEMENT_CHARACTER, super::charset::windows),
        Ok(0) | Err(_) => char::REPLACEMENT_CHARACTER,
        Ok(code) => char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
    };
    let end = text.len() - digits.len() + length;
    Some((character, end + usize::from(text[end..].starts_with(';'))))
}

fn named(name: &str) -> Option<char> {
    static NAMES: OnceLock<HashMap<&'static str, char>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let pairs = include_str!("entities.txt").split_whitespace().filter_map(|pair| pair.split_once('='));
        pairs.filter_map(|(name, code)| Some((name, char::from_u32(u32::from_str_radix(code, 16).ok()?)?))).collect()
    });
    names.get(name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(html: &str) -> Vec<String> {
        let show = |token| match token {
            Token::Text(text) => format!("{text:?}"),
            Token::Start(tag) => format!("<{}>{:?}", tag.name, tag.attribute("a").as_deref().unwrap_or("-")),
            Token::End(name) => format!("</{name}>"),
            Token::Raw { name, text } => format!("[{name}]{text:?}"),
        };
        Tokens::new(html, false).map(show).collect()
    }

    #[test]
    fn pages_come_in_pieces() {
        for (html, expected) in [
            ("", &[][..]),
            ("a<b>c</b >d", &["\"a\"", "<b>\"-\"", "\"c\"", "</b>", "\"d\""]),
            ("<P A='1>2'>x", &["<p>\"1>2\"", "\"x\""]),
            ("<p x=y a=\"&lt;&#65;&#x42;&nope;&\">", &["<p>\"<AB&nope;&\""]),
            ("<p a=1/2 a=3>", &["<p>\"1/2\""]),
            ("<p a/>", &["<p>\"\""]),
            ("<p =a a = b>", &["<p>\"b\""]),
            ("1 < 2 <3", &["\"1 \"", "\"< 2 \"", "\"<3\""]),
            ("<!-- <b> -->x<!-->y<!doctype html>z<?xml ?></>", &["\"x\"", "\"y\"", "\"z\""]),
            ("<script>if (a</b) '</scripts>'</SCRIPT x>y", &["[script]\"if (a</b) '</scripts>'\"", "\"y\""]),
            ("<title>a &amp; <b></title>", &["[title]\"a &amp; <b>\""]),
            ("x<!-- no end <b>", &["\"x\""]),
            ("x<a href=\"no end>", &["\"x\""]),
            ("x<style>no end", &["\"x\"", "[style]\"no end\""]),
            ("<a", &[]),
            ("</", &[]),
            ("<", &["\"<\""]),
            ("é<b>é</b>", &["\"é\"", "<b>\"-\"", "\"é\"", "</b>"]),
        ] {
            assert_eq!(shown(html), expected, "{html}");
        }
        let mut whole = Tokens::new("<script src='x'/>y", true);
        assert!(matches!(whole.next(), Some(Token::Start(_))));
        assert_eq!(whole.next(), Some(Token::Text("y")));
    }

    #[test]
    fn references_are_resolved() {
        for (text, expected) in [
            ("a&amp;b&lt;&gt;&quot;&apos;", "a&b<>\"'"),
            ("&eacute;&hellip;&nbsp;&mdash;", "é…\u{a0}—"),
            ("&#8364;&#x20ac;&#128;&#x80", "€€€€"),
            ("&#0;&#xd800;&#x110000;&#99999999999;", "����"),
            ("&;&#;&#x;&#xg;&unknownname;&&amp", "&;&#;&#x;&#xg;&unknownname;&&amp"),
            ("?a=1&copy=2&é;", "?a=1&copy=2&é;"),
        ] {
            assert_eq!(resolved(text), expected);
        }
    }
}
