//! A chat completion or one chunk of it, as far as a translator looks at it.
//!
//! One type for both: `message` of the whole is `delta` of a part. Every leaf stays [`Raw`], so an odd value in
//! one member does not cost the rest, and text passes on without being decoded. Reading allocates nothing.

use serde::Deserialize;
use serde::de::{IgnoredAny, SeqAccess, Visitor};

use crate::json::{Raw, Text};

/// `chat.completion` or `chat.completion.chunk`.
#[derive(Debug, Default, Deserialize)]
pub struct Answer<'a> {
    /// The choice of the number 0, else the first one; godex never asks for more.
    #[serde(borrow, default, rename = "choices", deserialize_with = "first")]
    pub choice: Option<Choice<'a>>,
    #[serde(borrow, default)]
    pub usage: Option<Raw<'a>>,
    /// An error inside a 200 answer.
    #[serde(borrow, default)]
    pub error: Option<Raw<'a>>,
    /// An error inside a 200 answer, where its `status_code` is not zero.
    #[serde(borrow, default)]
    pub base_resp: Option<Raw<'a>>,
    /// `error` in the answers of some servers; then the error's members are beside it.
    #[serde(borrow, default)]
    pub object: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub message: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub detail: Option<Raw<'a>>,
    /// How the request was served.
    #[serde(borrow, default)]
    pub service_tier: Option<Raw<'a>>,
    /// `error`, in some servers' errors.
    #[serde(borrow, default, rename = "type")]
    pub kind: Option<Raw<'a>>,
    /// Other members by which servers say that they failed.
    #[serde(borrow, default)]
    pub code: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub status: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub msg: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub error_code: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub error_msg: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub errors: Option<Raw<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub struct Choice<'a> {
    #[serde(borrow, default)]
    pub index: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub message: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub finish_reason: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub logprobs: Option<Raw<'a>>,
    /// Some servers put usage here.
    #[serde(borrow, default)]
    pub usage: Option<Raw<'a>>,
    /// Routers put the failure of one choice here.
    #[serde(borrow, default)]
    pub error: Option<Raw<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub struct Delta<'a> {
    #[serde(borrow, default)]
    pub content: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub refusal: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub reasoning_content: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub reasoning: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub thinking: Option<Raw<'a>>,
    /// Reasoning in blocks, with signatures that must return as they are.
    #[serde(borrow, default)]
    pub reasoning_details: Option<Raw<'a>>,
    /// What a server wants back untouched.
    #[serde(borrow, default)]
    pub extra_content: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub annotations: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub audio: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub tool_calls: Option<Raw<'a>>,
    /// The old form of one tool call; some servers still send it beside the new one.
    #[serde(borrow, default)]
    pub function_call: Option<Raw<'a>>,
}

/// One entry of `tool_calls`.
#[derive(Debug, Default, Deserialize)]
pub struct ToolCallDelta<'a> {
    #[serde(borrow, default)]
    pub index: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub id: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub function: Option<FunctionDelta<'a>>,
    /// A call of a custom tool has this instead.
    #[serde(borrow, default)]
    pub custom: Option<CustomDelta<'a>>,
    /// What a server wants back with this call.
    #[serde(borrow, default)]
    pub extra_content: Option<Raw<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub struct FunctionDelta<'a> {
    #[serde(borrow, default)]
    pub name: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub arguments: Option<Raw<'a>>,
    /// The arguments are the input of a custom tool.
    #[serde(skip)]
    pub is_custom: bool,
}

#[derive(Debug, Default, Deserialize)]
pub struct CustomDelta<'a> {
    #[serde(borrow, default)]
    pub name: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub input: Option<Raw<'a>>,
}

impl<'a> ToolCallDelta<'a> {
    /// What is called, of either kind.
    pub fn called(&mut self) -> FunctionDelta<'a> {
        match (self.function.take(), self.custom.take()) {
            (None, Some(CustomDelta { name, input })) => FunctionDelta { name, arguments: input, is_custom: true },
            (function, _) => function.unwrap_or_default(),
        }
    }
}

impl<'a> Answer<'a> {
    /// Reads one JSON document; some servers wrap their errors in an array of one.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        let text = text.trim_start();
        if text.starts_with('[') {
            let wrapped: Raw<'a> = serde_json::from_str(text)?;
            return serde_json::from_str(wrapped.elements().next().map_or("", Raw::as_str));
        }
        serde_json::from_str(text)
    }
}

impl Answer<'_> {
    /// Whether what has no choices is about an error, in whatever shape.
    pub fn tells_of_an_error(&self) -> bool {
        let names_it = |name: Option<Raw<'_>>| name.and_then(Raw::text).is_some_and(|name| name.is("error"));
        let present = |raw: Option<Raw<'_>>| {
            raw.is_some_and(|raw| !raw.is_null() && !matches!(raw.as_str(), "[]" | "{}" | "\"\""))
        };
        let words = |raw: Option<Raw<'_>>| raw.and_then(Raw::text).is_some_and(|text| !text.is_empty());
        let number = |raw: Option<Raw<'_>>| raw.and_then(|raw| raw.as_str().parse::<i64>().ok());
        if names_it(self.object) || names_it(self.kind) || present(self.detail) || present(self.errors) {
            return true;
        }
        if words(self.error_msg) || number(self.error_code).is_some_and(|code| code != 0) {
            return true;
        }
        match self.code.filter(|code| !code.is_null()) {
            // A code says which way it is.
            Some(code) => !is_success(code),
            None => words(self.message) || words(self.msg) || number(self.status).is_some_and(|status| status >= 400),
        }
    }
}

/// The codes of what went well.
fn is_success(code: Raw<'_>) -> bool {
    let code = code.text().map_or_else(|| code.as_str().into(), Text::decode).to_ascii_lowercase();
    matches!(&*code, "" | "0" | "200" | "ok" | "success")
}

/// The element of an array that is said to be the first, or stands first, without a `Vec`; `null` is an empty array.
fn first<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Choice<'de>>, D::Error> {
    struct First;
    impl<'de> Visitor<'de> for First {
        type Value = Option<Choice<'de>>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an array of choices")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut choice = seq.next_element::<Option<Choice<'de>>>()?.flatten();
            let is_other =
                |choice: &Choice<'de>| choice.index.is_some_and(|index| !matches!(index.as_str(), "0" | "null"));
            while choice.as_ref().is_some_and(is_other) {
                match seq.next_element::<Option<Choice<'de>>>()? {
                    Some(Some(next)) if !is_other(&next) => choice = Some(next),
                    Some(_) => {}
                    None => return Ok(choice),
                }
            }
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok(choice)
        }
    }
    deserializer.deserialize_any(First)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_chunks_are_read() {
        for (text, content) in [
            (r#"{"choices":[{"delta":{"content":"a\u00e9"}}]}"#, Some(r#""a\u00e9""#)),
            (
                r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]}"#,
                Some(r#""x""#),
            ),
            (r#"{"choices":[{"delta":{"content":null,"role":"assistant"}},{"delta":{"content":"no"}}]}"#, None),
            (
                r#"{"choices":[{"index":1,"delta":{"content":"no"}},null,{"index":0,"delta":{"content":"yes"}},{"index":2}]}"#,
                Some(r#""yes""#),
            ),
            (
                r#"{"choices":[{"index":1,"delta":{"content":"a"}},{"index":2,"delta":{"content":"b"}}]}"#,
                Some(r#""a""#),
            ),
            (r#"{"choices":[],"usage":{"prompt_tokens":1}}"#, None),
            (r#"{"choices":null}"#, None),
            (r#"{"choices":[null]}"#, None),
            (r#"{"object":"x"}"#, None),
            (r#"[{"error":{"code":400}}]"#, None),
            (r#"{"choices":[{"delta":null}]}"#, None),
        ] {
            let answer = Answer::parse(text).unwrap();
            let choice = answer.choice.unwrap_or_default();
            let said = choice.delta.or(choice.message).and_then(|delta| delta.content);
            assert_eq!(said.map(Raw::as_str), content, "{text}");
        }
        for text in [r#"{"choices":5}"#, r#"{"choices":[{"delta":"x"}]}"#, "[]", "nonsense", "<html>"] {
            assert!(Answer::parse(text).is_err(), "{text}");
        }
    }
}
