//! Ways to break a stream. In "text" the events are: 0 created, 1 in progress, 2 item added, 3 part added,
//! 4 and 5 deltas, 6 text done, 7 part done, 8 item done, 9 completed. In "mcp call" they are: 2 item added, 3 in progress,
//! 4 and 5 deltas, 6 arguments done, 7 completed, 8 item done; in "list" and "web search" 3 is in progress, and what
//! follows is one event each.

use serde_json::{Value, json};

type Mutation = fn(&mut Vec<Value>);

/// What is broken, the good stream it starts from, how.
pub(crate) const EVENTS: &[(&str, &str, Mutation)] = &[
    ("created is not first", "text", |e| drop(e.remove(0))),
    ("created twice", "text", |e| e.insert(1, e[0].clone())),
    ("no in_progress", "text", |e| drop(e.remove(1))),
    ("item before in_progress", "text", |e| e.swap(1, 2)),
    ("sequence gap", "text", |e| e[4]["sequence_number"] = json!(-1)),
    ("created carries output", "text", |e| e[0]["response"]["output"] = json!([{}])),
    ("created carries usage", "text", |e| e[0]["response"]["usage"] = json!({})),
    ("created has a wrong status", "text", |e| e[0]["response"]["status"] = json!("completed")),
    ("heartbeat with output", "text", |e| e[1]["response"]["output"] = json!([{}])),
    ("response id changes", "text", |e| e[9]["response"]["id"] = json!("resp_2")),
    ("created_at changes", "text", |e| e[9]["response"]["created_at"] = json!(9)),
    ("item not added", "text", |e| drop(e.remove(2))),
    ("item added without id", "text", |e| drop(e[2]["item"].as_object_mut().unwrap().remove("id"))),
    ("item added as completed", "text", |e| e[2]["item"]["status"] = json!("completed")),
    ("item added with content", "text", |e| e[2]["item"]["content"] = json!([{}])),
    ("wrong output_index", "text", |e| e[2]["output_index"] = json!(1)),
    ("delta of another index", "text", |e| e[4]["output_index"] = json!(1)),
    ("delta of another item", "text", |e| e[4]["item_id"] = json!("msg_9")),
    ("delta without item_id", "text", |e| drop(e[4].as_object_mut().unwrap().remove("item_id"))),
    ("delta of another part", "text", |e| e[4]["content_index"] = json!(1)),
    ("two open items", "reasoning", |e| e.swap(7, 8)),
    ("an id used twice", "reasoning", |e| rename(e, "msg_1", "rs_1")),
    ("part not added", "text", |e| drop(e.remove(3))),
    ("part of a wrong type", "text", |e| e[3]["part"]["type"] = json!("reasoning_text")),
    ("part added with text", "text", |e| e[3]["part"]["text"] = json!("H")),
    ("part without annotations", "text", |e| drop(e[3]["part"].as_object_mut().unwrap().remove("annotations"))),
    ("delta lost", "text", |e| drop(e.remove(4))),
    ("deltas swapped", "text", |e| e.swap(4, 5)),
    ("text done differs", "text", |e| e[6]["text"] = json!("Hullo")),
    ("no text done", "text", |e| drop(e.remove(6))),
    ("text done twice", "text", |e| e.insert(6, e[6].clone())),
    ("delta after text done", "text", |e| e.swap(5, 6)),
    ("part done differs", "text", |e| e[7]["part"]["text"] = json!("Hullo")),
    ("part done without logprobs", "text", |e| drop(e[7]["part"].as_object_mut().unwrap().remove("logprobs"))),
    ("part not closed", "text", |e| drop(e.remove(7))),
    ("item not closed", "text", |e| drop(e.remove(8))),
    ("item closed twice", "text", |e| e.insert(8, e[8].clone())),
    ("item id changes", "text", |e| e[8]["item"]["id"] = json!("msg_9")),
    ("item type changes", "text", |e| e[8]["item"]["type"] = json!("reasoning")),
    ("item content differs", "text", |e| e[8]["item"]["content"][0]["text"] = json!("Hullo")),
    ("item done without status", "text", |e| drop(e[8]["item"].as_object_mut().unwrap().remove("status"))),
    ("completed with an incomplete item", "text", |e| {
        e[8]["item"]["status"] = json!("incomplete");
        e[9]["response"]["output"][0]["status"] = json!("incomplete");
    }),
    ("no terminal event", "text", |e| drop(e.pop())),
    ("two terminal events", "text", |e| e.push(e[9].clone())),
    ("event after the end", "text", |e| e.push(e[1].clone())),
    ("terminal output empty", "text", |e| e[9]["response"]["output"] = json!([])),
    ("terminal output differs", "text", |e| e[9]["response"]["output"][0]["content"][0]["text"] = json!("Hullo")),
    ("terminal status of another event", "text", |e| e[9]["response"]["status"] = json!("incomplete")),
    ("completed with an error", "text", |e| e[9]["response"]["error"] = json!({"code": "x", "message": "y"})),
    ("completed_at is null", "text", |e| e[9]["response"]["completed_at"] = json!(null)),
    ("completed_at is a float", "text", |e| e[9]["response"]["completed_at"] = json!(8.5)),
    ("incomplete without details", "incomplete", |e| last(e)["incomplete_details"] = json!(null)),
    ("incomplete with completed_at", "incomplete", |e| last(e)["completed_at"] = json!(8)),
    ("queued is left out", "queued", |e| drop(e.remove(1))),
    ("queued twice", "queued", |e| e.insert(1, e[1].clone())),
    ("queued after in_progress", "queued", |e| e.swap(1, 2)),
    ("queued though created in progress", "queued", |e| e[0]["response"]["status"] = json!("in_progress")),
    ("never started", "queued", |e| drop(e.remove(2))),
    ("completed out of the queue", "queued", |e| drop(e.drain(2..e.len() - 1))),
    ("cancelled with an error", "cancelled", |e| last(e)["error"] = json!({"code": "x", "message": "y"})),
    ("cancelled with completed_at", "cancelled", |e| last(e)["completed_at"] = json!(8)),
    ("cancelled after an error event", "failed", |e| {
        last(e)["status"] = json!("cancelled");
        last(e)["error"] = json!(null);
    }),
    ("cancelled by an event of that name", "cancelled", |e| {
        let at = e.len() - 1;
        e[at]["type"] = json!("response.cancelled");
    }),
    ("failed without error event", "failed", |e| drop(e.remove(e.len() - 2))),
    ("failed without error", "failed", |e| last(e)["error"] = json!(null)),
    ("error event not directly before", "failed", |e| e.insert(e.len() - 1, e[1].clone())),
    ("error event then completed", "text", |e| {
        e.insert(
            9,
            json!({"type": "error", "code": "c", "message": "m", "param": null,
            "error": {"type": "t", "code": "c", "message": "m", "param": null}}),
        );
    }),
    ("flat error only", "failed", |e| drop(before_last(e).remove("error"))),
    ("nested error only", "failed", |e| drop(before_last(e).remove("message"))),
    ("arguments differ", "calls", |e| e[5]["arguments"] = json!("{}")),
    ("arguments done without name", "calls", |e| drop(e[5].as_object_mut().unwrap().remove("name"))),
    ("no arguments done", "calls", |e| drop(e.remove(5))),
    ("call_id changes", "calls", |e| e[6]["item"]["call_id"] = json!("call_9")),
    ("name changes", "calls", |e| e[6]["item"]["name"] = json!("other")),
    ("arguments given in added", "calls", |e| e[2]["item"]["arguments"] = json!("{")),
    ("custom input differs", "calls", |e| e[9]["input"] = json!("y")),
    ("text delta in a call", "calls", |e| e[3]["type"] = json!("response.output_text.delta")),
    ("reasoning without its part", "reasoning", |e| drop(e.remove(3))),
    ("open-responses event name", "reasoning", |e| e[4]["type"] = json!("response.reasoning.delta")),
    ("reasoning content missing in done", "reasoning", |e| e[7]["item"]["content"] = json!([])),
    ("summary part not closed", "summary", |e| drop(e.remove(6))),
    ("summary missing in done", "summary", |e| e[7]["item"]["summary"] = json!([])),
    ("refusal differs", "refusal", |e| e[5]["refusal"] = json!("Yes.")),
    ("parts swapped", "two parts", |e| e[12]["item"]["content"].as_array_mut().unwrap().reverse()),
    ("unknown event", "text", |e| e.insert(4, json!({"type": "keepalive"}))),
    ("event of another hosted tool", "hosted", |e| e[3]["type"] = json!("response.file_search_call.in_progress")),
    ("list with a status", "list", |e| {
        e[2]["item"]["status"] = json!("in_progress");
        e[5]["item"]["status"] = json!("completed");
        last(e)["output"][0]["status"] = json!("completed");
    }),
    ("list announced with its tools", "list", |e| e[2]["item"]["tools"] = e[5]["item"]["tools"].clone()),
    ("list not begun", "list", |e| drop(e.remove(3))),
    ("list not completed", "list", |e| drop(e.remove(4))),
    ("list completed before it begins", "list", |e| e.swap(3, 4)),
    ("list completed twice", "list", |e| e.insert(4, e[4].clone())),
    ("list failed without an error", "list", |e| e[4]["type"] = json!("response.mcp_list_tools.failed")),
    ("list completed with an error", "failed list", |e| e[4]["type"] = json!("response.mcp_list_tools.completed")),
    ("list of another server", "list", |e| done(e, 5, "server_label", json!("other"))),
    ("list with a null error", "list", |e| done(e, 5, "error", Value::Null)),
    ("list with a null description", "list", |e| {
        done(e, 5, "tools", json!([{"name": "t", "input_schema": {}, "description": null}]));
    }),
    ("mcp call announced with its arguments", "mcp call", |e| e[2]["item"]["arguments"] = json!("{\"a\":1}")),
    ("mcp call not begun", "mcp call", |e| drop(e.remove(3))),
    ("mcp arguments before it begins", "mcp call", |e| e.swap(3, 4)),
    ("mcp delta lost", "mcp call", |e| drop(e.remove(4))),
    ("mcp deltas swapped", "mcp call", |e| e.swap(4, 5)),
    ("mcp delta after the arguments are done", "mcp call", |e| e.swap(5, 6)),
    ("mcp arguments not done", "mcp call", |e| drop(e.remove(6))),
    ("mcp arguments differ", "mcp call", |e| done(e, 8, "arguments", json!("{}"))),
    ("mcp call not completed", "mcp call", |e| drop(e.remove(7))),
    ("mcp call completed twice", "mcp call", |e| e.insert(7, e[7].clone())),
    ("mcp call failed as completed", "failed mcp call", |e| e[7]["type"] = json!("response.mcp_call.completed")),
    ("mcp call completed as failed", "mcp call", |e| e[7]["type"] = json!("response.mcp_call.failed")),
    ("mcp call of another tool", "mcp call", |e| done(e, 8, "name", json!("other"))),
    ("mcp call with output and error", "failed mcp call", |e| done(e, 8, "output", json!("x"))),
    ("mcp call for another approval", "mcp call", |e| done(e, 8, "approval_request_id", json!("mcpr_1"))),
    ("mcp event without item_id", "mcp call", |e| drop(e[3].as_object_mut().unwrap().remove("item_id"))),
    ("an incomplete call in a completed response", "mcp call given up", |e| {
        let at = e.len() - 1;
        e[at]["type"] = json!("response.completed");
        last(e)["status"] = json!("completed");
        last(e)["completed_at"] = json!(8);
    }),
    ("search announced with its action", "web search", |e| e[2]["item"]["action"] = json!({"type": "search"})),
    ("search not begun", "web search", |e| drop(e.remove(3))),
    ("nothing searched", "web search", |e| drop(e.remove(4))),
    ("search completed before it searches", "web search", |e| e.swap(4, 5)),
    ("search completed without its event", "web search", |e| drop(e.remove(5))),
    ("search failed by an event", "failed search", |e| {
        e.insert(5, e[4].clone());
        e[5]["type"] = json!("response.web_search_call.failed");
    }),
    ("failed search that completed", "web search", |e| done(e, 6, "status", json!("failed"))),
    ("approval request with a status", "approval", |e| {
        e[2]["item"]["status"] = json!("completed");
        done(e, 3, "status", json!("completed"));
    }),
    ("approval request whose arguments come later", "approval", |e| e[2]["item"]["arguments"] = json!("")),
    ("approval request with an event", "approval", |e| {
        let event = json!({"type": "response.mcp_call.in_progress", "output_index": 0, "item_id": "mcpr_1"});
        e.insert(3, event);
    }),
];

type Rewrite = fn(&str) -> String;

/// Ways to break the framing of "text".
pub(crate) const BYTES: &[(&str, Rewrite)] = &[
    ("CRLF", |s| s.replace('\n', "\r\n")),
    ("no [DONE]", |s| s.replace("data: [DONE]\n\n", "")),
    ("[DONE] twice", |s| format!("{s}data: [DONE]\n\n")),
    ("bytes after [DONE]", |s| format!("{s}: bye\n\n")),
    ("no event line", |s| s.replacen("event: response.created\n", "", 1)),
    ("event line differs from the type", |s| s.replacen("event: response.created", "event: response.queued", 1)),
    ("two data lines", |s| s.replacen("data: {", "data: \ndata: {", 1)),
    ("an id line", |s| s.replacen("data: {", "id: 1\ndata: {", 1)),
    ("no blank line", |s| s.replacen("}\n\n", "}\n", 1)),
    ("a blank line too many", |s| s.replacen("}\n\n", "}\n\n\n", 1)),
    ("broken JSON", |s| s.replacen("data: {", "data: ", 1)),
    ("cut in the middle", |s| s[..s.len() / 2].to_owned()),
];

fn rename(events: &mut [Value], from: &str, to: &str) {
    for event in events {
        *event = serde_json::from_str(&event.to_string().replace(from, to)).unwrap();
    }
}

/// Changes a member of the item at its end, in its event and in the terminal object.
fn done(events: &mut [Value], at: usize, member: &str, value: Value) {
    events[at]["item"][member] = value.clone();
    last(events)["output"][0][member] = value;
}

fn last(events: &mut [Value]) -> &mut Value {
    &mut events.last_mut().unwrap()["response"]
}

fn before_last(events: &mut [Value]) -> &mut serde_json::Map<String, Value> {
    let index = events.len() - 2;
    events[index].as_object_mut().unwrap()
}
