//! `${VAR}`, `${VAR:-default}` and `$${` inside scalars. Errors name the variable, never its value.

use super::reader::Env;

/// Why a scalar could not be filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unresolved {
    Unset(String),
    Unclosed,
    BadName,
}

/// The text with its variables filled in. A default counts when the variable is unset or empty, as in a
/// shell; what a variable holds is taken as it is and never read for further variables.
pub(super) fn interpolate(text: &str, env: Env<'_>) -> Result<String, Unresolved> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        if let Some(escaped) = before.strip_suffix('$') {
            out.push_str(escaped);
            out.push_str("${");
            rest = &from[2..];
            continue;
        }
        out.push_str(before);
        let (inner, after) = from[2..].split_once('}').ok_or(Unresolved::Unclosed)?;
        out.push_str(&lookup(inner, env)?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn lookup(inner: &str, env: Env<'_>) -> Result<String, Unresolved> {
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err(Unresolved::BadName);
    }
    match (env(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(Unresolved::Unset(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_in_variables() {
        let env = |name: &str| match name {
            "A" => Some("one".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${A}".to_owned()),
            _ => None,
        };
        let cases = [
            ("plain", Ok("plain")),
            ("${A}", Ok("one")),
            ("x${A}y${A}z", Ok("xoneyonez")),
            ("${EMPTY}", Ok("")),
            ("${EMPTY:-two}", Ok("two")),
            ("${NO:-}", Ok("")),
            ("${NO:-http://x:1/}", Ok("http://x:1/")),
            ("${A:-two}", Ok("one")),
            ("${NESTED}", Ok("${A}")),
            ("$${A}", Ok("${A}")),
            ("$A $5 $", Ok("$A $5 $")),
            ("$${A} ${A}", Ok("${A} one")),
            ("${NO}", Err(Unresolved::Unset("NO".to_owned()))),
            ("${A", Err(Unresolved::Unclosed)),
            ("${}", Err(Unresolved::BadName)),
            ("${A-b}", Err(Unresolved::BadName)),
        ];
        for (text, expected) in cases {
            assert_eq!(interpolate(text, &env), expected.map(str::to_owned), "{text}");
        }
    }
}
