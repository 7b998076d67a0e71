//! `POST /v1/responses`: every parameter of the create request.

use super::item::InputItem;
use super::tool::{Tool, ToolChoice};
use crate::json::{Cursor, FromRaw, Invalid, Kept, Kind, Number, Object, Raw, Text};
use crate::open::open_struct;

open_struct! {
    /// The create request. What OpenAI's API has no name for is in `extra`.
    pub struct CreateResponse {
        model: Text<'a>,
        input: Input<'a>,
        instructions: Text<'a>,
        previous_response_id: Text<'a>,
        conversation: Conversation<'a>,
        store: bool,
        background: bool,
        stream: bool,
        stream_options: StreamOptions<'a>,
        include: Vec<Text<'a>>,
        tools: Vec<Kept<'a, Tool<'a>>>,
        tool_choice: ToolChoice<'a>,
        parallel_tool_calls: bool,
        max_tool_calls: i64,
        max_output_tokens: i64,
        temperature: Number<'a>,
        top_p: Number<'a>,
        top_logprobs: i64,
        presence_penalty: Number<'a>,
        frequency_penalty: Number<'a>,
        text: TextConfig<'a>,
        reasoning: ReasoningConfig<'a>,
        truncation: Text<'a>,
        metadata: Object<'a>,
        service_tier: Text<'a>,
        safety_identifier: Text<'a>,
        prompt_cache_key: Text<'a>,
        prompt_cache_retention: Text<'a>,
        prompt_cache_options: Object<'a>,
        user: Text<'a>,
        prompt: Object<'a>,
        context_management: Raw<'a>,
        moderation: Raw<'a>,
        client_metadata: Raw<'a>,
        access_programs: Raw<'a>,
        image: Raw<'a>,
        verbosity: Text<'a>,
    }
}

/// `input`: a string, or items.
#[derive(Debug, Clone, PartialEq)]
pub enum Input<'a> {
    Text(Text<'a>),
    Items(Vec<InputItem<'a>>),
}

impl<'a> FromRaw<'a> for Input<'a> {
    fn from_raw(raw: Raw<'a>) -> Result<Self, Invalid> {
        Self::from_cursor(&mut Cursor::new(raw))
    }

    fn from_cursor(cursor: &mut Cursor<'a>) -> Result<Self, Invalid> {
        match cursor.kind() {
            Kind::String => Text::from_cursor(cursor).map(Self::Text),
            Kind::Array => Vec::from_cursor(cursor).map(Self::Items),
            _ => Err(Invalid::expected("one of an array of objects or a string", cursor.raw())),
        }
    }
}

/// `conversation`: an id, or an object with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conversation<'a> {
    pub id: Text<'a>,
}

impl<'a> FromRaw<'a> for Conversation<'a> {
    fn from_raw(raw: Raw<'a>) -> Result<Self, Invalid> {
        match raw.kind() {
            Kind::String => Text::from_raw(raw).map(|id| Self { id }),
            Kind::Object => match raw.get("id") {
                Some(id) => Text::from_raw(id).map(|id| Self { id }).map_err(|invalid| invalid.at("id")),
                None => Err(Invalid::missing().at("id")),
            },
            _ => Err(Invalid::expected("one of an object or a string", raw)),
        }
    }
}

open_struct! {
    pub struct StreamOptions { include_obfuscation: bool }
}

open_struct! {
    pub struct TextConfig { format: TextFormat<'a>, verbosity: Text<'a> }
}

/// `text.format`.
#[derive(Debug, Clone, PartialEq)]
pub enum TextFormat<'a> {
    Text,
    JsonObject,
    JsonSchema { name: Text<'a>, schema: Object<'a>, description: Option<Text<'a>>, strict: Option<bool> },
}

impl<'a> FromRaw<'a> for TextFormat<'a> {
    fn from_raw(raw: Raw<'a>) -> Result<Self, Invalid> {
        let Object(raw) = Object::from_raw(raw)?;
        let kind = Text::from_raw(member(raw, "type")?).map_err(|invalid| invalid.at("type"))?;
        match &*kind.decode() {
            "text" => Ok(Self::Text),
            "json_object" => Ok(Self::JsonObject),
            "json_schema" => Ok(Self::JsonSchema {
                name: Text::from_raw(member(raw, "name")?).map_err(|invalid| invalid.at("name"))?,
                schema: Object::from_raw(member(raw, "schema")?).map_err(|invalid| invalid.at("schema"))?,
                description: raw
                    .get("description")
                    .map_or(Ok(None), |raw| crate::open::optional(raw, "description"))?,
                strict: raw.get("strict").map_or(Ok(None), |raw| crate::open::optional(raw, "strict"))?,
            }),
            other => Err(Invalid::value(other, &["json_object", "json_schema", "text"]).at("type")),
        }
    }
}

fn member<'a>(raw: Raw<'a>, name: &str) -> Result<Raw<'a>, Invalid> {
    raw.get(name).ok_or_else(|| Invalid::missing().at(name))
}

open_struct! {
    pub struct ReasoningConfig {
        effort: Text<'a>, summary: Text<'a>, generate_summary: Text<'a>, context: Text<'a>, mode: Text<'a>,
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
