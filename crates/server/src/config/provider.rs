//! The `providers` section: each entry is a spec plus what is particular to this installation.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use providers::yaml::{Document, Field, Reader, Section};
use providers::{Auth, Endpoint, Library, Provider, Wire, resolve_inline, resolve_named};

use super::address::{self, BaseUrl};
use super::{KeyFrom, Origin, ProviderConfig, Secret, Sources, Timeouts, locate, transport};

/// A day: no wait is longer.
const MAX_MS: u64 = 86_400_000;

/// What the file says about providers.
#[derive(Debug, Default)]
pub(super) struct Providers {
    /// Also those with mistakes, so that one mistake is not reported twice.
    pub(super) names: Vec<String>,
    pub(super) usable: Vec<ProviderConfig>,
}

pub(super) fn read(reader: &Reader<'_>, sources: &Sources<'_>, origin: &Origin, root: &mut Section<'_>) -> Providers {
    let mut providers = Providers::default();
    for (name, field) in root.read("providers", Field::entries).unwrap_or_default() {
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
    fn read(&self, mut section: Section<'_>) -> Option<ProviderConfig> {
        let spec = section.field("spec");
        let provider = self.spec(&section, spec.as_ref());
        let (base_url, endpoint, plain_http) = endpoint(&mut section);
        let mut credentials = section.section("credentials");
        let key = Given::of(&mut credentials, "credentials", "api_key");
        let more = credentials.field("api_keys");
        let more_keys = more.as_ref().and_then(api_keys);
        let more = more.map(|field| format!("{}:{}", field.file(), field.position().line));
        credentials.finish();
        let timeouts = timeouts(&mut section);
        let models = section.field("models");
        let headers = section.read("headers", headers).unwrap_or_default();
        let transport = transport::read(&mut section, self.sources);
        let config = provider.map(|provider| {
            let provider = provider.entered(section.as_field(), endpoint, models.as_ref());
            let variable = provider.key_env.as_deref();
            let base_url = base_url_of(&section, &base_url, &provider, plain_http);
            let forwarded = transport.proxy.is_some() && base_url.as_ref().is_some_and(BaseUrl::is_plain);
            if transport.http2 && forwarded {
                section.problem("`http2` cannot be had through a proxy that forwards plain http", None);
            }
            let listed_keys = more_keys.is_some();
            let needed =
                !listed_keys && provider.auth != Auth::None && base_url.as_ref().is_some_and(|base| !base.private);
            let variable = variable.filter(|_| !listed_keys);
            let first = self.key(&section, &key, variable, needed);
            let key_from = match &more {
                Some(place) if first.is_none() => KeyFrom::File(place.clone()),
                _ => key_from(&key, variable, first.is_some(), needed),
            };
            ProviderConfig {
                name: self.name.to_owned(),
                key_from,
                api_keys: first.into_iter().chain(more_keys.unwrap_or_default()).collect(),
                base_url: base_url.map(|base| base.url).unwrap_or_default(),
                timeouts,
                models: listed(&provider),
                headers,
                transport,
                provider,
            }
        });
        section.finish();
        config
    }

    fn spec(&self, section: &Section<'_>, spec: Option<&Field<'_>>) -> Option<Provider> {
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
                None => section.problem(format!("needs a `spec`, because none is called `{name}`"), known()),
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

    fn key(&self, section: &Section<'_>, given: &Given<'_>, variable: Option<&str>, needed: bool) -> Option<Secret> {
        if given.is_broken() {
            return None;
        }
        let key = given.text.clone().or_else(|| (self.sources.env)(variable?));
        let key = key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
        if key.as_deref().is_some_and(|key| !can_be_sent(key)) {
            let from = variable.filter(|_| given.text.is_none());
            given.problem(section, UNSENDABLE, from.map(|name| format!("it is from the environment variable {name}")));
        }
        if needed && key.is_none() && !self.sources.overrides.without_keys {
            let help = variable.map(|name| format!("set it here, or set the environment variable {name}"));
            given.problem(section, "is missing", help);
        }
        key.map(Secret::new)
    }
}

fn key_from(given: &Given<'_>, variable: Option<&str>, is_there: bool, needed: bool) -> KeyFrom {
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
fn base_url_of(section: &Section<'_>, given: &Given<'_>, provider: &Provider, plain_http: bool) -> Option<BaseUrl> {
    if given.is_broken() || provider.wire == Wire::Demo {
        return None;
    }
    let Some(text) = given.text.as_ref().or(provider.base_url.as_ref()) else {
        let help = format!("the spec `{}` has no address of its own", provider.spec_name);
        given.problem(section, "is missing", Some(help));
        return None;
    };
    address::base_url(text, plain_http).map_err(|message| given.problem(section, message, None)).ok()
}

/// Names of files have a slash or an ending; names of specs have neither.
fn is_file(name: &str) -> bool {
    name.contains(['/', '\\']) || [".yaml", ".yml"].iter().any(|ending| name.to_ascii_lowercase().ends_with(ending))
}

/// Where requests go: the base URL with its place, for it has to be checked, and what else the entry says.
fn endpoint<'r>(section: &mut Section<'r>) -> (Given<'r>, Endpoint, bool) {
    let mut inner = section.section("endpoint");
    let base_url = Given::of(&mut inner, "endpoint", "base_url");
    let endpoint = Endpoint { base_url: base_url.text.clone(), ..Endpoint::read(&mut inner) };
    let plain_http = inner.read("allow_plain_http", Field::boolean).unwrap_or(false);
    inner.finish();
    (base_url, endpoint, plain_http)
}

/// What the list of models shows when the file does not say.
pub(super) fn listed(provider: &Provider) -> Vec<String> {
    let default_model = provider.default_model.clone().into_iter().collect();
    if provider.models.is_empty() { default_model } else { provider.models.clone() }
}

/// A string that may be absent, blank (the same), or impossible to read (already reported).
struct Given<'r> {
    path: String,
    field: Option<Field<'r>>,
    text: Option<String>,
    read: bool,
}

impl<'r> Given<'r> {
    /// A key of an open section, which has this name.
    fn of(inner: &mut Section<'r>, section: &str, key: &'static str) -> Self {
        let field = inner.field(key);
        let text = field.as_ref().map_or(Some(String::new()), Field::string);
        let read = text.is_some();
        let text = text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        Self { path: format!("{section}.{key}"), field, text, read }
    }

    fn is_broken(&self) -> bool {
        !self.read
    }

    fn problem(&self, parent: &Section<'_>, message: &str, help: Option<String>) {
        match &self.field {
            Some(field) => field.problem(message, help),
            None => parent.problem(format!("{} {message}", self.path), help),
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

fn timeouts(section: &mut Section<'_>) -> Timeouts {
    let milliseconds = |field: &Field<'_>| field.integer(1..=MAX_MS).map(Duration::from_millis);
    let older = section.read("timeout_ms", milliseconds);
    let mut own = section.section("timeouts");
    let default = Timeouts::default();
    let first_byte = own.read("first_byte_ms", milliseconds).or(older);
    let timeouts = Timeouts {
        connect: own.read("connect_ms", milliseconds).unwrap_or(default.connect),
        first_byte: first_byte.unwrap_or(default.first_byte),
        whole: own.read("whole_ms", milliseconds).or(first_byte).unwrap_or(default.whole),
        idle: own.read("idle_ms", milliseconds).unwrap_or(default.idle),
        total: own.read("total_ms", milliseconds).unwrap_or(default.total),
    };
    own.finish();
    timeouts
}

/// Headers that belong to the connection or the body, not to the user.
const RESERVED: &[&str] =
    &["accept-encoding", "connection", "content-length", "content-type", "host", "te", "transfer-encoding", "upgrade"];

fn headers(field: &Field<'_>) -> Option<Vec<(String, Secret)>> {
    let header = |(name, field): (String, Field<'_>)| {
        let name = name.to_ascii_lowercase();
        if HeaderName::from_bytes(name.as_bytes()).is_err() || RESERVED.contains(&name.as_str()) {
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
