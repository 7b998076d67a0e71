use super::*;

#[tokio::test]
async fn a_response_is_made_without_its_client() {
    for stream in [false, true] {
        let rig = Rig::start(slow(Duration::from_millis(50))).await;
        let (id, queued) = if stream {
            let answer = rig.client.post_stream(&rig.url("/v1/responses"), &request(true)).await.unwrap();
            let mut answer = answer;
            let read = answer.read_until("response.queued").await.unwrap();
            drop(answer);
            (id_in(&read), None)
        } else {
            let queued = submit(&rig).await;
            assert_eq!(queued["status"], "queued");
            assert_eq!((&queued["background"], &queued["output"]), (&json!(true), &json!([])));
            (queued["id"].as_str().unwrap().to_owned(), Some(queued))
        };
        let done = until(&rig, &format!("/v1/responses/{id}"), &["completed"]).await;
        assert_eq!(done["output"][0]["content"][0]["text"], "Hello");
        if let Some(queued) = queued {
            assert_eq!((&done["id"], &done["created_at"]), (&queued["id"], &queued["created_at"]));
        }
        let next = json!({"model": "m", "input": "And?", "previous_response_id": id});
        assert_eq!(rig.post(&next).await.status, 200);
        assert_eq!(rig.upstream.requests().len(), 2);
    }
}

#[tokio::test]
async fn what_cannot_be_done_in_the_background_is_refused_at_once() {
    let rig = Rig::start(chat::answer(false)).await;
    for (change, status, code, param) in [
        (json!({"store": false}), 400, "unsupported_parameter", Some("background")),
        (
            json!({"previous_response_id": "resp_none"}),
            400,
            "previous_response_not_found",
            Some("previous_response_id"),
        ),
        (json!({"conversation": "conv_none"}), 404, "conversation_not_found", Some("conversation")),
        (json!({"model": "up/"}), 404, "model_not_found", Some("model")),
        (json!({"input": []}), 400, "empty_array", Some("input")),
        (json!({"input": [{"type": "item_reference", "id": "msg_none"}]}), 404, "item_not_found", Some("input")),
    ] {
        let mut body = request(false);
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let error = rig::error(&rig.post(&body).await);
        assert_eq!((error.status, &*error.code, error.param.as_deref()), (status, code, param), "{change}");
    }
    assert!(rig.upstream.requests().is_empty());
}

/// What a foreground client would have got as an HTTP error is what the response failed with.
#[tokio::test]
async fn a_provider_that_refuses_fails_the_response() {
    for (status, code) in [(400, "invalid_prompt"), (401, "server_error"), (429, "rate_limit_exceeded")] {
        for stream in [false, true] {
            let script = Script::json(status, &json!({"error": {"message": "no", "type": "x", "code": null}}));
            let rig = Rig::with(script, Settings { resilience: "retries: 0", ..Settings::default() }).await;
            let answer = rig.post(&request(stream)).await;
            let id = id_in(&answer.body);
            let failed = until(&rig, &format!("/v1/responses/{id}"), &["failed"]).await;
            assert_eq!(failed["error"]["code"], code, "{failed}");
            if stream {
                let stream = rig::stream(&answer);
                assert_eq!(stream.response, failed);
            }
        }
    }
}

#[tokio::test]
async fn as_many_run_as_may_and_as_many_wait() {
    let settings = Settings {
        session: "backend: memory, background: {concurrency: 2, queue: 2}".to_owned(),
        ..Settings::default()
    };
    let rig = Rig::with(stuck(), settings).await;
    let mut responses = Vec::new();
    for _ in 0..4 {
        responses.push(submit(&rig).await);
    }
    let refused = rig.post(&request(false)).await;
    let error = rig::error(&refused);
    assert_eq!((error.status, &*error.kind, &*error.code), (429, "rate_limit_error", "rate_limit_exceeded"));
    assert!(refused.header("retry-after").is_some());
    rig.upstream.arrived(2).await;
    let statuses = |responses: Vec<Value>| async {
        let mut found = Vec::new();
        for response in responses {
            found.push(rig.get(&path(&response)).await.json()["status"].as_str().unwrap().to_owned());
        }
        found
    };
    assert_eq!(statuses(responses.clone()).await, ["in_progress", "in_progress", "queued", "queued"]);
    assert_eq!(cancel(&rig, &path(&responses[0])).await.status, 200);
    rig.upstream.arrived(3).await;
    assert_eq!(statuses(responses.clone()).await, ["cancelled", "in_progress", "in_progress", "queued"]);
    assert_eq!(rig.post(&request(false)).await.status, 200, "there is a place in the queue again");
    assert_eq!(rig.upstream.requests().len(), 3);
}

#[tokio::test]
async fn an_answer_is_asked_for_again_in_the_background_too() {
    let wrong =
        json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "no"}, "finish_reason": "stop"}]});
    let right = json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "{\"a\":1}"}, "finish_reason": "stop"}]});
    let tweak: fn(&mut server::config::Config) = |config| config.output.repair = bridge::Repair::Reask;
    let rig = Rig::with(Script::json(200, &right), Settings { tweak: Some(tweak), ..Settings::default() }).await;
    rig.upstream.queue(Script::json(200, &wrong));
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false});
    let mut body = request(false);
    body["text"] = json!({"format": {"type": "json_schema", "name": "n", "schema": schema, "strict": true}});
    let queued = rig::object_now(&rig.post(&body).await);
    let done = until(&rig, &path(&queued), &["completed", "failed"]).await;
    assert_eq!(done["output"][0]["content"][0]["text"], "{\"a\":1}", "{done}");
    assert_eq!(rig.upstream.requests().len(), 2);
}

#[tokio::test]
async fn a_conversation_takes_what_was_made_in_the_background() {
    let rig = Rig::start(slow(Duration::from_millis(50))).await;
    let conversation = rig.send(Method::POST, "/v1/conversations", &json!({})).await.json();
    let id = conversation["id"].as_str().unwrap();
    let mut body = request(true);
    body["conversation"] = json!(id);
    let streamed = rig.post(&body).await;
    rig::stream(&streamed);
    let items = rig.get(&format!("/v1/conversations/{id}/items?order=asc")).await.json();
    let roles: Vec<_> = items["data"].as_array().unwrap().iter().map(|item| item["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant"]);
    // It is free for the next one.
    assert_eq!(rig.post(&body).await.status, 200);
}

#[tokio::test]
async fn a_response_that_runs_is_neither_deleted_nor_continued() {
    let rig = Rig::start(stuck()).await;
    let response = submit(&rig).await;
    until(&rig, &path(&response), &["in_progress"]).await;
    let deleted = rig::error(&rig.send(Method::DELETE, &path(&response), &Value::Null).await);
    assert_eq!(deleted.status, 400, "{}", deleted.message);
    let next = json!({"model": "m", "input": "And?", "previous_response_id": response["id"]});
    assert_eq!(rig::error(&rig.post(&next).await).code, "previous_response_unavailable");
    assert_eq!(cancel(&rig, &path(&response)).await.status, 200);
    assert_eq!(rig.send(Method::DELETE, &path(&response), &Value::Null).await.status, 200);
    assert_eq!(rig.get(&path(&response)).await.status, 404);
}

/// A conversation that is deleted under a turn fails the turn, and its place is free.
#[tokio::test]
async fn a_conversation_that_is_deleted_meanwhile_fails_what_ran_in_it() {
    let session = "backend: memory, background: {concurrency: 1, queue: 5}".to_owned();
    let rig = Rig::with(slow(Duration::from_millis(200)), Settings { session, ..Settings::default() }).await;
    for stream in [false, true] {
        let conversation = rig.send(Method::POST, "/v1/conversations", &json!({})).await.json();
        let id = conversation["id"].as_str().unwrap().to_owned();
        let mut body = request(stream);
        body["conversation"] = json!(id);
        let mut answer = rig.client.post_stream(&rig.url("/v1/responses"), &body).await.unwrap();
        let mut read = answer.read_until("resp_").await.unwrap();
        rig.upstream.arrived(rig.upstream.requests().len().max(1)).await;
        assert_eq!(rig.send(Method::DELETE, &format!("/v1/conversations/{id}"), &Value::Null).await.status, 200);
        while let Some(more) = answer.next().await.unwrap() {
            read.extend_from_slice(&more);
        }
        let failed = until(&rig, &format!("/v1/responses/{}", id_in(&read)), &["failed"]).await;
        assert!(failed["error"]["message"].as_str().unwrap().contains("conversation"), "{failed}");
        if stream {
            assert_eq!(testkit::grammar::check(&read).unwrap().response, failed);
        }
        let next = submit(&rig).await;
        until(&rig, &path(&next), &["completed"]).await;
    }
}
