//! Who may ask at all. Godex listens where every web page in the user's browser can send requests, and holds the
//! user's keys: a page that is not allowed to must get nothing done, whether or not it could read the answer.
//!
//! Browsers say where a request comes from (`Origin`, `Sec-Fetch-Site`) and cannot be made to lie about it. What they
//! cannot tell is a page whose own name was pointed at this machine (DNS rebinding): that shows in `Host`.
//! Programs that are no browsers send neither and are not hindered.

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, header};

use crate::body::Body;
use crate::config::ServerConfig;
use crate::error::{ApiError, Code, clip};

const FETCH_SITE: &str = "sec-fetch-site";

/// What a page that may call may read of an answer's head.
const EXPOSED: &str = "x-request-id, x-godex-compat, x-godex-error, retry-after, x-should-retry, \
    x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, \
    x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens";

/// How long a browser may remember what a preflight said, in seconds.
const MAX_AGE: &str = "600";

/// A request that may be answered, with the page that may read the answer, if one asks.
#[derive(Debug)]
pub(crate) struct Admitted {
    origin: Option<HeaderValue>,
    /// Answers differ by origin: caches must know.
    varies: bool,
}

/// Looks at where a request is from and under which name it came. `public`: everybody may read this path.
pub(crate) fn admit<B>(server: &ServerConfig, request: &Request<B>, public: bool) -> Result<Admitted, ApiError> {
    let host = host(request)?;
    if let Some(host) = host {
        check_host(server, host)?;
    }
    let headers = request.headers();
    let origin = single(headers, header::ORIGIN.as_str())?;
    let listed = origin.filter(|origin| server.cors.allow(text(origin)));
    let reading = matches!(*request.method(), Method::GET | Method::HEAD);
    if listed.is_none() && !(public && reading) {
        let own = origin.is_none_or(|origin| is_own(text(origin), host));
        let site = single(headers, FETCH_SITE)?;
        let near = site.is_none_or(|site| matches!(text(site), "same-origin" | "none"));
        if !own || !near {
            return Err(foreign_page(origin));
        }
    }
    Ok(Admitted { origin: listed.cloned(), varies: !server.cors.origins.is_empty() })
}

/// The authority that was asked for: HTTP/2 and absolute targets have it in the URI.
fn host<B>(request: &Request<B>) -> Result<Option<&str>, ApiError> {
    let target = request.uri().authority().map(http::uri::Authority::as_str);
    let named = single(request.headers(), header::HOST.as_str())?.map(text);
    match (target, named) {
        (Some(target), Some(named)) if !target.eq_ignore_ascii_case(named) => {
            Err(ApiError::bad_request(Code::InvalidHost, "The request names two different hosts."))
        }
        (None, None) if request.version() >= Version::HTTP_11 => {
            Err(ApiError::bad_request(Code::MissingHost, "The request has no Host header."))
        }
        (target, named) => Ok(target.or(named)),
    }
}

fn check_host(server: &ServerConfig, authority: &str) -> Result<(), ApiError> {
    let name = without_port(authority);
    if server.allowed_hosts.allow(name) {
        return Ok(());
    }
    let message = format!(
        "The host '{}' is not served here. If it should be, add it to `server.allowed_hosts` in godex.yaml.",
        clip(name)
    );
    Err(ApiError::forbidden(Code::HostNotAllowed, message))
}

/// `[::1]:80` and `localhost:80` without the port.
fn without_port(authority: &str) -> &str {
    let end = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    let (name, port) = authority.split_at(authority[end..].find(':').map_or(authority.len(), |colon| end + colon));
    if port.bytes().skip(1).all(|byte| byte.is_ascii_digit()) { name } else { authority }
}

/// Whether a page of this origin came from here.
fn is_own(origin: &str, host: Option<&str>) -> bool {
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    authority.zip(host).is_some_and(|(authority, host)| authority.eq_ignore_ascii_case(host))
}

fn foreign_page(origin: Option<&HeaderValue>) -> ApiError {
    let page = origin.map_or_else(|| "another site".to_owned(), |origin| format!("'{}'", clip(text(origin))));
    let message = format!(
        "Web pages of {page} may not use this server. If they should, add their origin to `server.cors.origins` in \
         godex.yaml."
    );
    ApiError::forbidden(Code::OriginNotAllowed, message)
}

/// A header that may be there once.
fn single<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h HeaderValue>, ApiError> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        _ => Err(ApiError::bad_request(Code::InvalidHeader, format!("The request has more than one {name} header."))),
    }
}

/// What is no ASCII is no host and no origin.
fn text(value: &HeaderValue) -> &str {
    value.to_str().unwrap_or("?")
}

impl Admitted {
    /// A browser's question before the request itself, from a page that may call: what it may send.
    pub(crate) fn preflight<B>(
        &self,
        request: &Request<B>,
        allowed: impl FnOnce() -> String,
    ) -> Option<Response<Body>> {
        let asked = request.headers();
        if request.method() != Method::OPTIONS || !asked.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD) {
            return None;
        }
        self.origin.as_ref()?;
        let mut response = Response::new(Body::full(bytes::Bytes::new()));
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        if let Ok(methods) = HeaderValue::try_from(allowed()) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
        }
        if let Some(names) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
        }
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
        if asked.contains_key("access-control-request-private-network") {
            headers.insert("access-control-allow-private-network", HeaderValue::from_static("true"));
        }
        Some(response)
    }

    /// Lets the page that asked read the answer.
    pub(crate) fn share(self, headers: &mut HeaderMap) {
        if self.varies {
            headers.insert(header::VARY, HeaderValue::from_static("origin"));
        }
        if let Some(origin) = self.origin {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_not_part_of_a_name() {
        for (authority, name) in [
            ("localhost", "localhost"),
            ("localhost:80", "localhost"),
            ("localhost:", "localhost"),
            ("127.0.0.1:5678", "127.0.0.1"),
            ("[::1]", "[::1]"),
            ("[::1]:80", "[::1]"),
            ("evil.example:80:80", "evil.example:80:80"),
            ("localhost:80@evil.example", "localhost:80@evil.example"),
        ] {
            assert_eq!(without_port(authority), name, "{authority}");
        }
    }
}
