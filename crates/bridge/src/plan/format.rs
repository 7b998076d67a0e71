//! `text.format` → `response_format`, or an instruction where the far side has no such thing.

use wire::chat::{Content, Message, Request, ResponseFormat, Str};
use wire::responses::{CreateResponse, TextFormat};

use crate::dialect::{Dialect, JsonSchema};
use crate::note::{Action, Note};

pub(super) fn plan<'a>(request: &CreateResponse<'a>, dialect: &Dialect, body: &mut Request<'a>, notes: &mut Vec<Note>) {
    let Some(format) = request.text.as_ref().and_then(|text| text.format.as_ref()) else { return };
    match (format, dialect.json_schema) {
        (TextFormat::Text, _) => {}
        (TextFormat::JsonObject, JsonSchema::Prompt) => {
            instruct(body, "Answer with one JSON object and nothing else.".to_owned());
            notes.push(Note::new(Action::Degraded, "text.format", "asked for in an instruction"));
        }
        (TextFormat::JsonObject, _) => body.response_format = Some(ResponseFormat::JsonObject),
        (TextFormat::JsonSchema { name, schema, description, strict }, JsonSchema::Native) => {
            body.response_format = Some(ResponseFormat::JsonSchema {
                name: *name,
                description: *description,
                schema: schema.0,
                strict: *strict,
            });
        }
        (TextFormat::JsonSchema { schema, .. }, way) => {
            let schema = schema.0.as_str();
            instruct(
                body,
                format!(
                    "Answer with one JSON document that is valid against this JSON Schema, and nothing else:\n{schema}"
                ),
            );
            if way == JsonSchema::JsonObject {
                body.response_format = Some(ResponseFormat::JsonObject);
            }
            notes.push(Note::new(Action::Degraded, "text.format", "the schema is asked for in an instruction"));
        }
    }
}

/// Behind the system messages at the start, so that the conversation's prefix stays what it was.
fn instruct(body: &mut Request<'_>, text: String) {
    let leading = |message: &Message<'_>| matches!(message, Message::Plain { role, .. } if *role != "user");
    let at = body.messages.iter().position(|message| !leading(message)).unwrap_or(body.messages.len());
    let content = Content::Text(vec![Str::Ours(text.into())]);
    body.messages.insert(at, Message::Plain { role: "system", content });
}
