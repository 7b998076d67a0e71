//! The end of a response whose writer is gone: its process died, or it was cancelled where nobody worked on it.

use wire::json::Raw;
use wire::responses::Status;

use super::{parse, with};
use crate::events::Events;
use crate::failure::Failure;

/// What became of it.
#[derive(Debug, Clone, Copy)]
pub enum Lost<'a> {
    Failed(&'a Failure),
    Cancelled,
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
