//! Tools that godex runs for a provider with a Responses API of its own: functions in the place of what the client declared,
//! and pairs of calls and outputs in the place of their items. What the provider runs itself stays as it is.

use std::borrow::Cow;

use wire::json::{Invalid, Kind, ObjectWriter, Raw, Text, write_text};
use wire::responses::{CreateResponse, Tool, ToolChoice, ToolChoiceObject};

use super::super::item_path::Items;
use super::super::notes::Notes;
use super::super::tools::{Catalog, unsupported};
use super::super::{PlanTarget, Round};
use crate::context::OfferedTool;
use crate::dialect::Parameter;

/// What becomes of a member of the request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Member {
    AsAsked,
    LeftOut,
    Json(Vec<u8>),
}

#[derive(Debug)]
pub(super) struct HostedTools<'a> {
    pub(super) catalog: Catalog<'a>,
    pub(super) tools: Member,
    pub(super) choice: Member,
    /// What the reader has to know of them.
    pub(super) offered: Vec<OfferedTool>,
    /// Which tool of the request each that is declared stands for.
    declared: Vec<usize>,
}

impl<'a> HostedTools<'a> {
    pub(super) fn of(
        request: &CreateResponse<'a>,
        items: &Items<'_, 'a>,
        target: PlanTarget<'_>,
        notes: &mut Notes,
    ) -> Result<Self, Invalid> {
        let (dialect, hosting) = (target.dialect, target.hosting);
        let catalog = Catalog::of_hosted(request, items, &dialect.request.tools, hosting, notes)?;
        let mut this = Self {
            catalog,
            tools: Member::AsAsked,
            choice: Member::AsAsked,
            offered: Vec::new(),
            declared: Vec::new(),
        };
        let only = this.choose(request.tool_choice.as_ref(), target)?;
        // Who cannot be told that no tool may be called is offered none.
        if hosting.round == Round::Last && dialect.drops(Parameter::ToolChoice) {
            (this.tools, this.choice) = (Member::LeftOut, Member::LeftOut);
        } else if hosting.runs() {
            this.declare(request, only.as_deref());
        }
        Ok(this)
    }

    /// Says where the tools and the instructions are in what is sent, for whoever asks.
    pub(super) fn place(&self, request: &CreateResponse<'_>, notes: &mut Notes) {
        let Some(links) = notes.links() else { return };
        links.forget_tools();
        if request.instructions.is_some() {
            links.keeps_instructions();
        }
        match self.tools {
            Member::AsAsked => {
                let all = 0..request.tools.iter().flatten().count();
                all.for_each(|index| links.tool(format_args!("tools[{index}]"), index));
            }
            Member::LeftOut => {}
            Member::Json(_) => {
                let declared = self.declared.iter().enumerate();
                declared.for_each(|(index, place)| links.tool(format_args!("tools[{place}]"), index));
            }
        }
    }

    /// The choice in terms of functions, and the only ones that are offered for it.
    fn choose(
        &mut self,
        asked: Option<&ToolChoice<'_>>,
        target: PlanTarget<'_>,
    ) -> Result<Option<Vec<usize>>, Invalid> {
        let hosting = target.hosting;
        let choice = match (asked, hosting.round) {
            (_, Round::Last) => {
                self.choice = Member::Json(b"\"none\"".to_vec());
                return Ok(None);
            }
            (Some(ToolChoice::Object { choice: ToolChoiceObject::Allowed(allowed), raw }), round) => {
                self.allow(allowed.tools.as_deref().unwrap_or_default(), *raw, round);
                return Ok(None);
            }
            (Some(ToolChoice::Required | ToolChoice::Object { .. }), Round::Later) => {
                self.choice = Member::LeftOut;
                return Ok(None);
            }
            (Some(ToolChoice::Object { choice, raw }), Round::First) => (choice, *raw),
            _ => return Ok(None),
        };
        match choice {
            (ToolChoiceObject::Mcp(named), _) if self.catalog.asks_any(named.server_label) => {
                let (label, name) = (named.server_label.map(Text::decode), named.name.map(Text::decode));
                if hosting.lists_pending && self.catalog.is_unlisted(label.as_deref()) {
                    self.choice = Member::LeftOut;
                    return Ok(None);
                }
                let tools = self.catalog.of_server(label.as_deref(), name.as_deref());
                match (tools.as_slice(), name) {
                    ([], _) => Err(unsupported("none of the tools that it allows can be called here")),
                    ([tool], Some(_)) => {
                        self.demand(*tool);
                        Ok(None)
                    }
                    _ => {
                        self.choice = Member::Json(b"\"required\"".to_vec());
                        Ok(Some(tools))
                    }
                }
            }
            (_, raw) if raw.get("type").and_then(Raw::text).is_some_and(is_search) => {
                if let Some(search) = self.catalog.of_search().first() {
                    self.demand(*search);
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// The model must call this one.
    fn demand(&mut self, index: usize) {
        let mut choice = Vec::new();
        if let Some((function, _)) = self.catalog.function(index) {
            write_named(&function.name, &mut choice);
        }
        self.choice = Member::Json(choice);
    }

    /// `allowed_tools`, with functions in it for what godex runs.
    fn allow(&mut self, tools: &[Tool<'_>], raw: Raw<'_>, round: Round) {
        if round == Round::First && tools.iter().all(|tool| self.functions(tool).is_none()) {
            return;
        }
        let mut out = Vec::new();
        let mut object = ObjectWriter::new(&mut out);
        for (key, value) in raw.fields() {
            match &*key.decode() {
                "mode" if round != Round::First => drop(object.text("mode", "auto")),
                "tools" => {
                    let mut list = List::new(object.key("tools"));
                    for (tool, raw) in tools.iter().zip(value.elements()) {
                        match self.functions(tool) {
                            None => list.next().extend_from_slice(raw.as_str().as_bytes()),
                            Some(functions) => {
                                let functions = functions.iter().filter_map(|index| self.catalog.function(*index));
                                functions.for_each(|(function, _)| write_named(&function.name, list.next()));
                            }
                        }
                    }
                    list.end();
                }
                name => drop(object.raw(name, value)),
            }
        }
        object.end();
        self.choice = Member::Json(out);
    }

    /// The functions that stand for a tool; none if it is not godex that runs it.
    fn functions(&self, tool: &Tool<'_>) -> Option<Vec<usize>> {
        match tool {
            Tool::Mcp(mcp) if self.catalog.asks(mcp.server_label) => {
                let name = mcp.extra.iter().find(|(key, _)| key.is("name")).and_then(|(_, name)| name.text());
                let (label, name) = (mcp.server_label.map(Text::decode), name.map(Text::decode));
                Some(self.catalog.of_server(label.as_deref(), name.as_deref()))
            }
            Tool::WebSearch(_) => Some(self.catalog.of_search()).filter(|search| !search.is_empty()),
            _ => None,
        }
    }

    fn declare(&mut self, request: &CreateResponse<'_>, only: Option<&[usize]>) {
        let mut out = Vec::new();
        let mut list = List::new(&mut out);
        let mut offered: Vec<usize> = Vec::new();
        for (place, tool) in request.tools.iter().flatten().enumerate() {
            let Some(functions) = self.functions(&tool.value) else {
                if only.is_none() {
                    list.next().extend_from_slice(tool.raw.as_str().as_bytes());
                    self.declared.push(place);
                }
                continue;
            };
            for index in functions {
                let wanted = only.is_none_or(|only| only.contains(&index)) && !offered.contains(&index);
                if let Some((function, tool)) = self.catalog.function(index).filter(|_| wanted) {
                    function.write_flat(list.next());
                    self.offered.push(tool);
                    self.declared.push(place);
                    offered.push(index);
                }
            }
        }
        let is_empty = list.end();
        self.tools = if is_empty { Member::LeftOut } else { Member::Json(out) };
        if is_empty {
            self.choice = Member::LeftOut;
        }
    }
}

/// An array while it is written.
struct List<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl<'o> List<'o> {
    fn new(out: &'o mut Vec<u8>) -> Self {
        out.push(b'[');
        Self { out, is_empty: true }
    }

    /// The place of the next element.
    fn next(&mut self) -> &mut Vec<u8> {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
        self.out
    }

    /// Whether there was none.
    fn end(self) -> bool {
        self.out.push(b']');
        self.is_empty
    }
}

fn is_search(kind: Text<'_>) -> bool {
    kind.decode().starts_with("web_search")
}

/// `{"type":"function","name":…}`.
fn write_named(name: &str, out: &mut Vec<u8>) {
    let mut object = ObjectWriter::new(out);
    object.text("type", "function").text("name", name);
    object.end();
}

/// A call and its output, as a pair of items.
pub(super) struct Pair<'p> {
    pub(super) call_id: String,
    pub(super) name: Cow<'p, str>,
    pub(super) arguments: Cow<'p, str>,
    pub(super) output: PairOutput<'p>,
}

/// What the model was told: as it is kept, or in words.
pub(super) enum PairOutput<'p> {
    Kept(Raw<'p>),
    Words(String),
}

impl Pair<'_> {
    pub(super) fn write_call(&self, out: &mut Vec<u8>) {
        let mut call = ObjectWriter::new(out);
        call.text("type", "function_call").text("call_id", &self.call_id);
        let arguments = if self.arguments.is_empty() { "{}" } else { &self.arguments };
        call.text("name", &self.name).text("arguments", arguments);
        call.end();
    }

    pub(super) fn write_output(&self, out: &mut Vec<u8>) {
        let mut output = ObjectWriter::new(out);
        output.text("type", "function_call_output").text("call_id", &self.call_id);
        match &self.output {
            PairOutput::Kept(raw) if matches!(raw.kind(), Kind::String | Kind::Array) => {
                output.raw("output", *raw);
            }
            PairOutput::Kept(raw) => write_text(output.key("output"), raw.as_str()),
            PairOutput::Words(text) => {
                output.text("output", text);
            }
        }
        output.end();
    }
}
