use std::path::{Path, PathBuf};

use super::super::{Config, Overrides, Problems, read};
use super::*;

const KEY: &str = "very-secret";

fn load(text: &str, env: &[(&str, &str)]) -> Result<Config, Problems> {
    let document = Document::parse("godex.yaml", text)?;
    let env = |name: &str| env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let overrides = Overrides::default();
    let sources = Sources { config_path: None, cwd: Path::new("/w"), home: None, env: &env, overrides };
    read::read(&document, &sources, Origin::File(PathBuf::from("/w/godex.yaml")))
}

fn config(text: &str, env: &[(&str, &str)]) -> WebSearchConfig {
    load(text, env).unwrap_or_else(|problems| panic!("{text}: {problems}")).tools.web_search
}

fn service(config: &WebSearchConfig) -> (&str, &str, Option<&str>, Duration) {
    let [service] = config.services.as_slice() else { panic!("{config:?}") };
    (&service.spec.name, &service.base_url, service.api_key.as_ref().map(Secret::expose), service.timeout)
}

#[test]
fn a_key_in_the_environment_is_no_reason_to_search() {
    let env = [("TAVILY_API_KEY", KEY), ("BRAVE_API_KEY", KEY)];
    assert_eq!(config("", &env), WebSearchConfig::default());
    assert_eq!(
        service(&config("tools: {web_search: tavily}", &env)),
        ("tavily", "https://api.tavily.com", Some(KEY), TIMEOUT)
    );
}

#[test]
fn services_are_read_in_all_forms() {
    let env = [("MINE", KEY)];
    let one = "tools: {web_search: {spec: searxng, endpoint: {base_url: 'http://searx.lan/s/'}, timeout: 3s, country: de, \
               language: de, pages: false, only_shown: false, max_calls: 4}}";
    let found = config(one, &env);
    assert_eq!(service(&found), ("searxng", "http://searx.lan/s", None, Duration::from_secs(3)));
    assert_eq!((found.pages, found.only_shown, found.max_calls), (false, false, Some(4)));
    assert_eq!((found.services[0].country.as_deref(), found.services[0].language.as_deref()), (Some("de"), Some("de")));
    let several = "tools:\n  web_search:\n  - {spec: brave, credentials: {api_key: '${MINE}'}}\n  - mock\n  - spec:\n      \
                   extends: serper\n      endpoint: {base_url: 'https://s.test'}\n      auth: none\n";
    let found = config(several, &env);
    let names: Vec<_> = found.services.iter().map(|service| service.spec.name.as_str()).collect();
    assert_eq!(names, ["brave", "mock", INLINE]);
    let whole = load(several, &env).unwrap();
    let printed = whole.print();
    assert!(!printed.contains(KEY) && !format!("{whole:?}").contains(KEY), "{printed}");
    assert!(printed.contains("# - {spec: brave, endpoint: {base_url: \"https://api.search.brave.com/res/v1\"}, credentials: <redacted>, timeout: 10s, price_per_call: 0.005, pages: true, only_shown: true}"), "{printed}");
    load(&printed, &env).unwrap_or_else(|problems| panic!("{problems}"));
}

#[test]
fn mistakes_are_found() {
    for (text, expected) in [
        (
            "tavily",
            "tools.web_search: credentials.api_key is missing; set it, or set the environment variable TAVILY_API_KEY",
        ),
        ("tavly", "tools.web_search: there is no search spec `tavly`; specs: searxng, "),
        (
            "searxng",
            "tools.web_search: endpoint.base_url is missing; the search spec `searxng` has no address of its own",
        ),
        ("{}", "tools.web_search: needs `spec`; specs: searxng, "),
        ("[]", "tools.web_search: expected from 1 to 8 services"),
        ("./none.yaml", "tools.web_search: there is no such file; looked for /w/./none.yaml"),
        ("{spec: mock, pages: perhaps}", "tools.web_search.pages: expected true or false"),
        ("{spec: mock, timeout: 1h}", "tools.web_search.timeout: expected a duration from `100ms` to `2m`"),
        ("{spec: mock, max_calls: 0}", "tools.web_search.max_calls: expected a whole number from 1 to 1000"),
        ("{spec: mock, country: Germany}", "tools.web_search.country: expected a country such as `DE`"),
        ("{spec: mock, keys: [a]}", "tools.web_search: unknown key `keys`"),
        (
            "[mock, {spec: mock, pages: true}]",
            "tools.web_search[1].pages: is for all services: say it in the first entry",
        ),
        ("{spec: searxng, endpoint: {base_url: 'http://public.example'}}", "plain http to a public host"),
        ("{spec: searxng, endpoint: {base_url: 'https://u:p@x.example'}}", "must not hold a user or a password"),
        (
            "{spec: {extends: brave, fields: {ulr: x}}, credentials: {api_key: k}}",
            "unknown key `ulr`; did you mean `url`?",
        ),
    ] {
        let problems = load(&format!("tools: {{web_search: {text}}}"), &[]).unwrap_err().to_string();
        assert!(problems.contains(expected), "{text}: {problems}");
    }
}

#[test]
fn the_older_section_says_the_same_in_other_words() {
    let zhipu = "providers: {zhipu: {credentials: {api_key: very-secret}}}\n";
    let general = "https://open.bigmodel.cn/api/paas/v4";
    for (section, expected) in [
        ("{}", None),
        ("{provider: none}", None),
        ("{provider: mock}", Some(("mock", "", None))),
        ("{provider: mock, mode: godex_managed}", Some(("mock", "", None))),
        ("{provider: mock, mode: provider_native}", None),
        ("{provider: mock, mode: disabled}", None),
        ("{provider: mock, enabled: false}", None),
        ("{provider: zhipu}", Some(("zhipu", general, Some(KEY)))),
    ] {
        let found = config(&format!("{zhipu}web_search: {section}"), &[]);
        let service = found.services.first().map(|service| {
            (service.spec.name.as_str(), service.base_url.as_str(), service.api_key.as_ref().map(Secret::expose))
        });
        assert_eq!(service, expected, "{section}");
    }
    // Without that provider, nobody can search; without any in the file, it is one by its key.
    let variables = &[("ZHIPU_API_KEY", KEY)];
    assert_eq!(config("providers: {}\nweb_search: {provider: zhipu}", variables).services, []);
    assert_eq!(config("web_search: {provider: zhipu}", variables).services.len(), 1);
    let found = config("web_search: {provider: mock, max_iterations: 2, timeout_ms: 1500, on_unavailable: fail}", &[]);
    assert_eq!((found.max_calls, found.services[0].timeout), (Some(2), Duration::from_millis(1500)));
    for (word, expected) in [
        ("fail", SearchUnavailable::Fail),
        ("ignore", SearchUnavailable::LeaveOut),
        ("client_tool_call", SearchUnavailable::ClientCall),
    ] {
        assert_eq!(config(&format!("web_search: {{on_unavailable: {word}}}"), &[]).unavailable, expected);
    }
    let both = config("web_search: {provider: mock, max_iterations: 2}\ntools: {web_search: [mock, mock]}", &[]);
    assert_eq!((both.services.len(), both.max_calls), (2, None));
}
