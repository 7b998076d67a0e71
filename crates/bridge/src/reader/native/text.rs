//! A message, or reasoning: items made of parts. Announced when there is something in them.

use wire::id::{Id, IdKind};
use wire::json::{ObjectWriter, Raw, Text};
use wire::responses::{EventKind, Incoming, Status};

use super::super::cite;
use super::event::{Op, index, part_kind};
use super::item::more;
use super::{Ctx, fits, string};
use crate::escaped::{Escaped, EscapedBuf};
use crate::json::{bracketed, compact, join};
use crate::note::Action;
use crate::response::{Part, PartIndex, PartKind, SlotKind};
use crate::seal::{Encrypted, SealedReasoning, ThoughtPlace};

/// `phase` of a message.
const PHASES: [&str; 2] = ["\"commentary\"", "\"final_answer\""];

#[derive(Debug, Clone)]
pub(super) struct TextItem {
    kind: SlotKind,
    upstream_id: String,
    /// Our id and place, once it was announced.
    shown: Option<(Id, u32)>,
    /// Members beside the usual ones.
    more: Vec<(String, String)>,
    content: List,
    summary: List,
    open: Option<OpenPart>,
    /// What the closed parts of reasoning say.
    said: EscapedBuf,
}

/// The closed parts of one list: JSON, comma between them.
#[derive(Debug, Clone, Default)]
struct List {
    json: Vec<u8>,
    count: u32,
    /// The upstream's index of the next part.
    next: u64,
}

#[derive(Debug, Clone)]
struct OpenPart {
    part: Part,
    /// The upstream's index of it, if it gives one.
    index: Option<u64>,
}

/// A part as the upstream repeats it at its end.
#[derive(Clone, Copy)]
struct Whole<'a> {
    kind: PartKind,
    index: Option<u64>,
    text: Text<'a>,
    annotations: Option<Raw<'a>>,
    logprobs: Option<Raw<'a>>,
}

impl<'a> Whole<'a> {
    fn of(part: Raw<'a>, index: Option<u64>) -> Option<Self> {
        let kind = part_kind(part)?;
        let text = part.get(if kind == PartKind::Refusal { "refusal" } else { "text" })?.text()?;
        Some(Self { kind, index, text, annotations: part.get("annotations"), logprobs: part.get("logprobs") })
    }

    /// As the client is shown it.
    fn shown(self, ctx: &mut Ctx<'_>) -> Self {
        Self { kind: ctx.shown(self.kind, self.text), ..self }
    }
}

impl TextItem {
    pub(super) fn new(kind: SlotKind, upstream_id: String) -> Self {
        let (content, summary) = (List::default(), List::default());
        Self {
            kind,
            upstream_id,
            shown: None,
            more: Vec::new(),
            content,
            summary,
            open: None,
            said: EscapedBuf::default(),
        }
    }

    pub(super) fn held(&self) -> usize {
        let open = self.open.as_ref().map_or(0, |open| open.part.held());
        self.content.json.len() + self.summary.json.len() + open
    }

    pub(super) fn apply(&mut self, op: Op, event: &Incoming<'_>, ctx: &mut Ctx<'_>) {
        let index = index(event.content_index.or(event.summary_index));
        match op {
            Op::Added => {
                if let Some(item) = event.item {
                    self.learn(item, ctx);
                }
            }
            Op::Delta(kind) => {
                if let Some(delta) = string(event.delta) {
                    let kind = ctx.shown(kind, delta);
                    self.say(kind, index, Escaped::of(delta), event.logprobs, ctx);
                }
            }
            Op::TextDone(kind) => {
                if let Some(text) = event.text.or(event.refusal).and_then(Raw::text) {
                    let whole = Whole { kind, index, text, annotations: None, logprobs: event.logprobs };
                    self.complete(whole.shown(ctx), ctx);
                }
            }
            Op::PartDone => {
                if let Some(whole) = event.part.and_then(|part| Whole::of(part, index)).map(|whole| whole.shown(ctx)) {
                    self.complete(whole, ctx);
                    if self.holds(whole.kind, index) {
                        self.close_part(ctx);
                    }
                }
            }
            Op::Annotation => self.annotate(event.annotation, ctx),
            _ => {}
        }
    }

    fn learn(&mut self, item: Raw<'_>, ctx: &mut Ctx<'_>) {
        let known = ["id", "type", "status", "role", "content", "summary", "encrypted_content"];
        self.more = more(item, &known);
        // Clients leave out a message of a phase that the API does not have.
        let odd = |(name, json): &(String, String)| name == "phase" && !PHASES.contains(&json.as_str());
        if self.more.iter().any(odd) {
            self.more.retain(|member| !odd(member));
            ctx.response.remark(Action::Ignored, "output", "a phase that the API does not have was left out");
        }
    }

    const fn list(&mut self, kind: PartKind) -> &mut List {
        if matches!(kind, PartKind::Summary) { &mut self.summary } else { &mut self.content }
    }

    /// Whether the open part is this one.
    fn holds(&mut self, kind: PartKind, index: Option<u64>) -> bool {
        let next = self.list(kind).next;
        self.open
            .as_ref()
            .is_some_and(|open| open.part.kind == kind && index.is_none_or(|index| open.index.unwrap_or(next) == index))
    }

    fn announce(&mut self, ctx: &mut Ctx<'_>) {
        if self.shown.is_some() {
            return;
        }
        let id = ctx.id(
            &self.upstream_id,
            match self.kind {
                SlotKind::Message => IdKind::Message,
                SlotKind::Reasoning => IdKind::Reasoning,
            },
        );
        let output_index = ctx.response.output_index();
        ctx.event(EventKind::OutputItemAdded, |event| {
            event.int("output_index", output_index);
            self.write(&id, Status::InProgress, "", event.key("item"));
        });
        self.shown = Some((id, output_index));
    }

    /// More text.
    fn say(
        &mut self,
        kind: PartKind,
        index: Option<u64>,
        text: Escaped<'_>,
        logprobs: Option<Raw<'_>>,
        ctx: &mut Ctx<'_>,
    ) {
        if kind.slot() != self.kind {
            return ctx.response.remark(Action::Ignored, "stream", "a part that its item cannot have was left out");
        }
        let goes_on =
            self.holds(kind, index) || self.open.as_ref().is_some_and(|o| o.part.kind == kind && o.index.is_none());
        if !goes_on {
            self.close_part(ctx);
        }
        self.announce(ctx);
        tally(kind, text, ctx);
        let count = self.list(kind).count;
        let Some((id, output_index)) = &self.shown else { return };
        let at = PartIndex { item_id: id.as_str(), output_index: *output_index, index: count };
        let (response, out, sources) = (&mut *ctx.response, &mut *ctx.out, ctx.setup.sources.as_ref());
        let open =
            self.open.get_or_insert_with(|| OpenPart { part: Part::open(kind, sources, at, response, out), index });
        let wanted = logprobs.filter(|_| ctx.wanted.logprobs && kind == PartKind::Text);
        open.part.push(text, &wanted.map(cite::tokens).unwrap_or_default(), at, ctx.response, ctx.out);
    }

    /// A part as it is at its end: what did not come in deltas follows.
    fn complete(&mut self, whole: Whole<'_>, ctx: &mut Ctx<'_>) {
        let Whole { kind, index, text, annotations, logprobs } = whole;
        if self.holds(kind, index) {
            let count = self.list(kind).count;
            let (Some(open), Some((id, output_index))) = (&mut self.open, &self.shown) else { return };
            let at = PartIndex { item_id: id.as_str(), output_index: *output_index, index: count };
            let decoded = text.decode();
            match open.part.complete(&decoded, at, ctx.response, ctx.out) {
                Some(rest) => tally(kind, rest.get(), ctx),
                None => {
                    let message = "what came in pieces counts, not the whole that differs from it";
                    ctx.response.remark(Action::Repaired, "stream", message);
                }
            }
        } else {
            let list = self.list(kind);
            let is_old = index.map_or(list.count > 0, |index| index < list.next);
            if is_old || text.is_empty() {
                return;
            }
            self.say(kind, index, Escaped::of(text), logprobs, ctx);
        }
        let known = self.open.as_ref().map_or(0, |open| open.part.given());
        for annotation in annotations.into_iter().flat_map(Raw::elements).skip(known as usize) {
            self.annotate(Some(annotation), ctx);
        }
    }

    fn annotate(&mut self, annotation: Option<Raw<'_>>, ctx: &mut Ctx<'_>) {
        let annotation = annotation.filter(|raw| string(raw.get("type")).is_some() && fits(*raw));
        let count = self.content.count;
        let (Some(open), Some((id, output_index))) = (&mut self.open, &self.shown) else { return };
        let Some(annotation) = annotation.filter(|_| open.part.kind == PartKind::Text) else { return };
        let at = PartIndex { item_id: id.as_str(), output_index: *output_index, index: count };
        let mut clean = Vec::with_capacity(annotation.as_str().len());
        compact(annotation.as_str(), &mut clean);
        open.part.annotate(&clean, at, ctx.response, ctx.out);
    }

    fn close_part(&mut self, ctx: &mut Ctx<'_>) {
        let Some(OpenPart { part, index }) = self.open.take() else { return };
        let kind = part.kind;
        let count = self.list(kind).count;
        let Some((id, output_index)) = &self.shown else { return };
        let at = PartIndex { item_id: id.as_str(), output_index: *output_index, index: count };
        let (json, text) = part.close(at, ctx.response, ctx.out);
        let list = self.list(kind);
        join(&mut list.json, &json);
        list.count += 1;
        list.next = index.unwrap_or(list.next) + 1;
        if kind == PartKind::Reasoning {
            self.said.push(text.get());
        }
    }

    pub(super) fn close(mut self, last: Option<Raw<'_>>, status: Status, ctx: &mut Ctx<'_>) {
        let mut encrypted = None;
        if let Some(item) = last {
            self.learn(item, ctx);
            for name in ["summary", "content"] {
                for (index, part) in (0..).zip(item.get(name).into_iter().flat_map(Raw::elements)) {
                    if let Some(whole) = Whole::of(part, Some(index)) {
                        self.complete(whole.shown(ctx), ctx);
                    }
                }
            }
            encrypted = string(item.get("encrypted_content")).map(|text| text.decode().into_owned());
        }
        self.close_part(ctx);
        if self.shown.is_none() && encrypted.is_none() {
            return ctx.response.remark(Action::Ignored, "output", "an item with nothing in it was left out");
        }
        self.announce(ctx);
        let sealed = if self.kind == SlotKind::Reasoning { self.seal(encrypted, ctx) } else { String::new() };
        let Some((id, output_index)) = &self.shown else { return };
        let mut item = Vec::with_capacity(self.content.json.len() + self.summary.json.len() + sealed.len() + 160);
        self.write(id, status, &sealed, &mut item);
        ctx.response.close_item(*output_index, &item, ctx.out);
    }

    /// What goes out instead of the upstream's own seal: ours around it, so that nobody else ever gets it.
    fn seal(&self, encrypted: Option<String>, ctx: &Ctx<'_>) -> String {
        let reasoning = SealedReasoning {
            family: ctx.setup.dialect.family.clone(),
            text: self.said.get().decode().into_owned(),
            replay_data: None,
            native: encrypted.map(|content| Encrypted { id: self.upstream_id.clone(), content }),
            place: ThoughtPlace::default(),
        };
        ctx.setup.seal.seal(&reasoning.encode())
    }

    fn write(&self, id: &Id, status: Status, sealed: &str, out: &mut Vec<u8>) {
        let mut item = ObjectWriter::new(out);
        item.text("id", id.as_str());
        match self.kind {
            SlotKind::Message => {
                item.text("type", "message").text("status", status.name()).text("role", "assistant");
            }
            SlotKind::Reasoning => {
                item.text("type", "reasoning").text("status", status.name());
                bracketed(item.key("summary"), &self.summary.json);
                if !sealed.is_empty() {
                    item.text("encrypted_content", sealed);
                }
            }
        }
        bracketed(item.key("content"), &self.content.json);
        for (name, json) in &self.more {
            item.json(name, json.as_bytes());
        }
        item.end();
    }
}

/// Counts what is said.
fn tally(kind: PartKind, text: Escaped<'_>, ctx: &mut Ctx<'_>) {
    ctx.tally.volume.add(kind, text.len());
    if kind == PartKind::Text {
        ctx.promise.push(text);
    }
}
