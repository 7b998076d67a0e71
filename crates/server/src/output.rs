//! Structured output: whether an answer fits the JSON schema that was asked for.
//!
//! Both schema and answer come from outside, so a check has a budget. A small one is made where the turn is, in a few
//! milliseconds at most. What needs more steps is begun anew with the large budget, and what is large is so from the
//! start, on a thread that the runtime has given up for the time: the streams that it served go on elsewhere. What the
//! large budget does not suffice for is like a schema that cannot be used: the answer is delivered, with a note.

use std::sync::{Arc, OnceLock};

use bridge::{OutputCheck, OutputContract, OutputProblem};
use schema::{Schema, Unusable, Verdict};
use tokio::runtime::{Handle, RuntimeFlavor};
use wire::json::Raw;

/// Problems are shown to people: more than this of one helps nobody.
const MAX_PROBLEM: usize = 400;

/// Texts up to this length, and so many steps, are no work worth handing over.
const SMALL: usize = 32 << 10;
const FEW_STEPS: u64 = 50_000;
/// About half a second.
const MOST_STEPS: u64 = 5_000_000;

/// The check that a contract asks for.
pub(crate) fn check(contract: &OutputContract) -> Option<Arc<dyn OutputCheck>> {
    match contract {
        OutputContract::JsonSchema { schema, .. } => {
            Some(Arc::new(Checked { text: schema.clone(), compiled: OnceLock::new() }))
        }
        OutputContract::Text | OutputContract::JsonObject => None,
    }
}

/// A JSON schema as the client wrote it. It is compiled when there is an answer to check, once.
#[derive(Debug)]
struct Checked {
    text: String,
    compiled: OnceLock<Result<Schema, Unusable>>,
}

impl Checked {
    fn schema(&self) -> Result<&Schema, OutputProblem> {
        let compile = || match Raw::parse(&self.text) {
            Ok(schema) => Schema::compile(schema),
            Err(error) => Err(Unusable(error.to_string())),
        };
        let compiled = self.compiled.get_or_init(|| if self.text.len() > SMALL { aside(compile) } else { compile() });
        compiled.as_ref().map_err(|Unusable(why)| OutputProblem::Unknown(clip(&format!("the schema: {why}"))))
    }
}

impl OutputCheck for Checked {
    fn check(&self, text: &str) -> Result<(), OutputProblem> {
        let schema = self.schema()?;
        let document = Raw::parse(text).map_err(|error| OutputProblem::Invalid {
            pointer: String::new(),
            message: clip(&format!("it is not JSON: {error}")),
        })?;
        let small = (text.len() <= SMALL).then(|| schema.check(document, FEW_STEPS));
        let verdict = match small.filter(|verdict| *verdict != Verdict::Spent) {
            Some(verdict) => verdict,
            None => aside(|| schema.check(document, MOST_STEPS)),
        };
        match verdict {
            Verdict::Fits => Ok(()),
            Verdict::Misfit { pointer, message } => Err(OutputProblem::Invalid { pointer, message: clip(&message) }),
            Verdict::Unknown(why) => Err(OutputProblem::Unknown(clip(&why))),
            Verdict::Spent => Err(OutputProblem::Unknown("the check would take too long".to_owned())),
        }
    }
}

/// Works without holding up what else the runtime's thread has to do. A runtime of one thread has nobody to hand over
/// to; it is the tests'.
pub(crate) fn aside<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

fn clip(text: &str) -> String {
    text.chars().take(MAX_PROBLEM).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contract(schema: &str) -> OutputContract {
        OutputContract::JsonSchema { name: "n".to_owned(), schema: schema.to_owned(), strict: true, native: true }
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
            (r#"{"$ref":"https://example.com/schema"}"#, "1", Err("unknown")),
            (r#"{"type":"nonsense"}"#, "1", Err("unknown")),
        ] {
            let found = match check(&contract(schema)).unwrap().check(text) {
                Ok(()) => Ok(()),
                Err(OutputProblem::Invalid { pointer, .. }) => Err(pointer),
                Err(OutputProblem::Unknown(_)) => Err("unknown".to_owned()),
            };
            assert_eq!(found, pointer.map_err(str::to_owned), "{schema} {text}");
        }
    }

    /// What the small budget does not suffice for is decided with the large one, on every kind of runtime.
    #[test]
    fn large_checks_are_made_aside() {
        let schema = r#"{"type":"array","items":{"type":"integer"}}"#;
        let list = |count: usize, last: &str| format!("[{}{last}]", "1,".repeat(count));
        let many = vec![r#"{"const":"x"}"#; 1000].join(",");
        let many = format!(r#"{{"items":{{"anyOf":[{many},true]}}}}"#);
        let cases = [
            (schema, list(40_000, "1"), "fits"),
            (schema, list(40_000, "null"), "/40000"),
            (many.as_str(), list(20, "1"), "fits"),
            (many.as_str(), list(1_000, "1"), "the check would take too long"),
            (
                r#"{"items":{"pattern":"(a|b|ab)*c{50}"}}"#,
                format!("[\"{}\"]", "ab".repeat(500_000)),
                "the check would take too long",
            ),
        ];
        let runtimes = [tokio::runtime::Builder::new_current_thread(), tokio::runtime::Builder::new_multi_thread()];
        for runtime in runtimes.map(|mut builder| builder.worker_threads(1).build().unwrap()) {
            for (schema, text, expected) in &cases {
                let checked = check(&contract(schema)).unwrap();
                let found = match runtime.block_on(async { checked.check(text) }) {
                    Ok(()) => "fits".to_owned(),
                    Err(OutputProblem::Invalid { pointer, .. }) => pointer,
                    Err(OutputProblem::Unknown(why)) => why,
                };
                assert_eq!(found, *expected, "{}", &schema[..40]);
            }
        }
    }
}
