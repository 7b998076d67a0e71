//! Structured output: whether an answer fits the JSON schema that was asked for, and how to ask once more.

use std::sync::Arc;

use bridge::{OutputCheck, OutputContract, OutputProblem};
use wire::json::{ObjectWriter, Raw, Text};

/// Problems are shown to people: more than this of one helps nobody.
const MAX_PROBLEM: usize = 400;

/// The check that a contract asks for.
pub(crate) fn check(contract: &OutputContract) -> Option<Arc<dyn OutputCheck>> {
    match contract {
        OutputContract::JsonSchema { schema, .. } => Some(Arc::new(Schema { text: schema.clone() })),
        OutputContract::Text | OutputContract::JsonObject => None,
    }
}

/// A JSON schema as the client wrote it. It is compiled when there is an answer to check, once.
#[derive(Debug)]
struct Schema {
    text: String,
}

impl OutputCheck for Schema {
    fn check(&self, text: &str) -> Result<(), OutputProblem> {
        let no_schema = |error: &dyn std::fmt::Display| OutputProblem::NoSchema(clip(&error.to_string()));
        let schema = serde_json::from_str(&self.text).map_err(|error| no_schema(&error))?;
        let validator = jsonschema::options().offline().build(&schema).map_err(|error| no_schema(&error))?;
        let value = serde_json::from_str(text).map_err(|error| OutputProblem::Invalid {
            pointer: String::new(),
            message: clip(&format!("it is not JSON: {error}")),
        })?;
        let Err(error) = validator.validate(&value) else { return Ok(()) };
        let (pointer, message) = (error.instance_path().to_string(), clip(&error.to_string()));
        Err(OutputProblem::Invalid { pointer, message })
    }
}

/// The request once more, of either wire, with the answer that did not fit and what was wrong with it.
pub(crate) fn ask_again(request: &[u8], failed: &[u8], problem: &str) -> Option<Vec<u8>> {
    let request = Raw::parse(str::from_utf8(request).ok()?).ok()?;
    let mut out = Vec::with_capacity(request.as_str().len() + 1024);
    let mut object = ObjectWriter::new(&mut out);
    for (name, value) in request.fields() {
        if !name.is("messages") && !name.is("input") {
            object.raw(&name.decode(), value);
            continue;
        }
        let messages = object.key(&name.decode());
        messages.extend_from_slice(value.as_str().trim_end_matches(']').trim_end().as_bytes());
        for (role, text) in [("assistant", answer_text(failed)?), ("user", retry_words(problem))] {
            messages.push(b',');
            let mut message = ObjectWriter::new(messages);
            message.text("role", role).text("content", &text);
            message.end();
        }
        messages.push(b']');
    }
    object.end();
    Some(out)
}

fn retry_words(problem: &str) -> String {
    format!(
        "{problem}\nAnswer again: only the JSON, complete, in the format that was asked for, without any other text."
    )
}

/// The text of a response object.
fn answer_text(object: &[u8]) -> Option<String> {
    let object = Raw::parse(str::from_utf8(object).ok()?).ok()?;
    let parts = object.get("output")?.elements().filter_map(|item| item.get("content")).flat_map(Raw::elements);
    let texts = parts.filter(|part| part.get("type").and_then(Raw::text).is_some_and(|kind| kind.is("output_text")));
    Some(texts.filter_map(|part| part.get("text")?.text().map(Text::decode)).collect())
}

fn clip(text: &str) -> String {
    text.chars().take(MAX_PROBLEM).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contract(schema: &str) -> OutputContract {
        OutputContract::JsonSchema { name: "n".to_owned(), schema: schema.to_owned(), native: true }
    }

    #[test]
    fn answers_are_validated() {
        let schema = r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}},
            "required":["a"],"additionalProperties":false}"#;
        for (schema, text, pointer) in [
            (schema, r#"{"a":[1,2]}"#, Ok(())),
            (schema, r#"{"a":[1,"x"]}"#, Err("/a/1")),
            (schema, r#"{"b":1}"#, Err("")),
            (r##"{"$ref":"#/$defs/x","$defs":{"x":{"type":"string"}}}"##, "\"s\"", Ok(())),
            (r#"{"$ref":"https://example.com/schema"}"#, "1", Err("no schema")),
            (r#"{"type":"nonsense"}"#, "1", Err("no schema")),
        ] {
            let found = match check(&contract(schema)).unwrap().check(text) {
                Ok(()) => Ok(()),
                Err(OutputProblem::Invalid { pointer, .. }) => Err(pointer),
                Err(OutputProblem::NoSchema(_)) => Err("no schema".to_owned()),
            };
            assert_eq!(found, pointer.map_err(str::to_owned), "{schema} {text}");
        }
    }

    #[test]
    fn the_second_question_holds_the_first_answer() {
        let request = br#"{"model":"m","messages":[{"role":"user","content":"q"}],"stream":false}"#;
        let failed = br#"{"output":[{"type":"message","content":[{"type":"output_text","text":"a\"b"}]}]}"#;
        let again = |request: &[u8]| String::from_utf8(ask_again(request, failed, "No.").unwrap()).unwrap();
        let expected = r#"{"model":"m","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a\"b"},{"role":"user","content":"No.\nAnswer again: only the JSON, complete, in the format that was asked for, without any other text."}],"stream":false}"#;
        assert_eq!(again(request), expected);
        let native = str::from_utf8(request).unwrap().replace("messages", "input");
        assert_eq!(again(native.as_bytes()), expected.replace("messages", "input"));
    }
}
