//! `webhooks`: who is told when a background response has ended, of which ends, and what that is signed with.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use providers::yaml::Field;
use store::Tenant;
use url::{Host, Url};

use super::{address, print};

/// Shorter ones could be guessed from what they have signed.
const SHORTEST_KEY: usize = 24;
/// What a key in base64 begins with.
const IN_BASE64: &str = "whsec_";

/// Somebody who wants to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookConfig {
    /// As the URL standard writes it; no other one has the same.
    pub url: String,
    pub key: SigningKey,
    /// Of what; not empty.
    pub events: Vec<WebhookEvent>,
    /// Of whose responses, by the tenants' names; of everybody's if None, else not empty.
    pub tenants: Option<Vec<String>>,
    /// Whether it may be on this machine or network, and may be told without encryption.
    pub allow_private: bool,
}

impl WebhookConfig {
    /// Whether it is told of this end of a response of this tenant.
    pub(crate) fn wants(&self, event: WebhookEvent, tenant: &Tenant) -> bool {
        let theirs = self.tenants.as_ref().is_none_or(|tenants| tenants.iter().any(|name| name == tenant.name()));
        theirs && self.events.contains(&event)
    }
}

/// An end of a background response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookEvent {
    Completed,
    Failed,
    Incomplete,
    Cancelled,
}

impl WebhookEvent {
    pub const ALL: &'static [Self] = &[Self::Completed, Self::Failed, Self::Incomplete, Self::Cancelled];

    /// Its `type` on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Completed => "response.completed",
            Self::Failed => "response.failed",
            Self::Incomplete => "response.incomplete",
            Self::Cancelled => "response.cancelled",
        }
    }
}

/// What webhooks are signed with. Only [`SigningKey::expose`] gives it away.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKey(Vec<u8>);

impl SigningKey {
    /// As Standard Webhooks write it (`whsec_` and base64), or any other text as it is.
    fn of(text: &str) -> Result<Self, &'static str> {
        let key = match text.strip_prefix(IN_BASE64) {
            Some(base64) => STANDARD.decode(base64).map_err(|_| "expected base64 after `whsec_`")?,
            None => text.as_bytes().to_vec(),
        };
        if key.len() < SHORTEST_KEY {
            return Err("expected at least 24 characters, or `whsec_` and at least 24 bytes as base64");
        }
        Ok(Self(key))
    }

    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

pub(super) fn read(field: &Field<'_>) -> Vec<WebhookConfig> {
    let mut all: Vec<WebhookConfig> = Vec::new();
    for field in field.list().unwrap_or_default() {
        let Some((webhook, url)) = webhook(field) else { continue };
        if all.iter().any(|other| other.url == webhook.url) {
            // It is by its URL that the key of a webhook is found again after a restart.
            url.problem("there is another webhook with this URL", Some("list all its `events` in one".to_owned()));
        }
        all.push(webhook);
    }
    all
}

fn webhook(field: Field<'_>) -> Option<(WebhookConfig, Field<'_>)> {
    let mut section = field.section()?;
    let [url_field, secret] = ["url", "secret"].map(|name| {
        let field = section.field(name);
        if field.is_none() {
            section.problem(format!("needs `{name}`"), None);
        }
        field
    });
    let events = section.read("events", events);
    let tenants = section.read("tenants", tenants);
    let allow_private = section.read("allow_private", Field::boolean).unwrap_or(false);
    section.finish();
    let key = secret.and_then(|field| key(&field));
    let url_field = url_field?;
    let url = match url(&url_field.text()?, allow_private) {
        Ok(url) => url,
        Err((message, help)) => {
            url_field.problem(message, help.map(str::to_owned));
            return None;
        }
    };
    let events = events.unwrap_or_else(|| WebhookEvent::ALL.to_vec());
    Some((WebhookConfig { url, key: key?, events, tenants, allow_private }, url_field))
}

fn events(field: &Field<'_>) -> Option<Vec<WebhookEvent>> {
    let list = field.list()?;
    if list.is_empty() {
        field.problem("expected at least one event", None);
    }
    let event = |field: &Field<'_>| field.choice(WebhookEvent::ALL, WebhookEvent::name);
    Some(list.iter().filter_map(event).collect())
}

fn tenants(field: &Field<'_>) -> Option<Vec<String>> {
    let list = field.list()?;
    if list.is_empty() {
        field.problem("expected at least one tenant", Some("leave it out to be told of everybody's".to_owned()));
    }
    Some(list.iter().filter_map(Field::text).collect())
}

fn key(field: &Field<'_>) -> Option<SigningKey> {
    let help = || Some("`echo whsec_$(openssl rand -base64 32)` makes one".to_owned());
    SigningKey::of(&field.text()?).map_err(|message| field.problem(message, help())).ok()
}

/// Problems do not quote the URL, because it may hold a password or a token.
fn url(text: &str, allow_private: bool) -> Result<String, (&'static str, Option<&'static str>)> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let Some((url, host)) = url.as_ref().and_then(|url| Some((url, url.host()?))) else {
        return Err(("must be a URL such as https://hooks.example.com/godex", None));
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err(("must not hold a user or a password", Some("receivers check the signature")));
    }
    if url.fragment().is_some() {
        return Err(("must not have a fragment, because that is never sent", None));
    }
    let is_public = match host {
        Host::Ipv4(v4) => address::is_public(v4.into()),
        Host::Ipv6(v6) => address::is_public(v6.into()),
        Host::Domain(name) => !address::is_localhost(name),
    };
    if !is_public && !allow_private {
        let help = "set `allow_private: true` if that is meant";
        return Err(("is on this machine or a private network", Some(help)));
    }
    if url.scheme() == "http" && !allow_private {
        return Err(("must be https", Some("plain http is for receivers with `allow_private: true`")));
    }
    Ok(url.as_str().to_owned())
}

/// As a comment: without its secret, which is not printed, a webhook cannot be read again.
pub(super) fn print(webhooks: &[WebhookConfig]) -> Option<String> {
    let line = |webhook: &WebhookConfig| {
        let WebhookConfig { url, events, tenants, allow_private, .. } = webhook;
        let events = print::list(events.iter().map(|event| event.name()));
        let tenants = tenants.as_ref().map(|tenants| print::list(tenants.iter().map(String::as_str)));
        let tenants = tenants.map(|tenants| format!("tenants: {tenants}, ")).unwrap_or_default();
        format!(
            "\n# - {{url: {}, secret: <redacted>, events: {events}, {tenants}allow_private: {allow_private}}}",
            print::quote(url)
        )
    };
    (!webhooks.is_empty()).then(|| webhooks.iter().map(line).collect())
}

#[cfg(test)]
mod tests {
    use providers::yaml::{Document, Reader};

    use super::*;

    const SECRET: &str = "a secret of 24 characters, or more";

    fn read_text(text: &str) -> (Vec<WebhookConfig>, Vec<String>) {
        let document = Document::parse("godex.yaml", text).unwrap();
        let env = |name: &str| (name == "SECRET").then(|| SECRET.to_owned());
        let reader = Reader::new(&document, &env);
        let mut root = reader.root();
        let webhooks = root.field("webhooks").map(|field| read(&field)).unwrap_or_default();
        root.finish();
        (webhooks, reader.finish().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn what_is_not_said_is_the_usual() {
        let text = "webhooks:\n- {url: 'https://hooks.example.com/a?b=c', secret: '${SECRET}'}\n- url: http://127.1:9/x\n  \
                    secret: whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3\n  events: [response.failed]\n  allow_private: true\n";
        let (webhooks, problems) = read_text(text);
        assert_eq!(problems, Vec::<String>::new());
        let [first, second] = &webhooks[..] else { panic!("{webhooks:?}") };
        assert_eq!((first.url.as_str(), first.allow_private), ("https://hooks.example.com/a?b=c", false));
        assert_eq!((first.key.expose(), first.events.as_slice()), (SECRET.as_bytes(), WebhookEvent::ALL));
        assert_eq!((second.url.as_str(), second.allow_private), ("http://127.0.0.1:9/x", true));
        let (key, events) = (b"0123456789abcdef01234567", [WebhookEvent::Failed]);
        assert_eq!((second.key.expose(), second.events.as_slice()), (&key[..], &events[..]));
        let shown = format!("{webhooks:?}{}", print(&webhooks).unwrap());
        for secret in [SECRET, "0123456789abcdef", "MDEyMzQ1"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        assert!(print(&webhooks).unwrap().lines().skip(1).all(|line| line.starts_with("# - {url: ")), "{shown}");
        assert_eq!(print(&[]), None);
    }

    #[test]
    fn a_webhook_is_told_of_its_events_and_of_its_tenants_responses() {
        let text = "webhooks:\n- {url: 'https://a.example', secret: '${SECRET}', events: [response.failed], tenants: [one, two]}\n\
                    - {url: 'https://b.example', secret: '${SECRET}'}\n";
        let (webhooks, problems) = read_text(text);
        assert_eq!(problems, Vec::<String>::new());
        let wants = |at: usize, event, tenant| webhooks[at].wants(event, &Tenant::new(tenant));
        for (event, tenant, expected) in [
            (WebhookEvent::Failed, "one", [true, true]),
            (WebhookEvent::Failed, "two", [true, true]),
            (WebhookEvent::Failed, "three", [false, true]),
            (WebhookEvent::Failed, "default", [false, true]),
            (WebhookEvent::Failed, "On", [false, true]),
            (WebhookEvent::Completed, "one", [false, true]),
        ] {
            assert_eq!([wants(0, event, tenant), wants(1, event, tenant)], expected, "{event:?} {tenant}");
        }
        assert!(print(&webhooks).unwrap().contains("tenants: [one, two], allow_private"), "{:?}", print(&webhooks));
    }

    #[test]
    fn mistakes_are_told_with_their_line_and_without_the_secret() {
        let with = |url: &str| format!("{{url: '{url}', secret: '${{SECRET}}'}}");
        let at = |url: &str, more: &str| format!("{{url: '{url}', secret: '${{SECRET}}', {more}}}");
        let keyed = |secret: &str| format!("{{url: 'https://a.example', secret: '{secret}'}}");
        for (entry, expected) in [
            ("{url: 'https://a.example'}".to_owned(), "godex.yaml:2:3: webhooks[0]: needs `secret`"),
            ("{secret: '${SECRET}'}".to_owned(), "godex.yaml:2:3: webhooks[0]: needs `url`"),
            ("https://a.example".to_owned(), "webhooks[0]: expected a mapping"),
            (with("hooks.example.com"), "godex.yaml:2:9: webhooks[0].url: must be a URL such as"),
            (with("ftp://hooks.example.com"), "webhooks[0].url: must be a URL such as"),
            (with("https://u:p@a.example"), "webhooks[0].url: must not hold a user or a password"),
            (with("https://a.example/#x"), "webhooks[0].url: must not have a fragment"),
            (with("http://a.example"), "webhooks[0].url: must be https"),
            (with("https://127.0.0.1/"), "webhooks[0].url: is on this machine or a private network"),
            (with("https://0x7f000001/"), "webhooks[0].url: is on this machine"),
            (with("https://[::ffff:10.0.0.1]/"), "webhooks[0].url: is on this machine"),
            (with("https://169.254.169.254/"), "webhooks[0].url: is on this machine"),
            (with("https://localhost:8443/"), "webhooks[0].url: is on this machine"),
            (keyed("too short"), "webhooks[0].secret: expected at least 24 characters"),
            (keyed("whsec_dG9vIHNob3J0"), "webhooks[0].secret: expected at least 24 characters"),
            (keyed("whsec_not base64, and still long enough"), "webhooks[0].secret: expected base64 after `whsec_`"),
            (keyed("${NOT_SET}"), "webhooks[0].secret: the environment variable NOT_SET is not set"),
            (at("https://a.example", "tenants: []"), "webhooks[0].tenants: expected at least one tenant"),
            (at("https://a.example", "events: []"), "webhooks[0].events: expected at least one event"),
            (
                at("https://a.example", "events: [response.complete]"),
                "webhooks[0].events[0]: expected one of `response.completed`, `response.failed`, `response.incomplete`, \
                 `response.cancelled`, found `response.complete`",
            ),
            (at("https://a.example", "event: []"), "webhooks[0]: unknown key `event`; did you mean `events`?"),
        ] {
            let (_, problems) = read_text(&format!("webhooks:\n- {entry}\n"));
            assert!(problems.len() == 1 && problems[0].contains(expected), "{entry}: {problems:?}");
            assert!(problems[0].starts_with("godex.yaml:2:"), "{problems:?}");
            for secret in [SECRET, "too short", "dG9v", "not base64", "u:p@"] {
                assert!(!problems[0].contains(secret), "{problems:?}");
            }
        }
        let twice = format!("webhooks:\n- {}\n- {}\n", with("https://a.example"), with("https://A.example/"));
        assert!(read_text(&twice).1[0].starts_with("godex.yaml:3:9: webhooks[1].url: there is another webhook"));
    }
}
