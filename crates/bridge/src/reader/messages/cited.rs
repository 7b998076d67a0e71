//! Citations, from the Messages form into ours. There they belong to a block of text; here to a place in it, which is the
//! extent of that block.

use wire::json::{ObjectWriter, Raw, Text};

use crate::json::compact;

/// Where in a text a citation belongs, in characters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A citation as `annotations` show it; `None` for what cites nothing that has a name.
pub(super) fn annotation(raw: Raw<'_>, extent: Extent) -> Option<Vec<u8>> {
    let address = ["url", "source"].into_iter().filter_map(|name| string(raw, name));
    let url = address.into_iter().find(|url| url.decode().contains("://"));
    let mut out = Vec::with_capacity(160);
    let mut object = ObjectWriter::new(&mut out);
    match url {
        Some(url) => {
            object.text("type", "url_citation");
            compact(url.raw().as_str(), object.key("url"));
            object.int("start_index", extent.start).int("end_index", extent.end);
            compact(string(raw, "title").map_or("\"\"", |title| title.raw().as_str()), object.key("title"));
        }
        None => {
            let number = ["document_index", "search_result_index"].into_iter().find_map(|name| raw.get(name));
            let number = number.filter(|number| number.as_str().parse::<u64>().is_ok())?;
            let name = ["document_title", "title"].into_iter().find_map(|name| string(raw, name));
            object.text("type", "file_citation");
            compact(string(raw, "file_id").map_or("\"\"", |id| id.raw().as_str()), object.key("file_id"));
            compact(name.map_or("\"\"", |name| name.raw().as_str()), object.key("filename"));
            object.raw("index", number);
        }
    }
    object.end();
    Some(out)
}

/// A member that is a string and not empty.
fn string<'a>(raw: Raw<'a>, name: &str) -> Option<Text<'a>> {
    raw.get(name).and_then(Raw::text).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_documents_are_cited() {
        for (citation, expected) in [
            (
                r#"{"type":"web_search_result_location","url":"https://a.b/","title":"T","encrypted_index":"x"}"#,
                Some(r#"{"type":"url_citation","url":"https://a.b/","start_index":2,"end_index":5,"title":"T"}"#),
            ),
            (
                r#"{"type":"search_result_location","source":"https://a.b/","title":null,"search_result_index":1}"#,
                Some(r#"{"type":"url_citation","url":"https://a.b/","start_index":2,"end_index":5,"title":""}"#),
            ),
            (
                r#"{"type":"search_result_location","source":"notes","title":"N","search_result_index":1}"#,
                Some(r#"{"type":"file_citation","file_id":"","filename":"N","index":1}"#),
            ),
            (
                r#"{"type":"char_location","document_index":3,"document_title":"D","file_id":"f","start_char_index":0}"#,
                Some(r#"{"type":"file_citation","file_id":"f","filename":"D","index":3}"#),
            ),
            (r#"{"type":"page_location","document_index":"x"}"#, None),
            ("{}", None),
            ("7", None),
        ] {
            let found = annotation(Raw::parse(citation).unwrap(), Extent { start: 2, end: 5 });
            assert_eq!(found.map(|json| String::from_utf8(json).unwrap()).as_deref(), expected, "{citation}");
        }
    }
}
