//! Tools that godex runs itself, as functions: those of MCP servers, as the server's latest list in the context has them,
//! and the three that stand for `web_search`. Nothing is asked for here: what is not in the context is not offered.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use wire::chat::{Declared, Function, Json, Str};
use wire::json::{FromRaw, Invalid, InvalidCode, Kind, Raw, Text};
use wire::responses::{CreateResponse, Item, McpTool, Tool, WebSearchTool};

use super::catalog::{At, Catalog, Collector, Entry, Space, What, canonical, flat};
use super::{inline, names, schema};
use crate::context::{OfferedTool, ToolKind};
use crate::dialect::Hosted;
use crate::plan::item_path::{ItemPath, Items};
use crate::plan::notes::code;
use crate::plan::{Hosting, SearchFunctions, Unsearched};

const SEARCH: &[u8] = br#"{"type":"object","properties":{"queries":{"type":"array","items":{"type":"string"},"minItems":1,"description":"What to search for, each as one would type it into a search box. Several are searched at once."}},"required":["queries"],"additionalProperties":false}"#;

const CLIENT_SEARCH: &[u8] = br#"{"type":"object","properties":{"query":{"type":"string"},"queries":{"type":"array","items":{"type":"string"}}},"required":["query"],"additionalProperties":false}"#;

const OPEN: &[u8] = br#"{"type":"object","properties":{"url":{"type":"string","description":"The address of the page: one that was found, or that somebody named."},"start":{"type":"integer","minimum":0,"description":"Where to begin in a long page: the number at which the part before ended."}},"required":["url"],"additionalProperties":false}"#;

const FIND: &[u8] = br#"{"type":"object","properties":{"url":{"type":"string","description":"The address of the page."},"pattern":{"type":"string","description":"The text to look for."}},"required":["url","pattern"],"additionalProperties":false}"#;

const ABOUT_SEARCH: &str = "Searches the web. What is found are titles, addresses and extracts of pages. When an answer \
     uses a source, cite it there as a Markdown link to its address: [title](https://address).";
const ABOUT_OPEN: &str = "Opens a page of the web and gives its text. When an answer uses it, cite it there as a Markdown \
     link to its address.";
const ABOUT_FIND: &str = "Looks for a text in a page of the web and gives the places around it.";

/// More domains than these are only counted.
const MOST_DOMAINS: usize = 20;

/// The labels that may be.
const LABELS: &str = "^[A-Za-z][A-Za-z0-9_-]{0,63}$";

/// What the servers have, by label: the latest list of each that is no failure.
#[derive(Debug, Default)]
pub(super) struct Lists<'a>(BTreeMap<Cow<'a, str>, (Raw<'a>, ItemPath)>);

impl<'a> Lists<'a> {
    pub(super) fn of(items: &Items<'_, 'a>, hosting: Hosting) -> Self {
        let mut lists = BTreeMap::new();
        let all = items.declaring.iter().chain(&items.sent).filter(|_| hosting.mcp);
        for (item, path) in all {
            if let Item::McpListTools(list) = item
                && let (Some(label), Some(tools), None) = (list.server_label, list.tools, list.error)
            {
                lists.insert(label.decode(), (tools, *path));
            }
        }
        Self(lists)
    }
}

/// What the provider will know the client's own tools by, as far as the request declares them.
pub(super) fn reserved(request: &CreateResponse<'_>, name_length: usize, hosting: Hosting) -> BTreeSet<String> {
    let mut reserved = BTreeSet::new();
    if !hosting.mcp && hosting.web_search.is_none() {
        return reserved;
    }
    let mut reserve = |space: Option<&str>, tool: &Tool<'_>| {
        let name = match tool {
            Tool::Function(function) => function.name,
            Tool::Custom(custom) => custom.name,
            _ => None,
        };
        let flat = name.map(|name| flat(canonical(space), &name.decode()));
        reserved.extend(flat.map(|flat| names::encode(&flat, name_length).into_owned()));
    };
    for tool in request.tools.iter().flatten() {
        match &tool.value {
            Tool::Namespace(space) => {
                let name = space.name.map(Text::decode);
                space.tools.iter().flatten().for_each(|tool| reserve(name.as_deref(), tool));
            }
            tool => reserve(None, tool),
        }
    }
    reserved
}

impl<'a> Collector<'a, '_> {
    /// Offers the functions of a tool that godex runs; false: it does not.
    pub(super) fn run_by_us(&mut self, tool: &Tool<'a>, at: At<'_>) -> Result<bool, Invalid> {
        match (tool, self.hosting.web_search) {
            (Tool::Mcp(mcp), _) if self.hosting.mcp => self.mcp(mcp, at).map(|()| true),
            (Tool::WebSearch(search), Some(functions)) => {
                self.search(search, functions, at);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn mcp(&mut self, mcp: &McpTool<'a>, at: At<'_>) -> Result<(), Invalid> {
        let located = |mut invalid: Invalid, member: &str| {
            invalid.path = format!("{at}.{member}{}", invalid.path);
            invalid
        };
        check_reachable(mcp, at)?;
        let label = label(mcp).map_err(|invalid| located(invalid, "server_label"))?;
        let filter = Filter::of(mcp.allowed_tools).map_err(|invalid| located(invalid, "allowed_tools"))?;
        let listed = self.lists.0.get(&*label).copied();
        let list = listed.map(|(list, _)| list);
        if self.catalog.servers.insert(label.clone().into_owned(), list.is_some()).is_some() {
            let message = format!(
                "Duplicate server_label found: '{label}'. Each MCP server of a request needs a label of its own."
            );
            return Err(located(Invalid::sentence(InvalidCode::InvalidValue, message), "server_label"));
        }
        let before = self.catalog.entries.len();
        let space = Space { name: &label, description: mcp.server_description.filter(|text| !text.is_empty()) };
        for tool in list.into_iter().flat_map(Raw::elements) {
            self.mcp_tool(tool, space, &filter, at);
        }
        if self.catalog.entries.len() > before {
            if let (Some(links), Some((_, path))) = (self.notes.links(), listed) {
                (before..self.catalog.entries.len()).for_each(|index| links.tool(path, index));
            }
            return Ok(());
        }
        self.leave_out("mcp", mcp.server_label);
        if list.is_none() && !self.hosting.lists_pending {
            self.notes.degraded(code::TOOL_IGNORED, at, "the tools of this server could not be listed");
        } else if list.is_some() {
            self.notes.degraded(code::TOOL_IGNORED, at, "this server has no tool that 'allowed_tools' lets be called");
        }
        Ok(())
    }

    fn mcp_tool(&mut self, tool: Raw<'a>, space: Space<'_, 'a>, filter: &Filter<'_>, at: At<'_>) {
        let Some(name) = tool.get("name").and_then(Raw::text).filter(|name| !name.is_empty()) else { return };
        let name = name.decode();
        let what = What::Called(ToolKind::Mcp);
        let is_there = self.catalog.position(&name, Some(space.name), |other| other == what).is_some();
        if is_there || !filter.lets(&name, tool.get("annotations")) {
            return;
        }
        let schema = tool.get("input_schema").filter(|schema| schema.kind() == Kind::Object);
        let (parameters, mut changed) = parameters(schema, self.rules);
        if schema.is_none() {
            changed = Some("has no schema: it is offered without parameters");
        }
        if let Some(changed) = changed {
            let name: String = name.chars().take(128).collect();
            self.notes.degraded(code::TOOL_SCHEMA, at, format!("{name} {changed}"));
        }
        let description = tool.get("description").and_then(Raw::text).filter(|text| !text.is_empty());
        let description = description.map(Str::Wire).into_iter().collect();
        self.client(ToolKind::Mcp, &name, Some(space), at, |name| {
            Declared::Function(Function { name, description, parameters, strict: None })
        });
    }

    fn search(&mut self, tool: &WebSearchTool<'a>, functions: SearchFunctions, at: At<'_>) {
        // One search is enough, however often it is declared.
        if self.catalog.entries.iter().any(|entry| entry.what.is_search()) {
            if let Some(links) = self.notes.links() {
                self.catalog.of_search().into_iter().for_each(|index| links.tool(at, index));
            }
            return;
        }
        let mut offer = |kind: ToolKind, about: Vec<Str<'a>>, parameters: &[u8]| {
            self.client(kind, kind.name(), None, at, |name| {
                let parameters = Json::Ours(parameters.to_vec());
                Declared::Function(Function { name, description: about, parameters, strict: None })
            });
        };
        let mut about: Vec<Str<'a>> = vec![ABOUT_SEARCH.into()];
        about.extend(place(tool.user_location).map(|place| Str::Ours(place.into())));
        about.extend(domains(tool.filters).map(|domains| Str::Ours(domains.into())));
        offer(ToolKind::WebSearch, about, SEARCH);
        if functions.pages {
            offer(ToolKind::OpenPage, vec![ABOUT_OPEN.into()], OPEN);
            offer(ToolKind::FindInPage, vec![ABOUT_FIND.into()], FIND);
        }
    }
}

impl Collector<'_, '_> {
    /// Whether a search that nobody runs is the client's to answer.
    pub(super) fn is_left_to_client(&self) -> bool {
        !self.rules.runs(Hosted::WebSearch) && self.hosting.unsearched == Unsearched::ClientCall
    }

    /// The function that stands for such a search.
    pub(super) fn client_search(&mut self, at: At<'_>) {
        self.notes.lowered(code::TOOL_DEGRADED, at, "nobody searches here: the client is to answer the calls of it");
        self.client(ToolKind::Function, "web_search", None, at, |name| {
            let (description, parameters) = (vec![ABOUT_SEARCH.into()], Json::Ours(CLIENT_SEARCH.to_vec()));
            Declared::Function(Function { name, description, parameters, strict: None })
        });
    }
}

impl Entry<'_> {
    /// What the reader needs to read calls of it.
    pub(super) fn offered(&self) -> Option<OfferedTool> {
        let What::Called(kind) = self.what else { return None };
        let (provider_name, name, namespace) = (self.provider_name.clone(), self.name.clone(), self.namespace.clone());
        Some(OfferedTool { provider_name, kind, name, namespace })
    }
}

impl<'a> Catalog<'a> {
    /// The tools of the server of that label, or of all of them; only the one of that name, if there is one.
    pub(in crate::plan) fn of_server(&self, label: Option<&str>, name: Option<&str>) -> Vec<usize> {
        let wanted = |entry: &Entry<'_>| {
            entry.what == What::Called(ToolKind::Mcp)
                && label.is_none_or(|label| entry.namespace.as_deref() == Some(label))
                && name.is_none_or(|name| entry.name == name)
        };
        let entries = self.entries.iter().enumerate();
        entries.filter(|(_, entry)| wanted(entry)).map(|(index, _)| index).collect()
    }

    /// The functions that stand for `web_search`.
    pub(in crate::plan) fn of_search(&self) -> Vec<usize> {
        let entries = self.entries.iter().enumerate();
        entries.filter(|(_, entry)| entry.what.is_search()).map(|(index, _)| index).collect()
    }

    /// Whether a server of that label, or any, is still to be asked for its tools.
    pub(in crate::plan) fn is_unlisted(&self, label: Option<&str>) -> bool {
        self.servers.iter().any(|(server, listed)| !listed && label.is_none_or(|label| server == label))
    }

    /// The function at this place, as it is declared, and as the reader has to know it.
    pub(in crate::plan) fn function(&self, index: usize) -> Option<(&Function<'a>, OfferedTool)> {
        let entry = self.entries.get(index)?;
        match &entry.declared {
            Declared::Function(function) => Some((function, entry.offered()?)),
            Declared::Custom(_) | Declared::Native(_) => None,
        }
    }

    /// How many tools each server has, for who has too many.
    pub(super) fn servers_counted(&self) -> String {
        let mut counted = String::new();
        for label in self.servers.keys() {
            let count = self.of_server(Some(label), None).len();
            let before = if counted.is_empty() { " Of these, MCP servers have: " } else { ", " };
            let _ = write!(counted, "{before}'{label}' {count}");
        }
        if !counted.is_empty() {
            counted.push_str(". Use 'allowed_tools' to offer fewer of them.");
        }
        counted
    }
}

/// The label, which is a part of the names of its functions.
fn label<'a>(mcp: &McpTool<'a>) -> Result<Cow<'a, str>, Invalid> {
    let label = mcp.server_label.ok_or_else(Invalid::missing)?.decode();
    let begins = label.bytes().next().is_some_and(|first| first.is_ascii_alphabetic());
    let goes_on = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if begins && goes_on && label.len() <= 64 {
        return Ok(label);
    }
    let message = format!("string does not match pattern. Expected a string that matches the pattern '{LABELS}'.");
    Err(Invalid::rule(InvalidCode::InvalidValue, message))
}

/// Servers that only OpenAI can reach are refused.
fn check_reachable(mcp: &McpTool<'_>, at: At<'_>) -> Result<(), Invalid> {
    let Some(member) = elsewhere(mcp) else { return Ok(()) };
    let message = format!(
        "Unsupported value: '{at}.{member}': connectors and tunnels are not available here. Name a server by \
         'server_url', or one that is declared here by its 'server_label'."
    );
    let mut invalid = Invalid::sentence(InvalidCode::UnsupportedValue, message);
    invalid.path = format!("{at}.{member}");
    Err(invalid)
}

/// The member that names a server which only OpenAI can reach.
pub(super) fn elsewhere(mcp: &McpTool<'_>) -> Option<&'static str> {
    let tunnel = mcp.extra.iter().any(|(key, value)| key.is("tunnel_id") && !value.is_null());
    mcp.connector_id.map(|_| "connector_id").or_else(|| tunnel.then_some("tunnel_id"))
}

/// A schema as the provider takes it, and what it does not say any more.
fn parameters<'a>(declared: Option<Raw<'a>>, rules: &crate::dialect::ToolRules) -> (Json<'a>, Option<&'static str>) {
    const REFUSED: &str = "has what this provider refuses in its schema";
    const ENDLESS: &str = "has a schema that refers to itself, or to what is not there";
    let inlined = declared.and_then(inline::inlined);
    let Some(inline::Inlined { text, is_less }) = inlined else {
        let (json, changes) = schema::parameters(declared, &rules.schema);
        return (json, changes.meaning.then_some(REFUSED));
    };
    let (json, changes) = schema::parameters(Some(Raw::ours(&text)), &rules.schema);
    let mut out = Vec::with_capacity(text.len());
    json.write(&mut out);
    let changed = if is_less { Some(ENDLESS) } else { changes.meaning.then_some(REFUSED) };
    (Json::Ours(out), changed)
}

/// `allowed_tools`: names, or names and whether a tool only reads.
#[derive(Debug, Default)]
struct Filter<'a> {
    names: Option<BTreeSet<Cow<'a, str>>>,
    read_only: Option<bool>,
}

impl<'a> Filter<'a> {
    fn of(given: Option<Raw<'a>>) -> Result<Self, Invalid> {
        let Some(given) = given else { return Ok(Self::default()) };
        let names = |list: Raw<'a>| -> Result<_, Invalid> {
            let names: Vec<Text<'a>> = Vec::from_raw(list)?;
            Ok(Some(names.into_iter().map(Text::decode).collect()))
        };
        match given.kind() {
            Kind::Array => Ok(Self { names: names(given)?, read_only: None }),
            Kind::Object => {
                let member = |name: &str| given.get(name).filter(|value| !value.is_null());
                let inside = |name: &'static str| {
                    move |mut invalid: Invalid| {
                        invalid.path = format!(".{name}{}", invalid.path);
                        invalid
                    }
                };
                let listed = member("tool_names").map(names).transpose().map_err(inside("tool_names"))?;
                let read_only = member("read_only").map(bool::from_raw).transpose().map_err(inside("read_only"))?;
                Ok(Self { names: listed.flatten(), read_only })
            }
            _ => Err(Invalid::expected("one of an array of strings or an object", given)),
        }
    }

    fn lets(&self, name: &str, annotations: Option<Raw<'_>>) -> bool {
        let reads = || {
            let said = |member: &str| annotations.and_then(|annotations| annotations.get(member));
            said("read_only").or_else(|| said("readOnlyHint")).is_some_and(|value| value.as_str() == "true")
        };
        self.names.as_ref().is_none_or(|names| names.contains(name))
            && self.read_only.is_none_or(|wanted| wanted == reads())
    }
}

/// Where the user is, if the client says so.
fn place(location: Option<Raw<'_>>) -> Option<String> {
    let location = location?;
    // An older form has the place one object further in.
    let location = location.get("approximate").filter(|inner| inner.kind() == Kind::Object).unwrap_or(location);
    let said =
        |member: &str| location.get(member).and_then(Raw::text).filter(|text| !text.is_empty()).map(Text::decode);
    let place: Vec<Cow<'_, str>> = ["city", "region", "country"].into_iter().filter_map(said).collect();
    match (place.is_empty(), said("timezone")) {
        (true, None) => None,
        (true, Some(zone)) => Some(format!("The user's time zone is {zone}.")),
        (false, None) => Some(format!("The user is in {}.", place.join(", "))),
        (false, Some(zone)) => Some(format!("The user is in {} (time zone {zone}).", place.join(", "))),
    }
}

/// Where may be searched, if the client restricts it.
fn domains(filters: Option<Raw<'_>>) -> Option<String> {
    let allowed = filters?.get("allowed_domains")?;
    let mut domains: Vec<Cow<'_, str>> = allowed.elements().filter_map(Raw::text).map(Text::decode).collect();
    let more = domains.len().saturating_sub(MOST_DOMAINS);
    domains.truncate(MOST_DOMAINS);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!domains.is_empty()).then(|| format!("Only these domains can be searched: {}{rest}.", domains.join(", ")))
}
