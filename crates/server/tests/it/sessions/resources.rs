//! Stored items as the API shows them: whatever a client may send comes back as a resource.

use serde_json::json;

use super::examples::Examples;
use super::*;

/// A server that takes outputs without their calls.
async fn lenient() -> Rig {
    let upstream = Upstream::start_with(forgetful).await.unwrap();
    let tweak: fn(&mut server::config::Config) = |config| config.compat.repair_history = Some(true);
    Rig::before(upstream, Settings { tweak: Some(tweak), ..Settings::default() }).await
}

/// What is in the schema of inputs and is no item that could be shown.
const NOT_SHOWN: [&str; 2] = ["ItemReferenceParam", "CompactionTriggerItemParam"];

/// All items of a list, oldest first.
async fn all(rig: &Rig, path: &str) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    loop {
        let after = items.last().map(|last| format!("&after={}", id(last))).unwrap_or_default();
        let page = rig.get(&format!("{path}?order=asc&limit=100{after}")).await.json();
        items.extend(page["data"].as_array().unwrap_or_else(|| panic!("{page}")).iter().cloned());
        if page["has_more"] == json!(false) {
            return items;
        }
    }
}

/// What one was sent has what the other has, and as it was.
fn kept(sent: &Value, shown: &Value) -> bool {
    match (sent, shown) {
        (Value::Object(sent), Value::Object(shown)) => {
            sent.iter().all(|(name, value)| shown.get(name).is_some_and(|shown| kept(value, shown)))
        }
        (Value::Array(sent), Value::Array(shown)) => {
            sent.len() == shown.len() && sent.iter().zip(shown).all(|(sent, shown)| kept(sent, shown))
        }
        (sent, shown) => sent == shown,
    }
}

#[tokio::test]
async fn every_kind_of_item_comes_back_as_its_resource() {
    let (Some(examples), Some(schemas)) = (Examples::load(), Schemas::load()) else { return };
    let rig = lenient().await;
    let mut problems = Vec::new();
    let mut count = 0;
    for component in examples.members("InputItem") {
        if NOT_SHOWN.contains(&component.as_str()) {
            continue;
        }
        let sent = examples.of(&component);
        count += sent.len();
        for item in &sent {
            assert_eq!(schemas.openai("InputItem", item), Vec::<String>::new(), "{component}: {item}");
        }
        let body = json!({"model": "m", "input": sent});
        let response = rig.post(&body).await;
        assert_eq!(response.status, 200, "{component}: {}", String::from_utf8_lossy(&response.body));
        let inputs = all(&rig, &format!("/v1/responses/{}/input_items", id(&response.json()))).await;

        let conversation = rig.send(Method::POST, "/v1/conversations", &json!({})).await.json();
        let path = format!("/v1/conversations/{}/items", id(&conversation));
        let mut created = Vec::new();
        for some in sent.chunks(20) {
            let answer = rig.send(Method::POST, &path, &json!({"items": some})).await.json();
            created.extend(answer["data"].as_array().unwrap_or_else(|| panic!("{answer}")).iter().cloned());
        }
        let one = rig.get(&format!("{path}/{}", id(&created[0]))).await.json();
        assert_eq!(one, created[0]);
        let listed = all(&rig, &path).await;
        assert_eq!((inputs.len(), created.len()), (sent.len(), sent.len()), "{component}");
        assert_eq!(listed, created);
        for (shown, resource) in [(&inputs, "ItemResource"), (&created, "ConversationItem")] {
            for (sent, shown) in sent.iter().zip(shown) {
                if let Some(problem) = schemas.openai(resource, shown).pop() {
                    problems.push(format!(
                        "{component} as {resource}: {sent} → {shown}: {}",
                        &problem[..60.min(problem.len())]
                    ));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{} of {count}:\n{}", problems.len(), problems.join("\n"));
    assert!(count > 200, "{count}");
}

/// Less than the schema of inputs asks for, and yet what clients send.
#[tokio::test]
async fn what_clients_leave_out_is_added() {
    let Some(schemas) = Schemas::load() else { return };
    let rig = lenient().await;
    let image = json!({"type": "input_image", "image_url": "https://example.com/a.png"});
    let items = json!([
        {"role": "user", "content": [image, {"type": "input_image", "file_id": "f", "image_url": null, "detail": null}]},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "output_text", "text": "Ho"}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Hi"}], "status": null},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Hi", "annotations": null, "logprobs": null}]},
        {"role": "assistant", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "message", "role": "assistant"},
        {"type": "reasoning", "summary": [], "content": null, "status": null, "encrypted_content": null},
        {"type": "reasoning", "encrypted_content": "sealed"},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}", "status": null},
        {"type": "function_call_output", "call_id": "a", "output": [image], "status": null},
        {"type": "custom_tool_call_output", "call_id": "a", "output": [image]},
        {"type": "computer_call_output", "call_id": "a", "output": {"type": "computer_screenshot"}},
        {"type": "shell_call", "call_id": "a", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "call_id": "a", "output": []},
        {"type": "local_shell_call", "call_id": "a", "action": {"type": "exec", "command": ["ls"]}},
        {"type": "local_shell_call_output", "id": "a", "output": "x", "status": null},
        {"type": "local_shell_call_output", "call_id": "a", "output": "x"},
        {"type": "mcp_approval_response", "approval_request_id": "a", "approve": true},
        {"type": "web_search_call", "id": "a", "status": null, "action": null},
        {"type": "image_generation_call", "id": "a"},
        {"type": "code_interpreter_call", "id": "a", "container_id": "c"},
        {"type": "file_search_call", "id": "a"},
        {"type": "computer_call", "call_id": "a"},
        {"type": "apply_patch_call_output", "call_id": "a"},
        {"type": "compaction_summary", "encrypted_content": "sealed"},
    ]);
    let response = rig.post(&json!({"model": "m", "input": items})).await;
    assert_eq!(response.status, 200, "{}", String::from_utf8_lossy(&response.body));
    let shown = all(&rig, &format!("/v1/responses/{}/input_items", id(&response.json()))).await;
    assert_eq!(shown.len(), items.as_array().unwrap().len());
    for resource in ["ItemResource", "ConversationItem"] {
        let wrong = |shown: &&Value| !schemas.openai(resource, shown).is_empty();
        assert_eq!(shown.iter().filter(wrong).collect::<Vec<_>>(), Vec::<&Value>::new(), "{resource}");
    }
}

#[tokio::test]
async fn what_a_client_adds_survives_the_way_out() {
    let rig = rig("").await;
    let items = json!([
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA=", "internal": {"a": [null, 1.50]}},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi", "mine": null}], "tag": null},
        {"type": "from_the_future", "id": "x_1", "status": null, "payload": {"deep": [true]}},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "sealed"},
    ]);
    let response = turn(&rig, json!({"input": items}), false).await;
    let shown = all(&rig, &format!("/v1/responses/{}/input_items", id(&response))).await;
    for (sent, shown) in items.as_array().unwrap().iter().zip(&shown) {
        assert!(kept(sent, shown), "{sent} {shown}");
    }
}

#[tokio::test]
async fn a_trigger_is_no_item() {
    let rig = rig("").await;
    let input = json!([{"role": "user", "content": "Hi"}, {"type": "compaction_trigger"}]);
    let response = turn(&rig, json!({"input": input}), false).await;
    assert_eq!(all(&rig, &format!("/v1/responses/{}/input_items", id(&response))).await.len(), 1);
}

/// Half a surrogate pair, which a client may send and many parsers do not take, is nowhere in what comes back.
#[tokio::test]
async fn half_a_pair_comes_back_as_what_everybody_can_read() {
    /// Stands for it until the text goes out: a `Value` cannot hold one.
    const HALF: char = '\u{e000}';
    let rig = rig("").await;
    let (word, read) = (format!("a{HALF}b"), "a\u{fffd}b");
    let post = async |path: &str, body: Value| {
        let (headers, body) = ([("content-type", "application/json")], body.to_string().replace(HALF, "\\ud800"));
        let answer = rig.client.request(Method::POST, &rig.url(path), &headers, body).await.unwrap();
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        answer
    };
    let item = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": word}]});
    let tool =
        json!({"type": "function", "name": "f", "description": word, "parameters": {"type": "object", "title": word}});
    let body = json!({
        "model": "m", "input": [item], "instructions": word, "metadata": {"k": word, word.as_str(): "v"}, "user": word,
        "prompt_cache_key": word, "safety_identifier": word, "tools": [tool], "stream": true,
    });
    let (_, last) = stream(&post("/v1/responses", body.clone()).await).events.pop().unwrap();
    let mut whole = body;
    whole["stream"] = json!(false);
    let object = object(&post("/v1/responses", whole.clone()).await);
    let stored = rig.get(&format!("/v1/responses/{}", id(&object))).await.json();
    for shown in [&last["response"], &object, &stored] {
        assert_eq!(shown["metadata"], json!({"k": read, read: "v"}));
        for name in ["instructions", "user", "prompt_cache_key", "safety_identifier"] {
            assert_eq!(shown[name], read, "{name}");
        }
        assert_eq!(
            (&shown["tools"][0]["description"], &shown["tools"][0]["parameters"]["title"]),
            (&json!(read), &json!(read))
        );
    }
    let listed = rig.get(&format!("/v1/responses/{}/input_items", id(&object))).await.json();
    assert_eq!(listed["data"][0]["content"][0]["text"], read);
    let made = post("/v1/conversations", json!({"metadata": {"k": word}, "items": [item]})).await.json();
    assert_eq!(made["metadata"]["k"], read);
    let path = format!("/v1/conversations/{}", id(&made));
    assert_eq!(rig.get(&path).await.json()["metadata"]["k"], read);
    assert_eq!(rig.get(&format!("{path}/items")).await.json()["data"][0]["content"][0]["text"], read);
    let compacted =
        post("/v1/responses/compact", json!({"model": "m", "input": [item, {"role": "assistant", "content": word}]}));
    assert_eq!(compacted.await.json()["output"][0]["content"][0]["text"], read);
}
