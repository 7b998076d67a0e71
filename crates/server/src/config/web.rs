//! `server.allowed_hosts` and `server.cors`: the names that godex answers to, and whose web pages may use it.

use providers::yaml::Field;
use url::Url;

use super::address;

/// The names under which this server may be asked, beside IP addresses, localhost and `server.host`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowedHosts {
    any: bool,
    /// Lower case, without a port; `*.example.com` is every name below example.com.
    names: Vec<String>,
}

impl AllowedHosts {
    /// Whether a `Host` without its port may be asked for. A web page can give any name of its own the address of
    /// this machine, but not an address, nor a localhost name.
    pub(crate) fn allow(&self, host: &str) -> bool {
        self.any || address::is_ip(host) || address::is_localhost(host) || self.lists(host)
    }

    fn lists(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.names.iter().any(|name| match name.strip_prefix('*') {
            Some(end) => host.len() > end.len() && host.ends_with(end),
            None => *name == host,
        })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.any.then_some("*").into_iter().chain(self.names.iter().map(String::as_str))
    }

    pub(super) fn with(mut self, host: &str) -> Self {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        if !self.allow(&host) {
            self.names.push(host);
        }
        self
    }
}

/// Whose web pages may call godex; nobody's by default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CorsConfig {
    /// `*`, or origins such as `https://app.example.com`.
    pub origins: Vec<String>,
}

impl CorsConfig {
    pub(crate) fn allow(&self, origin: &str) -> bool {
        self.origins.iter().any(|allowed| allowed == "*" || allowed.eq_ignore_ascii_case(origin))
    }
}

pub(super) fn allowed_hosts(field: &Field<'_>) -> Option<AllowedHosts> {
    let mut hosts = AllowedHosts::default();
    for field in field.list()? {
        let Some(name) = field.text() else { continue };
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        if name == "*" {
            hosts.any = true;
        } else if is_name(name.strip_prefix("*.").unwrap_or(&name)) {
            hosts.names.push(name);
        } else {
            let help = "such as `godex.example.com`, `*.example.com` or `'*'`; no scheme and no port";
            field.problem("expected the name of a host", Some(help.to_owned()));
        }
    }
    Some(hosts)
}

fn is_name(text: &str) -> bool {
    let label = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty() && !text.starts_with('.') && !text.contains("..") && text.chars().all(label)
}

pub(super) fn cors(field: &Field<'_>) -> Option<CorsConfig> {
    Some(CorsConfig { origins: field.list()?.iter().filter_map(origin).collect() })
}

/// As browsers write it: a scheme, a host, and a port that is not the scheme's own.
fn origin(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    if text == "*" {
        return Some(text);
    }
    let bare = |url: &Url| {
        matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none() && url.username().is_empty()
    };
    let url = Url::parse(&text).ok().filter(|url| url.has_host() && bare(url));
    let Some(url) = url else {
        let help = "such as `https://app.example.com`, `http://localhost:3000` or `'*'`";
        field.problem("expected the origin of a web page", Some(help.to_owned()));
        return None;
    };
    let origin = url.origin();
    // Those of desktop applications (`tauri://localhost`) have no origin that the URL standard knows.
    Some(if origin.is_tuple() { origin.ascii_serialization() } else { text.trim_end_matches('/').to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_localhost_are_asked_for_by_no_trick() {
        let hosts = AllowedHosts { any: false, names: vec!["godex.example.com".into(), "*.inner.example".into()] };
        for (host, allowed) in [
            ("127.0.0.1", true),
            ("[::1]", true),
            ("192.168.1.4", true),
            ("localhost", true),
            ("LOCALHOST.", true),
            ("app.localhost", true),
            ("godex.example.com", true),
            ("Godex.Example.COM.", true),
            ("a.inner.example", true),
            ("inner.example", false),
            ("evil.example", false),
            ("godex.example.com.evil.example", false),
            ("notlocalhost", false),
            ("127.0.0.1.evil.example", false),
            ("", false),
        ] {
            assert_eq!(hosts.allow(host), allowed, "{host}");
        }
        assert!(AllowedHosts { any: true, names: Vec::new() }.allow("evil.example"));
    }
}
