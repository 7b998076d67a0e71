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
    expand(text, &mut |inner| lookup(inner, env))
}

/// The text with what `fill` makes of the inside of each `${…}`.
fn expand(text: &str, fill: &mut dyn FnMut(&str) -> Result<String, Unresolved>) -> Result<String, Unresolved> {
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
        out.push_str(&fill(inner)?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// A scalar with variables in it: how it may be shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Filled {
    /// Its path.
    pub path: String,
    /// As it is written in the file.
    pub written: String,
    /// With `redacted` in the place of each variable. What was a JSON object still is one.
    pub shown: String,
    /// What came from variables and went into a JSON object: it is sent to a provider.
    pub secrets: Vec<String>,
}

impl std::fmt::Debug for Filled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Filled").field("path", &self.path).field("written", &self.written).finish_non_exhaustive()
    }
}

const INSTEAD: &str = "redacted";

/// How a text with variables may be shown; None for one without, or with mistakes.
pub(super) fn filled(path: &str, text: &str, env: Env<'_>) -> Option<Filled> {
    let mut values = Vec::new();
    let real = expand(text, &mut |inner| {
        let value = lookup(inner, env)?;
        values.push(value.clone());
        Ok(value)
    });
    let real = real.ok().filter(|_| !values.is_empty())?;
    // A number or a boolean is shown where nothing else fits in its place.
    let is_plain = |value: &str| value.parse::<f64>().is_ok() || matches!(value, "true" | "false" | "null");
    let hide = |keep_plain: bool| {
        let hidden = |inner: &str| {
            let value = lookup(inner, env)?;
            Ok(if keep_plain && is_plain(&value) { value } else { INSTEAD.to_owned() })
        };
        expand(text, &mut { hidden }).unwrap_or_default()
    };
    let is_object = |text: &str| serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).is_ok();
    let (path, written) = (path.to_owned(), text.to_owned());
    if !is_object(&real) {
        return Some(Filled { path, written, shown: hide(false), secrets: Vec::new() });
    }
    let shown = [hide(false), hide(true)].into_iter().find(|text| is_object(text));
    let shown = shown.unwrap_or_else(|| format!("{{\"{INSTEAD}\": true}}"));
    let secrets = values.into_iter().filter(|value| !is_plain(value)).collect();
    Some(Filled { path, written, shown, secrets })
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
    fn what_came_from_a_variable_is_not_shown() {
        let env = |name: &str| match name {
            "KEY" => Some("sk-secret".to_owned()),
            "N" => Some("42".to_owned()),
            "ALL" => Some(r#"{"token": "sk-secret"}"#.to_owned()),
            _ => None,
        };
        for (text, expected) in [
            ("plain", None),
            ("$${KEY}", None),
            ("${NOT_SET}", None),
            ("${KEY}", Some(("redacted", 0))),
            ("a-${KEY}-${N}", Some(("a-redacted-redacted", 0))),
            ("${NOT_SET:-default}", Some(("redacted", 0))),
            (r#"{"token": "x${KEY}", "n": "${N}"}"#, Some((r#"{"token": "xredacted", "n": "redacted"}"#, 1))),
            (r#"{"token": "${KEY}", "n": ${N}}"#, Some((r#"{"token": "redacted", "n": 42}"#, 1))),
            ("${ALL}", Some((r#"{"redacted": true}"#, 1))),
        ] {
            let filled = filled("p", text, &env);
            assert!(!format!("{filled:?}").contains("sk-secret"));
            let found = filled.as_ref().map(|filled| (&*filled.shown, filled.secrets.len()));
            assert_eq!(found, expected, "{text}");
        }
    }

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
