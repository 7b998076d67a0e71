//! A content part that is being written: output text, a refusal, raw reasoning, or a summary of it.

use std::sync::Arc;

use wire::json::{ObjectWriter, Text};
use wire::responses::EventKind;

use super::ResponseWriter;
use super::citing::{Citation, Cited, Citing};
use super::slot::SlotKind;
use crate::escaped::{Escaped, EscapedBuf, Pieces};
use crate::events::{DeltaHead, Events};
use crate::json::{bracketed, join};
use crate::reader::Sources;

/// What kind of text a part holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartKind {
    Text,
    Refusal,
    Reasoning,
    /// Reasoning where the client asked for `reasoning.summary`.
    Summary,
}

/// The events and members of one kind of part.
pub(crate) struct Names {
    type_name: &'static str,
    /// The member that holds the text.
    pub(crate) member: &'static str,
    index: &'static str,
    pub(crate) added: EventKind,
    pub(crate) delta: EventKind,
    pub(crate) text_done: EventKind,
    pub(crate) done: EventKind,
}

impl PartKind {
    /// The kind of item that has such parts.
    pub(crate) const fn slot(self) -> SlotKind {
        match self {
            Self::Text | Self::Refusal => SlotKind::Message,
            Self::Reasoning | Self::Summary => SlotKind::Reasoning,
        }
    }

    pub(crate) const fn names(self) -> Names {
        let content = Names {
            type_name: "output_text",
            member: "text",
            index: "content_index",
            added: EventKind::ContentPartAdded,
            delta: EventKind::OutputTextDelta,
            text_done: EventKind::OutputTextDone,
            done: EventKind::ContentPartDone,
        };
        match self {
            Self::Text => content,
            Self::Refusal => Names {
                type_name: "refusal",
                member: "refusal",
                delta: EventKind::RefusalDelta,
                text_done: EventKind::RefusalDone,
                ..content
            },
            Self::Reasoning => Names {
                type_name: "reasoning_text",
                delta: EventKind::ReasoningTextDelta,
                text_done: EventKind::ReasoningTextDone,
                ..content
            },
            Self::Summary => Names {
                type_name: "summary_text",
                member: "text",
                index: "summary_index",
                added: EventKind::ReasoningSummaryPartAdded,
                delta: EventKind::ReasoningSummaryTextDelta,
                text_done: EventKind::ReasoningSummaryTextDone,
                done: EventKind::ReasoningSummaryPartDone,
            },
        }
    }

    /// The kind of a part of this type.
    pub(crate) fn named(part_type: Text<'_>) -> Option<Self> {
        let kinds = [Self::Text, Self::Refusal, Self::Reasoning, Self::Summary];
        kinds.into_iter().find(|kind| part_type.is(kind.names().type_name))
    }

    /// A part as items show it, with its annotations and probabilities: JSON, comma between them.
    pub(crate) fn write(self, text: Escaped<'_>, (annotations, logprobs): (&[u8], &[u8]), out: &mut Vec<u8>) {
        let names = self.names();
        let mut part = ObjectWriter::new(out);
        part.text("type", names.type_name);
        if self == Self::Text {
            bracketed(part.key("annotations"), annotations);
            bracketed(part.key("logprobs"), logprobs);
        }
        text.write(part.key(names.member));
        part.end();
    }

    /// What the event says that ends the text of a part.
    pub(crate) fn text_done_members(
        self,
        at: PartIndex<'_>,
        text: Escaped<'_>,
        logprobs: &[u8],
        event: &mut ObjectWriter<'_>,
    ) {
        let names = self.names();
        at.members(&names, event);
        text.write(event.key(names.member));
        if self == Self::Text {
            bracketed(event.key("logprobs"), logprobs);
        }
    }
}

/// Which part of which item.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartIndex<'a> {
    pub(crate) item_id: &'a str,
    pub(crate) output_index: u32,
    /// Among the parts of its item.
    pub(crate) index: u32,
}

impl PartIndex<'_> {
    pub(crate) fn members(self, names: &Names, event: &mut ObjectWriter<'_>) {
        event.text("item_id", self.item_id);
        event.int("output_index", self.output_index).int(names.index, self.index);
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) kind: PartKind,
    text: Pieces,
    delta_head: DeltaHead,
    /// JSON, comma between them.
    logprobs: Vec<u8>,
    annotations: Vec<u8>,
    annotation_count: u32,
    /// How many of them the upstream gave.
    given: u32,
    cites: Option<Box<Cites>>,
}

/// What is needed to find citations in the text.
#[derive(Debug, Clone)]
struct Cites {
    citing: Citing,
    /// On its way to it; between two pieces there is never more in it than half a surrogate pair.
    pieces: Pieces,
    /// Those of text that is held back.
    logprobs: Vec<u8>,
}

impl Part {
    /// Announces the part. `sources`: where there are any, links to them in an output text become citations.
    pub(crate) fn open(
        kind: PartKind,
        sources: Option<&Arc<Sources>>,
        at: PartIndex<'_>,
        response: &mut ResponseWriter,
        out: &mut Events,
    ) -> Self {
        let names = kind.names();
        response.event(names.added, out, |event| {
            at.members(&names, event);
            kind.write(Escaped::default(), (b"", b""), event.key("part"));
        });
        let delta_head = out.delta_head(names.delta, |event| {
            at.members(&names, event);
            if kind == PartKind::Text {
                event.json("logprobs", b"[]");
            }
        });
        let (logprobs, annotations) = (Vec::new(), Vec::new());
        let cites = sources.filter(|_| kind == PartKind::Text).map(|sources| {
            let citing = Citing::new(Arc::clone(sources));
            Box::new(Cites { citing, pieces: Pieces::default(), logprobs: Vec::new() })
        });
        Self { kind, text: Pieces::default(), delta_head, logprobs, annotations, annotation_count: 0, given: 0, cites }
    }

    /// More text. `logprobs`: those of its tokens, as JSON with commas between; nearly always none.
    pub(crate) fn push(
        &mut self,
        text: Escaped<'_>,
        logprobs: &[u8],
        at: PartIndex<'_>,
        response: &mut ResponseWriter,
        out: &mut Events,
    ) {
        let Some(cites) = &mut self.cites else { return self.send(text, logprobs, at, response, out) };
        join(&mut cites.logprobs, logprobs);
        cites.pieces.push(text);
        let new = cites.pieces.take();
        let cited = cites.citing.push(&new.get().decode());
        self.send_cited(cited, at, response, out);
    }

    /// Text of which the citations are known.
    fn send_cited(&mut self, cited: Vec<Cited>, at: PartIndex<'_>, response: &mut ResponseWriter, out: &mut Events) {
        for Cited { text, citation } in cited {
            let text = EscapedBuf::of_plain(&text);
            let logprobs = self.cites.as_mut().map(|cites| std::mem::take(&mut cites.logprobs)).unwrap_or_default();
            self.send(text.get(), &logprobs, at, response, out);
            if let Some(citation) = citation {
                self.add_annotation(&citation.write(), at, response, out);
            }
        }
    }

    fn send(
        &mut self,
        text: Escaped<'_>,
        logprobs: &[u8],
        at: PartIndex<'_>,
        response: &mut ResponseWriter,
        out: &mut Events,
    ) {
        let from = self.text.len();
        self.text.push(text);
        join(&mut self.logprobs, logprobs);
        let new = self.text.get().after(from);
        if new.is_empty() {
            return;
        }
        if logprobs.is_empty() {
            return response.delta(&self.delta_head, new, out);
        }
        let names = self.kind.names();
        response.event(names.delta, out, |event| {
            at.members(&names, event);
            new.write(event.key("delta"));
            bracketed(event.key("logprobs"), logprobs);
        });
    }

    /// The whole text, where the upstream repeats it at the end: what was not sent of it is, and is given back. `None`
    /// for another text.
    pub(crate) fn complete(
        &mut self,
        whole: &str,
        at: PartIndex<'_>,
        response: &mut ResponseWriter,
        out: &mut Events,
    ) -> Option<EscapedBuf> {
        let rest = self.text.rest_of(whole)?;
        let rest = match &mut self.cites {
            Some(cites) => {
                let rest = rest.strip_prefix(cites.citing.held())?;
                cites.pieces.forget_half();
                rest
            }
            None => rest,
        };
        let rest = EscapedBuf::of_plain(rest);
        self.text.forget_half();
        self.push(rest.get(), &[], at, response, out);
        Some(rest)
    }

    /// What was sent of it.
    pub(crate) fn written(&self) -> Escaped<'_> {
        self.text.get()
    }

    /// How many bytes of content it has.
    pub(crate) fn held(&self) -> usize {
        let cites = self.cites.as_ref().map_or(0, |cites| cites.citing.held().len() + cites.logprobs.len());
        self.text.len() + self.logprobs.len() + self.annotations.len() + cites
    }

    /// How many annotations the upstream gave.
    pub(crate) const fn given(&self) -> u32 {
        self.given
    }

    /// An annotation of the upstream's.
    pub(crate) fn annotate(
        &mut self,
        annotation: &[u8],
        at: PartIndex<'_>,
        response: &mut ResponseWriter,
        out: &mut Events,
    ) {
        self.given += 1;
        self.add_annotation(annotation, at, response, out);
    }

    fn add_annotation(
        &mut self,
        annotation: &[u8],
        at: PartIndex<'_>,
        response: &mut ResponseWriter,
        out: &mut Events,
    ) {
        let names = self.kind.names();
        response.event(EventKind::OutputTextAnnotationAdded, out, |event| {
            at.members(&names, event);
            event.int("annotation_index", self.annotation_count).json("annotation", annotation);
        });
        join(&mut self.annotations, annotation);
        self.annotation_count += 1;
    }

    /// Closes the part; gives its JSON and its text.
    pub(crate) fn close(
        mut self,
        at: PartIndex<'_>,
        response: &mut ResponseWriter,
        out: &mut Events,
    ) -> (Vec<u8>, EscapedBuf) {
        let names = self.kind.names();
        if let Some(cites) = &mut self.cites {
            cites.pieces.finish();
            let last = cites.pieces.take();
            let mut cited = cites.citing.push(&last.get().decode());
            cited.extend(cites.citing.finish());
            self.send_cited(cited, at, response, out);
        }
        let from = self.text.len();
        if self.text.finish() {
            response.delta(&self.delta_head, self.text.get().after(from), out);
        }
        response.event(names.text_done, out, |event| {
            self.kind.text_done_members(at, self.text.get(), &self.logprobs, event);
        });
        let mut part = Vec::with_capacity(self.text.len() + 80);
        self.kind.write(self.text.get(), (&self.annotations, &self.logprobs), &mut part);
        response.event(names.done, out, |event| {
            at.members(&names, event);
            event.json("part", &part);
        });
        (part, self.text.take())
    }
}

impl Citation {
    /// As `annotations` show it.
    fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.url.len() + self.title.len() + 96);
        let mut object = ObjectWriter::new(&mut out);
        object.text("type", "url_citation");
        object.int("start_index", self.start).int("end_index", self.end);
        object.text("url", &self.url).text("title", &self.title);
        object.end();
        out
    }
}
