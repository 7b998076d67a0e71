//! Calls of built-in tools: the arguments of the function that the tool was offered as become the tool's own item.
//! Arguments that do not fit give `None`, and the call stays a function call.

use wire::id::IdKind;
use wire::json::{Kind, ObjectWriter, Raw, Text};

use crate::context::ToolKind;
use crate::escaped::{Escaped, EscapedBuf};
use crate::json::{bracketed, compact, join};

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
    /// Shell commands: they have events of their own.
    pub(super) commands: Vec<EscapedBuf>,
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
        ToolKind::Function
        | ToolKind::Custom
        | ToolKind::Mcp
        | ToolKind::WebSearch
        | ToolKind::OpenPage
        | ToolKind::FindInPage => None,
    }
}

fn shell(arguments: Raw<'_>) -> Option<Restored> {
    // A list under `command` would be the words of one command, which is something else.
    let commands = match (arguments.get("commands"), arguments.get("command")) {
        (Some(commands), _) => commands.text().map_or_else(|| strings(commands), |one| Some(vec![clean(one)]))?,
        (None, command) => vec![clean(command?.text()?)],
    };
    let action = |commands: &[EscapedBuf]| {
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
            clean(value).get().write(env.key(&name.decode()));
        }
    }
    env.end();
    if let Some(timeout) = integer(arguments, "timeout_ms") {
        action.json("timeout_ms", timeout.as_bytes());
    }
    for name in ["user", "working_directory"] {
        if let Some(text) = arguments.get(name).and_then(Raw::text) {
            clean(text).get().write(action.key(name));
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
    let written = |diff: Option<Escaped<'_>>| {
        let mut out = Vec::new();
        let mut object = ObjectWriter::new(&mut out);
        object.text("type", &kind);
        path.get().write(object.key("path"));
        if let Some(diff) = diff {
            diff.write(object.key("diff"));
        }
        object.end();
        out
    };
    let begun = written(diff.as_ref().map(|_| Escaped::default()));
    let whole = written(diff.as_ref().map(EscapedBuf::get));
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

fn strings(raw: Raw<'_>) -> Option<Vec<EscapedBuf>> {
    if raw.kind() != Kind::Array {
        return None;
    }
    raw.elements().map(|element| element.text().map(clean)).collect()
}

/// The inside of the string, with surrogates in pairs only.
fn clean(text: Text<'_>) -> EscapedBuf {
    EscapedBuf::clean(Escaped::of(text))
}

/// An integer, also where it is written as a float.
fn integer<'a>(object: Raw<'a>, name: &str) -> Option<&'a str> {
    let number = object.get(name)?.as_str();
    let number = number.strip_suffix(".0").unwrap_or(number);
    number.parse::<i64>().is_ok().then_some(number)
}

fn list(strings: &[EscapedBuf], out: &mut Vec<u8>) {
    let mut values = Vec::new();
    for string in strings {
        let mut value = Vec::new();
        string.get().write(&mut value);
        join(&mut values, &value);
    }
    bracketed(out, &values);
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
