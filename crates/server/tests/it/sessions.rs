//! Sessions as clients see them: a provider that knows only what it is sent, and turns that continue each other.

mod chains;
mod conversations;
mod examples;
mod instances;
mod lists;
mod references;
mod resources;
mod room;
mod trouble;
#[cfg(unix)]
mod upgrade;

use http::Method;
use serde_json::{Value, json};
use testkit::{Answer, Schemas, Upstream, forgetful};

use crate::chat;
use crate::rig::{Rig, Settings, object, stream};

/// A server with these sessions before a provider that remembers nothing.
async fn rig(session: &str) -> Rig {
    let upstream = Upstream::start_with(forgetful).await.unwrap();
    Rig::before(upstream, Settings { session: session.to_owned(), ..Settings::default() }).await
}

/// One turn, streamed or not: the object, which is whole and lawful.
async fn turn(rig: &Rig, mut body: Value, streamed: bool) -> Value {
    body["model"] = json!("m");
    body["stream"] = json!(streamed);
    let answer = rig.post(&body).await;
    let object = if streamed {
        let (_, last) = stream(&answer).events.pop().unwrap();
        last["response"].clone()
    } else {
        object(&answer)
    };
    assert_eq!(object["status"], "completed", "{object}");
    object
}

async fn say(rig: &Rig, text: &str, previous: Option<&Value>) -> Value {
    let previous = previous.map_or(json!(null), |response| response["id"].clone());
    turn(rig, json!({"input": text, "previous_response_id": previous}), false).await
}

fn text(response: &Value) -> &str {
    response["output"][0]["content"][0]["text"].as_str().unwrap()
}

fn id(value: &Value) -> &str {
    value["id"].as_str().unwrap()
}

async fn delete(rig: &Rig, path: &str) -> Answer {
    rig.send(Method::DELETE, path, &Value::Null).await
}

/// The ids of a list, which is one that OpenAI's clients can page through.
fn listed(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    let list = answer.json();
    let problems = Schemas::if_present().map(|schemas| schemas.openai("ResponseItemList", &list)).unwrap_or_default();
    assert_eq!(problems, Vec::<String>::new(), "{list}");
    let ids: Vec<String> = list["data"].as_array().unwrap().iter().map(|item| id(item).to_owned()).collect();
    assert_eq!(list["first_id"].as_str(), ids.first().map(String::as_str), "{list}");
    assert_eq!(list["last_id"].as_str(), ids.last().map(String::as_str), "{list}");
    assert!(list["has_more"].is_boolean(), "{list}");
    ids
}
