//! What the demo model looks at in a chat request.

use serde_json::Value;

/// The request, as far as it matters here.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) model: String,
    /// Serves instead of randomness: ids are made of it.
    pub(super) seed: u64,
    /// The text of the last user message.
    pub(super) prompt: String,
    /// How often tools have been called since then.
    pub(super) rounds: usize,
    /// The outputs of the tools that were called last; empty unless the conversation ends with them.
    pub(super) tool_outputs: Vec<ToolOutput>,
    /// Empty also when `tool_choice` forbids them.
    pub(super) tools: Vec<Tool>,
    pub(super) parallel_tool_calls: bool,
    pub(super) tool_choice: ToolChoice,
    /// The schema of a JSON answer, null for `json_object`; None: the answer is text.
    pub(super) schema: Option<Value>,
    pub(super) include_usage: bool,
    pub(super) max_tokens: Option<usize>,
    pub(super) prompt_tokens: usize,
}

#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) parameters: Value,
}

/// What a tool has answered.
#[derive(Debug)]
pub(super) struct ToolOutput {
    /// The tool's name; empty, if no call has the output's id.
    pub(super) tool: String,
    pub(super) text: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ToolChoice {
    Auto,
    Required,
    Function(String),
}

impl Request {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let body: Value = serde_json::from_slice(bytes).map_err(|error| format!("The body is not JSON: {error}"))?;
        let model = body["model"].as_str().ok_or("`model` must be a string.")?.to_owned();
        let messages = body["messages"].as_array().filter(|messages| !messages.is_empty());
        let messages = messages.ok_or("`messages` must be a list with at least one message.")?;
        let limit = ["max_completion_tokens", "max_tokens"].iter().find_map(|key| body[key].as_u64());
        Ok(Self {
            model,
            seed: fnv(bytes),
            prompt: last_user(messages).map(|last| text(&messages[last]["content"])).unwrap_or_default(),
            rounds: rounds(messages),
            tool_outputs: tool_outputs(messages),
            tools: if body["tool_choice"] == "none" { Vec::new() } else { tools(&body["tools"]) },
            parallel_tool_calls: body["parallel_tool_calls"] != false,
            tool_choice: tool_choice(&body["tool_choice"]),
            schema: schema(&body["response_format"]),
            include_usage: body["stream_options"]["include_usage"] == true || body["stream"] != true,
            max_tokens: limit.and_then(|limit| usize::try_from(limit).ok()),
            prompt_tokens: prompt_tokens(messages, &body["tools"]),
        })
    }

    /// The tool of this name, or else the only one whose server gave it this name.
    pub(super) fn tool(&self, name: &str) -> Option<&Tool> {
        let exact = self.tools.iter().find(|tool| tool.name == name);
        let mut bare =
            self.tools.iter().filter(|tool| tool.name.rsplit_once("__").is_some_and(|(_, bare)| bare == name));
        exact.or_else(|| bare.next().filter(|_| bare.next().is_none()))
    }
}

/// What a real model would report: all that it is shown counts, and a word that is no word counts by its length.
fn prompt_tokens(messages: &[Value], tools: &Value) -> usize {
    let pieces = |text: &str| text.split_whitespace().map(|word| word.len().div_ceil(8)).sum::<usize>();
    let json =
        |value: &Value| value.as_array().into_iter().flatten().map(|one| one.to_string().len() / 4).sum::<usize>();
    let message = |message: &Value| 3 + pieces(&text(&message["content"])) + json(&message["tool_calls"]);
    messages.iter().map(message).sum::<usize>() + json(tools)
}

/// The demo model's tokens are words.
pub(super) fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// The place of the last message that a user wrote.
fn last_user(messages: &[Value]) -> Option<usize> {
    messages.iter().rposition(|message| message["role"] == "user" && !is_hoisted(message))
}

/// Images of tools' results follow these in a message of their own.
fn is_hoisted(message: &Value) -> bool {
    message["content"][0]["text"] == "Images from the tool results above:"
}

fn rounds(messages: &[Value]) -> usize {
    let since = last_user(messages).map_or(0, |last| last + 1);
    let calls = |message: &&Value| message["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty());
    messages.iter().skip(since).filter(calls).count()
}

fn tool_outputs(messages: &[Value]) -> Vec<ToolOutput> {
    let is_output = |message: &Value| message["role"] == "tool" || is_hoisted(message);
    let from = messages.iter().rposition(|message| !is_output(message)).map_or(0, |last| last + 1);
    let calls = from.checked_sub(1).and_then(|last| messages[last]["tool_calls"].as_array());
    let output = |message: &Value| {
        let call = calls.into_iter().flatten().find(|call| call["id"] == message["tool_call_id"]);
        let tool = call.and_then(|call| call["function"]["name"].as_str()).unwrap_or_default().to_owned();
        ToolOutput { tool, text: text(&message["content"]) }
    };
    messages.iter().skip(from).filter(|message| message["role"] == "tool").map(output).collect()
}

/// A message's text, be it a string or a list of parts.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

fn tools(tools: &Value) -> Vec<Tool> {
    let tool = |tool: &Value| {
        let function = &tool["function"];
        let name = function["name"].as_str()?.to_owned();
        Some(Tool { name, parameters: function["parameters"].clone() })
    };
    tools.as_array().map(|tools| tools.iter().filter_map(tool).collect()).unwrap_or_default()
}

fn tool_choice(choice: &Value) -> ToolChoice {
    match (choice.as_str(), choice["function"]["name"].as_str()) {
        (Some("required"), _) => ToolChoice::Required,
        (_, Some(name)) => ToolChoice::Function(name.to_owned()),
        _ => ToolChoice::Auto,
    }
}

fn schema(format: &Value) -> Option<Value> {
    match format["type"].as_str() {
        Some("json_schema") => Some(format["json_schema"]["schema"].clone()),
        Some("json_object") => Some(Value::Null),
        _ => None,
    }
}

/// FNV-1a: small, and the same everywhere.
fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
