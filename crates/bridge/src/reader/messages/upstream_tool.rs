//! Tools that the upstream runs itself, while it answers: a block says what it does, a later one what came of it. Searches
//! and opened pages are shown as `web_search_call`; what others did goes back to the upstream and to nobody else.

use wire::json::{Kind, MAX_DEPTH, ObjectWriter, Raw, Text};

use super::blocks::Pair;
use crate::escaped::{Escaped, EscapedBuf, Pieces};
use crate::json::{bracketed, join};
use crate::response::HostedItem;

/// The use of a tool that is being read.
#[derive(Debug, Clone)]
pub(super) struct Use {
    /// As it was announced.
    start: String,
    pub(super) id: String,
    pub(super) name: String,
    /// What came of its input after that.
    input: Pieces,
}

/// A search that is shown, until its result comes.
#[derive(Debug, Clone)]
pub(super) struct Search {
    pub(super) id: String,
    pub(super) item: HostedItem,
    input: String,
    opens_a_page: bool,
}

impl Use {
    pub(super) fn new(start: Raw<'_>) -> Self {
        let string =
            |name: &str| start.get(name).and_then(Raw::text).map(Text::decode).unwrap_or_default().into_owned();
        Self { start: start.as_str().to_owned(), id: string("id"), name: string("name"), input: Pieces::default() }
    }

    /// Whether its item is a search.
    pub(super) fn is_search(&self) -> bool {
        matches!(self.name.as_str(), "web_search" | "web_fetch")
    }

    pub(super) fn push(&mut self, input: Escaped<'_>) {
        self.input.push(input);
    }

    pub(super) fn held(&self) -> usize {
        self.start.len() + self.input.len()
    }

    /// Its input as JSON: what came in pieces, else what it was announced with.
    fn input(&self) -> String {
        let pieces = self.input.get().decode();
        let whole = Raw::parse(&pieces).ok().filter(|input| input.kind() == Kind::Object);
        let announced = || Raw::parse(&self.start).ok().and_then(|start| start.get("input"));
        whole.or_else(announced).map_or_else(|| "{}".to_owned(), |input| input.as_str().to_owned())
    }

    /// It is shown as this item.
    pub(super) fn shown(&self, item: HostedItem) -> Search {
        Search { id: self.id.clone(), item, input: self.input(), opens_a_page: self.name == "web_fetch" }
    }

    /// The whole block, to be sent back.
    pub(super) fn finish(&self) -> Option<(String, Pair)> {
        let start = Raw::parse(&self.start).ok().filter(|start| may_return(*start))?;
        let mut out = Vec::with_capacity(self.held() + 16);
        let mut block = ObjectWriter::new(&mut out);
        for (name, value) in start.fields().filter(|(name, _)| !name.is("input")) {
            block.raw(&name.decode(), value);
        }
        block.json("input", self.input().as_bytes());
        block.end();
        Some((String::from_utf8(out).ok()?, Pair::Use(self.id.clone())))
    }
}

/// What a tool did, to be sent back.
pub(super) fn result(block: Raw<'_>) -> Option<(String, Pair)> {
    let id = block.get("tool_use_id").and_then(Raw::text).filter(|_| may_return(block))?;
    Some((block.as_str().to_owned(), Pair::Result(id.decode().into_owned())))
}

/// Whether somebody else's JSON may become part of ours.
fn may_return(raw: Raw<'_>) -> bool {
    !raw.is_deeper_than(MAX_DEPTH - 4)
}

impl Search {
    /// The `action`, with what was found.
    pub(super) fn action(&self, content: Option<Raw<'_>>) -> String {
        let input = Raw::parse(&self.input).ok();
        let text = |name: &str| input.and_then(|input| input.get(name)).and_then(Raw::text).map(Escaped::of);
        let clean = |name: &str| EscapedBuf::clean(text(name).unwrap_or_default());
        let mut out = Vec::with_capacity(128);
        let mut action = ObjectWriter::new(&mut out);
        if self.opens_a_page {
            action.text("type", "open_page");
            clean("url").get().write(action.key("url"));
        } else {
            let query = clean("query");
            action.text("type", "search");
            query.get().write(action.key("query"));
            let mut queries = Vec::new();
            query.get().write(&mut queries);
            bracketed(action.key("queries"), &queries);
            bracketed(action.key("sources"), &sources(content));
        }
        action.end();
        String::from_utf8(out).unwrap_or_default()
    }
}

/// The addresses that were found: JSON, comma between them.
fn sources(content: Option<Raw<'_>>) -> Vec<u8> {
    let found = content.into_iter().flat_map(Raw::elements);
    let mut list = Vec::new();
    for url in found.filter_map(|result| result.get("url").and_then(Raw::text)) {
        let mut source = Vec::new();
        let mut object = ObjectWriter::new(&mut source);
        object.text("type", "url");
        EscapedBuf::clean(Escaped::of(url)).get().write(object.key("url"));
        object.end();
        join(&mut list, &source);
    }
    list
}

/// Whether a tool failed: then its content is an error.
pub(super) fn has_failed(content: Option<Raw<'_>>) -> bool {
    content.is_some_and(|content| content.get("error_code").is_some())
}
