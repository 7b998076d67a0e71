//! A spec of a search service, read from YAML. A spec of the user's may lie over a built-in one (`extends`): what it says
//! wins, key by key.

use std::fmt;

use providers::yaml::{Document, Env, Field, Problems, Reader, Section};

use super::builtin::SPECS;
use super::request::ContextSize;
use super::template;

/// How many results a service may be asked for, whatever a spec says.
const MOST_RESULTS: u64 = 100;
/// How many domains a query may name in its text.
const MOST_SITES: usize = 10;

/// How a search service is asked, and how its answer reads.
#[derive(Clone, PartialEq, Eq)]
pub struct SearchSpec {
    /// That of a built-in one, a file's, or `inline`.
    pub name: String,
    pub engine: Engine,
    /// None: whoever uses it says where it is.
    pub base_url: Option<String>,
    /// The variable of the environment that holds the key.
    pub key_env: Option<String>,
    pub auth: Auth,
    /// How many results it gives at most.
    pub most: usize,
    pub counts: Counts,
    /// What one question to it costs, in nanodollars, if that is known.
    pub price_per_call: Option<u64>,
    pub(super) path: String,
    pub(super) posts: bool,
    pub(super) headers: Vec<(String, String)>,
    pub(super) query: Vec<(String, String)>,
    pub(super) body: Option<String>,
    pub(super) domains: Domains,
    pub(super) results: Vec<String>,
    pub(super) title: Vec<Path>,
    pub(super) url: Vec<Path>,
    pub(super) text: Vec<Path>,
    pub(super) date: Vec<Path>,
}

/// The way to a member: one name for each level.
pub(super) type Path = Vec<String>;

/// Headers may hold what was in a variable.
impl fmt::Debug for SearchSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchSpec").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Who searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Engine {
    #[default]
    Http,
    /// Nobody: results are made up.
    Mock,
}

impl Engine {
    const ALL: &'static [Self] = &[Self::Http, Self::Mock];

    const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Mock => "mock",
        }
    }
}

/// Where a key goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Auth {
    #[default]
    None,
    Header {
        name: String,
        prefix: String,
    },
    Query {
        name: String,
    },
}

/// How a service is told to search in some domains only. What it finds elsewhere is left out in any case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Domains {
    /// Not at all.
    #[default]
    None,
    /// By `site:` in the query.
    SiteOperator,
    /// By a list.
    Field { name: String, most: usize },
}

/// How many results are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub low: usize,
    pub medium: usize,
    pub high: usize,
}

impl Default for Counts {
    fn default() -> Self {
        Self { low: 3, medium: 5, high: 10 }
    }
}

impl Counts {
    pub const fn of(self, size: ContextSize) -> usize {
        match size {
            ContextSize::Low => self.low,
            ContextSize::Medium => self.medium,
            ContextSize::High => self.high,
        }
    }
}

impl SearchSpec {
    /// The built-in ones.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SPECS.iter().map(|(name, _)| *name)
    }

    /// A built-in one; none where there is none of that name.
    ///
    /// # Errors
    /// Mistakes in its text, of which there are none.
    pub fn named(name: &str, env: Env<'_>) -> Result<Option<Self>, Problems> {
        let Some((name, text)) = SPECS.iter().find(|(known, _)| *known == name) else { return Ok(None) };
        let document = Document::parse(&format!("specs/search/{name}.yaml"), text)?;
        let reader = Reader::new(&document, env);
        let layer = Layer::read(reader.root());
        let field = reader.root_field();
        let spec = layer.spec(name, &field);
        let problems = reader.finish();
        if problems.is_empty() { Ok(spec) } else { Err(Problems(problems)) }
    }

    /// A user's own, in the configuration or as a file. Its mistakes go to the field's reader.
    pub fn inline(name: &str, field: &Field<'_>, env: Env<'_>) -> Option<Self> {
        let mut section = field.clone().section()?;
        let extends = section.field("extends");
        let layer = Layer::read(section);
        let layer = match extends {
            None => layer,
            Some(extends) => {
                let below = extends.text()?;
                let Some((_, text)) = SPECS.iter().find(|(known, _)| *known == below) else {
                    let names: Vec<_> = Self::names().collect();
                    let help = format!("specs: {}", names.join(", "));
                    extends.problem(format!("there is no search spec {}", extends.found()), Some(help));
                    return None;
                };
                let document = Document::parse(&format!("specs/search/{below}.yaml"), text).ok()?;
                let reader = Reader::new(&document, env);
                layer.over(Layer::read(reader.root()))
            }
        };
        layer.spec(name, field)
    }

    /// Whether it wants a key.
    pub fn wants_key(&self) -> bool {
        self.auth != Auth::None
    }
}

/// What one spec says.
#[derive(Default)]
struct Layer {
    engine: Option<Engine>,
    base_url: Option<String>,
    path: Option<String>,
    posts: Option<bool>,
    key_env: Option<String>,
    auth: Option<Auth>,
    headers: Option<Vec<(String, String)>>,
    query: Option<Vec<(String, String)>>,
    body: Option<String>,
    domains: Option<Domains>,
    most: Option<usize>,
    counts: Option<Counts>,
    price_per_call: Option<u64>,
    results: Option<Vec<String>>,
    title: Option<Vec<Path>>,
    url: Option<Vec<Path>>,
    text: Option<Vec<Path>>,
    date: Option<Vec<Path>>,
}

impl Layer {
    fn read(mut section: Section<'_>) -> Self {
        // Whoever lies over another has looked at it.
        let _ = section.field("extends");
        let mut endpoint = section.section("endpoint");
        let mut fields = section.section("fields");
        let layer = Self {
            engine: section.read("engine", |field| field.choice(Engine::ALL, Engine::name)),
            base_url: endpoint.read("base_url", Field::text),
            path: section.read("path", path),
            posts: section
                .read("method", |field| field.choice(&[false, true], |posts| if posts { "POST" } else { "GET" })),
            key_env: section.read("key_env", Field::text),
            auth: section.read("auth", auth),
            headers: section.read("headers", headers),
            query: section.read("query", texts),
            body: section.read("body", body),
            domains: section.read("domains", domains),
            most: section.read("most", |field| count(field, MOST_RESULTS)),
            counts: section.read("counts", counts),
            price_per_call: section.read("price_per_call", providers::price_per_call),
            results: section.read("results", |field| Some(steps(&field.text()?))),
            title: fields.read("title", paths),
            url: fields.read("url", paths),
            text: fields.read("text", paths),
            date: fields.read("date", paths),
        };
        endpoint.finish();
        fields.finish();
        section.finish();
        layer
    }

    fn over(self, below: Self) -> Self {
        Self {
            engine: self.engine.or(below.engine),
            base_url: self.base_url.or(below.base_url),
            path: self.path.or(below.path),
            posts: self.posts.or(below.posts),
            key_env: self.key_env.or(below.key_env),
            auth: self.auth.or(below.auth),
            headers: self.headers.or(below.headers),
            query: self.query.or(below.query),
            body: self.body.or(below.body),
            domains: self.domains.or(below.domains),
            most: self.most.or(below.most),
            counts: self.counts.or(below.counts),
            price_per_call: self.price_per_call.or(below.price_per_call),
            results: self.results.or(below.results),
            title: self.title.or(below.title),
            url: self.url.or(below.url),
            text: self.text.or(below.text),
            date: self.date.or(below.date),
        }
    }

    /// The whole of it; what is missing is reported.
    fn spec(self, name: &str, field: &Field<'_>) -> Option<SearchSpec> {
        let engine = self.engine.unwrap_or_default();
        let lacking = [
            ("results", self.results.is_none(), "the way to the list of results, such as `web.results`"),
            ("fields.url", self.url.is_none(), "where a result has its address"),
            ("query` or `body", self.query.is_none() && self.body.is_none(), "what it is asked with"),
        ];
        let mut whole = true;
        for (key, _, what) in lacking.iter().filter(|(_, lacking, _)| *lacking && engine == Engine::Http) {
            field.problem_of_key(format!("a search spec needs `{key}`: {what}"), None);
            whole = false;
        }
        whole.then(|| SearchSpec {
            name: name.to_owned(),
            engine,
            base_url: self.base_url,
            key_env: self.key_env,
            auth: self.auth.unwrap_or_default(),
            most: self.most.unwrap_or(20),
            counts: self.counts.unwrap_or_default(),
            price_per_call: self.price_per_call,
            path: self.path.unwrap_or_default(),
            posts: self.posts.unwrap_or(false),
            headers: self.headers.unwrap_or_default(),
            query: self.query.unwrap_or_default(),
            body: self.body,
            domains: self.domains.unwrap_or_default(),
            results: self.results.unwrap_or_default(),
            title: self.title.unwrap_or_default(),
            url: self.url.unwrap_or_default(),
            text: self.text.unwrap_or_default(),
            date: self.date.unwrap_or_default(),
        })
    }
}

fn path(field: &Field<'_>) -> Option<String> {
    let path = field.text()?;
    if !path.starts_with('/') || path.contains(['?', '#']) {
        field.problem("expected a path such as `/search`, without a query", None);
        return None;
    }
    Some(path)
}

fn auth(field: &Field<'_>) -> Option<Auth> {
    if !field.is_mapping() {
        return field.choice(&[()], |()| "none").map(|()| Auth::None);
    }
    let mut section = field.clone().section()?;
    let header = section.read("header", header_name);
    let prefix = section.read("prefix", Field::string);
    let query = section.read("query", Field::text);
    section.finish();
    match (header, query) {
        (Some(name), None) => Some(Auth::Header { name, prefix: prefix.unwrap_or_default() }),
        (None, Some(name)) => Some(Auth::Query { name }),
        _ => {
            field.problem("expected `{header: NAME, prefix: TEXT}`, `{query: NAME}` or `none`", None);
            None
        }
    }
}

/// Headers that belong to the connection or the body.
const RESERVED: &[&str] =
    &["accept-encoding", "connection", "content-length", "content-type", "host", "te", "transfer-encoding", "upgrade"];

fn header_name(field: &Field<'_>) -> Option<String> {
    let name = field.text()?;
    is_header(&name).then_some(name).or_else(|| {
        field.problem("this header cannot be set", None);
        None
    })
}

fn is_header(name: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(token) && !RESERVED.contains(&name.to_ascii_lowercase().as_str())
}

fn headers(field: &Field<'_>) -> Option<Vec<(String, String)>> {
    let header = |(name, field): (String, Field<'_>)| {
        let value = field.string()?.trim().to_owned();
        if !is_header(&name) || value.chars().any(char::is_control) {
            field.problem("this header cannot be set", None);
            return None;
        }
        Some((name, value))
    };
    Some(field.entries()?.into_iter().filter_map(header).collect())
}

fn texts(field: &Field<'_>) -> Option<Vec<(String, String)>> {
    let text = |(name, field): (String, Field<'_>)| {
        let text = field.text()?;
        template::check_text(&text).map_err(|message| field.problem(message, None)).ok()?;
        Some((name, text))
    };
    Some(field.entries()?.into_iter().filter_map(text).collect())
}

fn body(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    template::check_body(&text).map_err(|message| field.problem(message, None)).ok()?;
    Some(text)
}

fn domains(field: &Field<'_>) -> Option<Domains> {
    if !field.is_mapping() {
        return field.choice(&[()], |()| "site_operator").map(|()| Domains::SiteOperator);
    }
    let mut section = field.clone().section()?;
    let name = section.read("field", Field::text);
    let most = section.read("most", |field| count(field, 1000));
    if name.is_none() {
        section.problem("needs `field`, or is `site_operator`", None);
    }
    section.finish();
    Some(Domains::Field { name: name?, most: most.unwrap_or(100) })
}

impl Domains {
    /// How many of them a request names.
    pub(super) const fn most(&self) -> usize {
        match self {
            Self::None => usize::MAX,
            Self::SiteOperator => MOST_SITES,
            Self::Field { most, .. } => *most,
        }
    }
}

fn counts(field: &Field<'_>) -> Option<Counts> {
    let mut section = field.clone().section()?;
    let usual = Counts::default();
    let mut read = |key, usual| section.read(key, |field| count(field, MOST_RESULTS)).unwrap_or(usual);
    let counts =
        Counts { low: read("low", usual.low), medium: read("medium", usual.medium), high: read("high", usual.high) };
    section.finish();
    Some(counts)
}

fn count(field: &Field<'_>, most: u64) -> Option<usize> {
    field.integer(1..=most).and_then(|number| usize::try_from(number).ok())
}

/// One way, or several: the first that leads to something.
fn paths(field: &Field<'_>) -> Option<Vec<Path>> {
    let texts = if field.is_list() { field.texts()? } else { vec![field.text()?] };
    Some(texts.iter().map(|text| steps(text)).collect())
}

fn steps(text: &str) -> Path {
    text.split('.').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: &str) -> Option<String> {
        None
    }

    fn inline(text: &str) -> (Option<SearchSpec>, String) {
        let document = Document::parse("mine.yaml", text).unwrap();
        let reader = Reader::new(&document, &none);
        let spec = SearchSpec::inline("mine.yaml", &reader.root_field(), &none);
        (spec, Problems(reader.finish()).to_string())
    }

    #[test]
    fn every_built_in_spec_reads() {
        for name in SearchSpec::names() {
            let spec = SearchSpec::named(name, &none).unwrap_or_else(|problems| panic!("{problems}")).unwrap();
            assert_eq!(spec.name, name);
            assert_eq!(spec.wants_key(), spec.key_env.is_some(), "{name}");
            if let Some(url) = &spec.base_url {
                assert!(url.starts_with("https://") && !url.ends_with('/'), "{name}: {url}");
            }
        }
        assert_eq!(SearchSpec::named("nowhere", &none).unwrap(), None);
    }

    #[test]
    fn a_users_own_lies_over_a_built_in_one() {
        let (spec, problems) =
            inline("extends: brave\nendpoint: {base_url: http://127.0.0.1:1}\nmost: 7\nauth: none\n");
        assert_eq!(problems, "");
        let (spec, brave) = (spec.unwrap(), SearchSpec::named("brave", &none).unwrap().unwrap());
        assert_eq!((spec.name.as_str(), spec.most, &spec.auth), ("mine.yaml", 7, &Auth::None));
        assert_eq!((spec.results, spec.text, spec.query), (brave.results, brave.text, brave.query));
    }

    #[test]
    fn mistakes_are_found_with_their_places() {
        for (text, expected) in [
            ("extends: brvae", "mine.yaml:1:10: extends: there is no search spec `brvae`; specs: searxng, brave"),
            ("path: /s", "mine.yaml:1:1: a search spec needs `results`: "),
            ("extends: brave\npath: search", "mine.yaml:2:7: path: expected a path such as `/search`"),
            ("extends: brave\nmethod: PUT", "mine.yaml:2:9: method: expected one of `GET`, `POST`, found `PUT`"),
            ("extends: brave\nauth: {}", "mine.yaml:2:7: auth: expected `{header: NAME, prefix: TEXT}`"),
            ("extends: brave\nauth: {header: Host}", "auth.header: this header cannot be set"),
            ("extends: brave\nheaders: {\"a b\": c}", "headers.a b: this header cannot be set"),
            ("extends: brave\nquery: {q: $qeury}", "query.q: there is no variable `$qeury`; "),
            ("extends: exa\nbody: 'x'", "body: expected a JSON object in quotes"),
            ("extends: exa\nbody: '{\"q\":\"$nothing\"}'", "body: there is no variable `$nothing`; "),
            ("extends: exa\nbody: '{\"q\":{\"$query\":{}}}'", "body: only `$context_size` chooses from a table"),
            ("extends: exa\ndomains: {most: 3}", "domains: needs `field`, or is `site_operator`"),
            ("extends: exa\nmost: 0", "most: expected a whole number from 1 to 100, found `0`"),
            ("extends: exa\ncounts: {huge: 3}", "counts: unknown key `huge`"),
            ("extends: exa\nfeilds: {url: u}", "unknown key `feilds`; did you mean `fields`?"),
        ] {
            let (_, problems) = inline(text);
            assert!(problems.contains(expected), "{text}: {problems}");
        }
    }
}
