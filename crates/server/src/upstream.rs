//! Calls to providers: one pooled client for each, deadlines by phase, retries and other targets before anything was
//! answered; nothing decided about compatibility.

mod address;
mod affinity;
mod breaker;
mod budget;
mod client;
mod connect;
mod demo;
mod failover;
mod failure;
mod fit;
mod health;
mod keys;
mod link;
mod listing;
mod load;
mod pool;
mod provider;
mod redact;
mod refused;
mod replica;
mod replicas;
mod shards;
mod token;
mod watching;

use std::sync::Arc;
use std::time::Duration;

use bridge::{AnswerDialect, Failure, FailureClass};
use bytes::Bytes;
use http::HeaderValue;
use providers::Wire;
use tokio::time::Instant;

use crate::account::{Account, Deadline};
use crate::span::Propagated;
pub(crate) use affinity::Affinity;
pub(crate) use client::HttpClient;
pub(crate) use connect::tls_config;
use demo::Player;
pub(crate) use failover::{Failover, Learner, Step};
pub(crate) use health::ModelState;
pub(crate) use link::Link;
use listing::KnownListing;
pub(crate) use listing::{ListedModel, Listing, ask as ask_for_models};
use load::OpenRequest;
use pool::HttpBody;
pub(crate) use provider::{Connections, Provider};
pub(crate) use redact::Redactor;
pub(crate) use refused::Refused;
pub(crate) use replica::ReplicaState;
pub(crate) use replicas::{Replicas, maintain as watch_replicas};
use watching::Watching;

/// Where a provider's requests go.
#[derive(Debug)]
pub(crate) enum UpstreamClient {
    Http(Box<HttpClient>),
    /// The offline model inside this binary.
    Demo,
}

/// How long a finished answer is waited for to end: some servers keep the connection open and say no `[DONE]`.
pub(crate) const SETTLE: Duration = Duration::from_secs(2);

/// How long each phase of a call may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadlines {
    pub(crate) first_byte: Duration,
    pub(crate) idle: Duration,
    /// When the whole request must be over.
    pub(crate) until: Instant,
}

/// A request that is ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    pub(crate) wire: Wire,
    /// The model's name there: some want it in their path.
    pub(crate) model: String,
    pub(crate) body: Bytes,
    /// What is tried out with it.
    pub(crate) betas: Option<HeaderValue>,
    /// What the provider gets as the cache key, for headers that say it.
    pub(crate) cache_key: Option<String>,
    /// The trace that it belongs to.
    pub(crate) propagated: Option<Propagated>,
    /// The conversation that it belongs to, where anything depends on that.
    pub(crate) affinity: Option<Affinity>,
    /// Nobody hears that it was accepted before all of the answer is there: its first content is waited for, however
    /// late that comes.
    pub(crate) patient: bool,
    /// Learns when it goes out.
    pub(crate) account: Account,
}

/// An upstream that accepted the request: what its body is, and the body.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) format: Format,
    pub(crate) body: AnswerBody,
    /// For errors inside the body.
    pub(crate) redactor: Redactor,
    /// How long it took until there was a connection.
    pub(crate) connecting: Duration,
    /// It was sent twice: the connection that it was sent over first had ended.
    pub(crate) resent: bool,
}

/// What an answer's body is, as its content type has it. Its first bytes have the last word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Sse,
    Json,
    /// The content type does not tell: the first byte will.
    Unknown,
}

#[derive(Debug)]
pub(crate) enum AnswerBody {
    Http {
        /// Read ahead.
        first: Option<Bytes>,
        body: Box<HttpBody>,
        /// Learns how the answer ends.
        watching: Option<Watching>,
        /// Where it counts as long as it is not over.
        open: Vec<OpenRequest>,
    },
    Demo(Player),
}

impl UpstreamClient {
    /// Sends a request and waits until the upstream has accepted or refused it. The dialect says how errors
    /// read; where nobody else could answer (`alone`), an answer without content is accepted, to be told as it is.
    pub(crate) async fn send(
        &self,
        outgoing: Outgoing,
        stream: bool,
        dialect: &Arc<AnswerDialect>,
        deadlines: Deadlines,
        alone: bool,
    ) -> Result<Accepted, Refused> {
        match self {
            Self::Http(client) => client.send(outgoing, dialect, deadlines, alone).await,
            Self::Demo => demo::send(&outgoing.body, stream).await,
        }
    }

    /// Closes idle connections that nobody will want.
    pub(crate) fn tidy(&self) {
        if let Self::Http(client) = self {
            client.tidy(false);
        }
    }

    /// Closes idle connections.
    pub(crate) fn shed(&self) {
        if let Self::Http(client) = self {
            client.tidy(true);
        }
    }
}

impl AnswerBody {
    /// The next bytes; `None` at the end in good order. May be dropped and called again at any time.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        match self {
            Self::Http { first, body, .. } => match first.take() {
                Some(first) => Ok(Some(first)),
                None => body.chunk().await.map_err(|error| failure::cut(&error)),
            },
            Self::Demo(player) => player.chunk().await,
        }
    }

    fn report_to(&mut self, watcher: Watching, counted: OpenRequest) {
        if let Self::Http { watching, open, .. } = self {
            *watching = Some(watcher);
            open.push(counted);
        }
    }

    /// How the answer ends will say nothing of who gives it.
    pub(crate) fn leave(&mut self) {
        if let Self::Http { watching, .. } = self {
            *watching = None;
        }
    }

    /// The answer is over; with a failure, it has broken off. Counts once.
    pub(crate) fn ended(&mut self, failure: Option<&Failure>) {
        if let Self::Http { watching, .. } = self
            && let Some(watching) = watching.take()
        {
            watching.ended(failure);
        }
    }
}

/// The failure of an upstream that missed a deadline.
pub(crate) fn late(deadline: Deadline) -> Failure {
    let phase = match deadline {
        Deadline::Connect => "connecting",
        Deadline::FirstByte => "no answer began",
        Deadline::Idle => "it fell silent",
        Deadline::Total => "the whole answer took too long",
    };
    Failure::new(FailureClass::Timeout, format!("The provider did not answer in time ({phase})."))
}
