//! `tools.web_search`: the services that are asked when a model searches the web, and what it may open. Also the section
//! `web_search` of older files, which says the same in other words.
//!
//! A service is asked only because the file says so: that a key is in the environment is no reason to spend it.

use std::time::Duration;

use providers::yaml::{Document, Field, Reader, Section};
use store::dollars;
use web::search::{Engine, SearchSpec};

use super::key::Keys;
use super::units::{self, Bare};
use super::{Origin, ProviderConfig, Purpose, Secret, Sources, address, locate, print, provider, table};

const TIMEOUT: Duration = Duration::from_secs(10);
/// More would be asked one after the other for too long.
const MOST_SERVICES: usize = 8;
const INLINE: &str = "inline";

/// How the web is searched for models that cannot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebSearchConfig {
    /// The next one is asked where one fails. None: the tool is left out.
    pub services: Vec<SearchService>,
    /// Whether pages may be opened.
    pub pages: bool,
    /// Whether only addresses may be opened that the conversation has shown.
    pub only_shown: bool,
    /// How often one response may search; none: as often as it has rounds.
    pub max_calls: Option<u32>,
    pub unavailable: SearchUnavailable,
}

/// What is done about the tool where nobody searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchUnavailable {
    /// The model is not offered it, and a note says so.
    #[default]
    LeaveOut,
    /// The request is refused.
    Fail,
    /// The model is offered a function, whose calls the client answers.
    ClientCall,
}

impl From<SearchUnavailable> for bridge::Unsearched {
    fn from(unavailable: SearchUnavailable) -> Self {
        match unavailable {
            SearchUnavailable::LeaveOut => Self::LeaveOut,
            SearchUnavailable::Fail => Self::Refuse,
            SearchUnavailable::ClientCall => Self::ClientCall,
        }
    }
}

impl Default for WebSearchConfig {
    fn default() -> Self {
        Self {
            services: Vec::new(),
            pages: true,
            only_shown: true,
            max_calls: None,
            unavailable: SearchUnavailable::default(),
        }
    }
}

/// A service, ready to be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchService {
    pub spec: SearchSpec,
    /// Empty for one that asks nobody.
    pub base_url: String,
    pub api_key: Option<Secret>,
    pub timeout: Duration,
    /// Where the client does not say.
    pub country: Option<String>,
    pub language: Option<String>,
    /// What a question costs, in nanodollars, if anybody says.
    pub price_per_call: Option<u64>,
}

impl SearchService {
    /// One that asks nobody, and for which nobody pays.
    fn new(spec: SearchSpec, timeout: Duration) -> Self {
        let (base_url, api_key) = (String::new(), None);
        Self { spec, base_url, api_key, timeout, country: None, language: None, price_per_call: None }
    }
}

pub(super) fn read(
    reader: &Reader<'_>,
    sources: &Sources<'_>,
    origin: &Origin,
    keys: &mut Keys<'_>,
    providers: &[ProviderConfig],
) -> WebSearchConfig {
    let older = older(sources, keys, providers);
    let Some(field) = keys.field(&table::TOOLS_WEB_SEARCH) else { return older };
    let entries = if field.is_list() { field.list().unwrap_or_default() } else { vec![field.clone()] };
    if field.is_list() && (entries.is_empty() || entries.len() > MOST_SERVICES) {
        field.problem(format!("expected from 1 to {MOST_SERVICES} services"), None);
    }
    let mut config = WebSearchConfig { unavailable: older.unavailable, ..WebSearchConfig::default() };
    for (index, field) in entries.iter().enumerate() {
        let entry = Entry { reader, sources, origin, is_first: index == 0 };
        let service = entry.read(field, &mut config);
        config.services.extend(service);
    }
    config
}

struct Entry<'a> {
    reader: &'a Reader<'a>,
    sources: &'a Sources<'a>,
    origin: &'a Origin,
    is_first: bool,
}

impl Entry<'_> {
    fn read(&self, field: &Field<'_>, config: &mut WebSearchConfig) -> Option<SearchService> {
        // The name of a spec alone.
        if !field.is_mapping() {
            let spec = self.spec(field)?;
            return self.service(spec, field, None, None, false);
        }
        let mut section = field.clone().section()?;
        let spec = section.field("spec");
        if spec.is_none() {
            let names: Vec<_> = SearchSpec::names().collect();
            section.problem("needs `spec`", Some(format!("specs: {}", names.join(", "))));
        }
        let mut endpoint = section.section("endpoint");
        let base_url = endpoint.field("base_url");
        let plain_http = endpoint.read("allow_plain_http", Field::boolean).unwrap_or(false);
        endpoint.finish();
        let mut credentials = section.section("credentials");
        let key = credentials.field("api_key");
        credentials.finish();
        let timeout = section.read("timeout", |field| {
            units::duration(field, Bare::Seconds, &(Duration::from_millis(100)..=Duration::from_mins(2)))
        });
        let country = section.read("country", |field| code(field, 2..=2, "a country such as `DE`"));
        let language = section.read("language", |field| code(field, 2..=8, "a language such as `de`"));
        let price = section.read("price_per_call", providers::price_per_call);
        self.whole(&mut section, config);
        section.finish();
        let spec = self.spec(&spec?)?;
        let service = self.service(spec, field, base_url.as_ref(), key.as_ref(), plain_http)?;
        let price_per_call = price.or(service.price_per_call);
        Some(SearchService { timeout: timeout.unwrap_or(TIMEOUT), country, language, price_per_call, ..service })
    }

    /// What is said of all services together.
    fn whole(&self, section: &mut Section<'_>, config: &mut WebSearchConfig) {
        let (pages, only_shown, calls) =
            (section.field("pages"), section.field("only_shown"), section.field("max_calls"));
        if !self.is_first {
            for field in [pages, only_shown, calls].into_iter().flatten() {
                field.problem_of_key("is for all services: say it in the first entry", None);
            }
            return;
        }
        config.pages = pages.and_then(|field| field.boolean()).unwrap_or(config.pages);
        config.only_shown = only_shown.and_then(|field| field.boolean()).unwrap_or(config.only_shown);
        let calls = calls.and_then(|field| field.integer(1..=1000)).and_then(|calls| u32::try_from(calls).ok());
        config.max_calls = calls.or(config.max_calls);
    }

    fn spec(&self, field: &Field<'_>) -> Option<SearchSpec> {
        if field.is_mapping() {
            return SearchSpec::inline(INLINE, field, self.sources.env);
        }
        let name = field.text()?;
        if provider::is_file(&name) {
            return self.file(field, &name);
        }
        let found = SearchSpec::named(&name, self.sources.env);
        let found = found.map_err(|problems| problems.0.into_iter().for_each(|problem| self.reader.report(problem)));
        let found = found.ok()?;
        if found.is_none() {
            let names: Vec<_> = SearchSpec::names().collect();
            let help = format!("specs: {}; or the path of a file", names.join(", "));
            field.problem(format!("there is no search spec {}", field.found()), Some(help));
        }
        found
    }

    /// A spec in a file of its own.
    fn file(&self, field: &Field<'_>, name: &str) -> Option<SearchSpec> {
        let folder = match self.origin {
            Origin::File(path) => path.parent(),
            Origin::Defaults => None,
        };
        let path = locate::expand_from(name, folder.unwrap_or(self.sources.cwd), self.sources);
        let document = match locate::read(&path, name) {
            Ok(Some(text)) => Document::parse(name, &text),
            Ok(None) => {
                field.problem("there is no such file", Some(format!("looked for {}", path.display())));
                return None;
            }
            Err(problem) => Err(problem),
        };
        let document = document.map_err(|problem| self.reader.report(problem)).ok()?;
        let reader = Reader::new(&document, self.sources.env);
        let spec = SearchSpec::inline(name, &reader.root_field(), self.sources.env);
        for problem in reader.finish() {
            self.reader.report(problem);
        }
        spec
    }

    fn service(
        &self,
        spec: SearchSpec,
        whole: &Field<'_>,
        base_url: Option<&Field<'_>>,
        key: Option<&Field<'_>>,
        plain_http: bool,
    ) -> Option<SearchService> {
        let price_per_call = own_price(&spec, base_url.is_some());
        if spec.engine == Engine::Mock {
            return Some(SearchService { price_per_call, ..SearchService::new(spec, TIMEOUT) });
        }
        let at = base_url.unwrap_or(whole);
        let text = match base_url {
            Some(field) => field.text()?,
            None => match &spec.base_url {
                Some(text) => text.clone(),
                None => {
                    let help = format!("the search spec `{}` has no address of its own", spec.name);
                    whole.problem_of_key("endpoint.base_url is missing", Some(help));
                    return None;
                }
            },
        };
        let base = address::base_url(&text, plain_http).map_err(|message| at.problem(message, None)).ok()?;
        let given = key.and_then(Field::string).or_else(|| (self.sources.env)(spec.key_env.as_deref()?));
        let given = given.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
        if given.as_deref().is_some_and(|key| !provider::can_be_sent(key)) {
            key.unwrap_or(whole).problem(provider::UNSENDABLE, None);
        }
        if given.is_none() && spec.wants_key() && !base.private && self.sources.overrides.purpose == Purpose::Serve {
            let help = spec.key_env.as_ref().map(|name| format!("set it, or set the environment variable {name}"));
            key.unwrap_or(whole).problem_of_key("credentials.api_key is missing", help);
        }
        let api_key = given.map(Secret::new);
        Some(SearchService { base_url: base.url, api_key, price_per_call, ..SearchService::new(spec, TIMEOUT) })
    }
}

/// The spec's price is that of the spec's own address.
fn own_price(spec: &SearchSpec, goes_elsewhere: bool) -> Option<u64> {
    spec.price_per_call.filter(|_| !goes_elsewhere)
}

fn code(field: &Field<'_>, length: std::ops::RangeInclusive<usize>, expected: &str) -> Option<String> {
    let text = field.text()?;
    let fits = length.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
    if fits { Some(text) } else { field.expected(expected) }
}

/// The section `web_search`. A provider's own search was preferred in every mode, and is.
fn older(sources: &Sources<'_>, keys: &mut Keys<'_>, providers: &[ProviderConfig]) -> WebSearchConfig {
    let is_on = keys.find(&table::WEB_SEARCH_ENABLED).unwrap_or(true)
        && matches!(keys.find(&table::WEB_SEARCH_MODE), None | Some("auto" | "godex_managed"));
    let timeout = keys.find(&table::WEB_SEARCH_TIMEOUT).map_or(TIMEOUT, Duration::from_millis);
    let max_calls = keys.find(&table::WEB_SEARCH_MAX_ITERATIONS);
    let max_calls = max_calls.map(|calls| u32::try_from(calls).unwrap_or(u32::MAX));
    let unavailable = match keys.find(&table::WEB_SEARCH_ON_UNAVAILABLE) {
        Some("fail") => SearchUnavailable::Fail,
        Some("client_tool_call") => SearchUnavailable::ClientCall,
        _ => SearchUnavailable::LeaveOut,
    };
    let service = keys.find(&table::WEB_SEARCH_PROVIDER).filter(|_| is_on);
    let service = service.and_then(|name| older_service(name, timeout, sources, providers));
    let pages = WebSearchConfig::default().pages;
    WebSearchConfig { services: service.into_iter().collect(), pages, only_shown: true, max_calls, unavailable }
}

/// It is searched with the key of the provider of the same name; without one, nobody can.
fn older_service(
    name: &str,
    timeout: Duration,
    sources: &Sources<'_>,
    providers: &[ProviderConfig],
) -> Option<SearchService> {
    let spec = SearchSpec::named(name, sources.env).ok()??;
    let price_per_call = spec.price_per_call;
    if spec.engine == Engine::Mock {
        return Some(SearchService { price_per_call, ..SearchService::new(spec, timeout) });
    }
    let provider = providers.iter().find(|provider| provider.name == name)?;
    let api_key = Some(provider.api_keys.first()?.clone());
    // The search is not at the address of the coding plan.
    let base_url = provider.base_url.replace("/api/coding/paas/", "/api/paas/");
    Some(SearchService { base_url, api_key, price_per_call, ..SearchService::new(spec, timeout) })
}

/// As a comment: without its key, which is not printed, a service cannot be read again.
pub(super) fn print(config: &WebSearchConfig) -> Option<String> {
    let line = |(index, service): (usize, &SearchService)| {
        let key = if service.api_key.is_some() { ", credentials: <redacted>" } else { "" };
        let base = match service.base_url.as_str() {
            "" => String::new(),
            base => format!(", endpoint: {{base_url: {}}}", print::quote(base)),
        };
        let code = |name: &str, code: &Option<String>| {
            code.as_ref().map(|code| format!(", {name}: {}", print::quote(code))).unwrap_or_default()
        };
        let calls = config.max_calls.map(|calls| format!(", max_calls: {calls}")).unwrap_or_default();
        let price = service.price_per_call.map(|price| format!(", price_per_call: {}", dollars(price)));
        let price = price.unwrap_or_default();
        let whole = format!(", pages: {}, only_shown: {}{calls}", config.pages, config.only_shown);
        format!(
            "\n# - {{spec: {}{base}{key}, timeout: {}{}{}{price}{}}}",
            print::quote(&service.spec.name),
            units::print_duration(service.timeout),
            code("country", &service.country),
            code("language", &service.language),
            if index == 0 { whole } else { String::new() },
        )
    };
    (!config.services.is_empty()).then(|| config.services.iter().enumerate().map(line).collect())
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
