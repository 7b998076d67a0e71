//! `godex probe` as a user runs it.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use serde_json::{Value, json};
use testkit::{Script, Upstream};

use crate::cli::{command, godex, home};

/// A configuration that names the written spec is good.
fn check(folder: &Path) {
    std::fs::write(folder.join("godex.yaml"), "providers: {mine: {spec: ./spec.yaml}}").unwrap();
    let (code, out, err) = godex(folder, &["config", "check"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("providers: mine"), "{out}");
}

#[test]
fn the_demo_model_is_probed_offline_and_is_what_its_spec_says() {
    let home = home("");
    let (code, out, err) = godex(home.path(), &["probe", "demo", "--write", "spec.yaml"]);
    assert_eq!(code, Some(0), "{err}");
    let row = |feature: &str| out.lines().find(|line| line.starts_with(feature)).unwrap_or_default().to_owned();
    for (feature, seen) in [
        ("feature", "observed"),
        ("limit field", "max_completion_tokens"),
        ("tools", "called"),
        ("parallel calls", "yes"),
        ("json_schema ", "native"),
        ("reasoning in answers", "reasoning_content"),
        ("native /responses", "no"),
        ("context overflow", "skipped"),
    ] {
        assert!(row(feature).contains(seen), "{feature}: {out}");
    }
    // The estimate is a dry run on this very model.
    let expected = err.split("about ").nth(1).and_then(|rest| rest.split(' ').next());
    let needed = out.lines().last().and_then(|line| line.split(' ').next());
    assert_eq!(expected, needed, "{err}{out}");
    // Progress is for people on a terminal.
    assert_eq!(err.lines().count(), 4, "{err}");
    // What each check costs is said before and after, and is the same here.
    let costs =
        |text: &str| text.lines().find(|line| line.starts_with("requests by check: plain 1, ")).map(str::to_owned);
    assert!(costs(&err).is_some() && costs(&err) == costs(&out), "{err}{out}");
    let spec = std::fs::read_to_string(home.path().join("spec.yaml")).unwrap();
    assert!(spec.contains("extends: demo") && spec.contains("# Nothing was observed to differ."), "{spec}");
    check(home.path());
}

#[test]
fn the_default_provider_is_probed_and_limits_hold() {
    let home = home("");
    let (code, out, err) = godex(home.path(), &["probe", "--json", "--max-requests", "5"]);
    assert_eq!(code, Some(0), "{err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&report["target"], &report["spent"]["requests"]), (&json!("demo"), &json!(5)));
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["evidence"] == "the limit of requests is reached"), "{out}");
}

#[test]
fn what_is_wrong_is_said_before_anything_is_sent() {
    let home = home("");
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let closed = format!("http://{closed}/v1");
    for (args, expected) in [
        (&["nobody"][..], "error: there is no provider `nobody` (configured: demo; specs: deepseek,"),
        (&["groq"], "error: there is no key for `groq`: set GROQ_API_KEY"),
        (&["openai-compatible"], "error: the spec `openai-compatible` has no address of its own"),
        (&["groq", "--api-key-env", "NOT_SET"], "error: the environment variable NOT_SET is not set"),
        (&["http://example.com"], "error: the URL plain http to a public host"),
        (&["demo", "--write", "no/such/folder/x.yaml"], "error: cannot write no/such/folder/x.yaml"),
        (&[closed.as_str()], "error: The provider cannot be reached"),
    ] {
        let (code, out, err) = godex(home.path(), &[&["probe"], args].concat());
        assert_eq!((code, out.as_str()), (Some(1), ""), "{args:?}");
        assert!(err.starts_with(expected), "{args:?}: {err}");
    }
    assert_eq!(godex(home.path(), &["probe", "demo", "--max-requests", "0"]).0, Some(2));
}

/// Runs the command beside a scripted provider.
async fn against(script: Script, args: &[&str], folder: &Path) -> (Option<i32>, String, String) {
    let upstream = Upstream::start(script).await.unwrap();
    let url = format!("{}/v1", upstream.url());
    let mut command = command(folder, &[&["probe", url.as_str()], args].concat());
    #[expect(clippy::disallowed_methods, reason = "the test waits for it")]
    let run = tokio::task::spawn_blocking(move || command.env("MY_KEY", "sk-very-secret").output().unwrap());
    let output = run.await.unwrap();
    let sent = upstream.requests().last().and_then(|request| request.header("authorization").map(str::to_owned));
    assert!(sent.is_none_or(|sent| sent == "Bearer sk-very-secret"));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[tokio::test]
async fn a_url_is_probed_and_its_spec_loads() {
    let home = home("");
    let choice = json!({"message": {"role": "assistant", "content": "Hello there."}, "finish_reason": "stop"});
    let answer = json!({"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 3}});
    let args = ["--model", "m", "--json", "--api-key-env", "MY_KEY", "--write", "spec.yaml"];
    let (code, out, err) = against(Script::json(200, &answer), &args, home.path()).await;
    assert_eq!(code, Some(0), "{err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    let observed = |feature: &str| {
        let findings = report["findings"].as_array().unwrap();
        findings.iter().find(|finding| finding["feature"] == feature).unwrap()["observed"].clone()
    };
    assert_eq!((observed("json_schema"), observed("tools")), (json!("prompt"), json!("unclear")), "{out}");
    let spec = std::fs::read_to_string(home.path().join("spec.yaml")).unwrap();
    assert!(spec.contains("json_schema: prompt\n") && spec.contains("key_env: \"MY_KEY\"\n"), "{spec}");
    assert!(!format!("{out}{err}{spec}").contains("very-secret"));
    check(home.path());
    let (code, out, _) = godex(home.path(), &["config", "print"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("json_schema: prompt") && out.contains("key_env: MY_KEY"), "{out}");
}

/// A provider that says the same to everything.
fn parrot() -> Script {
    let choice = json!({"message": {"role": "assistant", "content": "Hello there."}, "finish_reason": "stop"});
    Script::json(200, &json!({"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 3}}))
}

#[tokio::test]
async fn a_diff_is_lines_to_paste_and_an_exit_status() {
    let home = home("");
    let args = ["--model", "m", "--diff", "--only", "formats"];
    let (code, out, err) = against(parrot(), &args, home.path()).await;
    assert_eq!(code, Some(1), "{err}");
    let lines: Vec<&str> = out.lines().collect();
    let was = lines.iter().position(|line| line.starts_with("# was native (specs/openai-compatible.yaml:")).unwrap();
    assert!(lines[was + 1].starts_with("# json_schema is prompt (certain): ignored: it answered"), "{out}");
    assert_eq!(lines[was + 2], "json_schema: prompt", "{out}");
    // What is pasted is a spec.
    std::fs::write(home.path().join("spec.yaml"), format!("endpoint: {{base_url: 'http://127.0.0.1:1/v1'}}\n{out}"))
        .unwrap();
    check(home.path());
    let (code, out, _) = against(parrot(), &[&args[..], &["--json"]].concat(), home.path()).await;
    let diff: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &diff["differs"], &diff["changes"][0]["path"]), (Some(1), &json!(true), &json!("json_schema")));
    // The same as a table is no failure.
    assert_eq!(against(parrot(), &["--model", "m", "--only", "formats"], home.path()).await.0, Some(0));
}

#[test]
fn nothing_that_differs_is_exit_status_0() {
    let home = home("");
    let (code, out, err) = godex(home.path(), &["probe", "demo", "--diff", "--only", "tools,choices"]);
    assert_eq!(code, Some(0), "{err}{out}");
    assert!(out.contains("# Nothing that was observed differs from it."), "{out}");
    assert!(err.contains("requests by check: plain 1, parameters"), "{err}");
    let (code, _, err) = godex(home.path(), &["probe", "demo", "--only", "everything"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("the checks are plain, parameters, stream,"), "{err}");
}

/// Half a report is better than none, and is said to be half.
#[tokio::test]
async fn a_provider_that_turns_to_nonsense_is_reported_and_fails() {
    let home = home("");
    let count = std::sync::atomic::AtomicUsize::new(0);
    let upstream = Upstream::start_with(move |_| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if number < 5 { parrot() } else { Script::body(200, "text/html", "<html>") }
    });
    let upstream = upstream.await.unwrap();
    let url = format!("{}/v1", upstream.url());
    let mut command = command(home.path(), &["probe", &url, "--model", "m"]);
    #[expect(clippy::disallowed_methods, reason = "the test waits for it")]
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(
        out.contains("plain answer") && out.contains("ended early: 6 answers in a row were of no use"),
        "{out}{err}"
    );
    assert!(err.lines().last().unwrap_or_default().starts_with("error: the probe ended early: 6 answers"), "{err}");
}

#[tokio::test]
async fn a_probe_that_cannot_go_on_fails() {
    let home = home("");
    let error = |status, message: &str| Script::json(status, &json!({"error": {"message": message}}));
    for (script, args, expected) in [
        (error(401, "bad key"), &["--model", "m"][..], "the provider refused the key (401: bad key)"),
        (error(404, "no model m"), &["--model", "m"], "the provider does not know the model (404: no model m)"),
        (error(500, "oops"), &["--model", "m"], "even a plain request was refused (500: oops)"),
        (
            error(404, "nothing here"),
            &[],
            "error: its models cannot be listed (404: nothing here): name one with --model",
        ),
        (
            error(401, "no key sk-very-secret"),
            &["--api-key-env", "MY_KEY"],
            "its models cannot be listed (401: no key [redacted]): name one with --model",
        ),
        (
            Script::body(502, "text/html", "<html><title>Bad gateway</title></html>"),
            &[],
            "(502, a web page: Bad gateway)",
        ),
        (
            Script::body(200, "text/html", "<html><title>Sign in</title></html>"),
            &[],
            "(it answered 200, but no JSON, a web page: Sign in)",
        ),
        (Script::silent(), &["--model", "m", "--timeout", "1"], "the provider did not answer in time"),
    ] {
        let (code, out, err) = against(script, args, home.path()).await;
        assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
        assert!(err.lines().last().unwrap_or_default().contains(expected), "{err}");
    }
}

/// A Messages API that says the same to everything, and knows no other.
fn messages_parrot(received: &testkit::Received) -> Script {
    if received.path != "/v1/messages" || received.header("x-api-key").is_none() {
        let error = json!({"type": "not_found_error", "message": "Not found"});
        return Script::json(404, &json!({"type": "error", "error": error}));
    }
    if let Err(fault) = testkit::messages::check_request(&received.json()) {
        let error = json!({"type": "invalid_request_error", "message": fault});
        return Script::json(400, &json!({"type": "error", "error": error}));
    }
    Script::json(
        200,
        &json!({
            "type": "message", "role": "assistant", "content": [{"type": "text", "text": "Hello there."}],
            "stop_reason": "end_turn", "usage": {"input_tokens": 3, "output_tokens": 3},
        }),
    )
}

async fn probed(mut command: std::process::Command) -> (Option<i32>, String, String) {
    #[expect(clippy::disallowed_methods, reason = "the test waits for it")]
    let run = tokio::task::spawn_blocking(move || command.env("MY_KEY", "sk-very-secret").output().unwrap());
    let output = run.await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A provider whose spec says so is asked by the Messages API, and so is a bare URL that answers nothing else.
#[tokio::test]
async fn a_messages_api_is_probed_as_one() {
    let upstream = Upstream::start_with(messages_parrot).await.unwrap();
    let url = upstream.url();
    let folder = home(&format!(
        "providers:\n  claude: {{spec: anthropic, endpoint: {{base_url: '{url}'}}, credentials: {{api_key: '${{MY_KEY}}'}}}}\n"
    ));
    let (code, out, err) = probed(command(folder.path(), &["probe", "claude", "--yes"])).await;
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("plain answer") && out.contains("native /messages"), "{out}");
    assert!(out.contains("not asked, for they are for chat servers only: texts, replay, responses"), "{out}");
    let is_chat = |request: &testkit::Received| request.path.contains("chat");
    assert!(!upstream.requests().iter().any(is_chat));
    let (code, out, err) = probed(command(folder.path(), &["probe", "claude", "--diff", "--only", "formats"])).await;
    assert_eq!(code, Some(1), "{err}");
    assert!(out.contains("json_schema: prompt\n"), "{out}");
    let bare = format!("{url}/v1");
    let args = ["probe", &bare, "--model", "m", "--only", "formats", "--api-key-env", "MY_KEY", "--write", "spec.yaml"];
    let (code, out, err) = probed(command(folder.path(), &args)).await;
    assert_eq!(code, Some(0), "{err}");
    assert!(
        err.contains("note: it is no chat server, but it answers as a Messages API: it is asked as one\n"),
        "{err}"
    );
    assert!(err.contains("against the spec `messages-compatible`") && out.contains("json_schema"), "{err}{out}");
    let spec = std::fs::read_to_string(folder.path().join("spec.yaml")).unwrap();
    assert!(spec.contains("extends: messages-compatible\n") && spec.contains(&format!("{url}\"\n")), "{spec}");
    check(folder.path());
    assert!(!format!("{out}{err}{spec}").contains("very-secret"));
}

/// One that does not answer says where else to look.
#[tokio::test]
async fn a_provider_that_is_no_messages_api_is_not_called_a_chat_server() {
    let refusal = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}});
    let upstream = Upstream::start(Script::json(400, &refusal)).await.unwrap();
    let folder = home(&format!(
        "providers:\n  claude: {{spec: anthropic, endpoint: {{base_url: '{}'}}, credentials: {{api_key: k}}}}\n",
        upstream.url()
    ));
    let (code, _, err) = probed(command(folder.path(), &["probe", "claude", "--yes"])).await;
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("is this the base URL of a Messages API?"), "{err}");
    assert!(err.contains("`godex providers test claude` asks it for a whole turn"), "{err}");
}
