//! `text.format` → what the provider is asked to produce: a schema in its own shape, a JSON object, or words.

mod schema;

use std::fmt::Write;

use wire::chat::{Json, ResponseFormat};
use wire::json::{Invalid, InvalidCode, Object, Text};
use wire::responses::{CreateResponse, TextFormat};

use super::notes::{Notes, code};
use crate::context::OutputContract;
use crate::dialect::{Dialect, Exclusion, JsonSchema};

/// What is asked of the answer's text.
#[derive(Debug, Default)]
pub(super) struct Output<'a> {
    pub(super) format: Option<ResponseFormat<'a>>,
    /// What the model is told. It comes after the request's instructions, so that the prefix stays the same.
    pub(super) instruction: Option<String>,
    pub(super) contract: OutputContract,
}

/// A schema that was asked for.
#[derive(Clone, Copy)]
struct Asked<'a> {
    name: Text<'a>,
    schema: Object<'a>,
    description: Option<Text<'a>>,
    strict: Option<bool>,
}

impl<'a> Output<'a> {
    pub(super) fn plan(
        request: &CreateResponse<'a>,
        dialect: &Dialect,
        tools: bool,
        notes: &mut Notes,
    ) -> Result<Self, Invalid> {
        let format = request.text.as_ref().and_then(|text| text.format.as_ref());
        let excluded = dialect.request.tools.format_excludes.iter().any(|with| match with {
            Exclusion::Tools => tools,
            Exclusion::Stream => request.stream == Some(true),
        });
        let way = match dialect.json_schema {
            _ if excluded => JsonSchema::Prompt,
            // What would be sent as an object.
            JsonSchema::JsonObject if dialect.no_json_object => JsonSchema::Prompt,
            JsonSchema::Native if dialect.no_json_object && matches!(format, Some(TextFormat::JsonObject)) => {
                JsonSchema::Prompt
            }
            way => way,
        };
        match format {
            None | Some(TextFormat::Text) => Ok(Self::default()),
            Some(TextFormat::JsonObject) => Ok(Self::object(way, notes)),
            Some(TextFormat::JsonSchema { name, schema, description, strict }) => {
                let asked = Asked { name: *name, schema: *schema, description: *description, strict: *strict };
                asked.check()?;
                Ok(Self::schema(asked, way, notes))
            }
        }
    }

    fn object(way: JsonSchema, notes: &mut Notes) -> Self {
        let contract = OutputContract::JsonObject;
        if way == JsonSchema::Prompt {
            notes.degraded(code::FORMAT_DEGRADED, "text.format", "asked for in an instruction");
            let instruction = "Answer with exactly one JSON object: no other text, no code fence.".to_owned();
            return Self { format: None, instruction: Some(instruction), contract };
        }
        Self { format: Some(ResponseFormat::JsonObject), instruction: None, contract }
    }

    fn schema(asked: Asked<'a>, way: JsonSchema, notes: &mut Notes) -> Self {
        let Asked { name, schema, description, strict } = asked;
        let contract = OutputContract::JsonSchema {
            name: name.decode().into_owned(),
            schema: schema.0.as_str().to_owned(),
            strict: strict == Some(true),
            native: way == JsonSchema::Native,
        };
        let format = match way {
            JsonSchema::Native => {
                let schema = Json::Wire(schema.0);
                let format = ResponseFormat::JsonSchema { name, description, schema, strict };
                return Self { format: Some(format), instruction: None, contract };
            }
            JsonSchema::JsonObject => Some(ResponseFormat::JsonObject),
            JsonSchema::Prompt => None,
        };
        notes.degraded(code::FORMAT_DEGRADED, "text.format", "the schema is asked for in an instruction");
        Self { format, instruction: Some(asked.instruction()), contract }
    }
}

impl Asked<'_> {
    fn instruction(self) -> String {
        let mut text = format!("Your final answer must be one JSON document named \"{}\"", self.name.decode());
        if let Some(description) = self.description.filter(|text| !text.is_empty()) {
            let _ = write!(text, " ({})", description.decode());
        }
        text.push_str(", and nothing else: no other text, no code fence. It must be valid against this JSON Schema:\n");
        text.push_str(self.schema.0.as_str());
        text
    }

    fn check(self) -> Result<(), Invalid> {
        let name = self.name.decode();
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let at = |invalid: Invalid| invalid.at("name").at("format").at("text");
        if name.is_empty() || !name.chars().all(fits) {
            let message = "string does not match pattern. Expected a string that matches '^[a-zA-Z0-9_-]+$'.";
            return Err(at(Invalid::rule(InvalidCode::InvalidValue, message)));
        }
        if name.len() > 64 {
            let message = format!("string too long. Expected at most 64 characters, but got {} instead.", name.len());
            return Err(at(Invalid::rule(InvalidCode::StringAboveMaxLength, message)));
        }
        schema::check(self.schema.0).map_err(|invalid| invalid.at("schema").at("format").at("text"))
    }
}
