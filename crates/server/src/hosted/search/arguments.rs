//! The arguments of the three functions, read as they are meant: models write `query` for `queries`, one text for a list,
//! and addresses without a scheme.

use wire::json::{Kind, Raw, Text};

/// The most queries of one call.
const MOST: usize = 4;
const LONGEST_QUERY: usize = 1000;
const LONGEST: usize = 4096;

/// What is searched for; empty where nothing is said.
pub(super) fn queries(arguments: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    match Raw::parse(arguments) {
        Ok(value) => collect(value, &mut found),
        // Bare words, as they are.
        Err(_) if !arguments.trim_start().starts_with(['{', '[', '"']) => found.push(arguments.to_owned()),
        Err(_) => {}
    }
    let mut queries: Vec<String> = Vec::new();
    for query in found {
        let query = web::search::clean(&query);
        let query = query[..query.floor_char_boundary(LONGEST_QUERY)].to_owned();
        if !query.is_empty() && !queries.contains(&query) && queries.len() < MOST {
            queries.push(query);
        }
    }
    queries
}

fn collect(value: Raw<'_>, found: &mut Vec<String>) {
    match value.kind() {
        Kind::String => found.extend(value.text().map(|text| text.decode().into_owned())),
        Kind::Array => value.elements().take(2 * MOST).for_each(|element| collect(element, found)),
        Kind::Object => {
            let named = ["queries", "query", "search_query", "q"].iter().filter_map(|name| value.get(name));
            named.for_each(|value| collect(value, found));
        }
        Kind::Null | Kind::Bool | Kind::Number => {}
    }
}

/// The address; empty where there is none.
pub(super) fn url(arguments: &str) -> String {
    let url = text(arguments, &["url", "link", "address", "href", "page"]);
    let url = url.trim().trim_start_matches('<').trim_end_matches('>');
    match url {
        "" => String::new(),
        url if url.contains("://") => url.to_owned(),
        url => format!("https://{url}"),
    }
}

/// What is looked for.
pub(super) fn pattern(arguments: &str) -> String {
    text(arguments, &["pattern", "text", "query", "find"])
}

/// Where the part of the page begins.
pub(super) fn start(arguments: &str) -> usize {
    let value = Raw::parse(arguments).ok().and_then(|arguments| arguments.get("start"));
    let number = |value: Raw<'_>| match value.text() {
        Some(text) => text.decode().trim().parse().ok(),
        None => value.as_str().parse().ok(),
    };
    value.and_then(number).unwrap_or(0)
}

fn text(arguments: &str, names: &[&str]) -> String {
    let Ok(value) = Raw::parse(arguments) else { return String::new() };
    let found = match value.kind() {
        Kind::String => value.text(),
        _ => names.iter().find_map(|name| value.get(name)?.text()),
    };
    let text = found.map(Text::decode).unwrap_or_default();
    text[..text.floor_char_boundary(LONGEST)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_found_however_they_are_written() {
        for (arguments, expected) in [
            (r#"{"queries":["a","b"]}"#, &["a", "b"][..]),
            (r#"{"queries":"a"}"#, &["a"]),
            (r#"{"query":"a"}"#, &["a"]),
            (r#"{"query":"a","queries":["a"," b "]}"#, &["a", "b"]),
            (r#"{"query":["a"]}"#, &["a"]),
            (r#"{"search_query":[{"q":"a"},{"q":"b"}]}"#, &["a", "b"]),
            (r#"["a"]"#, &["a"]),
            (r#""a""#, &["a"]),
            ("rust news", &["rust news"]),
            (r#"{"queries":["1","2","3","4","5"]}"#, &["1", "2", "3", "4"]),
            (r#"{"queries":[""," ",null,7,{}]}"#, &[]),
            (r#"{"queries":["a\u202eb\n c"]}"#, &["ab c"]),
            ("{", &[]),
            ("{}", &[]),
            ("null", &[]),
            ("", &[]),
        ] {
            assert_eq!(queries(arguments), expected, "{arguments}");
        }
        assert_eq!(queries(&format!("[\"{}\"]", "é".repeat(5000)))[0].len(), LONGEST_QUERY);
    }

    #[test]
    fn addresses_and_places_are_found() {
        for (arguments, expected) in [
            (r#"{"url":"https://a.org/x"}"#, ("https://a.org/x", 0)),
            (r#"{"url":" <a.org> ","start":100}"#, ("https://a.org", 100)),
            (r#"{"link":"http://a.org","start":"7"}"#, ("http://a.org", 7)),
            (r#""https://a.org""#, ("https://a.org", 0)),
            (r#"{"url":5,"start":-1}"#, ("", 0)),
            ("nonsense", ("", 0)),
        ] {
            assert_eq!((url(arguments).as_str(), start(arguments)), expected, "{arguments}");
        }
        assert_eq!(pattern(r#"{"url":"u","pattern":"p"}"#), "p");
        assert_eq!(pattern(r#"{"url":"u","query":"q"}"#), "q");
    }
}
