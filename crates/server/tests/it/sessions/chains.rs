//! `previous_response_id`.

use serde_json::{Value, json};
use testkit::{Script, Upstream};

use super::*;
use crate::rig::error;

#[tokio::test]
async fn the_next_turn_knows_the_one_before() {
    let rig = rig("").await;
    for (first, second) in [(false, false), (false, true), (true, false), (true, true)] {
        let alice = turn(&rig, json!({"input": "Hello, my name is Alice."}), first).await;
        assert_eq!(text(&alice), "Alice (1)");
        let asked = json!({"input": "What's my name?", "previous_response_id": alice["id"]});
        let answer = turn(&rig, asked, second).await;
        assert_eq!(text(&answer), "Alice (3)", "{first} {second}");
        assert_eq!((&answer["previous_response_id"], &answer["store"]), (&alice["id"], &json!(true)));
    }
    assert_eq!(text(&say(&rig, "What's my name?", None).await), "nobody (1)");
}

#[tokio::test]
async fn forks_see_exactly_their_ancestors() {
    let rig = rig("").await;
    let root = say(&rig, "Hello", None).await;
    let alice = say(&rig, "my name is Alice.", Some(&root)).await;
    let bob = say(&rig, "my name is Bob.", Some(&root)).await;
    for _ in 0..2 {
        assert_eq!(text(&say(&rig, "Who am I?", Some(&alice)).await), "Alice (5)");
        assert_eq!(text(&say(&rig, "Who am I?", Some(&bob)).await), "Bob (5)");
        assert_eq!(text(&say(&rig, "Who am I?", Some(&root)).await), "nobody (3)");
    }
}

#[tokio::test]
async fn nothing_but_items_is_inherited() {
    let rig = rig("").await;
    let tool = json!({"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}});
    let first = json!({"input": "Hi", "instructions": "my name is Zoe.", "tools": [tool]});
    let first = turn(&rig, first, false).await;
    assert_eq!(text(&first), "Zoe (2)");
    let second = say(&rig, "Who am I?", Some(&first)).await;
    assert_eq!(text(&second), "nobody (3)");
    assert_eq!((&second["instructions"], &second["tools"]), (&json!(null), &json!([])));
    let sent = rig.upstream.requests().pop().unwrap().json();
    assert!(sent.get("tools").is_none(), "{sent}");
    // What was said back about the first turn is kept with it.
    let stored = rig.get(&format!("/v1/responses/{}", id(&first))).await.json();
    assert_eq!(stored, first);
}

#[tokio::test]
async fn instructions_come_back_where_the_operator_wants_them_to() {
    let rig = rig("backend: memory, chain: {replay_instructions: true}").await;
    let first = turn(&rig, json!({"input": "Hi", "instructions": "my name is Zoe."}), false).await;
    let second = turn(&rig, json!({"input": "Who?", "previous_response_id": first["id"]}), false).await;
    assert_eq!(text(&second), "Zoe (4)");
    let roles = |request: &Value| {
        let messages = request["messages"].as_array().unwrap();
        messages.iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let sent = rig.upstream.requests().pop().unwrap().json();
    assert_eq!(roles(&sent), ["system", "user", "assistant", "user"]);
}

#[tokio::test]
async fn a_tool_loop_of_one_hundred_turns() {
    let upstream = Upstream::start_with(|received| {
        let messages = received.json()["messages"].as_array().map_or(0, Vec::len);
        let call = json!({
            "id": format!("call_{messages}"), "type": "function",
            "function": {"name": "next", "arguments": json!({"n": messages}).to_string()},
        });
        let mut completion = chat::completion();
        completion["choices"][0]["message"] = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        completion["choices"][0]["finish_reason"] = json!("tool_calls");
        Script::json(200, &completion)
    });
    let rig = Rig::before(upstream.await.unwrap(), Settings::default()).await;
    let tools = json!([{"type": "function", "name": "next", "parameters": {"type": "object", "properties": {}}}]);
    let mut body = json!({"input": "Go", "tools": tools});
    for round in 0..100 {
        let response = turn(&rig, body, round % 2 == 0).await;
        let call = &response["output"][0];
        assert_eq!(call["arguments"], json!({"n": 2 * round + 1}).to_string());
        let output = json!({"type": "function_call_output", "call_id": call["call_id"], "output": round.to_string()});
        body = json!({"input": [output], "tools": tools, "previous_response_id": response["id"]});
    }
}

#[tokio::test]
async fn what_cannot_be_continued_is_refused() {
    let rig = rig("backend: memory, chain: {max_depth: 3}").await;
    let unknown = |id: &str| json!({"model": "m", "input": "Hi", "previous_response_id": id});
    let first = say(&rig, "One", None).await;
    let second = say(&rig, "Two", Some(&first)).await;
    let third = say(&rig, "Three", Some(&second)).await;
    let fourth = say(&rig, "Four", Some(&third)).await;
    let private = turn(&rig, json!({"input": "Hi", "store": false}), false).await;
    assert_eq!(private["store"], json!(false));
    let (not_found, param) = ("previous_response_not_found", Some("previous_response_id"));
    let cases = [
        ("resp_nosuch", not_found, "session.chain.not_found"),
        ("", not_found, "session.chain.not_found"),
        (id(&private), not_found, "session.chain.not_found"),
        (id(&fourth), "chain_depth_exceeded", "session.chain.depth_exceeded"),
    ];
    let before = rig.upstream.requests().len();
    for (previous, code, domain) in cases {
        let error = error(&rig.post(&unknown(previous)).await);
        assert_eq!(error.key(), (400, "invalid_request_error", code, param), "{previous}: {error:?}");
        assert_eq!(error.domain, domain);
    }
    // A hole fails closed: never a shorter history.
    assert_eq!(delete(&rig, &format!("/v1/responses/{}", id(&second))).await.status, 200);
    for (previous, domain) in [(id(&second), "session.chain.not_found"), (id(&third), "session.chain.deleted_ancestor")]
    {
        let error = error(&rig.post(&unknown(previous)).await);
        assert_eq!((error.key(), error.domain.as_str()), ((400, "invalid_request_error", not_found, param), domain));
    }
    assert_eq!(rig.upstream.requests().len(), before, "nothing was sent");
    assert_eq!(text(&say(&rig, "Again", Some(&first)).await), "nobody (3)");
}

#[tokio::test]
async fn the_operator_may_want_404() {
    let rig = rig("backend: memory, unknown_previous_response_status: 404").await;
    let answer = rig.post(&json!({"model": "m", "input": "Hi", "previous_response_id": "resp_nosuch"})).await;
    let key = (404, "invalid_request_error", "previous_response_not_found", Some("previous_response_id"));
    assert_eq!(error(&answer).key(), key);
}

#[tokio::test]
async fn incomplete_turns_go_on_and_failed_ones_do_not() {
    for (session, continued) in [("backend: memory", 200), ("backend: memory, chain: {include_incomplete: false}", 400)]
    {
        let rig = rig(session).await;
        let cut = chat::chunk(&json!({"content": "Once upon"}), Some("length"));
        rig.upstream.queue(Script::sse(&[cut]));
        let answer = rig.post(&json!({"model": "m", "input": "Tell", "stream": true})).await;
        let (name, last) = stream(&answer).events.pop().unwrap();
        assert_eq!(name, "response.incomplete");
        let incomplete = &last["response"];
        assert_eq!(rig.get(&format!("/v1/responses/{}", id(incomplete))).await.json(), *incomplete);
        let next = json!({"model": "m", "input": "Go on", "previous_response_id": incomplete["id"]});
        assert_eq!(rig.post(&next).await.status, continued);

        let broken = json!({"error": {"message": "broken", "type": "server_error"}});
        rig.upstream.queue(Script::sse(&[chat::text("Once"), broken]));
        let answer = rig.post(&json!({"model": "m", "input": "Tell", "stream": true})).await;
        let (name, last) = stream(&answer).events.pop().unwrap();
        assert_eq!(name, "response.failed");
        let failed = &last["response"];
        // It is found by its id, as it was sent.
        assert_eq!(rig.get(&format!("/v1/responses/{}", id(failed))).await.json(), *failed);
        let next = json!({"model": "m", "input": "Go on", "previous_response_id": failed["id"]});
        let error = error(&rig.post(&next).await);
        assert_eq!((error.status, error.domain.as_str()), (400, "session.chain.unavailable"));
    }
}
