//! `server.trusted_proxies`: whose word on the client's address is taken.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use http::HeaderMap;
use providers::yaml::Field;

/// Networks whose machines forward requests for others and say for whom.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrustedProxies(Vec<Range>);

/// `10.0.0.0/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    /// IPv4 as IPv6 has it, so that there is one kind.
    start: u128,
    /// How many bits count.
    bits: u32,
}

/// The most addresses that are looked at: nobody has so many proxies.
const MOST: usize = 32;

impl TrustedProxies {
    fn trust(&self, address: IpAddr) -> bool {
        let address = number(address);
        self.0.iter().any(|network| network.has(address))
    }

    /// Who asks: whoever is connected, or, if that is a proxy we trust, the last one in its list that is none.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if self.0.is_empty() || !self.trust(peer) {
            return peer;
        }
        let mut client = peer;
        let forwarded = if headers.contains_key("x-forwarded-for") { "x-forwarded-for" } else { "forwarded" };
        let values = headers.get_all(forwarded).iter().collect::<Vec<_>>();
        let entries = values.iter().rev().flat_map(|value| value.to_str().unwrap_or("?").rsplit(','));
        for entry in entries.take(MOST) {
            let node = if forwarded == "forwarded" { for_node(entry) } else { Some(entry) };
            // What cannot be read was written by somebody we know nothing of, and so was all before it.
            let Some(address) = node.and_then(address) else { break };
            client = address;
            if !self.trust(address) {
                break;
            }
        }
        client
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }
}

impl Range {
    fn parse(text: &str) -> Option<Self> {
        let (start, bits) = match text.split_once('/') {
            Some((start, bits)) => (start.parse::<IpAddr>().ok()?, Some(bits.parse::<u32>().ok()?)),
            None => (text.parse::<IpAddr>().ok()?, None),
        };
        let offset = if start.is_ipv4() { 96 } else { 0 };
        let bits = bits.unwrap_or(128 - offset).checked_add(offset).filter(|bits| *bits <= 128)?;
        Some(Self { start: number(start) & mask(bits), bits })
    }

    const fn has(self, address: u128) -> bool {
        address & mask(self.bits) == self.start
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Ipv6Addr::from(self.start).to_canonical() {
            IpAddr::V4(v4) if self.bits >= 96 => write!(f, "{v4}/{}", self.bits - 96),
            _ => write!(f, "{}/{}", Ipv6Addr::from(self.start), self.bits),
        }
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().into(),
        IpAddr::V6(v6) => v6.into(),
    }
}

const fn mask(bits: u32) -> u128 {
    match bits {
        0 => 0,
        bits => u128::MAX << (128 - bits),
    }
}

/// The `for` of one entry of `Forwarded` (RFC 7239).
fn for_node(entry: &str) -> Option<&str> {
    let mut pairs = entry.split(';').filter_map(|pair| pair.split_once('='));
    let (_, node) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
    let node = node.trim();
    Some(node.strip_prefix('"').and_then(|node| node.strip_suffix('"')).unwrap_or(node))
}

/// With or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix('[') {
        let (inside, port) = rest.split_once(']')?;
        let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
        return inside.parse::<Ipv6Addr>().ok().filter(|_| is_port).map(|v6| v6.to_canonical());
    }
    let plain = text.parse::<IpAddr>().ok();
    let with_port = || text.parse::<std::net::SocketAddrV4>().ok().map(|address| IpAddr::V4(*address.ip()));
    plain.or_else(with_port).map(|address| address.to_canonical())
}

pub(super) fn read(field: &Field<'_>) -> Option<TrustedProxies> {
    let mut networks = Vec::new();
    for field in field.list()? {
        let Some(text) = field.text() else { continue };
        match Range::parse(&text) {
            Some(network) => networks.push(network),
            None => field.problem("expected an address or a network, such as `10.0.0.0/8` or `::1`", None),
        }
    }
    Some(TrustedProxies(networks))
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn proxies(networks: &[&str]) -> TrustedProxies {
        TrustedProxies(networks.iter().map(|text| Range::parse(text).unwrap()).collect())
    }

    #[test]
    fn networks_read_as_they_are_printed() {
        for (text, printed) in [
            ("10.0.0.0/8", Some("10.0.0.0/8")),
            ("10.1.2.3/8", Some("10.0.0.0/8")),
            ("127.0.0.1", Some("127.0.0.1/32")),
            ("0.0.0.0/0", Some("0.0.0.0/0")),
            ("::1", Some("::1/128")),
            ("fd00::/8", Some("fd00::/8")),
            ("::/0", Some("::/0")),
            ("10.0.0.0/33", None),
            ("::/129", None),
            ("10.0.0.0/", None),
            ("example.com", None),
            ("", None),
        ] {
            let network = Range::parse(text);
            assert_eq!(network.map(|network| network.to_string()).as_deref(), printed, "{text}");
        }
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        let trusted = proxies(&["10.0.0.0/8", "::1"]);
        for (peer, name, values, client) in [
            ("10.0.0.1", "x-forwarded-for", &["1.2.3.4"][..], "1.2.3.4"),
            ("::ffff:10.0.0.1", "x-forwarded-for", &["1.2.3.4"], "1.2.3.4"),
            ("9.9.9.9", "x-forwarded-for", &["1.2.3.4"], "9.9.9.9"),
            // What a client says itself comes first, and is not believed.
            ("10.0.0.1", "x-forwarded-for", &["6.6.6.6, 1.2.3.4, 10.2.2.2"], "1.2.3.4"),
            ("10.0.0.1", "x-forwarded-for", &["6.6.6.6", "1.2.3.4", "10.2.2.2"], "1.2.3.4"),
            ("10.0.0.1", "x-forwarded-for", &["10.3.3.3, 10.2.2.2"], "10.3.3.3"),
            ("10.0.0.1", "x-forwarded-for", &["1.2.3.4:5678"], "1.2.3.4"),
            ("::1", "x-forwarded-for", &["[2001:db8::7]:80"], "2001:db8::7"),
            ("::1", "x-forwarded-for", &["2001:db8::7"], "2001:db8::7"),
            ("10.0.0.1", "x-forwarded-for", &["1.2.3.4, unknown, 10.2.2.2"], "10.2.2.2"),
            ("10.0.0.1", "x-forwarded-for", &["' OR 1=1"], "10.0.0.1"),
            ("10.0.0.1", "x-forwarded-for", &[""], "10.0.0.1"),
            ("10.0.0.1", "forwarded", &["for=6.6.6.6, for=1.2.3.4;proto=https"], "1.2.3.4"),
            ("10.0.0.1", "forwarded", &["For=\"[2001:db8::7]:4711\";by=10.0.0.1"], "2001:db8::7"),
            ("10.0.0.1", "forwarded", &["for=_hidden"], "10.0.0.1"),
            ("10.0.0.1", "x-real-ip", &["1.2.3.4"], "10.0.0.1"),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            assert_eq!(trusted.client(peer.parse().unwrap(), &headers).to_string(), client, "{peer} {values:?}");
            let peer = peer.parse().unwrap();
            assert_eq!(TrustedProxies::default().client(peer, &headers), peer);
        }
    }
}
