//! A tool call there and back, as Codex makes them: a streamed request with a function, its call, and the answer to its
//! result.

use std::time::Duration;

use serde_json::{Value, json};
use server::config::Secret;
use server::peer::Peer;

use super::super::choice::Choice;
use super::Check;
use crate::args::variable;
use crate::commands::streamed;

const NAME: &str = "round trip";
/// A model may think before it calls.
const LONGEST: Duration = Duration::from_mins(2);
const COMMAND: &str = "echo it works";

/// Asks the model to call a tool, and then to answer.
pub(super) async fn check(url: &str, key: &Secret, choice: &Choice) -> Check {
    match ask(url, key, choice).await {
        Ok(Ended::Called) => Check::ok(NAME, format!("{} called a tool, and answered to its result", choice.model)),
        Ok(Ended::Answered) => {
            let message = format!("{} answered in words and called no tool", choice.model);
            Check::warn(NAME, message, "choose a model that calls tools: Codex does nothing without them")
        }
        Err(reason) => Check::fail(
            NAME,
            format!("{}: {reason}", choice.model),
            "see `godex probe`, and the provider's key and model",
        ),
    }
}

enum Ended {
    Called,
    Answered,
}

async fn ask(url: &str, key: &Secret, choice: &Choice) -> Result<Ended, String> {
    let headers = [("originator", "codex_exec"), ("accept", "text/event-stream")];
    let peer = Peer::new(&format!("{url}/v1"), Some(key.clone()), &headers, &variable)?;
    let mut input = vec![message(&prompt(choice))];
    let first = streamed::read(&peer.post("/responses", body(choice, &input), LONGEST).await?)?.items;
    let Some(call) = first.iter().find(|item| item["type"] == "function_call").cloned() else {
        return Ok(Ended::Answered);
    };
    if call["name"] != "exec_command" || call["call_id"].as_str().is_none_or(str::is_empty) {
        return Err(format!("the call came back wrong: {call}"));
    }
    input.extend(first);
    input.push(json!({"type": "function_call_output", "call_id": call["call_id"], "output": "it works\n"}));
    streamed::read(&peer.post("/responses", body(choice, &input), LONGEST).await?)?;
    Ok(Ended::Called)
}

/// What makes it call the tool: the demo model follows commands.
fn prompt(choice: &Choice) -> String {
    if choice.offline {
        return format!("call exec_command {}", json!({"cmd": COMMAND}));
    }
    format!("Call the tool exec_command with the command `{COMMAND}`, and say what it printed.")
}

fn message(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

fn body(choice: &Choice, input: &[Value]) -> Vec<u8> {
    let parameters = json!({
        "type": "object",
        "properties": {"cmd": {"type": "string", "description": "Shell command to execute."}},
        "required": ["cmd"],
        "additionalProperties": false
    });
    let tool = json!({
        "type": "function", "name": "exec_command", "description": "Runs a command in a shell, and returns its output.",
        "strict": false, "parameters": parameters
    });
    let body = json!({
        "model": choice.model, "instructions": "You are a coding agent with a shell.", "input": input, "tools": [tool],
        "tool_choice": "auto", "parallel_tool_calls": true, "reasoning": {"summary": "auto"}, "store": false,
        "stream": true, "include": ["reasoning.encrypted_content"]
    });
    body.to_string().into_bytes()
}
