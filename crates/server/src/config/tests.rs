use std::path::{Path, PathBuf};

use providers::INLINE;

use super::super::{Backend, KEYS, LogFormat, LogLevel, Overrides, PROVIDER_KEYS, PostgresConfig, Secret, load};
use super::*;

/// Every key of an earlier configuration format, and a few newer ones.
const FULL: &str = include_str!("testdata/full.yaml");

type Variables<'a> = &'a [(&'a str, &'a str)];

/// Loads `text` with this environment, as `godex.yaml` in a home of its own.
fn load_text(text: &str, env: Variables<'_>, overrides: Overrides) -> Result<Config, Problems> {
    let document = Document::parse("godex.yaml", text)?;
    with_sources(env, overrides, |sources| read(&document, sources, Origin::File(PathBuf::from("/w/godex.yaml"))))
}

fn with_sources<T>(env: Variables<'_>, overrides: Overrides, use_it: impl FnOnce(&Sources<'_>) -> T) -> T {
    let env = |name: &str| env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let (cwd, home) = (Path::new("/w"), Path::new("/home/u"));
    use_it(&Sources { config_path: None, cwd, home: Some(home), env: &env, overrides })
}

fn config(text: &str) -> Config {
    load_text(text, &[], Overrides::default()).unwrap_or_else(|problems| panic!("{problems}"))
}

fn problems(text: &str, env: Variables<'_>) -> Vec<String> {
    let problems = load_text(text, env, Overrides::default()).err().map(|problems| problems.0).unwrap_or_default();
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_full_file_loads() {
    let env = [("ZHIPU_KEY", "zk"), ("DEEPSEEK_API_KEY", "dk")];
    let config = load_text(FULL, &env, Overrides::default()).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(config.server.address(), "127.0.0.1:8080");
    assert_eq!(config.server.idle_timeout, Some(Duration::from_secs(30)));
    assert_eq!(config.default_provider, "zhipu");
    let names: Vec<&str> = config.providers.iter().map(|provider| provider.name.as_str()).collect();
    assert_eq!(names, ["zhipu", "deepseek", "mimo-eu", "local", "demo"]);
    let keys: Vec<_> = config.providers.iter().map(|provider| provider.api_keys.first().map(Secret::expose)).collect();
    assert_eq!(keys, [Some("zk"), Some("dk"), Some("literal"), None, None]);
    assert_eq!(config.providers[0].timeouts.first_byte, Duration::from_mins(1));
    assert_eq!(config.providers[0].base_url, "https://open.bigmodel.cn/api/coding/paas/v4");
    assert_eq!(config.providers[2].base_url, "https://mimo.example.com/v1");
    assert_eq!(config.providers[3].provider.spec_name, INLINE);
    assert_eq!(config.session.backend, Backend::Sqlite { path: PathBuf::from("/home/u/sessions.db") });
    assert_eq!((config.logging.level, config.logging.format), (LogLevel::Debug, LogFormat::Human));
    assert!(config.unused.is_empty(), "{:?}", config.unused);
}

#[test]
fn what_is_printed_loads_again_and_holds_no_secret() {
    let env = [("ZHIPU_KEY", "zk-very-secret"), ("DEEPSEEK_API_KEY", "dk-very-secret")];
    let first = load_text(FULL, &env, Overrides::default()).unwrap();
    let printed = first.print();
    assert!(!printed.contains("very-secret") && !printed.contains("literal"), "{printed}");
    assert!(!format!("{first:?}").contains("very-secret"));
    let second =
        load_text(&printed, &[], Overrides::default()).unwrap_or_else(|problems| panic!("{problems}\n{printed}"));
    let body = |text: &str| text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(body(&second.print()), body(&printed));
}

/// A secret from a variable wherever a string may be; and what is no secret from others.
const FILLED: &str = "
server: {port: '${PORT}', host: '${HOST}'}
session: {backend: postgres, postgres: {url: 'postgres://u:${SECRET}@h/d', connections: '${NUMBER}'}}
providers:
  up:
    spec:
      extends: openai-compatible
      family: '${SECRET}'
      limit_field: '${CHOICE}'
      default_model: '${MODEL}'
      endpoint: {base_url: 'https://u:${SECRET}@old.example/v1?k=${SECRET}', query: {key: '${SECRET}', api-version: '${SECRET}'}}
      request:
        tools: {max: '${NUMBER}', native: {web_search: '{\"token\": \"${SECRET}\", \"n\": ${NUMBER}}'}}
        reasoning: {on: '${JSON}', ladder: {low: '${SECRET}'}}
        options: {temperature: {min: 0, max: '${NUMBER}'}, members: '{\"token\": \"${SECRET}\"}'}
      answer: {overflow: ['${SECRET}', 'too long']}
      models: ['${MODEL}', {match: 'x*', family: '${SECRET}', request: {options: {members: '{\"t\": \"${SECRET}\"}'}}}]
    endpoint: {base_url: 'http://${HOST}:1/${PATH_}', path: '/${PATH_}/chat', query: {key: '${SECRET}', literal: hidden-literal, api-version: '2024-10-21'}}
    credentials: {api_key: '${SECRET}'}
    headers: {x-token: 'Token ${SECRET}'}
    proxy: 'http://me:${SECRET}@${HOST}:3128'
    models: ['${MODEL}', {match: 'y*', request: {reasoning: {always: '{\"t\": \"${SECRET}\"}'}}}]
";

#[test]
fn what_came_from_variables_is_not_shown() {
    let env = [
        ("SECRET", "sk-very-secret"),
        ("JSON", "{\"token\": \"sk-very-secret\"}"),
        ("PORT", "5"),
        ("NUMBER", "7"),
        ("HOST", "localhost"),
        ("PATH_", "the-path"),
        ("CHOICE", "max_completion_tokens"),
        ("MODEL", "the-model"),
    ];
    let load = |text: &str, env| {
        load_text(text, env, Overrides::default()).unwrap_or_else(|problems| panic!("{problems}\n{text}"))
    };
    let first = load(FILLED, &env[..]);
    let (printed, provider) = (first.print(), &first.providers[0].provider);
    let shown = [provider.show(None), provider.show(Some("x1")), provider.show(Some("y1"))];
    for text in shown.iter().chain([&printed]) {
        for secret in ["very-secret", "hidden-literal", "c2stdmVyeS1zZWNyZXQ"] {
            assert!(!text.contains(secret), "{text}");
        }
        for plain in ["localhost", "the-path", "the-model", "max_completion_tokens", "2024-10-21", "max: 7", "\"n\": 7"]
        {
            assert!(text.contains(plain), "{plain}\n{text}");
        }
    }
    assert!(shown[1].contains("family: redacted") && shown[2].contains(r#"always: '{"t": "redacted"}'"#));
    // It loads, and then it is the same.
    let second = load(&printed, &[]);
    let body = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(body(&second.print()), body(&printed));
    assert_eq!(second.providers[0].provider.query[2], ("api-version".to_owned(), "2024-10-21".to_owned()));
    // What is sent in confidence is known, so that it can be taken out of what comes back.
    let secrets = provider.secrets();
    assert!(secrets.iter().any(|secret| secret == "hidden-literal"));
    assert!(secrets.iter().any(|secret| secret == "sk-very-secret"));
    assert!(!secrets.iter().any(|secret| secret == "2024-10-21" || secret == "the-model" || secret == "7"));
}

/// What a variable holds is in no message, nor a key that was written in the wrong place.
#[test]
fn messages_do_not_repeat_secrets() {
    let env = [("SECRET", "sk-very-secret"), ("JSON", "\"sk-very-secret\""), ("GROQ_API_KEY", "k")];
    for (text, expected) in [
        (
            "session: {ttl: '${SECRET}'}",
            "session.ttl: expected a time such as `30d`, `12h` or `never`, found `${SECRET}`",
        ),
        ("default_provider: '${SECRET}'", "default_provider: there is no provider `${SECRET}`; configured: groq, demo"),
        (
            "models: {aliases: {a: '${SECRET}/x'}}",
            "models.aliases.a: there is no provider in `${SECRET}/x`; configured: groq, demo",
        ),
        ("providers: {groq: {spec: '${SECRET}'}}", "providers.groq.spec: there is no spec `${SECRET}`; specs: "),
        (
            "providers: {groq: {spec: {extends: '${SECRET}'}}}",
            "providers.groq.spec.extends: there is no spec `${SECRET}`; specs: ",
        ),
        (
            "providers: {groq: {spec: {request: {options: {members: '${JSON}'}}}}}",
            "providers.groq.spec.request.options.members: expected a JSON object in quotes",
        ),
        (
            "providers: {groq: {spec: {request: {options: {top_p: {min: 0, max: '${SECRET}'}}}}}}",
            "providers.groq.spec.request.options.top_p.max: expected a number, found `${SECRET}`",
        ),
        ("providers: {groq: sk-very-secret}", "providers.groq: expected a mapping, found a string"),
        (
            "providers: {groq: {credentials: {sk-very-secret: }}}",
            "providers.groq.credentials: unknown key; known keys: ",
        ),
        ("providers: {groq: {credentials: {api_key: sk-very-secret, api_key: x}}}", "the key `api_key` is given twice"),
    ] {
        let found = problems(text, &env);
        assert!(found.iter().any(|problem| problem.contains(expected)), "{text}: {found:?}");
        assert!(!found.iter().any(|problem| problem.contains("very-secret")), "{text}: {found:?}");
    }
}

/// Found by `config check`, at its line, and not at the first request.
#[test]
fn a_key_that_no_header_can_carry_is_reported() {
    const WHY: &str = "holds a line break or another character that cannot be sent in a header";
    let env = [("KEY", "sk-1\nsk-2"), ("GROQ_API_KEY", "a\u{7}b")];
    for (text, expected) in [
        ("providers:\n  xai: {credentials: {api_key: '${KEY}'}}", "providers.xai.credentials.api_key: "),
        ("providers:\n  xai: {credentials: {api_keys: [a, '${KEY}']}}", "providers.xai.credentials.api_keys[1]: "),
        ("providers:\n  xai: {credentials: {api_key: k}, headers: {x: '${KEY}'}}", "providers.xai.headers.x: "),
        ("providers:\n  groq:", "providers.groq: credentials.api_key "),
    ] {
        let found = problems(text, &env);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(found[0].starts_with("godex.yaml:2:") && found[0].contains(&format!(": {expected}{WHY}")), "{found:?}");
    }
    assert!(problems("providers:\n  groq:", &env)[0].ends_with("; it is from the environment variable GROQ_API_KEY"));
    let document = Document::parse("built-in defaults", "").unwrap();
    let found = with_sources(&env, Overrides::default(), |sources| read(&document, sources, Origin::Defaults));
    assert_eq!(found.unwrap_err().to_string(), format!("environment: GROQ_API_KEY: {WHY}"));
    // What only surrounds a key is cut off: files end with a line break.
    let env = [("KEY", " sk-1\r\n"), ("GROQ_API_KEY", "gk\n")];
    let text = "providers:\n  groq: {headers: {x-a: 'Token ${KEY}'}}\n  xai: {credentials: {api_key: '${KEY}'}}\n";
    let loaded = load_text(text, &env, Overrides::default()).unwrap();
    let keys: Vec<&str> = loaded.providers.iter().flat_map(|provider| &provider.api_keys).map(Secret::expose).collect();
    assert_eq!(keys, ["gk", "sk-1"]);
    assert_eq!(loaded.providers[0].headers[0].1.expose(), "Token  sk-1");
}

#[test]
fn every_mistake_is_reported_at_once() {
    let specs = providers::Library::BUILTIN.names().collect::<Vec<_>>().join(", ");
    let nameless = "godex.yaml:17:3: providers.nameless: needs a `spec`, because none is called `nameless`; specs:";
    let nameless = format!("{nameless} {specs}");
    let expected = [
        "godex.yaml:2:9: server.port: expected a whole number from 1 to 65535, found `70000`",
        "godex.yaml:3:9: server.host: expected a string, found a list",
        "godex.yaml:4:3: server: unknown key `prot`; did you mean `port`?",
        "godex.yaml:5:19: default_provider: there is no provider `zhipo`; configured: zhipu, deepseek, nameless, plain, lost, odd, demo",
        "godex.yaml:8:16: models.aliases.fast: value must be provider/model",
        "godex.yaml:9:16: models.aliases.gone: there is no provider `gone`; configured: zhipu, deepseek, nameless, plain, lost, odd, demo",
        "godex.yaml:10:10: models.aliases.a/b: value must be provider/model",
        "godex.yaml:13:28: providers.zhipu.credentials.api_key: the environment variable NOT_SET is not set; set it, or give a default: `${NOT_SET:-...}`",
        "godex.yaml:14:17: providers.zhipu.timeout_ms: expected a duration from `1ms` to `1d`, such as `30s` or `5m`, or milliseconds, found `soon`",
        "godex.yaml:15:3: providers.deepseek: credentials.api_key is missing; set it here, or set the environment variable DEEPSEEK_API_KEY",
        "godex.yaml:16:19: providers.deepseek.credentials: unknown key `api_kye`; did you mean `api_key`?",
        &nameless,
        "godex.yaml:21:26: providers.plain.endpoint.base_url: plain http to a public host would send keys and prompts in the clear; use https",
        "godex.yaml:24:3: providers.lost: endpoint.base_url is missing; the spec `openai-compatible` has no address of its own",
        "godex.yaml:26:18: providers.odd.spec.auth: expected one of `bearer`, `api-key-header`, `x-api-key`, `none`, found `basic`",
        "godex.yaml:30:12: session.backend: expected one of `sqlite`, `memory`, `postgres`, found `redis`",
        "godex.yaml:31:1: unknown key `sesion`; did you mean `session`?",
        "godex.yaml:32:18: logging.level: expected one of `trace`, `debug`, `info`, `warn`, `error`, found `verbose`",
        "godex.yaml:33:3: the key `level` is given twice, first on line 32",
    ];
    let found = problems(include_str!("testdata/mistakes.yaml"), &[]);
    assert_eq!(found, expected, "{}", found.join("\n"));
}

#[test]
fn small_mistakes() {
    let cases: &[(&str, Variables<'_>, &str)] = &[
        ("- a list", &[], "godex.yaml:1:1: expected `key: value` lines, found a list"),
        ("server: 5", &[], "godex.yaml:1:9: server: expected a mapping, found `5`"),
        ("providers: []", &[], "godex.yaml:1:12: providers: expected a mapping, found a list"),
        ("", &[("GODEX_PORT", "http")], "environment: GODEX_PORT: expected a port from 0 to 65535"),
        ("", &[("GODEX_LOG_LEVEL", "loud")], "environment: GODEX_LOG_LEVEL: expected a log level (trace to error)"),
        (
            "",
            &[("GODEX_DEFAULT_PROVIDER", "x")],
            "environment: GODEX_DEFAULT_PROVIDER: there is no provider `x`; configured: demo",
        ),
        (
            "providers: {deepseek: {credentials: {api_key: \"a\\nb\"}}}",
            &[],
            "godex.yaml:1:47: providers.deepseek.credentials.api_key: holds a line break or another character that cannot be sent in a header",
        ),
        (
            "providers: {groq: {credentials: {api_key: k}, headers: {Host: x}}}",
            &[],
            "godex.yaml:1:63: providers.groq.headers.Host: this header cannot be set",
        ),
        (
            "session: {unknown_previous_response_status: 500}",
            &[],
            "godex.yaml:1:45: session.unknown_previous_response_status: expected one of `400`, `404`, found `500`",
        ),
        (
            "session: {backend: postgres}",
            &[],
            "godex.yaml:1:20: session.backend: needs `session.postgres.url`; postgres://user:password@host/database",
        ),
        (
            "providers: {groq: {credentials: sk-secret}}",
            &[("GROQ_API_KEY", "k")],
            "godex.yaml:1:33: providers.groq.credentials: expected a mapping, found a value",
        ),
        (
            "session: {backend: memory, postgres: 'postgres://u:secret@h/d'}",
            &[],
            "godex.yaml:1:38: session.postgres: expected a mapping, found a value",
        ),
        (
            "session: {ttl: 30}",
            &[],
            "godex.yaml:1:16: session.ttl: expected a time such as `30d`, `12h` or `never`, found `30`",
        ),
        (
            "session: {ttl: soon}",
            &[],
            "godex.yaml:1:16: session.ttl: expected a time such as `30d`, `12h` or `never`, found `soon`",
        ),
        (
            "session: {max_bytes: 5}",
            &[],
            "godex.yaml:1:22: session.max_bytes: expected a size from `1MiB` to `1TiB`, such as `256MiB`, or bytes, found `5`",
        ),
        (
            "limits: {memory: 1.5GiB}",
            &[],
            "godex.yaml:1:18: limits.memory: expected a size from `64MiB` to `1024TiB`, such as `256MiB`, or bytes, found `1.5GiB`",
        ),
        (
            "session: {seal_key: short}",
            &[],
            "godex.yaml:1:21: session.seal_key: expected at least 32 characters; `openssl rand -base64 32` makes one",
        ),
        (
            "session: {encryption: {key: '${K}'}}",
            &[("K", "short-but-secret")],
            "godex.yaml:1:29: session.encryption.key: expected 32 bytes in base64 or hexadecimal; `openssl rand -base64 32` makes one",
        ),
        (
            "session: {encryption: {previous_keys: ['${K}']}}",
            &[("K", "short-but-secret")],
            "godex.yaml:1:40: session.encryption.previous_keys[0]: expected 32 bytes in base64 or hexadecimal; `openssl rand -base64 32` makes one",
        ),
        (
            "session: {encryption: {key_file: /nowhere/key}}",
            &[],
            "godex.yaml:1:34: session.encryption.key_file: the file cannot be read: No such file or directory (os error 2)",
        ),
        (
            "web_search: {mode: autos}",
            &[],
            "godex.yaml:1:20: web_search.mode: expected one of `auto`, `provider_native`, `godex_managed`, `disabled`, found `autos`; did you mean `auto`?",
        ),
    ];
    for (text, env, expected) in cases {
        assert_eq!(problems(text, env), [*expected], "{text}");
    }
}

#[test]
fn a_key_from_the_environment_goes_only_where_it_belongs() {
    let env = [("OPENAI_API_KEY", "k")];
    let cases = [
        ("openai:", Some("k")),
        ("mine: {spec: openai}", Some("k")),
        ("mine: {spec: {extends: openai, limit_field: max_tokens}}", Some("k")),
        ("mine: {spec: openai, endpoint: {base_url: http://localhost:1}}", None),
        ("mine: {spec: {extends: openai, endpoint: {base_url: http://localhost:1}}}", None),
    ];
    for (provider, expected) in cases {
        let config = load_text(&format!("providers:\n  {provider}"), &env, Overrides::default()).unwrap();
        assert_eq!(config.providers[0].api_keys.first().map(Secret::expose), expected, "{provider}");
    }
}

/// A token is for the address that its spec has. Where that has none of its own, it is for the one that the entry names.
#[test]
fn the_token_of_a_command_goes_only_where_it_belongs() {
    let auth = "auth: {command: [print-token]}";
    let here = "endpoint: {base_url: http://localhost:1}";
    let there = "endpoint: {base_url: https://x.example}";
    for (provider, expected) in [
        (format!("mine: {{spec: {{extends: vllm, {auth}}}, {here}}}"), Some("print-token")),
        (format!("mine: {{spec: {{extends: vllm, {auth}, {here}}}}}"), Some("print-token")),
        (format!("mine: {{spec: {{{auth}}}, {there}}}"), Some("print-token")),
        (format!("mine: {{spec: {{extends: vllm, {auth}, {there}}}, {here}}}"), None),
        (format!("mine: {{spec: vertex-anthropic, {here}}}"), None),
    ] {
        let config = load_text(&format!("providers:\n  {provider}"), &[], Overrides::default()).unwrap();
        let token = config.providers[0].provider.token.as_ref();
        assert_eq!(token.map(providers::TokenCommand::program), expected, "{provider}");
    }
}

#[test]
fn what_godex_env_sets_is_no_provider() {
    for (key, expected) in
        [("sk-a-key", vec!["openai", "demo"]), ("unused", vec!["demo"]), ("gdx_0123456789", vec!["demo"])]
    {
        let config = load_text("", &[("OPENAI_API_KEY", key)], Overrides::default()).unwrap();
        let names: Vec<&str> = config.providers.iter().map(|provider| &*provider.name).collect();
        assert_eq!(names, expected, "{key}");
    }
}

#[test]
fn flags_win_over_the_environment_over_the_file() {
    let text = "server: {host: localhost, port: 1}\nlogging: {level: warn}";
    let env = [("GODEX_HOST", "127.0.0.2"), ("GODEX_PORT", "2"), ("GODEX_LOG_LEVEL", "error")];
    let flags = Overrides {
        host: Some("::1".to_owned()),
        port: Some(0),
        log_level: Some(LogLevel::Trace),
        ..Overrides::default()
    };
    let none = Overrides::default;
    let cases = [
        (load_text("", &[], none()), "127.0.0.1:5678", LogLevel::Info),
        (load_text(text, &[], none()), "localhost:1", LogLevel::Warn),
        (load_text(text, &env, none()), "127.0.0.2:2", LogLevel::Error),
        (load_text(text, &env, flags), "[::1]:0", LogLevel::Trace),
    ];
    for (config, address, level) in cases {
        let config = config.unwrap();
        assert_eq!((config.server.address().as_str(), config.logging.level), (address, level));
    }
    // Whether there is a key, the store knows.
    assert!(load_text("server: {host: 0.0.0.0}", &[], none()).is_ok());
}

#[test]
fn without_a_file_the_environment_decides() {
    let load = |env: Variables<'_>| {
        let document = Document::parse("built-in defaults", "").unwrap();
        let config =
            with_sources(env, Overrides::default(), |sources| read(&document, sources, Origin::Defaults)).unwrap();
        let names: Vec<String> = config.providers.iter().map(|provider| provider.name.clone()).collect();
        (config.default_provider, names.join(" "), config.session.backend)
    };
    let sqlite = Backend::Sqlite { path: PathBuf::from("/home/u/.godex/data/sessions.db") };
    assert_eq!(load(&[]), ("demo".to_owned(), "demo".to_owned(), sqlite.clone()));
    let keys = [("OPENAI_API_KEY", "a"), ("XAI_API_KEY", "  "), ("MIMO_API_KEY", "b"), ("DASHSCOPE_API_KEY", "c")];
    assert_eq!(load(&keys), ("openai".to_owned(), "openai xiaomi qwen demo".to_owned(), sqlite));
}

/// As in the files of `deploy/`, which anybody's keys are given to.
#[test]
fn a_file_that_says_nothing_of_providers_leaves_them_to_the_environment() {
    let keys = [("OPENAI_API_KEY", "a"), ("DEEPSEEK_API_KEY", "b"), ("XAI_API_KEY", "")];
    for (text, expected) in [
        ("server: {port: 1}", "deepseek openai demo"),
        ("providers:\n  mine: {spec: xai, credentials: {api_key: k}}", "mine demo"),
        ("providers: {}", "demo"),
    ] {
        let config = load_text(text, &keys, Overrides::default()).unwrap();
        let names: Vec<&str> = config.providers.iter().map(|provider| provider.name.as_str()).collect();
        assert_eq!(names.join(" "), expected, "{text}");
    }
}

/// Who asks for a provider that is not there must not take the offline model's words for its answer.
#[test]
fn the_offline_model_answers_for_no_other_provider() {
    let config = load_text("server: {port: 1}", &[], Overrides::default()).unwrap();
    let error = config.resolve("deepseek/deepseek-v4-pro").unwrap_err().to_string();
    assert!(error.ends_with("there is no provider `deepseek` (configured: demo)."), "{error}");
    for model in ["gpt-5", "Qwen/Qwen3-8B", "demo/deepseek/x", "demo"] {
        assert_eq!(config.resolve(model).unwrap().0.name, "demo", "{model}");
    }
    let config = load_text("server: {port: 1}", &[("OPENROUTER_API_KEY", "k")], Overrides::default()).unwrap();
    assert_eq!(config.resolve("deepseek/deepseek-chat").unwrap().1, "deepseek/deepseek-chat");
}

#[test]
fn sessions_are_kept_as_the_file_says() {
    let session = |text: &str| config(&format!("session: {{{text}}}")).session;
    let default = session("");
    assert_eq!((default.ttl, default.strict), (Some(Duration::from_hours(720)), false));
    assert_eq!((default.chain.max_depth, default.chain.include_incomplete), (1000, true));
    for (text, expected) in [
        ("ttl: never", None),
        ("ttl: 45s", Some(45)),
        ("ttl: 90m", Some(5400)),
        ("ttl: 12h", Some(43_200)),
        ("ttl: 7d", Some(604_800)),
    ] {
        assert_eq!(session(text).ttl, expected.map(Duration::from_secs), "{text}");
    }
    assert_eq!(session("backend: memory, max_bytes: 2000000").backend, Backend::Memory { max_bytes: 2_000_000 });
    let text = "backend: postgres, postgres: {url: 'postgres://u:hidden@h/d', connections: 3, retry_ms: 70}";
    let Backend::Postgres(postgres) = session(text).backend else { panic!("no Postgres") };
    assert_eq!(postgres.url.expose(), "postgres://u:hidden@h/d");
    assert_eq!((postgres.options.connections, postgres.options.retry), (3, Duration::from_millis(70)));
    let whole = config(&format!("session: {{{text}}}"));
    assert!(!whole.print().contains("hidden") && !format!("{whole:?}").contains("hidden"));
}

#[test]
fn the_default_provider_is_the_first() {
    let groq = "groq: {credentials: {api_key: k}}";
    for (text, expected) in [
        ("providers:".to_owned(), "demo"),
        (format!("providers: {{{groq}}}"), "groq"),
        (format!("providers: {{xai: {{credentials: {{api_key: k}}}}, {groq}}}"), "xai"),
        (format!("default_provider: demo\nproviders: {{{groq}}}"), "demo"),
    ] {
        assert_eq!(config(&text).default_provider, expected, "{text}");
    }
}

#[test]
fn models_resolve() {
    let text = "
providers:
  groq: {credentials: {api_key: k}, models: [llama, big/llama]}
models:
  aliases: {fast: groq/llama, toy: demo/anything}
";
    let plain = config(text);
    let starred = config(&format!("{text}    \n").replace("{fast:", "{'*': groq/big/llama, fast:"));
    let slashed = config(&text.replace("{fast:", "{org/fast: demo/a, groq/llama: demo/b, fast:"));
    let cases = [
        (&plain, "fast", "groq llama"),
        (&plain, " toy ", "demo anything"),
        (&plain, "unheard-of", "groq unheard-of"),
        (&plain, "demo/x", "demo x"),
        (&plain, "groq/big/llama", "groq big/llama"),
        (&plain, " demo / x ", "demo x"),
        (&plain, "Qwen/Qwen3-8B", "groq Qwen/Qwen3-8B"),
        (&plain, "big/llama", "groq big/llama"),
        (&plain, "/models/qwen.gguf", "groq /models/qwen.gguf"),
        (&plain, "Groq/llama", "groq Groq/llama"),
        (&plain, "groq/", "The model `groq/` does not exist: the name is incomplete."),
        (&plain, "/", "The model `/` does not exist: the name is incomplete."),
        (&plain, "", "The model `` does not exist: the name is incomplete."),
        (&slashed, "org/fast", "demo a"),
        (&slashed, "groq/llama", "demo b"),
        (&slashed, "groq/other", "groq other"),
        (&slashed, "org/other", "groq org/other"),
        (&starred, "unheard-of", "groq big/llama"),
        (&starred, "Qwen/Qwen3-8B", "groq big/llama"),
        (&starred, "groq/other", "groq other"),
        (&starred, "", "The model `` does not exist: the name is incomplete."),
        (&starred, "fast", "groq llama"),
    ];
    for (config, model, expected) in cases {
        let found =
            config.resolve(model).map_or_else(|error| error.to_string(), |(p, model)| format!("{} {model}", p.name));
        assert_eq!(found, expected, "{model}");
    }
    let ids = |config: &Config| config.models().into_iter().map(|model| model.id).collect::<Vec<_>>().join(" ");
    assert_eq!(ids(&plain), "fast toy llama big/llama demo");
    assert_eq!(ids(&starred), "fast toy groq/llama big/llama demo");
    assert_eq!(ids(&slashed), "org/fast groq/llama fast toy llama big/llama demo");
    assert_eq!(config(&slashed.print()).aliases, slashed.aliases);
    assert_eq!(config("").sample_model().as_deref(), Some("demo"));
}

#[test]
fn finds_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let (cwd, home) = (dir.path().join("work"), dir.path().join("home"));
    std::fs::create_dir_all(&cwd).unwrap();
    std::fs::create_dir_all(home.join(".godex")).unwrap();
    let load = |path: Option<&str>| {
        let config_path = path.map(Path::new);
        let overrides = Overrides::default();
        let config = load(&Sources { config_path, cwd: &cwd, home: Some(&home), env: &|_| None, overrides });
        config.map_or_else(|problems| problems.to_string(), |config| config.server.port.to_string())
    };
    assert_eq!(load(None), "5678");
    std::fs::write(home.join(".godex/config.yaml"), "server: {port: 1}").unwrap();
    assert_eq!(load(None), "1");
    std::fs::write(cwd.join("godex.yaml"), "server: {port: 2}").unwrap();
    assert_eq!(load(None), "2");
    std::fs::write(cwd.join("other.yaml"), "server: {port: 3}").unwrap();
    assert_eq!(load(Some("other.yaml")), "3");
    assert_eq!(load(Some("gone.yaml")), "gone.yaml: there is no such file; the path came from --config");
    assert_eq!(load(Some(".")), ".: is a directory, not a file");
    std::fs::write(cwd.join("latin.yaml"), b"a: 1\nb: \xe9").unwrap();
    assert_eq!(load(Some("latin.yaml")), "latin.yaml: line 2 is not UTF-8; save the file as UTF-8");
}

#[test]
fn the_way_to_a_provider_is_checked_and_printed() {
    let folder = tempfile::tempdir().unwrap();
    let (pem, empty) = (folder.path().join("ca.pem"), folder.path().join("empty.pem"));
    std::fs::write(&pem, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    std::fs::write(&empty, "nothing").unwrap();
    let text = |more: &str| format!("providers: {{groq: {{credentials: {{api_keys: [k-one, k-two]}}, {more}}}}}");
    let full = format!("proxy: 'http://me:secret%21@proxy:3128/', ca: {}, http2: true", pem.display());
    let loaded = config(&text(&full));
    let groq = &loaded.providers[0];
    let proxy = groq.transport.proxy.as_ref().unwrap();
    assert_eq!(proxy.authority, "proxy:3128");
    assert_eq!(proxy.authorization.as_ref().map(Secret::expose), Some("Basic bWU6c2VjcmV0IQ=="));
    assert_eq!(groq.transport.ca.as_ref().map(|roots| roots.certificates.len()), Some(1));
    assert!(groq.transport.http2);
    assert_eq!(groq.api_keys.iter().map(Secret::expose).collect::<Vec<_>>(), ["k-one", "k-two"]);
    let printed = loaded.print();
    assert!(!["secret", "bWU6", "k-one", "k-two"].iter().any(|word| printed.contains(word)), "{printed}");
    assert_eq!(
        config(&printed).print().lines().skip(1).collect::<Vec<_>>(),
        printed.lines().skip(1).collect::<Vec<_>>()
    );
    assert_eq!(config(&text("proxy: '${NO_SUCH:-}'")).providers[0].transport.proxy, None);
    for (more, expected) in [
        ("proxy: 'https://proxy'".to_owned(), "proxy: must be a URL such as http://proxy.example.com:3128"),
        ("proxy: 'http://u:p@proxy/path'".to_owned(), "proxy: must be an address only, without a path"),
        (format!("ca: {}", empty.display()), "ca: holds no certificate in PEM form"),
        ("ca: /no/such/file".to_owned(), "ca: cannot be read: No such file"),
        ("http2: maybe".to_owned(), "http2: expected true or false"),
    ] {
        let found = problems(&text(&more), &[]);
        assert!(found.len() == 1 && found[0].contains(&format!("providers.groq.{expected}")), "{found:?}");
    }
    let plain = "providers: {local: {spec: openai-compatible, http2: true, proxy: 'http://p', endpoint: {base_url: 'http://localhost/v1'}}}";
    assert!(problems(plain, &[])[0].contains("`http2` cannot be had through a proxy"), "{:?}", problems(plain, &[]));
    let open = "providers: {far: {spec: {extends: openai-compatible, auth: none}, endpoint: {base_url: 'http://example.com/v1', allow_plain_http: true}}}";
    assert!(config(open).print().contains("allow_plain_http: true"));
    let none = "providers: {groq: {credentials: {api_keys: []}}}";
    assert!(problems(none, &[])[0].ends_with("expected from 1 to 64 keys"), "{:?}", problems(none, &[]));
}

#[test]
fn an_alias_may_stand_for_several() {
    let text = |alias: &str| {
        format!("providers: {{a: {{spec: demo}}, b: {{spec: demo}}}}\nmodels: {{aliases: {{x: {alias}}}}}")
    };
    for (alias, printed) in [
        ("a/m", "x: a/m"),
        ("[a/m, b/n]", "x: [a/m, b/n]"),
        (
            "{targets: [{model: a/m, weight: 3}, {model: b/n}]}",
            "x: {targets: [{model: a/m, weight: 3}, {model: b/n, weight: 1}]}",
        ),
    ] {
        let loaded = config(&text(alias));
        assert!(loaded.print().contains(printed), "{}", loaded.print());
        assert_eq!(config(&loaded.print()).aliases, loaded.aliases);
        assert_eq!(loaded.resolve("x").map(|(provider, model)| format!("{}/{model}", provider.name)).unwrap(), "a/m");
    }
    let order = |draw| {
        let loaded = config(&text("{targets: [{model: a/m, weight: 1}, {model: b/n, weight: 1}]}"));
        loaded.targets("x", draw).unwrap().into_iter().map(|(_, model)| model).collect::<String>()
    };
    assert_eq!((order(0), order(u64::MAX)), ("mn".to_owned(), "nm".to_owned()));
    for (alias, expected) in [
        ("[]", "models.aliases.x: expected at least one provider/model"),
        ("[a/m, c/n]", "models.aliases.x[1]: there is no provider `c`"),
        ("[a/m, n]", "models.aliases.x[1]: value must be provider/model"),
        ("{targets: [{model: a/m, weight: 0}]}", "models.aliases.x.targets: some target needs a weight above 0"),
        ("{targets: [{wieght: 1}]}", "models.aliases.x.targets[0]: needs a `model`"),
        ("{target: []}", "models.aliases.x: needs `targets`"),
    ] {
        let found = problems(&text(alias), &[]);
        assert!(found.iter().any(|problem| problem.contains(expected)), "{alias}: {found:?}");
    }
}

#[test]
fn waits_and_retries_have_defaults_and_limits() {
    let timeouts = |text: &str| {
        let loaded = config(&format!("providers: {{groq: {{credentials: {{api_key: k}}, {text}}}}}"));
        let timeouts = loaded.providers[0].timeouts;
        (timeouts.first_byte.as_millis(), timeouts.whole.as_millis())
    };
    assert_eq!(timeouts("models: [m]"), (120_000, 600_000));
    assert_eq!(timeouts("timeout_ms: 7"), (7, 7));
    assert_eq!(timeouts("timeouts: {first_byte_ms: 5}"), (5, 5));
    assert_eq!(timeouts("timeouts: {first_byte_ms: 5, whole_ms: 9}"), (5, 9));
    let text = "resilience: {retries: 1, backoff_ms: 9, max_retry_after: 3, budget_percent: 50, breaker_failures: 0}";
    let loaded = config(text);
    assert_eq!(loaded.resilience.retries, 1);
    assert_eq!(config(&loaded.print()).resilience, loaded.resilience);
    assert_ne!(loaded.resilience, config("").resilience);
    let found = problems("resilience: {retries: 11, bugdet_percent: 5}", &[]);
    assert!(found[0].contains("resilience.retries: expected a whole number from 0 to 10"), "{found:?}");
    assert!(found[1].contains("unknown key `bugdet_percent`; did you mean `budget_percent`?"), "{found:?}");
}

type Value<'a> = &'a dyn Fn(&Config) -> u64;

/// Every key that took a number of seconds, milliseconds or bytes before there were units: a bare number means what it
/// meant, and the same with its unit is the same.
#[test]
fn a_bare_number_keeps_the_unit_of_its_key() {
    let provider = |config: &Config| config.providers[0].timeouts;
    let postgres = |config: &Config| match &config.session.backend {
        Backend::Postgres(PostgresConfig { options, .. }) => *options,
        backend => panic!("{backend}"),
    };
    let milliseconds = |duration: Duration| u64::try_from(duration.as_millis()).unwrap();
    let cases: &[(&str, &str, &str, u64, Value<'_>)] = &[
        ("server: {idle_timeout: _}", "7", "7s", 7000, &|c| milliseconds(c.server.idle_timeout.unwrap())),
        ("server: {heartbeat: _}", "7", "7s", 7000, &|c| milliseconds(c.server.heartbeat)),
        ("server: {max_body_bytes: _}", "1048576", "1MiB", 1 << 20, &|c| c.server.max_body_bytes as u64),
        ("limits: {body_bytes_in_flight: _}", "134217728", "128MiB", 128 << 20, &|c| {
            c.limits.body_bytes_in_flight as u64
        }),
        ("session: {backend: memory, max_bytes: _}", "2097152", "2MiB", 2 << 20, &|c| match c.session.backend {
            Backend::Memory { max_bytes } => max_bytes,
            _ => 0,
        }),
        ("resilience: {backoff_ms: _}", "9000", "9s", 9000, &|c| milliseconds(c.resilience.backoff)),
        ("resilience: {max_retry_after: _}", "60", "1m", 60_000, &|c| milliseconds(c.resilience.max_wait)),
        ("providers: {a: {spec: demo, timeout_ms: _}}", "5000", "5s", 5000, &|c| milliseconds(provider(c).first_byte)),
        ("providers: {a: {spec: demo, timeouts: {connect_ms: _}}}", "5000", "5s", 5000, &|c| {
            milliseconds(provider(c).connect)
        }),
        ("providers: {a: {spec: demo, timeouts: {first_byte_ms: _}}}", "5000", "5s", 5000, &|c| {
            milliseconds(provider(c).first_byte)
        }),
        ("providers: {a: {spec: demo, timeouts: {whole_ms: _}}}", "5000", "5s", 5000, &|c| {
            milliseconds(provider(c).whole)
        }),
        ("providers: {a: {spec: demo, timeouts: {idle_ms: _}}}", "5000", "5s", 5000, &|c| {
            milliseconds(provider(c).idle)
        }),
        ("providers: {a: {spec: demo, timeouts: {total_ms: _}}}", "5000", "5s", 5000, &|c| {
            milliseconds(provider(c).total)
        }),
        ("session: {backend: postgres, postgres: {url: u, acquire_ms: _}}", "70", "70ms", 70, &|c| {
            milliseconds(postgres(c).acquire)
        }),
        ("session: {backend: postgres, postgres: {url: u, statement_ms: _}}", "70", "70ms", 70, &|c| {
            milliseconds(postgres(c).statement)
        }),
        ("session: {backend: postgres, postgres: {url: u, retry_ms: _}}", "70", "70ms", 70, &|c| {
            milliseconds(postgres(c).retry)
        }),
    ];
    for (text, bare, with_unit, expected, value) in cases {
        for written in [bare, with_unit] {
            let loaded = config(&text.replace(": _", &format!(": {written}")));
            assert_eq!(value(&loaded), *expected, "{text} {written}");
        }
    }
    // These never took one.
    for text in ["server: {drain_timeout: 30}", "limits: {write_stall: 30}", "session: {ttl: 30}"] {
        assert!(problems(text, &[])[0].contains("found `30`"), "{text}");
    }
    assert_eq!(config("server: {idle_timeout: 0s}").server.idle_timeout, None);
    assert_eq!(config("server: {idle_timeout: 0}").server.idle_timeout, None);
}

/// The default that the documentation shows is the one that holds, and would be accepted.
#[test]
fn defaults_are_what_the_tables_say() {
    let none = config("");
    let (defaults, own) = (none.print(), none.providers.first().unwrap());
    for key in KEYS {
        let Some(default) = key.default().strip_prefix('`').and_then(|text| text.strip_suffix('`')).map(str::to_owned)
        else {
            continue;
        };
        match key.print(&none) {
            Some(value) if key.path() == "session.sqlite.path" => assert!(value.ends_with("/.godex/data/sessions.db")),
            Some(value) => assert_eq!(value, default, "{}", key.path()),
            None => {}
        }
    }
    assert!(defaults.contains(&format!("idle_ms: {}", own.timeouts.idle.as_millis())), "{defaults}");
    let options = config("session: {backend: postgres, postgres: {url: u}}").session.backend;
    let Backend::Postgres(PostgresConfig { options, .. }) = options else { panic!("no Postgres") };
    assert_eq!(options, store::PostgresOptions::default());
}

/// Every key that is declared is asked for: none of them is unknown, and each is described in sentences.
#[test]
fn every_declared_key_is_read_and_described() {
    let paths = KEYS.iter().map(|key| (key.path(), key.about(), key.kind()));
    let paths: Vec<_> = paths.chain(PROVIDER_KEYS.iter().map(|key| (key.path(), key.about(), key.kind()))).collect();
    for (path, about, kind) in &paths {
        assert!(about.ends_with('.') && about.len() > 10, "{path}: {about}");
        assert!(!kind.is_empty(), "{path}");
        let nested = path
            .replace("NAME", "openai")
            .split('.')
            .rev()
            .fold("[]".to_owned(), |inner, name| format!("{{{name}: {inner}}}"));
        let found = problems(&nested, &[("OPENAI_API_KEY", "k")]);
        assert!(!found.iter().any(|problem| problem.contains("unknown key")), "{path}: {found:?}");
    }
    let mut unique: Vec<_> = paths.iter().map(|(path, ..)| path).collect();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), paths.len());
}
