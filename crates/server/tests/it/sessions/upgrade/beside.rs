//! The earlier version and this one on one database, turn by turn.

use bytes::Bytes;
use store::{NewEvents, NewTurn, Parent, PostgresOptions, Status, Store, Tenant};
use testkit::Client;

use super::*;

/// One of the two, as a client sees it.
struct Instance<'a> {
    client: &'a Client,
    url: String,
}

impl Instance<'_> {
    async fn send(&self, method: Method, path: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let headers = [("content-type", "application/json")];
        self.client.request(method, &format!("{}{path}", self.url), &headers, body).await.unwrap()
    }

    async fn turn(&self, mut body: Value) -> Value {
        body["model"] = json!("demo");
        let answer = self.send(Method::POST, "/v1/responses", &body).await;
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        answer.json()
    }

    /// The texts of everything that the response was given.
    async fn inputs(&self, id: &str) -> Vec<Value> {
        let path = format!("/v1/responses/{id}/input_items?order=asc&limit=100");
        let list = self.send(Method::GET, &path, &Value::Null).await.json();
        list["data"].as_array().unwrap().iter().map(|item| item["content"][0]["text"].clone()).collect()
    }
}

/// Each turn is made by the other version than the one before, in a chain and in a conversation, and each reads what the
/// other wrote.
async fn take_turns(instances: &[Instance<'_>; 2]) {
    let made = instances[1].send(Method::POST, "/v1/conversations", &json!({})).await.json();
    let (conversation, mut last, mut expected) = (made["id"].clone(), Value::Null, Vec::new());
    for round in 0..12 {
        let (here, there) = (&instances[round % 2], &instances[(round + 1) % 2]);
        let text = format!("echo {round}");
        let response = here.turn(json!({"input": text, "previous_response_id": last})).await;
        expected.push(json!(text));
        assert_eq!(there.inputs(id(&response)).await, expected, "{round}");
        expected.push(json!(round.to_string()));
        let seen = there.send(Method::GET, &format!("/v1/responses/{}", id(&response)), &Value::Null).await.json();
        assert!(kept(&seen, &response) && kept(&response, &seen), "{response}\n{seen}");
        last = response["id"].clone();
        let said = here.turn(json!({"input": text, "conversation": conversation})).await;
        let mut items = expected.clone();
        items.pop();
        assert_eq!(there.inputs(id(&said)).await, items, "{round} in the conversation");
    }
}

#[tokio::test]
#[ignore = "started by `cargo xtask fixture`, with the earlier version's binary"]
async fn the_earlier_version_and_this_one_share_a_database() {
    let Some(binary) = old::binary() else { return };
    let Some(postgres) = Postgres::start() else { return };
    let home = old::home(&on(&postgres));
    let before = old::Godex::start(&binary, home.path());
    let client = Client::new().unwrap();
    let rig = rig(&on(&postgres)).await;
    let new = || Instance { client: &client, url: rig.url("") };
    // One that ran when the schema was changed under it.
    take_turns(&[Instance { client: &client, url: before.url.clone() }, new()]).await;
    before.stop();
    // And one that starts when it has been: an instance that dies during the upgrade comes back.
    let again = old::Godex::start(&binary, home.path());
    let old = Instance { client: &client, url: again.url.clone() };
    take_turns(&[new(), Instance { client: &client, url: again.url.clone() }]).await;
    events_go_although_the_earlier_version_knows_none(&postgres, &old).await;
    again.stop();
}

async fn events_go_although_the_earlier_version_knows_none(postgres: &Postgres, old: &Instance<'_>) {
    let store = Store::postgres(&postgres.url(), &PostgresOptions::default()).await.unwrap();
    let tenant = store.for_tenant(Tenant::default());
    let turn = NewTurn {
        id: "resp_begun".to_owned(),
        parent: Parent::None,
        status: Status::InProgress,
        created_at: 0,
        expires_at: None,
        head: Bytes::from_static(br#"{"id":"resp_begun","object":"response","status":"in_progress","output":[]}"#),
        settings: None,
        input: Vec::new(),
        output: Vec::new(),
        events: Some(NewEvents { first: 0, events: Vec::new() }),
        key: None,
    };
    tenant.begin(turn).await.unwrap();
    tenant
        .append_events("resp_begun", &NewEvents { first: 0, events: vec![Bytes::from_static(b"{}")] }, None)
        .await
        .unwrap();
    let shown = old.send(Method::GET, "/v1/responses/resp_begun", &Value::Null).await;
    assert_eq!((shown.status, &shown.json()["status"]), (200, &json!("in_progress")));
    let body = json!({"model": "demo", "input": "Hi", "previous_response_id": "resp_begun"});
    assert_eq!(old.send(Method::POST, "/v1/responses", &body).await.status, 400, "it is not finished");
    let (client, _running) = dump::connect(postgres).await;
    let count = "SELECT (SELECT count(*) FROM godex.event) + (SELECT count(*) FROM godex.log)";
    assert_eq!(client.query_one(count, &[]).await.unwrap().get::<_, i64>(0), 2);
    assert_eq!(old.send(Method::DELETE, "/v1/responses/resp_begun", &Value::Null).await.status, 200);
    assert_eq!(client.query_one(count, &[]).await.unwrap().get::<_, i64>(0), 0);
}
