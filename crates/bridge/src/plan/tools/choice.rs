//! `tool_choice`: which of the tools are sent, and what the far side is told about them.

use std::collections::BTreeSet;

use wire::chat;
use wire::json::{Invalid, Text};
use wire::responses::{NamedChoice, Tool, ToolChoice, ToolChoiceObject};

use super::catalog::{Catalog, Entry, What};
use crate::dialect::{ChoiceKind, Hosted, Lacking, ToolRules};
use crate::plan::notes::{Notes, code};
use crate::reading::ToolKind;

/// What the choice comes to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) choice: Option<chat::ToolChoice>,
    /// Some tool must be called.
    pub(super) forced: bool,
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
    /// A tool that cannot be named to the far side.
    Unnameable,
}

pub(super) fn choose(
    asked: Option<&ToolChoice<'_>>,
    catalog: &Catalog<'_>,
    rules: &ToolRules,
    notes: &mut Notes,
) -> Result<Chosen, Invalid> {
    let (wanted, only) = match asked {
        None | Some(ToolChoice::Auto) => (Wanted::Auto, None),
        Some(ToolChoice::None) => (Wanted::None, None),
        Some(ToolChoice::Required) => (Wanted::Required, None),
        Some(ToolChoice::Object { choice: ToolChoiceObject::Allowed(allowed), .. }) => {
            let required = allowed.mode.is_some_and(|mode| mode.is("required"));
            let named = allowed.tools.iter().flatten().filter_map(|tool| allowed_tool(tool, catalog));
            let only = named.collect::<BTreeSet<_>>().into_iter().collect();
            (if required { Wanted::Required } else { Wanted::Auto }, Some(only))
        }
        Some(ToolChoice::Object { choice, .. }) => (object(choice, catalog)?, None),
    };
    let mut chosen = Chosen { only, ..Chosen::default() };
    settle(&wanted, catalog, rules, &mut chosen, notes);
    Ok(chosen)
}

/// Picks the nearest form that the dialect has.
fn settle(wanted: &Wanted, catalog: &Catalog<'_>, rules: &ToolRules, chosen: &mut Chosen, notes: &mut Notes) {
    let has = |kind| rules.choices.contains(&kind);
    let required = chat::ToolChoice::Mode(rules.required_word.name());
    match wanted {
        // The default everywhere; it needs no saying.
        Wanted::Auto => {}
        Wanted::None if has(ChoiceKind::None) => chosen.choice = Some(chat::ToolChoice::Mode("none")),
        // Without tools none can be called.
        Wanted::None => chosen.only = Some(Vec::new()),
        Wanted::Required if has(ChoiceKind::Required) => {
            chosen.forced = true;
            chosen.choice = Some(required);
        }
        Wanted::Named(index) if has(ChoiceKind::Function) => {
            chosen.forced = true;
            let name = catalog.entries.get(*index).map(|entry| entry.provider_name.clone());
            chosen.choice = name.map(chat::ToolChoice::Function);
        }
        Wanted::Named(index) if has(ChoiceKind::Required) => {
            chosen.forced = true;
            chosen.choice = Some(required);
            chosen.only = Some(vec![*index]);
            notes.lowered(code::PARAM_DEGRADED, "tool_choice", "only this tool is offered, and a call is required");
        }
        Wanted::Required | Wanted::Named(_) | Wanted::Unnameable => lacking(rules, notes),
    }
}

fn lacking(rules: &ToolRules, notes: &mut Notes) {
    if rules.lacking_choice == Lacking::Reject {
        let message = "Unsupported value: 'tool_choice': this provider cannot be made to call a tool.";
        return notes.refuse(Invalid::sentence("unsupported_value", message).at("tool_choice"));
    }
    notes.degraded(code::PARAM_DEGRADED, "tool_choice", "this provider cannot be made to call a tool: auto");
}

fn object(choice: &ToolChoiceObject<'_>, catalog: &Catalog<'_>) -> Result<Wanted, Invalid> {
    let client = |kind: ToolKind, name: &'static str| {
        catalog.position(name, None, |what| what == What::Client(kind)).ok_or_else(|| unknown(name))
    };
    match choice {
        ToolChoiceObject::Function(named) => by_name(named, ToolKind::Function, catalog).map(Wanted::Named),
        ToolChoiceObject::Custom(named) => by_name(named, ToolKind::Custom, catalog).map(Wanted::Named),
        ToolChoiceObject::Shell(_) => client(ToolKind::Shell, "shell").map(Wanted::Named),
        ToolChoiceObject::LocalShell(_) => client(ToolKind::LocalShell, "local_shell").map(Wanted::Named),
        ToolChoiceObject::ApplyPatch(_) => client(ToolKind::ApplyPatch, "apply_patch").map(Wanted::Named),
        ToolChoiceObject::Other { kind, .. } if kind.is_some_and(|kind| kind.is("tool_search")) => {
            client(ToolKind::ToolSearch, "tool_search").map(Wanted::Named)
        }
        ToolChoiceObject::Mcp(_)
        | ToolChoiceObject::Programmatic(_)
        | ToolChoiceObject::Hosted(_)
        | ToolChoiceObject::Allowed(_)
        | ToolChoiceObject::Other { .. } => Ok(Wanted::Unnameable),
    }
}

fn by_name(named: &NamedChoice<'_>, kind: ToolKind, catalog: &Catalog<'_>) -> Result<usize, Invalid> {
    let name = named.name.ok_or_else(|| Invalid::missing().at("name").at("tool_choice"))?;
    find(name, named.namespace, kind, catalog).ok_or_else(|| unknown(&name.decode()))
}

/// By kind, name and namespace; else by name alone, also by the flat name that a client may have seen.
fn find(name: Text<'_>, namespace: Option<Text<'_>>, kind: ToolKind, catalog: &Catalog<'_>) -> Option<usize> {
    let (name, space) = (name.decode(), namespace.map(Text::decode));
    let exact = catalog.position(&name, space.as_deref(), |what| what == What::Client(kind));
    let any = || catalog.position(&name, space.as_deref(), |what| matches!(what, What::Client(_)));
    let named = |entry: &Entry<'_>| entry.provider_name == name && matches!(entry.what, What::Client(_));
    exact.or_else(any).or_else(|| catalog.entries.iter().position(named))
}

fn unknown(name: &str) -> Invalid {
    let name: String = name.chars().take(128).collect();
    let message = format!("Tool choice '{name}' not found in 'tools' parameter.");
    Invalid::sentence("invalid_value", message).at("tool_choice")
}

/// The entry that an element of `allowed_tools` means; one that is not declared allows nothing.
fn allowed_tool(tool: &Tool<'_>, catalog: &Catalog<'_>) -> Option<usize> {
    let client = |kind: ToolKind, name: &'static str| catalog.position(name, None, |what| what == What::Client(kind));
    let native = |kind: Hosted| catalog.position(kind.name(), None, |what| what == What::Native(kind));
    match tool {
        Tool::Function(function) => {
            let space = function.extra.iter().find(|(key, _)| key.is("namespace")).and_then(|(_, raw)| raw.text());
            find(function.name?, space, ToolKind::Function, catalog)
        }
        Tool::Custom(custom) => find(custom.name?, None, ToolKind::Custom, catalog),
        Tool::Shell(_) => client(ToolKind::Shell, "shell"),
        Tool::LocalShell(_) => client(ToolKind::LocalShell, "local_shell"),
        Tool::ApplyPatch(_) => client(ToolKind::ApplyPatch, "apply_patch"),
        Tool::ToolSearch(_) => client(ToolKind::ToolSearch, "tool_search"),
        Tool::WebSearch(_) => native(Hosted::WebSearch),
        Tool::FileSearch(_) => native(Hosted::FileSearch),
        Tool::CodeInterpreter(_) => native(Hosted::CodeInterpreter),
        Tool::ImageGeneration(_) => native(Hosted::ImageGeneration),
        Tool::Computer(_) => native(Hosted::Computer),
        Tool::Mcp(_) => native(Hosted::Mcp),
        Tool::Namespace(_) | Tool::Programmatic(_) | Tool::Other { .. } => None,
    }
}
