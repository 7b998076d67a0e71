//! One block of the answer, from its start to its stop.

use wire::json::{Kind, Raw, Text};
use wire::message_event::{BlockDelta, MessageEvent};
use wire::responses::Status;

use super::MessagesReader;
use super::blocks::{Pair, Thought};
use super::upstream_tool::{self, Use};
use crate::escaped::{Escaped, EscapedBuf};
use crate::events::Events;
use crate::failure::{Failure, FailureClass};
use crate::note::Action;
use crate::response::{HostedEnd, HostedStart, PartKind, ResponseWriter, Slot, SlotKind};

/// A block that is being read.
#[derive(Debug, Clone)]
pub(super) struct OpenBlock {
    index: Option<i64>,
    kind: BlockKind,
}

#[derive(Debug, Clone)]
enum BlockKind {
    /// Text, and what it cites, as JSON.
    Text(Vec<String>),
    Thinking(Thought),
    Call(CallBlock),
    /// The upstream uses a tool of its own.
    Use(Use),
    /// Nothing more is wanted of it.
    Over,
}

#[derive(Debug, Clone)]
struct CallBlock {
    /// The input that it was announced with: a placeholder, unless nothing else comes.
    announced: String,
    has_input: bool,
}

impl OpenBlock {
    /// How many bytes it holds that are nowhere else.
    pub(super) fn held(&self) -> usize {
        match &self.kind {
            BlockKind::Text(citations) => citations.iter().map(String::len).sum(),
            BlockKind::Thinking(thought) => thought.held(),
            BlockKind::Call(call) => call.announced.len(),
            BlockKind::Use(tool) => tool.held(),
            BlockKind::Over => 0,
        }
    }

    /// Whether it is a call that came without any input so far.
    const fn awaits_input(&self) -> bool {
        matches!(&self.kind, BlockKind::Call(call) if !call.has_input && call.announced.is_empty())
    }

    /// Whether something that is said of the block with this number can be about it.
    fn is_at(&self, index: Option<i64>) -> bool {
        self.index.is_none() || index.is_none() || self.index == index
    }
}

fn number(raw: Option<Raw<'_>>) -> Option<i64> {
    raw.and_then(|raw| raw.as_str().parse().ok())
}

fn string(raw: Option<Raw<'_>>) -> Option<Text<'_>> {
    raw.and_then(Raw::text).filter(|text| !text.is_empty())
}

impl MessagesReader {
    pub(super) fn start(&mut self, event: &MessageEvent<'_>, response: &mut ResponseWriter, out: &mut Events) {
        if !self.make_way(response, out) {
            return;
        }
        match event.content_block.filter(|block| block.kind() == Kind::Object) {
            Some(block) => self.open_block(block, number(event.index), response, out),
            None => response.remark(Action::Ignored, "content", "a block that could not be read was left out"),
        }
    }

    /// A block begins: with nothing in it, or with all of it.
    pub(super) fn open_block(
        &mut self,
        block: Raw<'_>,
        index: Option<i64>,
        response: &mut ResponseWriter,
        out: &mut Events,
    ) {
        if self.report.failure.is_some() {
            return;
        }
        let name = string(block.get("type")).map(Text::decode).unwrap_or_default();
        let kind = match &*name {
            "text" => self.open_text(block, response, out),
            "thinking" => self.open_thought(block, response, out),
            "redacted_thinking" => {
                self.heard.anything = true;
                self.turn_to_reasoning(response, out);
                self.kept.push(block.as_str().to_owned(), Pair::None);
                BlockKind::Over
            }
            "tool_use" => self.open_call(block, response, out),
            "server_tool_use" | "mcp_tool_use" => self.open_use(block, response, out),
            name if name.ends_with("_tool_result") => {
                self.result(block, response, out);
                BlockKind::Over
            }
            "fallback" => {
                let model =
                    |name: &str| string(block.get(name).and_then(|model| model.get("model")).or(block.get(name)));
                let to: String = model("to").map(Text::decode).unwrap_or_default().chars().take(128).collect();
                response.remark(Action::Degraded, "model", format!("the provider went on with another model: {to}"));
                BlockKind::Over
            }
            name => {
                let name: String = name.chars().take(64).collect();
                response.remark(Action::Ignored, "content", format!("a block of the type '{name}' was left out"));
                BlockKind::Over
            }
        };
        self.block = Some(OpenBlock { index, kind });
    }

    fn open_text(&mut self, block: Raw<'_>, response: &mut ResponseWriter, out: &mut Events) -> BlockKind {
        self.begin_text();
        if let Some(text) = string(block.get("text")) {
            self.text(text, response, out);
        }
        let citations = block.get("citations").into_iter().flat_map(Raw::elements);
        BlockKind::Text(citations.map(|citation| citation.as_str().to_owned()).collect())
    }

    fn open_thought(&mut self, block: Raw<'_>, response: &mut ResponseWriter, out: &mut Events) -> BlockKind {
        self.turn_to_reasoning(response, out);
        if let Some(slot) = &mut self.open {
            slot.end_part(response, out);
        }
        if let Some(text) = string(block.get("thinking")) {
            self.say(PartKind::Reasoning, Escaped::of(text), response, out);
        }
        BlockKind::Thinking(Thought::new(block))
    }

    fn open_call(&mut self, block: Raw<'_>, response: &mut ResponseWriter, out: &mut Events) -> BlockKind {
        self.heard.anything = true;
        self.release(response, out);
        if !self.settle(response, out) {
            return BlockKind::Over;
        }
        self.close_slot(Status::Completed, response, out);
        self.write_kept(response, out);
        let id = string(block.get("id")).map(Escaped::of);
        let name = string(block.get("name")).map(Escaped::of).unwrap_or_default();
        if !self.calls.begin_block(id, name, response) {
            return BlockKind::Over;
        }
        let input = block.get("input").filter(|input| input.kind() == Kind::Object && input.fields().next().is_some());
        BlockKind::Call(CallBlock { announced: input.map_or("", Raw::as_str).to_owned(), has_input: false })
    }

    fn open_use(&mut self, block: Raw<'_>, response: &mut ResponseWriter, out: &mut Events) -> BlockKind {
        self.heard.anything = true;
        // Several at once: what the first one found comes after the next one's beginning, and items do not overlap.
        if let Some(search) = self.search.take() {
            let end = HostedEnd::Searched { action: search.action(None) };
            response.close_hosted_in_answer(&search.item, &end, out);
        }
        self.release(response, out);
        if !self.settle(response, out) {
            return BlockKind::Over;
        }
        self.close_slot(Status::Completed, response, out);
        BlockKind::Use(Use::new(block))
    }

    pub(super) fn delta(&mut self, event: &MessageEvent<'_>, response: &mut ResponseWriter, out: &mut Events) {
        let Some(delta) = &event.delta else { return };
        let index = number(event.index);
        let name = delta.kind.and_then(Raw::text).map(Text::decode).unwrap_or_default();
        match &*name {
            "text_delta" => {
                if let Some(text) = string(delta.text)
                    && self.be_in_text(index, response, out)
                {
                    self.text(text, response, out);
                }
            }
            "thinking_delta" | "reasoning_delta" => self.thinking_delta(delta, index, response, out),
            "signature_delta" => match (&mut self.block, delta.signature.and_then(Raw::text)) {
                (Some(OpenBlock { kind: BlockKind::Thinking(thought), .. }), Some(signature)) => {
                    thought.sign(signature);
                }
                _ => response.remark(Action::Ignored, "content", "a signature of nothing was left out"),
            },
            "input_json_delta" => self.input_delta(delta, index, response, out),
            "citations_delta" => self.citation_delta(delta.citation, response, out),
            name => {
                let name: String = name.chars().take(64).collect();
                response.remark(Action::Ignored, "content", format!("a delta of the type '{name}' was left out"));
            }
        }
    }

    /// A block of text begins, perhaps in a message that is open.
    fn begin_text(&mut self) {
        let written = self.open.as_ref().map(Slot::written).unwrap_or_default();
        let last = written.after(self.text_from);
        if !last.is_empty() {
            let before = self.place.breaks.last().copied().unwrap_or(0);
            self.place.breaks.push(before + last.decode().chars().count());
        }
        self.text_from = written.len();
    }

    /// Text that was not announced is text all the same. Says whether there is room for it.
    fn be_in_text(&mut self, index: Option<i64>, response: &mut ResponseWriter, out: &mut Events) -> bool {
        if matches!(self.block, Some(OpenBlock { kind: BlockKind::Text(_), .. })) {
            return true;
        }
        if !self.make_way(response, out) {
            return false;
        }
        self.begin_text();
        self.block = Some(OpenBlock { index, kind: BlockKind::Text(Vec::new()) });
        true
    }

    fn thinking_delta(
        &mut self,
        delta: &BlockDelta<'_>,
        index: Option<i64>,
        response: &mut ResponseWriter,
        out: &mut Events,
    ) {
        let Some(text) = [delta.thinking, delta.reasoning, delta.text].into_iter().find_map(string) else { return };
        if !matches!(self.block, Some(OpenBlock { kind: BlockKind::Thinking(_), .. })) {
            if !self.make_way(response, out) {
                return;
            }
            let kind = self.open_thought(Raw::ours("{}"), response, out);
            self.block = Some(OpenBlock { index, kind });
        }
        if let Some(OpenBlock { kind: BlockKind::Thinking(thought), .. }) = &mut self.block {
            thought.push(Escaped::of(text));
        }
        self.say(PartKind::Reasoning, Escaped::of(text), response, out);
    }

    fn input_delta(
        &mut self,
        delta: &BlockDelta<'_>,
        index: Option<i64>,
        response: &mut ResponseWriter,
        out: &mut Events,
    ) {
        let Some(piece) = delta.partial_json.filter(|piece| !piece.is_null()) else { return };
        // Some servers send the value itself.
        let ours = if piece.kind() == Kind::String { None } else { Some(EscapedBuf::of_plain(piece.as_str())) };
        let piece = ours.as_ref().map_or_else(|| piece.text().map(Escaped::of).unwrap_or_default(), EscapedBuf::get);
        if piece.is_empty() {
            return;
        }
        match self.block.as_mut().filter(|block| block.is_at(index)).map(|block| &mut block.kind) {
            Some(BlockKind::Call(call)) => {
                call.has_input = true;
                self.calls.more(piece);
                self.calls.stream(response, out);
            }
            Some(BlockKind::Use(tool)) => tool.push(piece),
            Some(BlockKind::Over) => {}
            // What was made up here would be carried out there.
            Some(BlockKind::Text(_) | BlockKind::Thinking(_)) | None => {
                let message = "The provider's answer cannot be made sense of: arguments came for no tool call.";
                self.report.failure.get_or_insert(Failure::new(FailureClass::Protocol, message));
            }
        }
    }

    /// Citations may come before the text that they belong to, and after its end.
    fn citation_delta(&mut self, citation: Option<Raw<'_>>, response: &mut ResponseWriter, out: &mut Events) {
        let Some(citation) = citation.map(|citation| citation.as_str().to_owned()) else { return };
        match &mut self.block {
            Some(OpenBlock { kind: BlockKind::Text(citations), .. }) => citations.push(citation),
            _ => self.cite(&[citation], response, out),
        }
    }

    /// Whoever begins another block has ended this one. But a call of which no input has come may get it later: what was
    /// made up in its place would be carried out. Says whether there is a way.
    fn make_way(&mut self, response: &mut ResponseWriter, out: &mut Events) -> bool {
        if self.block.as_ref().is_some_and(OpenBlock::awaits_input) {
            let message = "The provider's answer cannot be made sense of: a tool call has no input, and no end.";
            self.report.failure.get_or_insert(Failure::new(FailureClass::Protocol, message));
            return false;
        }
        self.stop(response, out);
        true
    }

    /// The block is whole.
    pub(super) fn stop(&mut self, response: &mut ResponseWriter, out: &mut Events) {
        let Some(OpenBlock { kind, .. }) = self.block.take() else { return };
        match kind {
            BlockKind::Text(citations) => self.cite(&citations, response, out),
            BlockKind::Thinking(thought) => {
                if let Some(json) = thought.finish() {
                    self.heard.anything = true;
                    self.kept.push(json, Pair::None);
                }
            }
            BlockKind::Call(CallBlock { announced, has_input }) => {
                if !has_input && !announced.is_empty() {
                    self.calls.more(EscapedBuf::of_plain(&announced).get());
                    self.calls.stream(response, out);
                }
            }
            BlockKind::Use(tool) => self.used_tool(&tool, response, out),
            BlockKind::Over => {}
        }
    }

    /// Nothing more comes. A thought that was cut is not sent back: its signature is missing.
    pub(super) fn break_off(&mut self, response: &mut ResponseWriter, out: &mut Events) {
        if let Some(OpenBlock { kind: BlockKind::Text(citations), .. }) = self.block.take() {
            self.cite(&citations, response, out);
        }
    }

    fn used_tool(&mut self, tool: &Use, response: &mut ResponseWriter, out: &mut Events) {
        self.kept.keep(tool.finish());
        self.report.ran.add(&tool.name);
        if tool.is_search() {
            let item = response.open_hosted(HostedStart::WebSearch, out);
            self.search = Some(tool.shown(item));
        } else {
            let name: String = tool.name.chars().take(64).collect();
            response.remark(Action::Ignored, "output", format!("what the provider did with '{name}' is not shown"));
        }
    }

    fn result(&mut self, block: Raw<'_>, response: &mut ResponseWriter, out: &mut Events) {
        self.heard.anything = true;
        let kept = upstream_tool::result(block);
        let is_of_search = match (&kept, &self.search) {
            (Some((_, Pair::Result(id))), Some(search)) => *id == search.id,
            _ => false,
        };
        self.kept.keep(kept);
        if is_of_search {
            self.close_search(Some(block), response, out);
        }
    }

    /// The search is over. Without a result nobody knows what it came to.
    pub(super) fn close_search(&mut self, result: Option<Raw<'_>>, response: &mut ResponseWriter, out: &mut Events) {
        let Some(search) = self.search.take() else { return };
        let content = result.and_then(|result| result.get("content"));
        let action = search.action(content);
        let failed = result.is_none() || upstream_tool::has_failed(content);
        let end = if failed { HostedEnd::NotSearched { action } } else { HostedEnd::Searched { action } };
        response.close_hosted_in_answer(&search.item, &end, out);
    }

    /// What the text of the last block cites.
    fn cite(&mut self, citations: &[String], response: &mut ResponseWriter, out: &mut Events) {
        if citations.is_empty() {
            return;
        }
        // In what was promised as JSON there is nothing to be cited.
        let Some(slot) = self.open.as_mut().filter(|slot| slot.is_text() && !self.promise.is_made()) else {
            return response.remark(Action::Ignored, "annotations", "citations without a text were left out");
        };
        let text = slot.written();
        let characters = |text: Escaped<'_>| text.decode().chars().count();
        let start = characters(text.up_to(self.text_from));
        let extent = super::cited::Extent { start, end: start + characters(text.after(self.text_from)) };
        for citation in citations {
            let annotation = Raw::parse(citation).ok().and_then(|citation| super::cited::annotation(citation, extent));
            if let Some(annotation) = annotation {
                slot.annotate(&annotation, response, out);
            }
        }
    }

    /// What comes next is reasoning: a message that is open is over.
    fn turn_to_reasoning(&mut self, response: &mut ResponseWriter, out: &mut Events) {
        self.release(response, out);
        if self.settle(response, out) && self.open.as_ref().is_some_and(|slot| slot.kind() == SlotKind::Message) {
            self.close_slot(Status::Completed, response, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_without_a_number_is_the_one_that_is_open() {
        let block = |index| OpenBlock { index, kind: BlockKind::Over };
        for (open, said, expected) in
            [(Some(0), Some(0), true), (Some(0), Some(1), false), (None, Some(1), true), (Some(2), None, true)]
        {
            assert_eq!(block(open).is_at(said), expected, "{open:?} {said:?}");
        }
    }
}
