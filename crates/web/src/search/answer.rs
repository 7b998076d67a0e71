//! The answer of a service, as results.

use url::Url;
use wire::json::{Kind, Raw, Text, without_mark};

use super::clean::clean;
use super::spec::{Path, SearchSpec};

/// The most of an answer that is read.
pub const LARGEST_ANSWER: usize = 2 << 20;
/// The most results that are looked at.
const MOST: usize = 100;
const LONGEST_TITLE: usize = 300;
const LONGEST_DATE: usize = 64;
const LONGEST_URL: usize = 2048;
/// More of one result than any model is shown.
const LONGEST_TEXT: usize = 32 << 10;

/// A page that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Empty where it is not known.
    pub title: String,
    /// http or https, without a user or a password.
    pub url: String,
    pub text: String,
    pub date: Option<String>,
}

/// Why an answer says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("its answer is not JSON")]
    NotJson,
    #[error("its answer is an error")]
    Error,
    #[error("its answer has no list of results where the spec says")]
    NoList,
}

impl SearchSpec {
    /// The results that an answer has.
    ///
    /// # Errors
    /// What was answered is something else.
    pub fn results(&self, body: &[u8]) -> Result<Vec<Found>, Unreadable> {
        let text = std::str::from_utf8(without_mark(body)).map_err(|_| Unreadable::NotJson)?;
        let answer = Raw::parse(text).map_err(|_| Unreadable::NotJson)?;
        let list = match follow(answer, &self.results) {
            Some(list) if list.kind() == Kind::Array => list,
            Some(_) => return Err(Unreadable::NoList),
            // Some leave the list out when they have found nothing.
            None if answer.kind() == Kind::Object => {
                let failed =
                    ["error", "errors"].iter().any(|key| answer.get(key).is_some_and(|value| !value.is_null()));
                return if failed { Err(Unreadable::Error) } else { Ok(Vec::new()) };
            }
            None => return Err(Unreadable::NoList),
        };
        Ok(list.elements().take(MOST).filter_map(|result| self.found(result)).collect())
    }

    fn found(&self, result: Raw<'_>) -> Option<Found> {
        let url = first(result, &self.url).and_then(|url| address(&url))?;
        let of = |paths: &[Path], most| first(result, paths).map(|text| cut(clean(&text), most)).unwrap_or_default();
        let date = of(&self.date, LONGEST_DATE);
        Some(Found {
            title: of(&self.title, LONGEST_TITLE),
            url,
            text: of(&self.text, LONGEST_TEXT),
            date: (!date.is_empty()).then_some(date),
        })
    }
}

/// An address that a page may have.
fn address(text: &str) -> Option<String> {
    let url = Url::parse(text.trim()).ok()?;
    let plain = matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none();
    let url = String::from(url);
    (plain && url.len() <= LONGEST_URL).then_some(url)
}

/// What the first of the ways leads to that leads to something.
fn first(result: Raw<'_>, paths: &[Path]) -> Option<String> {
    let text = |path: &Path| {
        let value = follow(result, path)?;
        let text = match value.kind() {
            Kind::String => value.text()?.decode().into_owned(),
            Kind::Number => value.as_str().to_owned(),
            // Several extracts of one page.
            Kind::Array => {
                let texts: Vec<_> = value.elements().filter_map(Raw::text).map(Text::decode).collect();
                texts.join(" … ")
            }
            Kind::Null | Kind::Bool | Kind::Object => return None,
        };
        (!text.trim().is_empty()).then_some(text)
    };
    paths.iter().find_map(text)
}

fn follow<'a>(value: Raw<'a>, path: &[String]) -> Option<Raw<'a>> {
    path.iter().try_fold(value, |value, step| value.get(step)).filter(|value| !value.is_null())
}

/// As many bytes at most, in whole characters.
fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(name: &str, answer: &str) -> Result<Vec<Found>, Unreadable> {
        SearchSpec::named(name, &|_| None).unwrap().unwrap().results(answer.as_bytes())
    }

    #[test]
    fn what_is_no_list_of_results_is_said() {
        for (answer, expected) in [
            ("", Err(Unreadable::NotJson)),
            ("<html>", Err(Unreadable::NotJson)),
            ("[]", Err(Unreadable::NoList)),
            ("null", Err(Unreadable::NoList)),
            (r#"{"web":{"results":{}}}"#, Err(Unreadable::NoList)),
            (r#"{"error":{"code":"x"}}"#, Err(Unreadable::Error)),
            (r#"{"error":null}"#, Ok(vec![])),
            (r#"{"type":"search"}"#, Ok(vec![])),
            (r#"{"web":null}"#, Ok(vec![])),
            ("\u{feff}{\"web\":{\"results\":[]}}", Ok(vec![])),
        ] {
            assert_eq!(results("brave", answer), expected, "{answer}");
        }
        assert_eq!(SearchSpec::named("brave", &|_| None).unwrap().unwrap().results(b"\xff"), Err(Unreadable::NotJson));
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(results("brave", &deep), Err(Unreadable::NotJson));
    }

    #[test]
    fn results_that_are_none_are_left_out_and_fields_fall_back() {
        let answer = r#"{"data":{"web":[
            7, {}, {"url":5}, {"url":"javascript:alert(1)"}, {"url":"https://user:pw@a.org/"}, {"url":"no"},
            {"url":" https://a.org/x ","title":"<b>A</b>","markdown":"","description":"d &amp; e"},
            {"url":"https://b.org","title":null,"markdown":"m","description":"d"}]}}"#;
        let found = results("firecrawl", answer).unwrap();
        let expected = [("A", "https://a.org/x", "d & e"), ("", "https://b.org/", "m")];
        let found: Vec<_> = found.iter().map(|f| (f.title.as_str(), f.url.as_str(), f.text.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_too_much_is_cut() {
        let one = format!(
            r#"{{"url":"https://a.org/","title":"{0}","content":"{0}","publishedDate":"{0}"}}"#,
            "é".repeat(50_000)
        );
        let many = format!(r#"{{"results":[{}]}}"#, vec![r#"{"url":"https://a.org/"}"#; 1000].join(","));
        let found = results("searxng", &format!(r#"{{"results":[{one}]}}"#)).unwrap().remove(0);
        assert_eq!((found.title.len(), found.text.len()), (LONGEST_TITLE, LONGEST_TEXT));
        assert_eq!(found.date.unwrap().len(), LONGEST_DATE);
        assert_eq!(results("searxng", &many).unwrap().len(), MOST);
        let long = format!(r#"{{"results":[{{"url":"https://a.org/{}"}}]}}"#, "x".repeat(5000));
        assert_eq!(results("searxng", &long).unwrap(), []);
    }
}
