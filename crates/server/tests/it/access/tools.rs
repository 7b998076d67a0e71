//! Keys for some hosted tools only, before a provider that takes every tool as it is and runs its own.

use http::Method;
use serde_json::{Value, json};
use testkit::{Answer, Script, Upstream};

use super::send;
use crate::rig::{self, Rig, error, object};

const FREE: &str = "key-for-everything-00001";
const BOUND: &str = "key-for-some-tools-00002";

const KEYS: &str = "keys:\n- {name: free, tenant: t, key: key-for-everything-00001}\n\
                    - {name: bound, tenant: t, key: key-for-some-tools-00002, tools: [web_search, 'mcp:clock']}\n";

async fn start() -> Rig {
    let content = json!([{"type": "output_text", "text": "Hi", "annotations": []}]);
    let item =
        json!({"type": "message", "id": "msg_up", "role": "assistant", "status": "completed", "content": content});
    let usage = json!({"input_tokens": 5, "output_tokens": 2, "total_tokens": 7});
    let whole = json!({"id": "resp_up", "object": "response", "status": "completed", "output": [item], "usage": usage});
    let upstream = Upstream::start(Script::json(200, &whole)).await.unwrap();
    let text = format!(
        "session: {{backend: memory}}\nproviders:\n  up:\n    spec: {{extends: openai-compatible, models: [{{match: \
         'native*', wire: responses}}]}}\n    endpoint: {{base_url: '{}/v1'}}\n    credentials: {{api_key: k}}\n{KEYS}",
        upstream.url()
    );
    Rig::serving(upstream, rig::parse(&text)).await.unwrap()
}

async fn post(rig: &Rig, key: &str, path: &str, body: &str) -> Answer {
    let bearer = format!("Bearer {key}");
    let headers = [("content-type", "application/json"), ("authorization", bearer.as_str())];
    rig.client.request(Method::POST, &rig.url(path), &headers, body.to_owned()).await.unwrap()
}

async fn ask(rig: &Rig, key: &str, model: &str, more: Value) -> Answer {
    let mut body = more;
    body["model"] = json!(model);
    if body["input"].is_null() {
        body["input"] = json!("Hi");
    }
    send(rig, key, Method::POST, "/v1/responses", &body).await
}

fn refused(answer: &Answer, tool: &str) {
    let error = error(answer);
    assert_eq!((error.status, error.code.as_str()), (403, "tool_not_allowed"), "{tool}: {}", error.message);
    assert!(error.message.ends_with(&format!("the tool `{tool}`")), "{tool}: {}", error.message);
}

fn additional(tools: &Value) -> Value {
    json!([{"type": "additional_tools", "role": "developer", "tools": tools}, {"role": "user", "content": "Hi"}])
}

/// What a search of the client's own has found.
fn found(tools: &Value) -> Value {
    json!([
        {"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {}},
        {"type": "tool_search_output", "call_id": "c", "execution": "client", "status": "completed", "tools": tools},
        {"role": "user", "content": "Hi"},
    ])
}

/// Tools that a provider runs, and what each is called.
fn theirs() -> Vec<(Value, &'static str)> {
    vec![
        (json!({"type": "code_interpreter", "container": {"type": "auto"}}), "code_interpreter"),
        (json!({"type": "image_generation"}), "image_generation"),
        (json!({"type": "mcp", "server_label": "evil", "server_url": "https://evil.example/mcp"}), "mcp"),
        (json!({"type": "mcp", "server_label": "clock", "server_url": "https://evil.example/mcp"}), "mcp"),
        (json!({"type": "shell", "environment": {"type": "container_auto"}}), "shell"),
        (json!({"type": "shell", "environment": {"type": "container_reference", "container_id": "c"}}), "shell"),
        (json!({"type": "tool_search"}), "tool_search"),
        (json!({"type": "tool_search", "execution": "server"}), "tool_search"),
        (json!({"type": "programmatic_tool_calling"}), "programmatic_tool_calling"),
        (json!({"type": "web_search_2099"}), "web_search_2099"),
        (json!({"type": "new_tool"}), "new_tool"),
        (json!({"name": "of no type"}), ""),
        (json!({"type": "namespace", "name": "n", "tools": [{"type": "code_interpreter"}]}), "code_interpreter"),
    ]
}

#[tokio::test]
async fn a_tool_that_a_provider_runs_is_refused_wherever_it_is_declared() {
    let rig = start().await;
    for (tool, name) in theirs() {
        let tools = json!([{"type": "function", "name": "f", "parameters": {}}, tool]);
        refused(&ask(&rig, BOUND, "native", json!({"tools": tools})).await, name);
        refused(&ask(&rig, BOUND, "native", json!({"tools": tools, "background": true})).await, name);
        refused(&ask(&rig, BOUND, "native", json!({"input": additional(&tools)})).await, name);
        refused(&ask(&rig, BOUND, "native", json!({"input": found(&tools)})).await, name);
    }
    let unknown = json!([{"type": "more_tools", "tools": [{"type": "code_interpreter"}]}]);
    refused(&ask(&rig, BOUND, "native", json!({"input": unknown})).await, "code_interpreter");
    assert_eq!(rig.upstream.requests().len(), 0, "nobody was asked");
    // Who is not bound may use them all.
    let tools = json!([theirs()[0].0]);
    object(&ask(&rig, FREE, "native", json!({"tools": tools})).await);
    object(&ask(&rig, FREE, "native", json!({"input": additional(&tools)})).await);
}

#[tokio::test]
async fn tools_of_the_client_are_for_everybody() {
    let rig = start().await;
    let function = json!({"type": "function", "name": "f", "parameters": {}});
    let tools = json!([
        function,
        {"type": "custom", "name": "c"},
        {"type": "namespace", "name": "n", "tools": [function, {"type": "custom", "name": "d"}]},
        {"type": "local_shell"},
        {"type": "apply_patch"},
        {"type": "tool_search", "execution": "client", "parameters": {}},
        {"type": "computer"},
        {"type": "web_search"},
    ]);
    for shell in [json!({"type": "shell"}), json!({"type": "shell", "environment": {"type": "local"}})] {
        let mut tools = tools.clone();
        tools.as_array_mut().unwrap().push(shell);
        object_of(&ask(&rig, BOUND, "native", json!({"tools": tools})).await);
        object_of(&ask(&rig, BOUND, "native", json!({"input": additional(&tools)})).await);
        object_of(&ask(&rig, BOUND, "native", json!({"input": found(&tools)})).await);
    }
    // A server's list of its tools declares none.
    let list = json!([{"type": "mcp_list_tools", "server_label": "x", "tools": [{"name": "a", "input_schema": {}}]}]);
    object(&ask(&rig, BOUND, "native", json!({"input": list})).await);
}

#[tokio::test]
async fn a_past_with_such_a_tool_is_not_continued() {
    let rig = start().await;
    let tools = json!([theirs()[0].0]);
    let items = json!({"items": [additional(&tools)[0]]});
    for key in [FREE, BOUND] {
        let made = object_of(&send(&rig, key, Method::POST, "/v1/conversations", &items).await);
        let body = json!({"conversation": made["id"]});
        refused(&ask(&rig, BOUND, "native", body.clone()).await, "code_interpreter");
        let later = json!({"conversation": made["id"], "background": true});
        refused(&ask(&rig, BOUND, "native", later).await, "code_interpreter");
        object(&ask(&rig, FREE, "native", body).await);
    }
    let first = object(&ask(&rig, FREE, "native", json!({"input": additional(&tools)})).await);
    let body = json!({"previous_response_id": first["id"]});
    refused(&ask(&rig, BOUND, "native", body.clone()).await, "code_interpreter");
    object(&ask(&rig, FREE, "native", body).await);
    assert_eq!(rig.upstream.requests().len(), 4);
}

fn object_of(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    answer.json()
}

/// A stored prompt may have tools of its own.
#[tokio::test]
async fn a_prompt_of_the_provider_is_not_for_a_bound_key() {
    let rig = start().await;
    let body = json!({"prompt": {"id": "pmpt_1"}});
    let error = error(&ask(&rig, BOUND, "native", body.clone()).await);
    assert_eq!((error.status, error.code.as_str(), error.param.as_deref()), (403, "tool_not_allowed", Some("prompt")));
    object(&ask(&rig, FREE, "native", body).await);
}

/// A chat provider gets no tool that is not known: what is left out needs no permission.
#[tokio::test]
async fn what_reaches_no_provider_is_left_out() {
    let rig = start().await;
    (0..20).for_each(|_| rig.upstream.queue(Script::json(200, &crate::chat::completion())));
    for (tool, name) in theirs() {
        let answer = ask(&rig, BOUND, "chat", json!({"tools": [tool], "max_output_tokens": 5})).await;
        let is_known = matches!(name, "code_interpreter" | "image_generation" | "mcp");
        assert_eq!(answer.status == 403, is_known, "{name}: {}", answer.status);
    }
}

/// Nobody may read one kind where another reads a second one.
#[tokio::test]
async fn a_type_that_is_said_twice_is_refused() {
    let rig = start().await;
    let mcp = r#""server_label":"evil","server_url":"https://evil.example/mcp""#;
    for (members, path) in [
        (r#""tools":[{"type":"function","type":"web_search","name":"f"}]"#.to_owned(), "tools[0].type"),
        (format!(r#""tools":[{{"type":"function","ty\u0070e":"mcp","name":"f",{mcp}}}]"#), "tools[0].type"),
        (r#""tools":[{"type":"new","type":"newer"}]"#.to_owned(), "tools[0].type"),
        (r#""input":[{"type":"message","type":"item_reference","id":"a"}]"#.to_owned(), "input[0].type"),
        (
            format!(r#""input":[{{"type":"additional_tools","tools":[{{"type":"custom","type":"mcp",{mcp}}}]}}]"#),
            "input[0].tools[0].type",
        ),
        (
            r#""input":[{"role":"user","content":[{"type":"input_text","type":"input_file","text":"a"}]}]"#.to_owned(),
            "input[0].content[0].type",
        ),
    ] {
        for key in [FREE, BOUND] {
            let body = format!(r#"{{"model":"native","input":"Hi",{members}}}"#);
            let error = error(&post(&rig, key, "/v1/responses", &body).await);
            assert_eq!((error.status, error.code.as_str()), (400, "invalid_value"), "{members}");
            assert_eq!(error.param.as_deref(), Some(path), "{members}");
            assert!(error.message.contains("more than once"), "{}", error.message);
        }
    }
    let stored = r#"{"items":[{"type":"message","type":"additional_tools","tools":[]}]}"#;
    assert_eq!(post(&rig, FREE, "/v1/conversations", stored).await.status, 400);
    assert_eq!(rig.upstream.requests().len(), 0);
}

/// Of a parameter that is repeated the last one counts, also if it takes back what was said.
#[tokio::test]
async fn a_parameter_that_was_taken_back_goes_nowhere() {
    let rig = start().await;
    let body = r#"{"model":"native","input":"Hi","tools":[{"type":"code_interpreter"}],"tools":null,
                   "prompt":{"id":"p"},"prompt":null,"temperature":1,"temperature":0.5}"#;
    object(&post(&rig, BOUND, "/v1/responses", body).await);
    let sent = rig.upstream.requests().pop().unwrap().json();
    assert_eq!((&sent["tools"], &sent["prompt"], &sent["temperature"]), (&Value::Null, &Value::Null, &json!(0.5)));
}

/// A member of a tool that is repeated is read by nobody for certain.
#[tokio::test]
async fn a_tool_that_repeats_a_member_is_not_the_clients() {
    let rig = start().await;
    for (tool, name) in [
        (r#"{"type":"shell","environment":{"type":"container_auto"},"environment":{"type":"local"}}"#, "shell"),
        (r#"{"type":"shell","environment":{"type":"container_auto","type":"local"}}"#, "shell"),
        (r#"{"type":"tool_search","execution":"server","execution":"client"}"#, "tool_search"),
        (r#"{"type":"namespace","tools":[{"type":"code_interpreter"}],"tools":[]}"#, "namespace"),
    ] {
        let body = format!(r#"{{"model":"native","input":"Hi","tools":[{tool}]}}"#);
        refused(&post(&rig, BOUND, "/v1/responses", &body).await, name);
        let input = format!(r#"[{{"type":"additional_tools","tools":[{tool}],"tools":[]}}]"#);
        refused(&post(&rig, BOUND, "/v1/responses", &format!(r#"{{"model":"native","input":{input}}}"#)).await, name);
    }
}
