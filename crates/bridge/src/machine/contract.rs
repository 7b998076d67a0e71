//! Whether the text is what was promised: JSON, or JSON of a given schema.
//!
//! The kernel mends what can be mended by writing on (brackets that the model forgot); whether a value fits a
//! schema is somebody else's knowledge, asked through [`OutputCheck`]. An answer that called tools, refused, or
//! was cut is never asked about.

use wire::json::{Kind, Raw, unescape};

use crate::failure::{Failure, FailureClass};
use crate::reading::OutputContract;

/// Knows whether a JSON text fits the schema that was asked for.
pub trait OutputCheck: std::fmt::Debug + Send + Sync {
    fn check(&self, text: &str) -> Result<(), OutputProblem>;
}

/// Why a text was not found to fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputProblem {
    /// It does not fit: where in it, as a JSON pointer, and why.
    Invalid { pointer: String, message: String },
    /// The schema cannot be used, so nobody knows.
    NoSchema(String),
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

/// The verdict on a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fit {
    Fits,
    /// Only with this behind it.
    Closed(String),
    Unknown(String),
    Broken(Failure),
}

/// `escaped`: the text of the whole answer.
pub(super) fn judge(contract: &OutputContract, check: Option<&dyn OutputCheck>, escaped: &[u8], repair: Repair) -> Fit {
    let text = unescape(str::from_utf8(escaped).unwrap_or_default());
    let closing = match Raw::parse(&text) {
        Ok(_) => None,
        Err(problem) => match closing(&text).filter(|_| repair != Repair::Off) {
            Some(closing) => Some(closing),
            None => return broken("", &format!("it is not JSON: {problem}")),
        },
    };
    let whole = closing.as_ref().map_or_else(|| text.to_string(), |closing| format!("{text}{closing}"));
    match fits(contract, check, &whole) {
        Ok(()) => closing.map_or(Fit::Fits, Fit::Closed),
        Err(OutputProblem::NoSchema(why)) => Fit::Unknown(why),
        Err(OutputProblem::Invalid { pointer, message }) => broken(&pointer, &message),
    }
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

fn broken(pointer: &str, message: &str) -> Fit {
    let place = if pointer.is_empty() { "the root" } else { pointer };
    let message = format!("The model's answer does not have the format that was asked for: at {place}, {message}");
    Fit::Broken(Failure::new(FailureClass::InvalidOutput, message))
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
            if text == "7" { Err(OutputProblem::NoSchema("no".to_owned())) } else { Ok(()) }
        }
    }

    #[test]
    fn texts_are_judged() {
        let schema = OutputContract::JsonSchema { name: "n".into(), schema: "{}".into(), native: false };
        for (contract, repair, text, expected) in [
            (&schema, Repair::Syntax, r#"{\"a\":1}"#, "fits"),
            (&schema, Repair::Syntax, r#"{\"a\":[1,\"x"#, "closed by \"]}"),
            (&schema, Repair::Off, r#"{\"a\":[1"#, "broken"),
            (&schema, Repair::Syntax, r#"{\"a\":1,"#, "broken"),
            (&schema, Repair::Syntax, r#"{\"a\":\"b c\"}"#, "broken at /a"),
            (&schema, Repair::Syntax, "Sure!", "broken"),
            (&schema, Repair::Syntax, "", "broken"),
            (&schema, Repair::Syntax, "7", "unknown"),
            (&OutputContract::JsonObject, Repair::Syntax, "[1]", "broken"),
            (&OutputContract::JsonObject, Repair::Syntax, "{", "closed by }"),
        ] {
            let found = match judge(contract, Some(&NoSpaces), text.as_bytes(), repair) {
                Fit::Fits => "fits".to_owned(),
                Fit::Closed(closing) => format!("closed by {closing}"),
                Fit::Unknown(_) => "unknown".to_owned(),
                Fit::Broken(failure) if failure.message.contains("at /a,") => "broken at /a".to_owned(),
                Fit::Broken(_) => "broken".to_owned(),
            };
            assert_eq!(found, expected, "{text}");
        }
    }
}
