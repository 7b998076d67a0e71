//! Stored responses: fetched, listed page by page, deleted.

use serde_json::json;

use super::*;
use crate::rig::error;

#[tokio::test]
async fn a_stored_response_is_what_was_sent() {
    let rig = rig("").await;
    for streamed in [false, true] {
        let body = json!({
            "input": [{"role": "user", "content": "Grüße 🦊"}], "instructions": "Be \"brief\".", "metadata": {"k": "v"},
            "tools": [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}],
        });
        let response = turn(&rig, body, streamed).await;
        let path = format!("/v1/responses/{}", id(&response));
        for query in ["", "?include[]=reasoning.encrypted_content", "?stream=false&beta=true"] {
            let stored = rig.get(&format!("{path}{query}")).await;
            assert_eq!((stored.status, stored.header("content-type")), (200, Some("application/json")));
            assert_eq!(stored.json(), response);
        }
        let streaming = error(&rig.get(&format!("{path}?stream=true")).await);
        assert_eq!((streaming.status, streaming.param.as_deref()), (400, Some("stream")));
        assert_eq!(error(&rig.get(&format!("{path}?include=nothing")).await).status, 400);
        let cancel = error(&rig.send(Method::POST, &format!("{path}/cancel"), &Value::Null).await);
        assert_eq!((cancel.status, cancel.message.as_str()), (400, "Cannot cancel a synchronous response."));

        let gone = delete(&rig, &path).await;
        let expected = json!({"id": response["id"], "object": "response.deleted", "deleted": true});
        assert_eq!((gone.status, gone.json()), (200, expected));
        for (method, path) in [
            (Method::GET, path.clone()),
            (Method::DELETE, path.clone()),
            (Method::GET, format!("{path}/input_items")),
            (Method::POST, format!("{path}/cancel")),
        ] {
            let error = error(&rig.send(method, &path, &Value::Null).await);
            assert_eq!((error.status, error.code.as_str()), (404, "response_not_found"), "{path}");
            assert_eq!(error.message, format!("Response with id '{}' not found.", id(&response)));
        }
    }
}

#[tokio::test]
async fn what_is_not_to_be_stored_is_not() {
    let rig = rig("").await;
    for streamed in [false, true] {
        let private = turn(&rig, json!({"input": "Hi", "store": false}), streamed).await;
        assert_eq!(private["store"], json!(false));
        assert_eq!(rig.get(&format!("/v1/responses/{}", id(&private))).await.status, 404);
        let item = json!([{"type": "item_reference", "id": private["output"][0]["id"]}]);
        let error = error(&rig.post(&json!({"model": "m", "input": item})).await);
        assert_eq!((error.status, error.code.as_str(), error.param.as_deref()), (404, "item_not_found", Some("input")));
    }
}

#[tokio::test]
async fn a_response_outlives_its_time_only_briefly() {
    let rig = rig("backend: memory, ttl: 1s").await;
    let response = say(&rig, "Hi", None).await;
    let path = format!("/v1/responses/{}", id(&response));
    assert_eq!(rig.get(&path).await.status, 200);
    while rig.get(&path).await.status == 200 {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    // On every road, long before it is swept.
    assert_eq!(rig.get(&path).await.status, 404);
    assert_eq!(rig.get(&format!("{path}/input_items")).await.status, 404);
    assert_eq!(rig.send(Method::POST, &format!("{path}/cancel"), &Value::Null).await.status, 404);
    let item = json!([{"type": "item_reference", "id": response["output"][0]["id"]}]);
    for (body, status, code) in [
        (
            json!({"model": "m", "input": "on", "previous_response_id": response["id"]}),
            400,
            "previous_response_not_found",
        ),
        (json!({"model": "m", "input": item}), 404, "item_not_found"),
    ] {
        let error = error(&rig.post(&body).await);
        assert_eq!((error.status, error.code.as_str()), (status, code));
    }
    assert_eq!(delete(&rig, &path).await.status, 404);
}

#[tokio::test]
async fn input_items_come_in_pages() {
    let rig = rig("").await;
    let input = json!([
        {"role": "user", "content": "one"},
        {"type": "message", "id": "msg_mine", "role": "user", "content": [{"type": "input_text", "text": "two"}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "3"},
    ]);
    let first = turn(&rig, json!({"input": input}), false).await;
    let second = say(&rig, "four", Some(&first)).await;
    let path = format!("/v1/responses/{}/input_items", id(&second));
    let all = rig.get(&format!("{path}?order=asc&limit=100")).await;
    let ids = listed(&all);
    // Its own input, and what it continues, outputs included.
    assert_eq!(ids.len(), 6);
    assert_eq!((ids[1].as_str(), ids[4].as_str()), ("msg_mine", id(&first["output"][0])));
    let items = all.json()["data"].clone();
    let summary = |item: &Value| json!([item["type"], item["role"], item["status"], item["content"][0]["text"]]);
    assert_eq!(summary(&items[0]), json!(["message", "user", "completed", "one"]));
    assert_eq!(summary(&items[5]), json!(["message", "user", "completed", "four"]));
    for (index, prefix) in [(0, "msg_"), (2, "fc_"), (3, "fco_"), (5, "msg_")] {
        assert!(ids[index].starts_with(prefix), "{ids:?}");
    }
    let reversed: Vec<String> = ids.iter().rev().cloned().collect();
    assert_eq!(listed(&rig.get(&path).await), reversed);
    for (order, expected) in [("asc", &ids), ("desc", &reversed)] {
        for limit in 1..=7 {
            let mut seen: Vec<String> = Vec::new();
            loop {
                let after = seen.last().map(|last| format!("&after={last}")).unwrap_or_default();
                let page = rig.get(&format!("{path}?order={order}&limit={limit}{after}")).await;
                let ids = listed(&page);
                assert!(ids.len() <= limit && !ids.is_empty(), "{ids:?}");
                seen.extend(ids);
                if page.json()["has_more"] == json!(false) {
                    break;
                }
            }
            assert_eq!(&seen, expected, "{order} {limit}");
        }
    }
    let last = rig.get(&format!("{path}?order=asc&after={}", ids[5])).await;
    let empty = json!({"object": "list", "data": [], "first_id": null, "last_id": null, "has_more": false});
    assert_eq!((last.status, last.json()), (200, empty));
    for (query, param) in
        [("limit=0", "limit"), ("limit=101", "limit"), ("order=up", "order"), ("after=msg_x", "after")]
    {
        let error = error(&rig.get(&format!("{path}?{query}")).await);
        assert_eq!((error.status, error.param.as_deref()), (400, Some(param)), "{query}");
    }
}

/// All ids of a list, by pages of one.
async fn paged(rig: &Rig, path: &str) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    loop {
        let after = seen.last().map(|last| format!("&after={last}")).unwrap_or_default();
        let page = rig.get(&format!("{path}?order=asc&limit=1{after}")).await;
        seen.extend(listed(&page));
        if page.json()["has_more"] == json!(false) {
            return seen;
        }
    }
}

#[tokio::test]
async fn an_id_stands_once_in_a_list() {
    let rig = rig("").await;
    let mine = |text: &str| json!({"type": "message", "id": "msg_mine", "role": "user", "content": text});
    let first = turn(&rig, json!({"input": [mine("one"), mine("two")]}), false).await;
    let said = json!({"type": "item_reference", "id": first["output"][0]["id"]});
    let input = json!([mine("three"), said, said]);
    let second = turn(&rig, json!({"input": input, "previous_response_id": first["id"]}), false).await;
    let fork = turn(&rig, json!({"input": [mine("three"), said, said]}), false).await;

    let conversation = json!({"items": [mine("one"), mine("two")]});
    let conversation = rig.send(Method::POST, "/v1/conversations", &conversation).await.json();
    let items = format!("/v1/conversations/{}/items", id(&conversation));
    let added = listed(&rig.send(Method::POST, &items, &json!({"items": [mine("three"), said]})).await);
    turn(&rig, json!({"input": [mine("four")], "conversation": conversation["id"]}), false).await;

    let lists = [
        (format!("/v1/responses/{}/input_items", id(&second)), 4),
        (format!("/v1/responses/{}/input_items", id(&fork)), 2),
        (items.clone(), 6),
    ];
    for (path, count) in lists {
        let all = rig.get(&format!("{path}?order=asc")).await;
        let ids = listed(&all);
        assert_eq!((ids.len(), ids[0].as_str()), (count, "msg_mine"), "{ids:?}");
        assert_eq!(paged(&rig, &path).await, ids);
    }
    // Each is found, and goes, by itself.
    assert_ne!(added[0], "msg_mine");
    let third = rig.get(&format!("{items}/{}", added[0])).await.json();
    assert_eq!((third["id"].as_str(), &third["content"][0]["text"]), (Some(added[0].as_str()), &json!("three")));
    assert_eq!(delete(&rig, &format!("{items}/msg_mine")).await.status, 200);
    assert_eq!(paged(&rig, &items).await.len(), 5);
}

#[tokio::test]
async fn an_escaped_id_is_the_id_and_is_shown_plain() {
    let rig = rig("").await;
    let response = say(&rig, "Hi", None).await;
    let escaped = id(&response).replace('_', "%5F");
    assert_eq!(rig.get(&format!("/v1/responses/{escaped}")).await.json(), response);
    let long = "x".repeat(300);
    for (path, message) in [
        ("/v1/responses/resp_a%20%E2%82%AC".to_owned(), "Response with id 'resp_a €' not found.".to_owned()),
        ("/v1/responses/a%0d%0A%00%1b%7fb".to_owned(), "Response with id 'ab' not found.".to_owned()),
        ("/v1/responses/a%2Fb/input_items".to_owned(), "Response with id 'a/b' not found.".to_owned()),
        ("/v1/conversations/%22c%22".to_owned(), "Conversation with id '\"c\"' not found.".to_owned()),
        ("/v1/conversations/c/items/i%C2%85".to_owned(), "Item with id 'i' not found in conversation 'c'.".to_owned()),
        (format!("/v1/responses/{long}"), format!("Response with id '{}' not found.", &long[..128])),
    ] {
        let error = error(&rig.get(&path).await);
        assert_eq!((error.status, error.message), (404, message), "{path}");
    }
}
