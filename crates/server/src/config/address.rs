//! Hosts and base URLs: what is on this machine or network, and what is public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::Url;

/// A base URL that passed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BaseUrl {
    pub(super) url: String,
    /// On this machine or a private network: a key is not expected, plain HTTP is fine.
    pub(super) private: bool,
}

impl BaseUrl {
    pub(super) fn is_plain(&self) -> bool {
        self.url.starts_with("http:")
    }
}

/// Checks a base URL. Errors do not quote it, because it may hold a password.
pub(super) fn base_url(text: &str, plain_http: bool) -> Result<BaseUrl, &'static str> {
    let url = Url::parse(text).map_err(|_| "must be a URL such as https://api.example.com/v1")?;
    let (Some(host), "http" | "https") = (url.host_str(), url.scheme()) else {
        return Err("must be an http:// or https:// URL");
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not hold a user or a password; use credentials.api_key or headers");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must not have a query or a fragment, because a path is added to it");
    }
    let private = is_private(host);
    if url.scheme() == "http" && !private && !plain_http {
        return Err("plain http to a public host would send keys and prompts in the clear; use https");
    }
    Ok(BaseUrl { url: text.trim_end_matches('/').to_owned(), private })
}

/// Whether only this machine can reach the host.
pub(super) fn is_loopback(host: &str) -> bool {
    match ip(host) {
        Some(address) => address.to_canonical().is_loopback(),
        None => is_localhost(host),
    }
}

fn is_private(host: &str) -> bool {
    match ip(host).map(|address| address.to_canonical()) {
        Some(IpAddr::V4(v4)) => v4.is_loopback() || v4.is_private() || v4.is_link_local() || is_shared(v4),
        Some(IpAddr::V6(v6)) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
        None => is_localhost(host) || is_internal(host),
    }
}

/// 100.64.0.0/10, which overlay networks use.
fn is_shared(address: Ipv4Addr) -> bool {
    let [a, b, ..] = address.octets();
    a == 100 && (64..128).contains(&b)
}

pub(super) fn is_localhost(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

/// Names that public DNS does not have: a container's bare name, and the reserved endings.
fn is_internal(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    !host.contains('.') || [".local", ".internal", ".lan", ".home.arpa"].iter().any(|end| host.ends_with(end))
}

pub(super) fn is_ip(host: &str) -> bool {
    ip(host).is_some()
}

fn ip(host: &str) -> Option<IpAddr> {
    unbracket(host).parse().ok()
}

/// An IPv6 address without the brackets that URLs put around it.
pub(super) fn unbracket(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

pub(super) fn authority(host: &str, port: u16) -> String {
    if host.parse::<Ipv6Addr>().is_ok() { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_private_from_public() {
        let cases = [
            ("https://api.example.com/v1/", Ok(("https://api.example.com/v1", false))),
            ("http://localhost:11434/v1", Ok(("http://localhost:11434/v1", true))),
            ("http://127.0.0.1:8000", Ok(("http://127.0.0.1:8000", true))),
            ("http://[::1]:8000/v1", Ok(("http://[::1]:8000/v1", true))),
            ("http://192.168.1.9/v1", Ok(("http://192.168.1.9/v1", true))),
            ("http://100.100.1.1/v1", Ok(("http://100.100.1.1/v1", true))),
            ("http://ollama:11434/v1", Ok(("http://ollama:11434/v1", true))),
            ("http://host.docker.internal:1234/v1", Ok(("http://host.docker.internal:1234/v1", true))),
            ("http://api.example.com", Err("plain http")),
            ("http://8.8.8.8", Err("plain http")),
            ("ftp://example.com", Err("must be an http:// or https:// URL")),
            ("api.example.com/v1", Err("must be a URL")),
            ("https://", Err("must be a URL")),
            ("https://u:p@example.com", Err("must not hold a user")),
            ("https://example.com?x=1", Err("must not have a query")),
        ];
        for (text, expected) in cases {
            match (base_url(text, false), expected) {
                (Ok(found), Ok((url, private))) => assert_eq!((found.url.as_str(), found.private), (url, private)),
                (Err(message), Err(start)) => assert!(message.starts_with(start), "{text}: {message}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
        assert!(base_url("http://api.example.com", true).is_ok_and(|base| !base.private));
    }

    #[test]
    fn tells_loopback() {
        for host in ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "::ffff:127.0.0.1"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["0.0.0.0", "::", "192.168.0.1", "example.com", "localhost.example.com"] {
            assert!(!is_loopback(host), "{host}");
        }
        assert_eq!((authority("::1", 1), authority("a", 2)), ("[::1]:1".to_owned(), "a:2".to_owned()));
    }
}
