//! `endpoint.base_urls`: several addresses of one provider, and how each is asked whether it is up.

use std::collections::HashSet;

use providers::yaml::Field;

use super::address::{self, BaseUrl};
use super::provider::Given;

/// So many addresses one provider may have.
const MOST: usize = 64;

/// The addresses that are in order; of the others it is said what is wrong.
pub(super) fn read(field: &Field<'_>, given: &Given<'_>) -> Vec<BaseUrl> {
    if given.has_base_url() {
        field.problem("`base_url` and `base_urls` cannot both be given", Some("list all addresses in one".to_owned()));
    }
    let Some(fields) = field.list() else { return Vec::new() };
    if fields.is_empty() || fields.len() > MOST {
        field.problem(format!("expected from 1 to {MOST} addresses"), None);
    }
    let mut seen = HashSet::new();
    let address = |field: &Field<'_>| {
        let text = field.text()?;
        let base = address::base_url(text.trim(), given.plain_http());
        let base = base.map_err(|message| field.problem(message, None)).ok()?;
        if !seen.insert(base.url.clone()) {
            field.problem("this address is in the list already", None);
            return None;
        }
        Some(base)
    };
    fields.iter().filter_map(address).collect()
}

/// A path that can come after a base URL.
pub(super) fn health(field: &Field<'_>) -> Option<String> {
    let path = field.text()?;
    let fits = path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic() && !b"#?".contains(&byte));
    if !fits {
        field.problem("must be a path that begins with `/`, such as /models or /../health", None);
    }
    fits.then_some(path)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use providers::yaml::Document;

    use super::super::{Config, Origin, Overrides, Problems, Sources, read as config_read};

    fn load(endpoint: &str, more: &str) -> Result<Config, Problems> {
        let text = format!("providers:\n  up:\n    spec: vllm\n    endpoint:\n{endpoint}\n{more}");
        let document = Document::parse("godex.yaml", &text)?;
        let sources = Sources {
            config_path: None,
            cwd: Path::new("/w"),
            home: None,
            env: &|_| None,
            overrides: Overrides::default(),
        };
        config_read::read(&document, &sources, Origin::File(PathBuf::from("/w/godex.yaml")))
    }

    #[test]
    fn several_addresses_are_one_provider() {
        let two = "      base_urls: ['http://10.0.0.1:8000/v1/', 'http://10.0.0.2:8000/v1']\n      health: /../health";
        let config = load(two, "").unwrap_or_else(|problems| panic!("{problems}"));
        let provider = &config.providers[0];
        assert_eq!(provider.addresses(), ["http://10.0.0.1:8000/v1", "http://10.0.0.2:8000/v1"]);
        assert_eq!((&*provider.base_url, provider.health.as_deref()), ("http://10.0.0.1:8000/v1", Some("/../health")));
        assert!(provider.is_private());
        let each: Vec<_> = provider.each_address().map(|one| (one.base_url, one.base_urls.len())).collect();
        assert_eq!(each[1], ("http://10.0.0.2:8000/v1".to_owned(), 0));
        let printed = config.print();
        assert!(printed.contains("base_urls: [\"http://10.0.0.1:8000/v1\", \"http://10.0.0.2:8000/v1\"]"), "{printed}");
        assert!(!printed.contains("base_url: "), "{printed}");
        // A list of one is that one.
        let config =
            load("      base_urls: ['http://10.0.0.1:8000/v1']", "").unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(
            (config.providers[0].base_urls.len(), &*config.providers[0].base_url),
            (0, "http://10.0.0.1:8000/v1")
        );
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        let cases = [
            (
                "      base_url: 'http://10.0.0.1/v1'\n      base_urls: ['http://10.0.0.2/v1']",
                6,
                "cannot both be given",
            ),
            ("      base_urls: []", 5, "expected from 1 to 64 addresses"),
            ("      base_urls: 'http://10.0.0.1/v1'", 5, "list"),
            (
                "      base_urls:\n      - 'http://10.0.0.1/v1'\n      - 'ftp://10.0.0.2'",
                7,
                "must be an http:// or https:// URL",
            ),
            ("      base_urls:\n      - 'http://10.0.0.1/v1'\n      - 'http://10.0.0.1/v1/'", 7, "in the list already"),
            ("      base_urls:\n      - 'http://example.com/v1'", 6, "plain http to a public host"),
            ("      base_urls: ['http://10.0.0.1/v1']\n      health: health", 6, "must be a path that begins with `/`"),
        ];
        for (endpoint, line, expected) in cases {
            let problems = load(endpoint, "").map(drop).unwrap_err().to_string();
            assert!(
                problems.contains(&format!("godex.yaml:{line}:")) && problems.contains(expected),
                "{endpoint}: {problems}"
            );
        }
        let demo = "  d:\n    spec: demo\n    endpoint: {base_urls: ['http://10.0.0.1']}";
        let problems = load("      base_url: 'http://10.0.0.1/v1'", demo).map(drop).unwrap_err().to_string();
        assert!(problems.contains("the demo model has no address"), "{problems}");
    }
}
