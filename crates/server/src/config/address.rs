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

pub(super) fn is_private(host: &str) -> bool {
    match ip(host).map(|address| address.to_canonical()) {
        Some(IpAddr::V4(v4)) => v4.is_loopback() || v4.is_private() || v4.is_link_local() || is_shared(v4),
        Some(IpAddr::V6(v6)) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
        None => is_localhost(host) || is_internal(host),
    }
}

/// Whether the address belongs to nobody but its host on the public internet: what a name leads to that may not lead
/// inside. Addresses that carry another one are as that one is.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => {
            let embedded = |high: u16, low: u16| is_public_v4((u32::from(high) << 16 | u32::from(low)).into());
            match v6.segments() {
                // Through a translator to IPv4, or a tunnel over it.
                [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => embedded(high, low),
                // Teredo and other protocols' own; documentation.
                [0x2001, 0..0x200 | 0xdb8, ..] | [0x3fff, 0..0x1000, ..] => false,
                // All that is given out for the internet.
                [first, ..] => first & 0xe000 == 0x2000,
            }
        }
    }
}

fn is_public_v4(v4: Ipv4Addr) -> bool {
    let special = match v4.octets() {
        // This network; protocols' own; relays; tests of speed; a cloud's own service for the machines in it.
        [0, ..] | [192, 0, 0, _] | [192, 88, 99, _] | [198, 18 | 19, ..] | [168, 63, 129, 16] => true,
        // Multicast, reserved, broadcast.
        [first, ..] => first >= 224,
    };
    let private = v4.is_loopback() || v4.is_private() || v4.is_link_local() || is_shared(v4) || v4.is_documentation();
    !special && !private
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
pub(crate) fn unbracket(host: &str) -> &str {
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
    fn nothing_inside_is_public() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.255",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:a00:1::1",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "100.63.255.255",
            "100.128.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2001:4860:4860::8888",
            "2002:808:808::1",
            "2606:4700::1111",
            "2a00:1450:4001:80b::200e",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
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
