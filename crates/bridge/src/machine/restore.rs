//! Calls of built-in tools: the arguments of the function that stood for the tool, as the tool's own item.
//! Arguments that do not fit give `None`, and the call stays a function call (seed 002).

use wire::id::IdKind;
use wire::json::{Kind, ObjectWriter, Raw, Text, sanitize_into};

use super::part::{join, quoted};
use crate::reading::ToolKind;

/// What is particular to the item of one call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Restored {
    pub(super) item_type: &'static str,
    pub(super) id_kind: IdKind,
    /// The member that says what to do: when the item is announced, and when it is done.
    pub(super) member: &'static str,
    pub(super) begun: Vec<u8>,
    pub(super) whole: Vec<u8>,
    /// A member that is always the same, as JSON.
    pub(super) constant: Option<(&'static str, &'static [u8])>,
    /// Shell commands, escaped: they have events of their own.
    pub(super) commands: Vec<Vec<u8>>,
    /// Whether the item may say `incomplete`.
    pub(super) may_be_incomplete: bool,
}

pub(super) fn restore(kind: ToolKind, arguments: &str) -> Option<Restored> {
    let arguments = Raw::parse(arguments).ok()?;
    match kind {
        ToolKind::Shell => shell(arguments),
        ToolKind::LocalShell => local_shell(arguments),
        ToolKind::ApplyPatch => apply_patch(arguments),
        ToolKind::ToolSearch => tool_search(arguments),
        ToolKind::Function | ToolKind::Custom => None,
    }
}

fn shell(arguments: Raw<'_>) -> Option<Restored> {
    // A list under `command` would be the words of one command, which is something else.
    let commands = match (arguments.get("commands"), arguments.get("command")) {
        (Some(commands), _) => commands.text().map_or_else(|| strings(commands), |one| Some(vec![clean(one)]))?,
        (None, command) => vec![clean(command?.text()?)],
    };
    let action = |commands: &[Vec<u8>]| {
        let mut out = Vec::new();
        let mut action = ObjectWriter::new(&mut out);
        list(commands, action.key("commands"));
        for name in ["timeout_ms", "max_output_length"] {
            action.json(name, integer(arguments, name).unwrap_or("null").as_bytes());
        }
        action.end();
        out
    };
    Some(Restored {
        item_type: "shell_call",
        id_kind: IdKind::ShellCall,
        member: "action",
        begun: action(&[]),
        whole: action(&commands),
        constant: Some(("environment", b"null")),
        commands,
        may_be_incomplete: true,
    })
}

fn local_shell(arguments: Raw<'_>) -> Option<Restored> {
    let command = strings(arguments.get("command").or_else(|| arguments.get("cmd"))?)?;
    let mut whole = Vec::new();
    let mut action = ObjectWriter::new(&mut whole);
    action.text("type", "exec");
    list(&command, action.key("command"));
    let mut env = ObjectWriter::new(action.key("env"));
    for (name, value) in arguments.get("env").into_iter().flat_map(Raw::fields) {
        if let Some(value) = value.text() {
            quoted(env.key(&name.decode()), &clean(value));
        }
    }
    env.end();
    if let Some(timeout) = integer(arguments, "timeout_ms") {
        action.json("timeout_ms", timeout.as_bytes());
    }
    for name in ["user", "working_directory"] {
        if let Some(text) = arguments.get(name).and_then(Raw::text) {
            quoted(action.key(name), &clean(text));
        }
    }
    action.end();
    Some(plain("local_shell_call", IdKind::LocalShellCall, "action", whole))
}

fn apply_patch(arguments: Raw<'_>) -> Option<Restored> {
    let operation = arguments.get("operation").unwrap_or(arguments);
    let kind = operation.get("type")?.text()?.decode();
    let path = clean(operation.get("path")?.text()?);
    let diff = match &*kind {
        "create_file" | "update_file" => Some(clean(operation.get("diff")?.text()?)),
        "delete_file" => None,
        _ => return None,
    };
    let written = |diff: Option<&[u8]>| {
        let mut out = Vec::new();
        let mut object = ObjectWriter::new(&mut out);
        object.text("type", &kind);
        quoted(object.key("path"), &path);
        if let Some(diff) = diff {
            quoted(object.key("diff"), diff);
        }
        object.end();
        out
    };
    let begun = written(diff.as_deref().map(|_| b"".as_slice()));
    let whole = written(diff.as_deref());
    let item = plain("apply_patch_call", IdKind::ApplyPatchCall, "operation", whole);
    Some(Restored { begun, may_be_incomplete: false, ..item })
}

fn tool_search(arguments: Raw<'_>) -> Option<Restored> {
    if arguments.kind() != Kind::Object {
        return None;
    }
    let mut whole = Vec::new();
    compact(arguments.as_str(), &mut whole);
    let item = plain("tool_search_call", IdKind::ToolSearchCall, "arguments", whole);
    Some(Restored { constant: Some(("execution", b"\"client\"")), ..item })
}

fn plain(item_type: &'static str, id_kind: IdKind, member: &'static str, whole: Vec<u8>) -> Restored {
    let begun = whole.clone();
    Restored { item_type, id_kind, member, begun, whole, constant: None, commands: Vec::new(), may_be_incomplete: true }
}

fn strings(raw: Raw<'_>) -> Option<Vec<Vec<u8>>> {
    if raw.kind() != Kind::Array {
        return None;
    }
    raw.elements().map(|element| element.text().map(clean)).collect()
}

/// The inside of the string, with surrogates in pairs only.
fn clean(text: Text<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.escaped().len());
    if !sanitize_into(&mut out, text.escaped()).is_empty() {
        out.extend_from_slice(b"\\ufffd");
    }
    out
}

/// An integer, also where it is written as a float.
fn integer<'a>(object: Raw<'a>, name: &str) -> Option<&'a str> {
    let number = object.get(name)?.as_str();
    let number = number.strip_suffix(".0").unwrap_or(number);
    number.parse::<i64>().is_ok().then_some(number)
}

fn list(strings: &[Vec<u8>], out: &mut Vec<u8>) {
    let mut values = Vec::new();
    for string in strings {
        let mut value = Vec::with_capacity(string.len() + 2);
        quoted(&mut value, string);
        join(&mut values, &value);
    }
    super::part::bracketed(out, &values);
}

/// Valid JSON without the white space between its tokens: a line end would break an event in two.
pub(super) fn compact(json: &str, out: &mut Vec<u8>) {
    let mut rest = json;
    while let Some(at) = rest.find(['"', ' ', '\n', '\r', '\t']) {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at..];
        if !rest.starts_with('"') {
            rest = rest.trim_start();
            continue;
        }
        let end = string_end(rest);
        out.push(b'"');
        if !sanitize_into(out, rest.get(1..end).unwrap_or_default()).is_empty() {
            out.extend_from_slice(b"\\ufffd");
        }
        out.push(b'"');
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    out.extend_from_slice(rest.as_bytes());
}

/// The closing quote of the string at the start of `text`.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    });
    end.map_or(text.len(), |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_items_or_do_not() {
        use ToolKind as K;
        for (kind, arguments, whole) in [
            (
                K::Shell,
                r#"{"commands":["ls","a\nb"],"timeout_ms":10.0}"#,
                Some(r#"{"commands":["ls","a\nb"],"timeout_ms":10,"max_output_length":null}"#),
            ),
            (
                K::Shell,
                r#"{"command":"ls"}"#,
                Some(r#"{"commands":["ls"],"timeout_ms":null,"max_output_length":null}"#),
            ),
            (K::Shell, r#"{"commands":["ls",1]}"#, None),
            (K::Shell, r#"{"command":["cat","a"]}"#, None),
            (K::Shell, "{", None),
            (
                K::LocalShell,
                r#"{"cmd":["ls"],"env":{"A":"b","C":1},"user":"u","timeout_ms":"x"}"#,
                Some(r#"{"type":"exec","command":["ls"],"env":{"A":"b"},"user":"u"}"#),
            ),
            (K::LocalShell, r#"{"command":"ls"}"#, None),
            (
                K::ApplyPatch,
                r#"{"operation":{"type":"update_file","path":"a","diff":"d","extra":1}}"#,
                Some(r#"{"type":"update_file","path":"a","diff":"d"}"#),
            ),
            (K::ApplyPatch, r#"{"type":"delete_file","path":"a"}"#, Some(r#"{"type":"delete_file","path":"a"}"#)),
            (K::ApplyPatch, r#"{"operation":{"type":"create_file","path":"a"}}"#, None),
            (K::ApplyPatch, r#"{"operation":{"type":"burn","path":"a"}}"#, None),
            (K::ToolSearch, "{\n \"query\" : \"a \\\" b\" , \"n\": [1, 2]\n}", Some(r#"{"query":"a \" b","n":[1,2]}"#)),
            (K::ToolSearch, "[]", None),
        ] {
            let found = restore(kind, arguments).map(|restored| String::from_utf8(restored.whole).unwrap());
            assert_eq!(found.as_deref(), whole, "{arguments}");
        }
    }
}
