//! A strict reader of chat requests: what the most pedantic provider would refuse. Written from the providers'
//! rules, not from our code, so that the two can disagree.

use std::collections::BTreeSet;

use serde_json::Value;

/// Where providers differ.
#[expect(clippy::struct_excessive_bools, reason = "each is a rule that some provider has and another has not")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strictness {
    /// `developer` is a role.
    pub developer: bool,
    /// Empty texts are refused.
    pub no_empty_text: bool,
    /// System messages only at the start.
    pub system_first: bool,
    /// No two user or system messages in a row.
    pub alternate: bool,
    /// Only the assistant may follow a tool.
    pub assistant_after_tool: bool,
    /// A null is refused.
    pub no_null_content: bool,
    pub ids: Ids,
    /// Names of functions are no longer than this.
    pub name_length: usize,
    /// There may be calls of custom tools.
    pub custom: bool,
}

/// Which ids of calls are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ids {
    NotEmpty,
    Safe64,
    Alnum9,
}

/// Everything that is wrong with a request; empty when nothing is.
pub fn check(body: &Value, strictness: Strictness) -> Vec<String> {
    let mut checker = Checker { strictness, problems: Vec::new(), ids: BTreeSet::new() };
    match body["messages"].as_array() {
        Some(messages) if !messages.is_empty() => checker.messages(messages),
        _ => checker.problems.push("messages: none".to_owned()),
    }
    checker.tools(body);
    checker.problems
}

struct Checker {
    strictness: Strictness,
    problems: Vec<String>,
    ids: BTreeSet<String>,
}

impl Checker {
    fn demand(&mut self, good: bool, at: usize, problem: &str) {
        if !good {
            self.problems.push(format!("messages[{at}]: {problem}"));
        }
    }

    fn messages(&mut self, messages: &[Value]) {
        let mut leading = true;
        let mut expected: Vec<String> = Vec::new();
        for (at, message) in messages.iter().enumerate() {
            let role = message["role"].as_str().unwrap_or_default();
            let previous = at.checked_sub(1).and_then(|before| messages[before]["role"].as_str()).unwrap_or_default();
            let system = matches!(role, "system" | "developer");
            leading &= system;
            self.demand(!(self.strictness.system_first && system && !leading), at, "a late system message");
            if role == "tool" {
                self.tool(message, &mut expected, at);
                continue;
            }
            self.demand(expected.is_empty(), at, "results are missing before it");
            expected.clear();
            let alike = role == previous && (role == "assistant" || self.strictness.alternate);
            self.demand(!alike, at, "two of one role in a row");
            let after_tool = previous == "tool" && self.strictness.assistant_after_tool;
            self.demand(!(after_tool && role != "assistant"), at, "not the assistant after a tool");
            match role {
                "assistant" => expected = self.assistant(message, at),
                "user" | "system" => self.content(&message["content"], at),
                "developer" if self.strictness.developer => self.content(&message["content"], at),
                _ => self.demand(false, at, "no such role"),
            }
        }
        self.demand(expected.is_empty(), messages.len(), "results are missing at the end");
    }

    fn tool(&mut self, message: &Value, expected: &mut Vec<String>, at: usize) {
        let id = message["tool_call_id"].as_str().unwrap_or_default();
        let known = expected.iter().position(|wanted| wanted == id);
        self.demand(known.is_some(), at, "a result of no call before it");
        if let Some(known) = known {
            expected.remove(known);
        }
        self.content(&message["content"], at);
    }

    /// Gives back the ids whose results must follow.
    fn assistant(&mut self, message: &Value, at: usize) -> Vec<String> {
        let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        let null = message.get("content").is_some_and(Value::is_null);
        self.demand(!(null && self.strictness.no_null_content), at, "content is null");
        let text = message["content"].as_str().is_some_and(|text| !text.is_empty()) || message["content"].is_array();
        self.demand(text || !calls.is_empty(), at, "it says nothing and calls nothing");
        self.demand(message.get("tool_calls").is_none() || !calls.is_empty(), at, "an empty list of calls");
        calls.iter().map(|call| self.call(call, at)).collect()
    }

    fn call(&mut self, call: &Value, at: usize) -> String {
        let id = call["id"].as_str().unwrap_or_default().to_owned();
        let safe = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let good = match self.strictness.ids {
            Ids::NotEmpty => !id.is_empty(),
            Ids::Safe64 => (1..=64).contains(&id.len()) && id.chars().all(safe),
            Ids::Alnum9 => id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()),
        };
        self.demand(good, at, &format!("the id {id:?}"));
        let fresh = self.ids.insert(id.clone());
        self.demand(fresh, at, &format!("the id {id:?} again"));
        let kind = if self.strictness.custom && call["type"] == "custom" { "custom" } else { "function" };
        self.demand(call["type"] == kind, at, "a call of another type");
        let name = call[kind]["name"].as_str().unwrap_or_default();
        self.demand(is_name(name, self.strictness.name_length), at, &format!("the name {name:?}"));
        if kind == "custom" {
            self.demand(call["custom"]["input"].is_string(), at, "the input is no text");
            return id;
        }
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
        let parsed: Result<Value, _> = serde_json::from_str(arguments);
        self.demand(parsed.is_ok_and(|value| value.is_object()), at, &format!("the arguments {arguments:?}"));
        id
    }

    fn content(&mut self, content: &Value, at: usize) {
        match content {
            Value::String(text) => {
                self.demand(!(text.is_empty() && self.strictness.no_empty_text), at, "an empty text");
            }
            Value::Array(parts) => {
                self.demand(!parts.is_empty(), at, "no parts");
                for part in parts {
                    self.part(part, at);
                }
            }
            _ => self.demand(false, at, "content is neither text nor parts"),
        }
    }

    fn part(&mut self, part: &Value, at: usize) {
        let good = match part["type"].as_str().unwrap_or_default() {
            "text" => {
                let text = part["text"].as_str();
                text.is_some_and(|text| !(text.is_empty() && self.strictness.no_empty_text))
            }
            "image_url" => part["image_url"]["url"].is_string(),
            "video_url" => part["video_url"]["url"].is_string(),
            "input_audio" => part["input_audio"].is_object(),
            "file" => part["file"]["file_data"].is_string(),
            _ => false,
        };
        self.demand(good, at, &format!("the part {part}"));
    }

    fn tools(&mut self, body: &Value) {
        let mut names = BTreeSet::new();
        for tool in body["tools"].as_array().into_iter().flatten() {
            let function = &tool["function"];
            if tool["type"] != "function" {
                continue;
            }
            let name = function["name"].as_str().unwrap_or_default();
            let fine = is_name(name, self.strictness.name_length) && names.insert(name.to_owned());
            let parameters = &function["parameters"];
            let object = parameters["type"] == "object" && parameters["properties"].is_object();
            if !(fine && object) {
                self.problems.push(format!("tools: {tool}"));
            }
        }
        let choice = body["tool_choice"]["function"]["name"].as_str();
        if choice.is_some_and(|name| !names.contains(name)) {
            self.problems.push(format!("tool_choice: {}", body["tool_choice"]));
        }
    }
}

fn is_name(name: &str, length: usize) -> bool {
    let safe = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=length).contains(&name.len()) && name.chars().all(safe)
}

#[cfg(test)]
mod tests;
