//! The end of a response whose writer is gone: its process died, or it was cancelled where nobody worked on it.

use wire::json::Raw;
use wire::responses::Status;

use super::{parse, with};
use crate::events::Events;
use crate::failure::Failure;
use crate::json::join;

/// What became of it.
#[derive(Debug, Clone, Copy)]
pub enum Lost<'a> {
    Failed(&'a Failure),
    Cancelled,
}

/// Ends a response of which the object is stored as it was when it began. Its output are the items that were finished; a
/// log may know of one more ([`LoggedItems`](super::LoggedItems)). Gives the object at its end; the events are its
/// terminal one, from this number on, and `error` before it for a failure. None, and no event, for what is no object of a
/// response that is under way.
pub fn lost_terminal<'i>(
    object: &[u8],
    lost: Lost<'_>,
    finished_items: impl IntoIterator<Item = &'i [u8]>,
    sequence: u64,
    out: &mut Events,
) -> Option<Vec<u8>> {
    let mut items = Vec::new();
    for item in finished_items {
        join(&mut items, item);
    }
    lost.end(under_way(object)?, &items, sequence, out)
}

/// The object of a response that has not ended.
pub(super) fn under_way(object: &[u8]) -> Option<Raw<'_>> {
    let object = parse(object)?;
    let status = object.get("status")?.text()?;
    [Status::Queued, Status::InProgress].iter().any(|known| status.is(known.name())).then_some(object)
}

impl Lost<'_> {
    /// `items`: JSON, comma between them.
    pub(super) fn end(self, object: Raw<'_>, items: &[u8], mut sequence: u64, out: &mut Events) -> Option<Vec<u8>> {
        let (status, error) = match self {
            Self::Failed(failure) => (Status::Failed, Some(failure.response_error())),
            Self::Cancelled => (Status::Cancelled, None),
        };
        let mut shown = Vec::new();
        match &error {
            Some(error) => error.write(&mut shown),
            None => shown.extend_from_slice(b"null"),
        }
        let (status_name, output) = (format!("\"{}\"", status.name()), format!("[{}]", str::from_utf8(items).ok()?));
        let last = [("status", &*status_name), ("error", str::from_utf8(&shown).ok()?), ("output", &*output)];
        let mut ended = Vec::with_capacity(object.as_str().len() + output.len() + shown.len());
        with(object, &last, &[], &mut ended);
        if let Some(error) = &error {
            out.error(error, &mut sequence);
        }
        out.terminal(status, &mut sequence, &ended);
        Some(ended)
    }
}
