//! The turn driver: one upstream answer, pulled through the machine by whoever wants the bytes.
//!
//! No task and no channel: hyper pulls frames, so a slow client slows the upstream, and a client that is gone
//! drops the turn and with it the upstream connection. A non-streamed answer pulls the same road to its end.

mod watch;

use std::sync::Arc;
use std::time::Duration;

use bridge::{End, Failure, FailureClass, Flow, Machine, Note};
use bytes::Bytes;
use futures_util::{FutureExt, Stream};
use wire::responses::{Status, Usage};
use wire::sse::Decoder;

use crate::clock;
use crate::session::{Commit, NotKept, Record};
use crate::stop::Stop;
use crate::upstream::{Accepted, AnswerBody, Deadlines, Format, Redactor, timeout};
use watch::{Alarm, Watch};

/// One event of an upstream stream may be this large; a whole answer, eight times that.
const MAX_EVENT: usize = 8 << 20;
const MAX_ANSWER: usize = 64 << 20;

/// What came in one go is sent on in frames of about this size.
const FRAME: usize = 16 << 10;

/// How long the end of an upstream body is waited for, so that its connection can be used again.
const DRAIN: Duration = Duration::from_millis(50);

/// How long the last deltas wait to go out together with the terminal event, which waits for the store.
const PATIENCE: Duration = Duration::from_millis(20);

/// A turn under way.
#[derive(Debug)]
pub(crate) struct Turn {
    machine: Machine,
    source: Source,
    body: Option<AnswerBody>,
    phase: Phase,
    out: Vec<u8>,
    received: usize,
    watch: Watch,
    redactor: Redactor,
    /// What is to be stored; none with `store: false`.
    record: Option<Record>,
    commit: Option<Storing>,
    not_kept: Option<store::Error>,
    stop: Arc<Stop>,
}

/// The store has the answer, and the client waits for its last event.
struct Storing {
    commit: Commit,
    status: Status,
    completed_at: u64,
}

impl std::fmt::Debug for Storing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Storing").field("status", &self.status).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Opening,
    Streaming,
    /// All is there but the terminal event.
    Storing,
    /// The terminal event is out.
    Draining,
    Over,
}

/// How the upstream's bytes become chunks.
#[derive(Debug)]
enum Source {
    Sse(Decoder),
    Json(Vec<u8>),
    /// Nothing has come that could tell: blanks, or a piece of a byte order mark.
    Unknown(Vec<u8>),
}

/// What came of waiting for the upstream.
enum Pulled {
    Bytes(Bytes),
    End(End),
    Silence,
}

impl From<Result<Option<Bytes>, Failure>> for Pulled {
    fn from(chunk: Result<Option<Bytes>, Failure>) -> Self {
        match chunk {
            Ok(Some(bytes)) => Self::Bytes(bytes),
            Ok(None) => Self::End(End::Eof),
            Err(failure) => Self::End(End::Failed(failure)),
        }
    }
}

impl Turn {
    pub(crate) fn new(
        machine: Machine,
        accepted: Accepted,
        deadlines: Deadlines,
        heartbeat: Duration,
        record: Option<Record>,
        stop: Arc<Stop>,
    ) -> Self {
        Self {
            machine,
            source: match accepted.format {
                Format::Json => Source::Json(Vec::new()),
                // Some servers answer a streamed request with one JSON, often an error, and call it a stream.
                Format::Sse | Format::Unknown => Source::Unknown(Vec::new()),
            },
            body: Some(accepted.body),
            phase: Phase::Opening,
            out: Vec::new(),
            received: 0,
            watch: Watch::new(deadlines, heartbeat),
            redactor: accepted.redactor,
            record,
            commit: None,
            not_kept: None,
            stop,
        }
    }

    /// The turn as a body: pulled frame by frame.
    pub(crate) fn into_stream(self) -> impl Stream<Item = Bytes> + Send {
        futures_util::stream::unfold(self, |mut turn| async move {
            let frame = turn.next_frame().await?;
            Some((frame, turn))
        })
    }

    /// Runs to the end; with a silent machine the bytes are the object.
    pub(crate) async fn run(mut self) -> Finished {
        let mut object = Vec::new();
        while let Some(frame) = self.next_frame().await {
            object.extend_from_slice(&frame);
        }
        let failure = self.machine.failure().cloned().map(|mut failure| {
            self.redactor.failure(&mut failure);
            failure
        });
        let (notes, usage) = (self.machine.notes().to_vec(), self.machine.usage());
        let Self { record, not_kept, .. } = self;
        Finished { object: object.into(), failure, notes, usage, record, not_kept }
    }

    /// The next bytes for the client, all events of one upstream read in one frame; `None` at the end.
    async fn next_frame(&mut self) -> Option<Bytes> {
        loop {
            match self.phase {
                Phase::Opening => {
                    self.machine.open(&mut self.out);
                    self.phase = Phase::Streaming;
                }
                Phase::Streaming => match self.pull().await {
                    Pulled::Bytes(bytes) => {
                        self.feed(&bytes);
                        self.gather();
                    }
                    Pulled::Silence => self.machine.heartbeat(&mut self.out),
                    Pulled::End(end) => self.finish(end),
                },
                Phase::Storing => self.stored().await,
                Phase::Draining => {
                    self.drain().await;
                    self.phase = Phase::Over;
                }
                Phase::Over => return None,
            }
            if !self.out.is_empty() {
                self.watch.spoke();
                return Some(std::mem::take(&mut self.out).into());
            }
        }
    }

    /// Waits for the upstream, or for a deadline.
    async fn pull(&mut self) -> Pulled {
        let Some(body) = self.body.as_mut() else { return Pulled::End(End::Eof) };
        tokio::select! {
            biased;
            chunk = body.chunk() => {
                self.watch.heard();
                chunk.into()
            }
            () = self.stop.now() => {
                let message = "The server is shutting down.";
                Pulled::End(End::Failed(Failure::new(FailureClass::Server, message)))
            }
            alarm = self.watch.alarm() => match alarm {
                Alarm::Heartbeat => Pulled::Silence,
                Alarm::Late(_) if self.machine.is_finished() => Pulled::End(End::Eof),
                Alarm::Late(what) => Pulled::End(End::Failed(timeout(what))),
            },
        }
    }

    /// Takes what more is there already: a read may bring many chunks, and a write to our client for each of them
    /// costs more than all else together.
    fn gather(&mut self) {
        while self.phase == Phase::Streaming && self.out.len() < FRAME {
            let Some(body) = self.body.as_mut() else { return };
            let Some(chunk) = body.chunk().now_or_never() else { return };
            match chunk.into() {
                Pulled::Bytes(bytes) => self.feed(&bytes),
                Pulled::End(end) => self.finish(end),
                Pulled::Silence => {}
            }
        }
    }

    fn feed(&mut self, bytes: &Bytes) {
        self.received += bytes.len();
        if self.received > MAX_ANSWER {
            let message = format!("The provider's answer is larger than {MAX_ANSWER} bytes.");
            return self.finish(End::Failed(Failure::new(FailureClass::Protocol, message)));
        }
        if let Source::Unknown(held) = &mut self.source {
            held.extend_from_slice(bytes);
            let Some(known) = known(held) else { return };
            let held = std::mem::replace(&mut self.source, known);
            if let Source::Unknown(held) = held {
                self.take(&held);
            }
        } else {
            self.take(bytes);
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        match &mut self.source {
            Source::Json(buffer) => buffer.extend_from_slice(bytes),
            Source::Sse(decoder) => {
                self.out.reserve(bytes.len());
                decoder.push(bytes);
                self.events();
            }
            Source::Unknown(_) => {}
        }
    }

    /// All whole events that the decoder holds.
    fn events(&mut self) {
        let Source::Sse(decoder) = &mut self.source else { return };
        loop {
            match decoder.next_event() {
                Ok(Some(event)) => {
                    if self.machine.event(event.name, event.data, &mut self.out) == Flow::Over {
                        return self.finish(End::Done);
                    }
                }
                Ok(None) => {
                    if self.machine.is_finished() {
                        self.watch.settle();
                    }
                    return;
                }
                Err(too_large) => {
                    return self.finish(End::Failed(Failure::new(FailureClass::Protocol, too_large.to_string())));
                }
            }
        }
    }

    /// Closes the answer. What is to be kept goes to the store first: its terminal event is a promise.
    fn finish(&mut self, end: End) {
        let end = match (end, &mut self.source) {
            (End::Eof, Source::Json(buffer)) if wire::json::without_mark(buffer.trim_ascii()).is_empty() => {
                let message = "The provider's answer has an empty body.";
                End::Failed(Failure::new(FailureClass::Protocol, message))
            }
            (End::Eof, Source::Json(buffer)) => {
                let _ = self.machine.chunk(buffer, &mut self.out);
                End::Done
            }
            (End::Eof, Source::Sse(decoder)) => {
                let last = decoder.rest().map(|event| self.machine.event(event.name, event.data, &mut self.out));
                if last == Some(Flow::Over) { End::Done } else { End::Eof }
            }
            (end, _) => end,
        };
        let status = self.machine.end(end, &mut self.out);
        // While the words are whole: where they are cut, a key may be.
        if let Some(failure) = self.machine.failure_mut() {
            self.redactor.failure(failure);
        }
        for note in self.machine.notes() {
            tracing::info!(code = note.action.code().name(), path = %note.path, detail = %note.message, "answer");
        }
        let completed_at = clock::unix_seconds();
        // Whoever got an HTTP error instead of the object has no id to ask for it by.
        let worth_keeping = status != Status::Failed || !self.machine.is_silent();
        let Some(record) = self.record.take_if(|_| worth_keeping) else {
            return self.close(status, completed_at, false);
        };
        let mut object = Vec::new();
        self.machine.object(completed_at, true, &mut object);
        if status == Status::Failed {
            self.redactor.bytes(&mut object, 0);
        }
        let commit = record.commit(self.machine.id().to_string(), status, object.into());
        self.commit = Some(Storing { commit, status, completed_at });
        self.phase = Phase::Storing;
    }

    /// Waits for the store, then says the last word.
    async fn stored(&mut self) {
        let Some(Storing { commit, status, completed_at }) = &mut self.commit else {
            self.phase = Phase::Over;
            return;
        };
        let kept = if self.out.is_empty() {
            commit.await
        } else {
            // A store that takes its time holds nothing back but the terminal event.
            match tokio::time::timeout(PATIENCE, commit).await {
                Ok(kept) => kept,
                Err(_) => return,
            }
        };
        let (mut status, completed_at) = (*status, *completed_at);
        self.commit = None;
        let stored = kept.is_ok();
        if let Err(NotKept { error, fatal: true }) = kept
            && status != Status::Failed
        {
            status = Status::Failed;
            self.machine.not_kept(Failure::new(FailureClass::Server, "The response could not be stored."));
            self.not_kept = Some(error);
        }
        self.close(status, completed_at, stored);
    }

    /// The terminal event, or the object.
    fn close(&mut self, status: Status, completed_at: u64, stored: bool) {
        let terminal = self.out.len();
        self.machine.terminal(completed_at, stored, &mut self.out);
        self.phase = Phase::Draining;
        if status == Status::Failed {
            self.redactor.bytes(&mut self.out, terminal);
            // What is wrong must be seen at once: the body ends behind the terminal event.
            self.body = None;
        }
    }

    /// Reads the rest of a finished body, so that its connection goes back to the pool.
    async fn drain(&mut self) {
        let Some(mut body) = self.body.take() else { return };
        let end = async { while let Ok(Some(_)) = body.chunk().await {} };
        let mut end = std::pin::pin!(end);
        if end.as_mut().now_or_never().is_none() {
            let _ = tokio::time::timeout(DRAIN, end).await;
        }
    }
}

/// What an answer is that begins so; None while that cannot be told.
fn known(start: &[u8]) -> Option<Source> {
    let mark = b"\xef\xbb\xbf";
    let start = start.trim_ascii_start();
    if start.len() < mark.len() && mark.starts_with(start) {
        return None;
    }
    Some(match wire::json::without_mark(start).trim_ascii_start().first()? {
        b'{' | b'[' | b'<' => Source::Json(Vec::new()),
        _ => Source::Sse(Decoder::new(MAX_EVENT)),
    })
}

/// A turn that has run to its end.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) object: Bytes,
    pub(crate) failure: Option<Failure>,
    pub(crate) notes: Vec<Note>,
    pub(crate) usage: Option<Usage>,
    /// What was not stored because the turn failed.
    pub(crate) record: Option<Record>,
    /// Why the turn counts as failed although its answer is good.
    pub(crate) not_kept: Option<store::Error>,
}
