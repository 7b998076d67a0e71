//! Whether the text is what was promised: JSON, or JSON of a given schema.
//!
//! The kernel mends what can be mended by writing on (brackets that the model forgot); whether a value fits a
//! schema is somebody else's knowledge, asked through [`OutputCheck`]. An answer that called tools, refused, or
//! was cut is never asked about.

use std::sync::Arc;

use wire::json::{Kind, Raw};

use super::Setup;
use crate::context::OutputContract;
use crate::escaped::{Escaped, EscapedBuf};
use crate::failure::{Failure, FailureClass};
use crate::note::Action;
use crate::response::ResponseWriter;

/// Knows whether a JSON text fits the schema that was asked for.
pub trait OutputCheck: std::fmt::Debug + Send + Sync {
    fn check(&self, text: &str) -> Result<(), OutputProblem>;
}

/// Why a text was not found to fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputProblem {
    /// It does not fit: where in it, as a JSON pointer, and why.
    Invalid { pointer: String, message: String },
    /// Nobody knows: the schema cannot be used, or not in reasonable time.
    Unknown(String),
}

/// What may be done about an answer that is not what was promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Repair {
    Off,
    /// Code fences come off, brackets are closed.
    #[default]
    Syntax,
    /// And one more try, where nothing has been sent yet.
    Reask,
}

impl Repair {
    pub const ALL: &'static [Self] = &[Self::Off, Self::Syntax, Self::Reask];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Syntax => "syntax",
            Self::Reask => "reask",
        }
    }
}

/// Which promises are kept: an answer that breaks one fails, any other is delivered, with a note where it does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Checks {
    /// Those that the API makes: `strict: true`, and JSON where `json_object` was asked for.
    #[default]
    Strict,
    /// Every schema's, `strict` or not.
    Always,
    /// None; nothing is looked at.
    Off,
}

impl Checks {
    pub const ALL: &'static [Self] = &[Self::Strict, Self::Always, Self::Off];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Always => "always",
            Self::Off => "off",
        }
    }

    /// Whether the answer must be what the contract says.
    const fn demand(self, contract: &OutputContract) -> bool {
        match (self, contract) {
            (Self::Off, _) | (_, OutputContract::Text) => false,
            (Self::Always, _) | (_, OutputContract::JsonObject) => true,
            (Self::Strict, OutputContract::JsonSchema { strict, .. }) => *strict,
        }
    }
}

/// What was promised about the text of one answer, and that text.
#[derive(Debug, Clone)]
pub(super) struct Promise {
    contract: OutputContract,
    check: Option<Arc<dyn OutputCheck>>,
    checks: Checks,
    text: EscapedBuf,
}

impl Promise {
    pub(super) fn new(contract: OutputContract, setup: &Setup) -> Self {
        let (check, checks) = (setup.check.clone(), setup.checks);
        Self { contract, check, checks, text: EscapedBuf::default() }
    }

    /// Whether the text must be anything but text.
    pub(super) fn is_made(&self) -> bool {
        self.contract != OutputContract::Text
    }

    /// More of the text.
    pub(super) fn push(&mut self, text: Escaped<'_>) {
        if self.is_made() {
            self.text.push(text);
        }
    }

    /// The answer is whole: whether it is as promised, or what must be written after it for that.
    pub(super) fn keep(&self, repair: Repair, response: &mut ResponseWriter) -> Result<Option<String>, Failure> {
        if !self.is_made() || self.checks == Checks::Off {
            return Ok(None);
        }
        let Judged { closing, doubt } = judge(&self.contract, self.check.as_deref(), self.text.get(), repair);
        match doubt {
            None => {}
            Some(Doubt::Unknown(why)) => {
                response.remark(Action::Degraded, "text.format", format!("the answer could not be validated: {why}"));
            }
            Some(Doubt::Broken(failure)) if self.checks.demand(&self.contract) => {
                response.remark(Action::Degraded, "text.format", "the answer is not what was asked for");
                return Err(failure);
            }
            Some(Doubt::Broken(failure)) => response.remark(Action::Degraded, "text.format", failure.message),
        }
        if closing.is_some() {
            response.remark(Action::Repaired, "text.format", "brackets that the model left open were closed");
        }
        Ok(closing)
    }
}

/// What was found out about a text.
#[derive(Debug, Default, PartialEq, Eq)]
struct Judged {
    /// With this after it, it is JSON.
    closing: Option<String>,
    doubt: Option<Doubt>,
}

#[derive(Debug, PartialEq, Eq)]
enum Doubt {
    Unknown(String),
    Broken(Failure),
}

/// `text`: that of the whole answer.
fn judge(contract: &OutputContract, check: Option<&dyn OutputCheck>, text: Escaped<'_>, repair: Repair) -> Judged {
    let text = text.decode();
    let closing = match Raw::parse(&text) {
        Ok(_) => None,
        Err(problem) => match closing(&text).filter(|_| repair != Repair::Off) {
            Some(closing) => Some(closing),
            None => {
                let doubt = Some(broken("", &format!("it is not JSON: {problem}")));
                return Judged { closing: None, doubt };
            }
        },
    };
    let found = match &closing {
        Some(closing) => fits(contract, check, &format!("{text}{closing}")),
        None => fits(contract, check, &text),
    };
    let doubt = match found {
        Ok(()) => None,
        Err(OutputProblem::Unknown(why)) => Some(Doubt::Unknown(why)),
        Err(OutputProblem::Invalid { pointer, message }) => Some(broken(&pointer, &message)),
    };
    Judged { closing, doubt }
}

fn fits(contract: &OutputContract, check: Option<&dyn OutputCheck>, text: &str) -> Result<(), OutputProblem> {
    match contract {
        OutputContract::Text => Ok(()),
        OutputContract::JsonObject => match Raw::parse(text).map(Raw::kind) {
            Ok(kind) if kind != Kind::Object => {
                let message = format!("{} is not an object", kind.article());
                Err(OutputProblem::Invalid { pointer: String::new(), message })
            }
            _ => Ok(()),
        },
        OutputContract::JsonSchema { .. } => check.map_or(Ok(()), |check| check.check(text)),
    }
}

fn broken(pointer: &str, message: &str) -> Doubt {
    let place = if pointer.is_empty() { "the root" } else { pointer };
    let message = format!("The model's answer does not have the format that was asked for: at {place}, {message}");
    Doubt::Broken(Failure::new(FailureClass::InvalidOutput, message))
}

/// What closes the strings and brackets that are open at the end of the text, if that makes it JSON.
fn closing(text: &str) -> Option<String> {
    let (mut open, mut in_string, mut escaped) = (Vec::new(), false, false);
    for byte in text.bytes() {
        match byte {
            b'"' if !escaped => in_string = !in_string,
            b'{' if !in_string => open.push('}'),
            b'[' if !in_string => open.push(']'),
            b'}' | b']' if !in_string => {
                open.pop();
            }
            _ => {}
        }
        escaped = in_string && byte == b'\\' && !escaped;
    }
    let mut closing: String = if in_string { "\"".to_owned() } else { String::new() };
    closing.extend(open.iter().rev());
    let mended = Raw::parse(&format!("{text}{closing}")).is_ok();
    (!closing.is_empty() && mended).then_some(closing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct NoSpaces;

    impl OutputCheck for NoSpaces {
        fn check(&self, text: &str) -> Result<(), OutputProblem> {
            if text.contains(' ') {
                return Err(OutputProblem::Invalid { pointer: "/a".to_owned(), message: "a space".to_owned() });
            }
            if text.contains('7') { Err(OutputProblem::Unknown("no".to_owned())) } else { Ok(()) }
        }
    }

    #[test]
    fn only_strict_schemas_and_json_are_promised() {
        let schema =
            |strict| OutputContract::JsonSchema { name: "n".into(), schema: "{}".into(), strict, native: true };
        for (contract, demanded) in [
            (schema(true), [true, true, false]),
            (schema(false), [false, true, false]),
            (OutputContract::JsonObject, [true, true, false]),
            (OutputContract::Text, [false, false, false]),
        ] {
            let found: Vec<bool> = Checks::ALL.iter().map(|checks| checks.demand(&contract)).collect();
            assert_eq!(found, demanded, "{contract:?}");
        }
    }

    #[test]
    fn texts_are_judged() {
        let schema = OutputContract::JsonSchema { name: "n".into(), schema: "{}".into(), strict: true, native: false };
        for (contract, repair, text, expected) in [
            (&schema, Repair::Syntax, r#"{\"a\":1}"#, "fits"),
            (&schema, Repair::Syntax, r#"{\"a\":[1,\"x"#, "fits, closed by \"]}"),
            (&schema, Repair::Off, r#"{\"a\":[1"#, "broken"),
            (&schema, Repair::Syntax, r#"{\"a\":1,"#, "broken"),
            (&schema, Repair::Syntax, r#"{\"a\":\"b c\"}"#, "broken at /a"),
            (&schema, Repair::Syntax, "Sure!", "broken"),
            (&schema, Repair::Syntax, "", "broken"),
            (&schema, Repair::Syntax, "7", "unknown"),
            (&schema, Repair::Syntax, "[7", "unknown, closed by ]"),
            (&schema, Repair::Syntax, r#"[\"a b"#, "broken at /a, closed by \"]"),
            (&OutputContract::JsonObject, Repair::Syntax, "[1]", "broken"),
            (&OutputContract::JsonObject, Repair::Syntax, "{", "fits, closed by }"),
        ] {
            let Judged { closing, doubt } = judge(contract, Some(&NoSpaces), Escaped::inside(text), repair);
            let found = match doubt {
                None => "fits",
                Some(Doubt::Unknown(_)) => "unknown",
                Some(Doubt::Broken(failure)) if failure.message.contains("at /a,") => "broken at /a",
                Some(Doubt::Broken(_)) => "broken",
            };
            let found = closing.map_or(found.to_owned(), |closing| format!("{found}, closed by {closing}"));
            assert_eq!(found, expected, "{text}");
        }
    }
}
