//! Calls of all kinds → tool calls, under the names and with the arguments that the offered functions have.

use std::borrow::Cow;

use wire::chat::{Call, Str};
use wire::json::{Invalid, Kind, ObjectWriter, Raw, Text};
use wire::responses::{Item, LocalShellCall};

use super::pairs::Link;
use super::{Builder, Pending, ToolResult};
use crate::context::{RenamedKey, ToolKind};
use crate::keys;
use crate::plan::content::clean;
use crate::plan::item_path::ItemPath;
use crate::plan::json;
use crate::plan::tools::Catalog;

/// What a call says: the tool's id, name and arguments.
type Spoken<'a> = (Option<Text<'a>>, Str<'a>, Str<'a>);

/// Whether it is the call of a custom tool to the provider, too.
fn is_custom<'a>(item: &Item<'a>, catalog: &Catalog<'a>) -> bool {
    let Item::CustomToolCall(call) = item else { return false };
    call.name.is_some_and(|name| catalog.calls_custom(call.namespace, name))
}

impl<'a> Builder<'_, 'a, '_> {
    pub(super) fn call(&mut self, index: usize, item: &Item<'a>, path: ItemPath) -> Result<(), Invalid> {
        let Some((id, name, arguments)) = self.spoken(item, path)? else { return Ok(()) };
        let is_custom = is_custom(item, self.catalog);
        let (nth, pending) = match self.pairs.link(index) {
            Link::Answered { output, nth } => (nth, Pending::Output(output)),
            Link::Repeated => {
                self.notes.repaired(path, "the same call again: sent as text");
                self.say(vec!["[Repeated call of ".into(), name, "]".into()]);
                return Ok(());
            }
            link => {
                self.notes.repaired(path, "it has no output: one that says so was added");
                (if let Link::Unanswered { nth } = link { nth } else { 0 }, Pending::Interrupted)
            }
        };
        let id = self.call_id(id, index, nth);
        if self.notes.is_linking() {
            self.open.sources.said.push(self.at);
            self.open.sources.results.push(vec![self.at]);
        }
        self.open.calls.push(Call { id, name, arguments, is_custom, extra_content: None });
        self.open.results.push(pending);
        Ok(())
    }

    fn spoken(&mut self, item: &Item<'a>, path: ItemPath) -> Result<Option<Spoken<'a>>, Invalid> {
        let catalog = self.catalog;
        Ok(Some(match item {
            Item::FunctionCall(call) => {
                self.demand_id(call.call_id, path)?;
                let name = self.name(ToolKind::Function, call.namespace, call.name, path)?;
                let arguments = self.arguments(call.arguments, path);
                (call.call_id, name, self.renamed(ToolKind::Function, call.namespace, call.name, arguments))
            }
            Item::CustomToolCall(call) => {
                self.demand_id(call.call_id, path)?;
                let name = self.name(ToolKind::Custom, call.namespace, call.name, path)?;
                let input = match call.input {
                    _ if !is_custom(item, catalog) => wrapped("{\"input\":", call.input.map(Text::raw), "\"\""),
                    Some(input) => input.into(),
                    None => "".into(),
                };
                (call.call_id, name, input)
            }
            Item::ShellCall(call) => {
                self.demand_id(call.call_id, path)?;
                (call.call_id, catalog.fixed_name(ToolKind::Shell, "shell"), given(call.action))
            }
            Item::LocalShellCall(call) => {
                (call.call_id.or(call.id), catalog.fixed_name(ToolKind::LocalShell, "local_shell"), local_shell(call))
            }
            Item::ApplyPatchCall(call) => {
                self.demand_id(call.call_id, path)?;
                let name = catalog.fixed_name(ToolKind::ApplyPatch, "apply_patch");
                (call.call_id, name, wrapped("{\"operation\":", call.operation, "{}"))
            }
            Item::ToolSearchCall(call) if call.call_id.is_some() => {
                let keys = catalog.keys(ToolKind::ToolSearch, None, "tool_search");
                let arguments = under(keys, object(call.arguments));
                (call.call_id, catalog.fixed_name(ToolKind::ToolSearch, "tool_search"), arguments)
            }
            Item::ComputerCall(call) => {
                let arguments = match call.actions {
                    Some(actions) => wrapped("{\"actions\":", Some(actions), "[]"),
                    None => wrapped("{\"action\":", call.action, "{}"),
                };
                (call.call_id, "computer".into(), arguments)
            }
            Item::Program(call) => {
                (call.call_id, "program".into(), wrapped("{\"code\":", call.code.map(Text::raw), "\"\""))
            }
            _ => return Ok(None),
        }))
    }

    fn demand_id(&mut self, id: Option<Text<'a>>, path: ItemPath) -> Result<(), Invalid> {
        if id.is_none_or(Text::is_empty) { self.demand("call_id", path) } else { Ok(()) }
    }

    fn name(
        &mut self,
        kind: ToolKind,
        namespace: Option<Text<'a>>,
        name: Option<Text<'a>>,
        path: ItemPath,
    ) -> Result<Str<'a>, Invalid> {
        match name.filter(|name| !name.is_empty()) {
            Some(name) => Ok(self.catalog.call_name(kind, namespace, name)),
            None => self.demand("name", path).map(|()| "unknown".into()),
        }
    }

    /// Arguments of a call of that tool, under the names that the provider knows them by.
    pub(super) fn renamed(
        &self,
        kind: ToolKind,
        namespace: Option<Text<'a>>,
        name: Option<Text<'a>>,
        arguments: Str<'a>,
    ) -> Str<'a> {
        let name = name.map(Text::decode).unwrap_or_default();
        under(self.catalog.keys(kind, namespace, &name), arguments)
    }

    /// Arguments as the model wrote them, if they are an object; else an object that holds them. A server that parses
    /// its history would refuse every later turn because of them.
    pub(super) fn arguments(&mut self, arguments: Option<Text<'a>>, path: ItemPath) -> Str<'a> {
        let Some(text) = arguments.filter(|text| !text.is_empty()) else { return "{}".into() };
        let decoded = text.decode();
        let starts = decoded.trim_start_matches([' ', '\t', '\n', '\r']).starts_with('{');
        if starts && Raw::parse(&decoded).is_ok() {
            return match clean(&decoded) {
                Cow::Borrowed(_) => text.into(),
                Cow::Owned(mended) => Str::Ours(mended.into()),
            };
        }
        self.notes.repaired(path.member("arguments"), "they are no JSON object: sent as one that holds them");
        let held = json::text(|out| {
            let mut object = ObjectWriter::new(out);
            object.text("_raw", &decoded);
            object.end();
        });
        Str::Ours(held.into())
    }
}

/// Arguments under the names that the provider knows them by.
fn under<'a>(keys: &[RenamedKey], arguments: Str<'a>) -> Str<'a> {
    let renamed = if keys.is_empty() { None } else { keys::sent(&arguments.decode(), keys) };
    renamed.map_or(arguments, |renamed| Str::Ours(renamed.into()))
}

/// `{"name":value}` as text.
pub(super) fn wrapped<'a>(open: &'static str, value: Option<Raw<'a>>, missing: &'static str) -> Str<'a> {
    let value = value.map_or(Cow::Borrowed(missing), |raw| clean(raw.as_str()));
    Str::Pieces(vec![open.into(), value, "}".into()])
}

fn object(value: Option<Raw<'_>>) -> Str<'_> {
    match value.filter(|value| value.kind() == Kind::Object) {
        Some(value) => Str::Ours(clean(value.as_str())),
        None => "{}".into(),
    }
}

/// The same, without what was not given: the item of such a call says so as null, and hardly any model writes that. What it
/// thinks after the call is signed after what it wrote.
fn given(value: Option<Raw<'_>>) -> Str<'_> {
    let Some(value) = value.filter(|value| value.fields().any(|(_, value)| value.is_null())) else {
        return object(value);
    };
    let given = json::text(|out| {
        let mut object = ObjectWriter::new(out);
        for (key, value) in value.fields().filter(|(_, value)| !value.is_null()) {
            object.json(&key.decode(), clean(value.as_str()).as_bytes());
        }
        object.end();
    });
    Str::Ours(given.into())
}

/// The action without what the function has no parameter for, and without an empty `env`: every such item has one, and
/// hardly any model writes it. What it thinks after the call is signed after what it wrote.
fn local_shell<'a>(call: &LocalShellCall<'a>) -> Str<'a> {
    const KNOWN: &[&str] = &["command", "env", "timeout_ms", "user", "working_directory"];
    let action = json::text(|out| {
        let mut object = ObjectWriter::new(out);
        for (key, value) in call.action.into_iter().flat_map(Raw::fields) {
            let is_bare = key.is("env") && value.kind() == Kind::Object && value.fields().next().is_none();
            if !value.is_null() && !is_bare && KNOWN.iter().any(|known| key.is(known)) {
                object.json(&key.decode(), clean(value.as_str()).as_bytes());
            }
        }
        object.end();
    });
    Str::Ours(action.into())
}

/// A result that is a string, or JSON of some kind.
pub(super) fn text_of(result: Option<Raw<'_>>) -> ToolResult<'_> {
    let Some(result) = result.filter(|result| !result.is_null()) else {
        return ToolResult::text("(no result was kept)");
    };
    let text = match result.text() {
        Some(text) => Str::Wire(text),
        None => Str::Ours(clean(result.as_str())),
    };
    ToolResult { texts: vec![text], media: Vec::new() }
}
