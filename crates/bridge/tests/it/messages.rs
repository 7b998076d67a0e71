//! Upstreams that speak the Messages API: what their blocks become, what returns to them, how their answers end.

mod endings;
mod laws;

use bridge::{AnswerWire, End, OutputContract};
use serde_json::{Value, json};

use crate::run::{Ran, Run};

/// One tool of every kind, and a seal that can be looked through.
pub(crate) fn messages() -> Run {
    let mut run = Run::default();
    run.context.wire = AnswerWire::Messages;
    run
}

fn start(block: &Value) -> Value {
    json!({"type": "content_block_start", "index": 0, "content_block": block})
}

fn delta(delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": 0, "delta": delta})
}

fn stop() -> Value {
    json!({"type": "content_block_stop", "index": 0})
}

fn text(text: &str) -> Vec<Value> {
    let delta = delta(&json!({"type": "text_delta", "text": text}));
    vec![start(&json!({"type": "text", "text": ""})), delta, stop()]
}

fn thinking(text: &str, signature: &str) -> Vec<Value> {
    let mut events = vec![start(&json!({"type": "thinking", "thinking": "", "signature": ""}))];
    let pieces = text.split_inclusive(' ').map(|piece| delta(&json!({"type": "thinking_delta", "thinking": piece})));
    events.extend(pieces);
    events.push(delta(&json!({"type": "signature_delta", "signature": signature})));
    events.push(stop());
    events
}

fn call(id: &str, name: &str, pieces: &[&str]) -> Vec<Value> {
    let mut events = vec![start(&json!({"type": "tool_use", "id": id, "name": name, "input": {}}))];
    let pieces = pieces.iter().map(|piece| delta(&json!({"type": "input_json_delta", "partial_json": piece})));
    events.extend(pieces);
    events.push(stop());
    events
}

fn begun() -> Value {
    json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "content": [],
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 1, "output_tokens": 1}}})
}

fn ended(reason: &str) -> [Value; 2] {
    let delta = json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}});
    [delta, json!({"type": "message_stop"})]
}

/// A whole stream with these blocks.
fn stream(blocks: &[Vec<Value>], reason: &str) -> Vec<Value> {
    let mut events = vec![begun(), json!({"type": "ping"})];
    events.extend(blocks.iter().flatten().cloned());
    events.extend(ended(reason));
    events
}

fn read_as(run: &Run, events: &[Value]) -> Ran {
    let events: Vec<String> = events.iter().map(Value::to_string).collect();
    crate::native::check(run, &events, End::Eof)
}

fn read(events: &[Value]) -> Ran {
    read_as(&messages(), events)
}

/// Type and gist of each item.
fn gist(ran: &Ran) -> Vec<String> {
    let items = ran.stream.response["output"].as_array().unwrap();
    let text = |parts: &Value| {
        let texts = parts.as_array().unwrap().iter().map(|part| part["text"].as_str().or(part["refusal"].as_str()));
        texts.map(Option::unwrap_or_default).collect::<Vec<_>>().join("|")
    };
    let say = |item: &Value| match item["type"].as_str().unwrap() {
        "message" => format!("message {}", text(&item["content"])),
        "reasoning" => format!("reasoning {}", text(&item["content"])),
        "function_call" => format!("{} {} {}", item["call_id"], item["name"], item["arguments"]),
        "custom_tool_call" => format!("custom {} {}", item["name"], item["input"]),
        "web_search_call" => format!("search {} {}", item["status"], item["action"]),
        other => other.to_owned(),
    };
    items.iter().map(say).collect()
}

/// What returns to the upstream with the reasoning at this place of the output.
fn bag(ran: &Ran, at: usize) -> String {
    let sealed = ran.stream.response["output"][at]["encrypted_content"].as_str().unwrap();
    let plain = sealed.strip_prefix("glass:").unwrap();
    bridge::SealedReasoning::decode(plain.as_bytes()).unwrap().replay_data.unwrap_or_default()
}

#[test]
fn text_thoughts_and_calls_become_items_in_order() {
    let blocks = [
        thinking("Let me see.", "s1/+=="),
        text("I look."),
        call("toolu_1", "f", &["", "{\"a\"", ":1}"]),
        call("toolu_2", "get_weather", &[]),
    ];
    let ran = read(&stream(&blocks, "tool_use"));
    assert_eq!(ran.stream.response["status"], "completed");
    assert_eq!(
        gist(&ran),
        ["reasoning Let me see.", "message I look.", r#""toolu_1" "f" "{\"a\":1}""#, r#""toolu_2" "get_weather" "{}""#,]
    );
    assert_eq!(bag(&ran, 0), r#"[{"type":"thinking","thinking":"Let me see.","signature":"s1/+=="}]"#);
    let usage = &ran.stream.response["usage"];
    assert_eq!(
        (&usage["input_tokens"], &usage["input_tokens_details"]["cached_tokens"], &usage["output_tokens"]),
        (&json!(15), &json!(4), &json!(9))
    );
    assert!(ran.notes.is_empty(), "{:?}", ran.notes);
}

#[test]
fn calls_come_back_as_the_kinds_that_were_declared() {
    let blocks = [
        call("a", "patch", &["{\"inp", "ut\":\"*** Begin", " Patch\\n\"}"]),
        call("b", "shell", &["{\"commands\":[\"ls\"]}"]),
        call("c", "local_shell", &["{\"command\":[\"ls\"]}"]),
        call("d", "apply_patch", &["{\"type\":\"delete_file\",\"path\":\"x\"}"]),
        call("e", "tool_search", &["{\"query\":\"q\"}"]),
        call("f", "ns__look", &["{}"]),
    ];
    let ran = read(&stream(&blocks, "tool_use"));
    assert_eq!(
        gist(&ran),
        [
            r#"custom "patch" "*** Begin Patch\n""#,
            "shell_call",
            "local_shell_call",
            "apply_patch_call",
            "tool_search_call",
            r#""f" "look" "{}""#,
        ]
    );
    assert_eq!(ran.stream.response["output"][5]["namespace"], "ns");
}

/// A start may have the whole input, a delta may be a value, ids may be missing or strange; a placeholder is no input.
#[test]
fn inputs_come_in_many_ways() {
    let whole = |id: &Value, input: &Value| {
        vec![start(&json!({"type": "tool_use", "id": id, "name": "f", "input": input})), stop()]
    };
    let value = vec![
        start(&json!({"type": "tool_use", "name": "f", "input": {"ignored": true}})),
        delta(&json!({"type": "input_json_delta", "partial_json": {"b": 2}})),
        stop(),
    ];
    let blocks = [
        whole(&json!("a"), &json!({"x": [1]})),
        whole(&json!("a"), &json!({})),
        whole(&json!(null), &json!(null)),
        value,
    ];
    let ran = read(&stream(&blocks, "tool_use"));
    let arguments: Vec<_> =
        ran.stream.response["output"].as_array().unwrap().iter().map(|item| item["arguments"].clone()).collect();
    assert_eq!(arguments, [r#"{"x":[1]}"#, "{}", "{}", r#"{"b":2}"#]);
    let ids: std::collections::BTreeSet<_> =
        ran.stream.response["output"].as_array().unwrap().iter().map(|item| item["call_id"].to_string()).collect();
    assert_eq!((ids.len(), ids.contains("\"a\"")), (4, true));
}

/// Thoughts return byte for byte: several, withheld ones between them, and such that say nothing.
#[test]
fn all_that_was_thought_returns() {
    let redacted = r#"{"type":"redacted_thinking","data":"EmwKAhgB/+="}"#;
    let blocks = [
        thinking("One. ", "s1"),
        vec![start(&serde_json::from_str(redacted).unwrap()), stop()],
        thinking("Two.", "s2"),
        thinking("", "s3"),
        text("So."),
        thinking("", "s4"),
        call("a", "f", &["{}"]),
    ];
    let ran = read(&stream(&blocks, "tool_use"));
    assert_eq!(gist(&ran), ["reasoning One. |Two.", "message So.", "reasoning ", r#""a" "f" "{}""#]);
    let expected = r#"[{"type":"thinking","thinking":"One. ","signature":"s1"},{"type":"redacted_thinking","data":"EmwKAhgB/+="},{"type":"thinking","thinking":"Two.","signature":"s2"},{"type":"thinking","thinking":"","signature":"s3"}]"#;
    // A test's JSON orders members by itself.
    assert_eq!(serde_json::from_str::<Value>(&bag(&ran, 0)).unwrap(), serde_json::from_str::<Value>(expected).unwrap());
    assert_eq!(bag(&ran, 2), r#"[{"type":"thinking","thinking":"","signature":"s4"}]"#);
}

/// Escapes of the upstream are kept as they are.
#[test]
fn bytes_of_thoughts_are_not_written_anew() {
    let events = [
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"caf\u00e9 \u2028 \/ \ud83d"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"\ude00é"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"a\/b"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking", "data":"x\/y" }}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"Hi"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let ran = crate::native::check(&messages(), &events, End::Eof);
    let expected = concat!(
        r#"[{"type":"thinking","thinking":"caf\u00e9 \u2028 \/ \ud83d\ude00é","signature":"a\/b"},"#,
        r#"{"type":"redacted_thinking", "data":"x\/y" }]"#
    );
    assert_eq!(bag(&ran, 0), expected);
}

#[test]
fn a_whole_message_is_the_same_as_its_stream() {
    let content = json!([
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
        {"type": "text", "text": "See ", "citations": null},
        {"type": "text", "text": "this.", "citations": [{"type": "web_search_result_location", "url": "https://a.b/", "title": "T"}]},
        {"type": "tool_use", "id": "a", "name": "patch", "input": {"input": "x"}},
    ]);
    let usage =
        json!({"input_tokens": 10, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 1, "output_tokens": 9});
    let whole =
        json!({"type": "message", "id": "msg_1", "content": content, "stop_reason": "tool_use", "usage": usage});
    let mut cited = text("this.");
    let citation = json!({"type": "citations_delta", "citation": content[3]["citations"][0]});
    cited.insert(1, delta(&citation));
    let redacted = vec![start(&content[1]), stop()];
    let blocks = [thinking("Hm.", "s"), redacted, text("See "), cited, call("a", "patch", &["{\"input\":\"x\"}"])];
    let (whole, streamed) = (read(&[whole]), read(&stream(&blocks, "tool_use")));
    assert_eq!(whole.stream.response, streamed.stream.response);
    let annotations = &whole.stream.response["output"][1]["content"][0]["annotations"];
    assert_eq!(
        *annotations,
        json!([{"type": "url_citation", "url": "https://a.b/", "title": "T", "start_index": 4, "end_index": 9}])
    );
}

#[test]
fn searches_of_the_upstream_are_shown_and_return() {
    let search = |id: &str| {
        vec![
            start(&json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {}})),
            delta(&json!({"type": "input_json_delta", "partial_json": "{\"query\":"})),
            delta(&json!({"type": "input_json_delta", "partial_json": "\"rust\"}"})),
            stop(),
        ]
    };
    let result = |id: &str, content: Value| {
        vec![start(&json!({"type": "web_search_tool_result", "tool_use_id": id, "content": content})), stop()]
    };
    let found = json!([{"type": "web_search_result", "url": "https://a.b/", "title": "T", "encrypted_content": "e"}]);
    let failed = json!({"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"});
    let blocks = [
        thinking("Search.", "s"),
        search("u1"),
        result("u1", found),
        search("u2"),
        result("u2", failed),
        text("Found."),
        search("u3"),
    ];
    let ran = read(&stream(&blocks, "end_turn"));
    assert_eq!(
        gist(&ran),
        [
            "reasoning Search.",
            r#"search "completed" {"type":"search","query":"rust","queries":["rust"],"sources":[{"type":"url","url":"https://a.b/"}]}"#,
            r#"search "failed" {"type":"search","query":"rust","queries":["rust"],"sources":[]}"#,
            "reasoning ",
            "message Found.",
            r#"search "failed" {"type":"search","query":"rust","queries":["rust"],"sources":[]}"#,
        ]
    );
    let types = |at| {
        let bag: Value = serde_json::from_str(&bag(&ran, at)).unwrap();
        bag.as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(types(0), ["thinking"]);
    let pair = ["server_tool_use", "web_search_tool_result"];
    assert_eq!(types(3), [pair, pair].concat());
}

#[test]
fn what_is_not_known_is_noted_and_costs_nothing() {
    let odd = vec![
        start(&json!({"type": "hologram", "x": {"y": 1}})),
        delta(&json!({"type": "hologram_delta", "z": 1})),
        delta(&json!({"type": "input_json_delta", "partial_json": "{"})),
        stop(),
        json!({"type": "vendor_event", "payload": {}}),
        start(&json!({"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}})),
        stop(),
        delta(&json!({"type": "reasoning_delta", "reasoning": "Hm."})),
        delta(&json!({"type": "text_delta", "text": "Unannounced."})),
    ];
    let ran = read(&stream(&[odd], "end_turn"));
    assert_eq!(gist(&ran), ["reasoning Hm.", "message Unannounced."]);
    assert_eq!(bag(&ran, 0), r#"[{"type":"thinking","thinking":"Hm."}]"#);
    let notes: Vec<&str> = ran.notes.iter().map(|note| &*note.message).collect();
    assert_eq!(
        notes,
        [
            "a block of the type 'hologram' was left out",
            "a delta of the type 'hologram_delta' was left out",
            "the event 'vendor_event' is not known",
            "the provider went on with another model: b",
        ]
    );
}

/// JSON that was asked for comes out of its code fence, whatever came before it that is no text.
#[test]
fn a_fence_comes_off_after_thoughts() {
    let redacted = vec![start(&json!({"type": "redacted_thinking", "data": "x"})), stop()];
    let searched =
        vec![start(&json!({"type": "server_tool_use", "id": "u", "name": "web_search", "input": {}})), stop()];
    let mut run = messages();
    run.context.output = OutputContract::JsonObject;
    for before in [vec![], thinking("Hm.", "s"), redacted, searched, text("\n")] {
        let mut blocks = vec![before.clone()];
        blocks.extend([thinking("So.", "s"), text("```json\n{\"a\":1}\n```")]);
        let ran = read_as(&run, &stream(&blocks, "end_turn"));
        assert_eq!(ran.stream.response["status"], "completed", "{before:?}");
        assert_eq!(gist(&ran).pop().unwrap(), r#"message {"a":1}"#, "{before:?}");
        assert!(ran.notes.iter().any(|note| note.message.contains("code fence")), "{before:?}");
    }
    // What is no fence after all is text, and so is all that follows.
    let blocks = [text("``"), thinking("So.", "s"), text("```json\n{}\n```")];
    assert_eq!(gist(&read_as(&run, &stream(&blocks, "end_turn"))).pop().unwrap(), "message ```json\n{}\n```");
}
