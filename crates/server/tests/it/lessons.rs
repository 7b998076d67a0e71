//! What godex learns from refusals, and that no client can teach it anything about another's requests.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use testkit::{Received, Script, Upstream};

use crate::chat;
use crate::rig::{QUICK, Rig, error, object, parse, stream};

fn answer(request: &Received) -> Script {
    chat::answer(request.json()["stream"] == json!(true))
}

async fn rig(more: &str, choose: impl Fn(&Received) -> Option<Script> + Send + Sync + 'static) -> Rig {
    let upstream = Upstream::start_with(move |request| choose(request).unwrap_or_else(|| answer(request)));
    let upstream = upstream.await.unwrap();
    let text = format!(
        "session: {{backend: memory}}\nresilience: {{{QUICK}}}\nproviders:\n  up:\n    spec: openai-compatible\n    \
         endpoint: {{base_url: '{}/v1'}}\n    models: [m]\n    {more}\n",
        upstream.url()
    );
    Rig::serving(upstream, parse(&text)).await.unwrap()
}

fn ask(input: &str, member: &str, value: Value) -> Value {
    let mut body = json!({"model": "m", "input": input});
    body[member] = value;
    body
}

fn prompt(request: &Received) -> String {
    let messages = request.json()["messages"].clone();
    messages.as_array().unwrap().last().unwrap()["content"].as_str().unwrap_or_default().to_owned()
}

fn last(rig: &Rig) -> Value {
    rig.upstream.requests().pop().unwrap().json()
}

/// Each prompt, and how a provider repeats it: what others send must arrive as they sent it.
#[tokio::test]
async fn what_one_client_wrote_changes_nothing_for_others() {
    type Echo = fn(&str) -> String;
    let said: Echo = |prompt| json!({"error": {"message": format!("Invalid prompt: {prompt}")}}).to_string();
    let bare: Echo = |prompt| json!({"error": {"message": prompt}}).to_string();
    let careless: Echo = |prompt| format!("{{\"error\":{{\"message\":\"no: {prompt}\"}}}}");
    let list: Echo = |prompt| {
        let wrong = json!({"type": "extra_forbidden", "loc": ["body", "metadata", "x"], "input": prompt});
        json!({"detail": [wrong]}).to_string()
    };
    let key: Echo = |_| {
        json!({"error": {"message": "no", "param": "metadata.max_tokens", "code": "unsupported_parameter"}}).to_string()
    };
    let fields = r#"", "param": "max_tokens", "code": "unsupported_parameter", "x": ""#;
    for (words, echo) in [
        ("Unsupported parameter: 'max_tokens' is not supported", said),
        ("Unsupported parameter: 'max_tokens' is not supported", bare),
        ("unrecognized request argument supplied: max tokens", bare),
        (r"Unsupported parameter: 'max\u005ftokens'", careless),
        (fields, careless),
        (r#"", "param": "max\u005ftokens", "code": "unsupported_parameter", "x": ""#, careless),
        ("'max_tokens'", list),
        ("anything", key),
    ] {
        // Once, as a provider does that fails now and then; and every time.
        for most in [1, usize::MAX] {
            let refused = AtomicUsize::new(0);
            let rig = rig("", move |request| {
                let prompt = prompt(request);
                let is_it = prompt != "Hello" && refused.fetch_add(1, Ordering::Relaxed) < most;
                is_it.then(|| Script::body(400, "application/json", echo(&prompt)))
            });
            let rig = rig.await;
            let answer = rig.post(&ask(words, "max_output_tokens", json!(64))).await;
            assert!(answer.status == 200 || error(&answer).status == 400, "{words}");
            let other = rig.post(&ask("Hello", "max_output_tokens", json!(64))).await;
            object(&other);
            assert_eq!(last(&rig)["max_tokens"], 64, "{words} ({most})");
            assert_eq!(other.header("x-godex-compat"), None, "{words} ({most})");
        }
    }
}

/// A value that one client asked for and the model does not have is no lesson about the parameter.
#[tokio::test]
async fn what_one_client_asked_for_changes_nothing_for_others() {
    let rig = rig("", |request| {
        let message = "Unsupported value: 'reasoning_effort' does not support 'xhigh' with this model.";
        let error = json!({"message": message, "param": "reasoning_effort", "code": "unsupported_value"});
        (request.json()["reasoning_effort"] == "xhigh").then(|| Script::json(400, &json!({"error": error})))
    });
    let rig = rig.await;
    object(&rig.post(&ask("Hello", "reasoning", json!({"effort": "xhigh"}))).await);
    object(&rig.post(&ask("Hello", "reasoning", json!({"effort": "low"}))).await);
    assert_eq!(last(&rig)["reasoning_effort"], "low");
}

/// Words about keys in a prompt do not take a key away from everybody.
#[tokio::test]
async fn what_one_client_wrote_costs_no_key() {
    let keys = "credentials: {api_keys: [sk-one-00000001, sk-two-00000002]}";
    let rig = rig(keys, |request| {
        let prompt = prompt(request);
        let error = json!({"error": {"message": format!("Bad prompt: {prompt}")}});
        (!prompt.starts_with("Hello")).then(|| Script::json(400, &error))
    });
    let rig = rig.await;
    for words in ["What is an invalid API key?", "Insufficient balance", "you exceeded your current quota"] {
        rig.post(&ask(words, "temperature", json!(1))).await;
        // Conversations that begin differently are spread over the keys.
        for number in 0..16 {
            object(&rig.post(&ask(&format!("Hello {number}"), "temperature", json!(1))).await);
        }
        let requests = rig.upstream.requests();
        let used: std::collections::BTreeSet<_> =
            requests.iter().rev().take(16).filter_map(|request| request.header("authorization")).collect();
        assert_eq!(used.len(), 2, "{words}: {used:?}");
    }
}

/// Providers that name a member in words, or in fields: learned once, and told each time.
#[tokio::test]
async fn every_use_of_a_lesson_is_told() {
    for (member, ours, note) in [
        ("max_tokens", ("max_output_tokens", json!(64)), "max_tokens=repaired"),
        ("temperature", ("temperature", json!(0.5)), "temperature=ignored"),
        ("stream_options", ("stream", json!(true)), "stream_options=repaired"),
    ] {
        for fields in [false, true] {
            let rig = rig("", move |request| {
                let message = format!("Unrecognized request argument supplied: {member}");
                let mut error = json!({"message": message});
                if fields {
                    error["param"] = json!(member);
                    error["code"] = json!("unknown_parameter");
                }
                request.json().get(member).map(|_| Script::json(400, &json!({"error": error})))
            });
            let rig = rig.await;
            for sent in [2, 3, 4] {
                let answer = rig.post(&ask("Hello", ours.0, ours.1.clone())).await;
                if ours.0 == "stream" {
                    stream(&answer);
                } else {
                    object(&answer);
                }
                assert_eq!(answer.header("x-godex-compat"), Some(note), "{member} {fields}");
                assert_eq!(rig.upstream.requests().len(), sent, "{member} {fields}: refused once, and known then");
            }
        }
    }
}

/// A rule of the spec names what the error does not: learned as any other, unless a client said what the rule goes by.
#[tokio::test]
async fn what_a_spec_names_is_learned_as_well() {
    let spec = "{answer: {errors: [{words: cannot ponder, means: unsupported, parameter: reasoning_effort}]}}";
    let refuses = |request: &Received| {
        let refused = json!({"error": {"message": "This model cannot ponder."}});
        request.json().get("reasoning_effort").map(|_| Script::json(400, &refused))
    };
    for (input, sent) in [("Hello", [2, 3]), ("Models cannot ponder", [2, 4])] {
        let upstream = Upstream::start_with(move |request| refuses(request).unwrap_or_else(|| answer(request)));
        let upstream = upstream.await.unwrap();
        let text = format!(
            "session: {{backend: memory}}\nresilience: {{{QUICK}}}\nproviders:\n  up:\n    spec: {spec}\n    \
             endpoint: {{base_url: '{}/v1'}}\n    models: [m]\n",
            upstream.url()
        );
        let rig = Rig::serving(upstream, parse(&text)).await.unwrap();
        for sent in sent {
            object(&rig.post(&ask(input, "reasoning", json!({"effort": "high"}))).await);
            assert_eq!(rig.upstream.requests().len(), sent, "{input}");
        }
    }
}

/// A refusal that stays when the member is gone was about something else.
#[tokio::test]
async fn what_does_not_help_is_not_learned() {
    let rig = rig("", |request| {
        let refused = json!({"error": {"message": "`top_p` is not supported"}});
        (prompt(request) == "bad").then(|| Script::json(400, &refused))
    });
    let rig = rig.await;
    assert_eq!(error(&rig.post(&ask("bad", "top_p", json!(0.5))).await).status, 400);
    object(&rig.post(&ask("Hello", "top_p", json!(0.5))).await);
    assert_eq!(last(&rig)["top_p"], 0.5);
}

/// Servers name one member at a time: all are mended, each is told, and all are known then.
#[tokio::test]
async fn several_members_are_mended_one_after_the_other() {
    const MEMBERS: [&str; 6] =
        ["temperature", "top_p", "presence_penalty", "frequency_penalty", "parallel_tool_calls", "user"];
    for most in 1..=MEMBERS.len() {
        let rig = rig("", move |request| {
            let request = request.json();
            let member = MEMBERS[..most].iter().find(|member| request.get(**member).is_some())?;
            let message = format!("Unsupported parameter: '{member}'");
            let error = json!({"message": message, "param": member, "code": "unsupported_parameter"});
            Some(Script::json(400, &json!({"error": error})))
        });
        let rig = rig.await;
        let mut body = json!({"model": "m", "input": "Hello", "user": "me", "parallel_tool_calls": false});
        body["tools"] = json!([{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}]);
        for member in &MEMBERS[..4] {
            body[*member] = json!(0.5);
        }
        if most > 4 {
            assert_eq!(error(&rig.post(&body).await).status, 400, "{most}");
            assert_eq!(rig.upstream.requests().len(), 5, "{most}");
            continue;
        }
        for sent in [most + 1, most + 2] {
            let answer = rig.post(&body).await;
            object(&answer);
            let notes = answer.header("x-godex-compat").unwrap_or_default();
            for member in &MEMBERS[..most] {
                assert!(notes.contains(&format!("{member}=ignored")), "{most}: {notes}");
            }
            assert_eq!(rig.upstream.requests().len(), sent, "{most}");
            assert_eq!(last(&rig)["user"], "me", "{most}");
        }
    }
}

/// What a model takes as a response format, and what is left of each way to ask for JSON: the request that finds it out,
/// and the next one.
#[tokio::test]
async fn a_response_format_goes_down_to_words() {
    let schema = json!({"type": "json_schema", "name": "n", "schema": {"type": "object"}});
    let object_only = json!({"type": "json_object"});
    for (taken, asked, left, tries) in [
        ("nothing", &schema, None, 3),
        ("nothing", &object_only, None, 2),
        ("json_object", &schema, Some("json_object"), 2),
        ("json_schema", &object_only, None, 2),
    ] {
        let rig = rig("", move |request| {
            let request = request.json();
            let is_taken = request.get("response_format").is_none_or(|format| format["type"] == taken);
            let message = "Unsupported parameter: 'response_format' is not supported with this model.";
            let error = json!({"message": message, "param": "response_format", "code": "unsupported_parameter"});
            let answer = json!({"choices": [{"message": {"content": "{}"}, "finish_reason": "stop"}]});
            Some(if is_taken { Script::json(200, &answer) } else { Script::json(400, &json!({"error": error})) })
        });
        let rig = rig.await;
        for sent in [tries, tries + 1] {
            let answer = rig.post(&ask("Give me JSON", "text", json!({"format": asked}))).await;
            object(&answer);
            let notes = answer.header("x-godex-compat").unwrap_or_default();
            assert!(notes.contains("text.format=degraded"), "{taken} {asked}: {notes}");
            assert_eq!(rig.upstream.requests().len(), sent, "{taken} {asked}");
            assert_eq!(last(&rig)["response_format"]["type"].as_str(), left, "{taken} {asked}");
        }
        // What the model does take is not lost for others.
        if taken == "json_schema" {
            object(&rig.post(&ask("Give me JSON", "text", json!({"format": schema}))).await);
            assert_eq!(last(&rig)["response_format"]["type"], "json_schema");
        }
    }
}
