//! What native servers leave out, and how it is mended.

use bridge::{AnswerDialect, AnswerWire, End, EofTolerance, Events, ItemIds, NativeContext};
use serde_json::{Value, json};

use super::{call, check, completed, event, message, native, read};
use crate::run::{OTHER_FORMS, Run};

fn delta(text: &str) -> Value {
    event("output_text.delta", json!({"item_id": "m1", "delta": text}))
}

/// Everything that an answer of one text must have.
const TEXT: &[&str] = &[
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
];

#[test]
fn a_text_is_whole_whatever_is_left_out() {
    let added = event("output_item.added", json!({"item": {"type": "message", "id": "m1", "content": []}}));
    let part = json!({"type": "output_text", "text": "Hello"});
    let text_done = event("output_text.done", json!({"item_id": "m1", "text": "Hello"}));
    let part_done = event("content_part.done", json!({"item_id": "m1", "content_index": 0, "part": part}));
    let done = event("output_item.done", json!({"item": message("Hello")}));
    let cases: Vec<Vec<Value>> = vec![
        vec![added.clone(), delta("Hello"), text_done.clone(), part_done.clone(), done.clone(), completed(&json!([]))],
        // Only deltas, and the end.
        vec![delta("Hello"), completed(&json!([]))],
        // No deltas at all.
        vec![added.clone(), done.clone(), completed(&json!([message("Hello")]))],
        vec![done.clone(), completed(&json!([]))],
        vec![added.clone(), text_done.clone(), completed(&json!([]))],
        vec![added.clone(), part_done.clone(), done.clone(), completed(&json!([message("Hello")]))],
        // Nothing but the object.
        vec![completed(&json!([message("Hello")]))],
        // Said twice.
        vec![
            added.clone(),
            delta("Hello"),
            done.clone(),
            done,
            text_done,
            part_done,
            completed(&json!([message("Hello")])),
        ],
        // Ids that change on the way, places that do not.
        vec![
            event("output_item.added", json!({"output_index": 0, "item": {"type": "message", "id": "x1"}})),
            event("output_text.delta", json!({"output_index": 0, "item_id": "x2", "delta": "Hello"})),
            event("output_item.done", json!({"output_index": 0, "item": message("Hello")})),
            completed(&json!([message("Hello")])),
        ],
    ];
    for events in cases {
        let ran = read(&events);
        assert_eq!(ran.stream.types(), TEXT, "{events:?}");
        assert_eq!((ran.stream.text.as_str(), &ran.stream.response["status"]), ("Hello", &json!("completed")));
        assert_eq!(ran.stream.response["usage"]["total_tokens"], 7);
    }
}

#[test]
fn the_rest_of_a_text_that_came_in_part_follows() {
    let ran =
        read(&[delta("Hel"), event("output_item.done", json!({"item": message("Hello")})), completed(&json!([]))]);
    assert_eq!(ran.stream.text, "Hello");
    let ran =
        read(&[delta("Hel"), event("output_item.done", json!({"item": message("Other")})), completed(&json!([]))]);
    assert_eq!(ran.stream.text, "Hel");
    assert!(ran.notes.iter().any(|note| note.message.contains("differs")), "{:?}", ran.notes);
}

#[test]
fn items_that_overlap_come_one_after_the_other() {
    let added = |id: &str| event("output_item.added", json!({"item": call(id, "")}));
    let arguments =
        |id: &str, text: &str| event("function_call_arguments.delta", json!({"item_id": id, "delta": text}));
    let done = |id: &str, text: &str| event("output_item.done", json!({"item": call(id, text)}));
    let ran = read(&[
        added("a"),
        arguments("a", "{\"x\""),
        added("b"),
        arguments("b", "{\"y\""),
        arguments("a", ":1}"),
        arguments("b", ":2}"),
        delta("and so on"),
        done("b", "{\"y\":2}"),
        done("a", "{\"x\":1}"),
        completed(&json!([call("a", "{\"x\":1}"), call("b", "{\"y\":2}"), message("and so on")])),
    ]);
    let output = ran.stream.response["output"].as_array().unwrap();
    let calls: Vec<&Value> = output.iter().map(|item| &item["call_id"]).collect();
    assert_eq!(calls, [&json!("call_a"), &json!("call_b"), &json!(null)]);
    assert_eq!((&output[1]["arguments"], ran.stream.text.as_str()), (&json!("{\"y\":2}"), "and so on"));
}

#[test]
fn calls_of_all_kinds() {
    let custom = json!({
        "type": "custom_tool_call", "id": "c1", "call_id": "call_c", "name": "patch", "input": "*** Begin",
        "namespace": "ns", "status": "completed",
    });
    let ran = read(&[
        event(
            "output_item.added",
            json!({"item": {"type": "custom_tool_call", "id": "c1", "call_id": "call_c", "name": "patch", "namespace": "ns", "input": ""}}),
        ),
        event("custom_tool_call_input.delta", json!({"item_id": "c1", "delta": "*** B"})),
        event("custom_tool_call_input.done", json!({"item_id": "c1", "input": "*** Begin"})),
        event("output_item.done", json!({"item": custom})),
        // Arguments as JSON, none at all, and a name that comes late.
        event(
            "output_item.done",
            json!({"item": {"type": "function_call", "id": "f1", "call_id": "k", "name": "f", "arguments": {"a": 1}}}),
        ),
        event("output_item.done", json!({"item": {"type": "function_call", "id": "f2", "name": "f"}})),
        event("function_call_arguments.delta", json!({"item_id": "f3", "delta": "{}"})),
        event("function_call_arguments.done", json!({"item_id": "f3", "name": "late", "arguments": "{}"})),
        event("output_item.done", json!({"item": {"type": "function_call", "id": "f4", "arguments": "{}"}})),
        completed(&json!([])),
    ]);
    let output = ran.stream.response["output"].as_array().unwrap();
    let field = |name: &str| output.iter().map(|item| item[name].clone()).collect::<Vec<_>>();
    assert_eq!(field("name"), ["patch", "f", "f", "late"]);
    assert_eq!((&output[0]["input"], &output[0]["namespace"]), (&json!("*** Begin"), &json!("ns")));
    assert_eq!(field("arguments")[1..], ["{\"a\": 1}".replace(' ', ""), "{}".into(), "{}".into()]);
    assert!(output[2]["call_id"].as_str().unwrap().starts_with("call_"));
    assert!(ran.notes.iter().any(|note| note.message.contains("without a name")), "{:?}", ran.notes);
}

#[test]
fn hosted_items_pass_under_our_ids() {
    let search = |status: &str| json!({"type": "web_search_call", "id": "ws_1", "status": status, "action": {"type": "search", "query": "q", "queries": ["q"]}});
    let place = json!({"item_id": "ws_1", "output_index": 0, "sequence_number": 9});
    let annotation =
        json!({"type": "url_citation", "url": "https://a.b", "title": "T", "start_index": 0, "end_index": 1});
    let ran = read(&[
        event("output_item.added", json!({"item": search("in_progress"), "output_index": 0})),
        event("web_search_call.in_progress", place.clone()),
        event("web_search_call.searching", place.clone()),
        event("web_search_call.unheard_of", place.clone()),
        event("web_search_call.completed", place),
        event("output_item.done", json!({"item": search("completed"), "output_index": 0})),
        delta("Hello"),
        event("output_text.annotation.added", json!({"item_id": "m1", "annotation": annotation})),
        completed(&json!([])),
    ]);
    let output = &ran.stream.response["output"];
    assert!(output[0]["id"].as_str().unwrap().starts_with("ws_"), "{output}");
    assert_eq!(output[0]["action"]["query"], "q");
    assert_eq!(output[1]["content"][0]["annotations"], json!([annotation]));
    assert!(ran.stream.types().contains(&"response.web_search_call.searching"));
    assert!(ran.notes.iter().any(|note| note.message.contains("unheard_of")), "{:?}", ran.notes);
}

#[test]
fn reasoning_is_sealed_with_what_the_far_side_needs() {
    let item = json!({
        "type": "reasoning", "id": "rs_up", "encrypted_content": "gAAA", "summary": [{"type": "summary_text", "text": "hm"}],
        "content": [{"type": "reasoning_text", "text": "raw"}],
    });
    let ran = read(&[
        event("output_item.added", json!({"item": {"type": "reasoning", "id": "rs_up", "summary": []}})),
        event(
            "reasoning_summary_part.added",
            json!({"item_id": "rs_up", "summary_index": 0, "part": {"type": "summary_text", "text": ""}}),
        ),
        event("reasoning_summary_text.delta", json!({"item_id": "rs_up", "summary_index": 0, "delta": "hm"})),
        event("reasoning.delta", json!({"item_id": "rs_up", "content_index": 0, "delta": "raw"})),
        event("output_item.done", json!({"item": item})),
        // Encrypted only.
        event(
            "output_item.done",
            json!({"item": {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "gBBB"}}),
        ),
        // Nothing at all.
        event("output_item.done", json!({"item": {"type": "reasoning", "id": "rs_3", "summary": []}})),
        delta("Hello"),
        completed(&json!([])),
    ]);
    let output = ran.stream.response["output"].as_array().unwrap();
    assert_eq!(output.len(), 3, "{output:?}");
    let sealed: Value =
        serde_json::from_str(output[0]["encrypted_content"].as_str().unwrap().strip_prefix("glass:").unwrap()).unwrap();
    assert_eq!(sealed["native"], json!({"id": "rs_up", "content": "gAAA"}));
    assert_eq!((&sealed["text"], &output[0]["summary"][0]["text"]), (&json!("raw"), &json!("hm")));
    assert!(output[1]["encrypted_content"].as_str().unwrap().contains("gBBB"));
}

#[test]
fn ids_are_theirs_where_the_spec_says_so() {
    let mut run = native();
    run.context.wire = AnswerWire::Responses(NativeContext { item_ids: ItemIds::Theirs, silent_limit: None });
    let odd = json!({"type": "function_call", "id": "bad id", "call_id": "k2", "name": "f", "arguments": "{}"});
    let events: Vec<String> = [
        event("output_item.done", json!({"item": call("fc_up", "{}")})),
        completed(&json!([call("fc_up", "{}"), odd])),
    ]
    .iter()
    .map(Value::to_string)
    .collect();
    let ran = check(&run, &events, End::Eof);
    let output = &ran.stream.response["output"];
    assert_eq!(output[0]["id"], "fc_up");
    assert!(output[1]["id"].as_str().unwrap().starts_with("fc_"), "{output}");
    assert!(ran.stream.response["id"].as_str().unwrap().starts_with("resp_"));
}

/// Events, how the body ends, the tolerance: status, `error.code` or the reason.
#[test]
fn endings() {
    let whole = |status: &str, more: Value| {
        let mut response = json!({"object": "response", "status": status, "output": [message("Hello")], "usage": null});
        for (name, value) in more.as_object().unwrap() {
            response[name] = value.clone();
        }
        response
    };
    let error = json!({"code": "rate_limit_exceeded", "message": "slow down"});
    let cut = json!({"incomplete_details": {"reason": "max_output_tokens"}});
    let rows: Vec<(Vec<Value>, EofTolerance, &str, &str)> = vec![
        (vec![delta("Hello")], EofTolerance::Never, "failed", "server_error"),
        (vec![delta("Hello")], EofTolerance::Any, "completed", ""),
        (vec![], EofTolerance::Any, "failed", "server_error"),
        (vec![completed(&json!([]))], EofTolerance::Never, "failed", "server_error"),
        (
            vec![delta("Hello"), event("incomplete", json!({"response": cut}))],
            EofTolerance::Never,
            "incomplete",
            "max_output_tokens",
        ),
        (
            vec![event("completed", json!({"response": whole("incomplete", cut.clone())}))],
            EofTolerance::Never,
            "incomplete",
            "max_output_tokens",
        ),
        (
            vec![whole("incomplete", json!({"incomplete_details": {"reason": "content_filter"}}))],
            EofTolerance::Never,
            "incomplete",
            "content_filter",
        ),
        (vec![whole("failed", json!({"error": error}))], EofTolerance::Never, "failed", "rate_limit_exceeded"),
        (vec![whole("cancelled", json!({}))], EofTolerance::Never, "failed", "server_error"),
        (
            vec![delta("Hel"), event("failed", json!({"response": {"status": "failed", "error": error}}))],
            EofTolerance::Never,
            "failed",
            "rate_limit_exceeded",
        ),
        (
            vec![delta("Hel"), json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow down"})],
            EofTolerance::Never,
            "failed",
            "rate_limit_exceeded",
        ),
        (
            vec![delta("Hel"), json!({"error": {"code": 429, "message": "slow down"}})],
            EofTolerance::Never,
            "failed",
            "rate_limit_exceeded",
        ),
        (vec![json!({"detail": "no"})], EofTolerance::Never, "failed", "server_error"),
        (vec![json!("text")], EofTolerance::Never, "failed", "server_error"),
    ];
    for (events, eof, status, code) in rows {
        let mut run = Run::dialect(AnswerDialect { eof, ..AnswerDialect::default() });
        run.context.wire = native().context.wire;
        let lines: Vec<String> = events.iter().map(Value::to_string).collect();
        let ran = check(&run, &lines, End::Eof);
        let response = &ran.stream.response;
        let found = response["error"]["code"].as_str().or(response["incomplete_details"]["reason"].as_str());
        assert_eq!((response["status"].as_str(), found.unwrap_or_default()), (Some(status), code), "{events:?}");
    }
}

/// `[DONE]` says that nothing more comes, not that the response is whole: that is the terminal event's to say.
#[test]
fn done_is_no_terminal_event() {
    let item = event("output_item.done", json!({"item": message("Hello")}));
    let call = event("output_item.done", json!({"item": call("a", "{}")}));
    let begun = event("output_item.added", json!({"item": super::call("a", "")}));
    let odd = |members: Value| vec![delta("Hello"), members];
    for (events, status, code) in [
        (vec![delta("Hello")], "failed", "server_error"),
        (vec![delta("Hello"), item], "failed", "server_error"),
        (vec![call], "failed", "server_error"),
        (vec![begun], "failed", "server_error"),
        // Errors in shapes of their own.
        (odd(json!({"type": "rate_limit_error", "message": "slow down"})), "failed", "rate_limit_exceeded"),
        (odd(json!({"type": "invalid", "code": 429})), "failed", "rate_limit_exceeded"),
        (odd(json!({"code": "rate_limit_exceeded"})), "failed", "rate_limit_exceeded"),
        (odd(json!({"message": "Overloaded", "status": 503})), "failed", "server_is_overloaded"),
        (vec![delta("Hello"), completed(&json!([]))], "completed", ""),
        (vec![delta("Hello"), json!({"type": "keepalive"}), completed(&json!([]))], "completed", ""),
    ] {
        let mut lines: Vec<String> = events.iter().map(Value::to_string).collect();
        lines.push("[DONE]".to_owned());
        let response = check(&native(), &lines, End::Eof).stream.response;
        let found = response["error"]["code"].as_str().unwrap_or_default();
        assert_eq!((response["status"].as_str(), found), (Some(status), code), "{events:?}");
    }
}

#[test]
fn a_limit_that_is_reached_in_silence_is_noticed() {
    let mut run = native();
    for (limit, status) in [(Some(2), "incomplete"), (Some(3), "completed"), (None, "completed")] {
        run.context.wire = AnswerWire::Responses(NativeContext { item_ids: ItemIds::Ours, silent_limit: limit });
        let lines = [completed(&json!([message("Hello")])).to_string()];
        assert_eq!(check(&run, &lines, End::Eof).stream.response["status"], status, "{limit:?}");
    }
    // An item that says so itself is believed.
    let mut item = message("Hel");
    item["status"] = json!("incomplete");
    assert_eq!(read(&[completed(&json!([item]))]).stream.response["status"], "incomplete");
}

#[test]
fn what_was_promised_to_be_json_is_checked() {
    let mut run = native();
    run.context.output = bridge::OutputContract::JsonObject;
    for (text, status) in [("{\"a\":1}", "completed"), ("Sure!", "failed")] {
        for events in [vec![completed(&json!([message(text)]))], vec![delta(text), completed(&json!([message(text)]))]]
        {
            let lines: Vec<String> = events.iter().map(Value::to_string).collect();
            assert_eq!(check(&run, &lines, End::Eof).stream.response["status"], status, "{text}");
        }
    }
}

#[test]
fn json_that_is_too_deep_for_us_is_left_out() {
    let deep = format!("{}{}", "[".repeat(126), "]".repeat(126));
    let item = format!(r#"{{"type":"web_search_call","id":"w","status":"completed","action":{deep}}}"#);
    let line = format!(r#"{{"object":"response","status":"completed","output":[{item},{}]}}"#, message("Hello"));
    let (_, object, notes) = native().play(Events::silent(), &[line], End::Eof);
    let object: Value = serde_json::from_slice(&object).unwrap();
    assert_eq!(object["output"].as_array().unwrap().len(), 1);
    assert!(notes.iter().any(|note| note.message.contains("cannot be read")), "{notes:?}");
}

/// Whatever tells of it: deltas, the end of the part, the whole item.
#[test]
fn a_refusal_is_text_for_a_client_that_leaves_refusals_out() {
    let part = json!({"type": "refusal", "refusal": "no"});
    let item = json!({"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [part]});
    let said = event("refusal.delta", json!({"item_id": "m1", "content_index": 0, "delta": "no"}));
    let text_done = event("refusal.done", json!({"item_id": "m1", "content_index": 0, "refusal": "no"}));
    let part_done = event("content_part.done", json!({"item_id": "m1", "content_index": 0, "part": part}));
    let done = event("output_item.done", json!({"item": item}));
    for events in [
        vec![said.clone(), text_done.clone(), part_done.clone(), done.clone(), completed(&json!([item]))],
        vec![text_done, completed(&json!([]))],
        vec![part_done, completed(&json!([]))],
        vec![said, done, completed(&json!([]))],
        vec![completed(&json!([item]))],
    ] {
        let events: Vec<String> = events.iter().map(Value::to_string).collect();
        for (forms, kind, noted) in [(bridge::ClientForms::EXACT, "refusal", false), (OTHER_FORMS, "output_text", true)]
        {
            let ran = check(&Run { forms, ..native() }, &events, End::Eof);
            let content = &ran.stream.response["output"][0]["content"];
            assert_eq!((content.as_array().unwrap().len(), &content[0]["type"]), (1, &json!(kind)), "{events:?}");
            assert_eq!(ran.notes.iter().any(|note| note.path == "output"), noted, "{:?}", ran.notes);
        }
    }
}

#[test]
fn a_phase_that_the_api_does_not_have_is_left_out() {
    for (phase, expected) in [
        (json!("commentary"), json!("commentary")),
        (json!("final_answer"), json!("final_answer")),
        (json!("thinking"), Value::Null),
        (json!(7), Value::Null),
    ] {
        let mut item = message("Hello");
        item["phase"] = phase;
        let ran = read(&[event("output_item.done", json!({"item": item})), completed(&json!([]))]);
        assert_eq!(ran.stream.response["output"][0]["phase"], expected);
    }
}
