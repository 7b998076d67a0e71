//! The end of a turn that nobody drives: its process is gone, or it was cancelled before it ran, or where it runs nobody
//! answers.

use std::sync::Arc;

use bridge::{Events, Failure, Lost, lost_terminal};
use bytes::Bytes;
use store::{Claim, EndEvents, Error, EventLimits, Status, TurnEnd};
use wire::json::Raw;

use crate::session::{Parts, Session, join, split};

const PAGE: EventLimits = EventLimits { events: 1024, bytes: 1 << 20 };

/// What becomes of it.
#[derive(Debug, Clone)]
pub(crate) enum Ending {
    Failed(Failure),
    Cancelled,
}

impl Ending {
    const fn lost(&self) -> Lost<'_> {
        match self {
            Self::Failed(failure) => Lost::Failed(failure),
            Self::Cancelled => Lost::Cancelled,
        }
    }

    const fn status(&self) -> Status {
        match self {
            Self::Failed(_) => Status::Failed,
            Self::Cancelled => Status::Cancelled,
        }
    }
}

/// Ends the turn with the items that were finished, and tells whoever waits. Without a claim, whoever runs it loses it.
pub(crate) async fn end(session: &Session, id: &str, claim: Option<Claim>, ending: Ending) -> Result<(), Error> {
    let stored = session.store().response(id).await?;
    if stored.status.is_final() {
        return Err(Error::Ended { status: stored.status });
    }
    let damaged = || Error::Corrupt(format!("response {id}").into());
    let mut begun = Vec::new();
    join(&stored, &mut begun).ok_or_else(damaged)?;
    let items = finished_items(session, id).await?;
    let write = move |ending: &Ending, first: u64, events: &mut Events| {
        lost_terminal(&begun, ending.lost(), items.iter().map(|item| &item[..]), first, events)
    };
    let object = write(&ending, 0, &mut Events::silent()).ok_or_else(damaged)?;
    let Parts { head, settings, output } = split(&object.into());
    let status = ending.status();
    let notices = session.notices(id, status, &head);
    let last = move |first| {
        let mut events = Events::frames();
        let _ = write(&ending, first, &mut events);
        events.iter().map(|(_, json)| Bytes::copy_from_slice(json)).collect()
    };
    let end = TurnEnd {
        id: id.to_owned(),
        status,
        head,
        settings,
        output,
        lease: None,
        events: Some(EndEvents::After(Arc::new(last))),
        claim,
        notices,
    };
    session.finish(end).await?;
    session.ring(id);
    Ok(())
}

/// The items that the log has as done.
async fn finished_items(session: &Session, id: &str) -> Result<Vec<Bytes>, Error> {
    let (mut items, mut after) = (Vec::new(), None);
    loop {
        let page = session.store().events_after(id, after, PAGE).await?;
        let Some(last) = page.events.last().map(|event| event.sequence) else { return Ok(items) };
        items.extend(page.events.iter().filter_map(|event| finished_item(&event.json)));
        after = Some(last);
        if !page.has_more {
            return Ok(items);
        }
    }
}

fn finished_item(event: &Bytes) -> Option<Bytes> {
    let json = Raw::parse(str::from_utf8(event).ok()?).ok()?;
    let is_done = json.get("type")?.text()?.is("response.output_item.done");
    is_done.then(|| json.get("item")).flatten().map(|item| event.slice_ref(item.as_str().as_bytes()))
}
