//! The Conversations API, and turns in conversations.

use serde_json::json;
use testkit::Script;

use super::*;
use crate::rig::error;

async fn make(rig: &Rig, body: Value) -> Value {
    let answer = rig.send(Method::POST, "/v1/conversations", &body).await;
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    let conversation = answer.json();
    assert!(id(&conversation).starts_with("conv_") && id(&conversation).len() > 40, "{conversation}");
    assert!(conversation["created_at"].as_u64().is_some_and(|at| at > 1_700_000_000));
    conversation
}

fn message(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": text})
}

#[tokio::test]
async fn conversations_are_made_changed_and_deleted() {
    let rig = rig("").await;
    let conversation = make(&rig, json!({"metadata": {"topic": "foxes"}, "items": [message("one")]})).await;
    let path = format!("/v1/conversations/{}", id(&conversation));
    assert_eq!(
        (&conversation["object"], &conversation["metadata"]["topic"]),
        (&json!("conversation"), &json!("foxes"))
    );
    assert_eq!(rig.get(&path).await.json(), conversation);
    for empty in [Value::Null, json!({}), json!({"items": [], "metadata": null})] {
        assert_eq!(make(&rig, empty).await["metadata"], json!({}));
    }
    let updated = rig.send(Method::POST, &path, &json!({"metadata": {"topic": "bears"}})).await.json();
    assert_eq!((&updated["id"], &updated["metadata"]), (&conversation["id"], &json!({"topic": "bears"})));

    let cleared = rig.send(Method::POST, &path, &json!({"metadata": null})).await.json();
    assert_eq!((&cleared["id"], &cleared["metadata"]), (&conversation["id"], &json!({})));
    let updated = rig.send(Method::POST, &path, &json!({"metadata": {"topic": "bears"}})).await.json();

    let items = format!("{path}/items");
    let many: Vec<Value> = (0..20).map(|n| message(&n.to_string())).collect();
    let added = listed(&rig.send(Method::POST, &items, &json!({"items": many})).await);
    assert_eq!(added.len(), 20);
    let all = listed(&rig.get(&format!("{items}?order=asc&limit=100")).await);
    assert_eq!(all[1..], added[..]);
    assert_eq!(listed(&rig.get(&format!("{items}?limit=1")).await), all[20..]);
    assert_eq!(listed(&rig.get(&format!("{items}?order=asc&after={}&limit=2", all[3])).await), all[4..6]);
    let item = rig.get(&format!("{items}/{}", all[2])).await.json();
    let expected = json!({"id": all[2], "type": "message", "role": "user", "status": "completed",
        "content": [{"type": "input_text", "text": "1"}]});
    assert_eq!(item, expected);
    let left = delete(&rig, &format!("{items}/{}", all[2])).await;
    assert_eq!((left.status, left.json()), (200, updated));
    assert_eq!(rig.get(&format!("{items}/{}", all[2])).await.status, 404);
    assert_eq!(listed(&rig.get(&format!("{items}?limit=100")).await).len(), 20);

    let gone = delete(&rig, &path).await;
    let expected = json!({"id": conversation["id"], "object": "conversation.deleted", "deleted": true});
    assert_eq!((gone.status, gone.json()), (200, expected));
    for (method, path) in [
        (Method::GET, path.clone()),
        (Method::DELETE, path.clone()),
        (Method::GET, items.clone()),
        (Method::GET, format!("{items}/{}", all[3])),
        (Method::DELETE, format!("{items}/{}", all[3])),
    ] {
        assert_eq!(error(&rig.send(method, &path, &Value::Null).await).status, 404, "{path}");
    }
    for (path, body) in [(&path, json!({"metadata": {}})), (&items, json!({"items": [message("late")]}))] {
        let error = error(&rig.send(Method::POST, path, &body).await);
        assert_eq!((error.status, error.code.as_str()), (404, "conversation_not_found"), "{path}");
    }
}

#[tokio::test]
async fn bad_requests_say_what_and_where() {
    let rig = rig("").await;
    let conversation = make(&rig, json!({})).await;
    let path = format!("/v1/conversations/{}", id(&conversation));
    let items = format!("{path}/items");
    let many: Vec<Value> = (0..21).map(|_| message("x")).collect();
    let root = "/v1/conversations".to_owned();
    for (path, body, code, param) in [
        (&root, json!({"items": many}), "array_above_max_length", "items"),
        (&root, json!({"items": 5}), "invalid_type", "items"),
        (&root, json!({"items": [5]}), "invalid_type", "items[0]"),
        (&root, json!({"metadata": {"k": 1}}), "invalid_type", "metadata.k"),
        (&path, json!({}), "missing_required_parameter", "metadata"),
        (&path, json!({"metadata": "x"}), "invalid_type", "metadata"),
        (&items, json!({}), "missing_required_parameter", "items"),
        (&items, json!({"items": []}), "empty_array", "items"),
        (&items, json!({"items": many}), "array_above_max_length", "items"),
    ] {
        let error = error(&rig.send(Method::POST, path, &body).await);
        assert_eq!((error.status, error.code.as_str(), error.param.as_deref()), (400, code, Some(param)), "{body}");
    }
    let list = error(&rig.send(Method::POST, &root, &json!([])).await);
    assert_eq!((list.status, list.domain.as_str(), list.param), (400, "invalid_body", None));
    let missing = json!({"items": [{"type": "item_reference", "id": "msg_x"}]});
    assert_eq!(error(&rig.send(Method::POST, &items, &missing).await).status, 404);
}

#[tokio::test]
async fn a_turn_reads_and_extends_its_conversation() {
    let rig = rig("").await;
    let conversation = make(&rig, json!({"items": [message("my name is Alice.")]})).await;
    let items = format!("/v1/conversations/{}/items?order=asc", id(&conversation));
    let first = json!({"input": "Who am I?", "conversation": conversation["id"]});
    let first = turn(&rig, first, false).await;
    assert_eq!((text(&first), &first["conversation"]), ("Alice (2)", &json!({"id": conversation["id"]})));
    assert_eq!(rig.get(&format!("/v1/responses/{}", id(&first))).await.json(), first);
    let second = json!({"input": "And now?", "conversation": {"id": conversation["id"]}});
    let second = turn(&rig, second, true).await;
    assert_eq!(text(&second), "Alice (4)");
    let all = listed(&rig.get(&items).await);
    assert_eq!((all.len(), all[2].as_str(), all[4].as_str()), (5, id(&first["output"][0]), id(&second["output"][0])));

    // Read, and left as it is.
    let private = json!({"input": "And now?", "conversation": conversation["id"], "store": false});
    assert_eq!(text(&turn(&rig, private, false).await), "Alice (6)");
    rig.upstream.queue(Script::json(400, &json!({"error": {"message": "broken"}})));
    let failing = json!({"model": "m", "input": "And now?", "conversation": conversation["id"]});
    assert_eq!(rig.post(&failing).await.status, 400);
    rig.upstream.queue(Script::sse(&[chat::text("Once"), json!({"error": {"message": "broken"}})]));
    let failing = json!({"model": "m", "input": "And now?", "conversation": conversation["id"], "stream": true});
    assert_eq!(rig.post(&failing).await.status, 200);
    assert_eq!(listed(&rig.get(&items).await), all);

    // What an item's deletion takes away, later turns do not see.
    assert_eq!(delete(&rig, &format!("/v1/conversations/{}/items/{}", id(&conversation), all[0])).await.status, 200);
    let third = json!({"input": "And now?", "conversation": conversation["id"]});
    assert_eq!(text(&turn(&rig, third, false).await), "nobody (5)");

    let both =
        json!({"model": "m", "input": "x", "conversation": conversation["id"], "previous_response_id": "resp_x"});
    let error_of = async |body: Value| error(&rig.post(&body).await);
    assert_eq!(error_of(both).await.code, "mutually_exclusive_parameters");
    let unknown = error_of(json!({"model": "m", "input": "x", "conversation": "conv_x"})).await;
    let key = (404, "invalid_request_error", "conversation_not_found", Some("conversation"));
    assert_eq!(unknown.key(), key);
}

#[tokio::test]
async fn one_turn_at_a_time() {
    let rig = rig("").await;
    let conversation = make(&rig, json!({})).await;
    let body = json!({"model": "m", "input": "Hi", "conversation": conversation["id"], "stream": true});
    rig.upstream.queue(Script::event_stream().event(&chat::text("Wait")).stall());
    let mut held = rig.client.post_stream(&rig.url("/v1/responses"), &body).await.unwrap();
    held.read_until("Wait").await.unwrap();
    let locked = error(&rig.post(&body).await);
    assert_eq!(locked.key(), (400, "invalid_request_error", "conversation_locked", Some("conversation")));
    let items = format!("/v1/conversations/{}/items", id(&conversation));
    assert_eq!(
        error(&rig.send(Method::POST, &items, &json!({"items": [message("x")]})).await).code,
        "conversation_locked"
    );
    // Other things go on.
    assert_eq!(listed(&rig.get(&items).await).len(), 0);
    let private = json!({"input": "Hi", "conversation": conversation["id"], "store": false});
    assert_eq!(text(&turn(&rig, private, false).await), "nobody (1)");
    // A client that leaves gives it back.
    drop(held);
    loop {
        let answer = rig.post(&body).await;
        if answer.status == 200 {
            break;
        }
        assert_eq!(error(&answer).code, "conversation_locked");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(listed(&rig.get(&items).await).len(), 2);
}

/// Closed at any moment, also before anybody knows that the conversation was taken.
#[tokio::test]
async fn a_client_that_leaves_at_once_locks_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let rig = rig(&format!("sqlite: {{path: '{}'}}", folder.path().join("s.db").display())).await;
    let conversation = make(&rig, json!({})).await;
    let body = json!({"model": "m", "input": "Hi", "conversation": conversation["id"]}).to_string();
    let head = "POST /v1/responses HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ";
    let request = format!("{head}{}\r\n\r\n{body}", body.len());
    for microseconds in [0, 100, 300, 600, 1000, 2000, 4000] {
        for _ in 0..5 {
            let mut socket = tokio::net::TcpStream::connect(rig.address).await.unwrap();
            tokio::io::AsyncWriteExt::write_all(&mut socket, request.as_bytes()).await.unwrap();
            tokio::time::sleep(std::time::Duration::from_micros(microseconds)).await;
            drop(socket);
            // Free long before any lease would run out.
            let mut tries = 0;
            while rig.send(Method::POST, "/v1/responses", &serde_json::from_str(&body).unwrap()).await.status != 200 {
                tries += 1;
                assert!(tries < 100, "{microseconds} µs");
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        }
    }
}

#[tokio::test]
async fn a_deleted_item_stays_with_the_responses_that_have_it() {
    let rig = rig("").await;
    let conversation = make(&rig, json!({"items": [message("my name is Alice.")]})).await;
    let items = format!("/v1/conversations/{}/items", id(&conversation));
    let body = json!({"input": "Who am I?", "conversation": conversation["id"]});
    let first = turn(&rig, body.clone(), false).await;
    let all = listed(&rig.get(&format!("{items}?order=asc")).await);
    for item in [&all[0], &all[2]] {
        assert_eq!(delete(&rig, &format!("{items}/{item}")).await.status, 200);
    }
    assert_eq!(rig.get(&format!("/v1/responses/{}", id(&first))).await.json(), first);
    assert_eq!(text(&say(&rig, "And now?", Some(&first)).await), "Alice (4)");
    // Later turns of the conversation know nothing of it, nor does what continues them.
    let second = turn(&rig, body, false).await;
    assert_eq!(text(&second), "nobody (2)");
    assert_eq!(text(&say(&rig, "And now?", Some(&second)).await), "nobody (4)");
}

#[tokio::test]
async fn a_conversation_deleted_in_mid_turn_is_nobodys_server_error() {
    let rig = rig("").await;
    for streamed in [false, true] {
        let conversation = make(&rig, json!({})).await;
        let path = format!("/v1/conversations/{}", id(&conversation));
        let slow = if streamed {
            Script::event_stream()
        } else {
            Script::respond(200).header("content-type", "application/json")
        };
        let slow = slow.delay(std::time::Duration::from_millis(700));
        rig.upstream.queue(if streamed {
            slow.event(&chat::text("Hi")).event(&chat::stop()).done()
        } else {
            slow.send(chat::completion().to_string())
        });
        let before = rig.upstream.requests().len();
        let body = json!({"model": "m", "input": "Hi", "conversation": conversation["id"], "stream": streamed});
        let gone = async {
            rig.upstream.arrived(before + 1).await;
            delete(&rig, &path).await
        };
        let (answer, deleted) = tokio::join!(rig.post(&body), gone);
        assert_eq!(deleted.status, 200);
        if streamed {
            assert_eq!(stream(&answer).events.pop().unwrap().0, "response.failed");
        } else {
            assert_eq!((error(&answer).status, error(&answer).code.as_str()), (404, "deleted_meanwhile"));
        }
    }
}

/// What the conversation took once must not stop it for ever.
#[tokio::test]
async fn odd_items_stop_no_conversation() {
    let rig = rig("").await;
    for item in [
        json!({"type": "message", "role": "tool", "content": "t"}),
        json!({"type": "message", "role": "critic", "content": "t"}),
        json!({"role": "user", "content": null}),
        json!({"type": "function_call", "name": "f"}),
        json!({"type": "function_call_output", "call_id": "call_x", "output": "1"}),
        json!({"type": "shell_call"}),
        json!({"type": "no_such_kind", "x": 1}),
    ] {
        let conversation = make(&rig, json!({"items": [item]})).await;
        let body = json!({"model": "m", "input": "my name is Alice.", "conversation": conversation["id"]});
        let answer = rig.post(&body).await;
        assert_eq!(answer.status, 200, "{item}: {}", String::from_utf8_lossy(&answer.body));
    }
}

#[tokio::test]
async fn an_id_that_no_conversation_can_have_is_refused_by_name() {
    let rig = rig("").await;
    let begins = "Expected an ID that begins with 'conv_'.";
    let contains = "Expected an ID that contains letters, numbers, underscores, or dashes, but this value contained \
                    additional characters.";
    for (sent, expected) in
        [("abc", begins), ("", begins), ("resp_1", begins), ("conv", begins), ("conv_a b", contains)]
    {
        for conversation in [json!(sent), json!({"id": sent})] {
            for more in [json!({}), json!({"store": false}), json!({"stream": true})] {
                let mut body = more;
                body["model"] = json!("m");
                body["input"] = json!("Hi");
                body["conversation"] = conversation.clone();
                let error = error(&rig.post(&body).await);
                assert_eq!(
                    error.key(),
                    (400, "invalid_request_error", "invalid_value", Some("conversation")),
                    "{body}"
                );
                assert_eq!(error.message, format!("Invalid 'conversation': '{sent}'. {expected}"));
            }
        }
    }
    assert!(rig.upstream.requests().is_empty());
}
