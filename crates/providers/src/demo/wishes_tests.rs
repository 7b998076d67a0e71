use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::{Step, answer};

/// Two MCP servers, the web, and a function of the client's.
fn tools() -> Value {
    let tool = |name: &str, properties: Value| {
        let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
        let parameters = json!({"type": "object", "properties": properties, "required": required});
        json!({"type": "function", "function": {"name": name, "parameters": parameters}})
    };
    let (text, whole) = (json!({"type": "string"}), json!({"type": "integer"}));
    json!([
        tool("calc__add", json!({"a": whole, "b": whole})),
        tool("calc__who", json!({})),
        tool("clock__who", json!({})),
        tool("clock__get_time", json!({"timezone": text})),
        tool("clock__set_unit", json!({"unit": {"type": "string", "enum": ["seconds", "hours"]}})),
        tool("fetch__fetch", json!({"url": {"type": "string", "format": "uri"}})),
        tool("web_search", json!({"queries": {"type": "array", "items": text}})),
        tool("open_page", json!({"url": text})),
        tool("find_in_page", json!({"url": text, "pattern": text})),
        tool("weather", json!({"city": text})),
    ])
}

/// What is called in each round, until the model answers; and what it says then. Every tool answers the same.
fn played(message: &str, output: &str, parallel: bool) -> (Vec<Vec<(String, Value)>>, String) {
    let mut messages = vec![json!({"role": "user", "content": message})];
    let mut rounds = Vec::new();
    loop {
        let body = json!({"model": "demo", "messages": messages, "tools": tools(), "parallel_tool_calls": parallel})
            .to_string();
        let Step::Status { body, .. } = answer(body.as_bytes()).fold() else { panic!("{message}") };
        let whole: Value = serde_json::from_slice(&body).unwrap();
        let said = &whole["choices"][0]["message"];
        let Some(calls) = said["tool_calls"].as_array() else {
            return (rounds, said["content"].as_str().unwrap_or_default().to_owned());
        };
        let called = |call: &Value| {
            let arguments = call["function"]["arguments"].as_str().unwrap();
            (call["function"]["name"].as_str().unwrap().to_owned(), serde_json::from_str(arguments).unwrap())
        };
        rounds.push(calls.iter().map(called).collect());
        assert!(rounds.len() <= 100, "{message}");
        messages.push(said.clone());
        for call in calls {
            messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": output}));
        }
        if output.contains("image") {
            let text = json!({"type": "text", "text": "Images from the tool results above:"});
            messages.push(json!({"role": "user", "content": [text, {"type": "image_url", "image_url": {"url": "x"}}]}));
        }
    }
}

/// The calls of each round, in short.
fn rounds(message: &str, parallel: bool) -> Vec<Vec<(String, Value)>> {
    played(message, "1. [A](https://a.example/1)\n2. [B](https://b.example/2)", parallel).0
}

#[test]
fn tools_are_called_when_they_are_asked_for() {
    let one = |name: &str, arguments: Value| vec![vec![(name.to_owned(), arguments)]];
    let cases = [
        // Named, with arguments of all kinds.
        ("Please use calc__add with {\"a\": 1, \"b\": 2}.", one("calc__add", json!({"a": 1, "b": 2}))),
        ("use add with 20 and 22", one("calc__add", json!({"a": 20, "b": 22}))),
        ("Use the add tool on 7", one("calc__add", json!({"a": 7, "b": 1}))),
        ("What does `add` do?", one("calc__add", json!({"a": 1, "b": 1}))),
        ("get_time in Europe/Berlin?", one("clock__get_time", json!({"timezone": "Europe/Berlin"}))),
        ("get_time for 'Asia/Tokyo' now", one("clock__get_time", json!({"timezone": "Asia/Tokyo"}))),
        ("set_unit to hours", one("clock__set_unit", json!({"unit": "hours"}))),
        ("set_unit please", one("clock__set_unit", json!({"unit": "seconds"}))),
        ("use fetch on https://a.example/x.", one("fetch__fetch", json!({"url": "https://a.example/x"}))),
        ("clock__who is it?", one("clock__who", json!({}))),
        ("think hard\nuse add with 1 and 2", one("calc__add", json!({"a": 1, "b": 2}))),
        // The web.
        ("Search the web for Rust 2026?", one("web_search", json!({"queries": ["Rust 2026"]}))),
        ("look up 'the moon'", one("web_search", json!({"queries": ["the moon"]}))),
        ("web_search {\"queries\": [\"a\", \"b\"]}", one("web_search", json!({"queries": ["a", "b"]}))),
        ("Please open https://a.example/x.", one("open_page", json!({"url": "https://a.example/x"}))),
        (
            "find 'foo' in https://a.example/",
            one("find_in_page", json!({"url": "https://a.example/", "pattern": "foo"})),
        ),
        // What names no tool.
        ("Add two numbers.", vec![]),
        ("What is the weather in Rome?", vec![]),
        ("I open the door and read.", vec![]),
        ("find the bug", vec![]),
        ("See https://a.example/x", vec![]),
        ("recalc__addition", vec![]),
        ("echo use calc__add", vec![]),
        ("refuse\nuse calc__add", vec![]),
    ];
    for (message, expected) in cases {
        assert_eq!(rounds(message, true), expected, "{message}");
    }
}

#[test]
fn rounds_come_one_after_the_other_or_at_once() {
    let named = |message: &str, parallel| -> Vec<Vec<String>> {
        let names = |round: Vec<(String, Value)>| round.into_iter().map(|(name, _)| name).collect();
        rounds(message, parallel).into_iter().map(names).collect()
    };
    let (add, time, search, open) = ("calc__add", "clock__get_time", "web_search", "open_page");
    let cases: [(&str, bool, Vec<Vec<&str>>); 9] = [
        ("use add and then use get_time", true, vec![vec![add], vec![time]]),
        ("use add and get_time at the same time", true, vec![vec![add, time]]),
        ("use add and get_time at the same time", false, vec![vec![add], vec![time]]),
        ("use add at the same time", true, vec![vec![add, add]]),
        ("use add twice", true, vec![vec![add], vec![add]]),
        ("use add 12 times", true, vec![vec![add]; 12]),
        ("use add 999 times in parallel", true, vec![vec![add; 100]]),
        ("use add, as calc__add is good", true, vec![vec![add]]),
        ("Search the web for cats and open the first result", true, vec![vec![search], vec![open]]),
    ];
    for (message, parallel, expected) in cases {
        assert_eq!(named(message, parallel), expected, "{message}");
    }
    let twice = "use add {\"a\": 1, \"b\": 2} then use add {\"a\": 3, \"b\": 4}";
    let sums: Vec<Value> = rounds(twice, true).into_iter().flatten().map(|(_, arguments)| arguments).collect();
    assert_eq!(sums, [json!({"a": 1, "b": 2}), json!({"a": 3, "b": 4})]);
    let opened = &rounds("Search the web for cats and open the first result", true)[1][0].1;
    assert_eq!(*opened, json!({"url": "https://a.example/1"}), "the first that came back");
}

#[test]
fn answers_quote_the_results_and_link_their_sources() {
    let output = "1. [A](https://a.example/1)";
    let cases = [
        (
            "look up cats",
            output,
            "The tool answered: \"1. [A](https://a.example/1)\"\n\nSources: [A](https://a.example/1)",
        ),
        ("use add", output, "The tool answered: \"1. [A](https://a.example/1)\""),
        ("use add at the same time", "3", "The tool answered: \"3\", \"3\""),
        ("use add", "an image", "The tool answered: \"an image\""),
        ("look up cats", "nothing found", "The tool answered: \"nothing found\""),
    ];
    for (message, output, expected) in cases {
        assert_eq!(played(message, output, true).1, expected, "{message}");
    }
}

#[test]
fn commands_and_forced_choices_know_these_tools_too() {
    let calls = |message: &str, choice: Value| -> Value {
        let body = json!({"model": "demo", "messages": [{"role": "user", "content": message}], "tools": tools(), "tool_choice": choice});
        let Step::Status { body, .. } = answer(body.to_string().as_bytes()).fold() else { panic!("{message}") };
        let whole: Value = serde_json::from_slice(&body).unwrap();
        whole["choices"][0]["message"]["tool_calls"][0]["function"].clone()
    };
    let forced = |name: &str| json!({"type": "function", "function": {"name": name}});
    let cases = [
        ("call add {\"a\":1}", json!("auto"), "calc__add", "{\"a\":1}"),
        ("What is new?", forced("web_search"), "web_search", "{\"queries\":[\"What is new\"]}"),
        ("use add with 1 and 2", json!("required"), "calc__add", "{\"a\":1,\"b\":2}"),
        ("use add with 1 and 2", forced("weather"), "weather", "{\"city\":\"example\"}"),
    ];
    for (message, choice, name, arguments) in cases {
        assert_eq!(calls(message, choice), json!({"name": name, "arguments": arguments}), "{message}");
    }
    assert_eq!(calls("call who {}", json!("auto")), Value::Null, "two servers have it");
    assert_eq!(calls("use add", json!("none")), Value::Null);
}

proptest! {
    #[test]
    fn every_message_has_an_end(
        pieces in proptest::collection::vec("use |call |search the web for |open |find |calc__add|`add`|web_search|https://é|'|\"|\\{|\\}|\\{\"a\":1\\}| twice| 7 times|\\PC{0,9}", 0..12),
    ) {
        played(&pieces.concat(), "https://a.example [x](", true);
    }
}
