//! What is asked of the earlier version, and what it answered.

use http::Method;
use serde_json::{Value, json};
use testkit::{Answer, Client};

/// A request that changes nothing, and its answer.
pub(super) struct Recorded {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) body: Value,
    pub(super) status: u16,
    pub(super) answer: Value,
}

pub(super) fn read(text: &str) -> Vec<Recorded> {
    let list: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let one = |value: Value| Recorded {
        method: text(&value["method"]),
        path: text(&value["path"]),
        status: u16::try_from(value["status"].as_u64().unwrap()).unwrap(),
        body: value["body"].clone(),
        answer: value["answer"].clone(),
    };
    list.into_iter().map(one).collect()
}

/// One line each.
pub(super) fn written(recorded: &[Recorded]) -> String {
    let line = |one: &Recorded| {
        let Recorded { method, path, body, status, answer } = one;
        json!({"method": method, "path": path, "body": body, "status": status, "answer": answer}).to_string() + "\n"
    };
    recorded.iter().map(line).collect()
}

/// What the database decides of an answer: how an error is worded, the ids and the times of a new response are others
/// each time, or in each version.
pub(super) fn comparable(path: &str, status: u16, answer: &Value) -> Value {
    match (status, path) {
        (200, "/v1/responses") => json!({"status": answer["status"], "output": answer["output"][0]["content"]}),
        (200, _) => answer.clone(),
        _ => Value::Null,
    }
}

struct Driver<'a> {
    client: Client,
    url: &'a str,
    /// Ids of responses, and of conversations, in order.
    responses: Vec<String>,
    conversations: Vec<String>,
}

impl Driver<'_> {
    async fn send(&self, method: Method, path: &str, body: &Value) -> Answer {
        let headers = [("content-type", "application/json")];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.client.request(method, &format!("{}{path}", self.url), &headers, body).await.unwrap()
    }

    /// A turn of the demo model; its id.
    async fn turn(&mut self, mut body: Value) -> String {
        body["model"] = json!("demo");
        let answer = self.send(Method::POST, "/v1/responses", &body).await;
        let id = if body["stream"] == json!(true) {
            let text = String::from_utf8(answer.body.to_vec()).unwrap();
            let created = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned();
            serde_json::from_str::<Value>(&created).unwrap()["response"]["id"].clone()
        } else {
            assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
            answer.json()["id"].clone()
        };
        let id = id.as_str().unwrap().to_owned();
        self.responses.push(id.clone());
        id
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let answer = self.send(Method::POST, path, &body).await;
        assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
        answer.json()
    }

    async fn record(&self, method: Method, path: String, body: Value, recorded: &mut Vec<Recorded>) {
        let answer = self.send(method.clone(), &path, &body).await;
        let (status, answer) = (answer.status, comparable(&path, answer.status, &answer.json()));
        recorded.push(Recorded { method: method.to_string(), path, body, status, answer });
    }
}

/// Sessions of every kind, and then every way to look at them.
pub(super) async fn drive(url: &str) -> Vec<Recorded> {
    let client = Client::new().unwrap();
    let mut driver = Driver { client, url, responses: Vec::new(), conversations: Vec::new() };
    chains(&mut driver).await;
    tools(&mut driver).await;
    conversations(&mut driver).await;
    looked_at(&driver).await
}

async fn chains(driver: &mut Driver<'_>) {
    let first = json!({"input": "My name is Alice.", "instructions": "Be brief.", "metadata": {"a": "b"}});
    let first = driver.turn(first).await;
    let second = driver.turn(json!({"input": "echo two", "previous_response_id": first, "stream": true})).await;
    driver.turn(json!({"input": "echo three ż🦀", "previous_response_id": second, "instructions": "Be brief."})).await;
    driver.turn(json!({"input": "echo fork", "previous_response_id": first})).await;
    driver.turn(json!({"input": "think hard"})).await;
    driver.turn(json!({"input": "length"})).await;
    driver.turn(json!({"input": "fail stream", "stream": true})).await;
    driver.turn(json!({"input": "never stored", "store": false})).await;
    // A client that sends everything again, spelled a little differently.
    let history = json!([
        {"role": "user", "content": "echo one"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "one"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "echo two"}]},
    ]);
    let resent = driver.turn(json!({"input": history})).await;
    let mut more = history.as_array().unwrap().clone();
    more.push(json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "two"}]}));
    more.push(json!({"role": "user", "content": "echo four"}));
    driver.turn(json!({"input": more})).await;
    // One that is deleted, and what continued it.
    driver.turn(json!({"input": "echo orphan", "previous_response_id": resent})).await;
    driver.send(Method::DELETE, &format!("/v1/responses/{resent}"), &Value::Null).await;
}

async fn tools(driver: &mut Driver<'_>) {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let tools = json!([
        {"type": "function", "name": "weather", "parameters": parameters},
        {"type": "custom", "name": "shell"},
    ]);
    let input = "call weather {\"city\": \"Gdańsk\"}";
    let called = driver.turn(json!({"input": input, "tools": tools, "parallel_tool_calls": false})).await;
    let response = driver.send(Method::GET, &format!("/v1/responses/{called}"), &Value::Null).await.json();
    let call = response["output"].as_array().unwrap().iter().find(|item| item["type"] == "function_call").unwrap();
    let output = json!([{"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}]);
    driver.turn(json!({"input": output, "previous_response_id": called, "tools": tools})).await;
}

async fn conversations(driver: &mut Driver<'_>) {
    let item =
        |text: &str| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
    let made = driver.post("/v1/conversations", json!({"items": [item("zero")], "metadata": {"topic": "x"}})).await;
    let id = made["id"].as_str().unwrap().to_owned();
    driver.conversations.push(id.clone());
    driver.turn(json!({"input": "echo in", "conversation": id})).await;
    let path = format!("/v1/conversations/{id}/items");
    let added = driver.post(&path, json!({"items": [item("one"), item("two")]})).await;
    let gone = added["data"][0]["id"].as_str().unwrap();
    driver.turn(json!({"input": "echo again", "conversation": id, "stream": true})).await;
    driver.send(Method::DELETE, &format!("{path}/{gone}"), &Value::Null).await;
    driver.post(&format!("/v1/conversations/{id}"), json!({"metadata": {"topic": "y"}})).await;
    // One that is deleted while its response stays.
    let other = driver.post("/v1/conversations", json!({})).await["id"].as_str().unwrap().to_owned();
    driver.turn(json!({"input": "echo left behind", "conversation": other})).await;
    driver.send(Method::DELETE, &format!("/v1/conversations/{other}"), &Value::Null).await;
    driver.conversations.push(other);
}

async fn looked_at(driver: &Driver<'_>) -> Vec<Recorded> {
    let (mut recorded, get) = (Vec::new(), Method::GET);
    for id in &driver.responses {
        let path = format!("/v1/responses/{id}");
        driver.record(get.clone(), path.clone(), Value::Null, &mut recorded).await;
        let items = format!("{path}/input_items?order=asc&limit=100");
        driver.record(get.clone(), items, Value::Null, &mut recorded).await;
        let next = json!({"model": "demo", "input": "echo next", "previous_response_id": id, "store": false});
        driver.record(Method::POST, "/v1/responses".to_owned(), next, &mut recorded).await;
    }
    for id in &driver.conversations {
        let path = format!("/v1/conversations/{id}");
        driver.record(get.clone(), path.clone(), Value::Null, &mut recorded).await;
        let items = format!("{path}/items?order=asc&limit=100");
        driver.record(get.clone(), items, Value::Null, &mut recorded).await;
        let next = json!({"model": "demo", "input": "echo next", "conversation": id, "store": false});
        driver.record(Method::POST, "/v1/responses".to_owned(), next, &mut recorded).await;
    }
    recorded
}
