//! Nobody reads what is another's. The matrix is made from the table of routes: every endpoint, every way to name an
//! id. A foreign id gets exactly the answer of an id that never was.

use bytes::Bytes;
use http::Method;
use serde_json::json;
use store::{Item, NewConversation, NewTurn, Parent, SqliteOptions, Status, Store, Tenant};

use super::*;

/// Turns and conversations of somebody else.
const OTHERS: usize = 100;

struct Foreign {
    response: String,
    item: String,
    conversation: String,
    conversation_item: String,
}

impl Foreign {
    fn new(n: usize, salt: &str) -> Self {
        let id = |prefix: &str| format!("{prefix}_{salt}{n:044x}");
        Self { response: id("resp"), item: id("msg"), conversation: id("conv"), conversation_item: id("item") }
    }

    fn ids(&self) -> [&str; 4] {
        [&self.response, &self.item, &self.conversation, &self.conversation_item]
    }

    async fn store(&self, store: &Store) {
        let theirs = store.for_tenant(Tenant::new("somebody else"));
        let body = Bytes::from_static(br#"{"type":"message","role":"user","content":"their secret"}"#);
        let item = |id: &str| Item { id: id.to_owned(), body: body.clone() };
        let turn = NewTurn {
            id: self.response.clone(),
            parent: Parent::None,
            status: Status::Completed,
            created_at: 1,
            expires_at: None,
            head: Bytes::from_static(br#"{"output":[]}"#),
            settings: None,
            input: vec![item(&self.item)],
            output: Vec::new(),
            events: None,
        };
        theirs.put(turn).await.unwrap();
        let conversation = NewConversation {
            id: self.conversation.clone(),
            created_at: 1,
            metadata: Bytes::from_static(b"{}"),
            items: vec![item(&self.conversation_item)],
        };
        theirs.create_conversation(conversation).await.unwrap();
    }
}

/// A request that names an id in every way that there is.
fn attempts(id: &str, own_conversation: &str) -> Vec<(Method, String, Value)> {
    let mut attempts = Vec::new();
    for route in server::ROUTES {
        let path = route.path.replace("{id}", id).replace("{item_id}", id).replace("{*id}", id);
        let method: Method = route.method.parse().unwrap();
        if route.path.contains('{') && !route.path.contains("models") {
            let body = match (route.method, route.path) {
                ("POST", path) if path.ends_with("/items") => json!({"items": [{"role": "user", "content": "x"}]}),
                ("POST", path) if !path.ends_with("/cancel") => json!({"metadata": {}}),
                _ => Value::Null,
            };
            attempts.push((method.clone(), path.clone(), body));
        }
        if route.path.contains("{item_id}") {
            let own = route.path.replace("{id}", own_conversation).replace("{item_id}", id);
            attempts.push((method.clone(), own, Value::Null));
        }
        if route.method == "GET" && (route.path.ends_with("items")) {
            attempts.push((method, format!("{path}?after={id}&order=asc"), Value::Null));
        }
    }
    let create = |body: Value| (Method::POST, "/v1/responses".to_owned(), body);
    let reference = json!([{"type": "item_reference", "id": id}]);
    attempts.extend([
        create(json!({"model": "m", "input": "x", "previous_response_id": id})),
        create(json!({"model": "m", "input": "x", "previous_response_id": id, "store": false, "stream": true})),
        create(json!({"model": "m", "input": "x", "conversation": id})),
        create(json!({"model": "m", "input": "x", "conversation": {"id": id}, "store": false})),
        create(json!({"model": "m", "input": reference})),
        create(json!({"model": "m", "input": [{"id": id}], "store": false})),
        (Method::POST, "/v1/conversations".to_owned(), json!({"items": reference})),
        (Method::POST, format!("/v1/conversations/{own_conversation}/items"), json!({"items": reference})),
        (Method::GET, format!("/v1/conversations/{own_conversation}/items?after={id}"), Value::Null),
    ]);
    attempts
}

/// What a client can see of an answer, without what is each answer's own.
fn seen(answer: &Answer, id: &str) -> (u16, String, Vec<(String, String)>) {
    let body = String::from_utf8_lossy(&answer.body).replace(id, "ID");
    let own = ["x-request-id", "date"];
    let headers = answer.headers.iter().filter(|(name, _)| !own.contains(&name.as_str()));
    let mut headers: Vec<_> =
        headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
    headers.sort();
    (answer.status, body, headers)
}

#[tokio::test]
async fn a_foreign_id_is_an_unknown_id() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let foreign: Vec<Foreign> = (0..OTHERS).map(|n| Foreign::new(n, "f0")).collect();
    let store = Store::sqlite(&path, &SqliteOptions::default()).unwrap();
    for foreign in &foreign {
        foreign.store(&store).await;
    }
    store.close().await;
    let rig = rig(&format!("sqlite: {{path: '{}'}}", path.display())).await;
    let own = json!({"items": [{"role": "user", "content": "mine"}]});
    let conversation = rig.send(Method::POST, "/v1/conversations", &own).await.json();
    let full = std::env::var_os("GODEX_FULL").is_some();
    let enough = if full { 1_000_000 } else { 20_000 };
    let (mut count, mut round) = (0, 0);
    while count < enough {
        let unknown = Foreign::new(round, "0f");
        let foreign = &foreign[round % OTHERS];
        round += 1;
        for (theirs, nobodys) in foreign.ids().into_iter().zip(unknown.ids()) {
            let pairs = attempts(theirs, id(&conversation)).into_iter().zip(attempts(nobodys, id(&conversation)));
            for ((method, path, body), (_, unknown_path, unknown_body)) in pairs {
                let answer = rig.send(method.clone(), &path, &body).await;
                assert!(answer.status >= 400, "{method} {path} {body}: {}", answer.status);
                let text = String::from_utf8_lossy(&answer.body);
                assert!(!text.contains("secret"), "{method} {path} {body}: {text}");
                let expected = rig.send(method.clone(), &unknown_path, &unknown_body).await;
                assert_eq!(seen(&answer, theirs), seen(&expected, nobodys), "{method} {path} {body}");
                count += 2;
            }
        }
    }
    // Nothing was touched, and nothing was sent on.
    assert_eq!(rig.upstream.requests().len(), 0);
    rig.stop().await;
    let store = Store::sqlite(&path, &SqliteOptions::default()).unwrap();
    let theirs = store.for_tenant(Tenant::new("somebody else"));
    for foreign in &foreign {
        assert_eq!(theirs.response(&foreign.response).await.unwrap().created_at, 1);
        assert_eq!(theirs.conversation_history(&foreign.conversation).await.unwrap().len(), 1);
    }
}

/// No header and no field of a body says who somebody is.
#[tokio::test]
async fn nobody_says_who_he_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let foreign = Foreign::new(7, "f0");
    let store = Store::sqlite(&path, &SqliteOptions::default()).unwrap();
    foreign.store(&store).await;
    store.close().await;
    let rig = rig(&format!("sqlite: {{path: '{}'}}", path.display())).await;
    let names =
        ["tenant", "tenant_id", "owner", "user", "session", "store_tenant", "x_tenant", "organization", "project"];
    for name in names {
        for value in ["somebody else", "somebody%20else"] {
            let mut body = json!({"model": "m", "input": "x", "previous_response_id": foreign.response});
            body[name] = json!(value);
            body["metadata"] = json!({name: value});
            let headers = [
                ("content-type", "application/json"),
                ("x-tenant-id", value),
                ("openai-organization", value),
                ("openai-project", value),
                ("authorization", "Bearer somebody else"),
            ];
            let answer = rig.client.request(Method::POST, &rig.url("/v1/responses"), &headers, body.to_string()).await;
            assert_eq!(answer.unwrap().status, 400, "{name}");
            let url = rig.url(&format!("/v1/responses/{}?{name}={}", foreign.response, value.replace(' ', "+")));
            let answer = rig.client.request(Method::GET, &url, &headers, "").await.unwrap();
            assert_eq!(answer.status, 404, "{name}");
        }
    }
}
