use super::*;
use crate::responses::{Content, Item, Part};

fn parse(text: &str) -> Result<CreateResponse<'_>, Invalid> {
    CreateResponse::from_raw(Raw::parse(text).unwrap())
}

#[test]
fn what_is_unknown_survives_byte_for_byte() {
    let text = r#"{"model":"m","x-new":{"b":1,"a":1e400},"input":[
        {"type":"hologram","depth":12345678901234567890123,"z":0,"a":0},
        {"type":"message","role":"user","novel":[1.0],"content":[{"type":"smell","of":"rain"}]}],
        "tools":[{"type":"teleport","to":{"y":1,"x":2}}]}"#;
    let request = parse(text).unwrap();
    assert_eq!(request.extra[0].1.as_str(), r#"{"b":1,"a":1e400}"#);
    let Some(Input::Items(items)) = request.input else { panic!("items") };
    assert_eq!(items[0].raw.as_str(), r#"{"type":"hologram","depth":12345678901234567890123,"z":0,"a":0}"#);
    assert!(matches!(&items[0].value, Item::Other { kind: Some(kind), .. } if kind.is("hologram")));
    let Item::Message(message) = &items[1].value else { panic!("message") };
    assert_eq!(message.extra[0].1.as_str(), "[1.0]");
    let Some(Content::Parts(parts)) = &message.content else { panic!("parts") };
    assert!(matches!(&parts[0], Part::Other { raw, .. } if raw.as_str() == r#"{"type":"smell","of":"rain"}"#));
    let tools = request.tools.unwrap();
    assert!(matches!(&tools[0].value, Tool::Other { raw, .. } if raw.as_str().contains(r#"{"y":1,"x":2}"#)));
}

#[test]
fn null_is_absent_everywhere() {
    let names = ["input", "instructions", "tools", "tool_choice", "text", "reasoning", "metadata", "temperature"];
    for name in names {
        let text = format!(r#"{{"model":"m","{name}":null}}"#);
        assert_eq!(parse(&text), parse(r#"{"model":"m"}"#), "{name}");
    }
}

#[test]
fn wrong_types_name_their_path() {
    for (text, path, code) in [
        (r#"{"model":5}"#, "model", "invalid_type"),
        (r#"{"input":5}"#, "input", "invalid_type"),
        (r#"{"input":["x"]}"#, "input[0]", "invalid_type"),
        (r#"{"input":[{"type":5}]}"#, "input[0].type", "invalid_type"),
        (r#"{"input":[{"role":7,"content":"x"}]}"#, "input[0].role", "invalid_type"),
        (r#"{"input":[{"role":"user","content":7}]}"#, "input[0].content", "invalid_type"),
        (
            r#"{"input":[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":1}]}]}"#,
            "input[0].content[1].type",
            "invalid_type",
        ),
        (
            r#"{"input":[{"role":"user","content":[{"text":[],"type":"input_text"}]}]}"#,
            "input[0].content[0].text",
            "invalid_type",
        ),
        (r#"{"tools":{}}"#, "tools", "invalid_type"),
        (
            r#"{"tools":[{"type":"namespace","name":"n","tools":[{"type":"function","strict":"yes"}]}]}"#,
            "tools[0].tools[0].strict",
            "invalid_type",
        ),
        (r#"{"tool_choice":"sometimes"}"#, "tool_choice", "invalid_value"),
        (r#"{"text":{"format":{"type":"yaml"}}}"#, "text.format.type", "invalid_value"),
        (r#"{"text":{"format":{"type":"json_schema","schema":{}}}}"#, "text.format.name", "missing_required_parameter"),
        (r#"{"stream":"true"}"#, "stream", "invalid_type"),
        (r#"{"max_output_tokens":1.5}"#, "max_output_tokens", "invalid_type"),
        (r#"{"conversation":{}}"#, "conversation.id", "missing_required_parameter"),
    ] {
        let invalid = parse(text).unwrap_err();
        assert_eq!((invalid.path.as_str(), invalid.code().name()), (path, code), "{text}");
    }
}

#[test]
fn the_last_of_repeated_members_counts() {
    let request = parse(r#"{"model":"a","mod\u0065l":"b"}"#).unwrap();
    assert!(request.model.unwrap().is("b"));
}

/// What goes on as it came must be one thing, whoever reads it.
#[test]
fn a_type_is_given_once() {
    for (text, path) in [
        (r#"{"tools":[{"type":"function","type":"mcp"}]}"#, "tools[0].type"),
        (r#"{"tools":[{"type":"function","name":"f","ty\u0070e":"mcp"}]}"#, "tools[0].type"),
        (r#"{"tools":[{"type":null,"type":"mcp"}]}"#, "tools[0].type"),
        (r#"{"tools":[{"type":"new","type":"new"}]}"#, "tools[0].type"),
        (r#"{"tools":[{"type":"namespace","tools":[{"type":"custom","type":"mcp"}]}]}"#, "tools[0].tools[0].type"),
        (r#"{"input":[{"type":"message","type":"reasoning"}]}"#, "input[0].type"),
        (r#"{"input":[{"role":"user","type":null,"type":"message"}]}"#, "input[0].type"),
        (r#"{"input":[{"role":"user","content":[{"type":"input_text","type":"x"}]}]}"#, "input[0].content[0].type"),
        (r#"{"tool_choice":{"type":"function","type":"mcp"}}"#, "tool_choice.type"),
    ] {
        let invalid = parse(text).unwrap_err();
        assert_eq!((invalid.path.as_str(), invalid.code().name()), (path, "invalid_value"), "{text}");
    }
}

#[test]
fn items_without_a_type() {
    for (text, expected) in [
        (r#"{"role":"user","content":"x"}"#, "message"),
        (r#"{"id":"msg_1"}"#, "item_reference"),
        (r#"{"id":"msg_1","type":null}"#, "item_reference"),
        (r#"{"id":"msg_1","role":"assistant","content":[]}"#, "message"),
        (r#"{"id":"x","content":[]}"#, "other"),
        (r"{}", "other"),
    ] {
        let item = Item::from_raw(Raw::parse(text).unwrap()).unwrap();
        let kind = match item {
            Item::Message(_) => "message",
            Item::ItemReference(_) => "item_reference",
            _ => "other",
        };
        assert_eq!(kind, expected, "{text}");
    }
}
