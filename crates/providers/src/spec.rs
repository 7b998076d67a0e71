//! What a provider spec can say: a closed vocabulary over endpoint, auth and dialect.
//!
//! A spec says only what differs from the one it extends, and what differs for single models. Nothing here knows
//! a vendor: names, addresses and quirks are in `specs/*.yaml`.

mod answer;
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

use crate::yaml::{Field, Section};
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
    pub base_url: Option<String>,
    /// What comes after the base URL; `{model}` is replaced by the model's name.
    pub path: String,
    /// The query of every request.
    pub query: Vec<(String, String)>,
    pub auth: Auth,
    /// What else goes with every request; names as they are written.
    pub headers: Vec<(String, HeaderText)>,
    /// Whether what is known of models wherever they are served holds here.
    pub families: bool,
    /// The environment variable that usually holds its key.
    pub key_env: Option<String>,
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
        /// The demo model inside this binary.
        Demo = "demo",
    }
}

bridge::vocabulary! {
    /// How the key is sent.
    pub enum Auth {
        /// `Authorization: Bearer KEY`.
        Bearer = "bearer",
        /// `api-key: KEY`.
        ApiKeyHeader = "api-key-header",
        /// Not at all.
        None = "none",
    }
}

/// One spec as written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Spec {
    pub(crate) extends: Option<String>,
    pub(crate) endpoint: Endpoint,
    auth: Option<Auth>,
    headers: Option<Headers>,
    pub(crate) families: Option<bool>,
    key_env: Option<String>,
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
    pub path: Option<String>,
    pub query: Option<Vec<(String, String)>>,
}

impl Endpoint {
    /// What comes after the base URL. The base itself is read by whoever can check it.
    pub fn read(section: &mut Section<'_>) -> Self {
        Self { base_url: None, path: section.read("path", path), query: section.read("query", query) }
    }
}

impl Spec {
    pub(crate) fn read(mut section: Section<'_>) -> Self {
        let mut endpoint = section.section("endpoint");
        let base_url = endpoint.read("base_url", Field::text);
        let place = Endpoint { base_url, ..Endpoint::read(&mut endpoint) };
        endpoint.finish();
        let spec = Self {
            extends: section.read("extends", Field::text),
            endpoint: place,
            auth: section.read("auth", |field| field.choice(Auth::ALL, Auth::name)),
            headers: section.read("headers", headers::read),
            families: section.read("families", Field::boolean),
            key_env: section.read("key_env", Field::text),
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
            auth: Some(of.auth),
            headers: Some(of.headers.clone()),
            families: Some(of.families),
            key_env: of.key_env.clone(),
            default_model: of.default_model.clone(),
            models: Models::default(),
            prices: price::whole(&of.layers),
            discovery: Discovery::whole(&of.discovery),
            terms: Terms::whole(model),
        }
    }

    /// What is said, key by key; the models come apart. Hosts, paths and names are shown wherever they are from.
    pub(crate) fn settings(&self, from: Sources<'_>) -> Vec<Setting> {
        let Self {
            extends,
            endpoint,
            auth,
            headers,
            families,
            key_env,
            default_model,
            models: _,
            prices,
            discovery,
            terms,
        } = self;
        let Endpoint { base_url, path, query } = endpoint;
        let mut out = Vec::new();
        let mut say = |key: &str, value: Option<String>| out.extend(value.map(|value| (key.to_owned(), value)));
        say("extends", extends.as_ref().map(Yaml::yaml));
        say("endpoint.base_url", base_url.as_ref().map(|url| without_secrets(url).yaml()));
        say("endpoint.path", path.as_ref().map(Yaml::yaml));
        say("endpoint.query", query.as_ref().map(|query| shown_query(query, from("endpoint.query"))));
        say("auth", auth.as_ref().map(Yaml::yaml));
        say("headers", headers.as_ref().map(|headers| headers.shown("headers", from("headers"))));
        say("families", families.as_ref().map(Yaml::yaml));
        say("key_env", key_env.as_ref().map(|name| name.shown("key_env", from("key_env"))));
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

    /// Lays this spec over what it extends: what it says replaces, the rest stays.
    fn apply(&self, to: &mut Provider) {
        let Self {
            extends: _,
            endpoint,
            auth,
            headers,
            families,
            key_env,
            default_model,
            models,
            prices: _,
            discovery,
            terms: _,
        } = self;
        let Endpoint { base_url, path, query } = endpoint;
        to.auth = auth.unwrap_or(to.auth);
        to.families = families.unwrap_or(to.families);
        if let Some(headers) = headers {
            to.headers.clone_from(headers);
        }
        // A new address must not get the key that is meant for the old one.
        to.key_env = if base_url.is_some() { key_env.clone() } else { key_env.clone().or(to.key_env.take()) };
        to.base_url = base_url.clone().or(to.base_url.take());
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
            path: "/chat/completions".to_owned(),
            query: Vec::new(),
            auth: Auth::Bearer,
            headers: Vec::new(),
            families: false,
            key_env: None,
            default_model: None,
            models: Vec::new(),
            dialect: bare.dialect,
            context_window: None,
            discovery: DiscoveryRules::default(),
            layers: Vec::new(),
        };
        for layer in &layers {
            layer.spec.apply(&mut provider);
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
        // The environment's key is meant for the spec's own address, if it has one, and goes nowhere else.
        let goes_elsewhere = endpoint.base_url.is_some() && self.base_url.is_some();
        let spec = Spec { endpoint, models, prices, ..Spec::default() };
        let Self { spec_name, key_env, mut layers, .. } = self;
        layers.push(Layer { kind: LayerKind::Entry, spec, places: Places::of(entry) });
        Self { key_env: key_env.filter(|_| !goes_elsewhere), ..Self::of(&spec_name, layers) }
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
        spec
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
