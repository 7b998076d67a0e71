//! The first look at an accepted answer: whether anything of it has come, or a failure in its place. Until then another
//! target can take over. It reads as the turn will, with a reader of its own, and so cannot judge otherwise.

use std::sync::Arc;

use wire::id::Ids;
use wire::responses::{Tail, Usage};
use wire::sse::Decoder;

use super::{End, Flow, Reader, RoundEnd, Setup};
use crate::context::{AnswerContext, AnswerWire};
use crate::dialect::AnswerDialect;
use crate::events::Events;
use crate::failure::{Basis, Failure, FailureClass};
use crate::response::ResponseWriter;

/// What has no content in its first bytes is taken as it is: this much may be kept, and read twice.
const LIMIT: usize = 64 * 1024;

/// U+FEFF, with which some servers begin a body.
const MARK: &[u8] = "\u{feff}".as_bytes();

#[derive(Debug)]
pub struct Opening {
    trial: LazyTrial,
    source: Source,
    read: usize,
    /// Nobody else could take over: an answer that ends before it begins is told as it is.
    alone: bool,
}

#[derive(Debug)]
enum Source {
    Unknown,
    Sse { decoder: Decoder, events: usize },
    Json(Vec<u8>),
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Look {
    /// Nothing that tells.
    More,
    /// An answer.
    Answer,
    Failed(Failure),
}

/// A reader, and a response that nobody will see.
#[derive(Debug)]
struct Trial {
    reader: Reader,
    response: ResponseWriter,
    out: Events,
}

impl Trial {
    fn event(&mut self, name: &[u8], data: &[u8]) -> Flow {
        self.reader.event(name, data, &mut self.response, &mut self.out)
    }
}

/// A trial that is made when it is needed: most whole answers are known as such without it.
#[derive(Debug)]
struct LazyTrial {
    wire: AnswerWire,
    dialect: Arc<AnswerDialect>,
    trial: Option<Box<Trial>>,
}

impl LazyTrial {
    fn get(&mut self) -> &mut Trial {
        self.trial.get_or_insert_with(|| {
            let setup = Setup { dialect: Arc::clone(&self.dialect), ..Setup::default() };
            Box::new(Trial {
                reader: Reader::new(AnswerContext { wire: self.wire, ..AnswerContext::default() }, setup),
                response: ResponseWriter::new(Ids::new([0; 24]), 0, Tail::default(), false),
                out: Events::silent(),
            })
        })
    }
}

impl Opening {
    /// `wire`: the API in which the provider answers.
    pub fn new(wire: AnswerWire, dialect: Arc<AnswerDialect>) -> Self {
        let trial = LazyTrial { wire, dialect, trial: None };
        Self { trial, source: Source::Unknown, read: 0, alone: false }
    }

    /// Whether there is nobody else who could answer.
    #[must_use]
    pub fn alone(mut self, alone: bool) -> Self {
        self.alone = alone;
        self
    }

    /// The next bytes of the body.
    pub fn push(&mut self, mut bytes: &[u8]) -> Look {
        self.read += bytes.len();
        if self.read > LIMIT {
            return Look::Answer;
        }
        if matches!(self.source, Source::Unknown) {
            // Blanks and the bytes of a UTF-8 mark tell nothing, and may be cut anywhere.
            let tells = |byte: &u8| !byte.is_ascii_whitespace() && !MARK.contains(byte);
            bytes = bytes.iter().position(tells).map_or(&[][..], |start| &bytes[start..]);
            match bytes.first() {
                None => return Look::More,
                Some(b'{' | b'[') => self.source = Source::Json(Vec::new()),
                Some(b'<') => return protocol("The provider answered with a page instead of a chat completion."),
                Some(_) => self.source = Source::Sse { decoder: Decoder::new(LIMIT), events: 0 },
            }
        }
        match &mut self.source {
            Source::Json(buffer) => {
                buffer.extend_from_slice(bytes);
                Look::More
            }
            Source::Sse { decoder, .. } => {
                decoder.push(bytes);
                self.events()
            }
            Source::Unknown => Look::More,
        }
    }

    fn events(&mut self) -> Look {
        let Source::Sse { decoder, events } = &mut self.source else { return Look::More };
        loop {
            let event = match decoder.next_event() {
                Ok(Some(event)) => event,
                Ok(None) => return Look::More,
                Err(_) => return Look::Answer,
            };
            *events += 1;
            let trial = self.trial.get();
            let flow = trial.event(event.name, event.data);
            match seen(trial, flow, self.alone) {
                Look::More => {}
                look => return look,
            }
        }
    }

    /// What the provider has counted so far, if it said so.
    pub fn usage(&self) -> Option<Usage> {
        let (usage, is_estimated) = self.trial.trial.as_ref()?.reader.taken();
        (!is_estimated).then_some(usage)
    }

    /// The body has ended. Whatever it is, it is all there is.
    pub fn end(&mut self) -> Look {
        match &mut self.source {
            Source::Unknown => protocol("The provider's answer has an empty body."),
            Source::Json(buffer) => {
                if is_plainly_an_answer(buffer) {
                    return Look::Answer;
                }
                let trial = self.trial.get();
                let _ = trial.reader.chunk(buffer, &mut trial.response, &mut trial.out);
                seen(trial, Flow::Over, self.alone)
            }
            Source::Sse { decoder, events } => {
                let trial = self.trial.get();
                let rest = decoder.rest().map(|event| trial.event(event.name, event.data));
                match rest.map(|flow| seen(trial, flow, self.alone)) {
                    Some(look @ (Look::Answer | Look::Failed(_))) => look,
                    None if *events == 0 => protocol("The provider's answer has no event in it."),
                    Some(Look::More) | None if trial.reader.is_finished() => over(trial),
                    Some(Look::More) | None => {
                        let message = "The provider's answer broke off before it began.";
                        Look::Failed(Failure::new(FailureClass::Truncated, message))
                    }
                }
            }
        }
    }
}

fn seen(trial: &mut Trial, flow: Flow, alone: bool) -> Look {
    match trial.reader.report_mut().failure.take() {
        Some(failure) => Look::Failed(failure),
        None if trial.reader.has_begun() || alone && trial.reader.is_finished() => Look::Answer,
        None if flow == Flow::Over => over(trial),
        // Content may come after a finish reason.
        None => Look::More,
    }
}

/// Nothing more will come, and nothing has.
fn over(trial: &mut Trial) -> Look {
    let Trial { reader, response, out } = trial;
    let is_finished = reader.is_finished();
    if !is_finished && matches!(reader, Reader::Responses(_)) {
        return Look::Failed(Failure::new(FailureClass::Empty, "The model gave an empty answer."));
    }
    // What was held back comes out.
    match reader.end(End::Done, response, out) {
        _ if reader.has_begun() => Look::Answer,
        // A model that ends in good order may have been told to say nothing.
        RoundEnd::Failed(failure)
            if is_finished && matches!(failure.class, FailureClass::Empty | FailureClass::Server) =>
        {
            Look::Failed(Failure { basis: Basis::of_the_model(), ..failure })
        }
        RoundEnd::Failed(failure) if !is_finished => Look::Failed(failure),
        // Others would not take it either.
        _ => Look::Answer,
    }
}

/// Nearly every body is a whole completion with content and without an error: that is seen without reading it.
fn is_plainly_an_answer(body: &[u8]) -> bool {
    const TEXT: &[u8] = b"\"content\":\"";
    let has = |word: &[u8]| memchr::memmem::find(body, word).is_some();
    let has_text = || memchr::memmem::find_iter(body, TEXT).any(|at| body.get(at + TEXT.len()) != Some(&b'"'));
    has(b"\"choices\":[{")
        && !has(b"\"error\"")
        && body.trim_ascii_end().ends_with(b"}")
        && (has_text() || has(b"\"tool_calls\":[{"))
}

fn protocol(message: &str) -> Look {
    Look::Failed(Failure::new(FailureClass::Protocol, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each body, cut anywhere, comes to: an answer, nothing yet, or a failure.
    #[test]
    fn failures_are_told_from_answers_before_any_content() {
        use FailureClass as C;
        let role =
            "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n";
        let delta = |members: &str| format!("{role}data: {{\"choices\":[{{\"delta\":{{{members}}}}}]}}\n\n");
        let after_role = |rest: &str| format!("{role}{rest}");
        let finish = |reason: &str| {
            after_role(&format!("data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\n"))
        };
        let whole = |message: &str, reason: &str| {
            format!("{{\"choices\":[{{\"message\":{{{message}}},\"finish_reason\":\"{reason}\"}}]}}")
        };
        for (body, expected) in [
            (r#"{"error":{"message":"busy","code":503}}"#.to_owned(), Err(C::Overloaded)),
            ("\u{feff}{\"error\":{\"message\":\"busy\",\"code\":503}}".into(), Err(C::Overloaded)),
            ("data: {\"error\":{\"message\":\"slow\",\"code\":429}}\n\n".into(), Err(C::RateLimit)),
            ("\n: hi\n\ndata: {\"error\":{\"message\":\"oops\"}}\n\n".into(), Err(C::Server)),
            (r#"{"base_resp":{"status_code":429,"status_msg":"slow"}}"#.into(), Err(C::RateLimit)),
            (r#"{"choices":[],"error":{"message":"busy","code":503}}"#.into(), Err(C::Overloaded)),
            (r#"{"choices":[{"message":{"content":"an \"error\""},"finish_reason":"stop"}]}"#.into(), Ok(true)),
            (r#"{"choices":[{"message":{"content":"a"}}],"error":null}"#.into(), Ok(true)),
            (r#"{"choices":[{"message":{"content":""},"finish_reason":"length"}]}"#.into(), Ok(true)),
            (r#"{"choices":[]}"#.into(), Err(C::Empty)),
            (r#"{"choices":[{"mess"#.into(), Err(C::Protocol)),
            ("[1, 2]".into(), Err(C::Protocol)),
            ("<html>".into(), Err(C::Protocol)),
            ("  \n".into(), Err(C::Protocol)),
            (String::new(), Err(C::Protocol)),
            ("upstream connect error".into(), Err(C::Protocol)),
            (": a comment\n\n".into(), Err(C::Protocol)),
            (role.into(), Err(C::Truncated)),
            (after_role("data: [DONE]\n\n"), Err(C::Empty)),
            (after_role("data: {\"error\":{\"message\":\"busy\",\"code\":503}}\n\n"), Err(C::Overloaded)),
            (after_role(": wait\n\nevent: error\ndata: {\"reason\":\"busy\"}\n\n"), Err(C::Server)),
            (after_role("data: {\"message\":\"oops\"}\n\n"), Err(C::Server)),
            (after_role("data: <html>\n\n"), Err(C::Protocol)),
            (delta("\"content\":\"a\""), Ok(true)),
            (delta("\"reasoning_content\":\"a\""), Ok(true)),
            (
                delta("\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]"),
                Ok(true),
            ),
            (finish("stop"), Err(C::Empty)),
            (finish("stop") + "data: {\"choices\":[],\"usage\":{}}\n\ndata: [DONE]\n\n", Err(C::Empty)),
            (finish("never heard of"), Err(C::Empty)),
            (finish("error"), Err(C::Server)),
            (finish("error") + "data: [DONE]\n\n", Err(C::Server)),
            (finish("length"), Ok(true)),
            (finish("content_filter"), Ok(true)),
            (finish("stop") + "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", Ok(true)),
            (whole("\"content\":\"\"", "stop"), Err(C::Empty)),
            (whole("\"content\":null", "stop"), Err(C::Empty)),
            (whole("\"content\":null", "error"), Err(C::Server)),
            (whole("\"content\":null", "content_filter"), Ok(true)),
            (whole("\"content\":null,\"refusal\":\"no\"", "stop"), Ok(true)),
            (whole("\"content\":null,\"reasoning_content\":\"hm\"", "stop"), Ok(true)),
            (whole("\"content\":\"cut\"", "error"), Ok(true)),
        ] {
            for size in [1, 7, body.len().max(1)] {
                let mut opening = Opening::new(AnswerWire::Chat, Arc::default());
                let look =
                    body.as_bytes().chunks(size).map(|bytes| opening.push(bytes)).find(|look| *look != Look::More);
                let look = look.unwrap_or_else(|| opening.end());
                let found = match look {
                    Look::Answer => Ok(true),
                    Look::More => Ok(false),
                    Look::Failed(failure) => Err(failure.class),
                };
                assert_eq!(found, expected, "{size}: {body}");
            }
        }
    }

    #[test]
    fn events_of_a_native_answer_are_looked_at_too() {
        let event = |name: &str, members: &str| format!("data: {{\"type\":\"{name}\"{members}}}\n\n");
        let begun = event("response.created", "")
            + &event("response.output_item.added", ",\"item\":{\"type\":\"message\",\"id\":\"m\"}");
        let look = |rest: &str| {
            let mut opening = Opening::new(AnswerWire::RESPONSES, Arc::default());
            match opening.push((begun.clone() + rest).as_bytes()) {
                Look::Failed(failure) => Err(failure.class),
                look => Ok(look == Look::Answer),
            }
        };
        assert_eq!(look(""), Ok(false));
        assert_eq!(look(&event("response.output_text.delta", ",\"item_id\":\"m\",\"delta\":\"a\"")), Ok(true));
        assert_eq!(look(&event("error", ",\"code\":\"rate_limit_exceeded\"")), Err(FailureClass::RateLimit));
        let failed = ",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"no\"}}";
        assert_eq!(look(&event("response.failed", failed)), Err(FailureClass::Server));
        assert_eq!(look("data: [DONE]\n\n"), Err(FailureClass::Empty));
    }

    #[test]
    fn what_is_large_is_not_looked_through() {
        let mut opening = Opening::new(AnswerWire::Chat, Arc::default());
        assert_eq!(opening.push(&vec![b' '; LIMIT]), Look::More);
        assert_eq!(opening.push(b" "), Look::Answer);
    }
}
