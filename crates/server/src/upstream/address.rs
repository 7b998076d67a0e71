//! Where a provider's requests go: the addresses of its APIs.

use std::error::Error;

use bridge::{Failure, FailureClass};
use http::Uri;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use providers::Wire;
use wire::json::{Raw, Text};

use crate::config::ProviderConfig;

/// Why nobody can be asked there.
pub(super) type Fault = Box<dyn Error + Send + Sync>;

/// Where a spec's path wants the model's name.
const MODEL: &str = "{model}";

/// Where a path goes that is asked for.
const PATH: &str = "/{path}";

/// The path of a chat API.
const CHAT: &str = "/chat/completions";

/// The path of a Responses API, where the chat API's would be.
const NATIVE: &str = "/responses";

/// What a provider is asked at.
#[derive(Debug)]
pub(super) struct Addresses {
    /// By its spec: of chat, or of messages.
    own: EndpointUri,
    responses: EndpointUri,
    /// What else there may be: the base and the query, with [`PATH`] between them.
    other: String,
}

impl Addresses {
    /// Whole ones, or paths and queries.
    pub(super) fn new(config: &ProviderConfig, whole: bool) -> Result<Self, Fault> {
        let template = |path: &str| {
            let url = endpoint(config, path);
            if whole { url } else { path_of(&url).to_owned() }
        };
        Ok(Self {
            own: EndpointUri::new(&template(&config.provider.path))?,
            responses: EndpointUri::new(&template(NATIVE))?,
            other: template(PATH),
        })
    }

    /// Where a request of a wire goes.
    pub(super) fn of(&self, wire: Wire, model: &str) -> Result<Uri, Failure> {
        if wire == Wire::Responses { self.responses.of(model) } else { self.own.of(model) }
    }

    /// Another endpoint in the place of the provider's own, for a request with this body.
    pub(super) fn beside(&self, endpoint: &str, body: &[u8]) -> Result<String, Failure> {
        let own = self.own.of_body(body)?.to_string();
        Ok(if own.contains(CHAT) { own.replacen(CHAT, endpoint, 1) } else { self.at(endpoint) })
    }

    /// What is at this path after the base URL; `/../` goes up from there.
    pub(super) fn at(&self, path: &str) -> String {
        without_dots(&self.other.replacen(PATH, path, 1))
    }
}

/// The whole address, with any model's name in it.
pub(super) fn of_any_model(config: &ProviderConfig) -> Result<Uri, Fault> {
    Ok(endpoint(config, &config.provider.path).replace(MODEL, "model").parse()?)
}

/// What a request asks for: a path and a query, or the whole address.
#[derive(Debug)]
enum EndpointUri {
    Fixed(Uri),
    /// With the model's name in it.
    ByModel(String),
}

impl EndpointUri {
    fn new(template: &str) -> Result<Self, Fault> {
        Ok(if template.contains(MODEL) { Self::ByModel(template.to_owned()) } else { Self::Fixed(template.parse()?) })
    }

    fn of(&self, model: &str) -> Result<Uri, Failure> {
        match self {
            Self::Fixed(path) => Ok(path.clone()),
            Self::ByModel(template) => template.replace(MODEL, &percent_encode(model)).parse().map_err(|_| {
                Failure::new(FailureClass::InvalidRequest, "The model's name does not fit into the provider's path.")
            }),
        }
    }

    /// The same, where only a body says the model's name.
    fn of_body(&self, body: &[u8]) -> Result<Uri, Failure> {
        let body = str::from_utf8(body).ok().and_then(|text| Raw::parse(text).ok());
        let model = body.and_then(|body| body.get("model")).and_then(Raw::text).map(Text::decode);
        self.of(&model.unwrap_or_default())
    }
}

/// The whole URL, as a template. A base URL that is the whole endpoint already is as good as its base.
fn endpoint(config: &ProviderConfig, path: &str) -> String {
    let base = config.base_url.trim_end_matches('/');
    let base = base.trim_end_matches(config.provider.path.as_str()).trim_end_matches(NATIVE);
    let query: Vec<String> = config.provider.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{base}{path}{mark}{}", query.join("&"))
}

/// A URL without its scheme and host.
fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').map_or("/", |at| &rest[at..])
}

/// A path or URL in which every `..` has taken the segment before it away; not the host.
fn without_dots(uri: &str) -> String {
    let at = uri.len() - path_of(uri).len();
    let (host, path) = uri.split_at(at);
    let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    format!("{host}/{}{query}", segments.join("/"))
}

/// One segment of a path, as an endpoint's URI has it.
pub(super) fn percent_encode(text: &str) -> String {
    /// Everything but what RFC 3986 calls unreserved.
    const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(text, RESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_go_up_and_never_beyond_the_host() {
        for (uri, expected) in [
            ("/v1/models", "/v1/models"),
            ("/v1/../api/v0/models?a=..", "/api/v0/models?a=.."),
            ("http://h:1/a/v1/../../props", "http://h:1/props"),
            ("https://h/../../x", "https://h/x"),
            ("/../x", "/x"),
        ] {
            assert_eq!(without_dots(uri), expected);
        }
    }
}
