//! Requests that go well.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::Script;

use crate::chat;
use crate::rig::{KEY, Rig, anonymous, object, spawn, stream};

fn request() -> Value {
    json!({
        "model": "m", "instructions": "Be brief.", "input": "Hello", "temperature": 0.5, "max_output_tokens": 64,
        "metadata": {"k": "v"},
    })
}

#[tokio::test]
async fn sync_and_stream_agree_and_the_provider_gets_what_was_asked() {
    let rig = Rig::start(chat::answer(false)).await;
    rig.upstream.queue(chat::answer(false));
    rig.upstream.queue(chat::answer(true));
    let (whole, streamed) = rig.both(&request()).await;
    let (whole, streamed) = (object(&whole), stream(&streamed));
    assert_eq!(whole["status"], "completed");
    assert_eq!(whole["output"][0]["content"][0]["text"], "Hello");
    assert_eq!(
        (&whole["usage"]["input_tokens"], &whole["usage"]["output_tokens"], &whole["usage"]["total_tokens"]),
        (&json!(5), &json!(2), &json!(7))
    );
    assert_eq!((&whole["metadata"], &whole["store"]), (&json!({"k": "v"}), &json!(true)));
    assert_eq!(streamed.text, "Hello");
    assert_eq!(anonymous(whole), anonymous(streamed.response));

    let received = rig.upstream.requests();
    let messages = json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]);
    let mut expected = json!({"model": "m", "temperature": 0.5, "max_tokens": 64, "messages": messages});
    for (received, stream) in received.iter().zip([false, true]) {
        if stream {
            expected["stream"] = json!(true);
            expected["stream_options"] = json!({"include_usage": true});
        }
        let mut sent = received.json();
        if sent["stream"] == json!(false) {
            sent.as_object_mut().unwrap().remove("stream");
        }
        assert_eq!(sent, expected);
        assert_eq!((received.method.as_str(), received.path.as_str()), ("POST", "/v1/chat/completions"));
        assert_eq!(received.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
        assert_eq!(received.header("content-type"), Some("application/json"));
        assert!(received.header("user-agent").unwrap().starts_with("godex/"));
    }
    rig.stop().await;
}

/// Whatever the provider makes of `stream`, the client gets what it asked for.
#[tokio::test]
async fn the_providers_way_of_answering_does_not_matter() {
    let bytes = chat::bytes();
    let json = || chat::completion().to_string();
    for (name, script) in [
        ("streams", Script::sse(&chat::chunks())),
        ("one JSON", Script::json(200, &chat::completion())),
        ("byte by byte", Script::sse(&chat::chunks()).split_every(1)),
        ("in one write", Script::sse_bytes(bytes.clone())),
        (
            "JSON byte by byte",
            Script::respond(200).header("content-type", "application/json").send(json()).split_every(1),
        ),
        ("a stream that says it is text", Script::body(200, "text/plain", bytes.clone())),
        ("a stream that says it is JSON", Script::body(200, "application/json", bytes.clone())),
        (
            "the same byte by byte, after a mark and a comment",
            Script::respond(200)
                .header("content-type", "application/json; charset=utf-8")
                .send(format!("\u{feff}\n: hi\n\n{bytes}"))
                .split_every(1),
        ),
        ("JSON that says it is text", Script::body(200, "text/plain", format!("\n {}", json()))),
        ("JSON that says it is a stream", Script::event_stream().send(json())),
        ("a stream without a type", Script::respond(200).send(bytes.clone())),
        ("JSON without a type", Script::respond(200).send(json()).split_every(7)),
        ("status 201", Script::body(201, "application/json", json())),
        ("JSON after a byte order mark", Script::body(200, "application/json", format!("\u{feff}{}", json()))),
        ("the same without a type", Script::respond(200).send(format!("\u{feff}\n{}", json())).split_every(1)),
        ("the same as a stream", Script::event_stream().send(format!("\u{feff}{}", json())).split_every(2)),
        ("a stream after a mark", Script::event_stream().send(format!("\u{feff}{bytes}"))),
    ] {
        let rig = Rig::start(script).await;
        let (whole, streamed) = rig.both(&request()).await;
        let (whole, streamed) = (object(&whole), stream(&streamed));
        assert_eq!(whole["output"][0]["content"][0]["text"], "Hello", "{name}");
        assert_eq!(anonymous(whole), anonymous(streamed.response), "{name}");
    }
}

/// Line breaks of the request must not become line breaks of the event stream.
#[tokio::test]
async fn a_request_may_be_written_on_many_lines() {
    let rig = Rig::start(Script::sse(&[chat::text("{}"), chat::stop()])).await;
    let mut body = request();
    body["stream"] = json!(true);
    body["tools"] = json!([{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}]);
    body["text"] = json!({"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}});
    body["tool_choice"] = json!({"type": "function", "name": "f"});
    let pretty = serde_json::to_string_pretty(&body).unwrap();
    for text in [pretty.clone(), pretty.replace('\n', "\r\n"), pretty.replace('\n', "\r")] {
        let headers = [("content-type", "application/json")];
        let answer = rig.client.request(http::Method::POST, &rig.url("/v1/responses"), &headers, text).await.unwrap();
        assert_eq!(stream(&answer).text, "{}");
    }
}

#[tokio::test]
async fn connections_to_the_provider_are_used_again() {
    let rig = Rig::start(chat::answer(false)).await;
    for round in 0..6 {
        rig.upstream.queue(chat::answer(round % 2 == 1));
        let body = json!({"model": "m", "input": "Hello", "stream": round % 2 == 1});
        assert_eq!(rig.post(&body).await.status, 200);
    }
    let connections: Vec<usize> = rig.upstream.requests().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0; 6]);
}

#[tokio::test]
async fn many_at_once_do_not_disturb_each_other() {
    let rig = Rig::start(Script::sse(&chat::chunks()).split_every(16)).await;
    let body = json!({"model": "m", "input": "Hello", "stream": true});
    let url = rig.url("/v1/responses");
    let calls = (0..32).map(|_| rig.client.post_json(&url, &body));
    for answer in futures_util::future::join_all(calls).await {
        assert_eq!(stream(&answer.unwrap()).text, "Hello");
    }
}

#[tokio::test]
async fn what_is_not_done_as_asked_is_said_in_a_header() {
    let rig = Rig::start(chat::answer(false)).await;
    let tools = json!([{"type": "shell"}, {"type": "web_search"}]);
    let body = json!({
        "model": "m", "input": "Hello", "tools": tools, "foo": 1, "truncation": "auto", "b=ignored, c\r\nx: y": 1,
    });
    let (whole, streamed) = rig.both(&body).await;
    let expected = "tools[1]=ignored, b?ignored??c??x??y=ignored, foo=ignored, tools[0]=degraded";
    for answer in [&whole, &streamed] {
        let mut entries: Vec<&str> = answer.header("x-godex-compat").unwrap().split(", ").collect();
        // Unknown parameters come in the client's order, which is not ours to choose here.
        entries[1..3].sort_unstable();
        assert_eq!(entries.join(", "), expected);
    }
    object(&whole);
    stream(&streamed);
}

/// Warnings are not lost among many small things.
#[tokio::test]
async fn a_header_of_many_notes_is_short() {
    let rig = Rig::start(chat::answer(false)).await;
    let tools: Vec<Value> = (0..99).map(|n| json!({"type": "custom", "name": format!("tool{n}")})).collect();
    let (whole, streamed) = rig.both(&json!({"model": "m", "input": "Hello", "tools": tools, "foo": 1})).await;
    for answer in [&whole, &streamed] {
        let header = answer.header("x-godex-compat").unwrap();
        assert!(header.starts_with("foo=ignored, tools[0]=degraded, tools[1]=degraded, "), "{header}");
        assert!(header.len() <= 1024 && header.ends_with(" more"), "{header}");
    }
}

#[tokio::test]
async fn a_stream_under_way_outlives_the_signal_to_stop() {
    let script = Script::event_stream().event(&chat::text("Hel")).delay(Duration::from_millis(300));
    let rig = Rig::start(script.event(&chat::text("lo")).event(&chat::stop()).done()).await;
    let (client, address, url) = (rig.client.clone(), rig.address, rig.url("/v1/responses"));
    let body = json!({"model": "m", "input": "Hello", "stream": true});
    let mut streaming = client.post_stream(&url, &body).await.unwrap();
    let mut read = streaming.read_until("\"delta\":\"Hel\"").await.unwrap();
    let stopping = spawn(rig.stop());
    while let Some(bytes) = streaming.next().await.unwrap() {
        read.extend_from_slice(&bytes);
    }
    let stream = testkit::grammar::check(&read).unwrap();
    assert_eq!((stream.text.as_str(), &stream.response["status"]), ("Hello", &json!("completed")));
    stopping.await.unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
