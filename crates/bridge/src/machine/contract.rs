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
    pub(super) const fn demand(self, contract: &OutputContract) -> bool {
        match (self, contract) {
            (Self::Off, _) | (_, OutputContract::Text) => false,
            (Self::Always, _) | (_, OutputContract::JsonObject) => true,
            (Self::Strict, OutputContract::JsonSchema { strict, .. }) => *strict,
        }
    }
}

/// What was found out about a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Judged {
    /// With this after it, it is JSON.
    pub(super) closing: Option<String>,
    pub(super) doubt: Option<Doubt>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    Unknown(String),
    Broken(Failure),
}

/// `escaped`: the text of the whole answer.
pub(super) fn judge(
    contract: &OutputContract,
    check: Option<&dyn OutputCheck>,
    escaped: &[u8],
    repair: Repair,
) -> Judged {
    let text = unescape(str::from_utf8(escaped).unwrap_or_default());
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
            let Judged { closing, doubt } = judge(contract, Some(&NoSpaces), text.as_bytes(), repair);
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
