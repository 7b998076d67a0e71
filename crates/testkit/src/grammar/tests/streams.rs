//! Streams that keep the grammar.

#![expect(clippy::needless_pass_by_value, reason = "json! literals read better without a borrow in front of each")]

use serde_json::{Value, json};

/// Name and the events between `in_progress` and the terminal event, with the terminal one's name.
type Good = fn() -> (Vec<Value>, &'static str);

pub(crate) const GOOD: &[(&str, Good)] = &[
    ("empty", || (vec![], "completed")),
    ("text", || (message(0, &["Hel", "lo"]), "completed")),
    ("refusal", || (refusal(), "completed")),
    ("two parts", || (two_parts(), "completed")),
    ("calls", || ([function_call(0), custom_call(1)].concat(), "completed")),
    ("reasoning", || ([reasoning(0), message(1, &["Hi"])].concat(), "completed")),
    ("summary", || ([summary(0), message(1, &["Hi"])].concat(), "completed")),
    ("hosted", || (image(), "completed")),
    ("web search", || (web_search("completed"), "completed")),
    ("failed search", || (web_search("failed"), "completed")),
    ("list", || (list_tools(None), "completed")),
    ("failed list", || ([list_tools(Some("down")), vec![error()]].concat(), "failed")),
    ("mcp call", || (mcp_call("completed"), "completed")),
    ("failed mcp call", || (mcp_call("failed"), "completed")),
    ("mcp call given up", || (mcp_call("incomplete"), "cancelled")),
    ("approval", || (approval(), "completed")),
    ("incomplete", || (cut_short(message(0, &["Hel"])), "incomplete")),
    ("failed", || ([cut_short(message(0, &["Hel"])), vec![error()]].concat(), "failed")),
    ("cancelled", || (cut_short(message(0, &["Hel"])), "cancelled")),
    ("queued", || (message(0, &["Hel", "lo"]), "completed")),
    ("queued, cancelled at once", || (vec![], "cancelled")),
    ("queued, failed at once", || (vec![error()], "failed")),
];

/// The whole stream of this name, sequence numbers set.
pub(crate) fn good(name: &str) -> Vec<Value> {
    let (_, make) = GOOD.iter().find(|(known, _)| *known == name).unwrap();
    let (body, status) = make();
    let output: Vec<Value> =
        body.iter().filter(|e| e["type"] == "response.output_item.done").map(|e| e["item"].clone()).collect();
    let snapshot = json!({"id": "resp_1", "object": "response", "created_at": 7, "status": "in_progress",
        "output": [], "usage": null, "error": null, "incomplete_details": null, "completed_at": null});
    let mut terminal = snapshot.clone();
    terminal["status"] = json!(status);
    terminal["output"] = json!(output);
    match status {
        "completed" => terminal["completed_at"] = json!(8),
        "incomplete" => terminal["incomplete_details"] = json!({"reason": "max_output_tokens"}),
        "cancelled" => {}
        _ => terminal["error"] = json!({"code": "server_error", "message": "gone"}),
    }
    let mut events = vec![
        json!({"type": "response.created", "response": snapshot}),
        json!({"type": "response.in_progress", "response": snapshot}),
    ];
    if name.starts_with("queued") {
        events[0]["response"]["status"] = json!("queued");
        let mut queued = events[0].clone();
        queued["type"] = json!("response.queued");
        events.insert(1, queued);
    }
    if name.ends_with("at once") {
        events.pop();
    }
    events.extend(body);
    let terminal_name = if status == "cancelled" { "failed" } else { status };
    events.push(json!({"type": format!("response.{terminal_name}"), "response": terminal}));
    for (index, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = json!(index);
    }
    events
}

/// The stream as bytes; sequence numbers are set anew, unless an event has a negative one.
pub(crate) fn render(events: &[Value]) -> Vec<u8> {
    let mut sse = String::new();
    for (index, event) in events.iter().enumerate() {
        let mut event = event.clone();
        if event["sequence_number"].as_i64().is_none_or(|number| number >= 0) {
            event["sequence_number"] = json!(index);
        }
        sse.extend(["event: ", event["type"].as_str().unwrap(), "\ndata: ", &event.to_string(), "\n\n"]);
    }
    sse.push_str("data: [DONE]\n\n");
    sse.into_bytes()
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn item_events(index: usize, added: Value, body: Vec<Value>, done: Value) -> Vec<Value> {
    let mut events = vec![json!({"type": "response.output_item.added", "output_index": index, "item": added})];
    events.extend(body.into_iter().map(|mut event| {
        event["output_index"] = json!(index);
        event["item_id"] = added["id"].clone();
        event
    }));
    events.push(json!({"type": "response.output_item.done", "output_index": index, "item": done}));
    events
}

fn text_part(index: usize, deltas: &[&str]) -> Vec<Value> {
    let text = deltas.concat();
    let mut events = vec![json!({"type": "response.content_part.added", "part": output_text("")})];
    events.extend(deltas.iter().map(|d| json!({"type": "response.output_text.delta", "delta": d, "logprobs": []})));
    events.push(json!({"type": "response.output_text.done", "text": text, "logprobs": []}));
    events.push(json!({"type": "response.content_part.done", "part": output_text(&text)}));
    for event in &mut events {
        event["content_index"] = json!(index);
    }
    events
}

fn message_item(index: usize, status: &str, content: Value) -> Value {
    json!({"id": format!("msg_{index}"), "type": "message", "status": status, "role": "assistant", "content": content})
}

fn message(index: usize, deltas: &[&str]) -> Vec<Value> {
    let added = message_item(index, "in_progress", json!([]));
    let done = message_item(index, "completed", json!([output_text(&deltas.concat())]));
    item_events(index, added, text_part(0, deltas), done)
}

fn two_parts() -> Vec<Value> {
    let body = [text_part(0, &["a"]), text_part(1, &["b", "c"])].concat();
    let done = message_item(0, "completed", json!([output_text("a"), output_text("bc")]));
    item_events(0, message_item(0, "in_progress", json!([])), body, done)
}

fn refusal() -> Vec<Value> {
    let part = |text: &str| json!({"type": "refusal", "refusal": text});
    let body = vec![
        json!({"type": "response.content_part.added", "content_index": 0, "part": part("")}),
        json!({"type": "response.refusal.delta", "content_index": 0, "delta": "No."}),
        json!({"type": "response.refusal.done", "content_index": 0, "refusal": "No."}),
        json!({"type": "response.content_part.done", "content_index": 0, "part": part("No.")}),
    ];
    let done = message_item(0, "completed", json!([part("No.")]));
    item_events(0, message_item(0, "in_progress", json!([])), body, done)
}

fn function_call(index: usize) -> Vec<Value> {
    let item = |status: &str, arguments: &str| {
        json!({"id": "fc_1", "type": "function_call", "status": status, "call_id": "call_1",
            "name": "get_weather", "arguments": arguments})
    };
    let body = vec![
        json!({"type": "response.function_call_arguments.delta", "delta": "{\"a\""}),
        json!({"type": "response.function_call_arguments.delta", "delta": ":1}"}),
        json!({"type": "response.function_call_arguments.done", "name": "get_weather", "arguments": "{\"a\":1}"}),
    ];
    item_events(index, item("in_progress", ""), body, item("completed", "{\"a\":1}"))
}

fn custom_call(index: usize) -> Vec<Value> {
    let item = |status: &str, input: &str| {
        json!({"id": "ctc_1", "type": "custom_tool_call", "status": status, "call_id": "call_2",
            "name": "patch", "input": input})
    };
    let body = vec![
        json!({"type": "response.custom_tool_call_input.delta", "delta": "x"}),
        json!({"type": "response.custom_tool_call_input.done", "input": "x"}),
    ];
    item_events(index, item("in_progress", ""), body, item("completed", "x"))
}

fn reasoning(index: usize) -> Vec<Value> {
    let part = |text: &str| json!({"type": "reasoning_text", "text": text});
    let item = |status: &str, content: Value| json!({"id": "rs_1", "type": "reasoning", "status": status, "summary": [], "content": content});
    let mut body = vec![
        json!({"type": "response.content_part.added", "part": part("")}),
        json!({"type": "response.reasoning_text.delta", "delta": "hm"}),
        json!({"type": "response.reasoning_text.done", "text": "hm"}),
        json!({"type": "response.content_part.done", "part": part("hm")}),
    ];
    for event in &mut body {
        event["content_index"] = json!(0);
    }
    item_events(index, item("in_progress", json!([])), body, item("completed", json!([part("hm")])))
}

fn summary(index: usize) -> Vec<Value> {
    let part = |text: &str| json!({"type": "summary_text", "text": text});
    let item =
        |status: &str, summary: Value| json!({"id": "rs_1", "type": "reasoning", "status": status, "summary": summary});
    let mut body = vec![
        json!({"type": "response.reasoning_summary_part.added", "part": part("")}),
        json!({"type": "response.reasoning_summary_text.delta", "delta": "hm"}),
        json!({"type": "response.reasoning_summary_text.done", "text": "hm"}),
        json!({"type": "response.reasoning_summary_part.done", "part": part("hm")}),
    ];
    for event in &mut body {
        event["summary_index"] = json!(0);
    }
    item_events(index, item("in_progress", json!([])), body, item("completed", json!([part("hm")])))
}

fn image() -> Vec<Value> {
    let item = |status: &str| json!({"id": "ig_1", "type": "image_generation_call", "status": status});
    let body = vec![
        json!({"type": "response.image_generation_call.in_progress"}),
        json!({"type": "response.image_generation_call.completed"}),
    ];
    item_events(0, item("in_progress"), body, item("completed"))
}

fn web_search(status: &str) -> Vec<Value> {
    let added = json!({"id": "ws_1", "type": "web_search_call", "status": "in_progress"});
    let mut done = added.clone();
    done["status"] = json!(status);
    done["action"] = json!({"type": "search", "query": "q", "queries": ["q"]});
    let mut steps = vec!["in_progress", "searching"];
    steps.extend((status == "completed").then_some("completed"));
    let body = steps.into_iter().map(|step| json!({"type": format!("response.web_search_call.{step}")}));
    item_events(0, added, body.collect(), done)
}

fn list_tools(error: Option<&str>) -> Vec<Value> {
    let added = json!({"id": "mcpl_1", "type": "mcp_list_tools", "server_label": "s", "tools": []});
    let mut done = added.clone();
    match error {
        Some(error) => done["error"] = json!(error),
        None => done["tools"] = json!([{"name": "t", "input_schema": {}, "annotations": {"read_only": false}}]),
    }
    let body = vec![
        json!({"type": "response.mcp_list_tools.in_progress"}),
        json!({"type": if error.is_some() { "response.mcp_list_tools.failed" } else { "response.mcp_list_tools.completed" }}),
    ];
    item_events(0, added, body, done)
}

fn mcp_call(status: &str) -> Vec<Value> {
    let added = json!({"id": "mcp_1", "type": "mcp_call", "status": "in_progress", "approval_request_id": null,
        "arguments": "", "error": null, "name": "t", "output": null, "server_label": "s"});
    let mut done = added.clone();
    done["status"] = json!(status);
    done["arguments"] = json!("{\"a\":1}");
    match status {
        "completed" => done["output"] = json!("noon"),
        "failed" => done["error"] = json!({"type": "mcp_tool_execution_error", "content": []}),
        _ => {}
    }
    let mut body = vec![
        json!({"type": "response.mcp_call.in_progress"}),
        json!({"type": "response.mcp_call_arguments.delta", "delta": "{\"a\""}),
        json!({"type": "response.mcp_call_arguments.delta", "delta": ":1}"}),
        json!({"type": "response.mcp_call_arguments.done", "arguments": "{\"a\":1}"}),
    ];
    if status != "incomplete" {
        body.push(json!({"type": format!("response.mcp_call.{status}")}));
    }
    item_events(0, added, body, done)
}

fn approval() -> Vec<Value> {
    let item =
        json!({"id": "mcpr_1", "type": "mcp_approval_request", "arguments": "{}", "name": "t", "server_label": "s"});
    item_events(0, item.clone(), vec![], item)
}

fn cut_short(mut events: Vec<Value>) -> Vec<Value> {
    events.last_mut().unwrap()["item"]["status"] = json!("incomplete");
    events
}

fn error() -> Value {
    json!({"type": "error", "code": "server_error", "message": "gone", "param": null,
        "error": {"type": "server_error", "code": "server_error", "message": "gone", "param": null}})
}
