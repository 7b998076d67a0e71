//! The provider's key in the provider's own words: some servers repeat it in their errors. It is not passed on.
//!
//! Whole texts only: what was cut before may end with a piece of a key, which nobody recognises.

use std::cmp::Reverse;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use bridge::Failure;

use super::address::percent_encode;
use crate::config::Secret;

const INSTEAD: &str = "[redacted]";

/// Shorter keys are placeholders; replacing them would only garble messages.
const SHORTEST: usize = 8;

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

    fn text(&self, text: &mut String) {
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
        // JSON may write any character as its number. What that hides is shown without, which comes to the same.
        if let Some(mut plain) = unescaped(&text).filter(|plain| self.0.iter().any(|key| plain.contains(key.expose())))
        {
            self.text(&mut plain);
            text = plain;
        }
        out.extend_from_slice(text.as_bytes());
    }
}

/// JSON with its printable ASCII as it is: `\u0073` is `s`. None: there is nothing of that.
fn unescaped(text: &str) -> Option<String> {
    if !text.contains("\\u00") {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let digits = after.strip_prefix('u').and_then(|after| after.get(..4));
        let code = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let code = code.and_then(|digits| u8::from_str_radix(digits.strip_prefix("00")?, 16).ok());
        let letter = code.map(char::from).filter(|c| matches!(c, ' '..='~') && !matches!(c, '"' | '\\'));
        let taken = match letter {
            Some(letter) => {
                out.push(letter);
                5
            }
            // With what it escapes, which may be another one.
            None => {
                out.push('\\');
                let next = after.chars().next();
                out.extend(next);
                next.map_or(0, char::len_utf8)
            }
        };
        rest = after.get(taken..).unwrap_or_default();
    }
    out.push_str(rest);
    Some(out)
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

/// A secret as it is, and as JSON, a URL or a header would have it.
fn forms(text: &str) -> Vec<String> {
    let mut escaped = Vec::new();
    wire::json::escape_into(&mut escaped, text);
    let escaped = String::from_utf8(escaped).unwrap_or_else(|_| text.to_owned());
    let percent = percent_encode(text);
    let base64 = STANDARD_NO_PAD.encode(text);
    let mut forms = vec![
        text.to_owned(),
        escaped.replace('/', "\\/"),
        escaped.replace('+', "\\u002B"),
        escaped.replace('+', "\\u002b"),
        escaped,
        lower_digits(&percent),
        percent,
        base64.replace('+', "-").replace('/', "_"),
        base64,
    ];
    forms.sort();
    forms.dedup();
    forms
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
            // A backslash of its own, and nothing to hide: as it was.
            (r#"{"a":"\\u0073k-0123456789"}"#, r#"{"a":"\\u0073k-0123456789"}"#),
            (r#"{"a":"\u0073afe"}"#, r#"{"a":"\u0073afe"}"#),
            (r"\u0022\u0073k-0123456789\u00", r"\u0022[redacted]\u00"),
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
        ] {
            assert_eq!(redacted(&[key], &format!("<{form}>")), "<[redacted]>", "{form}");
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
