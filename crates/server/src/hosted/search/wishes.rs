//! What a client wants of a search: how much, from where, in which domains.

use url::{Host, Url};
use web::search::ContextSize;
use wire::json::{FromRaw, Invalid, InvalidCode, Kind, Raw, Text};
use wire::responses::WebSearchTool;

const MOST_DOMAINS: usize = 100;
const SIZES: &[&str] = &["low", "medium", "high"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wishes {
    pub(crate) size: ContextSize,
    /// Two letters.
    pub(crate) country: Option<String>,
    /// The only ones, with what is below them; all, if there are none.
    pub(crate) domains: Vec<String>,
    pub(crate) blocked: Vec<String>,
    /// Whether pages may be fetched now. A client that wants what an index knows does not want that.
    pub(crate) pages: bool,
}

impl Default for Wishes {
    fn default() -> Self {
        Self { size: ContextSize::default(), country: None, domains: Vec::new(), blocked: Vec::new(), pages: true }
    }
}

impl Wishes {
    /// What the tool says.
    pub(super) fn of(tool: &WebSearchTool<'_>) -> Result<Self, Invalid> {
        Self::read(tool.search_context_size.map(Text::raw), tool.user_location, tool.filters, tool.external_web_access)
    }

    /// What `settings` of a client's own search say.
    pub(crate) fn of_settings(settings: Raw<'_>) -> Result<Self, Invalid> {
        let get = |name| settings.get(name).filter(|value: &Raw<'_>| !value.is_null());
        // It may also be the name of an index.
        let live = get("external_web_access").map(|value| value.as_str() == "true");
        Self::read(get("search_context_size"), get("user_location"), get("filters"), live)
    }

    fn read(
        size: Option<Raw<'_>>,
        location: Option<Raw<'_>>,
        filters: Option<Raw<'_>>,
        live: Option<bool>,
    ) -> Result<Self, Invalid> {
        let size = given_size(size)?.unwrap_or_default();
        let list = |name: &'static str| -> Result<Vec<String>, Invalid> {
            let Some(filters) = filters.filter(|filters| !filters.is_null()) else { return Ok(Vec::new()) };
            let Some(list) = filters.get(name).filter(|list| !list.is_null()) else { return Ok(Vec::new()) };
            domains(list).map_err(|invalid| invalid.at(name).at("filters"))
        };
        Ok(Self {
            size,
            country: location.filter(|location| !location.is_null()).and_then(country),
            domains: list("allowed_domains")?,
            blocked: list("blocked_domains")?,
            pages: live.unwrap_or(true),
        })
    }

    /// The same, in these domains only, as far as they are among those that are wanted.
    pub(crate) fn narrowed(&self, own: Raw<'_>) -> Result<Self, String> {
        let own = domains(own)
            .map_err(|_| "The `domains` of a query are names of hosts, such as `example.com`.".to_owned())?;
        let domains: Vec<String> =
            own.into_iter().filter(|domain| self.allows(&format!("https://{domain}/"))).collect();
        if domains.is_empty() {
            return Err("None of the `domains` of the query may be looked at.".to_owned());
        }
        Ok(Self { domains, ..self.clone() })
    }

    /// Whether a page at this address may be shown.
    pub(super) fn allows(&self, url: &str) -> bool {
        let url = Url::parse(url).ok();
        let Some(host) = url.as_ref().and_then(Url::host_str) else { return false };
        let host = host.trim_end_matches('.');
        let is_in = |domain: &String| {
            host == domain.as_str() || host.strip_suffix(domain.as_str()).is_some_and(|rest| rest.ends_with('.'))
        };
        (self.domains.is_empty() || self.domains.iter().any(is_in)) && !self.blocked.iter().any(is_in)
    }
}

fn given_size(size: Option<Raw<'_>>) -> Result<Option<ContextSize>, Invalid> {
    let Some(size) = size.filter(|size| !size.is_null()) else { return Ok(None) };
    let invalid = |invalid: Invalid| invalid.at("search_context_size");
    let word = Text::from_raw(size).map_err(invalid)?.decode();
    match &*word {
        "low" => Ok(Some(ContextSize::Low)),
        "medium" => Ok(Some(ContextSize::Medium)),
        "high" => Ok(Some(ContextSize::High)),
        other => Err(invalid(Invalid::value(other, SIZES))),
    }
}

/// Two letters; what is none is nothing that could be asked with.
fn country(location: Raw<'_>) -> Option<String> {
    let inner = location.get("approximate").filter(|inner| inner.kind() == Kind::Object).unwrap_or(location);
    let country = inner.get("country")?.text()?.decode().trim().to_ascii_uppercase();
    (country.len() == 2 && country.bytes().all(|byte| byte.is_ascii_uppercase())).then_some(country)
}

fn domains(list: Raw<'_>) -> Result<Vec<String>, Invalid> {
    let list = Vec::<Text<'_>>::from_raw(list)?;
    if list.len() > MOST_DOMAINS {
        let message =
            format!("array too long. Expected an array with maximum length {MOST_DOMAINS}, but got {}.", list.len());
        return Err(Invalid::rule(InvalidCode::ArrayAboveMaxLength, message));
    }
    let one = |(index, text): (usize, &Text<'_>)| {
        domain(&text.decode()).ok_or_else(|| {
            let message = "domain. Expected the name of a host, such as 'example.com'.";
            Invalid::rule(InvalidCode::InvalidValue, message).at_index(index)
        })
    };
    list.iter().enumerate().map(one).collect()
}

/// The name of a host, as addresses have it. A scheme before it and a slash after it say nothing; a path would.
fn domain(text: &str) -> Option<String> {
    let text = text.trim();
    let text = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).unwrap_or(text);
    let text = text.strip_suffix('/').unwrap_or(text);
    let text = text.strip_prefix("*.").unwrap_or(text).trim_end_matches('.');
    match Host::parse(text).ok()? {
        Host::Domain(name) if !name.is_empty() => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tool: &str) -> Result<Wishes, String> {
        let tool = WebSearchTool::from_raw(Raw::parse(tool).unwrap()).map_err(|invalid| invalid.to_string())?;
        Wishes::of(&tool).map_err(|invalid| format!("{}: {invalid}", invalid.path))
    }

    #[test]
    fn what_a_client_wants_is_read() {
        let usual = Wishes::default();
        for (tool, expected) in [
            (r#"{"type":"web_search"}"#, usual.clone()),
            (r#"{"search_context_size":"low"}"#, Wishes { size: ContextSize::Low, ..usual.clone() }),
            (r#"{"search_context_size":null,"filters":null,"user_location":null}"#, usual.clone()),
            (
                r#"{"user_location":{"type":"approximate","country":"de"}}"#,
                Wishes { country: Some("DE".into()), ..usual.clone() },
            ),
            (r#"{"user_location":{"type":"approximate"}}"#, usual.clone()),
            (
                r#"{"user_location":{"approximate":{"country":"FR"}}}"#,
                Wishes { country: Some("FR".into()), ..usual.clone() },
            ),
            (r#"{"user_location":{"country":"Germany"}}"#, usual.clone()),
            (r#"{"external_web_access":false}"#, Wishes { pages: false, ..usual.clone() }),
            (
                r#"{"filters":{"allowed_domains":["https://A.org/","*.b.org.","bücher.de"],"blocked_domains":["c.org"]}}"#,
                Wishes {
                    domains: vec!["a.org".into(), "b.org".into(), "xn--bcher-kva.de".into()],
                    blocked: vec!["c.org".into()],
                    ..usual
                },
            ),
        ] {
            assert_eq!(read(tool), Ok(expected), "{tool}");
        }
        for (tool, expected) in [
            (r#"{"search_context_size":"huge"}"#, "search_context_size"),
            (r#"{"filters":{"allowed_domains":"a.org"}}"#, "filters.allowed_domains"),
            (r#"{"filters":{"allowed_domains":["a.org","a.org/path"]}}"#, "filters.allowed_domains[1]"),
            (r#"{"filters":{"allowed_domains":["10.0.0.1"]}}"#, "filters.allowed_domains[0]"),
            (r#"{"filters":{"blocked_domains":[""]}}"#, "filters.blocked_domains[0]"),
        ] {
            let refused = read(tool).unwrap_err();
            assert!(refused.contains(expected), "{tool}: {refused}");
        }
        let many = format!(r#"{{"filters":{{"allowed_domains":[{}]}}}}"#, vec!["\"a.org\""; 101].join(","));
        assert!(read(&many).unwrap_err().contains("maximum length 100"));
    }

    #[test]
    fn domains_are_hosts_and_what_is_below_them() {
        let wishes = Wishes { domains: vec!["a.org".into()], blocked: vec!["bad.a.org".into()], ..Wishes::default() };
        for (url, expected) in [
            ("https://a.org/x", true),
            ("https://A.ORG./x", true),
            ("https://docs.a.org", true),
            ("https://bad.a.org/", false),
            ("https://very.bad.a.org/", false),
            ("https://xa.org/", false),
            ("https://a.org.evil.com/", false),
            ("https://evil.com/?a.org", false),
            ("https://a.org@evil.com/", false),
            ("no address", false),
        ] {
            assert_eq!(wishes.allows(url), expected, "{url}");
        }
        assert!(Wishes::default().allows("https://anything.net/"));
    }
}
