//! A string that does not show itself.

use std::fmt;

/// A key or a token. Only [`Secret::expose`] gives it away, so a search for that word finds every use.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: String) -> Self {
        Self(value)
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Overrides, Sources, load_text};

    /// Every place that may hold one. The values are only in the environment.
    const ALL: &str = r#"
admin: {listen: "127.0.0.1:1", token: "${S1}"}
session:
  backend: postgres
  postgres: {url: "postgres://u:${S2}@localhost/db"}
  seal_key: ${S3}
  encryption: {key: "${KEY1}", previous_keys: ["${KEY2}"]}
keys: [{name: a, key: "${S4}"}]
webhooks: [{url: "https://hooks.example.com", secret: "${S5}"}]
providers:
  one:
    spec: openai-compatible
    endpoint: {base_url: "https://up.example.com/v1", query: {key: "${S6}"}}
    credentials: {api_keys: ["${S7}", "${S8}"]}
    headers: {x-token: "${S9}"}
    proxy: "http://user:${S10}@proxy.example.com:1"
  two:
    spec: {extends: openai-compatible, endpoint: {base_url: "https://up.example.com/v1", query: {key: "${S11}"}}}
    credentials: {api_key: "${S12}"}
tools:
  mcp:
    servers:
      web: {url: "https://mcp.example.com/${S13}", headers: {authorization: "Bearer ${S14}"}}
      own: {command: [server], env: {TOKEN: "${S15}"}}
  web_search: {spec: tavily, credentials: {api_key: "${S16}"}}
"#;

    /// Whatever is logged, said in an error, or found in a panic: no secret is in it.
    #[test]
    fn no_form_of_a_configuration_shows_a_secret() {
        let env = |name: &str| match name {
            "KEY1" => Some("a1".repeat(32)),
            "KEY2" => Some("b2".repeat(32)),
            _ => name.starts_with('S').then(|| format!("canary-of-{name}-0123456789abcdef0123456789")),
        };
        let cwd = Path::new("/w");
        let sources = Sources { config_path: None, cwd, home: None, env: &env, overrides: Overrides::default() };
        let config = load_text("godex.yaml", ALL, &sources).unwrap_or_else(|problems| panic!("{problems}"));
        let count = |text: &str| text.matches("canary").count();
        for shown in [format!("{config:?}"), format!("{config:#?}"), config.print()] {
            for part in ["canary", &"a1".repeat(8), &"b2".repeat(8)] {
                let around = shown.find(part).map(|at| &shown[at.saturating_sub(120)..at]);
                assert_eq!(around, None, "{} times", count(&shown));
            }
            assert!(shown.contains("up.example.com") && shown.contains("redacted"));
        }
    }

    /// Also what is wrong is said without them.
    #[test]
    fn no_problem_shows_a_secret() {
        let env = |name: &str| name.starts_with('S').then(|| "canary\nwith a line break".to_owned());
        let sources =
            Sources { config_path: None, cwd: Path::new("/w"), home: None, env: &env, overrides: Overrides::default() };
        let problems = load_text("godex.yaml", ALL, &sources).unwrap_err();
        assert!(problems.0.len() > 3 && !problems.to_string().contains("canary"), "{problems}");
        assert!(!format!("{problems:?}").contains("canary"));
    }
}
