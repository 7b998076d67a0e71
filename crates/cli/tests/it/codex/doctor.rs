//! `godex codex doctor`.

use std::process::Stdio;

use serde_json::{Value, json};
use testkit::{Script, Upstream};

use super::Home;
use crate::sessions::Godex;

/// The status and the line of each check of that name.
fn lines<'t>(out: &'t str, check: &str) -> Vec<(&'t str, &'t str)> {
    let row = |line: &'t str| {
        let (status, rest) = line.split_once(' ')?;
        let rest = rest.trim_start();
        rest.strip_prefix(check)?.starts_with(' ').then_some((status, rest))
    };
    out.lines().filter_map(row).collect()
}

#[test]
fn a_fresh_home_works_and_is_told_what_else_there_is() {
    let home = Home::new("session: {backend: memory}");
    let (code, out, err) = home.godex(&["codex", "doctor", "--port", "1"]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    for (check, status, expected) in [
        ("codex", "ok", "0.166.0"),
        ("provider", "warn", "`godex codex setup`"),
        ("model", "warn", "DEEPSEEK_API_KEY"),
        ("godex", "warn", "nobody answers"),
        ("round trip", "ok", "demo called a tool"),
    ] {
        let found = lines(&out, check);
        assert!(found.len() == 1 && found[0].0 == status && found[0].1.contains(expected), "{check}:\n{out}");
    }
    std::fs::remove_file(home.codex()).unwrap();
    let (code, out, _) = home.godex(&["codex", "doctor", "--port", "1", "--json"]);
    assert_eq!(code, Some(1));
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&report["ok"], &report["checks"][0]["status"]), (&json!(false), &json!("fail")), "{out}");
    assert!(report["checks"][0]["advice"].as_str().unwrap().contains("npm install"), "{out}");
    // Once, though `godex codex` says it as well.
    let (_, out, _) = home.godex(&["codex", "doctor", "--port", "1"]);
    assert_eq!(out.matches("npm install").count(), 1, "{out}");
    let (_, _, err) = home.godex(&["codex", "--port", "1"]);
    assert!(err.contains("not installed") && err.matches("npm install").count() == 1, "{err}");
}

#[tokio::test]
async fn what_was_set_up_is_all_right_while_godex_runs() {
    let home = Home::new("session: {backend: memory}");
    let running = Godex::logging_to(home.path(), Stdio::null());
    let port = running.url.rsplit(':').next().unwrap();
    assert_eq!(home.godex(&["codex", "setup", "--yes", "--port", port]).0, Some(0));
    let (code, out, _) = home.godex(&["codex", "doctor", "--port", port, "--model", "demo"]);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.lines().all(|line| line.starts_with("ok ")), "{out}");
    for check in ["provider", "base_url", "profile", "catalogue", "godex", "round trip"] {
        assert_eq!(lines(&out, check).len(), 1, "{check}:\n{out}");
    }
}

#[test]
fn each_thing_that_is_wrong_is_found() {
    let provider = "[model_providers.godex]\nname = \"godex\"\nbase_url = \"http://127.0.0.1:1/v1\"\n";
    for (config, check, status, expected) in [
        ("broken = \n", "config.toml", "fail", "line 1: this is not TOML"),
        ("[model_providers.openai]\nname = \"x\"\n", "provider", "fail", "reserved"),
        (&format!("{provider}wire_api = \"chat\"\n"), "provider", "fail", "wire_api"),
        (&format!("{provider}env_key = \"NOT_SET_AT_ALL\"\n"), "provider", "fail", "set NOT_SET_AT_ALL to your"),
        (&provider.replace("\"godex\"", "\"OpenAI\""), "provider", "warn", "OpenAI"),
        (&provider.replace("/v1", ""), "base_url", "warn", "/v1"),
        (provider, "base_url", "warn", "start `godex`"),
        (provider, "profile", "warn", "godex codex setup"),
        ("model_catalog_json = \"/no/such.json\"\n", "catalogue", "fail", "which is no file"),
        ("model_catalog_json = \"such.json\"\n", "catalogue", "warn", "is relative"),
        (&format!("profile = \"godex\"\n{provider}"), "profile", "fail", "since 0.134"),
    ] {
        let home = Home::new("session: {backend: memory}");
        home.write("config.toml", config);
        let (code, out, _) = home.godex(&["codex", "doctor", "--port", "1"]);
        let found = lines(&out, check);
        assert!(found.iter().any(|(s, line)| *s == status && line.contains(expected)), "{config}\n{out}");
        assert_eq!(code, Some(i32::from(status == "fail")), "{out}");
    }
}

#[test]
fn a_catalogue_is_looked_into() {
    let home = Home::new("session: {backend: memory}");
    home.godex(&["codex", "setup", "--yes", "--port", "1"]);
    let good = home.read("godex-models.json");
    for (text, status, expected) in [
        (good.clone(), "ok", "(1 model)"),
        ("{}".to_owned(), "fail", "holds no models"),
        (good.replace("\"slug\"", "\"slag\""), "fail", "lacks `slug`"),
        (good.replace("\"slug\":\"demo\"", "\"slug\":\"omed\""), "warn", "does not have demo"),
        (good.replace("through godex", "through somebody"), "warn", "not what godex would write now"),
    ] {
        home.write("godex-models.json", &text);
        let (_, out, _) = home.godex(&["codex", "doctor", "--port", "1"]);
        let found = lines(&out, "catalogue");
        assert!(found.len() == 1 && found[0].0 == status && found[0].1.contains(expected), "{expected}\n{out}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_fails_or_only_talks_is_found() {
    let error = Script::json(400, &json!({"error": {"message": "no such model"}}));
    let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [
        {"index": 0, "delta": {"role": "assistant", "content": "Certainly!"}, "finish_reason": "stop"}]});
    let words = Script::sse(&[chunk]);
    for (script, status, expected) in [(error, "fail", "no such model"), (words, "warn", "called no tool")] {
        let upstream = Upstream::start(script).await.unwrap();
        let home = Home::new(&format!(
            "session: {{backend: memory}}\nproviders: {{up: {{spec: openai-compatible, endpoint: \
             {{base_url: '{}/v1'}}, models: [m]}}}}\n",
            upstream.url()
        ));
        let (_, out, _) = home.godex(&["codex", "doctor", "--port", "1"]);
        let found = lines(&out, "round trip");
        assert!(found.len() == 1 && found[0].0 == status && found[0].1.contains(expected), "{out}");
        assert_eq!(lines(&out, "model"), [("ok", "model       m, provider up")]);
    }
}
