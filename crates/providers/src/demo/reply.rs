//! Decides what the demo model says to a request.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::json;

use super::command::{Call, Fail, Script};
use super::request::{Request, ToolChoice};
use super::steps::Stream;
use super::{Step, error, links, schema, wishes};

const PACE: Duration = Duration::from_millis(200);
const QUOTE: usize = 200;
/// How many sources an answer names.
const SOURCES: usize = 3;

pub(super) fn reply(request: &Request) -> Vec<Step> {
    // Commands are for the turn in which they are given: after a tool's output they would only repeat.
    let message = Script::parse(&request.prompt);
    let wanted = if message.is_obeyed_at_once() { Vec::new() } else { wishes::calls(request, &message.rest) };
    let script = if request.tool_outputs.is_empty() { message } else { Script::default() };
    if let Some(Fail::Status(status, message)) = &script.fail {
        return vec![error(*status, message)];
    }
    let pace = if script.slow.is_some() { PACE } else { Duration::ZERO };
    let mut stream = Stream::start(request, pace);
    if let Some(thought) = &script.think {
        let about = if thought.is_empty() { &script.rest } else { thought };
        stream.reasoning(&format!("The user wants to talk about \"{}\". I will answer briefly.", quote(about)));
    }
    match &script.fail {
        Some(Fail::Stream) => return half(stream).error(),
        Some(Fail::Cut) => return half(stream).cut(),
        _ => {}
    }
    if script.refuse {
        stream.refusal("I'm sorry, but I can't help with that.");
        return stream.finish("stop");
    }
    match calls(request, &script, wanted) {
        Calls::None => {}
        Calls::Unknown(name) => {
            stream.text(&unknown_tool(request, &name), None);
            return stream.finish("stop");
        }
        Calls::Made(calls) => {
            for (index, (name, arguments)) in calls.iter().enumerate() {
                stream.call(index, name, arguments);
            }
            return stream.finish("tool_calls");
        }
    }
    let whole = stream.text(&text(request, &script), script.slow);
    stream.finish(if script.length || !whole { "length" } else { "stop" })
}

fn half(mut stream: Stream<'_>) -> Stream<'_> {
    stream.text("This answer will not", None);
    stream
}

enum Calls {
    None,
    Made(Vec<(String, String)>),
    Unknown(String),
}

/// The calls that the message commands or asks for, or else the one that `tool_choice` demands.
fn calls(request: &Request, script: &Script, wanted: Vec<(String, String)>) -> Calls {
    if !script.calls.is_empty() {
        let most = if request.parallel_tool_calls { usize::MAX } else { 1 };
        let mut made_up = HashMap::new();
        let made: Result<Vec<_>, String> =
            script.calls.iter().take(most).map(|call| commanded(request, call, &mut made_up)).collect();
        return made.map_or_else(Calls::Unknown, Calls::Made);
    }
    if script.echo.is_some() {
        return Calls::None;
    }
    let demanded = if let ToolChoice::Function(name) = &request.tool_choice { Some(name) } else { None };
    if !wanted.is_empty() && demanded.is_none_or(|name| wanted.iter().all(|(wanted, _)| wanted == name)) {
        return Calls::Made(wanted);
    }
    if !request.tool_outputs.is_empty() {
        return Calls::None;
    }
    let tool = match &request.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::Required => request.tools.first(),
        ToolChoice::Function(name) => request.tool(name),
    };
    let arguments = |tool| {
        wishes::web_arguments(tool, request, &script.rest).unwrap_or_else(|| schema::arguments(&tool.parameters))
    };
    tool.map_or(Calls::None, |tool| Calls::Made(vec![(tool.name.clone(), arguments(tool))]))
}

/// Arguments are made up once for each tool.
fn commanded<'r>(
    request: &'r Request,
    call: &Call,
    made_up: &mut HashMap<&'r str, String>,
) -> Result<(String, String), String> {
    let tool = request.tool(&call.name).ok_or_else(|| call.name.clone())?;
    let make_up = || made_up.entry(&tool.name).or_insert_with(|| schema::arguments(&tool.parameters)).clone();
    let arguments = call.arguments.clone().unwrap_or_else(make_up);
    Ok((tool.name.clone(), arguments))
}

fn unknown_tool(request: &Request, name: &str) -> String {
    let declared: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    match declared.as_slice() {
        [] => format!("I cannot call {name}: there are no tools to call."),
        declared => format!("I cannot call {name}: the declared tools are {}.", declared.join(", ")),
    }
}

fn text(request: &Request, script: &Script) -> String {
    if let Some(text) = &script.echo {
        return text.clone();
    }
    let said = spoken(request, script);
    match &request.schema {
        None => said,
        Some(schema) if schema.is_null() => json!({"answer": said}).to_string(),
        Some(schema) => schema::instance(schema, &quote(&script.rest)).to_string(),
    }
}

fn spoken(request: &Request, script: &Script) -> String {
    if let Some(words) = script.long {
        return (1..=words).map(|n| format!("word{n}")).collect::<Vec<_>>().join(" ");
    }
    if !request.tool_outputs.is_empty() {
        let quoted: Vec<String> =
            request.tool_outputs.iter().map(|output| format!("\"{}\"", quote(&output.text))).collect();
        return format!("The tool answered: {}{}", quoted.join(", "), sources(request));
    }
    let thought = script.think.as_deref().filter(|thought| script.rest.is_empty() && !thought.is_empty());
    let prompt = thought.unwrap_or(&script.rest);
    if script.length {
        return format!("You said: \"{}\". There is much to say about this, and", quote(prompt));
    }
    if prompt.is_empty() {
        return "Hello! I am godex's demo model: offline, and always the same.".to_owned();
    }
    format!("You said: \"{}\". I am godex's demo model: offline, and always the same.", quote(prompt))
}

/// Links to what the tools of the web came back with.
fn sources(request: &Request) -> String {
    let web = request.tool_outputs.iter().filter(|output| wishes::is_web(&output.tool));
    match links::markdown(web.map(|output| output.text.as_str()), SOURCES).as_slice() {
        [] => String::new(),
        links => format!("\n\nSources: {}", links.join(", ")),
    }
}

fn quote(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(QUOTE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
