//! Writes the chunks of one answer, in the order that Chat Completions streams have.

use std::time::Duration;

use serde_json::{Value, json};

use super::Step;
use super::request::{Request, words};

/// Collects the steps of one streamed answer.
pub(super) struct Stream<'a> {
    request: &'a Request,
    steps: Vec<Step>,
    /// Waited before every piece of text.
    pace: Duration,
    output_tokens: usize,
    reasoning_tokens: usize,
}

impl<'a> Stream<'a> {
    pub(super) fn start(request: &'a Request, pace: Duration) -> Self {
        let mut stream = Self { request, steps: Vec::new(), pace, output_tokens: 0, reasoning_tokens: 0 };
        stream.delta(json!({"role": "assistant", "content": ""}));
        stream
    }

    pub(super) fn reasoning(&mut self, text: &str) {
        self.reasoning_tokens += words(text);
        self.pieces("reasoning_content", &pieces(text));
    }

    /// Text up to the request's limit; whether all of it fitted.
    pub(super) fn text(&mut self, text: &str, chunks: Option<usize>) -> bool {
        let limit = self.request.max_tokens.unwrap_or(usize::MAX).saturating_sub(self.reasoning_tokens);
        let cut = cut_words(text, limit);
        self.pieces("content", &chunks.map_or_else(|| pieces(cut), |chunks| exactly(cut, chunks)));
        cut.len() == text.len()
    }

    pub(super) fn refusal(&mut self, text: &str) {
        self.pieces("refusal", &pieces(text));
    }

    pub(super) fn call(&mut self, index: usize, name: &str, arguments: &str) {
        let id = format!("call_{:016x}{index:02}", self.request.seed);
        self.output_tokens += 1 + words(arguments);
        let first = json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
        self.delta(json!({"tool_calls": [first]}));
        for piece in by_chars(arguments, 12) {
            self.delta(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}));
        }
    }

    /// The end of a good stream.
    pub(super) fn finish(mut self, reason: &str) -> Vec<Step> {
        self.chunk(&json!([{"index": 0, "delta": {}, "finish_reason": reason}]), None);
        if self.request.include_usage {
            let (input, output) = (self.request.prompt_tokens, self.output_tokens);
            let usage = json!({
                "prompt_tokens": input,
                "completion_tokens": output,
                "total_tokens": input + output,
                "prompt_tokens_details": {"cached_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": self.reasoning_tokens},
            });
            self.chunk(&json!([]), Some(usage));
        }
        self.steps.push(Step::Done);
        self.steps
    }

    /// The end of a stream in which the provider reports an error.
    pub(super) fn error(mut self) -> Vec<Step> {
        let error = json!({"message": "The demo model was asked to fail.", "type": "server_error", "param": null, "code": "server_error"});
        self.steps.push(Step::Chunk(json!({"error": error}).to_string().into_bytes()));
        self.steps
    }

    /// The end of a stream that just breaks.
    pub(super) fn cut(mut self) -> Vec<Step> {
        self.steps.push(Step::Cut);
        self.steps
    }

    fn pieces(&mut self, field: &str, pieces: &[String]) {
        for (index, piece) in pieces.iter().enumerate() {
            if index > 0 && !self.pace.is_zero() {
                self.steps.push(Step::Pause(self.pace));
            }
            self.output_tokens += words(piece);
            self.delta(json!({field: piece}));
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "callers build the delta in place")]
    fn delta(&mut self, delta: Value) {
        self.chunk(&json!([{"index": 0, "delta": delta, "finish_reason": null}]), None);
    }

    fn chunk(&mut self, choices: &Value, usage: Option<Value>) {
        let mut chunk = json!({
            "id": format!("chatcmpl-{:016x}", self.request.seed),
            "object": "chat.completion.chunk",
            "created": 0,
            "model": self.request.model,
            "choices": choices,
        });
        if let Some(usage) = usage {
            chunk["usage"] = usage;
        }
        self.steps.push(Step::Chunk(chunk.to_string().into_bytes()));
    }
}

/// In so many pieces at most, however long the text is: each takes a few hundred bytes beside its own.
const MAX_PIECES: usize = 10_000;

/// Short texts word by word, long ones in larger pieces: nobody reads ten thousand frames.
fn pieces(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    let size = if words.len() <= 100 { 1 } else { words.len().div_ceil(MAX_PIECES).max(8) };
    words.chunks(size).map(<[&str]>::concat).collect()
}

/// The text in exactly so many pieces, filled up with dots when it has too few words.
fn exactly(text: &str, chunks: usize) -> Vec<String> {
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    let chunks = chunks.max(1);
    let mut pieces: Vec<String> = words.chunks(words.len().div_ceil(chunks).max(1)).map(<[&str]>::concat).collect();
    pieces.resize(chunks.max(pieces.len()), " .".to_owned());
    pieces
}

/// Pieces of so many characters, or of more where there would be too many.
fn by_chars(text: &str, size: usize) -> Vec<String> {
    let size = text.len().div_ceil(MAX_PIECES).max(size);
    let (mut pieces, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let end = rest.char_indices().nth(size).map_or(rest.len(), |(end, _)| end);
        let (piece, after) = rest.split_at(end);
        pieces.push(piece.to_owned());
        rest = after;
    }
    pieces
}

/// The start of the text with at most so many words.
fn cut_words(text: &str, limit: usize) -> &str {
    let mut ends = text.split_inclusive(char::is_whitespace).scan(0, |end, word| {
        *end += word.len();
        Some((*end, word))
    });
    let mut seen = 0;
    let end = ends.find(|(_, word)| {
        seen += usize::from(!word.trim().is_empty());
        seen > limit
    });
    end.map_or(text, |(end, word)| &text[..end - word.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_at_words() {
        let cases = [("a b c", 3, "a b c"), ("a b c", 2, "a b "), ("a b", 0, ""), ("", 0, ""), (" a  b", 1, " a  ")];
        for (text, limit, expected) in cases {
            assert_eq!(cut_words(text, limit), expected, "{text:?} {limit}");
        }
    }

    #[test]
    fn pieces_join_to_the_text() {
        for text in ["", "a", "a b c ", "  x"] {
            assert_eq!(pieces(text).concat(), text);
        }
        assert_eq!(exactly("a b c d", 2), ["a b ", "c d"]);
        assert_eq!(exactly("a", 3), ["a", " .", " ."]);
        assert_eq!(exactly("a b c d e", 4).len(), 4);
        assert_eq!(by_chars("äbcde", 2), ["äb", "cd", "e"]);
        let long = "ä ".repeat(200_000);
        for pieces in [pieces(&long), by_chars(&long, 12)] {
            assert!(pieces.len() <= MAX_PIECES && pieces.concat() == long, "{}", pieces.len());
        }
    }
}
