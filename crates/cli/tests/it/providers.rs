//! `godex providers`, as a user runs it.

use crate::cli::{godex, home};

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
    assert_eq!(godex(home.path(), &["config", "check"]).0, Some(1), "serving still wants it");

    let (code, out, _) = godex(home.path(), &["providers", "--json"]);
    assert_eq!(code, Some(0));
    let listed: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        listed["providers"][1]["key"],
        serde_json::json!({"present": true, "file": "godex.yaml:5", "variable": null})
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
