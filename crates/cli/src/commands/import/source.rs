//! Reading what others wrote: nothing is required, and what is of another kind than expected is as if it were not there.

use providers::yaml::{Document, Key, Node, Value};
use server::config::quote;

/// A member of a mapping that has a value.
pub(super) fn get<'a>(node: &'a Node, name: &str) -> Option<&'a Node> {
    entries(node).iter().find(|(key, value)| key.name == name && !value.is_null()).map(|(_, value)| value)
}

pub(super) fn entries(node: &Node) -> &[(Key, Node)] {
    match &node.value {
        Value::Map(entries) => entries,
        Value::Scalar(_) | Value::Seq(_) => &[],
    }
}

/// Leaves out the entries of `model_list` that are not to be kept. Each is shown with its line, in a file that has nothing
/// else but credentials.
pub(super) fn keep_entries(
    document: &mut Document,
    mut keep: impl FnMut(usize, &Document) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let mut alone = document.clone();
    let Value::Map(members) = &mut alone.root.value else { return Ok(()) };
    members.retain(|(key, _)| matches!(key.name.as_str(), "model_list" | "credential_list"));
    let Some(all) = model_list(document) else { return Ok(()) };
    let mut kept = Vec::new();
    for entry in std::mem::take(all) {
        if let Some(only) = model_list(&mut alone) {
            *only = vec![entry.clone()];
        }
        if keep(entry.position.line, &alone)? {
            kept.push(entry);
        }
    }
    *all = kept;
    Ok(())
}

fn model_list(document: &mut Document) -> Option<&mut Vec<Node>> {
    let Value::Map(members) = &mut document.root.value else { return None };
    let (_, node) = members.iter_mut().find(|(key, _)| key.name == "model_list")?;
    match &mut node.value {
        Value::Seq(nodes) => Some(nodes),
        Value::Scalar(_) | Value::Map(_) => None,
    }
}

pub(super) fn list(node: &Node) -> &[Node] {
    match &node.value {
        Value::Seq(nodes) => nodes,
        Value::Scalar(_) | Value::Map(_) => &[],
    }
}

pub(super) fn scalar(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Scalar(scalar) if !node.is_null() => Some(scalar.text.trim()),
        _ => None,
    }
}

pub(super) fn text<'a>(node: &'a Node, name: &str) -> Option<&'a str> {
    get(node, name).and_then(scalar).filter(|text| !text.is_empty())
}

pub(super) fn number(node: &Node, name: &str) -> Option<f64> {
    text(node, name)?.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)
}

pub(super) fn is_true(node: &Node) -> bool {
    scalar(node).is_some_and(|text| text.eq_ignore_ascii_case("true"))
}

/// A value that may be in the environment: `os.environ/NAME`.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Text {
    Literal(String),
    Variable(String),
}

impl Text {
    pub(super) fn new(text: &str) -> Self {
        let is_name =
            |name: &&str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        match text.strip_prefix("os.environ/").map(str::trim).filter(is_name) {
            Some(name) => Self::Variable(name.to_owned()),
            None => Self::Literal(text.to_owned()),
        }
    }

    pub(super) fn of(node: &Node, name: &str) -> Option<Self> {
        text(node, name).map(Self::new)
    }

    /// As a value in our file, with this after it.
    pub(super) fn yaml(&self, end: &str) -> String {
        match self {
            Self::Literal(text) => quote(&format!("{text}{end}")),
            Self::Variable(name) => format!("\"${{{name}}}{end}\""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_ours_and_other_text_stays_text() {
        for (text, end, expected) in [
            ("os.environ/KEY", "", r#""${KEY}""#),
            ("os.environ/BASE", "/v1", r#""${BASE}/v1""#),
            ("os.environ/a b", "", r#""os.environ/a b""#),
            ("sk-${X}", "", r#""sk-$${X}""#),
            ("plain", "", "plain"),
        ] {
            assert_eq!(Text::new(text).yaml(end), expected);
        }
    }
}
