//! What a provider spec can say: a closed vocabulary over endpoint, auth and dialect.
//!
//! A spec says only what differs from the one it extends, and what differs for single models. Nothing here knows
//! a vendor: names, addresses and quirks are in `specs/*.yaml`.

mod abilities;
mod address;
mod alike;
mod answer;
mod auth;
mod catalog;
mod describe;
mod glob;
mod headers;
mod layer;
mod models;
mod price;
mod request;
mod terms;
mod values;

use bridge::Dialect;

use crate::resolve::ROOT;
use crate::yaml::{Field, Section};
pub use address::Gap;
pub(crate) use auth::SaidAuth;
pub use auth::{Auth, TokenCommand};
use catalog::Discovery;
pub use catalog::{ApplyPatch, CatalogRules, DiscoveryRules, SubAgents};
pub use describe::{SpecKey, Taken, spec_keys};
use headers::Headers;
pub use headers::{HeaderSource, HeaderText};
pub(crate) use layer::{Layer, LayerKind, Places, Setting, Source, Sources, Variables};
pub(crate) use models::{Entry, Models};
pub(crate) use price::Prices;
pub use price::{Price, price_per_call};
use terms::Terms;
pub(crate) use values::Yaml;

/// A spec with everything that it extends filled in.
#[derive(Clone, PartialEq, Eq)]
pub struct Provider {
    /// The built-in spec's name, the user's file, or [`crate::INLINE`].
    pub spec_name: String,
    pub wire: Wire,
    /// With placeholders in it; see [`Provider::address`].
    pub base_url: Option<String>,
    /// The name of that address, if it was chosen by one.
    pub endpoint_name: Option<String>,
    /// Addresses to choose from, by name.
    pub endpoints: Vec<(String, String)>,
    /// What fills placeholders of the address.
    pub params: Vec<(String, String)>,
    /// The variables that fill the others.
    pub params_env: Vec<(String, Vec<String>)>,
    /// What comes after the base URL; `{model}` is replaced by the model's name.
    pub path: String,
    /// The query of every request.
    pub query: Vec<(String, String)>,
    pub auth: Auth,
    /// What else goes with every request; names as they are written.
    pub headers: Vec<(String, HeaderText)>,
    /// Whether what is known of models wherever they are served holds here.
    pub families: bool,
    /// What prints a token, where there is no key.
    pub token: Option<TokenCommand>,
    /// The environment variables that may hold its key; the first that is set does.
    pub key_env: Vec<String>,
    /// Whether such a key is enough to use it without a configuration.
    pub automatic: bool,
    pub default_model: Option<String>,
    /// What the list of models shows.
    pub models: Vec<String>,
    /// For models of which the spec says nothing particular; see [`Provider::for_model`].
    pub dialect: Dialect,
    /// How many tokens such a model takes, if that is known.
    pub context_window: Option<u64>,
    /// How its own list of models reads.
    pub discovery: DiscoveryRules,
    /// Everything that was said, the root first.
    pub(crate) layers: Vec<Layer>,
}

/// Without what may have come from variables: queries, and members that are sent as they are.
impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider")
            .field("spec_name", &self.spec_name)
            .field("wire", &self.wire)
            .field("base_url", &self.base_url)
            .field("path", &self.path)
            .field("auth", &self.auth)
            .field("key_env", &self.key_env)
            .field("models", &self.models)
            .finish_non_exhaustive()
    }
}

/// What a spec comes to for one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSpec {
    pub wire: Wire,
    pub context_window: Option<u64>,
    pub catalog: CatalogRules,
    pub dialect: Dialect,
}

/// Which entries of a spec are about a model. Models with the same have the same [`ModelSpec`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Matches(Vec<u16>);

impl Matches {
    pub(crate) fn contains(&self, index: u16) -> bool {
        self.0.contains(&index)
    }
}

bridge::vocabulary! {
    /// Who answers.
    pub enum Wire {
        /// A Chat Completions server.
        Chat = "chat",
        /// A server with a Responses API of its own, used as such.
        Responses = "responses",
        /// A server of the Messages API, whose messages are made of blocks.
        Messages = "messages",
        /// The demo model inside this binary.
        Demo = "demo",
    }
}

/// One spec as written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Spec {
    pub(crate) extends: Option<String>,
    pub(crate) endpoint: Endpoint,
    pub(crate) endpoints: Option<Vec<(String, String)>>,
    auth: Option<SaidAuth>,
    key_env: Option<Vec<String>>,
    automatic: Option<bool>,
    headers: Option<Headers>,
    pub(crate) families: Option<bool>,
    default_model: Option<String>,
    pub(crate) models: Models,
    pub(crate) prices: Prices,
    discovery: Discovery,
    terms: Terms,
}

/// Where requests go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Endpoint {
    pub base_url: Option<String>,
    /// One of the spec's `endpoints`, instead of a base URL.
    pub name: Option<String>,
    pub params: Option<Vec<(String, String)>>,
    pub params_env: Option<Vec<(String, Vec<String>)>>,
    pub path: Option<String>,
    pub query: Option<Vec<(String, String)>>,
}

impl Endpoint {
    /// What comes after the base URL. The base itself is read by whoever can check it.
    pub fn read(section: &mut Section<'_>) -> Self {
        Self {
            base_url: None,
            name: section.read("name", Field::text),
            params: section.read("params", address::params),
            params_env: None,
            path: section.read("path", path),
            query: section.read("query", query),
        }
    }
}

impl Spec {
    pub(crate) fn read(mut section: Section<'_>) -> Self {
        let mut endpoint = section.section("endpoint");
        let base_url = endpoint.read("base_url", Field::text);
        let params_env = endpoint.read("params_env", address::params_env);
        let place = Endpoint { base_url, params_env, ..Endpoint::read(&mut endpoint) };
        endpoint.finish();
        let spec = Self {
            extends: section.read("extends", Field::text),
            endpoint: place,
            endpoints: section.read("endpoints", address::endpoints),
            auth: section.read("auth", SaidAuth::read),
            key_env: section.read("key_env", address::one_or_more),
            automatic: section.read("automatic", Field::boolean),
            headers: section.read("headers", headers::read),
            families: section.read("families", Field::boolean),
            default_model: section.read("default_model", Field::text),
            models: section.read("models", Models::read).unwrap_or_default(),
            prices: section.read("prices", price::read).unwrap_or_default(),
            discovery: {
                let mut section = section.section("discovery");
                let discovery = Discovery::pick(&mut section);
                section.finish();
                discovery
            },
            terms: Terms::pick(&mut section),
        };
        section.finish();
        spec
    }

    /// A spec that says everything that a provider comes to.
    pub(crate) fn whole(of: &Provider, endpoint: Endpoint, model: &ModelSpec) -> Self {
        Self {
            extends: None,
            endpoint,
            endpoints: some(&of.endpoints),
            auth: Some(of.token.clone().map_or(SaidAuth::Key(of.auth), SaidAuth::Command)),
            key_env: some(&of.key_env),
            automatic: (!of.automatic).then_some(false),
            headers: Some(of.headers.clone()),
            families: Some(of.families),
            default_model: of.default_model.clone(),
            models: Models::default(),
            prices: price::whole(&of.layers),
            discovery: Discovery::whole(&of.discovery),
            terms: Terms::whole(model),
        }
    }

    /// What is said, key by key; the models come apart. Hosts, paths and names are shown wherever they are from.
    pub(crate) fn settings(&self, from: Sources<'_>) -> Vec<Setting> {
        let Self { extends, endpoint, endpoints, auth, key_env, automatic, default_model, .. } = self;
        let Self { models: _, headers, families, prices, discovery, terms, .. } = self;
        let Endpoint { base_url, name, params, params_env, path, query } = endpoint;
        let mut out = Vec::new();
        let mut say = |key: &str, value: Option<String>| out.extend(value.map(|value| (key.to_owned(), value)));
        say("extends", extends.as_ref().map(Yaml::yaml));
        say("endpoint.base_url", base_url.as_ref().map(|url| without_secrets(url).yaml()));
        say("endpoint.name", name.as_ref().map(Yaml::yaml));
        say("endpoint.params", params.as_ref().map(Yaml::yaml));
        say("endpoint.params_env", params_env.as_ref().map(Yaml::yaml));
        say("endpoint.path", path.as_ref().map(Yaml::yaml));
        say("endpoint.query", query.as_ref().map(|query| shown_query(query, from("endpoint.query"))));
        let without = |(name, url): &(String, String)| (name.clone(), without_secrets(url));
        say("endpoints", endpoints.as_ref().map(|all| all.iter().map(without).collect::<Vec<_>>().yaml()));
        say("auth", auth.as_ref().map(|auth| auth.shown(from("auth"))));
        say("headers", headers.as_ref().map(|headers| headers.shown("headers", from("headers"))));
        say("families", families.as_ref().map(Yaml::yaml));
        say("key_env", key_env.as_ref().map(|names| values::one_or_list(names, "key_env", from("key_env"))));
        say("automatic", automatic.as_ref().map(Yaml::yaml));
        say("default_model", default_model.as_ref().map(Yaml::yaml));
        say("prices", (!prices.is_empty()).then(|| prices.shown("prices", from("prices"))));
        discovery.settings("discovery.", from, &mut out);
        terms.settings(from, &mut out);
        out
    }

    /// The headers that say the same with every request.
    pub(crate) fn fixed_headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().flatten().filter_map(|(name, text)| match text {
            HeaderText::Fixed(text) => Some((name.as_str(), text.as_str())),
            HeaderText::From(_) => None,
        })
    }

    /// Lays this spec over what it extends: what it says replaces, the rest stays. The address is what its base URL
    /// or name comes to.
    fn apply(&self, address: Option<String>, to: &mut Provider) {
        let Self { endpoint, endpoints, auth, key_env, automatic, default_model, models, discovery, .. } = self;
        let Self { headers, families, .. } = self;
        let Endpoint { base_url, name, params, params_env, path, query } = endpoint;
        to.families = families.unwrap_or(to.families);
        if let Some(headers) = headers {
            to.headers.clone_from(headers);
        }
        // New addresses must not get the key, or the token, that is meant for the old ones.
        if base_url.is_some() || endpoints.is_some() {
            to.key_env.clear();
            to.token = None;
        }
        match auth {
            Some(SaidAuth::Key(auth)) => (to.auth, to.token) = (*auth, None),
            Some(SaidAuth::Command(token)) => (to.auth, to.token) = (Auth::Bearer, Some(token.clone())),
            None => {}
        }
        if let Some(key_env) = key_env {
            to.key_env.clone_from(key_env);
        }
        to.automatic = automatic.unwrap_or(to.automatic);
        if address.is_some() || endpoints.is_some() {
            to.endpoint_name = name.clone().filter(|_| address.is_some() && base_url.is_none());
        }
        to.base_url = address.or(to.base_url.take());
        if let Some(endpoints) = endpoints {
            to.endpoints.clone_from(endpoints);
        }
        if let Some(params) = params {
            to.params.clone_from(params);
        }
        if let Some(params_env) = params_env {
            to.params_env.clone_from(params_env);
        }
        if let Some(path) = path {
            to.path.clone_from(path);
        }
        if let Some(query) = query {
            to.query.clone_from(query);
        }
        to.default_model = default_model.clone().or(to.default_model.take());
        models.list(&mut to.models);
        discovery.apply(&mut to.discovery);
    }
}

impl Provider {
    /// What these layers come to, the root first.
    pub(crate) fn of(spec_name: &str, layers: Vec<Layer>) -> Self {
        let bare = ModelSpec::default();
        let mut provider = Self {
            spec_name: spec_name.to_owned(),
            wire: bare.wire,
            base_url: None,
            endpoint_name: None,
            endpoints: Vec::new(),
            params: Vec::new(),
            params_env: Vec::new(),
            path: "/chat/completions".to_owned(),
            query: Vec::new(),
            auth: Auth::Bearer,
            token: None,
            key_env: Vec::new(),
            automatic: true,
            headers: Vec::new(),
            families: false,
            default_model: None,
            models: Vec::new(),
            dialect: bare.dialect,
            context_window: None,
            discovery: DiscoveryRules::default(),
            layers: Vec::new(),
        };
        for (layer, address) in layers.iter().zip(address::said(&layers)) {
            layer.spec.apply(address, &mut provider);
        }
        provider.layers = layers;
        let ModelSpec { wire, context_window, catalog: _, dialect } = provider.with(&Matches::default());
        Self { wire, dialect, context_window, ..provider }
    }

    /// The same with what the user's entry for this provider says over it: where it is, its models, what they cost.
    #[must_use]
    pub fn entered(
        self,
        entry: &Field<'_>,
        endpoint: Endpoint,
        models: Option<&Field<'_>>,
        prices: Option<&Field<'_>>,
    ) -> Self {
        let models = models.and_then(Models::read).unwrap_or_default();
        let prices = prices.and_then(price::read).unwrap_or_default();
        // The environment's key, or the token, is meant for the spec's own address, if it has one, and goes nowhere else.
        let goes_elsewhere = endpoint.base_url.is_some() && self.base_url.is_some();
        // But a user's spec without an address may have the token for the one that the entry names.
        let is_for_entry = self.layers.last().is_some_and(|layer| {
            let Spec { auth, endpoint, endpoints, .. } = &layer.spec;
            layer.kind == LayerKind::User
                && matches!(auth, Some(SaidAuth::Command(_)))
                && endpoint.base_url.is_none()
                && endpoints.is_none()
        });
        let spec = Spec { endpoint, models, prices, ..Spec::default() };
        let Self { spec_name, key_env, token, mut layers, .. } = self;
        layers.push(Layer { kind: LayerKind::Entry, spec, places: Places::of(entry) });
        let entered = Self::of(&spec_name, layers);
        match goes_elsewhere {
            false => Self { token, key_env, ..entered },
            true if is_for_entry => Self { token, ..entered },
            true => entered,
        }
    }

    /// The entries for models, numbered through all layers.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (u16, &Entry)> {
        (0..).zip(self.layers.iter().flat_map(|layer| &layer.spec.models.entries))
    }

    /// Which of the spec's entries are about this model.
    pub fn matches(&self, model: &str) -> Matches {
        Matches(self.entries().filter(|(_, entry)| entry.fits(model)).map(|(index, _)| index).collect())
    }

    /// What the spec comes to for models with these entries. A layer's entries lie over what it says of all
    /// models, and what a later layer says lies over both: the user's word is the last.
    pub fn with(&self, matches: &Matches) -> ModelSpec {
        let mut spec = ModelSpec::default();
        let mut index = 0;
        for layer in &self.layers {
            layer.spec.terms.apply(&mut spec);
            for entry in &layer.spec.models.entries {
                if matches.contains(index) {
                    entry.terms.apply(&mut spec);
                }
                index += 1;
            }
        }
        if let Some(window) = spec.context_window.filter(|_| spec.wire == Wire::Messages) {
            spec.dialect.request.blocks.keep_within(window);
        }
        spec
    }

    /// The spec right below this one; the root has none.
    pub fn extends(&self) -> Option<&str> {
        let own = self.layers.iter().rfind(|layer| layer.kind != LayerKind::Entry)?;
        let parent = own.spec.extends.as_deref().unwrap_or(ROOT);
        (self.spec_name != ROOT).then_some(parent)
    }

    /// Whether every model is spoken to as it is by the other one: they differ in address, key and the names that
    /// nobody is sent.
    pub fn speaks_like(&self, other: &Self) -> bool {
        let dialect = Dialect { family: other.dialect.family.clone(), ..self.dialect.clone() };
        let entries = |of: &Self| of.entries().map(|(_, entry)| entry.clone()).collect::<Vec<_>>();
        (self.wire, &dialect) == (other.wire, &other.dialect) && entries(self) == entries(other)
    }

    /// What a model costs, if anybody says.
    pub fn price(&self, model: &str) -> Option<&Price> {
        price::of_model(&self.layers, model)
    }

    /// What the spec comes to for one model.
    pub fn for_model(&self, model: &str) -> ModelSpec {
        self.with(&self.matches(model))
    }
}

impl ModelSpec {
    /// How many tokens a request may have, if that is known.
    pub fn request_window(&self) -> Option<u64> {
        let known = [self.context_window, self.catalog.max_input];
        known.into_iter().flatten().min()
    }
}

impl Default for ModelSpec {
    /// What a spec starts from before the root spec has spoken.
    fn default() -> Self {
        Self { wire: Wire::Chat, context_window: None, catalog: CatalogRules::default(), dialect: Dialect::default() }
    }
}

/// What there is of a list or a mapping, if there is something.
pub(crate) fn some<T: Clone>(all: &[T]) -> Option<Vec<T>> {
    (!all.is_empty()).then(|| all.to_vec())
}

/// The query of a provider. Some want their key there; a version that is written in the file is the usual thing.
fn shown_query(query: &[(String, String)], from: Source<'_>) -> String {
    let pair = |(name, value): &(String, String)| {
        let is_shown = name.ends_with("version") || from.variables == Variables::AsWritten;
        let shown = if is_shown { value.clone() } else { REDACTED.to_owned() };
        format!("{}: {}", name.yaml(), shown.shown(&format!("endpoint.query.{name}"), from))
    };
    format!("{{{}}}", query.iter().map(pair).collect::<Vec<_>>().join(", "))
}

/// What is shown instead of a secret; a query can hold it, too.
const REDACTED: &str = "redacted";

/// An address without the user, the password and the query that it must not have: not all are checked before they
/// are shown.
fn without_secrets(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (rest, query) = rest.split_once(['?', '#']).map_or((rest, ""), |(rest, _)| (rest, "?redacted"));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host =
        authority.rsplit_once('@').map_or_else(|| authority.to_owned(), |(_, host)| format!("{REDACTED}@{host}"));
    let mark = if scheme.is_empty() { "" } else { "://" };
    format!("{scheme}{mark}{host}{path}{query}")
}

fn path(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "/-._~{}:@".contains(c);
    let holes = text.replace("{model}", "");
    if !text.starts_with('/') || text.ends_with('/') || !text.chars().all(fits) || holes.contains(['{', '}']) {
        let help = "`{model}` is the only thing in braces".to_owned();
        field.problem("expected a path such as `/chat/completions`", Some(help));
        return None;
    }
    Some(text)
}

fn query(field: &Field<'_>) -> Option<Vec<(String, String)>> {
    let fits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._~".contains(c));
    let pair = |(name, field): (String, Field<'_>)| {
        let value = field.text()?;
        if !fits(&name) || !fits(&value) {
            field.problem("expected letters, digits, `-`, `.`, `_` and `~`", None);
            return None;
        }
        Some((name, value))
    };
    Some(field.entries()?.into_iter().filter_map(pair).collect())
}
