//! One `response.create` from its dispatch to its end, pulled message by message. It has an account of its own, and
//! knows nothing of other lanes.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use bridge::{Events, FailureClass};
use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderMap, Method};
use wire::id::{Id, IdKind, Ids};
use wire::json::write_text;

use super::memory::RememberedTurn;
use super::request::{Create, StreamId};
use crate::account::{Account, Outcome};
use crate::app::App;
use crate::caller::Caller;
use crate::clock;
use crate::error::{ApiError, Code};
use crate::request::RequestContext;
use crate::session::{Past, Unstored};
use crate::trace::Kind;
use crate::turn::{Start, Started, Turn};

/// What every request of a WebSocket is logged as.
const PATH: &str = "/v1/responses";

/// The account of one request of a WebSocket.
pub(super) fn account(app: &App, caller: &Caller, address: Option<IpAddr>, bytes: usize, ids: &mut Ids) -> Account {
    let account = Account::open(&Method::GET, PATH, &HeaderMap::new(), &ids.make(IdKind::Request));
    account.observed_by(&app.runtime.observers);
    account.routed(PATH, caller);
    account.driven(Kind::Websocket);
    if let Some(address) = address {
        account.came_from(address);
    }
    account.received(bytes);
    account
}

/// A turn that is pulled.
pub(super) struct Running {
    pub(super) stream_id: Option<StreamId>,
    /// The response that it continues, by its id.
    pub(super) previous_response_id: Option<String>,
    /// The same, if the connection remembers it.
    pub(super) before: Option<Arc<RememberedTurn>>,
    pub(super) steps: Pin<Box<dyn Stream<Item = Step> + Send>>,
}

/// What came of pulling it.
pub(super) enum Step {
    /// The next events, one message each; with the last of them, how it ended. What is remembered of a response is
    /// known before its client can ask for it.
    Events(Vec<Bytes>, Option<Box<Ended>>),
    /// There is no response, and why. Its account is open until that is said.
    Refused(Box<ApiError>, Account),
    /// The lane is free.
    Over,
}

/// How a response ended.
pub(super) struct Ended {
    /// Whether whoever continues the same response should not try again.
    pub(super) failed: bool,
    pub(super) unstored: Option<(Id, Unstored)>,
}

impl Running {
    /// A request is dispatched: whoever asks is looked at anew, and the configuration is that of this moment.
    pub(super) fn new(
        app: &Arc<App>,
        (caller, address): (Caller, Option<IpAddr>),
        create: Create,
        before: Option<Arc<RememberedTurn>>,
    ) -> Self {
        let Create { stream_id, previous_response_id, warm_up, body, received } = create;
        let mut ids = clock::ids();
        let account = account(app, &caller, address, received, &mut ids);
        let (app, snapshot) = (Arc::clone(app), app.snapshot());
        let context = RequestContext { app, snapshot, caller, account: account.clone(), ids };
        let past = before.as_ref().map_or(Past::Stored, |before| Past::Remembered(before.history()));
        let start = Start { past, remember: true, warm_up, ..Start::default() };
        let turn = Pulled { account, sent: 0, stage: Stage::Waiting(Box::new((context, body, start))) };
        let lane = stream_id.clone();
        let steps = futures_util::stream::unfold(turn, move |turn| {
            let lane = lane.clone();
            async move { turn.step(lane.as_deref()).await }
        });
        Self { stream_id, previous_response_id, before, steps: Box::pin(steps) }
    }
}

/// A turn, and what its account is told.
struct Pulled {
    account: Account,
    sent: u64,
    stage: Stage,
}

enum Stage {
    Waiting(Box<(RequestContext, Bytes, Start)>),
    Runs(Box<Turn>),
    Over,
}

impl Pulled {
    async fn step(mut self, stream_id: Option<&str>) -> Option<(Step, Self)> {
        let mut turn = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Waiting(asked) => {
                let (context, body, start) = *asked;
                match Box::pin(begin(context, body, start)).await {
                    Ok(turn) => turn,
                    Err(error) => return Some(self.refused(error)),
                }
            }
            Stage::Runs(turn) => turn,
            Stage::Over => return None,
        };
        if let Some(events) = turn.next().await {
            let messages = messages(events, stream_id);
            self.sent += messages.iter().map(|message| message.len() as u64).sum::<u64>();
            let ended = turn.has_ended().then(|| Box::new(ended(&mut turn)));
            self.stage = Stage::Runs(turn);
            return Some((Step::Events(messages, ended), self));
        }
        self.account.delivered(self.sent, true);
        Some((Step::Over, self))
    }

    fn refused(self, error: ApiError) -> (Step, Self) {
        self.account.answered(error.status.as_u16(), Some(error.code.domain()));
        self.account.explained(&error.message);
        self.account.refused();
        (Step::Refused(Box::new(error), self.account.clone()), self)
    }
}

impl Drop for Pulled {
    /// Whoever leaves had what was said until then.
    fn drop(&mut self) {
        if self.sent > 0 {
            self.account.sent(self.sent);
        }
    }
}

/// Until an upstream answers. What is asked when the server stops at once is not answered.
async fn begin(context: RequestContext, body: Bytes, start: Start) -> Result<Box<Turn>, ApiError> {
    let (presence, account) = (Arc::clone(&context.app.runtime.presence), context.account.clone());
    let tenant = context.caller.tenant().clone();
    account.works_for(presence.enter(&tenant)?);
    let mut turn = tokio::select! {
        biased;
        () = presence.must_end(&tenant) => {
            account.ended(Outcome::Stopped);
            return Err(presence.ended());
        }
        started = Turn::start(context, body, start) => match started? {
            Started::Turn(turn) => turn,
            // Neither a background nor a key is asked for.
            Started::Background(_) | Started::Known(_) => {
                return Err(ApiError::new(Code::InvalidRequest, "This cannot be asked for over a WebSocket."));
            }
        },
    };
    account.answered(200, None);
    turn.as_frames();
    Ok(turn)
}

fn ended(turn: &mut Turn) -> Ended {
    let overloaded = |class| matches!(class, FailureClass::RateLimit | FailureClass::Overloaded);
    let failed = turn.failure().is_some_and(|failure| !overloaded(failure.class));
    Ended { failed, unstored: turn.take_unstored() }
}

/// Each event as a message; those of a named lane say which.
fn messages(events: &mut Events, stream_id: Option<&str>) -> Vec<Bytes> {
    let Some(stream_id) = stream_id else {
        let lengths: Vec<usize> = events.iter().map(|(_, json)| json.len()).collect();
        let mut all = Bytes::from(events.take());
        return lengths.into_iter().map(|length| all.split_to(length)).collect();
    };
    let named = |json: &[u8]| {
        let mut message = Vec::with_capacity(json.len() + stream_id.len() + 16);
        message.extend_from_slice(json.strip_suffix(b"}").unwrap_or(json));
        message.extend_from_slice(b",\"stream_id\":");
        write_text(&mut message, stream_id);
        message.push(b'}');
        Bytes::from(message)
    };
    let messages = events.iter().map(|(_, json)| named(json)).collect();
    events.clear();
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_a_lane_carry_its_name() {
        let mut response = bridge::ResponseWriter::new(
            Ids::new([7; 24]),
            0,
            bridge::echo(&crate::body::parse(&Bytes::from_static(b"{\"model\":\"m\"}")).unwrap()).unwrap(),
            true,
        );
        for (stream_id, end) in [(None, "}}"), (Some("a"), "},\"stream_id\":\"a\"}")] {
            let mut events = Events::frames();
            response.open(&mut events);
            let messages = messages(&mut events, stream_id);
            assert_eq!(messages.len(), 2);
            for message in &messages {
                assert!(serde_json::from_slice::<serde_json::Value>(message).is_ok());
                assert!(String::from_utf8_lossy(message).ends_with(end), "{message:?}");
            }
            assert!(events.is_empty());
        }
    }
}
