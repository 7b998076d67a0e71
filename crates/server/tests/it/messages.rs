//! A provider that speaks the Messages API, simulated strictly: it refuses thoughts that come back to anything but what
//! they were thought about, counts what its cache could use, pauses, and fails in the ways of that API.

use serde_json::{Value, json};
use testkit::messages_api::{CacheUse, MessagesApi, Reply, Seen, events};
use testkit::{Script, Upstream};

use crate::rig::{Rig, Settings, anonymous, error, object, stream};

async fn rig(spec: &'static str, model: impl Fn(&Value, usize) -> Reply + Send + Sync + 'static) -> (Rig, MessagesApi) {
    let (upstream, api) = MessagesApi::start(model).await.unwrap();
    let settings = Settings { spec, base_url: Some(upstream.url()), ..Settings::default() };
    (Rig::before(upstream, settings).await, api)
}

const PLAIN: &str = "messages-compatible";
/// With marks for the cache, as the API itself has them.
const MARKED: &str = "{extends: messages-compatible, request: {blocks: {cache: marks}}}";

fn tool(name: &str) -> Value {
    json!({"type": "function", "name": name, "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}})
}

fn thought(text: &str) -> Value {
    json!({"type": "thinking", "thinking": text})
}

fn said(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn calls(id: usize, name: &str) -> Value {
    json!({"type": "tool_use", "id": format!("toolu_{id}"), "name": name, "input": {"n": id}})
}

/// Thinks, speaks and calls a few times, in every way that thoughts can come; then it is done.
fn agent(_: &Value, number: usize) -> Reply {
    let redacted = json!({"type": "redacted_thinking"});
    match number {
        0 => Reply::new("tool_use", &[thought("First \u{1f600} \"this\"."), said("I look."), calls(0, "f")]),
        1 => Reply::new("tool_use", &[thought(""), calls(1, "f"), calls(101, "g")]),
        2 => Reply::new("tool_use", &[thought("a"), redacted, thought("b"), calls(2, "f")]),
        3 => Reply::new("tool_use", &[calls(3, "g")]),
        4..=11 => Reply::new("tool_use", &[thought("On and on."), calls(number, "f")]),
        _ => Reply::new("end_turn", &[thought("Done."), said("All done.")]),
    }
}

/// The results of all calls of a response.
fn results(response: &Value) -> Vec<Value> {
    let items = response["output"].as_array().unwrap().iter();
    let calls = items.filter(|item| item["type"] == "function_call");
    calls.map(|call| json!({"type": "function_call_output", "call_id": call["call_id"], "output": "42"})).collect()
}

fn assert_good(seen: &Seen, replayed: usize) {
    assert_eq!((&seen.refused, seen.dropped), (&Vec::new(), 0));
    assert_eq!(seen.replayed, replayed);
}

/// Thoughts of all answers come back with each request: one after the first, two after the second, and so on.
const THOUGHTS: [usize; 13] = [1, 1, 3, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1];

fn replayed() -> usize {
    (0..THOUGHTS.len()).map(|request| THOUGHTS[..request].iter().sum::<usize>()).sum()
}

#[tokio::test]
async fn an_agents_thoughts_return_from_a_client_that_keeps_its_own_history() {
    let (rig, api) = rig(PLAIN, agent).await;
    let mut input = vec![json!({"role": "user", "content": "Work."})];
    let mut answers = 0;
    loop {
        let body = json!({
            "model": "m", "instructions": "Be brief.", "input": input, "tools": [tool("f"), tool("g")], "store": false,
            "include": ["reasoning.encrypted_content"], "stream": answers % 2 == 0,
        });
        let answer = rig.post(&body).await;
        let response = if answers % 2 == 0 { stream(&answer).response } else { object(&answer) };
        assert_eq!(response["status"], "completed", "{response}");
        answers += 1;
        let results = results(&response);
        if results.is_empty() {
            break;
        }
        input.extend(response["output"].as_array().unwrap().iter().cloned());
        input.extend(results);
    }
    assert_eq!(answers, THOUGHTS.len());
    assert_good(&api.seen(), replayed());
    rig.stop().await;
}

#[tokio::test]
async fn an_agents_thoughts_return_over_a_chain_and_the_cache_is_used() {
    let (rig, api) = rig(MARKED, agent).await;
    let mut body =
        json!({"model": "m", "instructions": "Be brief.", "input": "Work.", "tools": [tool("f"), tool("g")]});
    loop {
        let response = object(&rig.post(&body).await);
        let results = results(&response);
        if results.is_empty() {
            break;
        }
        body["input"] = json!(results);
        body["previous_response_id"] = response["id"].clone();
    }
    let seen = api.seen();
    assert_good(&seen, replayed());
    // After the first request everything that was sent before is read.
    let (read, before) =
        seen.cache.windows(2).fold((0, 0), |(read, before), pair| (read + pair[1].read, before + pair[0].blocks));
    assert!(read * 100 >= before * 95, "{read} of {before}: {:?}", seen.cache);
    rig.stop().await;
}

/// Whatever the client asked for, the provider is asked for a stream.
#[tokio::test]
async fn streamed_and_not_streamed_are_the_same() {
    let (rig, api) = rig(PLAIN, |_, _| Reply::new("end_turn", &[thought("Hm."), said("Hello")])).await;
    let (whole, streamed) = rig.both(&json!({"model": "m", "input": "Hi"})).await;
    let (whole, streamed) = (object(&whole), stream(&streamed));
    assert_eq!(streamed.text, "Hello");
    assert_eq!(whole["usage"]["output_tokens"], 9);
    let without_seals = |mut response: Value| {
        for item in response["output"].as_array_mut().unwrap() {
            item.as_object_mut().unwrap().remove("encrypted_content");
        }
        anonymous(response)
    };
    assert_eq!(without_seals(whole), without_seals(streamed.response));
    for received in rig.upstream.requests() {
        assert_eq!((received.path.as_str(), &received.json()["stream"]), ("/v1/messages", &json!(true)));
        assert!(received.header("x-api-key").is_some() && received.header("authorization").is_none());
    }
    assert_good(&api.seen(), 0);
    rig.stop().await;
}

fn failing(kind: &str, words: &str) -> Script {
    let error = json!({"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_7"});
    let start = json!({"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 1}}});
    Script::event_stream().event(&start).send(format!("event: error\ndata: {error}\n\n"))
}

/// An error as the first thing under a good status is as good as that status: another try, or its error.
#[tokio::test]
async fn errors_in_place_of_an_answer() {
    let (rig, _) = rig(PLAIN, |_, _| Reply::text("Hello")).await;
    rig.upstream.queue(failing("overloaded_error", "Overloaded"));
    let response = object(&rig.post(&json!({"model": "m", "input": "Hi"})).await);
    assert_eq!((&response["status"], rig.upstream.requests().len()), (&json!("completed"), 2));
    for (kind, words, status, message) in [
        ("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", 400, "prompt is too long"),
        ("authentication_error", "invalid x-api-key", 502, "(request req_7)"),
        ("billing_error", "no credit", 429, "no credit"),
    ] {
        rig.upstream.queue(failing(kind, words));
        let answer = rig.post(&json!({"model": "m", "input": "Hi"})).await;
        let error = error(&answer);
        assert_eq!(error.status, status, "{kind}: {}", error.message);
        assert!(kind == "authentication_error" || error.message.contains(message), "{kind}: {}", error.message);
    }
    rig.stop().await;
}

/// Some proxies call a stream JSON.
#[tokio::test]
async fn a_stream_that_says_it_is_json_is_read() {
    let events = events(1, &[said("Hello there, you")], "end_turn", CacheUse::default(), 0);
    let event = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    let body: String = events.iter().map(event).collect();
    for script in [
        Script::body(200, "application/json", body.clone()),
        Script::respond(200).header("content-type", "application/json").send(body).split_every(1),
    ] {
        let rig = Rig::with(script, Settings { spec: PLAIN, ..Settings::default() }).await;
        let (whole, streamed) = rig.both(&json!({"model": "m", "input": "Hi"})).await;
        let (whole, streamed) = (object(&whole), stream(&streamed));
        assert_eq!(whole["output"][0]["content"][0]["text"], "Hello there, you");
        assert_eq!(anonymous(whole), anonymous(streamed.response));
        rig.stop().await;
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_never_completed() {
    let (rig, _) = rig(PLAIN, |_, _| Reply::text("Hello")).await;
    let events = events(1, &[said("Hello there, you")], "end_turn", CacheUse::default(), 0);
    for length in 4..events.len() {
        let body = events[..length].iter().map(|event| format!("data: {event}\n\n")).collect::<Vec<_>>().concat();
        rig.upstream.queue(Script::sse_bytes(body.clone()));
        let answer = rig.post(&json!({"model": "m", "input": "Hi", "stream": true})).await;
        assert_eq!(stream(&answer).response["status"], "failed", "{body}");
        let error = format!("{body}data: {}\n\n", json!({"type": "error", "error": {"type": "overloaded_error"}}));
        rig.upstream.queue(Script::sse_bytes(error));
        let answer = rig.post(&json!({"model": "m", "input": "Hi", "stream": true})).await;
        let response = stream(&answer).response;
        assert_eq!(
            (&response["status"], &response["error"]["code"]),
            (&json!("failed"), &json!("server_is_overloaded"))
        );
    }
    rig.stop().await;
}

/// A provider that searches by itself and pauses in between: it is asked to go on, in the same response, with what it did.
#[tokio::test]
async fn a_pause_is_gone_on_from() {
    const SEARCHES: &str = "{extends: messages-compatible, request: {tools: {native: {web_search: \
                            '{\"type\":\"web_search_20250305\",\"name\":\"web_search\"}'}}}}";
    let search =
        |id: &str| json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "rust"}});
    let found = |id: &str| {
        let results =
            json!([{"type": "web_search_result", "url": "https://a.b/", "title": "T", "encrypted_content": "e"}]);
        json!({"type": "web_search_tool_result", "tool_use_id": id, "content": results})
    };
    let (rig, api) = rig(SEARCHES, move |request, number| match number {
        0 => Reply::new("pause_turn", &[said("I search."), search("u1"), found("u1"), search("u2")]),
        1 => {
            let did = request["messages"][1]["content"].as_array().unwrap().iter().map(|block| block["type"].clone());
            assert_eq!(did.collect::<Vec<_>>(), ["text", "server_tool_use", "web_search_tool_result"]);
            // As it was left: nobody has said anything since.
            assert_eq!(request["messages"].as_array().unwrap().len(), 2);
            Reply::new("end_turn", &[said("Found it.")])
        }
        _ => Reply::new("pause_turn", &[said("Still.")]),
    })
    .await;
    let body = json!({"model": "m", "input": "Hi", "tools": [{"type": "web_search"}], "stream": true});
    let response = stream(&rig.post(&body).await).response;
    let kinds: Vec<&str> =
        response["output"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect();
    let expected = ["message", "web_search_call", "web_search_call", "reasoning", "message"];
    assert_eq!((kinds.as_slice(), &response["status"]), (&expected[..], &json!("completed")));
    assert_eq!(rig.upstream.requests().len(), 2);
    // One that does nothing else is left in the end.
    let response = stream(&rig.post(&body).await).response;
    assert_eq!((&response["status"], &response["error"]["code"]), (&json!("failed"), &json!("server_error")));
    assert!(
        rig.upstream.requests().iter().all(|request| !request.json()["messages"].to_string().contains("(continue)"))
    );
    assert_eq!((rig.upstream.requests().len(), api.seen().refused), (2 + 11, Vec::new()));
    rig.stop().await;
}

/// What was thought about another prompt is refused: it is asked again without, once, and with the same key.
#[tokio::test]
async fn thoughts_that_no_longer_fit_are_left_out() {
    let (rig, api) = rig(PLAIN, |_, _| Reply::new("end_turn", &[thought("Hm."), said("Hello")])).await;
    let first = object(&rig.post(&json!({"model": "m", "instructions": "Be brief.", "input": "Hi"})).await);
    let next = json!({"model": "m", "instructions": "Be long.", "input": "And?", "previous_response_id": first["id"]});
    let second = object(&rig.post(&next).await);
    assert_eq!(second["status"], "completed", "{second}");
    let requests = rig.upstream.requests();
    assert_eq!((api.seen().refused.len(), requests.len()), (1, 3), "{:?}", api.seen().refused);
    let thoughts = |at: usize| requests[at].json()["messages"].to_string().matches("\"signature\"").count();
    assert_eq!((thoughts(1), thoughts(2)), (1, 0));
    assert_eq!(requests[1].header("x-api-key"), requests[2].header("x-api-key"));
    rig.stop().await;
}

/// Where the provider can be told so, it drops them itself, for one tool more: nothing is refused, and thoughts of later
/// answers return.
#[tokio::test]
async fn a_tool_that_comes_late_costs_thoughts_and_nothing_else() {
    const BOUND: &str = "{extends: messages-compatible, request: {blocks: {binding_beta: thinking-binding-controls-2026-08-01}, \
                         reasoning: {unsaid: 'on', 'on': '{\"thinking\":{\"type\":\"adaptive\"}}'}}}";
    let (rig, api) = rig(BOUND, |_, _| Reply::new("end_turn", &[thought("Hm."), said("Hello")])).await;
    let mut body = json!({"model": "m", "input": "Hi", "tools": [tool("f")]});
    for tools in [vec!["f"], vec!["f", "g"], vec!["f", "g"]] {
        body["tools"] = tools.into_iter().map(tool).collect();
        let response = object(&rig.post(&body).await);
        assert_eq!(response["status"], "completed", "{response}");
        body["previous_response_id"] = response["id"].clone();
    }
    let seen = api.seen();
    assert_eq!((seen.refused, seen.dropped, seen.replayed), (Vec::new(), 2, 3));
    rig.stop().await;
}

/// What godex says of its own accord, or the limit that it sets itself: refused once, and known then.
#[tokio::test]
async fn what_is_added_unasked_is_done_without_where_it_is_refused() {
    type Has = fn(&Value, Option<&str>) -> bool;
    let effort = json!({"reasoning": {"effort": "low"}});
    let plain = json!({});
    let tools = json!({"tools": [tool("f")]});
    let bound: Has = |body, _| body["thinking"].get("block_binding").is_some();
    let trial: Has = |_, betas| betas.is_some_and(|betas| betas.contains("thinking-binding"));
    let configured: Has = |body, _| body.get("output_config").is_some();
    let adaptive: Has = |body, _| body["thinking"]["type"] == "adaptive";
    let eager: Has = |body, _| body["tools"][0].get("eager_input_streaming").is_some();
    let much: Has = |body, _| body["max_tokens"].as_u64() > Some(64_000);
    for (words, has, asked) in [
        ("thinking.adaptive.block_binding: Extra inputs are not permitted", bound, &plain),
        ("Unexpected value(s) `thinking-binding-controls-2026-08-01` for the `anthropic-beta` header.", trial, &plain),
        ("output_config: Extra inputs are not permitted", configured, &effort),
        ("This model does not support the effort parameter.", configured, &effort),
        ("adaptive thinking is not supported on this model", adaptive, &effort),
        ("tools.0.custom.eager_input_streaming: Extra inputs are not permitted", eager, &tools),
        ("max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens for m", much, &plain),
    ] {
        let rig = refusing(words, has).await;
        let mut request = json!({"model": "claude-opus-5-5", "input": "Hi"});
        request.as_object_mut().unwrap().extend(asked.as_object().unwrap().clone());
        for sent in [2, 3] {
            assert_eq!(object(&rig.post(&request).await)["status"], "completed", "{words}");
            assert_eq!(rig.upstream.requests().len(), sent, "{words}");
        }
        rig.stop().await;
    }
}

/// Input that fits, but for the limit that godex set itself; the client's own is not changed.
#[tokio::test]
async fn a_limit_of_our_own_gives_way_to_the_input() {
    let words = "input length and `max_tokens` exceed context limit: 185000 + 32000 > 200000, decrease input length";
    let rig = refusing(words, |body, _| body["max_tokens"].as_u64() > Some(15_000)).await;
    let mut request = json!({"model": "claude-haiku-4-5", "input": "Hi"});
    assert_eq!(object(&rig.post(&request).await)["status"], "completed");
    let limits: Vec<Value> = rig.upstream.requests().iter().map(|sent| sent.json()["max_tokens"].clone()).collect();
    assert_eq!(limits, [json!(32_000), json!(15_000)]);
    request["max_output_tokens"] = json!(32_000);
    assert_eq!(error(&rig.post(&request).await).code, "context_length_exceeded");
    assert_eq!(rig.upstream.requests().len(), 3, "what would be the same is not sent again");
    rig.stop().await;
}

/// A server that refuses with these words what has that, and else answers.
async fn refusing(words: &'static str, has: fn(&Value, Option<&str>) -> bool) -> Rig {
    let answer = events(1, &[said("Fine.")], "end_turn", CacheUse::default(), 0);
    let answer: Vec<String> = answer.iter().map(|event| format!("data: {event}\n\n")).collect();
    let answer = answer.concat();
    let upstream = Upstream::start_with(move |request| {
        if has(&request.json(), request.header("anthropic-beta")) {
            let error = json!({"type": "invalid_request_error", "message": words});
            return Script::json(400, &json!({"type": "error", "error": error}));
        }
        Script::sse_bytes(answer.clone())
    });
    let upstream = upstream.await.unwrap();
    let settings = Settings { spec: "anthropic", base_url: Some(upstream.url()), ..Settings::default() };
    Rig::before(upstream, settings).await
}
