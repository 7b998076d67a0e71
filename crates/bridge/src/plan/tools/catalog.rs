//! All tools of a turn: those of the request, those that arrived in the input, those that a search loaded,
//! in order of first appearance. A tool declared again replaces its declaration, not its place in the list.

use std::collections::{BTreeMap, BTreeSet};

use wire::chat::{Declared, Function, Str};
use wire::json::{Invalid, InvalidCode, Text};
use wire::responses::{CreateResponse, CustomTool, Item, NamespaceTool, Tool};

use super::hosted::{Lists, elsewhere, reserved};
use super::schema::Changes;
use super::{declare, keys, names, template};
use crate::context::{InputSyntax, RenamedKey, ToolKind};
use crate::dialect::{Hosted, Lacking, SchemaRule, ToolRules};
use crate::plan::Hosting;
use crate::plan::Unsearched;
use crate::plan::item_path::Items;
use crate::plan::notes::{Notes, code};

/// The list of the request's own tools.
const REQUEST: &str = "tools";

/// What the client calls the namespace of tools without one.
const NO_NAMESPACE: &str = "functions";

#[derive(Debug)]
pub(in crate::plan) struct Catalog<'a> {
    pub(super) entries: Vec<Entry<'a>>,
    /// Entries by the namespace and name that the client knows.
    by_name: BTreeMap<String, Vec<usize>>,
    /// Declared, and not offered: the kind, and the label where that has one.
    pub(super) left_out: BTreeSet<(String, Option<String>)>,
    /// The labels of the MCP servers that godex asks, and whether their tools are known.
    pub(super) servers: BTreeMap<String, bool>,
    provider_names: BTreeSet<String>,
    /// What tools of the client are called: godex's own step aside.
    reserved: BTreeSet<String>,
    name_length: usize,
    /// The provider has custom tools of its own.
    has_custom: bool,
}

#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub(super) what: What,
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    pub(super) provider_name: String,
    pub(super) declared: Declared<'a>,
    /// What the input of a custom tool has to fit, where the provider does not see to it.
    pub(super) grammar: Option<(InputSyntax, Text<'a>)>,
    /// Parameters that have other names there.
    pub(super) keys: Vec<RenamedKey>,
}

/// Who answers a call of the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// The client, or godex itself: the kind says it.
    Called(ToolKind),
    Native(Hosted),
    /// The provider, which is told so by members of the body.
    Switched(Hosted),
}

impl What {
    /// Whether the client answers.
    pub(super) fn is_clients(self) -> bool {
        matches!(self, Self::Called(kind) if !kind.is_hosted())
    }

    /// What of the provider's own it is.
    pub(super) fn native(self) -> Option<Hosted> {
        match self {
            Self::Native(kind) | Self::Switched(kind) => Some(kind),
            Self::Called(_) => None,
        }
    }

    /// Whether it stands for `web_search`, and godex runs it.
    pub(super) fn is_search(self) -> bool {
        matches!(self, Self::Called(ToolKind::WebSearch | ToolKind::OpenPage | ToolKind::FindInPage))
    }
}

/// Where a tool is declared: the list, and the place in it.
#[derive(Clone, Copy)]
pub(super) struct At<'p> {
    list: &'p str,
    index: usize,
}

impl At<'_> {
    /// Whether the request itself declares it.
    fn is_of_request(self) -> bool {
        self.list == REQUEST
    }
}

impl std::fmt::Display for At<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}[{}]", self.list, self.index)
    }
}

impl<'a> Catalog<'a> {
    pub(super) fn collect(
        request: &CreateResponse<'a>,
        items: &Items<'_, 'a>,
        rules: &ToolRules,
        hosting: Hosting,
        notes: &mut Notes,
    ) -> Result<Self, Invalid> {
        let mut collector = Collector::new(request, items, rules, hosting, notes);
        collector.renames = rules.schema.contains(&SchemaRule::PlainKeys);
        for (index, tool) in request.tools.iter().flatten().enumerate() {
            collector.tool(&tool.value, None, At { list: REQUEST, index })?;
        }
        for (item, path) in items.declaring.iter().chain(&items.sent) {
            let tools = match item {
                Item::AdditionalTools(item) => item.tools.as_deref(),
                Item::ToolSearchOutput(item) => item.tools.as_deref(),
                _ => None,
            };
            let list = tools.map(|_| path.member("tools").to_string()).unwrap_or_default();
            for (index, tool) in tools.into_iter().flatten().enumerate() {
                collector.tool(tool, None, At { list: &list, index })?;
            }
        }
        Ok(collector.catalog)
    }

    /// Only the tools that godex runs: all others go to the provider as they are.
    pub(in crate::plan) fn of_hosted(
        request: &CreateResponse<'a>,
        items: &Items<'_, 'a>,
        rules: &ToolRules,
        hosting: Hosting,
        notes: &mut Notes,
    ) -> Result<Self, Invalid> {
        let mut collector = Collector::new(request, items, rules, hosting, notes);
        for (index, tool) in request.tools.iter().flatten().enumerate() {
            // Whoever speaks that API may have connectors.
            if !matches!(&tool.value, Tool::Mcp(mcp) if elsewhere(mcp).is_some()) {
                collector.run_by_us(&tool.value, At { list: REQUEST, index })?;
            }
        }
        Ok(collector.catalog)
    }

    /// Whether godex asks the MCP server of that label.
    pub(in crate::plan) fn asks(&self, label: Option<Text<'_>>) -> bool {
        !self.servers.is_empty() && label.is_some_and(|label| self.servers.contains_key(&*label.decode()))
    }

    /// The same; without a label, whether it asks any.
    pub(in crate::plan) fn asks_any(&self, label: Option<Text<'_>>) -> bool {
        if label.is_none() { !self.servers.is_empty() } else { self.asks(label) }
    }

    /// Whether the provider searches the web itself.
    pub(in crate::plan) fn searches_natively(&self) -> bool {
        self.entries.iter().any(|entry| entry.what.native() == Some(Hosted::WebSearch))
    }

    /// The provider's name of a tool that a call in the history used; a tool that is gone keeps its own name.
    pub(in crate::plan) fn call_name(&self, kind: ToolKind, namespace: Option<Text<'a>>, name: Text<'a>) -> Str<'a> {
        let space = namespace.map(Text::decode).filter(|space| !space.is_empty());
        let space = canonical(space.as_deref());
        let decoded = name.decode();
        if let Some(entry) = self.find(&decoded, space, |what| what == What::Called(kind)) {
            return Self::same_or(name, &decoded, &entry.provider_name);
        }
        if let Some(entry) = self.find(&decoded, space, |what| matches!(what, What::Called(_))) {
            return Self::same_or(name, &decoded, &entry.provider_name);
        }
        let flat = flat(space, &decoded);
        Self::same_or(name, &decoded, &names::encode(&flat, self.name_length))
    }

    /// The parameters of a tool that have other names there. A call that was not made goes back under the provider's name.
    pub(in crate::plan) fn keys(&self, kind: ToolKind, namespace: Option<Text<'a>>, name: &str) -> &[RenamedKey] {
        if self.entries.iter().all(|entry| entry.keys.is_empty()) {
            return &[];
        }
        let space = namespace.map(Text::decode).filter(|space| !space.is_empty());
        let space = canonical(space.as_deref());
        let entry = self
            .find(name, space, |what| what == What::Called(kind))
            .or_else(|| self.find(name, space, |what| matches!(what, What::Called(_))))
            .or_else(|| self.entries.iter().find(|entry| entry.provider_name == name));
        entry.map_or(&[], |entry| &entry.keys)
    }

    /// Whether a call of that custom tool is one to the provider, too. A tool that is gone is what it was, where there
    /// are such tools.
    pub(in crate::plan) fn calls_custom(&self, namespace: Option<Text<'a>>, name: Text<'a>) -> bool {
        let space = namespace.map(Text::decode).filter(|space| !space.is_empty());
        let (space, name) = (canonical(space.as_deref()), name.decode());
        let declared = self.find(&name, space, |what| what == What::Called(ToolKind::Custom));
        match declared.or_else(|| self.find(&name, space, |what| matches!(what, What::Called(_)))) {
            Some(entry) => matches!(entry.declared, Declared::Custom(_)),
            None => self.has_custom,
        }
    }

    /// The provider's name of a call whose tool has no name of the client's.
    pub(in crate::plan) fn fixed_name(&self, kind: ToolKind, name: &'static str) -> Str<'a> {
        match self.find(name, None, |what| what == What::Called(kind)) {
            Some(entry) if entry.provider_name != name => Str::Ours(entry.provider_name.clone().into()),
            _ => name.into(),
        }
    }

    fn find(&self, name: &str, namespace: Option<&str>, is: impl Fn(What) -> bool) -> Option<&Entry<'a>> {
        self.entries.get(self.position(name, namespace, is)?)
    }

    pub(super) fn position(&self, name: &str, namespace: Option<&str>, is: impl Fn(What) -> bool) -> Option<usize> {
        if self.entries.is_empty() {
            return None;
        }
        let candidates = self.by_name.get(&key(namespace, name))?;
        candidates.iter().copied().find(|index| self.entries.get(*index).is_some_and(|entry| is(entry.what)))
    }

    /// Whether a tool of that kind was declared, offered or not.
    pub(super) fn declares(&self, kind: &str, label: Option<&str>) -> bool {
        self.offers_native(kind) || self.leaves_out(kind, label)
    }

    /// Whether the provider runs a tool of that kind.
    pub(super) fn offers_native(&self, kind: &str) -> bool {
        self.entries.iter().any(|entry| entry.what.native().is_some() && entry.name == kind)
    }

    /// Whether a tool of that kind was declared, and is not offered.
    pub(super) fn leaves_out(&self, kind: &str, label: Option<&str>) -> bool {
        let same = |theirs: Option<&str>| label.is_none() || theirs.is_none() || theirs == label;
        self.left_out.iter().any(|(left_out, label)| left_out == kind && same(label.as_deref()))
    }

    fn same_or(name: Text<'a>, decoded: &str, provider_name: &str) -> Str<'a> {
        if decoded == provider_name { name.into() } else { Str::Ours(provider_name.to_owned().into()) }
    }

    /// A name that no other tool of this request has.
    fn unique_name(&self, kind: ToolKind, namespace: Option<&str>, name: &str) -> String {
        let taken = |name: &str| self.provider_names.contains(name) || kind.is_hosted() && self.reserved.contains(name);
        let flat = flat(canonical(namespace), name);
        let encoded = names::encode(&flat, self.name_length);
        if !taken(&encoded) {
            return encoded.into_owned();
        }
        let mut identity = format!("{} {} {name}", kind.name(), namespace.unwrap_or_default());
        loop {
            let candidate = names::hashed(&flat, &identity, self.name_length);
            if !taken(&candidate) {
                return candidate;
            }
            identity.push('+');
        }
    }
}

pub(super) fn canonical(namespace: Option<&str>) -> Option<&str> {
    namespace.filter(|namespace| *namespace != NO_NAMESPACE)
}

/// At most a handful of kinds share one.
fn key(namespace: Option<&str>, name: &str) -> String {
    format!("{}\0{name}", canonical(namespace).unwrap_or_default())
}

pub(super) fn flat(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("{namespace}__{name}"),
        None => name.to_owned(),
    }
}

/// The namespace that tools are being collected from.
#[derive(Clone, Copy)]
pub(super) struct Space<'s, 'a> {
    pub(super) name: &'s str,
    /// Its description, for one tool of it.
    pub(super) description: Option<Text<'a>>,
}

pub(super) struct Collector<'a, 't> {
    pub(super) catalog: Catalog<'a>,
    /// The entries that tell what their namespaces are for, and how they say it.
    told: BTreeMap<String, (usize, Text<'a>)>,
    pub(super) rules: &'t ToolRules,
    pub(super) hosting: Hosting,
    /// What the servers that godex asks have.
    pub(super) lists: Lists<'a>,
    pub(super) notes: &'t mut Notes,
    /// Whether parameters may get other names: who reads the answer has to know them.
    renames: bool,
}

impl<'a, 't> Collector<'a, 't> {
    fn new(
        request: &CreateResponse<'a>,
        items: &Items<'_, 'a>,
        rules: &'t ToolRules,
        hosting: Hosting,
        notes: &'t mut Notes,
    ) -> Self {
        let catalog = Catalog {
            entries: Vec::new(),
            by_name: BTreeMap::new(),
            left_out: BTreeSet::new(),
            servers: BTreeMap::new(),
            provider_names: BTreeSet::new(),
            reserved: reserved(request, rules.name_length, hosting),
            name_length: rules.name_length,
            has_custom: !rules.custom.is_empty(),
        };
        Self { catalog, told: BTreeMap::new(), rules, hosting, lists: Lists::of(items, hosting), notes, renames: false }
    }
}

impl<'a, 't> Collector<'a, 't> {
    fn tool(&mut self, tool: &Tool<'a>, space: Option<Space<'_, 'a>>, at: At<'_>) -> Result<(), Invalid> {
        // What a provider runs itself stays there.
        let ours = match tool {
            Tool::WebSearch(_) => !self.rules.runs(Hosted::WebSearch),
            Tool::Mcp(_) => !self.rules.runs(Hosted::Mcp),
            _ => false,
        };
        if ours && at.is_of_request() && self.run_by_us(tool, at)? {
            return Ok(());
        }
        match tool {
            Tool::Function(function) => {
                let name = named(function.name, at)?;
                let rules = self.rules;
                let mut changes = Changes::default();
                self.client(ToolKind::Function, &name, space, at, |provider_name| {
                    let (declared, changed) = declare::function(function, provider_name, rules);
                    changes = changed;
                    Declared::Function(declared)
                });
                if changes.encryption {
                    self.notes.lowered(code::TOOL_DEGRADED, at, "its arguments are not encrypted");
                }
                if changes.meaning {
                    self.notes.degraded(code::TOOL_SCHEMA, at, "its schema has what this provider refuses");
                }
            }
            Tool::Custom(custom) => {
                let name = named(custom.name, at)?;
                let rules = self.rules;
                self.client(ToolKind::Custom, &name, space, at, |provider_name| {
                    declare::custom(custom, provider_name, rules)
                });
                self.remember_grammar(custom, &name, space);
            }
            Tool::Namespace(namespace) => self.namespace(namespace, at)?,
            Tool::Shell(_) => self.fixed(ToolKind::Shell, "shell", space, at, declare::shell),
            Tool::LocalShell(_) => self.fixed(ToolKind::LocalShell, "local_shell", space, at, declare::local_shell),
            Tool::ApplyPatch(_) => self.fixed(ToolKind::ApplyPatch, "apply_patch", space, at, declare::apply_patch),
            Tool::ToolSearch(search) if search.execution.is_some_and(|who| who.is("server")) => {
                self.leave_out("tool_search", None);
                self.notes.skipped(code::TOOL_IGNORED, at, "all tools are loaded: there is nothing to search");
            }
            Tool::ToolSearch(search) => {
                let rules = self.rules;
                self.fixed(ToolKind::ToolSearch, "tool_search", space, at, |provider_name| {
                    declare::tool_search(search, provider_name, rules)
                });
            }
            Tool::WebSearch(_) if self.is_left_to_client() => self.client_search(at),
            Tool::WebSearch(_) => self.hosted(Hosted::WebSearch, tool, at),
            Tool::FileSearch(_) => self.hosted(Hosted::FileSearch, tool, at),
            Tool::CodeInterpreter(_) => self.hosted(Hosted::CodeInterpreter, tool, at),
            Tool::ImageGeneration(_) => self.hosted(Hosted::ImageGeneration, tool, at),
            Tool::Computer(_) => self.hosted(Hosted::Computer, tool, at),
            Tool::Mcp(_) => self.hosted(Hosted::Mcp, tool, at),
            Tool::Programmatic(_) => {
                self.leave_out("programmatic_tool_calling", None);
                self.notes.skipped(code::TOOL_IGNORED, at, "tools are called directly here");
            }
            Tool::Other { kind, .. } => {
                self.leave_out(&kind.map(Text::decode).unwrap_or_default(), None);
                self.notes.ignored(code::TOOL_IGNORED, at, "this kind of tool is not known");
            }
        }
        Ok(())
    }

    fn namespace(&mut self, namespace: &NamespaceTool<'a>, at: At<'_>) -> Result<(), Invalid> {
        let name = named(namespace.name, at)?;
        let list = format!("{at}.tools");
        for (index, tool) in namespace.tools.iter().flatten().enumerate() {
            let description = namespace.description.filter(|text| !text.is_empty());
            self.tool(tool, Some(Space { name: &name, description }), At { list: &list, index })?;
        }
        Ok(())
    }

    /// A tool without a name of the client's, which is a function there.
    fn fixed(
        &mut self,
        kind: ToolKind,
        name: &'static str,
        space: Option<Space<'_, 'a>>,
        at: At<'_>,
        declare: impl FnOnce(String) -> Function<'a>,
    ) {
        self.client(kind, name, space, at, |provider_name| Declared::Function(declare(provider_name)));
    }

    fn remember_grammar(&mut self, tool: &CustomTool<'a>, name: &str, space: Option<Space<'_, 'a>>) {
        let namespace = space.map(|space| space.name);
        let index = self.catalog.position(name, namespace, |what| what == What::Called(ToolKind::Custom));
        if let Some(entry) = index.and_then(|index| self.catalog.entries.get_mut(index)) {
            let is_lowered = matches!(entry.declared, Declared::Function(_));
            entry.grammar = declare::grammar(tool).filter(|_| is_lowered);
        }
    }

    pub(super) fn client(
        &mut self,
        kind: ToolKind,
        name: &str,
        space: Option<Space<'_, 'a>>,
        at: At<'_>,
        declare: impl FnOnce(String) -> Declared<'a>,
    ) {
        let namespace = space.map(|space| space.name);
        let what = What::Called(kind);
        let again = self.catalog.position(name, namespace, |other| other == what);
        let index = again.unwrap_or(self.catalog.entries.len());
        if let Some(links) = self.notes.links() {
            links.tool(at, index);
        }
        let about = self.tell(space, index);
        let again = again.and_then(|index| self.catalog.entries.get_mut(index));
        if let Some(entry) = again {
            let mut declared = described(declare(entry.provider_name.clone()), about);
            entry.keys = if self.renames { rename(&mut declared) } else { Vec::new() };
            if declared != entry.declared {
                let message = format!("declared before under the name {name}: this declaration counts");
                self.notes.degraded(code::TOOL_DEGRADED, at, message);
            }
            entry.declared = declared;
            return;
        }
        let provider_name = self.catalog.unique_name(kind, namespace, name);
        let mut declared = described(declare(provider_name.clone()), about);
        let keys = if self.renames { rename(&mut declared) } else { Vec::new() };
        if !keys.is_empty() {
            let message = format!("{} of its parameters have other names there", keys.len());
            self.notes.lowered(code::TOOL_DEGRADED, at, message);
        }
        if kind != ToolKind::Function && !kind.is_hosted() && matches!(declared, Declared::Function(_)) {
            self.notes.lowered(code::TOOL_DEGRADED, at, format!("offered as the function {provider_name}"));
        }
        let namespace = namespace.map(str::to_owned);
        self.add(Entry { what, name: name.to_owned(), namespace, provider_name, declared, grammar: None, keys });
    }

    /// What the tool at this place says of its namespace: the first of it tells what it is for. A tool that is found once
    /// more is declared as it was: what the provider has cached begins with the tools.
    fn tell(&mut self, space: Option<Space<'_, 'a>>, index: usize) -> Option<Text<'a>> {
        let Space { name, description } = space?;
        let description = description?;
        match self.told.get(name) {
            Some((at, said)) if *at != index && *said == description => None,
            _ => {
                self.told.insert(name.to_owned(), (index, description));
                Some(description)
            }
        }
    }

    fn hosted(&mut self, kind: Hosted, tool: &Tool<'_>, at: At<'_>) {
        let template = |of: &'t [(Hosted, String)]| of.iter().find(|(native, _)| *native == kind).map(|(_, json)| json);
        let declared = template(&self.rules.native).map(|template| (What::Native(kind), template));
        let switched = || template(&self.rules.native_members).map(|template| (What::Switched(kind), template));
        let Some((what, template)) = declared.or_else(switched) else {
            let label = if let Tool::Mcp(mcp) = tool { mcp.server_label } else { None };
            self.leave_out(kind.name(), label);
            let message = format!("this provider has no {} of its own", kind.name());
            let is_refused = kind == Hosted::WebSearch && self.hosting.unsearched == Unsearched::Refuse;
            if is_refused || self.rules.lacking_hosted == Lacking::Reject {
                let mut invalid =
                    Invalid::sentence(InvalidCode::UnsupportedValue, format!("Unsupported tool: {message}."));
                invalid.path = format!("{at}.type");
                return self.notes.refuse(invalid);
            }
            return self.notes.ignored(code::TOOL_IGNORED, at, message);
        };
        let known = self.catalog.position(kind.name(), None, |other| other == what);
        if let Some(links) = self.notes.links() {
            links.tool(at, known.unwrap_or(self.catalog.entries.len()));
        }
        if known.is_none() {
            self.notes.lowered(code::TOOL_DEGRADED, at, "the provider's own, with its own settings");
            let declared = Declared::Native(template::fill(template, tool));
            let name = kind.name().to_owned();
            // The provider may call it by this name: no function must have it.
            let provider_name = name.clone();
            let (grammar, keys) = (None, Vec::new());
            self.add(Entry { what, name, namespace: None, provider_name, declared, grammar, keys });
        }
    }

    pub(super) fn leave_out(&mut self, kind: &str, label: Option<Text<'_>>) {
        self.catalog.left_out.insert((kind.to_owned(), label.map(|label| label.decode().into_owned())));
    }

    fn add(&mut self, entry: Entry<'a>) {
        let index = self.catalog.entries.len();
        self.catalog.provider_names.insert(entry.provider_name.clone());
        let key = key(entry.namespace.as_deref(), &entry.name);
        self.catalog.by_name.entry(key).or_default().push(index);
        self.catalog.entries.push(entry);
    }
}

/// The tool, with what its namespace is for.
fn described<'a>(mut declared: Declared<'a>, about: Option<Text<'a>>) -> Declared<'a> {
    let about = about.map(Str::Wire);
    match &mut declared {
        Declared::Function(function) => function.description.extend(about),
        Declared::Custom(custom) => custom.description.extend(about),
        Declared::Native(_) => {}
    }
    declared
}

/// Gives the tool's parameters names that are taken, and says which they are.
fn rename(declared: &mut Declared<'_>) -> Vec<RenamedKey> {
    let Declared::Function(function) = declared else { return Vec::new() };
    let Some((parameters, keys)) = keys::renamed(&function.parameters) else { return Vec::new() };
    function.parameters = parameters;
    keys
}

fn named(name: Option<Text<'_>>, at: At<'_>) -> Result<String, Invalid> {
    match name.filter(|name| !name.is_empty()) {
        Some(name) => Ok(name.decode().into_owned()),
        None => {
            let mut invalid = Invalid::missing();
            invalid.path = format!("{at}.name");
            Err(invalid)
        }
    }
}
