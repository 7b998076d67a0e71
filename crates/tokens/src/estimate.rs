//! Tokens by the look of the text, for tokenizers that nobody here has: words, digits, signs and scripts take about as
//! many tokens as they do with the usual tokenizers of today. One pass, without decoding anything.

use wire::json::{Raw, Text};

use crate::body::{self, Meter};

/// Everything is summed up in parts of a token.
const TOKEN: u64 = 16;
/// What a chat form puts around a message and around a call of a tool; what it puts before the answer.
const MESSAGE: u64 = 4 * TOKEN;
const CALL: u64 = 6 * TOKEN;
const START: u64 = 3 * TOKEN;
/// What a chat form says of tools, if there are any.
const TOOLS: u64 = 70 * TOKEN;

pub(crate) fn body(body: &[u8]) -> u64 {
    let mut sum = Sum(START);
    body::walk(body, &mut sum);
    sum.0.div_ceil(TOKEN)
}

struct Sum(u64);

impl Meter for Sum {
    fn text(&mut self, text: Text<'_>) {
        self.0 += units(text.escaped().as_bytes());
    }

    /// Most servers hold the answer to it, and show the model nothing of it.
    fn schema(&mut self, _schema: Raw<'_>) {}

    /// Most chat forms show tools as the JSON that they are, and say how they are called.
    fn tools(&mut self, tools: Raw<'_>) {
        if tools.elements().next().is_some() {
            self.0 += TOOLS + units(tools.as_str().as_bytes());
        }
    }

    fn message(&mut self) {
        self.0 += MESSAGE;
    }

    fn call(&mut self) {
        self.0 += CALL;
    }

    fn other(&mut self, tokens: u64) {
        self.0 += tokens * TOKEN;
    }
}

/// What a text takes that nobody here can tokenize, in tokens.
#[cfg(feature = "tokenizer")]
pub(crate) fn text(text: &str) -> u64 {
    units(text.as_bytes()).div_ceil(TOKEN)
}

/// What text takes that is written as JSON writes strings.
fn units(text: &[u8]) -> u64 {
    let (mut sum, mut at) = (0, 0);
    // What came before: a sign is often one token with the line break after it, a blank with the word after it.
    let mut after_sign = false;
    while let Some(byte) = text.get(at) {
        let start = at;
        let sign = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => {
                at = end(text, at, |byte| byte.is_ascii_alphanumeric());
                sum += word(&text[start..at]);
                false
            }
            b' ' => {
                at = end(text, at, |byte| byte == b' ');
                let before_digit = text.get(at).is_some_and(u8::is_ascii_digit);
                sum += if at - start > 1 || before_digit { TOKEN } else { 0 };
                false
            }
            b'\\' => {
                let (length, what) = escape(text, at);
                at += length;
                sum += match what {
                    Escaped::Break if after_sign => TOKEN / 4,
                    Escaped::Break => TOKEN,
                    Escaped::Sign => TOKEN / 2,
                    Escaped::Character(units) => units,
                };
                at = if what == Escaped::Break { breaks_end(text, at) } else { at };
                what == Escaped::Sign
            }
            0..=0x7f => {
                at = end(text, at, is_sign);
                at = at.max(start + 1);
                sum += TOKEN * 3 / 4 + (at - start - 1) as u64 * TOKEN / 3;
                true
            }
            lead => {
                at = end(text, at + 1, |byte| byte & 0xc0 == 0x80);
                sum += character(*lead);
                false
            }
        };
        after_sign = sign;
    }
    sum
}

fn end(text: &[u8], from: usize, is: impl Fn(u8) -> bool) -> usize {
    text[from..].iter().position(|byte| !is(*byte)).map_or(text.len(), |length| from + length)
}

const fn is_sign(byte: u8) -> bool {
    byte.is_ascii_graphic() && !byte.is_ascii_alphanumeric() && byte != b'\\'
}

/// A run of letters and digits. Where cases and kinds change a tokenizer cuts, and long words have several tokens;
/// what is long and mixed is no word at all.
fn word(word: &[u8]) -> u64 {
    /// A part up to this length is usually one token.
    const WHOLE: u64 = 8;
    let (mut sum, mut length) = (0, 0_u64);
    let mut before = b' ';
    let (mut digits, mut uppers, mut lowers) = (0_usize, 0_usize, 0_usize);
    let part = |length: u64, digit: bool| match length {
        0 => 0,
        _ if digit => length.div_ceil(3) * TOKEN,
        1..=WHOLE => TOKEN,
        _ => TOKEN + (length - WHOLE) * TOKEN / 5,
    };
    for byte in word {
        let cut = before.is_ascii_digit() != byte.is_ascii_digit()
            || before.is_ascii_lowercase() && byte.is_ascii_uppercase();
        if cut {
            sum += part(length, before.is_ascii_digit());
            length = 0;
        }
        length += 1;
        before = *byte;
        digits += usize::from(byte.is_ascii_digit());
        uppers += usize::from(byte.is_ascii_uppercase());
        lowers += usize::from(byte.is_ascii_lowercase());
    }
    sum += part(length, before.is_ascii_digit());
    // Base64 and its like.
    if word.len() >= 20 && digits > 0 && uppers > 1 && lowers > 1 {
        return sum.max(word.len() as u64 * TOKEN * 7 / 10);
    }
    sum
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Escaped {
    /// A line break or a tab.
    Break,
    /// A quote or a backslash.
    Sign,
    Character(u64),
}

/// An escape: how long it is, and what it stands for.
fn escape(text: &[u8], at: usize) -> (usize, Escaped) {
    match text.get(at + 1) {
        Some(b'n' | b'r' | b't') => (2, Escaped::Break),
        Some(b'u') => {
            let hex = text.get(at + 2..at + 6).and_then(|digits| str::from_utf8(digits).ok());
            match hex.and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
                Some(0xd800..=0xdfff) => (6, Escaped::Character(TOKEN)),
                Some(code) => {
                    let mut buffer = [0; 4];
                    let text = char::from_u32(code).unwrap_or(' ').encode_utf8(&mut buffer);
                    (6, Escaped::Character(character(text.as_bytes().first().copied().unwrap_or(b' '))))
                }
                None => (2, Escaped::Sign),
            }
        }
        _ => (2.min(text.len() - at), Escaped::Sign),
    }
}

/// Breaks in a row are one token.
fn breaks_end(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while matches!(text.get(at..at + 2), Some([b'\\', b'n' | b'r' | b't'])) {
        at += 2;
    }
    at
}

/// A character by its first byte, which tells the script well enough.
const fn character(lead: u8) -> u64 {
    match lead {
        0..=0x7f => TOKEN / 2,
        // Latin with marks, Greek, Cyrillic, Hebrew, Arabic.
        0x80..=0xdf => TOKEN * 7 / 16,
        // The scripts of India, Thai, Georgian.
        0xe0 | 0xe1 => TOKEN * 9 / 16,
        // Quotes, dashes, arrows, boxes.
        0xe2 => TOKEN,
        // Chinese and Japanese.
        0xe3..=0xe9 => TOKEN * 12 / 16,
        // Korean, full-width signs.
        0xea..=0xef => TOKEN * 11 / 16,
        // Emoji.
        _ => TOKEN * 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_are_estimated() {
        for text in ["", "\\", "\\u", "\\u12", "\\ud83d\\ude00", "a\\", "\u{7f}\u{1}", "é", "\\n\\n\\n", "\\"] {
            let units = units(text.as_bytes());
            assert_eq!(units == 0, text.is_empty(), "{text:?}: {units}");
        }
        for text in
            ["", "{", "[]", "{\"messages\":5,\"tools\":null}", "{\"messages\":[[1],\"x\",{\"content\":{}}]}", "\u{1}"]
        {
            assert!((3..20).contains(&body(text.as_bytes())), "{text}");
        }
        assert_eq!(body(b"\xff\xfe"), 3);
    }

    #[test]
    fn only_what_the_model_is_shown_counts() {
        let short = body(br#"{"model":"m","messages":[{"role":"user","content":"Say hello"}]}"#);
        let with_parameters = body(
            br#"{"model":"a-very-long-name","stream":true,"user":"somebody or other","messages":[{"role":"user","content":"Say hello"}]}"#,
        );
        assert_eq!(short, with_parameters);
        let tools = body(
            br#"{"tools":[{"type":"function","function":{"name":"f","description":"Does it."}}],"messages":[{"role":"user","content":"Say hello"}]}"#,
        );
        assert!(tools > short + 10);
    }
}
