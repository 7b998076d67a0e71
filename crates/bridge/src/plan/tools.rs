//! Declared tools → the functions that the model sees, the choice among them, and the map back.

mod catalog;
mod choice;
mod declare;
mod draft;
mod hosted;
mod inline;
mod keys;
pub(super) mod names;
mod reference;
mod root;
mod schema;
mod template;

use wire::chat::{Declared, ToolChoice};
use wire::json::{Invalid, InvalidCode};
use wire::responses::CreateResponse;

use super::Hosting;
use super::item_path::Items;
use super::notes::{Notes, code};
use crate::context::{InputGrammar, OfferedTool, RenamedKeys};
use crate::dialect::{ChoiceKind, Dialect, Parallel, Parameter};

pub(super) use catalog::Catalog;
use catalog::{Entry, What};
use choice::Chosen;
pub(super) use choice::unsupported;

/// The tools of one turn.
#[derive(Debug)]
pub(super) struct Tools<'a> {
    pub(super) catalog: Catalog<'a>,
    /// Which entries of the catalogue are sent.
    sent: Option<Vec<usize>>,
    pub(super) choice: Option<ToolChoice>,
    pub(super) forced: bool,
    /// What the model is told instead, where it cannot be made to call a tool.
    pub(super) demand: Option<String>,
    pub(super) parallel: Option<bool>,
}

impl<'a> Tools<'a> {
    pub(super) fn plan(
        request: &CreateResponse<'a>,
        items: &Items<'_, 'a>,
        dialect: &Dialect,
        hosting: Hosting,
        notes: &mut Notes,
    ) -> Result<Self, Invalid> {
        let rules = &dialect.request.tools;
        let catalog = Catalog::collect(request, items, rules, hosting, notes)?;
        let asked = request.tool_choice.as_ref();
        if catalog.entries.is_empty() && request.tools.iter().flatten().next().is_none() {
            demand_tools(asked)?;
        }
        let chosen = choice::choose(asked, &catalog, dialect, hosting, notes)?;
        let Chosen { choice, forced, demand, only: sent } = chosen;
        let mut tools = Self { catalog, sent, choice, forced, demand, parallel: None };
        tools.check_limit(rules.max)?;
        tools.settle_choice(dialect, notes);
        tools.parallel = tools.plan_parallel(request, dialect, notes);
        Ok(tools)
    }

    /// The choice gives way: to thinking, or to a dialect that has none.
    pub(super) fn forget_choice(&mut self) {
        let name = match self.choice.take() {
            Some(ToolChoice::Function(name) | ToolChoice::Custom(name)) => Some(name),
            _ => None,
        };
        if std::mem::take(&mut self.forced) {
            self.demand = Some(choice::in_words(name.as_deref()));
        }
    }

    pub(super) fn any(&self) -> bool {
        self.sent.as_ref().map_or(!self.catalog.entries.is_empty(), |sent| !sent.is_empty())
    }

    fn is_sent(&self, index: usize) -> bool {
        self.sent.as_ref().is_none_or(|sent| sent.binary_search(&index).is_ok())
    }

    /// What the reader needs to read calls.
    pub(super) fn offered(&self) -> Vec<OfferedTool> {
        let sent = self.catalog.entries.iter().enumerate().filter(|(index, _)| self.is_sent(*index));
        sent.filter_map(|(_, entry)| entry.offered()).collect()
    }

    /// What the inputs of custom tools have to fit.
    pub(super) fn grammars(&self) -> Vec<InputGrammar> {
        let sent = self.catalog.entries.iter().enumerate().filter(|(index, _)| self.is_sent(*index));
        sent.filter_map(|(_, entry)| {
            let (syntax, definition) = entry.grammar?;
            let (provider_name, definition) = (entry.provider_name.clone(), definition.decode().into_owned());
            Some(InputGrammar { provider_name, syntax, definition })
        })
        .collect()
    }

    /// Whose parameters have other names there.
    pub(super) fn renamed(&self) -> Vec<RenamedKeys> {
        let sent = self.catalog.entries.iter().enumerate().filter(|(index, _)| self.is_sent(*index));
        let renamed = sent.filter(|(_, entry)| !entry.keys.is_empty());
        renamed
            .map(|(_, entry)| RenamedKeys { provider_name: entry.provider_name.clone(), keys: entry.keys.clone() })
            .collect()
    }

    /// Says where the tools are that are sent, for whoever asks.
    pub(super) fn place(&self, notes: &mut Notes) {
        let Some(links) = notes.links() else { return };
        let mut next = 0;
        let mut place = |(index, entry): (usize, &Entry<'_>)| {
            (self.is_sent(index) && !is_switched(entry)).then(|| {
                next += 1;
                next - 1
            })
        };
        links.move_tools(&self.catalog.entries.iter().enumerate().map(&mut place).collect::<Vec<_>>());
    }

    /// Members of the body that switch on what the provider runs itself; JSON objects. Nothing is, if no tool may be
    /// called.
    pub(super) fn members(&self) -> Vec<String> {
        let may_call = !matches!(self.choice, Some(ToolChoice::Mode(mode)) if mode == ChoiceKind::None.name());
        let entries = self.catalog.entries.iter().enumerate().filter(|(index, _)| may_call && self.is_sent(*index));
        let switched = entries.filter(|(_, entry)| is_switched(entry));
        let member = |entry: &Entry<'_>| match &entry.declared {
            Declared::Native(json) => Some(json.clone()),
            Declared::Function(_) | Declared::Custom(_) => None,
        };
        switched.filter_map(|(_, entry)| member(entry)).collect()
    }

    pub(super) fn into_declared(self) -> Vec<Declared<'a>> {
        let Self { catalog, sent, .. } = self;
        let sent = |index: usize| sent.as_ref().is_none_or(|sent| sent.binary_search(&index).is_ok());
        let entries = catalog.entries.into_iter().enumerate().filter(|(_, entry)| !is_switched(entry));
        entries.filter(|(index, _)| sent(*index)).map(|(_, entry)| entry.declared).collect()
    }

    fn check_limit(&self, limit: Option<usize>) -> Result<(), Invalid> {
        let count = self.sent.as_ref().map_or(self.catalog.entries.len(), Vec::len);
        match limit {
            Some(limit) if count > limit => {
                let mut message = format!(
                    "array too long. This provider takes at most {limit} tools, but got {count} instead \
                     (tools in namespaces and in the input count one by one)."
                );
                message.push_str(&self.catalog.servers_counted());
                Err(Invalid::rule(InvalidCode::ArrayAboveMaxLength, message).at("tools"))
            }
            _ => Ok(()),
        }
    }

    fn settle_choice(&mut self, dialect: &Dialect, notes: &mut Notes) {
        let mut entries = self.catalog.entries.iter().enumerate();
        if self.forced && entries.all(|(index, entry)| !self.is_sent(index) || is_switched(entry)) {
            self.forget_choice();
            notes.degraded(code::PARAM_DEGRADED, "tool_choice", "this provider cannot be made to call its own: auto");
        }
        if self.choice.is_some() && dialect.drops(Parameter::ToolChoice) {
            self.forget_choice();
            notes.degraded(code::PARAM_DEGRADED, "tool_choice", "this provider refuses the parameter: auto");
        }
    }

    fn plan_parallel(&self, request: &CreateResponse<'a>, dialect: &Dialect, notes: &mut Notes) -> Option<bool> {
        if !self.any() {
            return None;
        }
        let asked = request.parallel_tool_calls;
        if dialect.drops(Parameter::ParallelToolCalls) {
            if asked == Some(false) {
                notes.ignored(code::PARAM_IGNORED, "parallel_tool_calls", "this provider refuses the parameter");
            }
            return None;
        }
        match dialect.request.tools.parallel {
            Parallel::WhenFalse => asked.filter(|parallel| !parallel),
            Parallel::Always => Some(asked.unwrap_or(true)),
        }
    }
}

/// Whether it is no tool there, but something of the provider's own that members of the body switch on.
fn is_switched(entry: &Entry<'_>) -> bool {
    matches!(entry.what, What::Switched(_))
}

/// A call can only be demanded where there are tools.
fn demand_tools(asked: Option<&wire::responses::ToolChoice<'_>>) -> Result<(), Invalid> {
    use wire::responses::ToolChoice;
    match asked {
        Some(ToolChoice::Required | ToolChoice::Object { .. }) => {
            let message = "Tool choice is only allowed when 'tools' are specified.";
            Err(Invalid::sentence(InvalidCode::InvalidValue, message).at("tool_choice"))
        }
        None | Some(ToolChoice::Auto | ToolChoice::None) => Ok(()),
    }
}
