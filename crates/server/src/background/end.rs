//! The end of a turn that nobody drives: its process is gone, or it was cancelled before it ran, or where it runs nobody
//! answers.

use bridge::{Events, Failure, LoggedItems, Lost};
use store::{Claim, Error, EventLimits, Log, Status, TurnEnd};

use crate::session::{Parts, Session, join, split};
use crate::turn::pending;

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

/// Ends the turn with what its log has of it, and tells whoever waits. Without a claim, whoever runs it loses it.
pub(crate) async fn end(session: &Session, id: &str, claim: Option<Claim>, ending: Ending) -> Result<(), Error> {
    loop {
        match try_end(session, id, claim.clone(), &ending).await {
            // Whoever runs it has said more since we read its log.
            Err(Error::OutOfOrder { .. }) => {}
            ended => {
                session.ring(id);
                return ended;
            }
        }
    }
}

async fn try_end(session: &Session, id: &str, claim: Option<Claim>, ending: &Ending) -> Result<(), Error> {
    let stored = session.store().response(id).await?;
    if stored.status.is_final() {
        return Err(Error::Ended { status: stored.status });
    }
    let damaged = || Error::Corrupt(format!("response {id}").into());
    let mut begun = Vec::new();
    join(&stored, &mut begun).ok_or_else(damaged)?;
    let (items, next) = logged(session, id).await?;
    let mut events = if next.is_some() { Events::frames() } else { Events::silent() };
    let object = items.end(&begun, ending.lost(), next.unwrap_or(0), &mut events).ok_or_else(damaged)?;
    let Parts { head, settings, output } = split(&object.into(), &[]);
    let status = ending.status();
    let notices = session.notices(id, status, &head);
    let end = TurnEnd {
        id: id.to_owned(),
        status,
        head,
        settings,
        output,
        lease: None,
        events: pending(&events),
        claim,
        notices,
    };
    session.finish(end).await
}

/// The items in the log, and the number with which it goes on; none without a log.
async fn logged(session: &Session, id: &str) -> Result<(LoggedItems, Option<u64>), Error> {
    let (mut items, mut next) = (LoggedItems::default(), 0);
    loop {
        let page = session.store().events_after(id, u64::checked_sub(next, 1), PAGE).await?;
        if page.log != Log::Kept {
            return Ok((items, None));
        }
        for event in &page.events {
            items.event(&event.json);
            next = event.sequence + 1;
        }
        if !page.has_more {
            return Ok((items, Some(next)));
        }
    }
}
