//! What the scripted upstream does with one request: a head, then steps, in order. A script says nothing
//! about which request it answers; [`crate::Upstream`] deals scripts out.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

/// The answer to one request, as it goes over the socket.
#[derive(Debug, Clone)]
pub struct Script {
    pub(crate) head: Head,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, Clone)]
pub(crate) enum Head {
    /// Nothing is written by itself: steps go to the socket as they are.
    Raw,
    Http {
        status: u16,
        headers: Vec<(String, String)>,
        framing: Framing,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Every send is one chunk, so the peer sees the same cuts that the script made.
    Chunked,
    /// The length of all sends is announced, also of those after a cut.
    Length,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Send(Bytes),
    Delay(Duration),
    /// Holds the connection open until the peer closes it.
    Stall,
    /// FIN, without the terminating chunk.
    Cut,
    /// RST.
    Reset,
}

// === beginnings ===

impl Script {
    /// A head with this status and an empty chunked body; steps are added by the methods below.
    pub fn respond(status: u16) -> Self {
        Self { head: Head::Http { status, headers: Vec::new(), framing: Framing::Chunked }, steps: Vec::new() }
    }

    /// A stream of chat chunks: each as `data: …`, sent by itself, then `[DONE]`.
    pub fn sse(chunks: &[Value]) -> Self {
        chunks.iter().fold(Self::event_stream(), Self::event).done()
    }

    /// A stream with these bytes as its whole body, sent in one write.
    pub fn sse_bytes(body: impl Into<Bytes>) -> Self {
        Self::event_stream().send(body)
    }

    /// The head of an event stream; follow it with [`Script::event`] and [`Script::done`].
    pub fn event_stream() -> Self {
        Self::respond(200).header("content-type", "text/event-stream")
    }

    /// A JSON body with a `content-length`.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::body(status, "application/json", body.to_string())
    }

    /// Any body with a `content-length`.
    pub fn body(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        let head = Head::Http { status, headers: Vec::new(), framing: Framing::Length };
        Self { head, steps: Vec::new() }.header("content-type", content_type).send(body)
    }

    /// Bytes that are no HTTP at all, then FIN.
    pub fn garbage(bytes: impl Into<Bytes>) -> Self {
        Self::raw().send(bytes).cut()
    }

    /// Reads the request and closes (FIN) before any byte of an answer.
    pub fn hang_up() -> Self {
        Self::raw().cut()
    }

    /// Reads the request and never answers.
    pub fn silent() -> Self {
        Self::raw().stall()
    }

    /// No head: the sends go to the socket as they are.
    pub fn raw() -> Self {
        Self { head: Head::Raw, steps: Vec::new() }
    }
}

// === steps ===

impl Script {
    /// A header of the answer; without effect on a raw script.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Head::Http { headers, .. } = &mut self.head {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// Body bytes, flushed as their own write.
    #[must_use]
    pub fn send(self, bytes: impl Into<Bytes>) -> Self {
        self.step(Step::Send(bytes.into()))
    }

    /// One `data:` event.
    #[must_use]
    pub fn event(self, chunk: &Value) -> Self {
        self.send(format!("data: {chunk}\n\n"))
    }

    /// The `[DONE]` event.
    #[must_use]
    pub fn done(self) -> Self {
        self.send("data: [DONE]\n\n")
    }

    #[must_use]
    pub fn delay(self, duration: Duration) -> Self {
        self.step(Step::Delay(duration))
    }

    /// Holds the connection open, silent, until the peer closes it.
    #[must_use]
    pub fn stall(self) -> Self {
        self.step(Step::Stall)
    }

    /// Closes with FIN and without the terminating chunk: a truncated body.
    #[must_use]
    pub fn cut(self) -> Self {
        self.step(Step::Cut)
    }

    /// Closes with RST.
    #[must_use]
    pub fn reset(self) -> Self {
        self.step(Step::Reset)
    }

    /// Cuts what was sent so far into pieces of `size` bytes; delays and other steps stay where they are.
    #[must_use]
    pub fn split_every(self, size: usize) -> Self {
        let size = size.max(1);
        self.recut(|offset| offset % size == 0)
    }

    /// Cuts what was sent so far at these offsets into the body.
    #[must_use]
    pub fn split_at(self, positions: &[usize]) -> Self {
        self.recut(|offset| positions.contains(&offset))
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Joins neighbouring sends and cuts them anew, before every offset for which `cut_before` holds.
    fn recut(mut self, cut_before: impl Fn(usize) -> bool) -> Self {
        let (mut offset, mut run, mut steps) = (0, Vec::new(), Vec::new());
        for step in self.steps {
            let Step::Send(bytes) = step else {
                flush(&mut run, &mut steps);
                steps.push(step);
                continue;
            };
            for byte in bytes {
                if cut_before(offset) {
                    flush(&mut run, &mut steps);
                }
                run.push(byte);
                offset += 1;
            }
        }
        flush(&mut run, &mut steps);
        self.steps = steps;
        self
    }

    pub(crate) fn body_length(&self) -> usize {
        self.steps.iter().map(|step| if let Step::Send(bytes) = step { bytes.len() } else { 0 }).sum()
    }
}

fn flush(run: &mut Vec<u8>, steps: &mut Vec<Step>) {
    if !run.is_empty() {
        steps.push(Step::Send(Bytes::from(std::mem::take(run))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sends(script: &Script) -> Vec<&[u8]> {
        script.steps.iter().filter_map(|s| if let Step::Send(b) = s { Some(&b[..]) } else { None }).collect()
    }

    #[test]
    fn splitting_keeps_the_bytes_and_the_other_steps() {
        let script = Script::event_stream().send("abcd").send("ef").delay(Duration::ZERO).send("gh");
        assert_eq!(sends(&script.clone().split_every(3)), [&b"abc"[..], b"def", b"gh"]);
        assert_eq!(sends(&script.clone().split_at(&[1, 7])), [&b"a"[..], b"bcdef", b"g", b"h"]);
        assert_eq!(script.clone().split_every(3).steps[2], Step::Delay(Duration::ZERO));
        assert_eq!(script.split_every(2).body_length(), 8);
    }
}
