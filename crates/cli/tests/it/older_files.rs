//! Files of an earlier configuration format load unchanged: what its wizard wrote, its quick start, its sample.

use crate::cli::{godex, home};

/// Name, key's variable, address and model of the four providers, in the wizard's order.
const PROVIDERS: [[&str; 4]; 4] = [
    ["deepseek", "DEEPSEEK_API_KEY", "https://api.deepseek.com", "deepseek-v4-pro"],
    ["zhipu", "ZHIPU_API_KEY", "https://open.bigmodel.cn/api/coding/paas/v4", "glm-5.2"],
    ["minimax", "MINIMAX_API_KEY", "https://api.minimaxi.com/v1", "MiniMax-M3"],
    ["xiaomi", "MIMO_API_KEY", "https://api.xiaomimimo.com/v1", "mimo-v2.5-pro"],
];

fn entry([name, variable, url, _]: [&str; 4], key: &str) -> String {
    let key = if key.is_empty() { format!("${{{variable}:-k}}") } else { key.to_owned() };
    format!(
        "  {name}:\n    spec: {name}\n    credentials:\n      api_key: {key}\n    endpoint:\n      base_url: {url}\n"
    )
}

/// The five lines that were printed for it then, without the first.
fn check(config: &str, port: u16, provider: &str, providers: &str, session: &str) {
    let home = home(config);
    let (code, out, err) = godex(home.path(), &["config", "check"]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{config}");
    let summary: Vec<&str> = out.lines().skip(1).take(4).collect();
    let server = format!("server: http://127.0.0.1:{port}");
    let session = session.replace('~', &home.path().display().to_string());
    let expected = [server, format!("default provider: {provider}"), format!("providers: {providers}, demo"), session];
    assert_eq!(summary, expected, "{config}");
}

#[test]
fn what_the_wizard_wrote() {
    for provider in PROVIDERS {
        let [name, _, _, model] = provider;
        let config = format!(
            "server:\n  port: 5678\ndefault_provider: {name}\nproviders:\n{}models:\n  aliases:\n    \"*\": {name}/{model}\n\
             session:\n  backend: memory\nlogging:\n  level: info\n",
            entry(provider, "sk-literal")
        );
        check(&config, 5678, name, name, "session: memory");
        let home = home(&config);
        let (_, models, _) = godex(home.path(), &["models"]);
        assert!(models.contains(model), "{models}");
    }
    let all: String = PROVIDERS.into_iter().map(|provider| entry(provider, "")).collect();
    let config = format!(
        "server:\n  port: 8080\ndefault_provider: zhipu\nproviders:\n{all}models:\n  aliases:\n    \"*\": zhipu/glm-5.2\n\
         session:\n  backend: sqlite\nlogging:\n  level: debug\n"
    );
    check(&config, 8080, "zhipu", "deepseek, zhipu, minimax, xiaomi", "session: sqlite (~/.godex/data/sessions.db)");
}

#[test]
fn the_quick_start_and_the_smallest_file() {
    check(
        "default_provider: deepseek\nproviders:\n  deepseek:\n    spec: deepseek\n    credentials:\n      api_key: sk-x\n",
        5678,
        "deepseek",
        "deepseek",
        "session: sqlite (~/.godex/data/sessions.db)",
    );
    // `spec` falls back to the entry's name; a blank address is the spec's own; several of one spec.
    let config = "providers:\n  zhipu:\n    credentials: {api_key: k}\n    endpoint: {base_url: \"\"}\n    timeout_ms: 60000\n  \
                  zhipu-general:\n    spec: zhipu\n    credentials: {api_key: k}\n    endpoint: {base_url: \"https://open.bigmodel.cn/api/paas/v4\"}\n\
                  models:\n  aliases:\n    gpt-5: zhipu/glm-5.2\n    codex: zhipu-general/glm-5.2\n    \"*\": zhipu/glm-5.2\n";
    check(config, 5678, "zhipu", "zhipu, zhipu-general", "session: sqlite (~/.godex/data/sessions.db)");
}

/// Every section of the shipped sample, also the key in it that nothing read even then.
#[test]
fn the_sample_with_every_section() {
    let all: String = PROVIDERS.into_iter().map(|provider| entry(provider, "")).collect();
    let config = format!(
        "server:\n  port: 5678\n  idle_timeout: 0\ndefault_provider: zhipu\nmodels:\n  aliases:\n    \"*\": zhipu/glm-5.2\n\
         providers:\n{all}session:\n  backend: sqlite\n  sqlite:\n    path: ./data/sessions.db\nlogging:\n  level: info\n  \
         console:\n    enabled: true\n    level: info\n    pretty: true\n  file:\n    enabled: false\n    dir: ./logs\n    \
         filename: godex.log\n    level: debug\n    max_size: 10\n    max_files: 5\ntrace:\n  enabled: true\n  path: \
         ./data/trace.db\n  max_queue_size: 10000\n  flush_interval_ms: 1000\n  batch_size: 100\n  capture_payload: true\n  \
         payload_max_bytes: 1048576\nweb_search:\n  enabled: true\n  mode: auto\n  provider: none\n  on_unavailable: \
         client_tool_call\n  max_iterations: 2\n  timeout_ms: 10000\n"
    );
    check(&config, 5678, "zhipu", "deepseek, zhipu, minimax, xiaomi", "session: sqlite (~/./data/sessions.db)");
    // The one thing that is refused: an open port without keys. One line says otherwise.
    let open = config.replace("  port: 5678\n", "  port: 5678\n  host: 0.0.0.0\n");
    let (code, _, err) = godex(home(&open).path(), &["serve"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("allow_unauthenticated: true"), "{err}");
    let open = open.replace("  host:", "  allow_unauthenticated: true\n  host:");
    assert_eq!(godex(home(&open).path(), &["config", "check"]).0, Some(0));
}
