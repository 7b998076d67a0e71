//! The places where godex listens, beside each other: two of them cannot have one address, and a start would only say that
//! it is in use.

use std::net::IpAddr;

use super::key::Keys;
use super::{AdminListen, Config, address, table};

pub(super) fn check(config: &Config, keys: &mut Keys<'_>) {
    let admin = match &config.admin.listen {
        AdminListen::Tcp(address) => Some(address.as_str()),
        AdminListen::Off | AdminListen::Unix(_) => None,
    };
    let metrics = config.metrics.listen.as_deref().filter(|_| config.metrics.enabled);
    let server = config.server.address();
    let places = [
        (admin, keys.field(&table::ADMIN_LISTEN), "admin.listen"),
        (metrics, keys.field(&table::METRICS_LISTEN), "metrics.listen"),
    ];
    let mut taken = vec![(server.as_str(), "server.port")];
    for (place, field, name) in places {
        let (Some(place), Some(field)) = (place, field) else { continue };
        match taken.iter().find(|(other, _)| collide(place, other)) {
            Some((other, whose)) => {
                let message = format!("{place} is taken by {whose}, which listens on {other}");
                field.problem(message, Some("take another port".to_owned()));
            }
            None => taken.push((place, name)),
        }
    }
}

/// Whether who listens on one of them has the other, too. What names mean is not asked for.
fn collide(one: &str, other: &str) -> bool {
    let (Some((one, port)), Some((other, other_port))) = (one.rsplit_once(':'), other.rsplit_once(':')) else {
        return false;
    };
    if port != other_port || port == "0" {
        return false;
    }
    let (one, other) = (address::unbracket(one), address::unbracket(other));
    one.eq_ignore_ascii_case(other) || covers(one, other) || covers(other, one)
}

/// Whether the first is all addresses, or a name of this machine, and the second one of them.
fn covers(host: &str, other: &str) -> bool {
    let ip = |host: &str| host.parse::<IpAddr>().ok().map(|ip| ip.to_canonical());
    match (ip(host), ip(other)) {
        // `::` is also every address of IPv4.
        (Some(all), Some(one)) if all.is_unspecified() => all.is_ipv6() || one.is_ipv4(),
        (Some(all), None) => all.is_unspecified(),
        (Some(one), Some(other)) => one == other,
        (None, Some(ip)) => address::is_localhost(host) && ip.is_loopback(),
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_had_once() {
        for (one, other, expected) in [
            ("127.0.0.1:1", "127.0.0.1:1", true),
            ("127.0.0.1:1", "127.0.0.1:2", false),
            ("127.0.0.1:0", "127.0.0.1:0", false),
            ("0.0.0.0:1", "127.0.0.1:1", true),
            ("10.0.0.1:1", "127.0.0.1:1", false),
            ("0.0.0.0:1", "[::1]:1", false),
            ("[::]:1", "127.0.0.1:1", true),
            ("[::]:1", "[::1]:1", true),
            ("[::1]:1", "127.0.0.1:1", false),
            ("[::ffff:127.0.0.1]:1", "127.0.0.1:1", true),
            ("localhost:1", "127.0.0.1:1", true),
            ("localhost:1", "10.0.0.1:1", false),
            ("localhost:1", "0.0.0.0:1", true),
            ("a.example:1", "A.example:1", true),
            ("a.example:1", "b.example:1", false),
        ] {
            assert_eq!((collide(one, other), collide(other, one)), (expected, expected), "{one} {other}");
        }
    }
}
