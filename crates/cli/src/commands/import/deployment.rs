//! An entry of `model_list`: which model of which provider, and what is said of it.

use std::ops::RangeInclusive;

use providers::yaml::{Node, Value};
use providers::{Library, Wire, resolve_named};
use server::config;

use super::azure::{self, Site};
use super::notes::Notes;
use super::settings::count;
use super::source::{ENVIRON, Text, any_number, entries, get, no_text, number, number_of, scalar, shown, text};
use super::times::Times;
use super::vendors::{self, COMPATIBLE, FOREIGN, Param, Vendor};

/// One of several that a name stands for.
pub(super) struct Deployment {
    /// What clients ask for.
    pub(super) group: String,
    pub(super) provider: Provider,
    /// As the provider calls it; `*`: every one.
    pub(super) model: String,
    /// LiteLLM finds out whose a model is by the name that a client says.
    pub(super) by_name: bool,
    /// Its share of the requests, by each of `SHARES`.
    pub(super) shares: [Option<f64>; SHARES.len()],
    /// Where it is said.
    pub(super) line: usize,
    pub(super) order: Option<f64>,
    pub(super) price: Option<Price>,
    pub(super) context_window: Option<u64>,
    pub(super) max_output: Option<u64>,
}

/// In dollars for a million tokens: input, output, input that was cached.
type Price = (String, String, Option<String>);

/// What may say how often a deployment is chosen, in the order in which LiteLLM looks for it.
pub(super) const SHARES: [&str; 3] = ["weight", "rpm", "tpm"];

/// What deployments share that are of one provider.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Provider {
    pub(super) prefix: String,
    pub(super) spec: &'static str,
    /// With what comes after it.
    pub(super) base_url: Option<(Text, &'static str)>,
    pub(super) plain_http: bool,
    pub(super) key: Option<Text>,
    /// What its spec says otherwise.
    pub(super) over: Vec<(&'static str, &'static str)>,
    pub(super) path: Option<&'static str>,
    /// What fills placeholders of the spec's address.
    pub(super) params: Vec<(String, Text)>,
    pub(super) query: Vec<(String, Text)>,
    pub(super) headers: Vec<(String, Text)>,
    pub(super) times: Times,
}

const LONGEST: f64 = 86_400.0;

/// What says who is asked, and with which key. Without it a request would go to the vendor itself.
const WHO: &[&str] = &[
    "api_base",
    "base_url",
    "api_key",
    "api_version",
    "custom_llm_provider",
    "litellm_credential_name",
    "organization",
    "aws_region_name",
    "vertex_project",
    "vertex_location",
];

/// Where headers are said.
const HEADERS: [&str; 2] = ["extra_headers", "headers"];

/// What a token costs: input, output, input that was cached.
const COSTS: [&str; 3] = ["input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost"];

/// How many tokens a model may be said to take, or to answer with.
const TOKENS: RangeInclusive<u64> = 1..=1_000_000_000;

/// What is read here.
const KNOWN: &[&str] = &[
    "model",
    "api_base",
    "base_url",
    "api_key",
    "api_version",
    "weight",
    "order",
    "rpm",
    "tpm",
    "timeout",
    "stream_timeout",
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
    "aws_region_name",
    "vertex_project",
    "vertex_location",
    "organization",
    "extra_headers",
    "headers",
    "custom_llm_provider",
    "litellm_credential_name",
    // godex leaves out what a provider does not take, always.
    "drop_params",
    "additional_drop_params",
];

/// None, with a note, where there is nobody to ask.
pub(super) fn read(entry: &Node, credentials: &[(&str, &Node)], notes: &mut Notes) -> Option<Deployment> {
    let nothing = entry.clone();
    let params = get(entry, "litellm_params").unwrap_or(&nothing);
    let info = get(entry, "model_info").unwrap_or(&nothing);
    let Some(whole) = text(params, "model") else {
        notes.add(entry, "an entry without litellm_params.model is left out");
        return None;
    };
    let group = text(entry, "model_name").unwrap_or(whole).to_owned();
    if let Some(node) = get(entry, "model_name").filter(|node| scalar(node).is_none()) {
        notes.add(entry, format!("its `model_name` is {}, and no text: clients ask for `{whole}`", node.kind()));
    }
    if let Some(mode) = text(info, "mode").filter(|mode| !matches!(*mode, "chat" | "completion" | "responses")) {
        notes.add(entry, format!("`{group}` is left out: godex serves responses only, and not `mode: {mode}`"));
        return None;
    }
    if is_unclear(params, entry, &group, notes) {
        return None;
    }
    let credential = text(params, "litellm_credential_name");
    let shared =
        credential.and_then(|name| credentials.iter().find(|(known, _)| *known == name)).map(|(_, node)| *node);
    if let (Some(name), None) = (credential, shared) {
        notes.add(params, format!("there is no credential `{name}` in credential_list: set the key by hand"));
    }
    if shared.is_some_and(|shared| is_unclear(shared, entry, &group, notes)) {
        return None;
    }
    let at_shared = shared.is_some_and(has_address);
    let (vendor, model) = vendor(whole, params, at_shared, entry, &group, notes)?;
    let provider = provider(vendor, params, shared, entry, &group, notes)?;
    remarks(params, notes);
    if let Some(info) = get(entry, "model_info") {
        informed(info, &group, notes);
    }
    let price = price([params, info], entry, &group, notes);
    Some(Deployment {
        group,
        provider,
        model,
        by_name: whole == "*" && text(params, "custom_llm_provider").is_none(),
        shares: SHARES.map(|name| amount(params, name, notes).or_else(|| amount(entry, name, notes))),
        line: entry.position.line,
        order: amount(params, "order", notes),
        price,
        context_window: count(info, "max_input_tokens", &TOKENS, notes),
        max_output: count(info, "max_output_tokens", &TOKENS, notes),
    })
}

/// Whether what says who is asked, and how, is there and cannot be read; with a note.
fn is_unclear(params: &Node, entry: &Node, group: &str, notes: &mut Notes) -> bool {
    let who = WHO.iter().filter_map(|name| Some((*name, get(params, name)?)));
    let headers = HEADERS.iter().filter_map(|name| get(params, name)).flat_map(entries);
    let headers = headers.filter(|(_, node)| !node.is_null()).map(|(key, node)| (key.name.as_str(), node));
    let odd = who.chain(headers).find_map(|(name, node)| Some((name, no_text(node)?)));
    let in_variable = |name| Some((name, text(params, name).filter(|text| text.starts_with(ENVIRON))?));
    let why = if let Some((name, why)) = odd {
        format!("its `{name}` is {why}")
    } else if let Some((name, text)) = ["model", "custom_llm_provider"].into_iter().find_map(in_variable) {
        format!("its `{name}` is `{text}`, which is read from no variable")
    } else if matches!(params.value, Value::Map(_)) {
        return false;
    } else {
        format!("the `credential_values` that it names are {}, and no mapping", params.kind())
    };
    notes.add(entry, format!("`{group}` is left out: {why}"));
    true
}

/// A number that is not negative; with a note where it is none.
fn amount(node: &Node, name: &str, notes: &mut Notes) -> Option<f64> {
    let given = get(node, name)?;
    let found = number_of(given);
    if found.is_none() {
        notes.add(given, format!("`{name}` is left out: it is {}, and no number from 0 on", shown(given)));
    }
    found
}

/// Of each of `COSTS`, the first of these places that says it holds. With a note where that is no price, or more than the
/// most.
fn price(places: [&Node; 2], entry: &Node, group: &str, notes: &mut Notes) -> Option<Price> {
    let given = COSTS.map(|name| places.iter().find_map(|place| get(place, name)));
    let said = || COSTS.into_iter().zip(given).filter_map(|(name, node)| Some((name, node?)));
    if let Some((name, node)) = said().find(|(_, node)| number_of(node).is_none()) {
        let why = any_number(node).map_or("no number", |_| "a price is no negative number");
        let why = format!("its `{name}` is {}, and {why}", shown(node));
        notes.add(node, format!("the price of `{group}` is left out: {why}"));
        return None;
    }
    let [input, output, cached] = given.map(|node| node.and_then(number_of).map(per_million));
    let (Some(input), Some(output)) = (input, output) else {
        if said().next().is_some() {
            notes.add(entry, format!("the price of `{group}` is left out: it needs both input and output"));
        }
        return None;
    };
    for (name, node) in said().filter(|(_, node)| number_of(node) > Some(DEAREST)) {
        notes.add(node, format!("`{name}`: {} becomes {DEAREST}, which is the most", shown(node)));
    }
    Some((input, output, cached))
}

/// Who is asked, and for what. `shared`: the credential that it names says where.
fn vendor(
    whole: &str,
    params: &Node,
    shared: bool,
    entry: &Node,
    group: &str,
    notes: &mut Notes,
) -> Option<(&'static Vendor, String)> {
    let named = text(params, "custom_llm_provider");
    let (first, own) = whole.split_once('/').unwrap_or(("", whole));
    if let Some(who) = vendors::of_completions(named.unwrap_or(first), own) {
        let why = "is asked at /completions, and godex has no spec for it";
        notes.add(entry, format!("`{group}` is left out: {who} {why}"));
        return None;
    }
    let (prefix, model) = match (named, whole.split_once('/')) {
        (Some(named), Some((prefix, model))) if named == prefix => (named, model),
        (Some(named), _) => (named, whole),
        (None, Some((prefix, model))) if vendors::is_prefix(prefix) => (prefix, model),
        // A model whose own name has a slash, at an address of its own.
        (None, Some(_)) if has_address(params) => ("custom_openai", whole),
        (None, Some((prefix, model))) => (prefix, model),
        (None, None) => (vendors::of_bare(whole), whole),
    };
    // Parts of a path that say which of LiteLLM's own ways is taken.
    let model = ["responses/", "chat/"].iter().find_map(|way| model.strip_prefix(way)).unwrap_or(model);
    let model = if prefix == "azure_ai" { azure::routed(model) } else { model };
    // Who says `openai/` and an address means a server that speaks like OpenAI's.
    let elsewhere = has_address(params) && !address(params).contains("//api.openai.com");
    let prefix = if prefix == "openai" && (elsewhere || shared) { "custom_openai" } else { prefix };
    let other = || vendors::find("custom_openai", model).filter(|_| has_address(params) && !FOREIGN.contains(&prefix));
    let is_agent = prefix == "azure_ai" && model.contains("agents/");
    let found = vendors::find(prefix, model).or_else(other).filter(|_| !is_agent);
    if found.is_none() {
        let foreign = is_agent || FOREIGN.contains(&prefix);
        let why = if foreign { "has an API of its own" } else { "is not known here" };
        let who = if is_agent { "an agent of azure_ai" } else { prefix };
        notes.add(entry, format!("`{group}` is left out: {who} {why}, and godex has no spec for it"));
    }
    let found = found?;
    Some((found, found.naming.of(model)))
}

fn address(params: &Node) -> &str {
    text(params, "api_base").or_else(|| text(params, "base_url")).unwrap_or_default()
}

fn has_address(params: &Node) -> bool {
    !address(params).is_empty()
}

fn provider(
    vendor: &'static Vendor,
    params: &Node,
    shared: Option<&Node>,
    entry: &Node,
    group: &str,
    notes: &mut Notes,
) -> Option<Provider> {
    let value = |name: &str| Text::of(params, name).or_else(|| Text::of(shared?, name));
    let usual = || vendor.base_env.map(|name| Text::Variable(name.to_owned()));
    let given = value("api_base").or_else(|| value("base_url")).or_else(usual);
    let spec = resolve_named(Library::BUILTIN, vendor.spec, &|_| None).ok()?;
    let mut provider = Provider {
        prefix: vendor.prefix.to_owned(),
        spec: vendor.spec,
        base_url: None,
        plain_http: false,
        key: value("api_key"),
        over: Vec::new(),
        path: None,
        params: Vec::new(),
        query: Vec::new(),
        headers: Vec::new(),
        times: Times::of(params, notes),
    };
    match given {
        Some(given) => {
            if let Err(why) = provider.address(vendor, &spec, given, value("api_version"), entry, notes) {
                notes.add(entry, format!("`{group}` is left out: {why}"));
                return None;
            }
        }
        None => provider.usual_address(vendor, params, text(params, "model").unwrap_or_default()),
    }
    if provider.base_url.is_none() && spec.base_url.is_none() {
        notes.add(
            entry,
            format!("`{group}` is left out: there is no api_base, and {} is nowhere in particular", vendor.prefix),
        );
        return None;
    }
    if provider.key.is_none() && spec.token.is_none() && needs_key(vendor, &provider) {
        provider.usual_key(vendor, &spec, entry, group, notes);
    }
    if !vendor.note.is_empty() {
        notes.add(entry, vendor.note);
    }
    if let Some(organization) = Text::of(params, "organization") {
        provider.headers.push(("openai-organization".to_owned(), organization));
    }
    for headers in HEADERS.iter().filter_map(|name| get(params, name)) {
        let header = |(key, node): &(providers::yaml::Key, Node)| Some((key.name.clone(), Text::new(scalar(node)?)?));
        provider.headers.extend(entries(headers).iter().filter_map(header));
    }
    Some(provider)
}

impl Provider {
    /// That of the vendor or of its spec, whose placeholders are filled.
    fn usual_address(&mut self, vendor: &Vendor, params: &Node, model: &str) {
        self.base_url = vendor.base_url.map(|url| (Text::Literal(url.to_owned()), ""));
        let filled = |param: &Param| {
            let of_model = || vendors::region(model).filter(|_| param.name == "region");
            let said = Text::of(params, param.member).or_else(|| of_model().map(|text| Text::Literal(text.to_owned())));
            let usual = || param.variable.map(|name| Text::Variable(name.to_owned()));
            Some((param.name.to_owned(), said.or_else(usual)?))
        };
        self.params = vendor.params.iter().filter_map(filled).collect();
    }

    /// Of an entry that has no key: the one that LiteLLM would look for, or none where it needs none.
    fn usual_key(&mut self, vendor: &Vendor, spec: &providers::Provider, entry: &Node, group: &str, notes: &mut Notes) {
        let usual = vendor.key.map(str::to_owned);
        if vendor.keyless {
            self.over.push(("auth", "none"));
            let instead = usual.map(|name| format!(", where LiteLLM would send what {name} has")).unwrap_or_default();
            notes.add(entry, format!("{} without an api_key: none is sent (`auth: none`){instead}", vendor.prefix));
            return;
        }
        let mut usual = usual.or_else(|| spec.key_env.first().cloned());
        if vendor.spec == COMPATIBLE && usual.is_none() {
            let name = format!("{}_API_KEY", vendor.prefix.to_uppercase());
            notes.add(entry, format!("`{group}` has no api_key: it is read from {name}"));
            usual = Some(name);
        }
        self.key = usual.map(Text::Variable);
    }

    /// An address that was given.
    ///
    /// # Errors
    /// Why it cannot be used.
    fn address(
        &mut self,
        vendor: &Vendor,
        spec: &providers::Provider,
        given: Text,
        version: Option<Text>,
        entry: &Node,
        notes: &mut Notes,
    ) -> Result<(), String> {
        let (given, mut end) = match given {
            Text::Literal(_) | Text::Variable(_) if azure::is_azure(vendor) => {
                Site { provider: self, vendor, version, entry, notes }.place(given)
            }
            Text::Literal(url) => (Text::Literal(tidy(&url, spec.wire).to_owned()), vendor.path),
            variable @ Text::Variable(_) => (variable, vendor.path),
        };
        if let Text::Literal(url) = &given {
            if !end.is_empty() && url.ends_with(end) {
                end = "";
            }
            let usable = |url: &str| config::ad_hoc(COMPATIBLE, Some(url), None, &|_| None).map(drop);
            let whole = format!("{url}{end}");
            if let Err(why) = usable(&whole) {
                let https = whole.replacen("http://", "https://", 1);
                if whole.starts_with("http://") && usable(&https).is_ok() {
                    self.plain_http = true;
                    notes.add(
                        entry,
                        "keys and prompts go to a public host in clear (http): `allow_plain_http` lets them",
                    );
                } else {
                    return Err(why);
                }
            }
        }
        self.base_url = Some((given, end));
        Ok(())
    }
}

/// Whether godex would refuse to go without one.
fn needs_key(vendor: &Vendor, provider: &Provider) -> bool {
    match &provider.base_url {
        Some((Text::Literal(url), _)) => {
            !config::ad_hoc(COMPATIBLE, Some(url), None, &|_| None).is_ok_and(|config| config.is_private())
        }
        Some((Text::Variable(_), _)) => true,
        None => !vendor.keyless && vendor.spec != "litellm",
    }
}

/// Without what godex adds by itself.
pub(super) fn tidy(url: &str, wire: Wire) -> &str {
    let url = url.trim_end_matches('/');
    let added: &[&str] = match wire {
        Wire::Messages => &["/v1/messages", "/v1"],
        Wire::Chat | Wire::Responses | Wire::Demo => &["/chat/completions"],
    };
    added.iter().find_map(|end| url.strip_suffix(end)).unwrap_or(url)
}

/// Of a time in seconds; None, with a note, where godex takes no such time.
pub(super) fn milliseconds(section: &Node, name: &str, notes: &mut Notes) -> Option<u64> {
    let given = get(section, name)?;
    let seconds = number(section, name).filter(|seconds| (0.001..=LONGEST).contains(seconds));
    if seconds.is_none() {
        let shown = shown(given);
        notes.add(given, format!("`{name}` is left out: it is {shown}, and a time is of 0.001 to {LONGEST} seconds"));
    }
    seconds.map(|seconds| whole_number(seconds * 1000.0))
}

/// Numbers here are far from any bound.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be positive and not too large")]
pub(super) fn whole_number(number: f64) -> u64 {
    number.clamp(0.0, 1e15).round() as u64
}

/// What a token may cost, in dollars.
const DEAREST: f64 = 1.0;

/// A price for a token, for a million of them.
fn per_million(cost: f64) -> String {
    let text = format!("{:.6}", cost.clamp(0.0, DEAREST) * 1e6);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What has no equal in the rest of an entry.
fn remarks(params: &Node, notes: &mut Notes) {
    for (key, value) in entries(params).iter().filter(|(_, value)| !value.is_null()) {
        let name = key.name.as_str();
        match name {
            "rpm" | "tpm" => {
                notes.add(value, format!("`{name}` of a deployment says at most how often it is chosen here; limits are those of keys (`keys`, `godex keys`)"));
            }
            "max_retries" | "num_retries" => {
                notes.add(value, format!("`{name}` of a deployment: `resilience.retries` holds for all"));
            }
            "temperature"
            | "top_p"
            | "max_tokens"
            | "max_completion_tokens"
            | "seed"
            | "stop"
            | "frequency_penalty"
            | "presence_penalty"
            | "reasoning_effort"
            | "thinking"
            | "extra_body" => {
                notes.add(value, format!("`{name}`: there are no defaults of parameters, clients send them"));
            }
            _ if KNOWN.contains(&name) => {}
            _ => notes.add(value, format!("`litellm_params.{name}` has no equal")),
        }
    }
}

/// Members of `model_info` that only describe, or that are read elsewhere.
const DESCRIBING: &[&str] = &[
    "id",
    "db_model",
    "key",
    "mode",
    "base_model",
    "litellm_provider",
    "description",
    "created_at",
    "created_by",
    "updated_at",
    "updated_by",
    "max_input_tokens",
    "max_output_tokens",
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
];

/// What has no equal in what is said of a model.
fn informed(info: &Node, group: &str, notes: &mut Notes) {
    for (key, value) in entries(info).iter().filter(|(_, value)| !value.is_null()) {
        let name = key.name.as_str();
        match name {
            "team_id" => notes.add(
                value,
                format!(
                    "CAREFUL: `{group}` was for the team `{}` alone (`model_info.team_id`), and here every key may use it: \
                     say which may with `models` of each key (`godex keys create --models`)",
                    shown(value)
                ),
            ),
            "access_groups" => notes.add(value, "`access_groups`: `models` of a key says what it may use"),
            "max_tokens" => notes.add(value, "`model_info.max_tokens` is left out: `max_output_tokens` is clear, and is read"),
            _ if DESCRIBING.contains(&name) || name.starts_with("supports_") => {}
            _ => notes.add(value, format!("`model_info.{name}` has no equal")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_for_a_million_tokens() {
        for (cost, expected) in [(0.000_002_5, "2.5"), (5e-06, "5"), (0.0, "0"), (1.5e-7, "0.15"), (1e-12, "0.000001")]
        {
            assert_eq!(per_million(cost), expected, "{cost}");
        }
    }
}
