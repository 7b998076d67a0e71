//! One event of somebody else's Responses stream, or a whole response, as far as a relay looks at it.
//!
//! Every leaf stays [`Raw`]: an odd value in one member does not cost the rest, and text passes on undecoded.

use serde::Deserialize;

use crate::json::Raw;

/// An event. A body that is no event but a response, or an error, has no `type`.
#[derive(Debug, Default, Deserialize)]
pub struct Incoming<'a> {
    #[serde(borrow, default, rename = "type")]
    pub kind: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub item_id: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub output_index: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub content_index: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub summary_index: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub delta: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub text: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub refusal: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub name: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub arguments: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub input: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub logprobs: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub annotation: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub item: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub part: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub response: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub error: Option<Raw<'a>>,
    /// Members of errors.
    #[serde(borrow, default)]
    pub message: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub code: Option<Raw<'a>>,
    /// `response`, on a whole one.
    #[serde(borrow, default)]
    pub object: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub output: Option<Raw<'a>>,
    /// All of it.
    #[serde(skip)]
    pub source: &'a str,
}

/// A response object.
#[derive(Debug, Default, Deserialize)]
pub struct Whole<'a> {
    #[serde(borrow, default)]
    pub status: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub output: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub usage: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub incomplete_details: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub error: Option<Raw<'a>>,
    #[serde(borrow, default)]
    pub service_tier: Option<Raw<'a>>,
}

impl<'a> Incoming<'a> {
    /// Whether an event that nobody knows is about an error.
    pub fn is_error(&self) -> bool {
        [self.error, self.message, self.code].into_iter().flatten().any(|raw| !raw.is_null())
    }

    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        let event: Self = serde_json::from_str(text)?;
        Ok(Self { source: text, ..event })
    }
}

impl<'a> Whole<'a> {
    /// What is no object says nothing.
    pub fn of(response: &'a str) -> Self {
        serde_json::from_str(response).unwrap_or_default()
    }
}
