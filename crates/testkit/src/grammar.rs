//! The event grammar: one function that reads the SSE bytes of a Responses stream and says what is wrong
//! with them. It knows what clients insist on (order, identity, deltas that add up), not the field-by-field
//! schemas: those are in [`crate::Schemas`].

mod fields;
mod frames;
mod hosted;
mod items;
mod lifecycle;
mod parts;

use serde_json::Value;

use lifecycle::Checker;

/// A stream that kept the grammar.
#[derive(Debug, Clone)]
pub struct Stream {
    /// Every event, in order: its type and its JSON.
    pub events: Vec<(String, Value)>,
    /// The response object of the terminal event.
    pub response: Value,
    /// All output text, concatenated.
    pub text: String,
}

impl Stream {
    /// The types of all events, in order.
    pub fn types(&self) -> Vec<&str> {
        self.events.iter().map(|(name, _)| name.as_str()).collect()
    }
}

/// Checks the whole body of a stream, `[DONE]` included. The error names the event and the rule.
pub fn check(sse: &[u8]) -> Result<Stream, String> {
    let events = frames::parse(sse)?;
    let mut checker = Checker::default();
    for (index, (name, event)) in events.iter().enumerate() {
        checker.event(index, name, event).map_err(|problem| format!("event {index} ({name}): {problem}\n{event}"))?;
    }
    let (response, text) = checker.finish()?;
    Ok(Stream { events, response, text })
}

/// The rules for a finished response object, as in a terminal event and as the whole answer of a request
/// without `stream`.
pub fn check_response(response: &Value) -> Result<(), String> {
    lifecycle::finished(response)
}

#[cfg(test)]
mod tests;
