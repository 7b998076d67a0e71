//! Images for models that cannot see them: another model describes each once, and its words take the image's place.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use testkit::{Answer, Script, Upstream};

use crate::chat;
use crate::rig::{Rig, object, parse, stream};

const CAT: &str = "data:image/png;base64,Y2F0";
const DOG: &str = "https://example.com/dog.png";

fn image(url: &str) -> Value {
    json!({"type": "input_image", "image_url": url, "detail": "high"})
}

fn user(parts: &[Value]) -> Value {
    json!({"type": "message", "role": "user", "content": parts})
}

fn text(text: &str) -> Value {
    json!({"type": "input_text", "text": text})
}

fn is_question(request: &Value) -> bool {
    request["model"] == "seer"
}

/// A model that sees, and says which image it was shown; and one that does not.
async fn upstream(fails: &Arc<AtomicBool>) -> Upstream {
    let fails = Arc::clone(fails);
    Upstream::start_with(move |request| {
        let body = request.json();
        if !is_question(&body) {
            return chat::answer(body["stream"] == true);
        }
        if fails.load(Ordering::Relaxed) {
            return Script::json(400, &json!({"error": {"message": "no", "type": "invalid_request_error"}}));
        }
        let shown = body["messages"][1]["content"][1]["image_url"]["url"].as_str().unwrap_or_default().to_owned();
        let words = if shown == CAT { "a cat" } else { "a dog" };
        Script::event_stream().event(&chat::text(words)).event(&chat::stop()).done()
    })
    .await
    .unwrap()
}

async fn rig(fails: &Arc<AtomicBool>) -> Rig {
    let upstream = upstream(fails).await;
    let config = format!(
        "session: {{backend: memory}}\nresilience: {{retries: 0}}\nimages: {{describe: up/seer}}\nproviders:\n  up:\n    spec: \
         openai-compatible\n    endpoint: {{base_url: '{}/v1'}}\n    models: [{{match: blind*, request: {{content: \
         {{images: none}}}}}}, blind, sees]\n",
        upstream.url()
    );
    Rig::serving(upstream, parse(&config)).await.unwrap()
}

fn requests(rig: &Rig, questions: bool) -> Vec<Value> {
    let all = rig.upstream.requests().into_iter().map(|request| request.json());
    all.filter(|request| is_question(request) == questions).collect()
}

fn notes(answer: &Answer) -> String {
    answer.header("x-godex-compat").unwrap_or_default().to_owned()
}

#[tokio::test]
async fn an_image_is_described_once_and_stays_the_same_words() {
    let rig = rig(&Arc::default()).await;
    let mut input = vec![user(&[text("What is this?"), image(CAT)])];
    let request =
        |input: &[Value], stream: bool| json!({"model": "blind", "input": input, "stream": stream, "store": false});
    let first = rig.post(&request(&input, false)).await;
    object(&first);
    assert_eq!(notes(&first), "input[0].content[1]=degraded");
    let questions = requests(&rig, true);
    assert_eq!(questions.len(), 1);
    assert_eq!(questions[0]["messages"][1]["content"][1]["image_url"]["url"], CAT);
    assert_eq!(requests(&rig, false)[0]["messages"][0]["content"], "What is this?\n[image: a cat]");

    // Later turns, streamed or not, in a message or in what a tool gave back.
    input.extend([
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A cat."}]}),
        json!({"type": "function_call", "call_id": "c1", "name": "view_image", "arguments": "{}"}),
        json!({"type": "function_call_output", "call_id": "c1", "output": [text("shown:"), image(CAT), image(DOG)]}),
    ]);
    stream(&rig.post(&request(&input, true)).await);
    object(&rig.post(&request(&input, false)).await);
    let (questions, asked) = (requests(&rig, true), requests(&rig, false));
    assert_eq!(questions.len(), 2, "the dog is new, and is described once");
    assert_eq!(questions[1]["messages"][1]["content"][1]["image_url"]["url"], DOG);
    for later in &asked[1..] {
        assert_eq!(later["messages"][0], asked[0]["messages"][0]);
        let result = later["messages"].as_array().unwrap().last().unwrap();
        assert_eq!(result["content"], "shown:\n[image: a cat]\n[image: a dog]", "{later}");
    }
}

#[tokio::test]
async fn a_model_that_sees_is_shown_the_image_itself() {
    let rig = rig(&Arc::default()).await;
    object(&rig.post(&json!({"model": "sees", "input": [user(&[image(CAT)])]})).await);
    assert_eq!(requests(&rig, true).len(), 0);
    assert_eq!(requests(&rig, false)[0]["messages"][0]["content"][0]["image_url"]["url"], CAT);
    let list = rig.get("/v1/models").await.json();
    let modalities = |slug: &str| {
        let entry = list["models"].as_array().unwrap().iter().find(|entry| entry["slug"] == slug).unwrap();
        entry["input_modalities"].clone()
    };
    assert_eq!((modalities("blind"), modalities("sees")), (json!(["text", "image"]), json!(["text", "image"])));
}

#[tokio::test]
async fn what_cannot_be_described_is_left_out_with_a_note() {
    let fails = Arc::new(AtomicBool::new(true));
    let rig = rig(&fails).await;
    let request = json!({"model": "blind", "input": [user(&[text("Look:"), image(CAT)])]});
    let answer = rig.post(&request).await;
    object(&answer);
    assert_eq!(notes(&answer), "input[0].content[1]=degraded");
    assert_eq!(requests(&rig, false)[0]["messages"][0]["content"], "Look:\n[image omitted: this model cannot see it]");
    // Not tried again at once: each try holds a turn up.
    fails.store(false, Ordering::Relaxed);
    object(&rig.post(&request).await);
    assert_eq!(requests(&rig, true).len(), 1);
}

#[tokio::test]
async fn many_who_send_the_same_image_ask_once() {
    let rig = Arc::new(rig(&Arc::default()).await);
    let request = json!({"model": "blind", "input": [user(&[image(CAT), image(CAT)])], "store": false});
    let asked = (0..8).map(|_| async { object(&rig.post(&request).await) });
    futures_util::future::join_all(asked).await;
    assert_eq!((requests(&rig, true).len(), requests(&rig, false).len()), (1, 8));
}

#[tokio::test]
async fn a_conversation_goes_on_with_what_was_described() {
    let rig = rig(&Arc::default()).await;
    let first = object(&rig.post(&json!({"model": "blind", "input": [user(&[image(DOG)])]})).await);
    let next = json!({"model": "blind", "input": "And now?", "previous_response_id": first["id"]});
    object(&rig.post(&next).await);
    assert_eq!(requests(&rig, true).len(), 1);
    let asked = requests(&rig, false);
    assert_eq!(asked[1]["messages"][0], asked[0]["messages"][0]);
}

#[test]
fn whoever_describes_must_see() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("godex.yaml");
    let provider = "providers: {up: {spec: deepseek, credentials: {api_key: k}}}\n";
    for (model, problem) in [("up/deepseek-v4-pro", "cannot see images itself"), ("up/", "there is no such model")] {
        std::fs::write(&path, format!("{provider}images: {{describe: {model}}}\n")).unwrap();
        let sources = server::config::Sources {
            config_path: Some(&path),
            cwd: folder.path(),
            home: None,
            env: &|_| None,
            overrides: server::config::Overrides::default(),
        };
        let problems = server::config::load(&sources).unwrap_err().to_string();
        assert!(problems.contains("images.describe") && problems.contains(problem), "{problems}");
    }
}
