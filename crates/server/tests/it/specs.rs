//! What a spec says reaches the wire: entries for single models, and addresses of another shape.

use providers::yaml::{Document, Reader};
use providers::{Library, Provider, resolve_inline};
use serde_json::json;
use server::config::{Config, Secret};

use crate::chat;
use crate::rig::{Rig, Settings, object};

fn spec(text: &str) -> Provider {
    let document = Document::parse("spec.yaml", text).unwrap();
    let reader = Reader::new(&document, &|_| None);
    let provider = resolve_inline(Library::BUILTIN, &reader.root_field(), &|_| None);
    assert_eq!(reader.finish(), []);
    provider.unwrap()
}

/// Deployments at their older address.
fn deployments(config: &mut Config) {
    config.providers[0].provider = spec(
        "extends: azure\nendpoint:\n  path: '/openai/deployments/{model}/chat/completions'\n  \
         query: {api-version: 2024-10-21}\nmodels:\n- match: 'mini*'\n  limit_field: max_tokens\n",
    );
}

#[tokio::test]
async fn a_path_with_the_model_in_it_and_a_key_in_its_own_header() {
    let settings = Settings { tweak: Some(deployments), ..Settings::default() };
    let rig = Rig::with(chat::answer(false), settings).await;
    for model in ["up/big one", "up/MINI-2", "up/a/b?c"] {
        object(&rig.post(&json!({"model": model, "input": "Hi", "max_output_tokens": 99})).await);
    }
    let requests = rig.upstream.requests();
    let paths: Vec<&str> = requests.iter().map(|request| request.path.as_str()).collect();
    let path = |model: &str| format!("/v1/openai/deployments/{model}/chat/completions?api-version=2024-10-21");
    assert_eq!(paths, [path("big%20one"), path("MINI-2"), path("a%2Fb%3Fc")]);
    for request in &requests {
        assert_eq!(request.header("api-key"), Some(crate::rig::KEY));
        assert_eq!(request.header("authorization"), None);
    }
    let limits = |name: &str| requests.iter().map(|request| request.json()[name].clone()).collect::<Vec<_>>();
    assert_eq!(limits("max_tokens"), [json!(null), json!(99), json!(null)], "the entry for mini* says so");
    assert_eq!(limits("max_completion_tokens"), [json!(99), json!(null), json!(99)]);
}

fn with_headers(config: &mut Config) {
    config.providers[0].provider = spec(
        "headers:\n  X-Client: one/1.0\n  x-changed: spec\n  x-session: {from: cache_key}\n  x-own: {from: cache_key}\n",
    );
    config.providers[0].headers =
        ["x-changed", "x-own"].map(|name| (name.to_owned(), Secret::new("mine".to_owned()))).to_vec();
}

/// Fixed ones, and those that say the cache key; the configuration's own word is the last.
#[tokio::test]
async fn headers_of_a_spec_go_with_every_request() {
    let settings = Settings { tweak: Some(with_headers), ..Settings::default() };
    let rig = Rig::with(chat::answer(false), settings).await;
    for (key, expected) in
        [(json!("session-1"), Some("session-1")), (json!(null), None), (json!(""), None), (json!("a\nb: é"), None)]
    {
        object(&rig.post(&json!({"model": "up/m", "input": "Hi", "prompt_cache_key": key})).await);
        let request = rig.upstream.requests().pop().unwrap();
        assert_eq!(request.header("x-session"), expected, "{key}");
        let others = ["x-client", "x-changed", "x-own"].map(|name| request.header(name));
        assert_eq!(others, [Some("one/1.0"), Some("mine"), Some("mine")]);
        assert_eq!(request.json().get("prompt_cache_key"), None, "the generic spec has no such member");
    }
}

fn of_two_wires(config: &mut Config) {
    config.providers[0].provider = spec("models:\n- {match: 'new-*', wire: responses}\n");
}

/// Which API is spoken may differ by model.
#[tokio::test]
async fn the_wire_is_the_models_own() {
    let settings = Settings { tweak: Some(of_two_wires), ..Settings::default() };
    let rig = Rig::with(chat::answer(false), settings).await;
    rig.post(&json!({"model": "up/new-1", "input": "Hi"})).await;
    rig.post(&json!({"model": "up/old-1", "input": "Hi"})).await;
    let requests = rig.upstream.requests();
    assert_eq!((&*requests[0].path, requests[0].json().get("input").is_some()), ("/v1/responses", true));
    let last = requests.last().unwrap();
    assert_eq!((&*last.path, last.json().get("messages").is_some()), ("/v1/chat/completions", true));
}
