//! The declaration of a tool that the provider runs: the spec's template, filled in from what the client declared.
//!
//! A string `"$NAME"` takes the client's member of that name (`$filters.allowed_domains.0` goes further down). An
//! object with the one key `"$NAME"` takes what it has for the client's word, or for `default`. What the client
//! did not say leaves its member out.

use wire::json::{Kind, ObjectWriter, Raw, Text};
use wire::responses::Tool;

use crate::plan::json;

/// The declaration, as JSON.
pub(super) fn fill(template: &str, tool: &Tool<'_>) -> String {
    json::text(|out| {
        if let Ok(template) = Raw::parse(template) {
            write(template, tool, out);
        }
    })
}

/// Whether there was something to write.
fn write(value: Raw<'_>, tool: &Tool<'_>, out: &mut Vec<u8>) -> bool {
    let found = match value.kind() {
        Kind::Object => match table(value) {
            Some((path, table)) => chosen(&path, table, tool),
            None => {
                object(value, tool, out);
                return true;
            }
        },
        Kind::String => match value.text().map(Text::decode).as_deref().and_then(|text| text.strip_prefix('$')) {
            Some(path) => member(path, tool),
            None => Some(value),
        },
        _ => Some(value),
    };
    out.extend_from_slice(found.map(Raw::as_str).unwrap_or_default().as_bytes());
    found.is_some()
}

fn object(value: Raw<'_>, tool: &Tool<'_>, out: &mut Vec<u8>) {
    let mut object = ObjectWriter::new(out);
    for (key, value) in value.fields() {
        let mut inner = Vec::new();
        if write(value, tool, &mut inner) {
            object.json(&key.decode(), &inner);
        }
    }
    object.end();
}

/// A table to choose from, and the client's member that chooses.
fn table(value: Raw<'_>) -> Option<(String, Raw<'_>)> {
    let mut fields = value.fields();
    let (key, table) = fields.next().filter(|_| fields.next().is_none())?;
    Some((key.decode().strip_prefix('$')?.to_owned(), table))
}

fn chosen<'r>(path: &str, table: Raw<'r>, tool: &Tool<'_>) -> Option<Raw<'r>> {
    let said = member(path, tool).and_then(Raw::text);
    said.and_then(|said| table.get(&said.decode())).or_else(|| table.get("default"))
}

fn member<'a>(path: &str, tool: &Tool<'a>) -> Option<Raw<'a>> {
    let mut steps = path.split('.');
    let first = steps.next()?;
    let (own, extra) = match tool {
        Tool::WebSearch(search) => {
            let own = match first {
                "search_context_size" => search.search_context_size.map(Text::raw),
                "user_location" => search.user_location,
                "filters" => search.filters,
                _ => None,
            };
            (own, &search.extra)
        }
        Tool::FileSearch(search) => {
            let own = match first {
                "vector_store_ids" => search.vector_store_ids,
                "filters" => search.filters,
                _ => None,
            };
            (own, &search.extra)
        }
        _ => return None,
    };
    let found = own.or_else(|| extra.iter().find(|(key, _)| key.is(first)).map(|(_, value)| *value));
    let found = steps.try_fold(found?, |value, step| match step.parse() {
        Ok(index) => value.elements().nth(index),
        Err(_) => value.get(step),
    });
    found.filter(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use wire::json::FromRaw;

    use super::*;

    #[test]
    fn templates_take_what_the_client_said() {
        let template = r#"{"type":"web_search","limit":{"$search_context_size":{"high":5,"default":3}},"size":{"$search_context_size":{"low":"s"}},"where":"$user_location","only":{"first":"$filters.allowed_domains.0"},"on":true}"#;
        for (tool, expected) in [
            (r#"{"type":"web_search"}"#, r#"{"type":"web_search","limit":3,"only":{},"on":true}"#),
            (
                r#"{"type":"web_search","search_context_size":"high","user_location":{"country":"FR"}}"#,
                r#"{"type":"web_search","limit":5,"where":{"country":"FR"},"only":{},"on":true}"#,
            ),
            (
                r#"{"type":"web_search","search_context_size":"low","user_location":null,"filters":{"allowed_domains":["a.b"]}}"#,
                r#"{"type":"web_search","limit":3,"size":"s","only":{"first":"a.b"},"on":true}"#,
            ),
        ] {
            let tool = Tool::from_raw(Raw::parse(tool).unwrap()).unwrap();
            assert_eq!(fill(template, &tool), expected);
        }
    }
}
