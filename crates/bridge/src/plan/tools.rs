//! Declared tools → functions.

use wire::chat;
use wire::json::Invalid;
use wire::responses::{CreateResponse, Tool, ToolChoice, ToolChoiceObject};

use crate::dialect::{Dialect, Parameter};
use crate::note::{Action, Note};

pub(super) fn plan<'a>(
    request: &CreateResponse<'a>,
    dialect: &Dialect,
    body: &mut chat::Request<'a>,
    notes: &mut Vec<Note>,
) -> Result<(), Invalid> {
    for (i, tool) in request.tools.iter().flatten().enumerate() {
        match &tool.value {
            Tool::Function(function) => body.tools.push(chat::Function {
                name: function.name.ok_or_else(|| Invalid::missing().at("name").at_index(i).at("tools"))?,
                description: function.description,
                parameters: function.parameters.map(|object| object.0),
                strict: function.strict,
            }),
            _ => {
                let message = "this kind of tool cannot be offered to this provider";
                notes.push(Note::new(Action::Ignored, format!("tools[{i}]"), message));
            }
        }
    }
    if body.tools.is_empty() {
        return Ok(());
    }
    body.tool_choice = choice(request, notes);
    if body.tool_choice.is_some() && dialect.drops(Parameter::ToolChoice) {
        body.tool_choice = None;
        notes.push(Note::new(Action::Ignored, "tool_choice", "this provider refuses the parameter"));
    }
    // True is the default on both sides; only its absence needs saying.
    if request.parallel_tool_calls == Some(false) && !dialect.drops(Parameter::ParallelToolCalls) {
        body.parallel_tool_calls = Some(false);
    }
    Ok(())
}

fn choice<'a>(request: &CreateResponse<'a>, notes: &mut Vec<Note>) -> Option<chat::ToolChoice<'a>> {
    match request.tool_choice.as_ref()? {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(chat::ToolChoice::Mode("none")),
        ToolChoice::Required => Some(chat::ToolChoice::Mode("required")),
        ToolChoice::Object { choice: ToolChoiceObject::Function(named), .. } => {
            named.name.map(chat::ToolChoice::Function)
        }
        ToolChoice::Object { .. } => {
            notes.push(Note::new(Action::Degraded, "tool_choice", "this choice has no equivalent upstream: auto"));
            None
        }
    }
}
