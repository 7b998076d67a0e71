//! Where a provider is: addresses with placeholders, what fills them, and addresses that have names.
//!
//! The environment comes in as a function. What fills a placeholder is checked before it gets into an address: it is
//! a name or a host, never a piece of a URL.

use super::{Layer, Provider};
use crate::yaml::{Env, Field};

/// A placeholder of an address that nothing fills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// As it is in the address: `region`.
    pub name: String,
    /// The variables that could fill it.
    pub variables: Vec<String>,
    /// Something is there, and cannot be part of an address.
    pub is_unfit: bool,
}

impl Gap {
    /// What to do about it.
    pub fn help(&self) -> String {
        let Self { name, variables, is_unfit } = self;
        let said = match variables.as_slice() {
            [] => format!("set `endpoint.params: {{{name}: …}}`"),
            several => {
                format!("set `endpoint.params: {{{name}: …}}`, or the environment variable {}", several.join(" or "))
            }
        };
        if *is_unfit { format!("{said}; {FITTING}") } else { said }
    }
}

const FITTING: &str = "letters, digits, `-`, `.`, `_`, `~` and `:` fit";

impl Provider {
    /// The base URL with its placeholders filled: by `endpoint.params`, else from the environment, else by their own
    /// defaults (`{region:-eu}`).
    ///
    /// # Errors
    /// What could not be filled.
    pub fn address(&self, env: Env<'_>) -> Result<Option<String>, Vec<Gap>> {
        self.base_url.as_deref().map(|template| self.fill(template, env)).transpose()
    }

    fn fill(&self, template: &str, env: Env<'_>) -> Result<String, Vec<Gap>> {
        let (mut out, mut gaps) = (String::with_capacity(template.len()), Vec::new());
        for piece in pieces(template) {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Hole { name, default } => match self.param(name, default, env) {
                    Ok(value) => out.push_str(&value),
                    Err(gap) => gaps.push(gap),
                },
            }
        }
        if gaps.is_empty() { Ok(out) } else { Err(gaps) }
    }

    fn param(&self, name: &str, default: Option<&str>, env: Env<'_>) -> Result<String, Gap> {
        let variables = self.params_env.iter().find(|(known, _)| known == name);
        let variables = variables.map(|(_, variables)| variables.clone()).unwrap_or_default();
        let said = self.params.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let in_env = || variables.iter().filter_map(|variable| env(variable)).find(|value| !value.trim().is_empty());
        let value = said.or_else(in_env).or_else(|| default.map(str::to_owned));
        let gap = |is_unfit| Gap { name: name.to_owned(), variables: variables.clone(), is_unfit };
        let value = value.ok_or_else(|| gap(false))?;
        fitting(&value).map(str::to_owned).ok_or_else(|| gap(true))
    }

    /// The variable that its key is taken from: the first that holds something, else the first.
    pub fn key_variable(&self, env: Env<'_>) -> Option<&str> {
        let is_set = |name: &&String| env(name).is_some_and(|value| !value.trim().is_empty());
        self.key_env.iter().find(is_set).or(self.key_env.first()).map(String::as_str)
    }
}

/// A value as it can be part of an address. Hosts are often written as URLs.
fn fitting(value: &str) -> Option<&str> {
    let value = value.trim();
    let value = value.strip_prefix("https://").unwrap_or(value).trim_end_matches('/');
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._~:".contains(c);
    (!value.is_empty() && value.chars().all(fits)).then_some(value)
}

enum Piece<'a> {
    Text(&'a str),
    Hole { name: &'a str, default: Option<&'a str> },
}

/// What in braces is no name, or the model's, stays as it is.
fn pieces(template: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let (mut rest, mut from) = (template, 0);
    while let Some(open) = rest.get(from..).and_then(|text| text.find('{')).map(|at| at + from) {
        let hole = rest[open + 1..].split_once('}').and_then(|(inside, after)| Some((hole(inside)?, after)));
        match hole {
            Some((hole, after)) => {
                found.push(Piece::Text(&rest[..open]));
                found.push(hole);
                (rest, from) = (after, 0);
            }
            None => from = open + 1,
        }
    }
    found.push(Piece::Text(rest));
    found
}

fn hole(inside: &str) -> Option<Piece<'_>> {
    let (name, default) = inside.split_once(":-").map_or((inside, None), |(name, default)| (name, Some(default)));
    (is_name(name) && name != "model").then_some(Piece::Hole { name, default })
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The address that each layer says, itself or by the name of one that it or a layer below has.
pub(super) fn said(layers: &[Layer]) -> Vec<Option<String>> {
    let mut known: &[(String, String)] = &[];
    let mut said = Vec::with_capacity(layers.len());
    for Layer { spec, .. } in layers {
        known = spec.endpoints.as_deref().unwrap_or(known);
        let name = spec.endpoint.name.as_ref();
        let named = known.iter().find(|(other, _)| Some(other) == name).map(|(_, url)| url.clone());
        said.push(spec.endpoint.base_url.clone().or(named));
    }
    said
}

/// One text, or a list of them.
pub(super) fn one_or_more(field: &Field<'_>) -> Option<Vec<String>> {
    let texts = if field.is_list() { field.texts()? } else { vec![field.text()?] };
    if texts.is_empty() {
        field.problem("must not be empty", None);
        return None;
    }
    Some(texts)
}

/// `{NAME: VALUE}`.
pub(super) fn params(field: &Field<'_>) -> Option<Vec<(String, String)>> {
    let param = |(name, field): (String, Field<'_>)| {
        let value = named(&name, &field)?.text()?;
        let fitting = fitting(&value).map(str::to_owned);
        if fitting.is_none() {
            field.problem("this cannot be part of an address", Some(FITTING.to_owned()));
        }
        Some((name, fitting?))
    };
    Some(field.entries()?.into_iter().filter_map(param).collect())
}

/// `{NAME: VARIABLE}`, or a list of variables.
pub(super) fn params_env(field: &Field<'_>) -> Option<Vec<(String, Vec<String>)>> {
    let param = |(name, field): (String, Field<'_>)| {
        let variables = one_or_more(named(&name, &field)?)?;
        Some((name, variables))
    };
    Some(field.entries()?.into_iter().filter_map(param).collect())
}

/// `{NAME: URL}`.
pub(super) fn endpoints(field: &Field<'_>) -> Option<Vec<(String, String)>> {
    let entry = |(name, field): (String, Field<'_>)| Some((name, field.text()?));
    Some(field.entries()?.into_iter().filter_map(entry).collect())
}

fn named<'f, 'r>(name: &str, field: &'f Field<'r>) -> Option<&'f Field<'r>> {
    if !is_name(name) || name == "model" {
        field.problem("expected a placeholder's name: small letters, digits and `_`", None);
        return None;
    }
    Some(field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::{Document, Problems, Reader};
    use crate::{Library, resolve_inline};

    fn env(name: &str) -> Option<String> {
        match name {
            "REGION" => Some(" eu-west-1\n".to_owned()),
            "BLANK" => Some(" ".to_owned()),
            "HOST" => Some("https://dbc-1.cloud.example.com/".to_owned()),
            "EVIL" => Some("evil.example/x?".to_owned()),
            _ => None,
        }
    }

    fn inline(text: &str) -> (Option<Provider>, String) {
        let document = Document::parse("mine.yaml", text).unwrap();
        let reader = Reader::new(&document, &env);
        let provider = resolve_inline(Library::BUILTIN, &reader.root_field(), &env);
        (provider, Problems(reader.finish()).to_string())
    }

    #[test]
    fn placeholders_are_filled_by_params_the_environment_and_defaults() {
        for (endpoint, expected) in [
            ("{base_url: 'https://x.example/v1'}", Ok("https://x.example/v1")),
            (
                "{base_url: 'https://{region}.x/v1', params_env: {region: [UNSET, BLANK, REGION]}}",
                Ok("https://eu-west-1.x/v1"),
            ),
            (
                "{base_url: 'https://{region}.x', params: {region: us}, params_env: {region: REGION}}",
                Ok("https://us.x"),
            ),
            ("{base_url: 'https://{host}/v1', params_env: {host: HOST}}", Ok("https://dbc-1.cloud.example.com/v1")),
            ("{base_url: 'https://x/{a:-one}/{b}/{c:-}', params: {b: two}}", Err(("c", true))),
            ("{base_url: 'https://x/{a:-one}/{b}', params: {b: two}}", Ok("https://x/one/two")),
            ("{base_url: 'https://x/{model}/{}/{A}/{'}", Ok("https://x/{model}/{}/{A}/{")),
            ("{base_url: 'https://x/{account}', params_env: {account: ACCOUNT}}", Err(("account", false))),
            ("{base_url: 'https://{host}/v1', params_env: {host: EVIL}}", Err(("host", true))),
        ] {
            let (provider, problems) = inline(&format!("endpoint: {endpoint}"));
            assert_eq!(problems, "", "{endpoint}");
            let found = provider.unwrap().address(&env).map(Option::unwrap);
            let found = found.as_deref().map_err(|gaps| (gaps[0].name.as_str(), gaps[0].is_unfit));
            assert_eq!(found, expected, "{endpoint}");
        }
    }

    #[test]
    fn what_cannot_be_filled_says_what_would() {
        let gap = |variables: &[&str], is_unfit| Gap {
            name: "region".to_owned(),
            variables: variables.iter().map(|&name| name.to_owned()).collect(),
            is_unfit,
        };
        for (gap, help) in [
            (gap(&[], false), "set `endpoint.params: {region: …}`"),
            (gap(&["A", "B"], false), "set `endpoint.params: {region: …}`, or the environment variable A or B"),
            (gap(&[], true), "set `endpoint.params: {region: …}`; letters, digits, `-`, `.`, `_`, `~` and `:` fit"),
        ] {
            assert_eq!(gap.help(), help);
        }
    }

    #[test]
    fn addresses_have_names() {
        let two = "key_env: [A, B]\nendpoints: {one: 'https://one.x/v1', two: 'https://two.x/v1'}\n";
        for (more, expected) in [
            ("endpoint: {name: two}", Some("https://two.x/v1")),
            ("endpoint: {base_url: 'https://own.x'}", Some("https://own.x")),
            ("", None),
        ] {
            let (provider, problems) = inline(&format!("{two}{more}"));
            assert_eq!((provider.unwrap().base_url.as_deref(), problems.as_str()), (expected, ""), "{more}");
        }
        let (provider, problems) = inline(&format!("{two}endpoint:\n  name: tow\n"));
        assert_eq!(provider.unwrap().base_url, None);
        assert_eq!(
            problems,
            "mine.yaml:4:9: endpoint.name: there is no address `tow`; did you mean `two`? known: one, two"
        );
        let (_, problems) = inline("extends: groq\nendpoint: {name: eu}");
        assert_eq!(problems, "mine.yaml:2:18: endpoint.name: there is no address `eu`; the spec has no `endpoints`");
        let (_, problems) = inline(&format!("{two}endpoint: {{name: one, base_url: 'https://x'}}"));
        assert!(problems.contains("endpoint.name: an address has a name or is given, not both"), "{problems}");
    }

    #[test]
    fn mistakes_are_found() {
        let (_, problems) = inline(
            "endpoint:\n  params: {Region: x, region: 'a/b'}\n  params_env: {model: X, region: []}\nkey_env: []\nendpoints: [a]",
        );
        for expected in [
            "mine.yaml:2:20: endpoint.params.Region: expected a placeholder's name",
            "mine.yaml:2:31: endpoint.params.region: this cannot be part of an address; letters, digits",
            "mine.yaml:3:23: endpoint.params_env.model: expected a placeholder's name",
            "endpoint.params_env.region: must not be empty",
            "mine.yaml:4:10: key_env: must not be empty",
            "mine.yaml:5:12: endpoints: expected a mapping, found a list",
        ] {
            assert!(problems.contains(expected), "{expected}\n{problems}");
        }
    }
}
