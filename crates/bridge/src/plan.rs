//! The request side: a Responses request, what came before it and a dialect make the chat request to send and
//! the knowledge of how to read its answer. Every decision about compatibility is taken here, with a note.

mod check;
mod content;
mod echo;
mod format;
mod messages;
mod sampling;
mod tools;

use wire::chat;
use wire::json::{Invalid, Raw};
use wire::responses::{CreateResponse, InputItem};

use crate::dialect::{Dialect, StreamUsage};
use crate::note::{Action, Note};
use crate::reading::Reading;
use crate::seal::Seal;

/// The far side of one turn, and how forgiving we are on the way there.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The model's name there.
    pub model: &'a str,
    pub dialect: &'a Dialect,
    pub policy: Policy,
    /// Opens what we sealed in earlier turns.
    pub seal: &'a dyn Seal,
}

/// The operator's choices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policy {
    /// What would be ignored is refused instead.
    pub strict: bool,
    /// An output that answers no known call becomes a message instead of a 400.
    pub repair_history: bool,
}

/// What to send, and how to read what comes back.
#[derive(Debug)]
pub struct Plan {
    /// The chat request's body.
    pub body: Vec<u8>,
    pub reading: Reading,
    pub notes: Vec<Note>,
}

/// Plans one turn. `past` is the history that the session holds, oldest first.
pub fn plan(request: &CreateResponse<'_>, past: &[InputItem<'_>], target: Target<'_>) -> Result<Plan, Invalid> {
    check::ranges(request)?;
    let mut notes = Vec::new();
    let stream = request.stream.unwrap_or(false);
    let mut body = chat::Request {
        model: target.model,
        messages: messages::messages(request, past, target.dialect, &mut notes)?,
        stream,
        include_usage: target.dialect.stream_usage == StreamUsage::Request,
        ..chat::Request::default()
    };
    sampling::plan(request, target.dialect, &mut body, &mut notes);
    tools::plan(request, target.dialect, &mut body, &mut notes)?;
    format::plan(request, target.dialect, &mut body, &mut notes);
    ignored(request, &mut notes);
    let reading = Reading { echo: echo::tail(request)?, store: request.store.unwrap_or(true), ..Reading::default() };
    let capacity = 1024 + past.iter().map(|item| item.raw.as_str().len()).sum::<usize>() + size(request);
    Ok(Plan { body: body.write(capacity), reading, notes })
}

/// Parameters that this version accepts and does nothing with.
fn ignored(request: &CreateResponse<'_>, notes: &mut Vec<Note>) {
    let parameters: [(&'static str, bool); 8] = [
        ("max_tool_calls", request.max_tool_calls.is_some()),
        ("prompt", request.prompt.is_some()),
        ("context_management", request.context_management.is_some()),
        ("moderation", request.moderation.is_some()),
        ("access_programs", request.access_programs.is_some()),
        ("image", request.image.is_some()),
        ("truncation", request.truncation.is_some_and(|value| value.is("auto"))),
        ("prompt_cache_retention", request.prompt_cache_retention.is_some()),
    ];
    for (name, given) in parameters {
        if given {
            notes.push(Note::new(Action::Ignored, name, "this parameter has no equivalent upstream"));
        }
    }
    for (key, _) in &request.extra {
        let name = key.decode().chars().take(64).collect::<String>();
        notes.push(Note::new(Action::Ignored, name, "this parameter is not known"));
    }
}

/// About how many bytes the input has; the body will be about as long.
fn size(request: &CreateResponse<'_>) -> usize {
    use wire::responses::Input;
    let input = match &request.input {
        Some(Input::Text(text)) => text.escaped().len(),
        Some(Input::Items(items)) => items.iter().map(|item| item.raw.as_str().len()).sum(),
        None => 0,
    };
    let tools = request.tools.iter().flatten().map(|_| 256).sum::<usize>();
    input + tools + request.instructions.map_or(0, |text| Raw::as_str(text.raw()).len())
}

#[cfg(test)]
#[path = "plan/tests.rs"]
mod tests;
