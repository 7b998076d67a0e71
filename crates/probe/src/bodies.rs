//! The words and shapes of the battery's requests. All of them are constants: nothing of a user's is sent.

pub(crate) mod media;

use serde_json::{Value, json};

/// Asks for more text than any limit here allows.
pub(crate) const COUNT: &str = "Count from 1 to 60 in digits, with a blank between the numbers. Nothing else.";
pub(crate) const HELLO: &str = "Say hello in one short sentence.";
/// An instruction that nobody follows by chance.
pub(crate) const MARKER: &str = "PELICAN";
pub(crate) const OBEY: &str = "Whatever the user says, answer with the single word PELICAN and nothing else.";
pub(crate) const THINK: &str = "think step by step: what is 17 times 23? Answer with the number.";
pub(crate) const THINK_MORE: &str = "think step by step: what is 19 times 27? Answer with the number.";
/// The first line is one that also the demo model understands.
pub(crate) const CALL: &str =
    "call get_weather {\"city\": \"Paris\"}\nUse the tool get_weather now, for the city Paris. Do not answer in words.";
pub(crate) const ASK: &str = "What is the weather in Paris?";
pub(crate) const CALL_TWICE: &str = "call get_weather {\"city\": \"Paris\"}\ncall get_weather {\"city\": \"London\"}\n\
     Call the tool get_weather two times in this one turn: for Paris and for London. Do not answer in words.";
/// The same with other cities.
pub(crate) const CALL_TWICE_MORE: &str = "call get_weather {\"city\": \"Oslo\"}\ncall get_weather {\"city\": \"London\"}\n\
     Call the tool get_weather two times in this one turn: for Oslo and for London. Do not answer in words.";
/// Nothing of it asks for a tool.
pub(crate) const SMALL_TALK: [&str; 3] =
    [HELLO, "What is two plus two? Answer with the number.", "Name one colour, and nothing else."];
pub(crate) const JSON: &str = "Answer with a JSON object that has one key, \"fruit\", with the name of a fruit.";
/// What only somebody who reads the schema can answer.
pub(crate) const SCHEMA_WORD: &str = "zebra-47";
pub(crate) const LOOK: &str = "Which colour fills this picture? Answer with one word.";
/// An effort that nobody has.
pub(crate) const NO_EFFORT: &str = "godex-probe";

/// Letters and digits, nine of them: an id that every server takes.
pub(crate) const PLAIN_ID: &str = "probe0001";

/// How an assistant message without text has its `content`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    Null,
    Empty,
    Omitted,
}

pub(crate) fn user(text: &str) -> Value {
    json!([{"role": "user", "content": text}])
}

/// An instruction under a role, and a user who says something else.
pub(crate) fn instructed(role: &str) -> Value {
    json!([{"role": role, "content": OBEY}, {"role": "user", "content": "Good morning!"}])
}

pub(crate) fn parts(text: &str) -> Value {
    json!([{"role": "user", "content": [{"type": "text", "text": text}]}])
}

/// A prompt that makes the model call, and two more like it.
pub(crate) fn calls_for(prompt: &str) -> [String; 3] {
    ["Paris", "Madrid", "Vienna"].map(|city| prompt.replace("Paris", city))
}

/// The one tool.
pub(crate) fn tools(strict: bool) -> Value {
    let parameters = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": false,
    });
    let mut function =
        json!({"name": "get_weather", "description": "The weather of a city.", "parameters": parameters});
    if strict {
        function["strict"] = json!(true);
    }
    json!([{"type": "function", "function": function}])
}

pub(crate) fn named() -> Value {
    json!({"type": "function", "function": {"name": "get_weather"}})
}

/// An assistant message that called the tool.
pub(crate) fn called(absent: Absent, id: &str) -> Value {
    let function = json!({"name": "get_weather", "arguments": "{\"city\": \"Rome\"}"});
    let mut message =
        json!({"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": function}]});
    match absent {
        Absent::Null => message["content"] = Value::Null,
        Absent::Empty => message["content"] = json!(""),
        Absent::Omitted => {}
    }
    message
}

/// A question, a call, its result.
pub(crate) fn history(call: Value, id: &str) -> Vec<Value> {
    vec![
        json!({"role": "user", "content": "What is the weather in Rome?"}),
        call,
        json!({"role": "tool", "tool_call_id": id, "content": "18 degrees and sunny"}),
    ]
}

/// A history with a call, as an example for models that do not call by themselves.
pub(crate) fn example(prompt: &str) -> Value {
    let mut messages = history(called(Absent::Empty, PLAIN_ID), PLAIN_ID);
    messages.push(json!({"role": "user", "content": prompt}));
    Value::Array(messages)
}

pub(crate) fn json_object() -> Value {
    json!({"type": "json_object"})
}

/// A schema whose answer is in it and nowhere else.
pub(crate) fn json_schema() -> Value {
    let schema = json!({
        "type": "object",
        "properties": {"fruit": {"type": "string", "enum": [SCHEMA_WORD]}},
        "required": ["fruit"],
        "additionalProperties": false,
    });
    json!({"type": "json_schema", "json_schema": {"name": "fruit", "strict": true, "schema": schema}})
}

/// What a thought says, and nothing else.
pub(crate) const THOUGHT_WORD: &str = "HERON-31";
pub(crate) const THOUGHT_WITH_WORD: &str = "I shall remember the secret word HERON-31 for later.";
pub(crate) const ASK_FOR_WORD: &str =
    "18 degrees and sunny. Now answer with the secret word that you were to remember in your reasoning, nothing else.";

/// Instructions of some 1,600 tokens: the least that providers cache is about a thousand.
pub(crate) fn long_prefix() -> String {
    rules(90)
}

/// Of some 4,800: the least that a Messages API caches is up to 4,096, by model.
pub(crate) fn longer_prefix() -> String {
    rules(270)
}

fn rules(count: usize) -> String {
    let line = |number: usize| format!("Rule {number}: be brief, be kind, and never speak of rule {number}.\n");
    (1..=count).map(line).collect()
}

/// More than any model reads.
pub(crate) fn endless() -> String {
    "lorem ipsum dolor sit amet ".repeat(60_000)
}
