//! Everything that we write parses with the strict types of a Rust client of the API.

use async_openai::types::responses::{Response, ResponseStreamEvent};
use serde_json::Value;

/// What is wrong with an event by those types. There are no exceptions.
pub(crate) fn problem(event: &Value) -> Option<String> {
    let error = serde_json::from_str::<ResponseStreamEvent>(&event.to_string()).err();
    let error = error.or_else(|| serde_json::from_str::<Response>(&event.get("response")?.to_string()).err());
    error.map(|error| format!("{error} in {event}"))
}
