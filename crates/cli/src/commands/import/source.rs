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

/// Puts in what merge keys (`<<`) stand for, as `PyYAML` does, with which LiteLLM reads its files: own keys come before merged
/// ones, the first mapping of a list before the next, and the last of two keys of one name counts.
///
/// # Errors
/// The line of a merge key that is of no mapping: LiteLLM would not start with such a file.
pub(super) fn merge(node: &mut Node) -> Result<(), usize> {
    match &mut node.value {
        Value::Scalar(_) => Ok(()),
        Value::Seq(nodes) => nodes.iter_mut().try_for_each(merge),
        Value::Map(entries) => {
            let (mut own, mut merged) = (Vec::new(), Vec::new());
            for (key, mut value) in std::mem::take(entries) {
                merge(&mut value)?;
                match value.value {
                    Value::Map(more) if key.name == MERGE => put(&mut merged, more),
                    Value::Seq(nodes) if key.name == MERGE => {
                        for node in nodes.into_iter().rev() {
                            let Value::Map(more) = node.value else { return Err(node.position.line) };
                            put(&mut merged, more);
                        }
                    }
                    Value::Scalar(_) if key.name == MERGE => return Err(key.position.line),
                    _ => put(&mut own, vec![(key, value)]),
                }
            }
            put(&mut merged, own);
            *entries = merged;
            Ok(())
        }
    }
}

const MERGE: &str = "<<";

/// Each in the place of the one that has its name.
fn put(entries: &mut Vec<(Key, Node)>, more: Vec<(Key, Node)>) {
    for (key, value) in more {
        match entries.iter_mut().find(|(known, _)| known.name == key.name) {
            Some(known) => *known = (key, value),
            None => entries.push((key, value)),
        }
    }
}

/// What an entry of `model_list` is called.
pub(super) fn entry_name(entry: &Node) -> &str {
    let model = || get(entry, "litellm_params").and_then(|params| text(params, "model"));
    text(entry, "model_name").or_else(model).unwrap_or_default()
}

/// Leaves out the entries of `model_list` that are not to be kept. Each is shown, and in a file that has nothing else but
/// credentials.
pub(super) fn keep_entries(
    document: &mut Document,
    mut keep: impl FnMut(&Node, &Document) -> anyhow::Result<bool>,
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
        if keep(&entry, &alone)? {
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

/// What keeps a value from being a [`Text`].
pub(super) fn no_text(node: &Node) -> Option<String> {
    match scalar(node) {
        None => Some(format!("{}, and no text", node.kind())),
        Some(text) if Text::new(text).is_none() => {
            Some(format!("`{text}`, and the name of a variable has only ASCII letters, digits and `_` here"))
        }
        Some(_) => None,
    }
}

pub(super) fn number(node: &Node, name: &str) -> Option<f64> {
    get(node, name).and_then(number_of)
}

/// None where it is negative, too. `-0` is 0.
pub(super) fn number_of(node: &Node) -> Option<f64> {
    any_number(node).filter(|number| *number >= 0.0).map(f64::abs)
}

pub(super) fn any_number(node: &Node) -> Option<f64> {
    scalar(node)?.parse::<f64>().ok().filter(|number| number.is_finite())
}

/// A value, as it is shown to people.
pub(super) fn shown(node: &Node) -> &str {
    scalar(node).unwrap_or(node.kind())
}

pub(super) fn is_true(node: &Node) -> bool {
    scalar(node).is_some_and(|text| text.eq_ignore_ascii_case("true"))
}

/// What says that a value is in the environment: the name of its variable comes after it.
pub(super) const ENVIRON: &str = "os.environ/";

/// A value that may be in the environment: `os.environ/NAME`.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Text {
    Literal(String),
    Variable(String),
}

impl Text {
    /// None where it is in a variable that our file cannot name.
    pub(super) fn new(text: &str) -> Option<Self> {
        let Some(name) = text.strip_prefix(ENVIRON) else { return Some(Self::Literal(text.to_owned())) };
        let name = name.trim();
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_name.then(|| Self::Variable(name.to_owned()))
    }

    pub(super) fn of(node: &Node, name: &str) -> Option<Self> {
        text(node, name).and_then(Self::new)
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

    /// Without places, which differ.
    fn plain(node: &Node) -> String {
        match &node.value {
            Value::Scalar(scalar) => scalar.text.clone(),
            Value::Seq(nodes) => format!("[{}]", nodes.iter().map(plain).collect::<Vec<_>>().join(",")),
            Value::Map(entries) => {
                let mut entries: Vec<String> =
                    entries.iter().map(|(key, value)| format!("{}:{}", key.name, plain(value))).collect();
                entries.sort();
                format!("{{{}}}", entries.join(","))
            }
        }
    }

    /// What is expected here is what `PyYAML` makes of it.
    #[test]
    fn merge_keys_are_resolved() {
        for (text, expected) in [
            ("<<: {a: 1, b: 2}\nb: 3", Ok("{a:1,b:3}")),
            ("b: 3\n<<: {a: 1, b: 2}", Ok("{a:1,b:3}")),
            ("<<: [{a: 1}, {a: 2, b: 2}]", Ok("{a:1,b:2}")),
            ("<<: {<<: {a: 1, b: 1}, b: 2}\nc: 3", Ok("{a:1,b:2,c:3}")),
            ("<<: []\na: 1", Ok("{a:1}")),
            ("<<: {a: 1}\n<<: {a: 2}", Ok("{a:2}")),
            ("a: 1\na: 2", Ok("{a:2}")),
            ("a: ~\n<<: {a: 1}", Ok("{a:~}")),
            ("l: [{<<: {a: {<<: {b: 1}}}}]", Ok("{l:[{a:{b:1}}]}")),
            ("a: 1\n<<: b", Err(2)),
            ("<<:\n- {a: 1}\n- b", Err(3)),
        ] {
            let mut root = Document::parse("f.yaml", text).unwrap().root;
            let merged = merge(&mut root).map(|()| plain(&root));
            assert_eq!(merged.as_deref().map_err(|line| *line), expected, "{text}");
        }
    }

    #[test]
    fn variables_are_ours_and_other_text_stays_text() {
        for (text, end, expected) in [
            ("os.environ/KEY", "", Some(r#""${KEY}""#)),
            ("os.environ/BASE", "/v1", Some(r#""${BASE}/v1""#)),
            ("os.environ/ KEY", "", Some(r#""${KEY}""#)),
            ("os.environ/a b", "", None),
            ("os.environ/MY-KEY", "", None),
            ("os.environ/", "", None),
            ("sk-${X}", "", Some(r#""sk-$${X}""#)),
            ("plain", "", Some("plain")),
        ] {
            assert_eq!(Text::new(text).map(|text| text.yaml(end)).as_deref(), expected, "{text}");
        }
    }
}
