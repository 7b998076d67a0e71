use super::*;

fn answer(status: u16, content_type: &str, body: &str) -> Answer {
    Answer {
        status,
        content_type: content_type.to_owned(),
        body: body.as_bytes().to_vec(),
        whole: true,
        ..Answer::default()
    }
}

fn read_json(status: u16, body: &Value) -> Reply {
    read(&answer(status, "application/json", &body.to_string()), &AnswerDialect::default())
}

fn said(reply: Reply) -> ChatReply {
    match reply {
        Reply::Answered(said) => *said,
        other => panic!("{other:?}"),
    }
}

fn stream(chunks: &[Value], end: &str) -> ChatReply {
    let mut body: Vec<String> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    body.push(end.to_owned());
    said(read(&answer(200, "text/event-stream", &body.concat()), &AnswerDialect::default()))
}

fn delta(delta: &Value) -> Value {
    json!({"choices": [{"delta": delta, "finish_reason": null}]})
}

#[test]
fn answers_are_sorted() {
    let error = |code: Value| json!({"error": {"message": "no", "code": code}});
    let cases = [
        (200, json!({"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}), "said"),
        (200, error(json!(400)), "refused"),
        (200, error(json!("429")), "lost"),
        (200, json!({"base_resp": {"status_code": 2013, "status_msg": "no"}}), "refused"),
        (200, json!({"choices": [{"message": {"content": ""}}]}), "lost"),
        (200, json!({"choices": []}), "lost"),
        (400, error(json!(null)), "refused"),
        (500, json!({"error": "text"}), "refused"),
        (422, json!({"detail": []}), "refused"),
        (429, error(json!(null)), "lost"),
        (502, json!({}), "lost"),
        (503, error(json!(null)), "lost"),
    ];
    for (status, body, expected) in cases {
        let found = match read_json(status, &body) {
            Reply::Answered(_) => "said",
            Reply::Refused(_) => "refused",
            Reply::Lost(_) => "lost",
            Reply::Unsent(_) => "unsent",
        };
        assert_eq!(found, expected, "{status} {body}");
    }
    assert!(matches!(read(&answer(200, "text/html", "<html>"), &AnswerDialect::default()), Reply::Lost(_)));
}

#[test]
fn calls_are_put_together() {
    let call = |index: u64, id: Value, name: Value, arguments: Value| json!({"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]});
    let null = || Value::Null;
    // In pieces; whole under one index; without ids; as an object.
    let cases = [
        vec![call(0, json!("a"), json!("f"), json!("{\"x\"")), call(0, null(), null(), json!(":1}"))],
        vec![call(0, json!("a"), json!("f"), json!("{\"x\":1}"))],
        vec![call(0, json!("a"), json!("f"), json!("{\"x\"")), call(0, json!("a"), json!("f"), json!(":1}"))],
        vec![call(0, null(), json!("f"), json!("{\"x\"")), call(0, null(), null(), json!(":1}"))],
        vec![call(0, json!("a"), json!("f"), json!({"x": 1}))],
    ];
    for deltas in cases {
        let chunks: Vec<Value> = deltas.iter().map(delta).collect();
        let said = stream(&chunks, "data: [DONE]\n\n");
        assert_eq!(said.calls.len(), 1, "{chunks:?}");
        assert_eq!((said.calls[0].name.as_str(), said.calls[0].arguments.as_str()), ("f", "{\"x\":1}"));
        assert_eq!(said.calls[0].deltas, deltas.len());
    }
    let two = [call(0, json!("a"), json!("f"), json!("{}")), call(0, json!("b"), json!("g"), json!("{}"))];
    assert_eq!(stream(&two.map(|call| delta(&call)), "").calls.len(), 2);
}

#[test]
fn reasoning_is_found_where_servers_put_it() {
    let cases = [
        (json!({"reasoning_content": "hm", "content": "x"}), &["reasoning_content"][..]),
        (json!({"reasoning": "hm", "content": "x"}), &["reasoning"]),
        (
            json!({"reasoning_details": [{"type": "reasoning.text", "text": "hm"}], "content": "x"}),
            &["reasoning_details"],
        ),
        (
            json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "x"}]}),
            &["content"],
        ),
        (json!({"content": "<think>hm</think>x"}), &["<think>"]),
        (json!({"content": "hm</think>x"}), &["</think> without <think>"]),
        (json!({"content": "x", "reasoning_content": ""}), &[]),
        (json!({"content": "x", "reasoning_content": null}), &[]),
    ];
    for (message, places) in cases {
        let whole = said(read_json(200, &json!({"choices": [{"message": message, "finish_reason": "stop"}]})));
        assert_eq!((whole.reasoning_places().as_slice(), whole.answer()), (places, "x"), "{message}");
        let streamed = stream(&[delta(&message)], "");
        assert_eq!(streamed.reasoning_places(), places, "{message}");
    }
}

#[test]
fn the_shape_of_a_stream_is_told() {
    let chunks = [delta(&json!({"role": "assistant", "content": ""})), delta(&json!({"content": "x"}))];
    let shape = stream(&chunks, "data: [DONE]\n\n").stream.unwrap();
    assert_eq!(shape, Shape { chunks: 2, speaking: 1, done: true, whole: true });
    assert!(!stream(&chunks, "").stream.unwrap().done);
    let mut broken = answer(200, "text/event-stream", &format!("data: {}\n\n", chunks[1]));
    broken.whole = false;
    assert!(matches!(read(&broken, &AnswerDialect::default()), Reply::Lost(_)));
}

/// Real servers' answers: what is refused there is refused here, and plain texts are read.
#[test]
fn recorded_answers_can_be_read() {
    for fixture in testkit::fixtures().unwrap_or_default() {
        let content_type = if fixture.streamed { "text/event-stream" } else { "application/json" };
        let body = String::from_utf8_lossy(&fixture.body).into_owned();
        let reply = read(&answer(fixture.status, content_type, &body), &AnswerDialect::default());
        let name = fixture.name.as_str();
        match reply {
            Reply::Answered(said) if name.ends_with("/text") || name.ends_with("/text-stream") => {
                assert!(!said.text.is_empty() && said.finish.is_some(), "{name}: {said:?}");
                assert_eq!(said.stream.is_some(), fixture.streamed, "{name}");
            }
            Reply::Answered(_) => assert!(fixture.status < 400, "{name}"),
            other => assert!(!name.ends_with("/text"), "{name}: {other:?}"),
        }
    }
}
