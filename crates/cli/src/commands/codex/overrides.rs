//! What Codex is told on its command line, so that no file of the user's changes: `-c key=value`, where values are TOML.
//! They lie over all of Codex's files, and its own flags (`--model`) lie over them.

use std::path::Path;

use toml_edit::{Document, InlineTable, Value};

use super::{KEY_VARIABLE, PROVIDER};

/// A provider id of the user's own that is called as ours: its keys would mix with those given here.
const INSTEAD: &str = "godex-session";

/// What a session is given.
pub(super) struct Session<'a> {
    /// The provider's id in Codex, see [`provider_id`].
    pub(super) provider: &'a str,
    /// With `/v1`.
    pub(super) base_url: &'a str,
    pub(super) model: &'a str,
    pub(super) catalog: Option<&'a Path>,
    /// Whether godex searches the web.
    pub(super) searches: bool,
}

impl Session<'_> {
    /// The arguments, before the user's own.
    pub(super) fn arguments(&self) -> Vec<String> {
        let mut settings = vec![
            ("model_provider".to_owned(), Value::from(self.provider)),
            (format!("model_providers.{}", self.provider), Value::from(provider(self.base_url))),
            ("model".to_owned(), Value::from(self.model)),
            ("web_search".to_owned(), Value::from(web_search(self.searches))),
        ];
        if let Some(catalog) = self.catalog {
            settings.push(("model_catalog_json".to_owned(), Value::from(catalog.to_string_lossy().as_ref())));
        }
        let argument = |(key, value): (String, Value)| ["-c".to_owned(), format!("{key}={}", value.to_string().trim())];
        settings.into_iter().flat_map(argument).collect()
    }
}

/// Codex's `web_search`: where nobody searches, it would be declared to models that nobody runs it for.
pub(super) const fn web_search(searches: bool) -> &'static str {
    if searches { "live" } else { "disabled" }
}

fn provider(base_url: &str) -> InlineTable {
    let mut table = InlineTable::new();
    for (key, value) in
        [("name", PROVIDER), ("base_url", base_url), ("env_key", KEY_VARIABLE), ("wire_api", "responses")]
    {
        table.insert(key, value.into());
    }
    table.insert("supports_websockets", true.into());
    table
}

/// The id to use beside this `config.toml`: Codex merges tables, so that a provider of the same name that is not ours
/// would leave its own key or headers in.
pub(super) fn provider_id(config: &str) -> &'static str {
    let Ok(document) = Document::parse(config) else { return PROVIDER };
    let theirs = document.get("model_providers").and_then(|providers| providers.get(PROVIDER));
    let known = ["name", "base_url", "env_key", "wire_api", "supports_websockets"];
    let mixes = theirs
        .and_then(|provider| provider.as_table_like())
        .is_some_and(|provider| provider.iter().any(|(key, _)| !known.contains(&key)));
    if mixes { INSTEAD } else { PROVIDER }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_toml() {
        let session = Session {
            provider: "godex",
            base_url: "http://127.0.0.1:1/v1",
            model: "a \"quoted\" \\ model",
            catalog: Some(Path::new("/tmp/it's here.json")),
            searches: false,
        };
        let arguments = session.arguments();
        let settings: Vec<&String> = arguments.iter().skip(1).step_by(2).collect();
        assert!(arguments.iter().step_by(2).all(|flag| flag == "-c"));
        let document = settings.iter().map(|setting| setting.as_str()).collect::<Vec<_>>().join("\n");
        let document = Document::parse(document).unwrap();
        assert_eq!(document["model"].as_str(), Some("a \"quoted\" \\ model"));
        assert_eq!(document["model_catalog_json"].as_str(), Some("/tmp/it's here.json"));
        assert_eq!(document["model_providers"]["godex"]["base_url"].as_str(), Some("http://127.0.0.1:1/v1"));
        assert_eq!(document["model_providers"]["godex"]["env_key"].as_str(), Some("GODEX_API_KEY"));
    }

    #[test]
    fn a_provider_of_the_same_name_is_not_mixed_with_ours() {
        for (config, expected) in [
            ("", "godex"),
            ("not toml", "godex"),
            ("[model_providers.godex]\nbase_url = 'http://x'\n", "godex"),
            ("[model_providers.other]\nhttp_headers = {a = 'b'}\n", "godex"),
            ("[model_providers.godex]\nhttp_headers = {a = 'b'}\n", "godex-session"),
            ("model_providers = {godex = {auth = {command = 'x'}}}\n", "godex-session"),
        ] {
            assert_eq!(provider_id(config), expected, "{config}");
        }
    }
}
