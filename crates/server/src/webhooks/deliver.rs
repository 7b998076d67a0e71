//! Telling what is to be told: a few at once, again later where it did not work, and not for ever.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::StatusCode;
use store::{Error, Notice, Store};
use tokio::time::{Instant, sleep_until};
use url::Url;
use wire::json::{Raw, Text};

use super::Webhooks;
use super::send::send;
use crate::config::WebhookConfig;
use crate::outbound::Outbound;

/// Told at the same time.
const AT_ONCE: usize = 8;
/// For so long a notice is this process's alone. Longer than a try and what is stored after it can take.
const LEASE: Duration = Duration::from_mins(1);
/// How often it is looked for what others left, or what was put off before this process began.
const LOOK: Duration = Duration::from_secs(5);
/// The same where nobody is to be told of anything new.
const SELDOM: Duration = Duration::from_mins(10);

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
/// The waits between tries, in seconds: nearly a day.
const WAITS: [u64; 9] = [5, 30, 2 * MINUTE, 10 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR, 6 * HOUR, 10 * HOUR];
/// The try with which one is given up that is for nobody: another instance may have a newer configuration, for a while.
const LAST_FOR_NOBODY: u32 = 5;

/// What came of one try.
#[derive(Debug)]
enum Tried {
    Answered(StatusCode),
    Failed(String),
    /// The configuration has no such webhook.
    Nobody,
}

/// What becomes of a notice.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Delivered,
    Again(Duration),
    GivenUp,
}

impl Tried {
    fn fate(&self, tries: u32) -> Fate {
        match self {
            Self::Answered(status) if status.is_success() => Fate::Delivered,
            Self::Answered(StatusCode::GONE) => Fate::GivenUp,
            Self::Nobody if tries >= LAST_FOR_NOBODY => Fate::GivenUp,
            _ => {
                let wait = usize::try_from(tries).ok().and_then(|tries| WAITS.get(tries.saturating_sub(1)));
                wait.map_or(Fate::GivenUp, |seconds| Fate::Again(Duration::from_secs(*seconds)))
            }
        }
    }

    fn reason(&self) -> String {
        match self {
            Self::Answered(status) => format!("it answered {}", status.as_u16()),
            Self::Failed(reason) => reason.clone(),
            Self::Nobody => "it is not in the configuration".to_owned(),
        }
    }
}

/// What is under way.
type Doing<'w> = Pin<Box<dyn Future<Output = Done> + Send + 'w>>;

enum Done {
    Looked(Look),
    /// A try is over; there is another one to come then.
    Tried(Option<Instant>),
}

struct Look {
    found: Result<Vec<Notice>, Error>,
    /// So many it might have found.
    most: usize,
    began: Instant,
}

/// Runs for as long as the server does. Dropped, it leaves what it was telling to be told again.
pub(crate) async fn deliver(webhooks: Arc<Webhooks>) {
    let outbound = Outbound::default();
    let mut under_way: FuturesUnordered<Doing<'_>> = FuturesUnordered::new();
    let (mut telling, mut looking, mut look_at) = (0, false, Instant::now());
    // When the first of those is due that this process has put off.
    let mut due: Option<Instant> = None;
    loop {
        let may_look = !looking && telling < AT_ONCE;
        tokio::select! {
            Some(done) = under_way.next() => match done {
                Done::Looked(Look { found, most, began }) => {
                    let found = found.unwrap_or_else(|error| {
                        tracing::warn!(%error, "it cannot be looked for what webhooks are to be sent");
                        Vec::new()
                    });
                    looking = false;
                    telling += found.len();
                    // There may be more where these come from.
                    let pause = if found.len() < most { webhooks.pause() } else { Duration::ZERO };
                    due = due.filter(|due| *due > began);
                    look_at = earlier(due, Instant::now() + pause);
                    under_way.extend(found.into_iter().map(|notice| -> Doing<'_> {
                        Box::pin(async { Done::Tried(tell(&webhooks, &outbound, notice).await) })
                    }));
                }
                Done::Tried(again) => {
                    telling -= 1;
                    due = again.map(|again| earlier(due, again)).or(due);
                    look_at = earlier(due, look_at);
                }
            },
            () = webhooks.wake.notified(), if may_look => look_at = Instant::now(),
            () = sleep_until(look_at), if may_look => {
                looking = true;
                under_way.push(Box::pin(look(&webhooks.store, AT_ONCE - telling)));
            }
        }
    }
}

fn earlier(one: Option<Instant>, other: Instant) -> Instant {
    one.map_or(other, |one| one.min(other))
}

async fn look(store: &Store, most: usize) -> Done {
    let began = Instant::now();
    Done::Looked(Look { found: store.due_notices(most, LEASE).await, most, began })
}

impl Webhooks {
    fn pause(&self) -> Duration {
        if self.endpoints().is_empty() { SELDOM } else { LOOK }
    }
}

/// Tries to tell it, and stores what came of that. When it is due again, if it is.
async fn tell(webhooks: &Webhooks, outbound: &Outbound, notice: Notice) -> Option<Instant> {
    let endpoints = webhooks.endpoints();
    let tried = match endpoints.iter().find(|endpoint| endpoint.url == notice.endpoint) {
        Some(endpoint) => try_once(outbound, endpoint, &notice).await,
        None => Tried::Nobody,
    };
    let fate = tried.fate(notice.tries);
    tell_operator(&notice, &tried, &fate);
    let (stored, again) = match fate {
        Fate::Delivered | Fate::GivenUp => (webhooks.store.notice_done(&notice).await, None),
        Fate::Again(wait) => (webhooks.store.notice_retry(&notice, wait).await, Some(Instant::now() + wait)),
    };
    if let Err(error) = stored {
        tracing::warn!(webhook_id = notice.id, %error, "what became of a webhook cannot be stored: it may be sent again");
    }
    again
}

async fn try_once(outbound: &Outbound, endpoint: &WebhookConfig, notice: &Notice) -> Tried {
    match send(outbound, endpoint, &notice.id, notice.body.clone()).await {
        Ok(status) => Tried::Answered(status),
        Err(reason) => Tried::Failed(reason),
    }
}

fn tell_operator(notice: &Notice, tried: &Tried, fate: &Fate) {
    let (webhook_id, tries) = (&notice.id, notice.tries);
    let response_id = response_id(&notice.body).unwrap_or_default();
    // The rest of a URL may be known to its owner only.
    let to = Url::parse(&notice.endpoint).map(|url| url.origin().ascii_serialization()).unwrap_or_default();
    match fate {
        Fate::Delivered => tracing::info!(webhook_id, response_id, to, tries, "a webhook was delivered"),
        Fate::Again(wait) => {
            let (reason, seconds) = (tried.reason(), wait.as_secs());
            tracing::info!(webhook_id, response_id, to, tries, reason, seconds, "a webhook will be sent again");
        }
        Fate::GivenUp => {
            let reason = tried.reason();
            tracing::warn!(webhook_id, response_id, to, tries, reason, "a webhook was given up");
        }
    }
}

fn response_id(body: &[u8]) -> Option<String> {
    let event = Raw::parse(str::from_utf8(body).ok()?).ok()?;
    event.get("data")?.get("id")?.text().map(Text::decode).map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_are_ten_within_a_day_and_then_no_more() {
        let waits = |tried: &Tried| {
            let fates = (1..).map(|tries| tried.fate(tries));
            let waits: Vec<u64> = fates
                .map_while(|fate| match fate {
                    Fate::Again(wait) => Some(wait.as_secs()),
                    Fate::GivenUp | Fate::Delivered => None,
                })
                .collect();
            (waits.len(), waits.iter().sum::<u64>(), waits.first().copied())
        };
        let day = 5 + 30 + 120 + 600 + 23 * HOUR;
        for tried in [
            Tried::Failed(String::new()),
            Tried::Answered(StatusCode::INTERNAL_SERVER_ERROR),
            Tried::Answered(StatusCode::FOUND),
            Tried::Answered(StatusCode::NOT_FOUND),
            Tried::Answered(StatusCode::TOO_MANY_REQUESTS),
        ] {
            assert_eq!(waits(&tried), (9, day, Some(5)), "{tried:?}");
            assert_eq!((tried.fate(10), tried.fate(u32::MAX)), (Fate::GivenUp, Fate::GivenUp));
        }
        assert_eq!(waits(&Tried::Nobody), (4, 5 + 30 + 120 + 600, Some(5)), "somebody else may know it");
        for (status, fate) in [(200, Fate::Delivered), (204, Fate::Delivered), (410, Fate::GivenUp)] {
            assert_eq!(Tried::Answered(StatusCode::from_u16(status).unwrap()).fate(1), fate);
        }
    }
}
