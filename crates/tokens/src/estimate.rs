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

/// What text takes that is written as JSON writes strings: each byte by what it is and what is before it. A table and a
/// sum, because every long request is looked at.
fn units(text: &[u8]) -> u64 {
    let mut before = Class::Space as usize;
    let mut sum = 0;
    for byte in text {
        let class = CLASSES[usize::from(*byte)] as usize;
        sum += u64::from(COSTS[before][class]);
        before = class;
    }
    sum
}

/// What bytes are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Space,
    /// Before what is written otherwise: a line break, a quote.
    Backslash,
    Sign,
    /// Of a character of several bytes, all but the first.
    Rest,
    /// Latin with marks, Greek, Cyrillic, Hebrew, Arabic.
    TwoBytes,
    /// The scripts of India, Thai, Georgian.
    Indic,
    /// Quotes, dashes, arrows, boxes.
    Symbol,
    /// Chinese and Japanese.
    Han,
    /// Korean, full-width signs.
    Hangul,
    Emoji,
}

impl Class {
    const ALL: [Self; 13] = [
        Self::Lower,
        Self::Upper,
        Self::Digit,
        Self::Space,
        Self::Backslash,
        Self::Sign,
        Self::Rest,
        Self::TwoBytes,
        Self::Indic,
        Self::Symbol,
        Self::Han,
        Self::Hangul,
        Self::Emoji,
    ];

    const fn of(byte: u8) -> Self {
        match byte {
            b'a'..=b'z' => Self::Lower,
            b'A'..=b'Z' => Self::Upper,
            b'0'..=b'9' => Self::Digit,
            b' ' => Self::Space,
            b'\\' => Self::Backslash,
            0..=0x7f => Self::Sign,
            0x80..=0xbf => Self::Rest,
            0xc0..=0xdf => Self::TwoBytes,
            0xe0 | 0xe1 => Self::Indic,
            0xe2 => Self::Symbol,
            0xe3..=0xe9 => Self::Han,
            0xea..=0xef => Self::Hangul,
            0xf0..=0xff => Self::Emoji,
        }
    }

    /// What it takes after another. A word is a token up to some length, and begins where the case or the kind changes;
    /// three digits are one; a blank goes with the word after it.
    const fn cost(self, before: Self) -> u8 {
        match self {
            Self::Lower => match before {
                Self::Lower => 1,
                Self::Upper => 2,
                Self::Rest => 4,
                Self::Digit => 14,
                // A line break, and the word that usually follows it.
                Self::Backslash => 20,
                _ => 12,
            },
            Self::Upper => match before {
                // Words in capitals, and what is no word at all, have more tokens.
                Self::Upper => 4,
                Self::Lower | Self::Digit => 14,
                _ => 12,
            },
            Self::Digit => match before {
                Self::Digit => 5,
                Self::Space => 20,
                _ => 14,
            },
            Self::Sign => match before {
                Self::Backslash => 0,
                Self::Sign => 6,
                _ => 12,
            },
            Self::Space if matches!(before, Self::Space) => 3,
            Self::Space | Self::Backslash | Self::Rest => 0,
            Self::TwoBytes | Self::Indic => 6,
            Self::Symbol => 16,
            Self::Han => 11,
            Self::Hangul => 14,
            Self::Emoji => 28,
        }
    }
}

static CLASSES: [Class; 256] = {
    let mut classes = [Class::Sign; 256];
    let mut byte = u8::MIN;
    loop {
        classes[byte as usize] = Class::of(byte);
        if byte == u8::MAX {
            break classes;
        }
        byte += 1;
    }
};

/// By the class before and the class itself.
static COSTS: [[u8; Class::ALL.len()]; Class::ALL.len()] = {
    let mut costs = [[0; Class::ALL.len()]; Class::ALL.len()];
    let mut before = 0;
    while before < costs.len() {
        let mut class = 0;
        while class < costs.len() {
            costs[before][class] = Class::ALL[class].cost(Class::ALL[before]);
            class += 1;
        }
        before += 1;
    }
    costs
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_are_estimated() {
        for (text, tokens) in [("", 0), ("word", 1), ("two words", 2), ("\\n\\n", 3), ("é😀", 3), ("日本", 2)] {
            assert_eq!(units(text.as_bytes()).div_ceil(TOKEN), tokens, "{text:?}");
        }
        for text in ["\\", "\\u", "\\u12", "\\ud83d\\ude00", "a\\", "\u{7f}\u{1}"] {
            assert!(units(text.as_bytes()) < 8 * TOKEN, "{text:?}");
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

    #[test]
    fn blocks_count_like_messages() {
        let words = "word ".repeat(100);
        let blocks = |content: &str| format!(r#"{{"messages":[{{"role":"user","content":[{content}]}}]}}"#);
        let bare = body(blocks("").as_bytes());
        for (content, most) in [
            (format!(r#"{{"type":"text","text":"{words}"}}"#), 150),
            (
                format!(r#"{{"type":"tool_result","tool_use_id":"a","content":[{{"type":"text","text":"{words}"}}]}}"#),
                150,
            ),
            (format!(r#"{{"type":"tool_use","id":"a","name":"f","input":{{"cmd":"{words}"}}}}"#), 150),
            (r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}"#.to_owned(), 1000),
        ] {
            let counted = body(blocks(&content).as_bytes()) - bare;
            assert!((90..most).contains(&counted), "{counted}: {content}");
        }
        let system = body(format!(r#"{{"system":[{{"type":"text","text":"{words}"}}],"messages":[]}}"#).as_bytes());
        assert!(system > 90, "{system}");
    }
}
