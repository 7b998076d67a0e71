//! Marks for a cache that must be asked for: where they are, and that nothing else moves with them.

use bridge::{CacheMarks, Dialect};
use serde_json::{Value, json};

use crate::run::{Planned, plan};

/// As it is written.
pub(crate) const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// The bytes without marks, and how many there were. Texts have their quotes escaped: they cannot look like one.
pub(crate) fn without_marks(bytes: &[u8]) -> (Vec<u8>, usize) {
    let text = str::from_utf8(bytes).unwrap();
    (text.replace(MARK, "").into_bytes(), text.matches(MARK).count())
}

fn marking(rule: CacheMarks) -> Dialect {
    let mut dialect = Dialect::default();
    dialect.request.messages.cache_marks = rule;
    dialect
}

fn planned(input: &Value, rule: CacheMarks) -> Planned {
    let tools = json!([{"type": "function", "name": "f"}]);
    plan(&json!({"model": "m", "instructions": "Be brief.", "input": input, "tools": tools}), &marking(rule)).unwrap()
}

/// The places of the messages that are marked, each of which has its mark on its last text.
fn marked(planned: &Planned) -> Vec<usize> {
    let has = |message: &Value| {
        let parts = message["content"].as_array().cloned().unwrap_or_default();
        let marks: Vec<usize> = (0..parts.len()).filter(|at| !parts[*at]["cache_control"].is_null()).collect();
        let text = parts.iter().rposition(|part| part["type"] == "text" && part["text"] != "");
        assert!(marks.is_empty() || marks == [text.unwrap()], "{message}");
        !marks.is_empty()
    };
    let messages = planned.messages().iter().enumerate();
    messages.filter(|(_, message)| has(message)).map(|(at, _)| at).collect()
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn call(id: &str) -> [Value; 2] {
    [
        json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"}),
        json!({"type": "function_call_output", "call_id": id, "output": "ok"}),
    ]
}

#[test]
fn the_instructions_the_last_turns_end_and_this_turns_are_marked() {
    let image = json!({"type": "input_image", "image_url": "data:image/png;base64,AA=="});
    let said = json!({"role": "assistant", "content": "So far."});
    let [asked, done] = call("a");
    let both = [call("a"), call("b")].concat();
    // 0 are the instructions.
    let cases = [
        (vec![user("Hi")], vec![0, 1], vec![0, 1]),
        (vec![user("Hi"), said.clone(), user("And?")], vec![0, 1, 3], vec![0, 1, 3]),
        // A call without a word cannot be marked.
        (vec![user("Hi"), asked.clone(), done.clone()], vec![0, 1, 3], vec![0, 1]),
        (vec![user("Hi"), said.clone(), asked.clone(), done.clone()], vec![0, 1, 3], vec![0, 1, 2]),
        ([vec![user("Hi"), asked, done], call("b").to_vec()].concat(), vec![0, 3, 5], vec![0, 1]),
        ([vec![user("Hi")], both].concat(), vec![0, 3, 5], vec![0, 1]),
        // An image alone has no text, and the text before one is marked.
        (vec![user("Hi"), json!({"role": "user", "content": [image]})], vec![0, 1], vec![0, 1]),
        (
            vec![json!({"role": "user", "content": [{"type": "input_text", "text": "See:"}, image]})],
            vec![0, 1],
            vec![0, 1],
        ),
        (vec![json!({"role": "developer", "content": "Also this."}), user("Hi")], vec![0, 1], vec![0, 1]),
        (vec![user("Hi"), said], vec![0, 1, 2], vec![0, 1, 2]),
    ];
    for (input, all, not_tools) in cases {
        let input = Value::from(input);
        assert_eq!(marked(&planned(&input, CacheMarks::All)), all, "{input}");
        assert_eq!(marked(&planned(&input, CacheMarks::NotTools)), not_tools, "{input}");
        assert_eq!(marked(&planned(&input, CacheMarks::None)), [0; 0], "{input}");
    }
}

#[test]
fn what_has_no_text_has_no_mark() {
    let mut dialect = marking(CacheMarks::All);
    dialect.request.messages.empty_text = bridge::EmptyText::Keep;
    let planned = plan(&json!({"model": "m", "input": [user("Hi"), user("")]}), &dialect).unwrap();
    assert_eq!(marked(&planned), [0]);
    assert_eq!(planned.messages()[1]["content"], json!([{"type": "text", "text": ""}]));
}
