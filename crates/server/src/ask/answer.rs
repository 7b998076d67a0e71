//! One upstream answer: its bytes become events or one JSON, and go to the reader.

use bridge::{End, Events, Failure, FailureClass, Flow, HeldCall, ResponseWriter, RoundEnd};
use bytes::Bytes;
use wire::responses::Usage;
use wire::sse::Decoder;

use super::meter::Metered;
use crate::upstream::{Accepted, AnswerBody, Format, Redactor};

/// One event of an upstream stream may be this large.
const MAX_EVENT: usize = 8 << 20;
/// What a response may have in it, of all its answers, and so the body of an answer that is not streamed. It counts as it
/// is, whatever a provider writes around each piece of it. The usual libraries take no larger message.
pub(crate) const MAX_CONTENT: usize = 64 << 20;
/// What a provider may write around each byte of it, beyond the first [`MAX_CONTENT`] bytes: who goes on and on without
/// saying anything is given up.
const MAX_AROUND: usize = 1 << 10;

/// An answer that is being read.
#[derive(Debug)]
pub(crate) struct Answer {
    reader: Metered,
    source: Source,
    pub(crate) body: AnswerBody,
    pub(crate) redactor: Redactor,
    received: usize,
}

/// How the upstream's bytes become chunks.
#[derive(Debug)]
enum Source {
    Sse(Decoder),
    Json(Vec<u8>),
    /// Nothing has come that could tell: blanks, or a piece of a byte order mark.
    Unknown {
        held: Vec<u8>,
        /// It is called JSON: only what is plainly a stream is taken for one.
        called_json: bool,
    },
}

impl Answer {
    pub(crate) fn new(reader: Metered, accepted: Accepted) -> Self {
        // Some servers answer a streamed request with one JSON, often an error, and call it a stream; some proxies call
        // a stream JSON. The first bytes tell.
        let source = Source::Unknown { held: Vec::new(), called_json: accepted.format == Format::Json };
        Self { reader, source, body: accepted.body, redactor: accepted.redactor, received: 0 }
    }

    /// Whether the upstream gave a finish reason: only usage may follow.
    pub(crate) fn is_finished(&self) -> bool {
        self.reader.is_finished()
    }

    /// Takes what was read. Says how the answer ended, if it did.
    pub(crate) fn feed(&mut self, bytes: &Bytes, response: &mut ResponseWriter, out: &mut Events) -> Option<End> {
        self.received += bytes.len();
        self.reader.read(bytes);
        let Source::Unknown { held, called_json } = &mut self.source else { return self.take(bytes, response, out) };
        held.extend_from_slice(bytes);
        let Some(known) = known(held, *called_json) else { return too_large(held.len()) };
        let Source::Unknown { held, .. } = std::mem::replace(&mut self.source, known) else { return None };
        self.take(&held, response, out)
    }

    fn take(&mut self, bytes: &[u8], response: &mut ResponseWriter, out: &mut Events) -> Option<End> {
        match &mut self.source {
            Source::Json(buffer) => {
                buffer.extend_from_slice(bytes);
                too_large(buffer.len())
            }
            Source::Sse(decoder) => {
                out.reserve(bytes.len());
                decoder.push(bytes);
                let end = self.events(response, out);
                let content = self.reader.content(response);
                let around = self.received.saturating_sub(MAX_CONTENT) / MAX_AROUND;
                too_large(content).or_else(|| (around > content).then(|| End::Failed(oversized()))).or(end)
            }
            Source::Unknown { .. } => None,
        }
    }

    /// All whole events that the decoder holds.
    fn events(&mut self, response: &mut ResponseWriter, out: &mut Events) -> Option<End> {
        let Source::Sse(decoder) = &mut self.source else { return None };
        loop {
            match decoder.next_event() {
                Ok(Some(event)) => {
                    self.reader.heard();
                    if self.reader.event(event.name, event.data, response, out) == Flow::Over {
                        return Some(End::Done);
                    }
                }
                Ok(None) => return None,
                Err(too_large) => {
                    return Some(End::Failed(Failure::new(FailureClass::Protocol, too_large.to_string())));
                }
            }
        }
    }

    /// Nobody wants the rest of it. That says nothing of who gives it.
    pub(crate) fn leave(&mut self) {
        self.body.leave();
    }

    /// The upstream is through: reads what is left of it, closes what is open.
    pub(crate) fn end(&mut self, end: End, response: &mut ResponseWriter, out: &mut Events) -> RoundEnd {
        if let Source::Unknown { held, called_json: true } = &mut self.source {
            self.source = Source::Json(std::mem::take(held));
        }
        let end = match (end, &mut self.source) {
            (End::Eof, Source::Json(buffer)) if wire::json::without_mark(buffer.trim_ascii()).is_empty() => {
                let message = "The provider's answer has an empty body.";
                End::Failed(Failure::new(FailureClass::Protocol, message))
            }
            (End::Eof, Source::Json(buffer)) => {
                self.reader.heard();
                let _ = self.reader.chunk(buffer, response, out);
                End::Done
            }
            (End::Eof, Source::Sse(decoder)) => {
                let last = decoder.rest().map(|event| self.reader.event(event.name, event.data, response, out));
                if last == Some(Flow::Over) { End::Done } else { End::Eof }
            }
            (end, _) => end,
        };
        let end = match end {
            End::Done | End::Eof => too_large(self.reader.content(response)).unwrap_or(end),
            End::Failed(_) => end,
        };
        let end = self.reader.end(end, response, out);
        self.body.ended(if let RoundEnd::Failed(failure) = &end { Some(failure) } else { None });
        self.reader.settle();
        end
    }

    /// Nothing more of it is read: what it took is known.
    pub(crate) fn abandon(&mut self) {
        self.reader.settle();
    }

    /// What the upstream says that this answer took.
    pub(crate) fn reported(&self) -> Option<Usage> {
        self.reader.reported()
    }

    /// The calls of an answer that calls the client's tools and such that godex runs, from the first of these on.
    pub(crate) fn take_hosted(&mut self) -> Vec<HeldCall> {
        self.reader.take_hosted()
    }
}

/// The end of what has become more than a response may have in it.
fn too_large(bytes: usize) -> Option<End> {
    (bytes > MAX_CONTENT).then(|| End::Failed(oversized()))
}

pub(crate) fn oversized() -> Failure {
    Failure::new(FailureClass::Protocol, format!("The provider's answer is larger than {MAX_CONTENT} bytes."))
}

/// How a stream begins: a comment, or a field of its first event.
const STREAMS: &[&[u8]] = &[b":", b"data:", b"event:", b"id:", b"retry:"];

/// What an answer is that begins so; None while that cannot be told.
fn known(start: &[u8], called_json: bool) -> Option<Source> {
    let mark = b"\xef\xbb\xbf";
    let start = start.trim_ascii_start();
    if start.len() < mark.len() && mark.starts_with(start) {
        return None;
    }
    let start = wire::json::without_mark(start).trim_ascii_start();
    Some(match start.first()? {
        b'{' | b'[' | b'<' => Source::Json(Vec::new()),
        _ if called_json && !STREAMS.iter().any(|field| start.starts_with(field)) => {
            if STREAMS.iter().any(|field| field.starts_with(start)) {
                return None;
            }
            Source::Json(Vec::new())
        }
        _ => Source::Sse(Decoder::new(MAX_EVENT)),
    })
}
