//! Providers that are in no file: a built-in spec with its own address, or a bare URL.

use providers::yaml::Env;
use providers::{Auth, Gap, Library, Wire, resolve_named};

use super::defaults::entry;
use super::provider::{UNSENDABLE, can_be_sent};
use super::{KeyFrom, ProviderConfig, Secret, address};

/// A provider for this spec, at its own address or at another one. Without a key, the one in the spec's own
/// variable is used, and only for the spec's own address.
///
/// # Errors
/// What is missing or wrong, in a sentence.
pub fn ad_hoc(
    spec: &str,
    base_url: Option<&str>,
    api_key: Option<Secret>,
    env: Env<'_>,
) -> Result<ProviderConfig, String> {
    let mut provider = resolve_named(Library::BUILTIN, spec, env).map_err(|problems| problems.to_string())?;
    if let Some(url) = base_url {
        provider.base_url = Some(url.to_owned());
        provider.key_env.clear();
        provider.token = None;
    }
    let variable = provider.key_variable(env).map(str::to_owned);
    let from_env = || env(variable.as_deref()?).map(|key| Secret::new(key.trim().to_owned()));
    let key = api_key.or_else(from_env).filter(|key| !key.expose().is_empty());
    if key.as_ref().is_some_and(|key| !can_be_sent(key.expose())) {
        return Err(format!("the key {UNSENDABLE}"));
    }
    if provider.wire == Wire::Demo {
        return Ok(entry(spec, provider, None));
    }
    let url = match provider.address(env) {
        Ok(Some(url)) => url,
        Ok(None) => return Err(format!("the spec `{spec}` has no address of its own: name a URL")),
        Err(gaps) => return Err(gaps.iter().map(|gap| missing(spec, gap)).collect::<Vec<_>>().join("; ")),
    };
    let address::BaseUrl { url, private } =
        address::base_url(&url, false).map_err(|message| format!("the URL {message}"))?;
    let needs_none = provider.auth == Auth::None || provider.token.is_some() || private;
    if let (None, false, None, Some(variable)) = (&key, needs_none, base_url, &variable) {
        return Err(format!("there is no key for `{spec}`: set {variable}, or name another variable"));
    }
    let key_from = match (&key, &provider.token, variable) {
        (Some(_), _, Some(variable)) => KeyFrom::Variable(variable),
        (None, Some(token), _) => KeyFrom::Command(token.program().to_owned()),
        _ => KeyFrom::Nowhere,
    };
    Ok(ProviderConfig { base_url: url, key_from, ..entry(spec, provider, key) })
}

/// The same without a key, for looking: nobody can be asked there.
///
/// # Errors
/// There is no such spec.
pub fn keyless(spec: &str, env: Env<'_>) -> Result<ProviderConfig, String> {
    let provider = resolve_named(Library::BUILTIN, spec, env).map_err(|problems| problems.to_string())?;
    let address = provider.address(env).ok().flatten();
    let mut config = entry(spec, provider, None);
    if config.provider.wire != Wire::Demo {
        // What has no address of its own, or not a whole one, needs one to be complete.
        config.base_url = address.unwrap_or_else(|| "http://127.0.0.1/v1".to_owned());
    }
    Ok(config)
}

fn missing(spec: &str, gap: &Gap) -> String {
    let what = if gap.is_unfit { "cannot be part of an address" } else { "is missing" };
    match gap.variables.as_slice() {
        [] => format!("the {} in the address of `{spec}` {what}: name a URL", gap.name),
        several => format!("the {} in the address of `{spec}` {what}: set {}", gap.name, several.join(" or ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said() {
        let env = |name: &str| (name == "GROQ_API_KEY").then(|| "gk".to_owned());
        let key = || Some(Secret::new("k".to_owned()));
        let cases = [
            ("demo", None, None, "demo"),
            ("groq", None, None, "https://api.groq.com/openai/v1 gk"),
            ("groq", None, key(), "https://api.groq.com/openai/v1 k"),
            ("groq", Some("https://example.com/v1/"), None, "https://example.com/v1 "),
            ("openai-compatible", Some("http://127.0.0.1:1/v1"), None, "http://127.0.0.1:1/v1 "),
            ("xai", None, None, "there is no key for `xai`: set XAI_API_KEY"),
            ("openai-compatible", None, None, "the spec `openai-compatible` has no address of its own"),
            ("nothing", None, None, "specs/nothing.yaml: there is no spec `nothing`"),
            ("groq", Some("http://example.com"), None, "the URL plain http to a public host"),
            ("groq", None, Some(Secret::new("a\nb".to_owned())), "the key holds a line break"),
        ];
        for (spec, url, key, expected) in cases {
            let found = match ad_hoc(spec, url, key, &env) {
                Ok(config) if config.base_url.is_empty() => config.name,
                Ok(config) => format!("{} {}", config.base_url, config.api_keys.first().map_or("", Secret::expose)),
                Err(message) => message,
            };
            assert!(found.starts_with(expected), "{spec} {url:?}: {found}");
        }
    }
}
