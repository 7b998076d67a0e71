//! The `providers` section: each entry is a spec plus what is particular to this installation.

use http::{HeaderName, HeaderValue};
use providers::yaml::{Document, Env, Field, Reader, Section};
use providers::{Auth, Endpoint, Library, Provider, Wire, resolve_inline, resolve_named};

use super::address::{self, BaseUrl};
use super::key::{Key, Keys};
use super::kind::{Preset, Special};
use super::{
    KeyFrom, Origin, ProviderConfig, Purpose, Secret, Sources, Timeouts, locate, provider_table as table, replicas,
    transport,
};

/// What the file says about providers.
#[derive(Debug, Default)]
pub(super) struct Providers {
    /// Whether it says anything: then no key in the environment becomes a provider.
    pub(super) are_named: bool,
    /// Also those with mistakes, so that one mistake is not reported twice.
    pub(super) names: Vec<String>,
    pub(super) usable: Vec<ProviderConfig>,
}

pub(super) fn read(reader: &Reader<'_>, sources: &Sources<'_>, origin: &Origin, keys: &mut Keys<'_>) -> Providers {
    let mut providers = Providers::default();
    let section = keys.field(&super::table::PROVIDERS);
    providers.are_named = section.is_some();
    let entries = section.and_then(|field| field.entries());
    for (name, field) in entries.unwrap_or_default() {
        if name.is_empty() || name.contains('/') || name.trim() != name {
            field.problem("a provider's name must not be empty or hold `/` or outer blanks", None);
        }
        let section = field.section();
        let usable = section.and_then(|section| Entry { reader, sources, origin, name: &name }.read(section));
        providers.usable.extend(usable);
        providers.names.push(name);
    }
    providers
}

/// One entry being read.
struct Entry<'a> {
    reader: &'a Reader<'a>,
    sources: &'a Sources<'a>,
    /// The file that names of other files are seen from.
    origin: &'a Origin,
    name: &'a str,
}

impl Entry<'_> {
    fn read(&self, section: Section<'_>) -> Option<ProviderConfig> {
        let whole = section.as_field().clone();
        let mut keys = Keys::new(section, table::PREFIX);
        let given = Given {
            base_url: GivenText::of(&mut keys, &table::BASE_URL),
            base_urls: keys.field(&table::BASE_URLS),
            key: GivenText::of(&mut keys, &table::API_KEY),
            keys: keys.field(&table::API_KEYS),
            plain_http: keys.get(&table::ALLOW_PLAIN_HTTP),
        };
        let timeouts = timeouts(&mut keys);
        let headers = keys.field(&table::HEADERS).as_ref().and_then(headers).unwrap_or_default();
        let transport = transport::read(&mut keys, self.sources);
        let (spec, models) = (keys.field(&table::SPEC), keys.field(&table::MODELS));
        let prices = keys.field(&table::PRICES);
        let health = keys.field(&table::HEALTH).as_ref().and_then(replicas::health);
        let named = keys.field(&table::ENDPOINT_NAME);
        let endpoint = keys.section("endpoint").map(Endpoint::read).unwrap_or_default();
        let several = given.base_urls.as_ref().map(|field| replicas::read(field, &given)).unwrap_or_default();
        let first = several.first().map(|base| base.url.clone());
        let endpoint = Endpoint { base_url: first.or_else(|| given.base_url.text.clone()), ..endpoint };
        let provider = self.spec(&whole, spec.as_ref());
        keys.finish();
        let provider = provider?.entered(&whole, endpoint, models.as_ref(), prices.as_ref());
        if let Some(name) = named {
            provider.check_name(&name, given.base_url.text.is_some() || given.base_urls.is_some());
        }
        let bases = match &given.base_urls {
            Some(field) if provider.wire == Wire::Demo => {
                field.problem("the demo model has no address", None);
                Vec::new()
            }
            Some(_) => several,
            None => base_url_of(&whole, &given, &provider, self.sources.env).into_iter().collect(),
        };
        let forwarded = transport.proxy.is_some() && bases.iter().any(BaseUrl::is_plain);
        if transport.http2 && forwarded {
            whole.problem_of_key("`http2` cannot be had through a proxy that forwards plain http", None);
        }
        let (api_keys, key_from) = self.api_keys(&whole, &given, &provider, &bases);
        let urls: Vec<String> = bases.into_iter().map(|base| base.url).collect();
        Some(ProviderConfig {
            name: self.name.to_owned(),
            key_from,
            api_keys,
            base_url: urls.first().cloned().unwrap_or_default(),
            base_urls: if urls.len() > 1 { urls } else { Vec::new() },
            health,
            timeouts,
            models: listed(&provider),
            headers,
            transport,
            provider,
        })
    }

    /// The keys, and where the first is from.
    fn api_keys(
        &self,
        whole: &Field<'_>,
        given: &Given<'_>,
        provider: &Provider,
        bases: &[BaseUrl],
    ) -> (Vec<Secret>, KeyFrom) {
        let listed = given.keys.as_ref().and_then(api_keys);
        let wanted = listed.is_none() && provider.auth != Auth::None && provider.token.is_none();
        let needed = wanted && bases.iter().any(|base| !base.private);
        let variable = provider.key_variable(self.sources.env).filter(|_| listed.is_none());
        let first = self.key(whole, &given.key, variable, needed);
        let from = match (&given.keys, &provider.token) {
            (Some(field), _) if first.is_none() => KeyFrom::File(format!("{}:{}", field.file(), field.position().line)),
            (None, Some(token)) if first.is_none() => KeyFrom::Command(token.program().to_owned()),
            _ => key_from(&given.key, variable, first.is_some(), needed),
        };
        (first.into_iter().chain(listed.unwrap_or_default()).collect(), from)
    }

    fn spec(&self, whole: &Field<'_>, spec: Option<&Field<'_>>) -> Option<Provider> {
        let library = Library::BUILTIN;
        let known = || Some(format!("specs: {}", library.names().collect::<Vec<_>>().join(", ")));
        let name = match spec {
            Some(field) if field.is_mapping() => return resolve_inline(library, field, self.sources.env),
            Some(field) => field.text()?,
            None => self.name.to_owned(),
        };
        if let Some(field) = spec.filter(|_| is_file(&name)) {
            return self.file(field, &name);
        }
        if !library.contains(&name) {
            match spec {
                Some(field) => field.problem(format!("there is no spec {}", field.found()), known()),
                None => whole.problem_of_key(format!("needs a `spec`, because none is called `{name}`"), known()),
            }
            return None;
        }
        resolve_named(library, &name, self.sources.env)
            .map_err(|problems| problems.0.into_iter().for_each(|problem| self.reader.report(problem)))
            .ok()
    }

    /// A spec in a file of its own.
    fn file(&self, field: &Field<'_>, name: &str) -> Option<Provider> {
        let folder = match self.origin {
            Origin::File(path) => path.parent(),
            Origin::Defaults => None,
        };
        let path = locate::expand_from(name, folder.unwrap_or(self.sources.cwd), self.sources);
        let document = match locate::read(&path, name) {
            Ok(Some(text)) => Document::parse(name, &text),
            Ok(None) => {
                let help = format!("looked for {}", path.display());
                field.problem("there is no such file", Some(help));
                return None;
            }
            Err(problem) => Err(problem),
        };
        let document = document.map_err(|problem| self.reader.report(problem)).ok()?;
        let reader = Reader::new(&document, self.sources.env);
        let provider = resolve_inline(Library::BUILTIN, &reader.root_field(), self.sources.env);
        for problem in reader.finish() {
            self.reader.report(problem);
        }
        let mut provider = provider?;
        name.clone_into(&mut provider.spec_name);
        Some(provider)
    }

    fn key(&self, whole: &Field<'_>, given: &GivenText<'_>, variable: Option<&str>, needed: bool) -> Option<Secret> {
        if given.is_broken() {
            return None;
        }
        let key = given.text.clone().or_else(|| (self.sources.env)(variable?));
        let key = key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
        if key.as_deref().is_some_and(|key| !can_be_sent(key)) {
            let from = variable.filter(|_| given.text.is_none());
            given.problem(whole, UNSENDABLE, from.map(|name| format!("it is from the environment variable {name}")));
        }
        if needed && key.is_none() && self.sources.overrides.purpose == Purpose::Serve {
            let help = variable.map(|name| format!("set it here, or set the environment variable {name}"));
            given.problem(whole, "is missing", help);
        }
        key.map(Secret::new)
    }
}

fn key_from(given: &GivenText<'_>, variable: Option<&str>, is_there: bool, needed: bool) -> KeyFrom {
    match (&given.field, variable) {
        (Some(field), _) if is_there && given.text.is_some() => {
            KeyFrom::File(format!("{}:{}", field.file(), field.position().line))
        }
        (_, Some(variable)) if is_there => KeyFrom::Variable(variable.to_owned()),
        _ if needed => KeyFrom::Missing(variable.map(str::to_owned)),
        _ => KeyFrom::Nowhere,
    }
}

/// The checked base URL; None for the demo model, or when there is a problem with it.
fn base_url_of(whole: &Field<'_>, given: &Given<'_>, provider: &Provider, env: Env<'_>) -> Option<BaseUrl> {
    let (given, plain_http) = (&given.base_url, given.plain_http);
    if given.is_broken() || provider.wire == Wire::Demo {
        return None;
    }
    let text = match provider.address(env) {
        Ok(Some(text)) => text,
        Ok(None) => {
            let help = format!("the spec `{}` has no address of its own", provider.spec_name);
            given.problem(whole, "is missing", Some(help));
            return None;
        }
        Err(gaps) => {
            for gap in gaps {
                let what = if gap.is_unfit { "cannot be part of an address" } else { "is missing" };
                whole.problem_of_key(format!("endpoint.params.{} {what}", gap.name), Some(gap.help()));
            }
            return None;
        }
    };
    address::base_url(&text, plain_http).map_err(|message| given.problem(whole, message, None)).ok()
}

/// Names of files have a slash or an ending; names of specs have neither.
pub(super) fn is_file(name: &str) -> bool {
    name.contains(['/', '\\']) || [".yaml", ".yml"].iter().any(|ending| name.to_ascii_lowercase().ends_with(ending))
}

/// What the list of models shows when the file does not say.
pub(super) fn listed(provider: &Provider) -> Vec<String> {
    let default_model = provider.default_model.clone().into_iter().collect();
    if provider.models.is_empty() { default_model } else { provider.models.clone() }
}

/// What an entry says that can only be judged once its spec is known.
pub(super) struct Given<'r> {
    base_url: GivenText<'r>,
    base_urls: Option<Field<'r>>,
    key: GivenText<'r>,
    keys: Option<Field<'r>>,
    plain_http: bool,
}

/// A string that may be absent, blank (the same), or impossible to read (already reported).
struct GivenText<'r> {
    /// From the entry on.
    path: &'static str,
    field: Option<Field<'r>>,
    text: Option<String>,
    read: bool,
}

impl Given<'_> {
    /// Whether there is a word on a single address.
    pub(super) fn has_base_url(&self) -> bool {
        self.base_url.field.is_some() && (self.base_url.text.is_some() || self.base_url.is_broken())
    }

    pub(super) const fn plain_http(&self) -> bool {
        self.plain_http
    }
}

impl<'r> GivenText<'r> {
    fn of(keys: &mut Keys<'r>, key: &Key<ProviderConfig, Special>) -> Self {
        let field = keys.field(key);
        let text = field.as_ref().map_or(Some(String::new()), Field::string);
        let read = text.is_some();
        let text = text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        Self { path: key.path.strip_prefix(table::PREFIX).unwrap_or(key.path), field, text, read }
    }

    fn is_broken(&self) -> bool {
        !self.read
    }

    fn problem(&self, whole: &Field<'_>, message: &str, help: Option<String>) {
        match &self.field {
            Some(field) => field.problem(message, help),
            None => whole.problem_of_key(format!("{} {message}", self.path), help),
        }
    }
}

/// Whether a header may carry it.
pub(super) fn can_be_sent(text: &str) -> bool {
    HeaderValue::from_str(text).is_ok()
}

pub(super) const UNSENDABLE: &str = "holds a line break or another character that cannot be sent in a header";

/// Several keys, used in turn.
fn api_keys(field: &Field<'_>) -> Option<Vec<Secret>> {
    const MOST: usize = 64;
    let fields = field.list()?;
    if fields.is_empty() || fields.len() > MOST {
        field.problem(format!("expected from 1 to {MOST} keys"), None);
    }
    let key = |field: &Field<'_>| {
        let key = field.text()?;
        if !can_be_sent(&key) {
            field.problem(UNSENDABLE, None);
        }
        Some(Secret::new(key))
    };
    Some(fields.iter().filter_map(key).collect())
}

fn timeouts(keys: &mut Keys<'_>) -> Timeouts {
    let older = keys.find(&table::TIMEOUT);
    let first_byte = keys.find(&table::FIRST_BYTE).or(older);
    let whole = keys.find(&table::WHOLE).or(first_byte);
    Timeouts {
        connect: keys.get(&table::CONNECT),
        first_byte: first_byte.unwrap_or_else(|| table::FIRST_BYTE.kind.preset()),
        whole: whole.unwrap_or(table::WHOLE.kind.0.default),
        idle: keys.get(&table::IDLE),
        total: keys.get(&table::TOTAL),
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: table::CONNECT.kind.preset(),
            first_byte: table::FIRST_BYTE.kind.preset(),
            whole: table::WHOLE.kind.0.default,
            idle: table::IDLE.kind.preset(),
            total: table::TOTAL.kind.preset(),
        }
    }
}

/// Headers that belong to the connection or the body, not to the user.
const RESERVED: &[&str] =
    &["accept-encoding", "connection", "content-length", "content-type", "host", "te", "transfer-encoding", "upgrade"];

/// Whether a header of this name, in small letters, may be in a configuration.
pub(super) fn may_be_set(name: &str) -> bool {
    HeaderName::from_bytes(name.as_bytes()).is_ok() && !RESERVED.contains(&name)
}

pub(super) fn headers(field: &Field<'_>) -> Option<Vec<(String, Secret)>> {
    let header = |(name, field): (String, Field<'_>)| {
        let name = name.to_ascii_lowercase();
        if !may_be_set(&name) {
            field.problem("this header cannot be set", None);
            return None;
        }
        // A variable that was read from a file often ends with a line break.
        let value = field.string()?.trim().to_owned();
        if !can_be_sent(&value) {
            field.problem(UNSENDABLE, None);
            return None;
        }
        Some((name, Secret::new(value)))
    };
    Some(field.entries()?.into_iter().filter_map(header).collect())
}
