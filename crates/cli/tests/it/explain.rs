//! `godex explain` and `godex replay`, as a user runs them.

use std::io::Write;
use std::process::Stdio;

use http::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::{Script, Upstream};

use crate::cli::{command, godex, home, refused, run};
use crate::sessions::Godex;

const CONFIG: &str =
    "session: {sqlite: {path: data/sessions.db}}\nmodels: {discover: off}\nproviders: {deepseek: {}, groq: {}}\n";

#[test]
fn a_request_is_planned_without_a_server_and_without_keys() {
    let home = home(CONFIG);
    let request = json!({"model": "groq/llama", "instructions": "Be brief.", "input": "Hi \u{1b}[2J", "logit_bias": {},
        "tools": [{"type": "function", "name": "f"}, {"type": "code_interpreter"}], "metadata": {"a": "b"}});
    std::fs::write(home.path().join("request.json"), request.to_string()).unwrap();
    let shown = run(home.path(), &["explain", "--dry-run", "request.json"]);
    let first = shown.lines().next().unwrap();
    for provider in ["deepseek", "groq", "demo"] {
        assert!(first.contains(provider), "{shown}");
    }
    assert!(shown.lines().nth(1).unwrap().contains("llama"), "{shown}");
    for row in [
        "metadata ",
        "instructions \"Be brief.\"",
        "input \"Hi \\u{1b}[2J\"",
        "tools[0] function f",
        "tools[1] code_interpreter",
    ] {
        assert!(shown.lines().any(|line| line.starts_with(row)), "{row}: {shown}");
    }
    assert!(
        shown.contains("all: tools[1] ignored: this provider has no code_interpreter of its own (bridge.tool.ignored)"),
        "{shown}"
    );
    assert!(!shown.contains('\u{1b}') && shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
    assert!(!home.path().join("data").exists(), "looking leaves nothing behind");

    let narrow = command(home.path(), &["explain", "--dry-run", "request.json"]).env("COLUMNS", "60").output().unwrap();
    let narrow = String::from_utf8(narrow.stdout).unwrap();
    assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
    let planned: Value =
        serde_json::from_str(&run(home.path(), &["explain", "--dry-run", "request.json", "--json"])).unwrap();
    assert_eq!(planned["data"].as_array().unwrap().len(), 3);
    // For one model, and for specs that nobody has configured.
    let one =
        run(home.path(), &["explain", "--dry-run", "request.json", "--model", "deepseek/x", "--provider", "mistral"]);
    let first = one.lines().next().unwrap();
    assert!(first.contains("deepseek") && first.contains("mistral") && !first.contains("groq"), "{one}");
    // Some editors mark what is UTF-8.
    std::fs::write(home.path().join("marked.json"), format!("\u{feff}{request}")).unwrap();
    let marked = run(home.path(), &["explain", "--dry-run", "marked.json", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&marked).unwrap(), planned);
    // From stdin.
    let mut child = command(home.path(), &["explain", "--dry-run", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(br#"{"input":"Hi"}"#).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success() && String::from_utf8(out.stdout).unwrap().contains("\"chat_request\""));
}

#[test]
fn what_is_wrong_is_said() {
    let home = home(CONFIG);
    let write = |name: &str, text: &str| std::fs::write(home.path().join(name), text).unwrap();
    write("broken.json", "{");
    write("list.json", "[]");
    write("bad.json", r#"{"input": 5}"#);
    write("continues.json", r#"{"input": "Hi", "previous_response_id": "resp_none"}"#);
    write("good.json", r#"{"input": "Hi"}"#);
    for (args, expected) in [
        (&["explain", "--dry-run", "none.json"][..], "cannot open none.json"),
        (&["explain", "--dry-run", "broken.json"], "the request is not JSON"),
        (&["explain", "--dry-run", "list.json"], "not a JSON object"),
        (&["explain", "--dry-run", "bad.json"], "input"),
        (&["explain", "--dry-run", "continues.json"], "there is no database at"),
        (&["explain", "--dry-run", "good.json", "--provider", "nothing"], "there is no spec `nothing`"),
        (&["explain", "--dry-run", "good.json", "--provider", "vllm"], "add --model vllm/MODEL"),
        (&["explain", "resp_none"], "there is no database at"),
        (&["replay", "resp_none"], "add --yes"),
        (&["replay", "resp_none", "--yes"], "there is nothing to send it with: no godex listens on"),
    ] {
        let said = refused(home.path(), args);
        assert!(said.contains(expected), "{args:?}: {said}");
    }
    for args in [&["explain"][..], &["explain", "a", "--dry-run", "b"], &["replay"], &["replay", ""]] {
        assert_eq!(godex(home.path(), args).0, Some(2), "{args:?}");
    }
}

/// A spec that nobody has configured is asked for the model that the request names.
#[test]
fn a_spec_is_planned_for_the_requests_own_model() {
    let home = home("models: {aliases: {fast: groq/llama}}\nproviders: {groq: {}}\n");
    for (asked, args, expected) in [
        ("gpt-5", &["--provider", "openai"][..], &["openai/gpt-5"][..]),
        ("openai/gpt-5", &["--provider", "openai", "--provider", "vllm"], &["openai/gpt-5", "vllm/gpt-5"]),
        ("Qwen/Qwen3-8B", &["--provider", "vllm"], &["vllm/Qwen/Qwen3-8B"]),
        ("groq/llama", &["--provider", "deepseek"], &["deepseek/deepseek-v4-pro"]),
        ("fast", &["--provider", "deepseek"], &["deepseek/deepseek-v4-pro"]),
        ("", &["--provider", "deepseek"], &["deepseek/deepseek-v4-pro"]),
        ("", &["--provider", "vllm", "--model", "vllm/m"], &["vllm/m"]),
    ] {
        std::fs::write(home.path().join("r.json"), json!({"model": asked, "input": "Hi"}).to_string()).unwrap();
        let planned = run(home.path(), &[&["explain", "--dry-run", "r.json", "--json"], args].concat());
        let planned: Value = serde_json::from_str(&planned).unwrap();
        let models: Vec<&str> =
            planned["data"].as_array().unwrap().iter().map(|plan| plan["asked"].as_str().unwrap()).collect();
        assert_eq!(models, expected, "{asked} {args:?}");
    }
}

/// Of a long request only the beginning is captured.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_was_cut_is_not_called_missing() {
    let upstream = Upstream::start(answer("Hello")).await.unwrap();
    let home = home(&format!(
        "session: {{sqlite: {{path: data/sessions.db}}}}\nmodels: {{discover: off}}\n\
         trace: {{capture_payload: true, payload_max_bytes: 20}}\n\
         providers: {{up: {{spec: openai-compatible, endpoint: {{base_url: '{}/v1'}}, models: [m]}}}}\n",
        upstream.url()
    ));
    let running = Godex::logging_to(home.path(), Stdio::null());
    let url = format!("{}/v1/responses", running.url);
    let ask = async |id: &str, more: Value| {
        let mut body = json!({"model": "up/m", "input": "A question that is longer than that."});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let headers = [("content-type", "application/json"), ("x-request-id", id)];
        (running.client.request(Method::POST, &url, &headers, body.to_string()).await.unwrap(), body.to_string().len())
    };
    let (_, length) = ask("stored", json!({})).await;
    let said = format!("only the beginning of the body was captured (20 of {length} bytes, trace.payload_max_bytes)");
    // Lines are broken for people.
    let shown = run(home.path(), &["explain", "stored"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains(&format!("planned again now: {said}, so what")), "{shown}");
    let shown = run(home.path(), &["replay", "stored", "--yes"]);
    assert!(shown.contains(&format!("{said}: the request is made of the stored items\n")), "{shown}");
    let (_, length) = ask("refused", json!({"previous_response_id": "resp_nope"})).await;
    let shown = refused(home.path(), &["replay", "refused", "--yes"]);
    let said =
        format!("Only the beginning of this request was captured (20 of {length} bytes, `trace.payload_max_bytes`)");
    assert!(shown.contains(&said), "{shown}");
    assert!(running.end(Signal::TERM).success());
}

fn answer(text: &str) -> Script {
    Script::json(
        200,
        &json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}}),
    )
}

/// The provider answers while the command waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_is_explained_and_sent_again() {
    let upstream = Upstream::start(answer("Hello")).await.unwrap();
    let home = home(&format!(
        "session: {{sqlite: {{path: data/sessions.db}}}}\nmodels: {{discover: off}}\nproviders: {{up: {{spec: \
         openai-compatible, endpoint: {{base_url: '{}/v1'}}, models: [m]}}}}\n",
        upstream.url()
    ));
    let running = Godex::logging_to(home.path(), Stdio::null());
    let body = json!({"model": "m", "input": "Hi", "instructions": "Be brief.", "tools": [{"type": "file_search", "vector_store_ids": ["v"]}]});
    let response = running.client.post_json(&format!("{}/v1/responses", running.url), &body).await.unwrap().json();
    let id = response["id"].as_str().unwrap();
    let looks = || {
        let shown = run(home.path(), &["explain", id]);
        for expected in [
            id,
            "status      completed",
            "planned     for m of up, over the chat API",
            "the stored items, planned again now",
            "instructions  \"Be brief.\"",
            "→ messages[0]",
            "input[0]      user \"Hi\"",
            "→ messages[1]  user \"Hi\"",
            "tools[0]      file_search",
            "→ left out  this provider has no file_search of its own",
            "tools[0] ignored: this provider has no file_search of its own (bridge.tool.ignored)",
            "assistant \"Hello\"",
            "5 tokens in, 2 out",
        ] {
            assert!(shown.contains(expected), "{expected}: {shown}");
        }
        let as_json: Value = serde_json::from_str(&run(home.path(), &["explain", id, "--json"])).unwrap();
        assert_eq!((&as_json["source"], &as_json["response"]), (&json!("stored"), &response));
    };
    looks();
    let continued = json!({"input": "And?", "previous_response_id": id}).to_string();
    std::fs::write(home.path().join("next.json"), continued).unwrap();
    let next = run(home.path(), &["explain", "--dry-run", "next.json", "--model", "up/m"]);
    assert!(next.contains("past[1] assistant \"Hello\""), "{next}");

    assert!(run(home.path(), &["replay", id, "--yes"]).ends_with("\nnothing is different\n"));
    upstream.queue(answer("Good\nday"));
    let replayed = run(home.path(), &["replay", id, "--yes", "--model", "up/other"]);
    for expected in ["sent again to up/other", "model  m → up/other", "  -Hello\n  +Good\n  +day\n"] {
        assert!(replayed.contains(expected), "{expected}: {replayed}");
    }
    let as_json: Value = serde_json::from_str(&run(home.path(), &["replay", id, "--yes", "--json"])).unwrap();
    assert_eq!(as_json["differences"], json!([]));
    assert!(running.end(Signal::TERM).success());
    // Without a server the database is looked at itself.
    looks();
    assert!(refused(home.path(), &["explain", "0"]).contains("There is no trace with the number 0"));
}

/// What was captured of a turn is shown, whatever was deleted since; and why a turn was refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_gone_or_was_refused_is_explained() {
    let upstream = Upstream::start(answer("Hello")).await.unwrap();
    let home = home(&format!(
        "session: {{sqlite: {{path: data/sessions.db}}}}\nmodels: {{discover: off}}\ntrace: {{capture_payload: true}}\n\
         providers: {{up: {{spec: openai-compatible, endpoint: {{base_url: '{}/v1'}}, models: [m]}}}}\n",
        upstream.url()
    ));
    let running = Godex::logging_to(home.path(), Stdio::null());
    let url = format!("{}/v1/responses", running.url);
    let ask = async |id: &str, body: Value| {
        let headers = [("content-type", "application/json"), ("x-request-id", id)];
        running.client.request(Method::POST, &url, &headers, body.to_string()).await.unwrap().json()
    };
    let first = ask("a", json!({"model": "up/m", "input": "one"})).await["id"].clone();
    let second = ask("b", json!({"model": "up/m", "input": "two", "previous_response_id": first})).await["id"].clone();
    for id in [&first, &second] {
        let url = format!("{url}/{}", id.as_str().unwrap());
        assert_eq!(running.client.request(Method::DELETE, &url, &[], String::new()).await.unwrap().status, 200);
    }
    ask("no-chain", json!({"model": "up/m", "input": "two", "previous_response_id": "resp_nope"})).await;
    upstream.queue(Script::json(400, &json!({"error": {"message": "Secret.", "type": "invalid_request_error"}})));
    ask("unstored", json!({"model": "up/m", "input": "two", "store": false})).await;
    let id = second.as_str().unwrap();
    let looks = || {
        for (id, expected) in [
            (
                id,
                &[
                    "status      completed",
                    "the request as it was captured",
                    "past        gone: what this request continued",
                    "previous_response_id  gone ",
                    "input         \"two\"",
                    "→ messages[0]  user \"two\"",
                    "  up/m: accepted, ",
                    "As it was sent\n  messages[0]   user \"one\"\n  messages[1]   assistant \"Hello\"\n",
                    "Came back\n  assistant \"Hello\"\n  5 tokens in, 2 out",
                ][..],
            ),
            (
                "no-chain",
                &[
                    "status      400 session.chain.not_found",
                    "past        not there: ",
                    "nothing of it was sent",
                    "Came back\n  session.chain.not_found: Previous response with id 'resp_nope' not found.",
                ],
            ),
            ("unstored", &["status      400 upstream_invalid_request", "Came back\n  upstream_invalid_request\n"]),
        ] {
            let shown = run(home.path(), &["explain", id]);
            for expected in expected {
                assert!(shown.contains(expected), "{id}: {expected}: {shown}");
            }
            assert!(!shown.contains("Secret."), "{shown}");
        }
    };
    looks();
    for id in [id, "no-chain"] {
        let said = refused(home.path(), &["replay", id, "--yes"]);
        assert!(said.contains("is gone, or was never stored: it cannot be sent again"), "{said}");
    }
    let traces = run(home.path(), &["traces", "--json"]);
    assert!(traces.lines().count() == 4 && !traces.contains("\"replay\""), "{traces}");
    assert!(running.end(Signal::TERM).success());
    looks();
}
