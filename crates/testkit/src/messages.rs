//! A strict reader of requests to a Messages API: what its own server answers with a 400. Written from that API's
//! rules, not from our code, so that the two can disagree.

mod blocks;
mod images;
mod marks;
mod models;
mod parameters;
mod tools;
mod turns;

pub use models::check_for_model;
use serde_json::{Map, Value};

/// The first thing that is wrong with a request's body.
pub fn check_request(body: &Value) -> Result<(), String> {
    check_request_after(body, false)
}

/// The same for one that may go on from an answer that has paused, whatever that ended with.
pub fn check_request_after(body: &Value, pause: bool) -> Result<(), String> {
    let body = object(body, "the body")?;
    parameters::check(body)?;
    tools::check(body)?;
    turns::check(body, pause)?;
    images::check(body)?;
    marks::check(body)
}

/// What is said of whatever is at fault.
fn demand(good: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if good { Ok(()) } else { Err(problem()) }
}

fn object<'v>(value: &'v Value, what: &str) -> Result<&'v Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("{what}: no object: {value}"))
}

/// Members that nobody knows are refused: `Extra inputs are not permitted`.
fn only(value: &Map<String, Value>, known: &[&str], what: &str) -> Result<(), String> {
    match value.keys().find(|key| !known.contains(&key.as_str())) {
        Some(extra) => Err(format!("{what}.{extra}: extra inputs are not permitted")),
        None => Ok(()),
    }
}

/// Text has to say something: blanks are refused like nothing at all.
fn words(value: Option<&Value>, what: &str) -> Result<(), String> {
    let text = value.and_then(Value::as_str).ok_or_else(|| format!("{what}: no text"))?;
    demand(!text.trim().is_empty(), || format!("{what}: text must have words in it"))
}

fn is_name(name: &str) -> bool {
    let safe = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=64).contains(&name.len()) && name.chars().all(safe)
}

#[cfg(test)]
mod tests;
