//! `POST /v1/alpha/search`, as Codex sends it.

use http::Method;
use serde_json::{Value, json};
use testkit::{Answer, Script, Upstream};

use super::{CANARY, config, entry, service};
use crate::rig::{Rig, parse};

async fn rig(entries: &[String]) -> Rig {
    let upstream = Upstream::start(Script::respond(500)).await.unwrap();
    let config = config(entries);

    Rig::serving(upstream, config).await.unwrap()
}

/// A request of the CLI, with these commands.
fn request(id: &str, commands: &Value) -> Value {
    json!({
        "id": id, "model": "gpt-test", "commands": commands, "max_output_tokens": 2500,
        "input": [{"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "find this, and look at https://shown.example/page"}]}],
        "settings": {
            "user_location": {"type": "approximate", "country": "US", "city": "San Francisco"},
            "search_context_size": "low", "filters": {"allowed_domains": ["openai.com"]},
            "allowed_callers": ["direct"], "external_web_access": true,
        },
    })
}

async fn ask(rig: &Rig, request: &Value) -> Answer {
    rig.send(Method::POST, "/v1/alpha/search", request).await
}

fn output(answer: &Answer) -> String {
    let text = String::from_utf8_lossy(&answer.body);
    assert_eq!(answer.status, 200, "{text}");
    assert!(!text.contains(CANARY), "{text}");
    let answer = answer.json();
    assert_eq!(answer.as_object().unwrap().len(), 1, "{answer}");
    answer["output"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn codex_gets_the_results_as_text() {
    let results = json!({"organic": [
        {"title": "News", "link": "https://openai.com/news", "snippet": "<b>New</b> things"},
        {"title": "Elsewhere", "link": "https://example.com/", "snippet": "not wanted"}]});
    let service = service(Script::json(200, &results)).await;
    let rig = rig(&[entry("serper", &service, "")]).await;
    let commands = json!({"search_query": [{"q": "OpenAI news", "recency": 7, "domains": ["openai.com"]}]});
    let text = output(&ask(&rig, &request("s", &commands)).await);
    assert!(text.contains("1. News\nhttps://openai.com/news\nNew things") && !text.contains("Elsewhere"), "{text}");
    assert!(text.contains("look at their dates") && text.ends_with("as `ref_id` to open it."), "{text}");
    let received = service.requests().remove(0).json();
    assert_eq!(received, json!({"q": "OpenAI news site:openai.com", "num": 3, "gl": "us"}));
}

#[tokio::test]
async fn what_cannot_be_done_is_for_the_model_or_for_the_client() {
    let service = service(Script::respond(429)).await;
    let rig = rig(&[entry("serper", &service, "")]).await;
    for (commands, expected) in [
        (json!({}), "Nothing was asked."),
        (json!({"search_query": []}), "Nothing was asked."),
        (json!({"search_query": [{"q": ""}]}), "Nothing was searched"),
        (
            json!({"search_query": [{"q": "x"}]}),
            "The search for \"x\" failed: serper: it answered with HTTP status 429.",
        ),
        (
            json!({"search_query": [{"q": "x", "domains": ["a.org"]}]}),
            "None of the `domains` of the query may be looked at.",
        ),
        (json!({"search_query": [{"q": "x", "domains": "a"}]}), "The `domains` of a query are names of hosts"),
        (json!({"open": [{"ref_id": "turn0search0"}]}), "This page was not opened"),
        (json!({"open": [{"ref_id": "https://openai.com/x"}]}), "only addresses that this conversation has shown"),
        (json!({"find": [{"ref_id": "https://shown.example/page", "pattern": "x"}]}), "it is in none of the domains"),
        (
            json!({"weather": [{"location": "Paris"}], "time": [{"utc_offset": "+03:00"}]}),
            "`weather` is not available here.",
        ),
    ] {
        let text = output(&ask(&rig, &request("s", &commands)).await);
        assert!(text.contains(expected), "{commands}: {text}");
    }
    for (body, param) in [
        (json!({"id": "s"}), "commands"),
        (json!({"commands": []}), "commands"),
        (json!({"commands": {}, "settings": {"search_context_size": "huge"}}), "settings.search_context_size"),
        (
            json!({"commands": {}, "settings": {"filters": {"allowed_domains": [7]}}}),
            "settings.filters.allowed_domains[0]",
        ),
    ] {
        let answer = ask(&rig, &body).await;
        assert_eq!((answer.status, &answer.json()["error"]["param"]), (400, &json!(param)), "{body}");
    }
}

#[tokio::test]
async fn a_session_remembers_what_it_was_shown() {
    let rig = {
        let upstream = Upstream::start(Script::respond(500)).await.unwrap();
        Rig::serving(upstream, parse("session: {backend: memory}\ntools: {web_search: mock}\n")).await.unwrap()
    };
    let asked = |id: &str, commands: Value| json!({"id": id, "model": "m", "commands": commands});
    let page = "https://example.com/search/q";
    let open = || json!({"open": [{"ref_id": page, "lineno": 12}]});
    let refused = "only addresses that this conversation has shown";
    assert!(output(&ask(&rig, &asked("a", open())).await).contains(refused));
    assert!(output(&ask(&rig, &asked("a", json!({"search_query": [{"q": "q"}]}))).await).contains(page));
    assert!(!output(&ask(&rig, &asked("a", open())).await).contains(refused));
    assert!(output(&ask(&rig, &asked("b", open())).await).contains(refused));
}

#[tokio::test]
async fn without_a_service_there_is_no_such_thing() {
    let rig = Rig::start(Script::respond(500)).await;
    let answer = ask(&rig, &request("s", &json!({}))).await;
    let error = &answer.json()["error"];
    assert_eq!((answer.status, &error["code"]), (404, &json!("not_found")), "{error}");
    assert!(error["message"].as_str().unwrap().contains("`tools.web_search`"), "{error}");
}
