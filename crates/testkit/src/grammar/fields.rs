//! Reading fields of an event, with errors that name the field.

use serde_json::Value;

pub(super) fn field<'a>(value: &'a Value, name: &str) -> Result<&'a Value, String> {
    value.get(name).ok_or_else(|| format!("`{name}` is missing"))
}

pub(super) fn text<'a>(value: &'a Value, name: &str) -> Result<&'a str, String> {
    field(value, name)?.as_str().ok_or_else(|| format!("`{name}` is not a string"))
}

pub(super) fn non_empty<'a>(value: &'a Value, name: &str) -> Result<&'a str, String> {
    let found = text(value, name)?;
    if found.is_empty() { Err(format!("`{name}` is empty")) } else { Ok(found) }
}

pub(super) fn list<'a>(value: &'a Value, name: &str) -> Result<&'a [Value], String> {
    field(value, name)?.as_array().map(Vec::as_slice).ok_or_else(|| format!("`{name}` is not an array"))
}

/// `field == expected`, whatever the JSON type.
pub(super) fn equals(value: &Value, name: &str, expected: impl Into<Value>) -> Result<(), String> {
    let (found, expected) = (field(value, name)?, expected.into());
    if *found == expected { Ok(()) } else { Err(format!("`{name}` is {found}, expected {expected}")) }
}

pub(super) fn one_of(value: &Value, name: &str, allowed: &[&str]) -> Result<(), String> {
    let found = text(value, name)?;
    if allowed.contains(&found) { Ok(()) } else { Err(format!("`{name}` is {found:?}, expected one of {allowed:?}")) }
}

pub(super) fn same(before: &Value, after: &Value, name: &str) -> Result<(), String> {
    let (before, after) = (field(before, name)?, field(after, name)?);
    if before == after { Ok(()) } else { Err(format!("`{name}` changed from {before} to {after}")) }
}

pub(super) fn ensure(holds: bool, problem: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem.to_owned()) }
}
