//! Items → messages. Adjacent assistant items become one message, a call's output stands behind its call.

use wire::chat::{Call, Content, Message, Str};
use wire::json::{Invalid, Text};
use wire::responses::{self, CreateResponse, Input, InputItem, Item};

use super::content;
use crate::dialect::{DeveloperRole, Dialect};
use crate::note::{Action, Note};

const ROLES: &[&str] = &["assistant", "system", "developer", "user"];

/// The transcript: instructions first, then the past, then the input.
pub(super) fn messages<'a>(
    request: &CreateResponse<'a>,
    past: &[InputItem<'a>],
    dialect: &Dialect,
    notes: &mut Vec<Note>,
) -> Result<Vec<Message<'a>>, Invalid> {
    let mut transcript = Transcript { dialect, notes, messages: Vec::new(), calls: Vec::new() };
    if let Some(instructions) = request.instructions.filter(|text| !text.is_empty()) {
        transcript.instruct(Content::Text(vec![instructions.into()]));
    }
    for (i, past) in past.iter().enumerate() {
        transcript.item(&past.value, &format!("history[{i}]")).map_err(|invalid| invalid.at_index(i).at("history"))?;
    }
    match &request.input {
        Some(Input::Text(text)) => {
            transcript.messages.push(Message::Plain { role: "user", content: Content::Text(vec![(*text).into()]) });
        }
        Some(Input::Items(items)) => {
            for (i, input) in items.iter().enumerate() {
                transcript.item(&input.value, &format!("input[{i}]")).map_err(|invalid| place(invalid, i))?;
            }
        }
        None => {}
    }
    if transcript.messages.is_empty() {
        return Err(match request.input {
            None => Invalid::missing().at("input"),
            Some(_) => Invalid::rule("empty_array", "expected at least one message.").at("input"),
        });
    }
    Ok(transcript.messages)
}

/// Errors that OpenAI reports on `input` as a whole keep that path.
fn place(invalid: Invalid, index: usize) -> Invalid {
    if invalid.path == "input" { invalid } else { invalid.at_index(index).at("input") }
}

struct Transcript<'a, 't> {
    dialect: &'t Dialect,
    notes: &'t mut Vec<Note>,
    messages: Vec<Message<'a>>,
    /// The ids of the calls so far.
    calls: Vec<Text<'a>>,
}

impl<'a> Transcript<'a, '_> {
    fn instruct(&mut self, content: Content<'a>) {
        let role = match self.dialect.developer_role {
            DeveloperRole::Developer => "developer",
            DeveloperRole::System => "system",
            DeveloperRole::User => "user",
        };
        self.messages.push(Message::Plain { role, content });
    }

    fn item(&mut self, item: &Item<'a>, path: &str) -> Result<(), Invalid> {
        match item {
            Item::Message(message) => self.message(message, path),
            Item::FunctionCall(call) => self.call(call),
            Item::FunctionCallOutput(output) => self.output(output, path),
            _ => {
                let message = "this kind of item cannot be sent to this provider";
                self.notes.push(Note::new(Action::Ignored, path.to_owned(), message));
                Ok(())
            }
        }
    }

    fn message(&mut self, message: &responses::Message<'a>, path: &str) -> Result<(), Invalid> {
        let role = message.role.ok_or_else(|| Invalid::missing().at("role"))?;
        let content = message.content.as_ref().ok_or_else(|| Invalid::missing().at("content"))?;
        let content = content::content(content, path, self.notes);
        match &*role.decode() {
            "assistant" => self.assistant(content),
            "developer" => self.instruct(content),
            "system" => self.messages.push(Message::Plain { role: "system", content }),
            "user" => self.messages.push(Message::Plain { role: "user", content }),
            other => return Err(Invalid::value(other, ROLES).at("role")),
        }
        Ok(())
    }

    fn assistant(&mut self, said: Content<'a>) {
        let Content::Text(texts) = said else { return };
        let texts: Vec<Str<'a>> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        if texts.is_empty() {
            return;
        }
        match self.messages.last_mut() {
            Some(Message::Assistant { content, .. }) => content.extend(texts),
            _ => self.messages.push(Message::Assistant { content: texts, tool_calls: Vec::new() }),
        }
    }

    fn call(&mut self, call: &responses::FunctionCall<'a>) -> Result<(), Invalid> {
        let call_id = call.call_id.ok_or_else(|| Invalid::missing().at("call_id"))?;
        let name = call.name.ok_or_else(|| Invalid::missing().at("name"))?;
        self.calls.push(call_id);
        let arguments = match call.arguments {
            Some(arguments) if !arguments.is_empty() => arguments.into(),
            _ => Str::Ours("{}".into()),
        };
        let call = Call { id: call_id.into(), name: name.into(), arguments };
        match self.messages.last_mut() {
            Some(Message::Assistant { tool_calls, .. }) => tool_calls.push(call),
            _ => self.messages.push(Message::Assistant { content: Vec::new(), tool_calls: vec![call] }),
        }
        Ok(())
    }

    fn output(&mut self, output: &responses::FunctionCallOutput<'a>, path: &str) -> Result<(), Invalid> {
        let call_id = output.call_id.ok_or_else(|| Invalid::missing().at("call_id"))?;
        if !self.calls.iter().any(|known| known.decode() == call_id.decode()) {
            let message = format!("No tool call found for function call output with call_id {}.", call_id.decode());
            return Err(Invalid::sentence("bridge.history.unknown_call", message).at("input"));
        }
        let content = match &output.output {
            Some(said) => content::output(said, path, self.notes),
            None => return Err(Invalid::missing().at("output")),
        };
        self.messages.push(Message::Tool { tool_call_id: call_id.into(), content });
        Ok(())
    }
}
