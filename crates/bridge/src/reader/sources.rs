//! The addresses that an answer may cite: those that its tools have shown.
//!
//! Models write an address as they like: with a fragment, with the parameters of somebody's campaign, with or without a
//! slash at its end. What makes no difference to which page it is makes none here.

use std::collections::BTreeMap;

/// A page that was found, or opened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Source {
    pub url: String,
    /// Empty where it is not known.
    pub title: String,
}

/// Addresses, with their titles.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sources(BTreeMap<String, String>);

impl Sources {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first title that is not empty counts.
    pub fn add(&mut self, source: &Source) {
        let title = self.0.entry(page(&source.url)).or_default();
        if title.is_empty() {
            title.clone_from(&source.title);
        }
    }

    /// The title of an address that was shown.
    pub fn title(&self, url: &str) -> Option<&str> {
        self.0.get(&page(url)).map(String::as_str)
    }
}

/// What tells one page from another: the address without fragment, campaign (`utm_*`) and slash at the end of its path,
/// its host in small letters.
fn page(url: &str) -> String {
    let url = url.trim();
    let url = url.split_once('#').map_or(url, |(before, _)| before);
    // Out of a page's source.
    let url = url.replace("&amp;", "&");
    let (scheme, rest) = url.split_once("://").unwrap_or(("", &url));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let mut page = format!("{}://{}{}", scheme.to_ascii_lowercase(), host.to_lowercase(), path.trim_end_matches('/'));
    let parameters = query.split('&').filter(|parameter| !parameter.is_empty() && !parameter.starts_with("utm_"));
    for (number, parameter) in parameters.enumerate() {
        page.push(if number == 0 { '?' } else { '&' });
        page.push_str(parameter);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_page_has_many_addresses() {
        let mut sources = Sources::default();
        for (url, title) in [("https://Example.com/A/?b=1&utm_source=x", ""), ("https://example.com/A?b=1", "T")] {
            sources.add(&Source { url: url.to_owned(), title: title.to_owned() });
        }
        sources.add(&Source { url: "https://plain.org".to_owned(), title: String::new() });
        for (url, title) in [
            ("https://example.com/A?b=1", Some("T")),
            ("HTTPS://EXAMPLE.COM/A/?b=1#part", Some("T")),
            ("https://example.com/A/?utm_medium=y&b=1&utm_source=openai", Some("T")),
            ("https://example.com/a?b=1", None),
            ("https://example.com/A?b=2", None),
            ("https://example.com/A", None),
            ("http://example.com/A?b=1", None),
            ("https://example.com.evil.org/A?b=1", None),
            ("https://plain.org/", Some("")),
            ("https://plain.org?utm_source=openai", Some("")),
            ("https://plain.org/other", None),
            ("", None),
        ] {
            assert_eq!(sources.title(url), title, "{url}");
        }
    }
}
