//! `godex import litellm`: each file of `tests/litellm` becomes the one beside it (`NAME.godex.yaml`), which loads.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::{command, godex, home};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/litellm")
}

fn cases() -> Vec<String> {
    let names = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut cases: Vec<String> = names.filter_map(|name| Some(name.strip_suffix(".yaml")?.to_owned())).collect();
    cases.retain(|name| !name.contains(".godex"));
    cases.sort();
    cases
}

/// The variables of a file, each with a value of its kind.
fn variables(text: &str) -> Vec<(String, String)> {
    let names = text.split("${").skip(1).filter_map(|rest| Some(rest.split_once('}')?.0.to_owned()));
    let value =
        |name: &str| if name.ends_with("_BASE") { "https://base.example.com" } else { "sk-0123456789abcdefghij" };
    names.map(|name| (name.clone(), value(&name).to_owned())).collect()
}

#[test]
fn files_become_what_they_should_and_load() {
    let cases = cases();
    assert!(cases.len() >= 7, "{cases:?}");
    for case in cases {
        let home = home("");
        fs::copy(folder().join(format!("{case}.yaml")), home.path().join("litellm.yaml")).unwrap();
        let (code, out, err) = godex(home.path(), &["import", "litellm", "litellm.yaml"]);
        assert_eq!(code, Some(0), "{case}: {err}");
        let path = folder().join(format!("{case}.godex.yaml"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&path, &out).unwrap();
        }
        assert_eq!(out, fs::read_to_string(&path).unwrap(), "{case}");
        // What is a comment in the file was said, too.
        let comments =
            out.lines().take_while(|line| line.starts_with('#')).filter_map(|line| line.strip_prefix("#   "));
        for note in comments {
            assert!(err.contains(&format!("note: litellm.yaml:{note}\n")), "{case}: {note}\n{err}");
        }
        fs::write(home.path().join("godex.yaml"), &out).unwrap();
        let checked = command(home.path(), &["config", "check"]).envs(variables(&out)).output().unwrap();
        assert!(checked.status.success(), "{case}: {}", String::from_utf8_lossy(&checked.stderr));
    }
}

#[test]
fn a_file_is_private_and_takes_the_place_of_none() {
    let home = home("");
    fs::copy(folder().join("laptop.yaml"), home.path().join("in.yaml")).unwrap();
    let import =
        |more: &[&str]| godex(home.path(), &[&["import", "litellm", "in.yaml", "-o", "out.yaml"][..], more].concat());
    let (code, out, err) = import(&[]);
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(home.path().join("out.yaml")).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let (code, _, err) = import(&[]);
    assert!(code == Some(1) && err.contains("out.yaml is there already: add --force"), "{err}");
    let (code, _, err) = import(&["--force"]);
    assert!(code == Some(0) && err.contains("kept out.yaml.godex-backup-1"), "{err}");
}

#[test]
fn a_note_names_the_entry_that_it_is_about() {
    let home = home("");
    let entries = "model_list:\n- model_name: [a]\n  litellm_params: {model: openai/m, api_key: os.environ/K}\n\
                   - model_name: bad\n  litellm_params: {model: openai/m, api_base: 'ftp://x'}\n";
    fs::write(home.path().join("in.yaml"), entries).unwrap();
    let (code, _, err) = godex(home.path(), &["import", "litellm", "in.yaml"]);
    assert_eq!(code, Some(0), "{err}");
    for expected in [
        "in.yaml:2: its `model_name` is a list, and no text: clients ask for `openai/m`\n",
        "in.yaml:4: `bad` is left out: the URL must be an http:// or https:// URL\n",
    ] {
        assert!(err.contains(expected), "{expected}{err}");
    }
}

/// In a value a variable is escaped; a name is a key, in which none is looked for.
#[test]
fn names_that_look_like_variables_stay_names() {
    let home = home("");
    let entries = "model_list:\n- model_name: 'team-${X}'\n  litellm_params: {model: 'openai/m-${Y}', api_key: k}\n\
                   - model_name: \"hidden-\\U000E0041\"\n  litellm_params: {model: openai/m, api_key: k}\n";
    fs::write(home.path().join("in.yaml"), entries).unwrap();
    let (code, out, err) = godex(home.path(), &["import", "litellm", "in.yaml"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains(r#"    "team-${X}": "openai/m-$${Y}""#), "{out}");
    // What is not seen is written as an escape, and read as it was.
    assert!(out.contains(r#"    "hidden-\U000e0041": openai/m"#), "{out}");
    fs::write(home.path().join("godex.yaml"), &out).unwrap();
    let (code, out, err) = godex(home.path(), &["models"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("\nteam-${X} ") && out.contains("\nhidden-\\u{e0041} "), "{out}");
}

/// What a file of one entry becomes, without its comments, and what is said. `rest` is what follows `litellm_params`.
fn of_entry(params: &str, rest: &str) -> (String, String) {
    of_entry_where(params, rest, &[])
}

/// The same where these variables are set.
fn of_entry_where(params: &str, rest: &str, set: &[(&str, &str)]) -> (String, String) {
    let home = home("");
    let text = format!("model_list:\n- model_name: x\n  litellm_params: {{model: openai/m, {params}}}\n{rest}\n");
    fs::write(home.path().join("in.yaml"), &text).unwrap();
    let mut import = command(home.path(), &["import", "litellm", "in.yaml"]);
    let done = import.envs(set.iter().copied()).output().unwrap();
    let [out, err] = [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(done.status.success(), "{text}{err}");
    let lines: Vec<&str> = out.lines().filter(|line| !line.starts_with('#')).collect();
    (lines.join("\n") + "\n", err)
}

/// Servers that want no key, wherever they are. What is set where the file is made has nothing to do with it.
#[test]
fn no_key_is_sent_where_none_is_needed() {
    let note = |prefix: &str| format!("note: in.yaml:2: {prefix} without an api_key: none is sent");
    for (params, spec, address) in [
        ("model: ollama/m, api_base: os.environ/X_BASE", "ollama", "\"${X_BASE}/v1\""),
        ("model: ollama_chat/m, api_base: 'https://o.example.com'", "ollama", "\"https://o.example.com/v1\""),
        ("model: hosted_vllm/facebook/opt-125m, api_base: 'https://h.co'", "vllm", "\"https://h.co\""),
        ("model: hosted_vllm/m, api_base: os.environ/X_BASE", "vllm", "\"${X_BASE}\""),
        ("model: vllm/m, api_base: os.environ/X_BASE", "vllm", "\"${X_BASE}\""),
        ("model: lm_studio/m, api_base: os.environ/X_BASE", "lmstudio", "\"${X_BASE}\""),
        ("model: llamafile/m, api_base: os.environ/X_BASE", "llamacpp", "\"${X_BASE}\""),
        ("model: xinference/m, api_base: os.environ/X_BASE", "openai-compatible", "\"${X_BASE}\""),
        ("model: docker_model_runner/m, api_base: 'https://d.co/v1'", "openai-compatible", "\"https://d.co/v1\""),
        ("model: hosted_vllm/m, api_base: 'http://203.0.113.9:8000/v1'", "vllm", "\"http://203.0.113.9:8000/v1\""),
    ] {
        let (out, err) = of_entry(params, "");
        let expected = format!("spec: {{extends: {spec}, auth: none}}\n    endpoint:\n      base_url: {address}\n");
        assert!(out.contains(&expected) && !out.contains("api_key"), "{params}: {out}{err}");
        let prefix = params.strip_prefix("model: ").and_then(|rest| rest.split_once('/')).unwrap().0;
        assert!(err.contains(&note(prefix)), "{params}: {err}");
        for address in ["http://localhost:11434", "https://x.example.com", "ftp://nobody", ""] {
            let set = [("X_BASE", address), ("HOSTED_VLLM_API_KEY", "a\nb"), ("GODEX_PORT", "none")];
            assert_eq!(of_entry_where(params, "", &set).0, out, "{params}: {address}");
        }
        loads(&out, &[("X_BASE", "https://x.example.com")]);
        if address.contains('$') {
            loads(&out, &[("X_BASE", "http://localhost:11434")]);
        }
    }
    // Who says a key has one; nobody is sent any on one's own network.
    for (params, expected) in [
        ("model: hosted_vllm/m, api_base: 'https://h.co', api_key: k", "spec: vllm\n"),
        ("model: ollama/m, api_base: os.environ/X_BASE, api_key: os.environ/K", "api_key: \"${K}\"\n"),
        ("model: ollama/m, api_base: 'http://10.0.0.5:11434'", "spec: ollama\n"),
        ("model: ollama/m", "spec: ollama\n"),
    ] {
        let (out, err) = of_entry(params, "");
        assert!(out.contains(expected) && !out.contains("auth:") && !err.contains("note: "), "{params}: {out}{err}");
    }
    // A vendor whose servers want one is not guessed to be another.
    let (out, err) = of_entry("model: groq/m, api_base: os.environ/X_BASE", "");
    assert!(out.contains("api_key: \"${GROQ_API_KEY}\"\n") && !err.contains("note: "), "{out}{err}");
}

/// What it became loads with these variables.
fn loads(config: &str, set: &[(&str, &str)]) {
    let home = home("");
    fs::write(home.path().join("godex.yaml"), config).unwrap();
    let checked = command(home.path(), &["config", "check"]).envs(set.iter().copied()).output().unwrap();
    assert!(checked.status.success(), "{config}{}", String::from_utf8_lossy(&checked.stderr));
}

/// What LiteLLM asks the older completions for is no chat.
#[test]
fn models_of_the_older_completions_are_left_out() {
    for (params, who) in [
        ("model: text-completion-openai/gpt-3.5-turbo-instruct", "text-completion-openai"),
        ("model: text-completion-openai/m, api_base: 'https://h.co/v1', api_key: k", "text-completion-openai"),
        ("model: text-completion-codestral/codestral-2405", "text-completion-codestral"),
        ("model: text-completion-codestral/m, api_base: 'https://h.co/v1', api_key: k", "text-completion-codestral"),
        ("model: m, custom_llm_provider: text-completion-openai", "text-completion-openai"),
        ("model: azure_text/m, api_base: 'https://a.openai.azure.com', api_key: k", "azure_text"),
        ("model: gpt-3.5-turbo-instruct", "gpt-3.5-turbo-instruct"),
        ("model: 'openai/ft:davinci-002:org::x'", "ft:davinci-002:org::x"),
    ] {
        let (out, err) = of_entry(params, "");
        let note = format!("in.yaml:2: `x` is left out: {who} is asked at /completions, and godex has no spec for it");
        assert!(err.contains(&note) && out.contains("providers: {}\n"), "{params}: {out}{err}");
    }
    let (out, _) = of_entry("model: 'ft:gpt-3.5-turbo:org::x'", "");
    assert!(out.contains("ft:gpt-3.5-turbo:org::x"), "{out}");
}

#[test]
fn names_of_variables_that_cannot_be_read_are_never_values() {
    let shared = "credential_list: [{credential_name: c, credential_values: {api_key: os.environ/MY-KEY}}]";
    for (params, rest, why) in [
        ("api_key: os.environ/MY-KEY", "", "`api_key` is `os.environ/MY-KEY`, and the name of a variable has only"),
        ("api_key: os.environ/", "", "`api_key` is `os.environ/`, and"),
        ("api_key: os.environ/1BAD-NAME", "", "`api_key` is `os.environ/1BAD-NAME`, and"),
        ("api_base: os.environ/A.B", "", "`api_base` is `os.environ/A.B`, and"),
        ("base_url: os.environ/", "", "`base_url` is `os.environ/`, and"),
        ("organization: os.environ/A B", "", "`organization` is `os.environ/A B`, and"),
        ("api_version: os.environ/Ä", "", "`api_version` is `os.environ/Ä`, and"),
        ("headers: {X-A: os.environ/A-B}", "", "`X-A` is `os.environ/A-B`, and"),
        ("extra_headers: {X-A: [1]}", "", "`X-A` is a list, and no text"),
        ("litellm_credential_name: c", shared, "`api_key` is `os.environ/MY-KEY`, and"),
        (
            "model: os.environ/M, api_base: 'http://10.0.0.5'",
            "",
            "`model` is `os.environ/M`, which is read from no variable",
        ),
        (
            "custom_llm_provider: os.environ/P",
            "",
            "`custom_llm_provider` is `os.environ/P`, which is read from no variable",
        ),
    ] {
        let (out, err) = of_entry(params, rest);
        assert!(err.contains(&format!("in.yaml:2: `x` is left out: its {why}")), "{params}: {err}");
        assert!(out.contains("providers: {}\n") && !out.contains("os.environ"), "{params}: {out}");
    }
    let (out, err) = of_entry("", "general_settings: {master_key: os.environ/MY-MASTER-KEY-FOR-ALL}");
    assert!(
        err.contains("in.yaml:4: `master_key` is left out: it is `os.environ/MY-MASTER-KEY-FOR-ALL`, and"),
        "{err}"
    );
    assert!(!out.contains("keys:"), "{out}");
}

#[test]
fn numbers_that_are_not_taken_as_they_are_are_said() {
    // Nothing is known of the model.
    let no_word = "    models:\n      - m\n\nmodels:\n";
    for (params, rest, expected, became) in [
        (
            "input_cost_per_token: 2, output_cost_per_token: 1",
            "",
            "3: `input_cost_per_token`: 2 becomes 1, which is the most",
            "m: {input: 1000000, output: 1000000}\n",
        ),
        (
            "input_cost_per_token: -5, output_cost_per_token: 1",
            "",
            "3: the price of `x` is left out: its `input_cost_per_token` is -5, and a price is no negative number",
            no_word,
        ),
        (
            "input_cost_per_token: 0",
            "  model_info: {output_cost_per_token: free}",
            "4: the price of `x` is left out: its `output_cost_per_token` is free, and no number",
            no_word,
        ),
        (
            "cache_read_input_token_cost: 0.000001",
            "",
            "2: the price of `x` is left out: it needs both input and output",
            no_word,
        ),
        ("input_cost_per_token: -0.0, output_cost_per_token: 0", "", "", "m: {input: 0, output: 0}\n"),
        (
            "",
            "  model_info: {max_output_tokens: -1}",
            "4: `max_output_tokens` is left out: it is -1, and no number from 1 to 1000000000",
            no_word,
        ),
        (
            "",
            "  model_info: {max_input_tokens: 99999999999999, max_output_tokens: 9e99}",
            "4: `max_input_tokens`: 99999999999999 becomes 1000000000, which is the most",
            "{match: m, context_window: 1000000000, max_output: 1000000000}\n",
        ),
        ("weight: -3", "", "3: `weight` is left out: it is -3, and no number from 0 on", no_word),
        ("order: [1]", "", "3: `order` is left out: it is a list, and no number from 0 on", no_word),
    ] {
        let (out, err) = of_entry(params, rest);
        let note = format!("note: in.yaml:{expected}\n");
        let is_said = if expected.is_empty() { !err.contains("note: ") } else { err.contains(&note) };
        assert!(is_said, "{params} {rest}: {err}");
        assert!(out.contains(became), "{params} {rest}: {out}");
    }
}

/// What LiteLLM waits for one answer is no limit of a stream that goes on, and the other way round.
#[test]
fn times_are_of_what_they_were_for() {
    for (params, rest, expected) in [
        (
            "api_base: 'http://127.0.0.1:22100/v1', api_key: k, timeout: 60, stream_timeout: 2",
            "",
            "    timeouts: {first_byte_ms: 2000, whole_ms: 60000, idle_ms: 2000}\n",
        ),
        ("timeout: 30", "", "    timeouts: {first_byte_ms: 30000, whole_ms: 30000, idle_ms: 30000}\n"),
        ("stream_timeout: 20", "", "    timeouts: {first_byte_ms: 20000, whole_ms: 600000, idle_ms: 20000}\n"),
        (
            "timeout: 30",
            "router_settings: {timeout: 7, stream_timeout: 0.5}",
            "    timeouts: {first_byte_ms: 500, whole_ms: 30000, idle_ms: 500}\n",
        ),
        (
            "timeout: 7200",
            "",
            "    timeouts: {first_byte_ms: 7200000, whole_ms: 7200000, idle_ms: 7200000, total_ms: 7200000}\n",
        ),
    ] {
        let (out, err) = of_entry(params, rest);
        assert!(out.contains(expected) && !err.contains("note: "), "{params} {rest}: {out}{err}");
    }
}

/// What LiteLLM asks of Azure at which address, with which header.
#[test]
fn models_of_azure_are_asked_where_they_are() {
    let of = |rest: &str| format!("model: azure_ai/{rest}");
    for (params, expected, note) in [
        (
            "Phi-4, api_base: 'https://foo.services.ai.azure.com', api_key: k, api_version: '2025-01-01'",
            "    spec: {extends: openai-compatible, auth: api-key-header}\n    endpoint:\n      \
             base_url: \"https://foo.services.ai.azure.com/models\"\n      query: {api-version: \"2025-01-01\"}\n",
            "",
        ),
        (
            "Phi-4, api_base: 'https://foo.services.ai.azure.com/models/chat/completions?api-version=v9', api_key: k",
            "base_url: \"https://foo.services.ai.azure.com/models\"\n      query: {api-version: v9}\n",
            "",
        ),
        (
            "Phi-4, api_base: 'https://foo.services.ai.azure.com/', api_key: k",
            "query: {api-version: \"2024-05-01-preview\"}\n",
            "there is no api_version: 2024-05-01-preview is used",
        ),
        (
            "Phi-4, api_base: 'https://foo.services.ai.azure.com/openai/v1', api_key: k",
            "auth: api-key-header}\n    endpoint:\n      base_url: \"https://foo.services.ai.azure.com/openai/v1\"\n    cred",
            "",
        ),
        (
            "mistral, api_base: 'https://m.eastus2.inference.ai.azure.com/v1', api_key: k",
            "spec: openai-compatible\n    endpoint:\n      base_url: \"https://m.eastus2.inference.ai.azure.com/v1\"\n    cred",
            "",
        ),
        (
            "Phi-4",
            "base_url: \"${AZURE_AI_API_BASE}/models\"",
            "AZURE_AI_API_BASE is taken for https://NAME.services.ai.azure.com, without a path",
        ),
        (
            "claude-opus-4-1, api_base: 'https://foo.services.ai.azure.com/anthropic/v1/messages', api_key: k",
            "spec: anthropic\n    endpoint:\n      base_url: \"https://foo.services.ai.azure.com/anthropic\"\n    cred",
            "",
        ),
        (
            "claude-opus-4-1, api_base: 'https://foo.services.ai.azure.com', api_version: v1",
            "base_url: \"https://foo.services.ai.azure.com/anthropic\"\n    credentials:\n      api_key: \"${AZURE_AI_API_KEY}\"\n",
            "`api_version` is left out: the Messages API has none",
        ),
        (
            "gpt-4o, api_base: 'https://foo.services.ai.azure.com', api_key: k, api_version: '2024-10-21'",
            "spec: {extends: azure, wire: chat}\n    endpoint:\n      base_url: \"https://foo.services.ai.azure.com\"\n      \
             path: \"/openai/deployments/{model}/chat/completions\"\n      query: {api-version: \"2024-10-21\"}\n",
            "",
        ),
        (
            "model_router/mine, api_base: 'https://foo.services.ai.azure.com', api_key: k, api_version: v1",
            "    models:\n      - mine\n",
            "",
        ),
        (
            "agents/a1, api_base: 'https://foo.services.ai.azure.com', api_key: k",
            "providers: {}\n",
            "2: `x` is left out: an agent of azure_ai has an API of its own, and godex has no spec for it",
        ),
    ] {
        let (out, err) = of_entry(&of(params), "");
        assert!(out.contains(expected), "{params}: {out}{err}");
        let is_said = if note.is_empty() { !err.contains("note: ") } else { err.contains(note) };
        assert!(is_said, "{params}: {err}");
        let key = ("AZURE_AI_API_KEY", "sk-0123456789abcdefghij");
        loads(&out, &[("AZURE_AI_API_BASE", "https://foo.services.ai.azure.com"), key]);
    }
}

/// Whose a name is, LiteLLM finds out for each request; here somebody is asked for all that are nothing else.
#[test]
fn a_wildcard_for_every_vendor_is_said() {
    let home = home("");
    let star = "- model_name: '*'\n  litellm_params: {model: '*'}\n";
    let named = "- model_name: anthropic/*\n  litellm_params: {model: anthropic/*}\n";
    let second = "- model_name: '*'\n  litellm_params: {model: groq/*}\n";
    for (entries, expected) in [
        (
            star.to_owned(),
            &["in.yaml:2: `*`: LiteLLM finds out the vendor", "goes to openai: nobody else is asked"][..],
        ),
        (
            format!("{named}{star}"),
            &["in.yaml:4: `*`: LiteLLM finds out the vendor", "goes to openai: others are asked as anthropic/MODEL"],
        ),
        (
            format!("{star}{second}"),
            &["in.yaml:4: `*`: names that nobody else has go to openai; clients ask for groq/"],
        ),
    ] {
        fs::write(home.path().join("in.yaml"), format!("model_list:\n{entries}")).unwrap();
        let (code, out, err) = godex(home.path(), &["import", "litellm", "in.yaml"]);
        assert_eq!(code, Some(0), "{err}");
        assert!(out.contains("default_provider: openai\n"), "{out}");
        for expected in expected {
            assert!(err.contains(expected), "{expected}: {err}");
        }
    }
}

#[test]
fn what_is_no_such_file_is_said() {
    let home = home("");
    for (text, expected) in [
        ("", "is no configuration of a LiteLLM proxy"),
        ("server: {port: 1}\n", "is no configuration of a LiteLLM proxy"),
        ("model_list: [\n", "in.yaml:"),
        ("model_list:\n- litellm_params: {model: openai/m, <<: x}\n", "in.yaml:2: `<<` takes a mapping, or a list of"),
        ("model_list: 5\n", "in.yaml:1: `model_list` is not a list"),
        ("model_list: []\ncredential_list: {a: 1}\n", "in.yaml:2: `credential_list` is not a list"),
        ("model_list: [1, [], {model_name: [x]}, {litellm_params: {model: {}}}]\n", ""),
        ("model_list: []\ngeneral_settings: [1]\nrouter_settings: {fallbacks: 7, timeout: -1, num_retries: x}\n", ""),
    ] {
        fs::write(home.path().join("in.yaml"), text).unwrap();
        let (code, _, err) = godex(home.path(), &["import", "litellm", "in.yaml"]);
        assert_eq!(code, Some(i32::from(!expected.is_empty())), "{text}: {err}");
        assert!(err.contains(expected) && !err.contains("panicked"), "{text}: {err}");
    }
    let (code, _, err) = godex(home.path(), &["import", "litellm", "gone.yaml"]);
    assert_eq!((code, err.as_str()), (Some(1), "error: there is no gone.yaml\n"));
}
