//! What a spec says reaches the wire: entries for single models, and addresses of another shape.

use providers::yaml::{Document, Reader};
use providers::{Library, Provider, resolve_inline};
use serde_json::json;
use server::config::Config;

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
        object(&rig.post(&json!({"model": model, "input": "Hi", "max_output_tokens": 90})).await);
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
    assert_eq!(limits("max_tokens"), [json!(null), json!(90), json!(null)], "the entry for mini* says so");
    assert_eq!(limits("max_completion_tokens"), [json!(90), json!(null), json!(90)]);
}
