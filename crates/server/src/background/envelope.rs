//! A request as it waits in the store: what another process must know of it, a line, and its body.

use bytes::Bytes;
use wire::json::{ObjectWriter, Raw, Text};

use crate::access::Earlier;
use crate::caller::Caller;
use crate::client::Client;
use crate::request::RequestContext;

/// What comes out again.
#[derive(Debug)]
pub(super) struct Envelope {
    pub(super) client: Client,
    /// What it was asked for with; none where nothing had to be shown.
    pub(super) grant: Option<Earlier>,
    /// Whether the operator asked for it, who needs none.
    pub(super) operates: bool,
    /// Of the request that asked for it, for the log.
    pub(super) request_id: String,
    pub(super) body: Bytes,
}

pub(super) fn seal(context: &RequestContext, body: &Bytes) -> Bytes {
    let request_id = context.account.request_id().to_str().unwrap_or_default();
    write(&context.caller, context.caller.grant().map(|grant| grant.for_later()), request_id, body)
}

fn write(caller: &Caller, grant: Option<Earlier>, request_id: &str, body: &Bytes) -> Bytes {
    let client = caller.client();
    let mut out = Vec::with_capacity(body.len() + 128);
    let mut line = ObjectWriter::new(&mut out);
    line.text("client", client.name());
    if let Some(version) = client.version() {
        line.text("client_version", &version.to_string());
    }
    if let Some(grant) = grant {
        line.text("grant", &grant.id);
        if let Some(terms) = grant.terms {
            line.text("terms", &terms);
        }
        if let Some(mark) = grant.mark {
            line.text("mark", &mark);
        }
    }
    if caller.operates() {
        line.bool("operator", true);
    }
    line.text("request_id", request_id);
    line.end();
    out.push(b'\n');
    out.extend_from_slice(body);
    out.into()
}

/// None for what no version of this program wrote.
pub(super) fn open(sealed: &Bytes) -> Option<Envelope> {
    let end = sealed.iter().position(|byte| *byte == b'\n')?;
    let line = Raw::parse(str::from_utf8(sealed.get(..end)?).ok()?).ok()?;
    let text = |name| line.get(name).and_then(Raw::text).map(Text::decode);
    let client = Client::named(&text("client")?, text("client_version").as_deref());
    let [terms, mark] = ["terms", "mark"].map(|name| text(name).map(std::borrow::Cow::into_owned));
    let grant = text("grant").map(|id| Earlier { id: id.into_owned(), terms, mark });
    let operates = line.get("operator").is_some();
    let request_id = text("request_id")?.into_owned();
    Some(Envelope { client, grant, operates, request_id, body: sealed.slice(end + 1..) })
}

#[cfg(test)]
mod tests {
    use store::Tenant;

    use super::*;

    #[test]
    fn what_waits_comes_out_again_also_from_earlier_versions() {
        let body = Bytes::from_static(b"{\n\"model\":\"m\"}");
        for (name, version, grant) in [
            ("codex", Some("0.166.0"), None),
            ("codex", None, Some("key_1")),
            ("codex", None, Some("config:a")),
            ("other", None, Some("oidc:a\"\nb")),
        ] {
            let terms = grant.filter(|id| id.starts_with("oidc:")).map(|_| r#"{"rpm":1}"#.to_owned());
            let mark = grant.filter(|id| id.starts_with("config:")).map(|_| "0123456789abcdef".to_owned());
            let grant = grant.map(|id: &str| Earlier { id: id.to_owned(), terms, mark });
            let client = Client::named(name, version);
            let callers = [Caller::earlier(Tenant::default(), None, client), Caller::operator(client)];
            let [opened, operators] =
                callers.map(|caller| open(&write(&caller, grant.clone(), "req_1", &body)).unwrap());
            assert_eq!((&opened.grant, &operators.grant), (&grant, &grant));
            assert!(!opened.operates && operators.operates);
            let found = (opened.client.name(), opened.client.version().map(|version| version.to_string()));
            assert_eq!(found, (name, version.map(str::to_owned)));
            assert_eq!((opened.request_id.as_str(), opened.body), ("req_1", body.clone()));
        }
        let earlier = Bytes::from_static(b"{\"client\":\"codex\",\"request_id\":\"req_1\"}\n{}");
        let opened = open(&earlier).unwrap();
        assert_eq!((opened.client.name(), opened.client.version(), &*opened.body), ("codex", None, &b"{}"[..]));
        assert!(opened.grant.is_none() && !opened.operates);
        assert!(open(&Bytes::from_static(b"{}")).is_none());
    }
}
