//! A request as it waits in the store: what another process must know of it, a line, and its body.

use bytes::Bytes;
use wire::json::{ObjectWriter, Raw, Text};

use crate::caller::ClientKind;
use crate::request::RequestContext;

/// What comes out again.
#[derive(Debug)]
pub(super) struct Envelope {
    pub(super) client: ClientKind,
    /// Of the request that asked for it, for the log.
    pub(super) request_id: String,
    pub(super) body: Bytes,
}

pub(super) fn seal(context: &RequestContext, body: &Bytes) -> Bytes {
    let mut out = Vec::with_capacity(body.len() + 128);
    let mut line = ObjectWriter::new(&mut out);
    line.text("client", context.caller.client().name());
    line.text("request_id", context.account.request_id().to_str().unwrap_or_default());
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
    let client = ClientKind::named(&text("client")?);
    Some(Envelope { client, request_id: text("request_id")?.into_owned(), body: sealed.slice(end + 1..) })
}
