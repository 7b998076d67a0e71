//! The provider's key in the provider's own words: some servers repeat it in their errors. It is not passed on.
//!
//! Whole texts only: what was cut before may end with a piece of a key, which nobody recognises.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use bridge::{Failure, Note};
use memchr::memchr2;

use super::address::percent_encode;
use crate::config::Secret;

const INSTEAD: &str = "[redacted]";

/// Shorter keys are placeholders; replacing them would only garble messages.
const SHORTEST: usize = 8;

/// So often what is encoded may be encoded once more.
const LAYERS: usize = 3;

/// Every form of every secret, the longest first: one may be the beginning of another.
#[derive(Debug, Clone, Default)]
pub(crate) struct Redactor(Arc<[Secret]>);

impl Redactor {
    /// Everything that a provider is sent in confidence.
    pub(super) fn new<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let long_enough = |text: &String| text.len() >= SHORTEST;
        let texts = secrets.into_iter().flat_map(texts).filter(long_enough);
        let mut forms: Vec<String> = texts.flat_map(|text| forms(&text)).collect();
        forms.sort_by_key(|form| (Reverse(form.len()), form.clone()));
        forms.dedup();
        Self(forms.into_iter().map(Secret::new).collect())
    }

    /// A failure as it may be shown: its message, and its code.
    pub(crate) fn failure(&self, failure: &mut Failure) {
        self.text(&mut failure.message);
        if let Some(code) = &mut failure.upstream_code {
            self.text(code);
        }
    }

    /// A note, which may quote what the provider said.
    pub(crate) fn note(&self, note: &mut Note) {
        for words in [&mut note.path, &mut note.message] {
            // What is in the program was said by nobody.
            if let Cow::Owned(words) = words {
                self.text(words);
            }
        }
    }

    fn text(&self, text: &mut String) {
        if self.0.is_empty() {
            return;
        }
        self.replace(text);
        // What an encoding hides is shown without it, which comes to the same; what hides nothing stays as it is.
        let mut below = uncovered(text);
        for _ in 0..LAYERS {
            let Some(mut plain) = below else { return };
            if self.0.iter().any(|key| plain.contains(key.expose())) {
                self.replace(&mut plain);
                text.clone_from(&plain);
            }
            below = uncovered(&plain);
        }
    }

    fn replace(&self, text: &mut String) {
        for secret in self.0.iter().map(Secret::expose) {
            if text.contains(secret) {
                *text = text.replace(secret, INSTEAD);
            }
        }
    }

    /// The same for what has been written from this offset on.
    pub(crate) fn bytes(&self, out: &mut Vec<u8>, from: usize) {
        if self.0.is_empty() || from > out.len() {
            return;
        }
        // Bytes that are no text do not hide a key; nobody reads them as anything but text.
        let mut text = match String::from_utf8(out.split_off(from)) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        self.text(&mut text);
        out.extend_from_slice(text.as_bytes());
    }
}

/// The text with one layer less of what JSON and URLs may write otherwise. None: there is nothing of that.
fn uncovered(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr2(b'\\', b'%', rest.as_bytes()) {
        let (before, sign) = rest.split_at(at);
        out.push_str(before);
        rest = match meant(sign) {
            Some((letter, after)) => {
                out.push(letter);
                after
            }
            None => {
                let others = sign.trim_start_matches('\\').len();
                let (same, after) = sign.split_at((sign.len() - others).max(1));
                out.push_str(same);
                after
            }
        };
    }
    out.push_str(rest);
    // Whatever stands for a letter is longer.
    (out.len() < text.len()).then_some(out)
}

/// What stands at the beginning of this text for something else, and what comes after it.
fn meant(text: &str) -> Option<(char, &str)> {
    if let Some(after) = text.strip_prefix('%') {
        return letter(after);
    }
    // In a string inside of a string there are several.
    let after = text.trim_start_matches('\\');
    match after.strip_prefix('/') {
        Some(rest) => Some(('/', rest)),
        None => letter(after.strip_prefix("u00")?),
    }
}

/// Printable ASCII as two hexadecimal digits. JSON stays JSON: quotes and backslashes are not among it.
fn letter(text: &str) -> Option<(char, &str)> {
    let (digits, after) = text.split_at_checked(2)?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let code = u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
    let is_plain = matches!(code, b' '..=b'~') && !matches!(code, b'"' | b'\\');
    is_plain.then_some((char::from(code), after))
}

/// What is secret in a header's value: what follows the scheme, and the password inside.
fn texts(value: &str) -> Vec<String> {
    let Some((scheme, rest)) = value.split_once(' ') else { return vec![value.to_owned()] };
    if scheme.eq_ignore_ascii_case("basic") {
        let pair = STANDARD.decode(rest.trim()).ok().and_then(|pair| String::from_utf8(pair).ok()).unwrap_or_default();
        let password = pair.split_once(':').map_or("", |(_, password)| password).to_owned();
        return vec![rest.trim().to_owned(), pair, password];
    }
    if scheme.eq_ignore_ascii_case("bearer") {
        return vec![rest.trim().to_owned()];
    }
    vec![value.to_owned()]
}

/// A secret as it is, and as JSON, a URL or a header would have it; also as JSON in JSON, and a URL in a URL.
fn forms(text: &str) -> Vec<String> {
    let (escaped, percent) = (escape(text), percent_encode(text));
    let mut forms = vec![
        text.to_owned(),
        escaped.replace('/', "\\/"),
        escaped.replace('+', "\\u002B"),
        escaped.replace('+', "\\u002b"),
        escape(&escaped),
        escaped,
        percent_encode(&lower_digits(&percent)),
        percent_encode(&percent),
        lower_digits(&percent),
        percent,
    ];
    for base64 in in_base64(text) {
        forms.push(base64.replace('+', "-").replace('/', "_"));
        forms.push(base64);
    }
    forms.sort();
    forms.dedup();
    forms
}

fn escape(text: &str) -> String {
    let mut escaped = String::new();
    wire::json::escape_into(&mut escaped, text);
    escaped
}

/// By itself, and what is the same of it wherever it is in a longer text, such as `Bearer KEY` or `USER:KEY`.
fn in_base64(text: &str) -> Vec<String> {
    let within = |before: usize| {
        let whole = STANDARD_NO_PAD.encode([&b"\0\0"[..before], text.as_bytes()].concat());
        // Letters that are also of what is before it or after it.
        let first = (before * 8).div_ceil(6);
        let last = whole.len() - usize::from(!(before + text.len()).is_multiple_of(3));
        whole.get(first..last).filter(|core| core.len() >= SHORTEST).map(str::to_owned)
    };
    (0..3).filter_map(within).chain([STANDARD_NO_PAD.encode(text)]).collect()
}

/// `%2b` for `%2B`.
fn lower_digits(percent: &str) -> String {
    let mut parts = percent.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at(part.len().min(2));
        out.push('%');
        out.push_str(&digits.to_ascii_lowercase());
        out.push_str(rest);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_numbers_is_found() {
        for (text, expected) in [
            (r#"{"a":"\u0073\u006B-0123456789 \u00e9\n"}"#, r#"{"a":"[redacted] \u00e9\n"}"#),
            // In a string of a string.
            (r#"{"a":"{\"b\":\"\\u0073\\u006b-0123456789\"}"}"#, r#"{"a":"{\"b\":\"[redacted]\"}"}"#),
            // Nothing to hide: as it was.
            (r#"{"a":"\u0073afe \/ 100%25 \\u0073afe"}"#, r#"{"a":"\u0073afe \/ 100%25 \\u0073afe"}"#),
            (r"\u0022\u0073k-0123456789\u00", r"\u0022[redacted]\u00"),
            (r"a\\\/%\%7%zz%22 %73k%2D0123456789%", r"a/%\%7%zz%22 [redacted]%"),
            // Once more in a URL: of a form that is encoded, of which not all had to be.
            ("?k=%2573k-0123456789&n=%25", "?k=[redacted]&n=%"),
            (r"\u0025\u0037\u0033k-0123456789", "[redacted]"),
        ] {
            assert_eq!(redacted(&["sk-0123456789"], text), expected);
        }
    }

    fn redacted(secrets: &[&str], text: &str) -> String {
        let mut out = text.as_bytes().to_vec();
        Redactor::new(secrets.iter().copied()).bytes(&mut out, 0);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn keys_go_and_placeholders_stay() {
        for (key, text, expected) in [
            (Some("sk-0123456789"), "bad key sk-0123456789!", "bad key [redacted]!"),
            (Some("Bearer sk-0123456789"), "bad key sk-0123456789!", "bad key [redacted]!"),
            (Some("bearer sk-0123456789"), "bad key sk-0123456789!", "bad key [redacted]!"),
            (Some("none"), "there is none", "there is none"),
            (None, "sk-0123456789", "sk-0123456789"),
        ] {
            let redactor = Redactor::new(key);
            let mut out = format!("{text}{text}").into_bytes();
            redactor.bytes(&mut out, text.len());
            assert_eq!(String::from_utf8(out).unwrap(), format!("{text}{expected}"), "{key:?}");
        }
    }

    #[test]
    fn other_forms_of_a_key_go_as_well() {
        let key = "k+/=\"1234567";
        for form in [
            r#"k+/=\"1234567"#,
            r#"k+\/=\"1234567"#,
            r#"k\u002B/=\"1234567"#,
            "k%2B%2F%3D%221234567",
            "k%2b%2f%3d%221234567",
            "aysvPSIxMjM0NTY3",
            r#"k+/=\\\"1234567"#,
            r#"k+\\/=\\\"1234567"#,
            r#"k+\\\/=\\\"1234567"#,
            r#"k\\u002b\/=\\\"1234567"#,
            "k%252B%252F%253D%25221234567",
            "k%252b%252f%253d%25221234567",
        ] {
            assert_eq!(redacted(&[key], &format!("<{form}>")), "<[redacted]>", "{form}");
        }
        // In whatever it is encoded with.
        for (whole, expected) in [
            ("Bearer k+/=\"1234567", "QmVhcmVyIG[redacted]w=="),
            ("me:k+/=\"1234567!", "bWU6[redacted]IQ=="),
            ("m:k+/=\"1234567.", "bTp[redacted]cu"),
        ] {
            let found = redacted(&[key], &STANDARD.encode(whole));
            assert_eq!(found, expected, "{whole}");
        }
        // A proxy's password, and the pair that it is sent in.
        let basic = "Basic bWU6c2VjcmV0IXNlY3JldA==";
        assert_eq!(redacted(&[basic], "no bWU6c2VjcmV0IXNlY3JldA== (secret!secret)"), "no [redacted] ([redacted])");
        let mut out = b"\xff sk-0123456789".to_vec();
        Redactor::new(["sk-0123456789"]).bytes(&mut out, 0);
        assert_eq!(String::from_utf8(out).unwrap(), "\u{fffd} [redacted]");
        // The longer one first.
        assert_eq!(redacted(&["sk-01234567", "sk-0123456789"], "sk-0123456789"), "[redacted]");
    }
}
