//! One event of a Messages stream, or a whole message, as far as a translator looks at it.
//!
//! Every leaf stays [`Raw`]: an odd value in one member does not cost the rest, and text passes on without being
//! decoded. Reading allocates nothing.

use serde::Deserialize;

use crate::json::Raw;

/// An event. A body that is no event but a message is of the type `message`; one that is neither may be an error.
#[derive(Debug, Default, Deserialize)]
pub struct MessageEvent<'a> {
    #[serde(borrow, default, rename = "type")]
    pub kind: Option<Raw<'a>>,
    /// Which block of the message it is about.
    #[serde(borrow, default)]
    pub index: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub delta: Option<BlockDelta<'a>>,
    #[serde(borrow, default)]
    pub content_block: Option<Raw<'a>>,
    /// The message that begins; of an error its words.
    #[serde(borrow, default)]
    pub message: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub usage: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub error: Option<Raw<'a>>,
    /// Members of a whole message.
    #[serde(borrow, default)]
    pub content: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub stop_reason: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub stop_details: Option<Raw<'a>>,
    /// What was changed in the request before the model read it.
    #[serde(borrow, default)]
    pub input_transformations: Option<Raw<'a>>,
}

/// More of a block; in `message_delta` what became of the message.
#[derive(Debug, Default, Deserialize)]
pub struct BlockDelta<'a> {
    #[serde(borrow, default, rename = "type")]
    pub kind: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub text: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub thinking: Option<Raw<'a>>,
    /// Another name for it, on some servers.
    #[serde(borrow, default)]
    pub reasoning: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub signature: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub partial_json: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub citation: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub stop_reason: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub stop_details: Option<Raw<'a>>,
}

/// What `message_start` says of the message.
#[derive(Debug, Default, Deserialize)]
pub struct MessageHead<'a> {
    #[serde(borrow, default)]
    pub id: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub usage: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub input_transformations: Option<Raw<'a>>,
}

impl<'a> MessageEvent<'a> {
    /// # Errors
    /// It is no JSON object.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        if !text.trim_start().starts_with('{') {
            return Err(serde::de::Error::custom("expected an object"));
        }
        serde_json::from_str(text)
    }
}

impl<'a> MessageHead<'a> {
    /// What is no object says nothing.
    pub fn of(message: &'a str) -> Self {
        serde_json::from_str(message).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Text;

    #[test]
    fn events_and_whole_messages_read_alike_and_odd_members_cost_nothing() {
        let text = |raw: Option<Raw<'_>>| raw.and_then(Raw::text).map(Text::decode).map(std::borrow::Cow::into_owned);
        let delta =
            r#"{"type":"content_block_delta","index":"0","delta":{"type":"text_delta","text":"a\n","x":[1]},"y":{}}"#;
        let delta = MessageEvent::parse(delta).unwrap().delta.unwrap();
        assert_eq!((text(delta.kind).as_deref(), text(delta.text).as_deref()), (Some("text_delta"), Some("a\n")));
        let whole = r#"{"type":"message","id":7,"content":[],"stop_reason":null,"usage":"none"}"#;
        let whole = MessageEvent::parse(whole).unwrap();
        assert_eq!((text(whole.kind).as_deref(), text(whole.stop_reason)), (Some("message"), None));
        assert!(MessageEvent::parse("[1]").is_err() && MessageEvent::parse("{").is_err());
        assert!(MessageHead::of("7").id.is_none());
    }
}
