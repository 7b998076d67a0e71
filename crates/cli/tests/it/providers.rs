//! `godex providers`, as a user runs it.

use serde_json::{Value, json};
use testkit::{Script, Upstream};

use crate::cli::{godex, home};

/// Calls the tool that it is offered, then says what it was told.
async fn caller() -> Upstream {
    Upstream::start_with(|request| {
        let body = request.json();
        let told = body["messages"].as_array().unwrap().iter().find(|message| message["role"] == "tool");
        let delta = match told {
            Some(told) => json!({"content": told["content"]}),
            None => json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function",
                "function": {"name": "get_weather", "arguments": "{\"city\":\"Paris\"}"}}]}),
        };
        let reason = if told.is_some() { "stop" } else { "tool_calls" };
        Script::sse(&[
            json!({"choices": [{"index": 0, "delta": delta}]}),
            json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}],
                "usage": {"prompt_tokens": 40, "completion_tokens": 3, "total_tokens": 43,
                    "prompt_tokens_details": {"cached_tokens": 32}}}),
        ])
    })
    .await
    .unwrap()
}

/// Each provider gets one turn with a call, there and back; what fails says why, and is the command's failure.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn providers_are_tried_with_a_tool_call() {
    let good = caller().await;
    let bad = Upstream::start(Script::json(401, &json!({"error": {"message": "no such key"}}))).await.unwrap();
    let mute = Upstream::start(Script::sse(&[json!({"choices": [{"index": 0, "delta": {"content": "Rain."},
        "finish_reason": "stop"}], "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}})]));
    let mute = mute.await.unwrap();
    let page = Upstream::start(Script::body(200, "text/html", "<html><title>Sign in</title></html>")).await.unwrap();
    let provider = |name: &str, upstream: &Upstream| {
        format!("  {name}: {{spec: openai-compatible, endpoint: {{base_url: '{}/v1'}}, models: [m]}}\n", upstream.url())
    };
    let home = home(&format!(
        "providers:\n{}{}{}  deepseek: {{}}\n",
        provider("good", &good),
        provider("mute", &mute),
        provider("bad", &bad)
    ));
    let (code, out, err) = godex(home.path(), &["providers", "test"]);
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(err.contains("1 of 4 did not answer as they should"), "{err}");
    let row = |name: &str| {
        let row = out.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {out}"));
        row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        (&row("good ")[..3], &row("good ")[5..8]),
        (&["good", "m", "ok"].map(str::to_owned)[..], &["80", "64", "6"].map(str::to_owned)[..])
    );
    assert_eq!(row("mute ")[2], "no tool call");
    assert_eq!(row("bad ")[2], "failed");
    assert_eq!(row("demo ")[2], "ok");
    assert!(out.contains("\nbad: "), "{out}");
    assert!(!out.contains("deepseek"), "nothing is sent where there is no key: {out}");
    // The second answer is to the result of the first one's call.
    assert_eq!(good.requests().len(), 2);

    // Whoever names no model is asked for its list, and what comes instead of one is said.
    let unnamed = |name: &str, upstream: &Upstream| {
        let endpoint = format!("endpoint: {{base_url: '{}/v1'}}", upstream.url());
        format!("  {name}: {{spec: openai-compatible, {endpoint}, credentials: {{api_key: sk-very-secret-key}}}}\n")
    };
    let echo = Upstream::start(Script::json(403, &json!({"error": {"message": "not for sk-very-secret-key"}})));
    let echo = echo.await.unwrap();
    let others = crate::cli::home(&format!("providers:\n{}{}", unnamed("page", &page), unnamed("echo", &echo)));
    let (code, out, err) = godex(others.path(), &["providers", "test"]);
    let rows: Vec<&str> = out.lines().filter(|line| line.contains("failed")).collect();
    assert!(code == Some(1) && rows.len() == 2 && rows[0].starts_with("page"), "{out}{err}");
    for said in [
        "\npage: its models cannot be listed (it answered 200, but no JSON, a web page: Sign in): name one with --model",
        "\necho: the key was refused (403: not for [redacted])\n",
    ] {
        assert!(out.contains(said), "{out}");
    }
    // Progress is for people on a terminal.
    assert_eq!(err.lines().count(), 1, "{err}");

    let (code, out, _) = godex(home.path(), &["providers", "test", "good", "--model", "other", "--json"]);
    let tried: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &tried[0]["model"], &tried[0]["called_tool"]), (Some(0), &json!("other"), &json!(true)));
    assert_eq!(good.requests().last().unwrap().json()["model"], "other");
    for (args, said) in [
        (
            &["providers", "test", "nobody"][..],
            "there is no provider `nobody`; configured: good, mute, bad, deepseek, demo",
        ),
        (&["providers", "test", "--model", "m"], "--model is for one provider"),
    ] {
        let (code, _, err) = godex(home.path(), args);
        assert!(code == Some(1) && err.contains(said), "{err}");
    }
    assert!(!home.path().join(".godex").exists() && !home.path().join("data").exists(), "a test leaves nothing behind");
}

/// Each address of a provider is a place of its own: one that is down is not hidden by those that are up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_address_of_a_provider_is_tried() {
    let (one, gone) = (caller().await, caller().await);
    let (up, down) = (format!("{}/v1", one.url()), format!("{}/v1", gone.url()));
    drop(gone);
    let endpoint = format!("endpoint: {{base_urls: ['{up}', '{down}']}}");
    let home = home(&format!("providers:\n  farm: {{spec: openai-compatible, {endpoint}, models: [m]}}\n"));
    let (code, out, err) = godex(home.path(), &["providers", "test", "farm"]);
    assert!(code == Some(1) && err.contains("1 of 2 did not answer"), "{out}{err}");
    let row = |url: &str| out.lines().find(|line| line.starts_with(&format!("farm ({url})"))).unwrap_or_default();
    assert!(row(&up).contains("  ok  ") && row(&down).contains("  failed"), "{out}");
    let (_, out, _) = godex(home.path(), &["providers", "test", "farm", "--json"]);
    let tried: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&tried[1]["provider"], &tried[1]["base_url"], &tried[1]["ok"]),
        (&json!("farm"), &json!(down), &json!(false))
    );
}

/// A key whose provider lacks something else is no provider yet, and says what it needs.
#[test]
fn what_is_left_out_is_told() {
    let home = tempfile::tempdir().unwrap();
    let listed = |env: &[(&str, &str)]| {
        let mut command = crate::cli::command(home.path(), &["providers"]);
        String::from_utf8(command.envs(env.iter().copied()).output().unwrap().stdout).unwrap()
    };
    let out = listed(&[("AWS_BEARER_TOKEN_BEDROCK", "k"), ("MOONSHOT_API_KEY", "k")]);
    assert!(
        out.contains(
            "\nbedrock is left out: AWS_BEARER_TOKEN_BEDROCK is set, but its region is not known; set AWS_REGION"
        ),
        "{out}"
    );
    assert!(out.contains("\nmoonshot ") && !out.contains("\nmoonshot-cn "), "{out}");
    let out = listed(&[("AWS_BEARER_TOKEN_BEDROCK", "k"), ("AWS_REGION", "eu-west-1")]);
    assert!(
        out.contains("https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1") && !out.contains("left out"),
        "{out}"
    );
}

#[test]
fn providers_are_listed_with_their_keys() {
    let home = home(
        "providers:\n  deepseek: {}\n  groq:\n    credentials:\n      api_key: gsk-secret\n  box: {spec: ollama, models: [qwen3]}\n",
    );
    let (code, out, err) = godex(home.path(), &["providers"]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "a missing key is shown, not refused");
    let rows: Vec<Vec<&str>> = out
        .lines()
        .take(5)
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    assert_eq!(rows[0], ["NAME", "SPEC", "STATUS", "KEY", "MODELS", "BASE URL"]);
    assert_eq!(
        rows[1],
        ["deepseek", "deepseek", "no key", "missing: set DEEPSEEK_API_KEY", "2", "https://api.deepseek.com"]
    );
    assert_eq!(rows[2], ["groq", "groq", "ready", "from godex.yaml:5", "0", "https://api.groq.com/openai/v1"]);
    assert_eq!(rows[3], ["box", "ollama", "ready", "not needed", "1", "http://127.0.0.1:11434/v1"]);
    assert_eq!(rows[4], ["demo", "demo", "offline", "not needed", "1"]);
    assert!(out.contains("\nnot configured: openai, zhipu, ") && !out.contains("secret"), "{out}");
    let others = &out[out.find("not configured").unwrap()..];
    assert!(others.lines().count() > 5 && others.lines().all(|line| line.len() <= 100), "{out}");
    assert_eq!(godex(home.path(), &["config", "check"]).0, Some(1), "serving still wants it");

    let (code, out, _) = godex(home.path(), &["providers", "--json"]);
    assert_eq!(code, Some(0));
    let listed: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        listed["providers"][1]["key"],
        serde_json::json!({"present": true, "file": "godex.yaml:5", "variable": null, "command": null})
    );
    assert_eq!(listed["providers"][0]["status"], "no key");
    assert!(!out.contains("secret"), "{out}");
}

#[test]
fn a_spec_is_shown_with_its_origins() {
    let home = home(
        "providers:\n  mine:\n    spec: ./specs/mine.yaml\n    endpoint: {base_url: \"http://127.0.0.1:9/v1\"}\n    models: [a, {match: b-*, limit_field: max_tokens}]\n",
    );
    std::fs::create_dir(home.path().join("specs")).unwrap();
    let spec = "extends: moonshot\nlimit_field: max_completion_tokens\nrequest:\n  tools:\n    max: 9\n";
    std::fs::write(home.path().join("specs/mine.yaml"), spec).unwrap();
    let (code, out, err) = godex(home.path(), &["providers", "show", "mine"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    for line in [
        "# provider mine, spec ./specs/mine.yaml\n",
        "  base_url: 'http://127.0.0.1:9/v1'  # godex.yaml:4\n",
        "limit_field: max_completion_tokens  # ./specs/mine.yaml:2\n",
        "    max: 9  # ./specs/mine.yaml:5\n",
        "developer_role: system  # specs/moonshot.yaml:",
        "    call_ids: any  # default\n",
        "  - a  # godex.yaml:5\n",
        "  - match: 'b-*'  # godex.yaml:5\n    limit_field: max_tokens  # godex.yaml:5\n",
    ] {
        assert!(out.contains(line), "{line}\n{out}");
    }
    assert!(!out.contains("MOONSHOT_API_KEY"), "that key is for another address: {out}");
    let (_, out, _) = godex(home.path(), &["providers", "show", "mine", "--model", "B-2"]);
    assert!(out.contains("\nlimit_field: max_tokens  # godex.yaml:5\n") && !out.contains("match"), "{out}");

    // What is printed is the same configuration, without the file.
    let (_, printed, _) = godex(home.path(), &["config", "print"]);
    std::fs::write(home.path().join("again.yaml"), &printed).unwrap();
    let (code, again, err) = godex(home.path(), &["config", "print", "--config", "again.yaml"]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{printed}");
    let settings = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(settings(&again), settings(&printed));

    // What is shown can be used as a spec.
    std::fs::write(home.path().join("specs/mine.yaml"), &out).unwrap();
    assert_eq!(godex(home.path(), &["config", "check"]).0, Some(0));

    let (code, out, _) = godex(home.path(), &["providers", "show", "azure"]);
    assert_eq!(code, Some(0));
    assert!(out.starts_with("# built-in spec azure, not configured\n"), "{out}");
    assert!(out.contains("auth: api-key-header  # specs/azure.yaml:"), "{out}");
    let (code, _, err) = godex(home.path(), &["providers", "show", "opnai"]);
    assert_eq!(code, Some(1));
    assert!(
        err.starts_with("error: there is no provider or spec `opnai`; configured: mine, demo; did you mean `openai`? "),
        "{err}"
    );
}

#[test]
fn mistakes_in_a_spec_file_have_its_name() {
    let home = home("providers:\n  mine: {spec: mine.yaml}\n  gone: {spec: ./gone.yaml}\n");
    let spec = "endpoint: {base_url: http://127.0.0.1:1/v1}\nmodels:\n- match: x*\n  limit_feild: max_tokens\n";
    std::fs::write(home.path().join("mine.yaml"), spec).unwrap();
    let (code, _, err) = godex(home.path(), &["config", "check"]);
    assert_eq!(code, Some(1));
    let expected = "error: 2 problems with the configuration\ngodex.yaml:3:16: providers.gone.spec: there is no such file; looked for ";
    assert!(err.starts_with(expected), "{err}");
    assert!(
        err.ends_with("\nmine.yaml:4:3: models[0]: unknown key `limit_feild`; did you mean `limit_field`?\n"),
        "{err}"
    );
}
