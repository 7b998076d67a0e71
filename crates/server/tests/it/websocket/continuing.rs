//! What a connection remembers, and what it forgets.

use serde_json::{Value, json};
use testkit::Script;

use super::client::Client;
use super::{create, hello, history, with};
use crate::chat;
use crate::rig::{Rig, Settings, object};

fn after(message: Value, response: &Value) -> Value {
    with(message, &json!({"previous_response_id": response["id"]}))
}

fn refusal(error: &Value) -> (&str, &Value) {
    (error["error"]["code"].as_str().unwrap_or_default(), &error["status"])
}

const NOT_FOUND: &str = "previous_response_not_found";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_that_is_not_stored_goes_on_where_it_was_made() {
    let rig = Rig::start(hello()).await;
    let mut client = Client::connect(&rig).await;
    let mut last = client.respond(&create("One")).await.response;
    for input in ["Two", "Three"] {
        last = client.respond(&after(create(input), &last)).await.response;
        assert_eq!(last["store"], false);
    }
    assert_eq!(history(&rig, 2), ["One", "Hello", "Two", "Hello", "Three"]);
    // On another connection nobody knows it, and over HTTP neither.
    let mut other = Client::connect(&rig).await;
    other.say(&after(create("Four"), &last)).await;
    assert_eq!(refusal(&other.next().await), (NOT_FOUND, &json!(400)));
    let over_http = rig.post(&json!({"model": "m", "input": "x", "previous_response_id": last["id"]})).await;
    assert_eq!((over_http.status, &over_http.json()["error"]["code"]), (400, &json!(NOT_FOUND)));
    assert_eq!(client.respond(&after(create("Four"), &last)).await.text, "Hello");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_warm_up_is_a_response_without_output_that_can_be_continued() {
    let rig = Rig::start(hello()).await;
    let mut client = Client::connect(&rig).await;
    for store in [false, true] {
        let begun = rig.upstream.requests().len();
        let warm_up = with(create("Be brief."), &json!({"generate": false, "store": store, "stream_id": "w"}));
        let stream = client.respond(&warm_up).await;
        assert_eq!(stream.types(), ["response.created", "response.in_progress", "response.completed"]);
        assert_eq!((&stream.response["output"], &stream.response["store"]), (&json!([]), &json!(store)));
        assert!(stream.events.iter().all(|(_, event)| event["stream_id"] == "w"));
        assert_eq!(rig.upstream.requests().len(), begun, "nobody was asked");
        let message = with(create("Hi"), &json!({"stream_id": "w", "store": store}));
        let next = client.respond(&after(message, &stream.response)).await.response;
        assert_eq!(history(&rig, begun), ["Be brief.", "Hi"]);
        client.respond(&after(create("More"), &next)).await;
        assert_eq!(history(&rig, begun + 1), ["Be brief.", "Hi", "Hello", "More"]);
    }
    // What is wrong with it is found without a provider.
    client.say(&with(create("x"), &json!({"generate": false, "model": "up/"}))).await;
    assert_eq!(refusal(&client.next().await), ("model_not_found", &json!(404)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_loop_sends_only_what_is_new() {
    let tool_call = json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function",
        "function": {"name": "look", "arguments": "{\"a\":1}"}}]});
    let call = Script::sse(&[chat::chunk(&tool_call, None), chat::chunk(&json!({}), Some("tool_calls"))]);
    let rig = Rig::start(hello()).await;
    rig.upstream.queue(call);
    let mut client = Client::connect(&rig).await;
    let tools = json!({"tools": [{"type": "function", "name": "look", "parameters": {"type": "object"}}]});
    let first = client.respond(&with(create("Look"), &tools)).await.response;
    assert_eq!(first["output"][0]["call_id"], "call_1");
    let output = json!([{"type": "function_call_output", "call_id": "call_1", "output": "seen"}]);
    let message = with(with(create(""), &tools), &json!({"input": output}));
    assert_eq!(client.respond(&after(message, &first)).await.text, "Hello");
    let messages = rig.upstream.requests()[1].json()["messages"].clone();
    assert_eq!(messages[0]["content"], "Look");
    assert_eq!(messages[1]["tool_calls"][0]["function"]["arguments"], "{\"a\":1}");
    assert_eq!((&messages[2]["role"], &messages[2]["content"]), (&json!("tool"), &json!("seen")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stored_turn_keeps_what_only_the_connection_knew() {
    let rig = Rig::start(hello()).await;
    let mut client = Client::connect(&rig).await;
    let first = client.respond(&create("One")).await.response;
    let stored = client.respond(&after(with(create("Two"), &json!({"store": true})), &first)).await.response;
    let id = stored["id"].as_str().unwrap();
    let items = rig.get(&format!("/v1/responses/{id}/input_items?order=asc")).await.json();
    let texts: Vec<&Value> = items["data"].as_array().unwrap().iter().map(|item| &item["content"][0]["text"]).collect();
    assert_eq!(texts, ["One", "Hello", "Two"]);
    drop(client);
    let next = json!({"model": "m", "input": "Three", "previous_response_id": id});
    object(&rig.post(&next).await);
    assert_eq!(history(&rig, 2), ["One", "Hello", "Two", "Hello", "Three"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unstored_turn_goes_on_from_a_stored_one() {
    let rig = Rig::start(hello()).await;
    let mut client = Client::connect(&rig).await;
    let stored = client.respond(&with(create("One"), &json!({"store": true}))).await.response;
    let second = client.respond(&after(create("Two"), &stored)).await.response;
    client.respond(&after(create("Three"), &second)).await;
    assert_eq!(history(&rig, 2), ["One", "Hello", "Two", "Hello", "Three"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_continuation_forgets_its_parent_unless_it_may_be_tried_again() {
    let settings = Settings { resilience: "retries: 0, breaker_failures: 0", ..Settings::default() };
    let rig = Rig::with(hello(), settings).await;
    let mut client = Client::connect(&rig).await;
    let said = |status: u16| Script::json(status, &json!({"error": {"message": "no"}}));
    let broken = Script::event_stream().event(&chat::text("Hel")).cut();
    for (name, script, fields, lane, forgets) in [
        ("a 4xx", Some(said(400)), json!({}), None, true),
        ("a 5xx", Some(said(500)), json!({}), None, true),
        ("a stream that breaks off", Some(broken.clone()), json!({}), None, true),
        ("what cannot be asked for", None, json!({"temperature": "hot"}), None, true),
        ("an overload", Some(said(429)), json!({}), None, false),
        ("a failed fork", Some(said(500)), json!({}), Some("fork"), false),
        ("a broken fork", Some(broken), json!({}), Some("fork"), false),
        ("what was never begun", None, json!({"stream_id": "?"}), None, false),
    ] {
        let parent = client.respond(&create("One")).await.response;
        if let Some(script) = script {
            rig.upstream.queue(script);
        }
        let mut message = with(after(create("Two"), &parent), &fields);
        if let Some(lane) = lane {
            message["stream_id"] = json!(lane);
        }
        client.say(&message).await;
        loop {
            let event = client.next().await;
            let kind = event["type"].as_str().unwrap();
            assert_ne!(kind, "response.completed", "{name}");
            if kind == "response.failed" || (kind == "error" && event.get("status").is_some()) {
                break;
            }
        }
        client.say(&after(create("Three"), &parent)).await;
        let next = client.next().await;
        if forgets {
            assert_eq!(refusal(&next), (NOT_FOUND, &json!(400)), "{name}");
        } else {
            assert_eq!(next["type"], "response.created", "{name}: {next}");
            client.stream_after(next).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_stored_survives_a_failed_continuation() {
    let settings = Settings { resilience: "retries: 0, breaker_failures: 0", ..Settings::default() };
    let rig = Rig::with(hello(), settings).await;
    let mut client = Client::connect(&rig).await;
    let parent = client.respond(&with(create("One"), &json!({"store": true}))).await.response;
    rig.upstream.queue(Script::json(500, &json!({"error": {"message": "no"}})));
    client.say(&after(create("Two"), &parent)).await;
    assert_eq!(client.next().await["status"], 502);
    assert_eq!(client.respond(&after(create("Two"), &parent)).await.text, "Hello");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fork_and_its_source_go_their_own_ways() {
    // An upstream that takes its time to end: whoever has seen the last event may go on at once.
    let rig = Rig::start(hello().delay(std::time::Duration::from_millis(45))).await;
    let mut client = Client::connect(&rig).await;
    let root = client.respond(&create("Root")).await.response;
    let fork = client.respond(&with(after(create("Fork"), &root), &json!({"stream_id": "f"}))).await.response;
    let main = client.respond(&after(create("Main"), &root)).await.response;
    client.respond(&with(after(create("Fork 2"), &fork), &json!({"stream_id": "f"}))).await;
    client.respond(&after(create("Main 2"), &main)).await;
    assert_eq!(history(&rig, 3), ["Root", "Hello", "Fork", "Hello", "Fork 2"]);
    assert_eq!(history(&rig, 4), ["Root", "Hello", "Main", "Hello", "Main 2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_incomplete_response_goes_on_where_the_operator_lets_it() {
    for (session, goes_on) in
        [("backend: memory", true), ("backend: memory, chain: {include_incomplete: false}", false)]
    {
        let rig = Rig::with(hello(), Settings { session: session.to_owned(), ..Settings::default() }).await;
        rig.upstream.queue(Script::sse(&[chat::text("Hel"), chat::chunk(&json!({}), Some("length"))]));
        let mut client = Client::connect(&rig).await;
        let cut = client.respond(&create("One")).await.response;
        assert_eq!(cut["status"], "incomplete");
        client.say(&after(create("Two"), &cut)).await;
        let next = client.next().await;
        assert_eq!(next["type"] == "response.created", goes_on, "{next}");
    }
}

/// Where there is no room to remember, the client is told that there is nothing, and sends everything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_remembered_is_bounded() {
    let tweak = |config: &mut server::config::Config| config.limits.remembered_bytes = 4096;
    let rig = Rig::with(hello(), Settings { tweak: Some(tweak), ..Settings::default() }).await;
    let mut client = Client::connect(&rig).await;
    client.respond(&create("One")).await;
    let large = client.respond(&create(&"x".repeat(8000))).await.response;
    client.say(&after(create("Two"), &large)).await;
    assert_eq!(refusal(&client.next().await), (NOT_FOUND, &json!(400)));
    drop(client);
    // What one connection held is free again when it is gone.
    let mut client = Client::connect(&rig).await;
    let mut last = client.respond(&create("One")).await.response;
    last = client.respond(&after(create("Two"), &last)).await.response;
    assert_eq!(last["status"], "completed");
}
