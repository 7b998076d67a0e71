//! `tool_choice`: which of the tools are sent, and what the provider is told about them.

use std::collections::BTreeSet;

use wire::chat;
use wire::json::{Invalid, InvalidCode, Raw, Text};
use wire::responses::{AllowedTools, McpTool, NamedChoice, Tool, ToolChoice, ToolChoiceObject};

use super::catalog::{Catalog, Entry, What};
use crate::context::ToolKind;
use crate::dialect::{ChoiceKind, Dialect, Hosted, Lacking, Parameter, ToolRules};
use crate::plan::notes::{Notes, code};
use crate::plan::{Hosting, Round};

/// What the choice comes to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) choice: Option<chat::ToolChoice>,
    /// Some tool must be called.
    pub(super) forced: bool,
    /// That, in words, where the provider has no other way to be told.
    pub(super) demand: Option<String>,
    /// Only these are sent, in order; `None`: all.
    pub(super) only: Option<Vec<usize>>,
}

/// What is asked for, in terms of the catalogue.
enum Wanted {
    Auto,
    None,
    Required,
    /// This function of ours.
    Named(usize),
    /// A tool that was declared and cannot be named to the provider.
    Unnameable(String),
}

/// A choice that names what was not declared is refused, and so is one that demands a call where nothing is left to
/// be called. After the first round of a response nothing is demanded any more, and in the last nothing may be called.
pub(super) fn choose(
    asked: Option<&ToolChoice<'_>>,
    catalog: &Catalog<'_>,
    dialect: &Dialect,
    hosting: Hosting,
    notes: &mut Notes,
) -> Result<Chosen, Invalid> {
    let (wanted, only) = match asked {
        None | Some(ToolChoice::Auto) => (Wanted::Auto, None),
        Some(ToolChoice::None) => (Wanted::None, None),
        Some(ToolChoice::Object { choice: ToolChoiceObject::Allowed(choice), .. }) => allowed(choice, catalog)?,
        Some(_) if hosting.round != Round::First => (Wanted::Auto, None),
        Some(ToolChoice::Required) => (Wanted::Required, None),
        Some(ToolChoice::Object { choice, raw }) => object(choice, *raw, catalog, hosting)?,
    };
    let wanted = match (hosting.round, wanted) {
        (Round::Last, _) => Wanted::None,
        (Round::Later, Wanted::Required) => Wanted::Auto,
        (_, wanted) => wanted,
    };
    let mut chosen = Chosen { only, ..Chosen::default() };
    let nothing_left = chosen.only.as_ref().map_or(catalog.entries.is_empty(), Vec::is_empty);
    match wanted {
        Wanted::Auto | Wanted::None if nothing_left => {}
        Wanted::Required | Wanted::Named(_) | Wanted::Unnameable(_) if nothing_left => {
            if !(hosting.lists_pending && catalog.is_unlisted(None)) {
                return Err(unsupported("none of the tools that it allows can be called here"));
            }
        }
        wanted => nearest_form(&wanted, catalog, dialect, &mut chosen, notes),
    }
    Ok(chosen)
}

/// Picks the nearest form that the dialect has.
fn nearest_form(wanted: &Wanted, catalog: &Catalog<'_>, dialect: &Dialect, chosen: &mut Chosen, notes: &mut Notes) {
    let rules = &dialect.request.tools;
    let has = |kind| rules.choices.contains(&kind);
    let required = chat::ToolChoice::Mode(rules.required_word.name());
    match wanted {
        // The default everywhere, which is not sent.
        Wanted::Auto => {}
        Wanted::None if has(ChoiceKind::None) && !dialect.drops(Parameter::ToolChoice) => {
            chosen.choice = Some(chat::ToolChoice::Mode("none"));
        }
        // Without tools none can be called.
        Wanted::None => chosen.only = Some(Vec::new()),
        Wanted::Required if has(ChoiceKind::Required) => {
            chosen.forced = true;
            chosen.choice = Some(required);
        }
        Wanted::Named(index) if has(ChoiceKind::Function) => {
            chosen.forced = true;
            chosen.choice = catalog.entries.get(*index).map(|entry| match entry.declared {
                chat::Declared::Custom(_) => chat::ToolChoice::Custom(entry.provider_name.clone()),
                _ => chat::ToolChoice::Function(entry.provider_name.clone()),
            });
        }
        Wanted::Named(index) if has(ChoiceKind::Required) => {
            chosen.forced = true;
            chosen.choice = Some(required);
            chosen.only = Some(vec![*index]);
            notes.lowered(code::PARAM_DEGRADED, "tool_choice", "only this tool is offered, and a call is required");
        }
        Wanted::Required => {
            chosen.demand = Some(in_words(None));
            lacking("a tool", rules, notes);
        }
        Wanted::Named(index) => {
            chosen.demand = catalog.entries.get(*index).map(|entry| in_words(Some(&entry.provider_name)));
            lacking("a tool", rules, notes);
        }
        Wanted::Unnameable(name) => {
            chosen.demand = Some(in_words(Some(name)));
            lacking(name, rules, notes);
        }
    }
}

/// What a model is told that cannot be made to call a tool, or this one.
pub(super) fn in_words(name: Option<&str>) -> String {
    match name {
        Some(name) => format!("Answer this with a call of the tool {name}: nothing else counts as an answer."),
        None => "Answer this with a call of one of your tools: nothing else counts as an answer.".to_owned(),
    }
}

fn lacking(name: &str, rules: &ToolRules, notes: &mut Notes) {
    if rules.lacking_choice == Lacking::Reject {
        let message = format!("Unsupported value: 'tool_choice': this provider cannot be made to call {name}.");
        return notes.refuse(Invalid::sentence(InvalidCode::UnsupportedValue, message).at("tool_choice"));
    }
    let message = format!("this provider cannot be made to call {name}: auto");
    notes.degraded(code::PARAM_DEGRADED, "tool_choice", message);
}

/// What is wanted, and from among which tools.
type Want = (Wanted, Option<Vec<usize>>);

fn object(
    choice: &ToolChoiceObject<'_>,
    raw: Raw<'_>,
    catalog: &Catalog<'_>,
    hosting: Hosting,
) -> Result<Want, Invalid> {
    let client = |kind: ToolKind, name: &'static str| {
        catalog.position(name, None, |what| what == What::Called(kind)).ok_or_else(|| unknown(name))
    };
    let wanted = match choice {
        ToolChoiceObject::Function(named) => by_name(named, ToolKind::Function, catalog).map(Wanted::Named),
        ToolChoiceObject::Custom(named) => by_name(named, ToolKind::Custom, catalog).map(Wanted::Named),
        ToolChoiceObject::Shell(_) => client(ToolKind::Shell, "shell").map(Wanted::Named),
        ToolChoiceObject::LocalShell(_) => client(ToolKind::LocalShell, "local_shell").map(Wanted::Named),
        ToolChoiceObject::ApplyPatch(_) => client(ToolKind::ApplyPatch, "apply_patch").map(Wanted::Named),
        ToolChoiceObject::Other { kind, .. }
            if kind.is_some_and(|kind| kind.is("tool_search")) && !catalog.declares("tool_search", None) =>
        {
            client(ToolKind::ToolSearch, "tool_search").map(Wanted::Named)
        }
        ToolChoiceObject::Mcp(named) => return of_servers(named, catalog, hosting),
        ToolChoiceObject::Programmatic(_)
        | ToolChoiceObject::Hosted(_)
        | ToolChoiceObject::Allowed(_)
        | ToolChoiceObject::Other { .. } => {
            let kind = raw.get("type").and_then(Raw::text).map(Text::decode).unwrap_or_default();
            let kind = plain(&kind);
            let search = catalog.of_search().first().copied().filter(|_| kind == Hosted::WebSearch.name());
            search.map_or_else(|| unnameable(kind, None, catalog), |search| Ok(Wanted::Named(search)))
        }
    };
    wanted.map(|wanted| (wanted, None))
}

/// A tool of MCP servers: one of those that godex asks for them, if the choice names none.
fn of_servers(named: &NamedChoice<'_>, catalog: &Catalog<'_>, hosting: Hosting) -> Result<Want, Invalid> {
    let (label, name) = (named.server_label.map(Text::decode), named.name.map(Text::decode));
    let tools = catalog.of_server(label.as_deref(), name.as_deref());
    if hosting.lists_pending && catalog.is_unlisted(label.as_deref()) {
        return Ok((Wanted::Auto, None));
    }
    match (tools.as_slice(), name) {
        ([], Some(name)) if !catalog.of_server(label.as_deref(), None).is_empty() => Err(unknown(&name)),
        ([], _) => unnameable("mcp", label.as_deref(), catalog).map(|wanted| (wanted, None)),
        ([tool], Some(_)) => Ok((Wanted::Named(*tool), None)),
        _ => Ok((Wanted::Required, Some(tools))),
    }
}

/// A tool that was declared, and is none of the functions. What nobody runs here cannot be demanded.
fn unnameable(kind: &str, label: Option<&str>, catalog: &Catalog<'_>) -> Result<Wanted, Invalid> {
    let is_hosted = Hosted::ALL.iter().any(|hosted| hosted.name() == kind);
    if catalog.offers_native(kind) || !is_hosted && catalog.leaves_out(kind, label) {
        return Ok(Wanted::Unnameable(kind.chars().take(64).collect()));
    }
    if catalog.leaves_out(kind, label) {
        return Err(unsupported(&format!("{kind} is not available here")));
    }
    Err(unknown(label.unwrap_or(kind)))
}

pub(in crate::plan) fn unsupported(why: &str) -> Invalid {
    let message = format!("Unsupported value: 'tool_choice': {why}.");
    Invalid::sentence(InvalidCode::UnsupportedValue, message).at("tool_choice")
}

/// The kind of tool that a word means: some have a version in theirs.
fn plain(word: &str) -> &str {
    match word {
        word if word.starts_with("web_search") => Hosted::WebSearch.name(),
        word if word.starts_with("computer_use") => Hosted::Computer.name(),
        word => word,
    }
}

fn by_name(named: &NamedChoice<'_>, kind: ToolKind, catalog: &Catalog<'_>) -> Result<usize, Invalid> {
    let name = named.name.ok_or_else(|| Invalid::missing().at("name").at("tool_choice"))?;
    find(name, named.namespace, kind, catalog).ok_or_else(|| unknown(&name.decode()))
}

/// By kind, name and namespace; else by name alone, also by the flat name that a client may have seen.
fn find(name: Text<'_>, namespace: Option<Text<'_>>, kind: ToolKind, catalog: &Catalog<'_>) -> Option<usize> {
    let (name, space) = (name.decode(), namespace.map(Text::decode));
    let exact = catalog.position(&name, space.as_deref(), |what| what == What::Called(kind));
    let any = || catalog.position(&name, space.as_deref(), What::is_clients);
    let named = |entry: &Entry<'_>| entry.provider_name == name && entry.what.is_clients();
    exact.or_else(any).or_else(|| catalog.entries.iter().position(named))
}

fn unknown(name: &str) -> Invalid {
    let name: String = name.chars().take(128).collect();
    let message = format!("Tool choice '{name}' not found in 'tools' parameter.");
    Invalid::sentence(InvalidCode::InvalidValue, message).at("tool_choice")
}

/// What `allowed_tools` comes to: the mode, and those of the tools that can be called.
fn allowed(choice: &AllowedTools<'_>, catalog: &Catalog<'_>) -> Result<Want, Invalid> {
    let wanted = match choice.mode.map(Text::decode).as_deref() {
        None | Some("auto") => Wanted::Auto,
        Some("required") => Wanted::Required,
        Some(mode) => return Err(Invalid::value(mode, &["auto", "required"]).at("mode").at("tool_choice")),
    };
    let tools = choice.tools.as_ref().ok_or_else(|| Invalid::missing().at("tools").at("tool_choice"))?;
    let mut only = BTreeSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let at = |invalid: Invalid| invalid.at_index(index).at("tools").at("tool_choice");
        only.extend(allowed_tool(tool, catalog).map_err(|undeclared| match undeclared {
            Undeclared::Nameless => at(Invalid::missing().at("name")),
            Undeclared::Unknown(name) => unknown(&name),
        })?);
    }
    Ok((wanted, Some(only.into_iter().collect())))
}

/// Why an element of `allowed_tools` allows nothing.
enum Undeclared {
    Nameless,
    Unknown(String),
}

/// The entries that an element of `allowed_tools` means: none for a tool that was declared and left out.
fn allowed_tool(tool: &Tool<'_>, catalog: &Catalog<'_>) -> Result<Vec<usize>, Undeclared> {
    let position = |name: &str, what: What| catalog.position(name, None, |other| other == what);
    let found = |name: &str, position: Option<usize>, label: Option<Text<'_>>| {
        let label = label.map(Text::decode);
        match position {
            Some(index) => Ok(vec![index]),
            None if catalog.declares(name, label.as_deref()) => Ok(Vec::new()),
            None => Err(Undeclared::Unknown(label.as_deref().unwrap_or(name).to_owned())),
        }
    };
    let client = |kind: ToolKind, name: &str| found(name, position(name, What::Called(kind)), None);
    let native = |kind: Hosted| catalog.position(kind.name(), None, |what| what.native() == Some(kind));
    let hosted = |kind: Hosted| found(kind.name(), native(kind), None);
    let named = |name: Option<Text<'_>>, space: Option<Text<'_>>, kind: ToolKind| {
        let name = name.ok_or(Undeclared::Nameless)?;
        let index = find(name, space, kind, catalog);
        index.map(|index| vec![index]).ok_or_else(|| Undeclared::Unknown(name.decode().into_owned()))
    };
    match tool {
        Tool::Function(function) => {
            let space = function.extra.iter().find(|(key, _)| key.is("namespace")).and_then(|(_, raw)| raw.text());
            named(function.name, space, ToolKind::Function)
        }
        Tool::Custom(custom) => named(custom.name, None, ToolKind::Custom),
        Tool::Shell(_) => client(ToolKind::Shell, "shell"),
        Tool::LocalShell(_) => client(ToolKind::LocalShell, "local_shell"),
        Tool::ApplyPatch(_) => client(ToolKind::ApplyPatch, "apply_patch"),
        Tool::ToolSearch(_) => client(ToolKind::ToolSearch, "tool_search"),
        Tool::WebSearch(_) => {
            let search = catalog.of_search();
            if search.is_empty() { hosted(Hosted::WebSearch) } else { Ok(search) }
        }
        Tool::FileSearch(_) => hosted(Hosted::FileSearch),
        Tool::CodeInterpreter(_) => hosted(Hosted::CodeInterpreter),
        Tool::ImageGeneration(_) => hosted(Hosted::ImageGeneration),
        Tool::Computer(_) => hosted(Hosted::Computer),
        Tool::Mcp(mcp) => {
            of_server(mcp, catalog).map_or_else(|| found("mcp", native(Hosted::Mcp), mcp.server_label), Ok)
        }
        Tool::Programmatic(_) => found("programmatic_tool_calling", None, None),
        Tool::Other { kind, .. } => found(&kind.map(Text::decode).unwrap_or_default(), None, None),
        Tool::Namespace(space) => {
            let name = space.name.ok_or(Undeclared::Nameless)?.decode();
            let inside = |(_, entry): &(usize, &Entry<'_>)| entry.namespace.as_deref() == Some(&*name);
            let all: Vec<usize> = catalog.entries.iter().enumerate().filter(inside).map(|(index, _)| index).collect();
            if all.is_empty() { Err(Undeclared::Unknown(name.into_owned())) } else { Ok(all) }
        }
    }
}

/// The functions of a server that godex asks; none if it is not one, or has none.
fn of_server(mcp: &McpTool<'_>, catalog: &Catalog<'_>) -> Option<Vec<usize>> {
    let name = mcp.extra.iter().find(|(key, _)| key.is("name")).and_then(|(_, name)| name.text());
    let (label, name) = (mcp.server_label.map(Text::decode), name.map(Text::decode));
    let tools = catalog.of_server(label.as_deref(), name.as_deref());
    (!tools.is_empty()).then_some(tools)
}
