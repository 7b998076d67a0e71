//! The end of a response whose writer is gone: its process died, or it was cancelled where nobody worked on it.

use wire::responses::{EventKind, Status};

use super::{parse, with};
use crate::events::Events;
use crate::failure::Failure;

/// What became of it.
#[derive(Debug, Clone, Copy)]
pub enum Lost<'a> {
    Failed(&'a Failure),
    Cancelled,
}

/// Ends a response of which the object is stored as it was when it began. Its output are the items that were finished.
/// Gives the object at its end; the events are its terminal one, from this number on, and `error` before it for a
/// failure. None, and no event, for what is no object of a response that is under way.
pub fn lost_terminal<'i>(
    object: &[u8],
    end: Lost<'_>,
    finished_items: impl IntoIterator<Item = &'i [u8]>,
    mut sequence: u64,
    out: &mut Events,
) -> Option<Vec<u8>> {
    let object = parse(object)?;
    let status = object.get("status")?.text()?;
    if ![Status::Queued, Status::InProgress].iter().any(|known| status.is(known.name())) {
        return None;
    }
    let mut output = vec![b'['];
    for item in finished_items {
        if output.len() > 1 {
            output.push(b',');
        }
        output.extend_from_slice(item);
    }
    output.push(b']');
    let (status, error) = match end {
        Lost::Failed(failure) => (Status::Failed, Some(failure.response_error())),
        Lost::Cancelled => (Status::Cancelled, None),
    };
    let mut shown = Vec::new();
    match &error {
        Some(error) => error.write(&mut shown),
        None => shown.extend_from_slice(b"null"),
    }
    let mut ended = Vec::with_capacity(object.as_str().len() + output.len() + shown.len());
    let status_name = format!("\"{}\"", status.name());
    let last =
        [("status", &*status_name), ("error", str::from_utf8(&shown).ok()?), ("output", str::from_utf8(&output).ok()?)];
    with(object, &last, &[], &mut ended);
    if let Some(error) = &error {
        out.error(error, &mut sequence);
    }
    out.terminal(status, &mut sequence, &ended);
    Some(ended)
}

/// The item in an `output_item.done` event as a log has it; none in any other event.
pub fn finished_item(kind: EventKind, event: &[u8]) -> Option<&[u8]> {
    let event = (kind == EventKind::OutputItemDone).then(|| parse(event)).flatten()?;
    event.get("item").map(|item| item.as_str().as_bytes())
}
