//! A long session of Codex, request by request, in the shapes that its recorded traffic has: the whole history each time,
//! developer messages and notices in the middle of it, tool loops with parallel calls, images, tools that come late.

use serde_json::{Value, json};

/// The way in which Codex offers its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// All in `tools`, as for models that Codex does not know.
    Listed,
    /// Some are found by a search, in the middle of the session.
    Searched,
    /// All in an item of the input, and more of them in a later one.
    Additional,
}

impl Offer {
    pub const ALL: [Self; 3] = [Self::Listed, Self::Searched, Self::Additional];
}

/// The requests of a session with so many turns of its user. `sealed` makes the `encrypted_content` of a thought.
pub fn codex_session(turns: usize, offer: Offer, sealed: &dyn Fn(&str) -> String) -> Vec<Value> {
    let mut session = Session { offer, sealed, history: opening(offer), requests: Vec::new(), calls: 0 };
    for turn in 1..=turns {
        session.turn(turn);
    }
    session.requests
}

struct Session<'s> {
    offer: Offer,
    sealed: &'s dyn Fn(&str) -> String,
    history: Vec<Value>,
    requests: Vec<Value>,
    calls: usize,
}

impl Session<'_> {
    fn turn(&mut self, turn: usize) {
        if turn.is_multiple_of(7) {
            self.say("developer", &format!("<collaboration_mode>{}</collaboration_mode>", prose(turn, 60)));
        }
        if turn.is_multiple_of(9) {
            self.say("user", &environment(turn));
        }
        if turn == 25 && self.offer == Offer::Additional {
            let tools = json!([namespace("mcp__late", "Late tools.", &["first", "second"])]);
            self.history.push(json!({"type": "additional_tools", "id": "at_2", "role": "developer", "tools": tools}));
        }
        self.prompt(turn);
        if turn.is_multiple_of(13) {
            // The user stopped it before anything was said, and goes on.
            self.ask();
            self.say("user", "<turn_aborted>\nThe user interrupted the previous turn on purpose.\n</turn_aborted>");
            self.prompt(turn + 1000);
        }
        for round in 0..turn % 4 {
            self.ask();
            self.think(turn, round);
            self.work(turn, round);
            if turn.is_multiple_of(8) && round == 1 {
                self.say("user", &format!("Also: {}", prose(turn, 12)));
            }
        }
        self.ask();
        self.think(turn, 9);
        self.history
            .push(json!({"type": "message", "id": format!("msg_{turn}"), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": prose(turn * 31, 80), "annotations": [], "logprobs": []}]}));
    }

    /// What is sent now.
    fn ask(&mut self) {
        let mut request = json!({
            "model": "m", "stream": true, "input": self.history, "tool_choice": "auto",
            "parallel_tool_calls": self.offer != Offer::Additional, "reasoning": {"effort": "medium", "summary": "auto"},
            "store": false, "include": ["reasoning.encrypted_content"], "prompt_cache_key": "019a-session",
            "client_metadata": {"turn_id": self.requests.len().to_string()},
        });
        if self.offer != Offer::Additional {
            request["tools"] = tools(self.offer);
        }
        self.requests.push(request);
    }

    fn say(&mut self, role: &str, text: &str) {
        self.history.push(message(role, text));
    }

    fn prompt(&mut self, turn: usize) {
        let mut content = vec![json!({"type": "input_text", "text": format!("Step {turn}: {}", prose(turn, 30))})];
        if turn.is_multiple_of(5) {
            content.push(json!({"type": "input_text", "text": "<image name=[Image #1] path=\"a.png\">"}));
            content.push(json!({"type": "input_image", "image_url": image(turn), "detail": "high"}));
            content.push(json!({"type": "input_text", "text": "</image>"}));
        }
        self.history.push(json!({"type": "message", "role": "user", "content": content}));
    }

    fn think(&mut self, turn: usize, round: usize) {
        let thought = prose(turn * 10 + round, 25);
        self.history
            .push(json!({"type": "reasoning", "id": format!("rs_{turn}_{round}"), "summary": [], "content": null,
            "encrypted_content": (self.sealed)(&thought)}));
    }

    /// Calls of one answer, then other items of it, then all outputs: the order in which Codex has them.
    fn work(&mut self, turn: usize, round: usize) {
        if round == 0 {
            self.history.push(json!({"type": "message", "role": "assistant", "phase": "commentary",
                "content": [{"type": "output_text", "text": prose(turn + 7, 15)}]}));
        }
        if self.offer == Offer::Searched && round == 0 && [9, 22, 33].contains(&turn) {
            return self.search(turn);
        }
        let mut outputs = Vec::new();
        for nth in 0..=(turn + round) % 3 {
            let id = self.new_id();
            let (call, output) = match (turn + nth) % 6 {
                0 if self.offer == Offer::Listed => (
                    json!({"type": "function_call", "call_id": id, "namespace": "mcp__demo", "name": "add", "arguments": "{\"a\": 2}"}),
                    json!([{"type": "input_text", "text": "Wall time: 0.01 seconds\nOutput:"}, {"type": "input_text", "text": "42"}]),
                ),
                1 => (
                    json!({"type": "function_call", "call_id": id, "name": "view_image", "arguments": "{\"path\":\"a.png\"}"}),
                    json!([{"type": "input_image", "image_url": image(turn + nth), "detail": "high"}]),
                ),
                2 if self.offer != Offer::Listed => (
                    json!({"type": "custom_tool_call", "call_id": id, "name": "exec", "input": format!("text({turn});\n")}),
                    json!(prose(turn * 3, 50)),
                ),
                _ => (
                    json!({"type": "function_call", "call_id": id, "name": "exec_command",
                        "arguments": json!({"cmd": format!("sed -n '{turn},+80p' src/part_{round}.rs")}).to_string()}),
                    json!(format!(
                        "Chunk ID: {turn}\nProcess exited with code 0\nOutput:\n{}",
                        prose(turn * 7 + nth, 50)
                    )),
                ),
            };
            let is_custom = call["type"] == "custom_tool_call";
            let kind = if is_custom { "custom_tool_call_output" } else { "function_call_output" };
            outputs.push(json!({"type": kind, "call_id": id, "output": output}));
            if is_custom && round == 0 {
                outputs.push(json!({"type": kind, "call_id": id, "name": "exec", "output": "a notice while it ran"}));
            }
            self.history.push(call);
        }
        if turn.is_multiple_of(11) {
            self.history.push(json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}}));
        }
        self.history.extend(outputs);
        if turn.is_multiple_of(15) && round == 1 {
            // A script that goes on in the background tells of it after the model has said something else.
            let last = self.history.iter().rev().find(|item| item["type"] == "custom_tool_call");
            if let Some(id) = last.map(|call| call["call_id"].clone()) {
                self.ask();
                self.think(turn, 5);
                self.say("assistant", "I wait for it.");
                self.history.push(json!({"type": "custom_tool_call_output", "call_id": id, "name": "exec", "output": "a notice after that"}));
            }
        }
    }

    /// Tools that were there before may be found again, in another order.
    fn search(&mut self, turn: usize) {
        let id = self.new_id();
        let found = match turn {
            9 => json!([namespace("mcp__demo", "Demo arithmetic tools.", &["add", "multiply"])]),
            22 => json!([namespace("mcp__demo", "Demo arithmetic tools.", &["divide", "add"])]),
            _ => json!([
                namespace("mcp__files", "Files.", &["list"]),
                namespace("mcp__demo", "Demo arithmetic tools.", &["multiply"])
            ]),
        };
        self.history
            .push(json!({"type": "tool_search_call", "call_id": id, "status": "completed", "execution": "client",
            "arguments": {"query": "tools", "limit": 4}}));
        self.history
            .push(json!({"type": "tool_search_output", "call_id": id, "status": "completed", "execution": "client",
            "tools": found}));
    }

    fn new_id(&mut self) -> String {
        self.calls += 1;
        format!("call_{:024x}", self.calls)
    }
}

fn opening(offer: Offer) -> Vec<Value> {
    let mut items = Vec::new();
    if offer == Offer::Additional {
        let tools = json!([
            {"type": "namespace", "name": "functions", "description": "", "tools": [
                {"type": "custom", "name": "exec", "description": prose(1, 300), "format": {"type": "text"}},
                function("wait", 60), function("exec_command", 120), function("view_image", 40)]},
            namespace("collaboration", "Agents.", &["spawn_agent", "send_message", "wait_agent"]),
        ]);
        items.push(json!({"type": "additional_tools", "id": "at_1", "role": "developer", "tools": tools}));
    }
    items.push(message("developer", &format!("You are a coding agent. {}", prose(2, 700))));
    items.push(message("developer", &format!("<skills_instructions>\n{}\n</skills_instructions>", prose(3, 100))));
    items.push(message(
        "user",
        &format!("# AGENTS instructions for /workspace\n\n<INSTRUCTIONS>\n{}</INSTRUCTIONS>", prose(4, 80)),
    ));
    items.push(message("user", &environment(0)));
    items
}

fn tools(offer: Offer) -> Value {
    let mut tools: Vec<Value> =
        ["exec_command", "write_stdin", "request_user_input", "view_image", "get_goal", "create_goal"]
            .iter()
            .map(|name| function(name, 40))
            .collect();
    tools.push(namespace("multi_agent_v1", "Agents.", &["spawn_agent", "send_input", "wait", "close_agent"]));
    if offer == Offer::Searched {
        tools.push(json!({"type": "custom", "name": "exec", "description": prose(5, 60), "format": {"type": "text"}}));
        tools.push(json!({"type": "tool_search", "execution": "client", "description": "# Tool discovery",
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}}));
    } else {
        tools.push(namespace("mcp__demo", "Demo arithmetic tools.", &["add", "multiply"]));
    }
    tools.push(json!({"type": "web_search", "external_web_access": false}));
    tools.into()
}

fn function(name: &str, words: usize) -> Value {
    json!({"type": "function", "name": name, "description": prose(name.len(), words), "strict": false, "parameters": {
        "type": "object", "properties": {"cmd": {"type": "string", "description": prose(6, 12)}, "limit": {"type": "number"}},
        "required": ["cmd"], "additionalProperties": false}})
}

fn namespace(name: &str, description: &str, tools: &[&str]) -> Value {
    let tools: Vec<Value> = tools.iter().map(|name| function(name, 30)).collect();
    json!({"type": "namespace", "name": name, "description": description, "tools": tools})
}

fn message(role: &str, text: &str) -> Value {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
}

fn environment(turn: usize) -> String {
    format!("<environment_context>\n  <cwd>/workspace/{turn}</cwd>\n  <shell>bash</shell>\n</environment_context>")
}

fn image(number: usize) -> String {
    format!("data:image/png;base64,iVBORw0KGgo{}", format!("{number:04x}").repeat(50))
}

/// Words that differ with the number, and are the same every time.
fn prose(number: usize, words: usize) -> String {
    const WORDS: [&str; 16] = [
        "read",
        "the",
        "file",
        "and",
        "run",
        "tests",
        "before",
        "\"you\"",
        "change",
        "anything",
        "in",
        "src/main.rs",
        "then",
        "report\n",
        "what",
        "failed.",
    ];
    let mut state = number.wrapping_mul(0x9E37_79B9).wrapping_add(0x7F4A_7C15);
    let word = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        WORDS[(state >> 33) % WORDS.len()]
    };
    (0..words).map(word).collect::<Vec<_>>().join(" ")
}
