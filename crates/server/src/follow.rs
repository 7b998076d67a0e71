//! Following one stream from any of its events on, to its end, as server-sent events.

use std::sync::Arc;
use std::time::Duration;

use bridge::Events;
use bytes::Bytes;
use futures_util::Stream;
use store::{EventLimits, EventPage, Log};
use tokio::sync::watch;
use tokio::time::Instant;
use wire::json::{Raw, Text};

use crate::app::App;
use crate::jobs::Jobs;
use crate::live::{Channel, Newest};
use crate::session::{Session, join};
use crate::stop::{Phase, Stop};

/// What is read and sent in one go.
const PAGE: EventLimits = EventLimits { events: 512, bytes: 64 << 10 };

/// How often the log is looked at while the bell is silent: it may ring in another process, unheard.
const LOOK: Duration = Duration::from_millis(250);
const LOOK_SELDOM: Duration = Duration::from_secs(1);

/// How long a store that does not answer is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// One reader of one stream.
#[derive(Debug)]
pub(crate) struct Follower {
    session: Session,
    response: String,
    channel: Arc<Channel>,
    bell: watch::Receiver<()>,
    jobs: Arc<Jobs>,
    stop: Arc<Stop>,
    stopping: watch::Receiver<Phase>,
    heartbeat: Duration,
    /// The number of the event that is wanted next.
    next: u64,
    /// When the reader was last sent something.
    spoke: Instant,
    look: Duration,
    over: bool,
}

impl Follower {
    /// Follows the stream of that response from this event on.
    pub(crate) fn new(app: &App, session: Session, response: &str, next: u64) -> Self {
        let runtime = &app.runtime;
        let channel = runtime.live.channel(response);
        Self {
            session,
            response: response.to_owned(),
            bell: channel.bell(),
            channel,
            jobs: Arc::clone(&runtime.jobs),
            stop: Arc::clone(&runtime.stop),
            stopping: runtime.stop.subscribe(),
            heartbeat: app.snapshot().config.server.heartbeat,
            next,
            spoke: Instant::now(),
            look: LOOK,
            over: false,
        }
    }

    /// As the body of an answer.
    pub(crate) fn into_stream(self) -> impl Stream<Item = Bytes> + Send {
        futures_util::stream::unfold(Box::new(self), |mut follower| async move {
            follower.next().await.map(|bytes| (bytes, follower))
        })
    }

    /// The next events, and what ends the stream after the last one. None at the end, and when the rest cannot be had: then
    /// it can be asked for again.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.over {
                return None;
            }
            // Looked at before the events: what runs here has logged its last ones when it is not here any more.
            let runs_here = self.jobs.find(&self.response).is_some();
            // What rings from here on is not missed.
            self.bell.mark_unchanged();
            let (events, over) = match self.channel.from(self.next, PAGE.bytes) {
                Newest::Events(events, over) => (events, over),
                Newest::Unknown => self.read().await?,
            };
            self.over = over;
            if !events.is_empty() || over {
                self.next += events.len() as u64;
                (self.spoke, self.look) = (Instant::now(), LOOK);
                return Some(text(&events, over));
            }
            if self.stop.phase() == Phase::Now && !runs_here {
                return None;
            }
            if let Some(sign) = self.wait().await {
                return Some(sign);
            }
        }
    }

    /// Reads the log.
    async fn read(&mut self) -> Option<(Vec<Bytes>, bool)> {
        let mut silent_since = None;
        loop {
            let room = self.session.room();
            let page = self.session.reading(&room).events_after(&self.response, self.next.checked_sub(1), PAGE).await;
            match page {
                Ok(EventPage { log: Log::Dropped { last }, .. }) if self.next <= last => {
                    return Some((self.made_anew(last).await?, true));
                }
                Ok(EventPage { events, has_more, status, .. }) => {
                    let over = !has_more && status.is_final();
                    return Some((events.into_iter().map(|event| event.json).collect(), over));
                }
                // From the first answer that did not come on: a process that was stopped meanwhile has waited for nobody.
                Err(store::Error::Unavailable(_) | store::Error::NoRoom)
                    if silent_since.get_or_insert_with(Instant::now).elapsed() < PATIENCE =>
                {
                    tokio::time::sleep(LOOK).await;
                }
                // It was deleted, or nobody can tell any more.
                Err(error) => {
                    tracing::debug!(%error, response_id = self.response, "a stream cannot be followed any longer");
                    return None;
                }
            }
        }
    }

    /// The log was dropped before all of it was read: all events from the stored response, or only the last.
    async fn made_anew(&self, last: u64) -> Option<Vec<Bytes>> {
        let room = self.session.room();
        let stored = self.session.reading(&room).response(&self.response).await.ok()?;
        let (mut object, mut events) = (Vec::new(), Events::frames());
        join(&stored, &mut object)?;
        if self.next == 0 {
            bridge::replay(&object, &mut events)?;
        } else {
            bridge::replay_terminal(&object, last, &mut events)?;
        }
        Some(events.iter().map(|(_, json)| Bytes::copy_from_slice(json)).collect())
    }

    /// Waits until there may be more. A line that is no event, if nothing was sent for long.
    async fn wait(&mut self) -> Option<Bytes> {
        let beat = self.spoke + self.heartbeat;
        let look = Instant::now() + self.look;
        tokio::select! {
            // It never ends: we hold the channel.
            _ = self.bell.changed() => self.look = LOOK,
            _ = self.stopping.changed() => {}
            () = tokio::time::sleep_until(look.min(beat)) => self.look = (self.look * 2).min(LOOK_SELDOM),
        }
        (Instant::now() >= beat).then(|| {
            self.spoke = Instant::now();
            Bytes::from_static(b": heartbeat\n\n")
        })
    }
}

/// Events as they are sent.
fn text(events: &[Bytes], over: bool) -> Bytes {
    let mut out = Vec::with_capacity(events.iter().map(|event| event.len() + 64).sum::<usize>() + 16);
    for event in events {
        // It was valid when it was logged.
        let json = str::from_utf8(event).map_or(Raw::NULL, Raw::ours);
        let kind = json.get("type").and_then(Raw::text).map(Text::decode).unwrap_or_default();
        out.extend_from_slice(b"event: ");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b"\ndata: ");
        out.extend_from_slice(event);
        out.extend_from_slice(b"\n\n");
    }
    if over {
        out.extend_from_slice(wire::sse::DONE);
    }
    out.into()
}
