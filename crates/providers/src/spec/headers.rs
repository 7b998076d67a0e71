//! The `headers` of a spec: what goes with every request to a provider, beside its key.

use super::layer::Source;
use super::values::Yaml;
use crate::yaml::Field;

/// Names as they are written, and what each header says.
pub(crate) type Headers = Vec<(String, HeaderText)>;

/// What a header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderText {
    /// The same with every request.
    Fixed(String),
    /// Something of the request; without it, there is no such header.
    From(HeaderSource),
}

bridge::vocabulary! {
    /// What of a request a header says.
    pub enum HeaderSource {
        /// What the provider gets as the cache key: the same for all requests of a session.
        CacheKey = "cache_key",
    }
}

/// Those that belong to the connection, the body or the key.
const RESERVED: &[&str] = &[
    "accept-encoding",
    "api-key",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "host",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// `{NAME: TEXT}`, or `{NAME: {from: cache_key}}`.
pub(super) fn read(field: &Field<'_>) -> Option<Headers> {
    Some(field.entries()?.into_iter().filter_map(header).collect())
}

fn header((name, field): (String, Field<'_>)) -> Option<(String, HeaderText)> {
    // A token, as HTTP has it.
    let fits = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(fits) || RESERVED.contains(&&*name.to_ascii_lowercase()) {
        field.problem_of_key("this header cannot be set", None);
        return None;
    }
    if field.is_mapping() {
        let mut section = field.clone().section()?;
        let source = section.field("from");
        if source.is_none() {
            section.problem("expected a text, or `{from: cache_key}`", None);
        }
        section.finish();
        return Some((name, HeaderText::From(source?.choice(HeaderSource::ALL, HeaderSource::name)?)));
    }
    let text = field.text()?.trim().to_owned();
    if !text.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
        field.problem("it has characters that no header may carry", None);
        return None;
    }
    Some((name, HeaderText::Fixed(text)))
}

impl Yaml for HeaderText {
    fn yaml(&self) -> String {
        match self {
            Self::Fixed(text) => text.yaml(),
            Self::From(source) => format!("{{from: {}}}", source.name()),
        }
    }

    fn shown(&self, path: &str, from: Source<'_>) -> String {
        match self {
            Self::Fixed(text) => text.shown(path, from),
            Self::From(_) => self.yaml(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::{Document, Problems, Reader};
    use crate::{Library, Provider, resolve_inline};

    const SECRET: &str = "hush-hush";

    fn inline(text: &str) -> (Provider, String) {
        let env = |name: &str| (name == "SECRET").then(|| SECRET.to_owned());
        let document = Document::parse("mine.yaml", text).unwrap();
        let reader = Reader::new(&document, &env);
        let provider = resolve_inline(Library::BUILTIN, &reader.root_field(), &env).unwrap();
        (provider, Problems(reader.finish()).to_string())
    }

    #[test]
    fn headers_are_fixed_or_from_the_request() {
        let text = "headers:\n  Editor-Version: one/1.0\n  x-session: {from: cache_key}\n  x-tenant: 't ${SECRET}'\n";
        let (provider, problems) = inline(text);
        assert_eq!(problems, "");
        let expected: Headers = vec![
            ("Editor-Version".to_owned(), HeaderText::Fixed("one/1.0".to_owned())),
            ("x-session".to_owned(), HeaderText::From(HeaderSource::CacheKey)),
            ("x-tenant".to_owned(), HeaderText::Fixed(format!("t {SECRET}"))),
        ];
        assert_eq!(provider.headers, expected);
        assert_eq!(provider.secrets(), [format!("t {SECRET}")]);
        let shown = provider.show(None);
        let line =
            "headers: {Editor-Version: one/1.0, x-session: {from: cache_key}, x-tenant: 't redacted'}  # mine.yaml:1\n";
        assert!(shown.contains(line) && !shown.contains(SECRET), "{shown}");
        let written = provider.user_spec_as_written().unwrap().join("\n");
        assert_eq!(inline(&written).0.headers, expected);
        // They are replaced as a whole.
        let (provider, _) = inline("extends: fireworks\nheaders: {}\n");
        assert_eq!(provider.headers, []);
    }

    #[test]
    fn mistakes_in_headers_are_found() {
        let (provider, problems) = inline(
            "headers:\n  Authorization: x\n  'a b': x\n  a: {form: cache_key}\n  b: {from: model}\n  c: \"x\\ny\"\n  d: []\n",
        );
        assert_eq!(provider.headers, []);
        for expected in [
            "mine.yaml:2:3: headers.Authorization: this header cannot be set",
            "headers.a b: this header cannot be set",
            "headers.a: expected a text, or `{from: cache_key}`",
            "headers.a: unknown key `form`; did you mean `from`?",
            "headers.b.from: expected one of `cache_key`, found a value",
            "headers.c: it has characters that no header may carry",
            "headers.d: expected a string, found a list",
        ] {
            assert!(problems.contains(expected), "{expected}\n{problems}");
        }
    }
}
