//! Which built-in spec is nearest to a bare URL: by its host, or by what its list of models says of itself.

use providers::{Library, resolve_named};
use serde_json::Value;

/// What servers write as the owner of their models.
const OWNERS: &[(&str, &str)] = &[
    ("llamacpp", "llamacpp"),
    ("vllm", "vllm"),
    ("sglang", "sglang"),
    ("library", "ollama"),
    ("ollama", "ollama"),
    ("organization_owner", "lmstudio"),
];

const ROOT: &str = "openai-compatible";

/// The name of a spec of the library. `models` is the answer to `GET /models`, or nothing.
pub fn nearest(library: Library<'static>, base_url: &str, models: &[u8]) -> &'static str {
    let hosts = |name: &&str| {
        let provider = resolve_named(library, name, &|_| None).ok();
        let known = provider.and_then(|provider| provider.base_url).and_then(|url| host(&url).map(str::to_owned));
        known.is_some() && known.as_deref() == host(base_url)
    };
    let by_host = library.names().find(hosts);
    by_host.or_else(|| by_owner(library, models)).unwrap_or(ROOT)
}

fn by_owner(library: Library<'static>, models: &[u8]) -> Option<&'static str> {
    let models: Value = serde_json::from_slice(wire::json::without_mark(models)).ok()?;
    let owner = models["data"][0]["owned_by"].as_str()?;
    let (_, spec) = OWNERS.iter().find(|(known, _)| *known == owner)?;
    library.names().find(|name| name == spec)
}

/// The host of a URL, if it is not one of this machine's: many servers share those.
fn host(url: &str) -> Option<&str> {
    let authority = url.split_once("://")?.1.split('/').next()?;
    let host = authority.split(':').next()?;
    let local = ["localhost", "127.0.0.1", "0.0.0.0", "[", ""].contains(&host);
    (!local).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_owners() {
        for (url, models, expected) in [
            ("https://api.deepseek.com/v1", "", "deepseek"),
            ("https://api.example.com/v1", "", ROOT),
            ("http://127.0.0.1:8080/v1", r#"{"data":[{"id":"x","owned_by":"me"}]}"#, ROOT),
            ("http://[::1]:8080/v1", "no JSON", ROOT),
        ] {
            assert_eq!(nearest(Library::BUILTIN, url, models.as_bytes()), expected, "{url}");
        }
    }

    #[test]
    fn an_owner_counts_where_the_spec_exists() {
        for (owner, spec) in OWNERS {
            let models = format!(r#"{{"data":[{{"owned_by":"{owner}"}}]}}"#);
            let expected = if Library::BUILTIN.contains(spec) { spec } else { ROOT };
            assert_eq!(nearest(Library::BUILTIN, "http://localhost:1/v1", models.as_bytes()), expected);
        }
    }
}
