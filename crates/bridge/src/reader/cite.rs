//! Citations and token probabilities, from the chat form into ours.

use wire::json::{ObjectWriter, Raw};

use crate::json::{bracketed, compact, join};

/// A citation as `annotations` show it; `None` for what is no citation of an address.
pub(super) fn annotation(raw: Raw<'_>) -> Option<Vec<u8>> {
    let citation = raw.get("url_citation").unwrap_or(raw);
    let url = citation.get("url").filter(|url| url.text().is_some_and(|url| !url.is_empty()))?;
    let mut out = Vec::with_capacity(128);
    let mut object = ObjectWriter::new(&mut out);
    object.text("type", "url_citation");
    compact(url.as_str(), object.key("url"));
    for name in ["start_index", "end_index"] {
        let index = citation.get(name).map(Raw::as_str).filter(|index| index.parse::<u64>().is_ok());
        object.json(name, index.unwrap_or("0").as_bytes());
    }
    let title = citation.get("title").filter(|title| title.text().is_some());
    compact(title.map_or("\"\"", Raw::as_str), object.key("title"));
    object.end();
    Some(out)
}

/// The token probabilities of one chunk: JSON, comma between them.
pub(super) fn logprobs(raw: Raw<'_>) -> Vec<u8> {
    raw.get("content").map(tokens).unwrap_or_default()
}

/// The same of a bare list.
pub(super) fn tokens(raw: Raw<'_>) -> Vec<u8> {
    let mut list = Vec::new();
    for token in raw.elements() {
        let mut out = Vec::new();
        if token_members(token, true, &mut out) {
            join(&mut list, &out);
        }
    }
    list
}

/// `{token, logprob, bytes, top_logprobs}`, of the alternatives without the last; false for what is none.
fn token_members(token: Raw<'_>, top: bool, out: &mut Vec<u8>) -> bool {
    let text = token.get("token").filter(|text| text.text().is_some());
    let logprob = token.get("logprob").filter(|number| number.as_str().parse::<f64>().is_ok_and(f64::is_finite));
    let (Some(text), Some(logprob)) = (text, logprob) else { return false };
    let mut object = ObjectWriter::new(out);
    compact(text.as_str(), object.key("token"));
    object.raw("logprob", logprob);
    let bytes = token.get("bytes").into_iter().flat_map(Raw::elements);
    let mut list = Vec::new();
    for byte in bytes.filter(|byte| byte.as_str().parse::<u8>().is_ok()) {
        join(&mut list, byte.as_str().as_bytes());
    }
    bracketed(object.key("bytes"), &list);
    if top {
        let mut list = Vec::new();
        for other in token.get("top_logprobs").into_iter().flat_map(Raw::elements) {
            let mut out = Vec::new();
            if token_members(other, false, &mut out) {
                join(&mut list, &out);
            }
        }
        bracketed(object.key("top_logprobs"), &list);
    }
    object.end();
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_citation() {
        let flat = r#"{"type":"url_citation","url":"https://a.b/","title":"T","start_index":1,"end_index":2}"#;
        let nested = r#"{"type":"url_citation","url_citation":{"url":"https://a.b/","title":"T","start_index":1,"end_index":2,"content":"x"}}"#;
        let expected = r#"{"type":"url_citation","url":"https://a.b/","start_index":1,"end_index":2,"title":"T"}"#;
        for json in [flat, nested] {
            assert_eq!(annotation(Raw::parse(json).unwrap()).as_deref(), Some(expected.as_bytes()), "{json}");
        }
        for json in ["{}", "7", r#"{"type":"file_citation","file_id":"f"}"#, r#"{"url":""}"#] {
            assert_eq!(annotation(Raw::parse(json).unwrap()), None, "{json}");
        }
    }

    #[test]
    fn probabilities_keep_what_the_schema_knows() {
        let json = r#"{"content":[{"id":9,"token":"a","logprob":-0.5,"bytes":[97],
            "top_logprobs":[{"token":"b","logprob":-9e0,"bytes":null},{"token":7}]},{"token":"x"}]}"#;
        let expected =
            r#"{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[{"token":"b","logprob":-9e0,"bytes":[]}]}"#;
        assert_eq!(String::from_utf8(logprobs(Raw::parse(json).unwrap())).unwrap(), expected);
    }
}
