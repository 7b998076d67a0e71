//! Why an answer to `GET /models` is no list of models, for a person.

use bridge::{AnswerDialect, Failure};
use serde_json::Value;
use wire::json::without_mark;

use crate::ask::Answer;
use crate::reply::clip;

/// Of a page or of words that are no error's.
const WORDS: usize = 100;

/// The status and the first words of an answer that lists no model; None: it lists some. What the answer says is shown as it
/// is: whoever carries it has taken secrets out of it.
pub fn no_list(answer: &Answer) -> Option<String> {
    let text = String::from_utf8_lossy(without_mark(&answer.body));
    let document: Option<Value> = serde_json::from_str(&text).ok();
    let status = answer.status;
    if status != 200 {
        return Some(match document {
            Some(_) => {
                let failure = Failure::from_answer_in(&AnswerDialect::default(), status, &answer.body);
                format!("{status}: {}", clip(&failure.message, WORDS))
            }
            None => format!("{status}{}", words(&text)),
        });
    }
    let Some(document) = document else { return Some(format!("it answered 200, but no JSON{}", words(&text))) };
    let lists = [&document, &document["data"], &document["models"]];
    match lists.into_iter().find_map(Value::as_array) {
        Some(models) if models.is_empty() => Some("its list of models is empty".to_owned()),
        Some(_) => None,
        None => Some(format!("it answered 200, but no list: {}", clip(&text, WORDS))),
    }
}

/// What a page is called, or how a text begins.
fn words(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let title = lower.find("<title>").map(|at| at + "<title>".len()).and_then(|from| {
        let to = from + lower.get(from..)?.find("</title>")?;
        text.get(from..to)
    });
    match title {
        Some(title) => format!(", a web page: {}", clip(title, WORDS)),
        None if text.trim().is_empty() => ", and nothing else".to_owned(),
        None => format!(": {}", clip(text, WORDS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_said_in_a_line() {
        let page = "<!DOCTYPE html>\n<html><head><TITLE>Sign\n in</TITLE></head></html>";
        for (status, body, expected) in [
            (200, r#"{"data":[{"id":"m"}]}"#, None),
            (200, r#"[{"id":"m"}]"#, None),
            (200, r#"{"models":[{"name":"m"}]}"#, None),
            (200, r#"{"data":[]}"#, Some("its list of models is empty")),
            (200, r#"{"ok":true}"#, Some(r#"it answered 200, but no list: {"ok":true}"#)),
            (200, page, Some("it answered 200, but no JSON, a web page: Sign in")),
            (200, "", Some("it answered 200, but no JSON, and nothing else")),
            (401, r#"{"error":{"message":"no such key"}}"#, Some("401: no such key")),
            (404, r#"{"detail":"Not Found"}"#, Some("404: Not Found")),
            (500, "oops\nagain", Some("500: oops again")),
            (502, page, Some("502, a web page: Sign in")),
            (503, "", Some("503, and nothing else")),
        ] {
            let answer = Answer { status, body: body.into(), ..Answer::default() };
            assert_eq!(no_list(&answer).as_deref(), expected, "{status} {body}");
        }
    }
}
