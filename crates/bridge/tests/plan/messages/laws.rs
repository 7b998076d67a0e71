//! Any items give a request that such a server takes, and each turn extends the one before: what it has thought is only
//! good while nothing before it changes.

mod models;
mod sent;

use bridge::{Dialect, Lacking, Policy};
use proptest::prelude::*;
use serde_json::{Value, json};
use testkit::messages::check_request;
use testkit::{Offer, codex_session};

use super::{dialects, plan, plan_text, without_marks};
use crate::make::{Turn, conversation, items, request, text_of};
use crate::run::{MEND, Planned, TransparentSeal};

/// Every dialect, none of which refuses: the law is about what is sent.
fn willing() -> Vec<(String, Dialect)> {
    let mut all = dialects();
    for (_, dialect) in &mut all {
        dialect.request.content.lacking = Lacking::Degrade;
        dialect.request.tools.lacking_hosted = Lacking::Degrade;
        dialect.request.tools.max = None;
    }
    all
}

/// Everything that a thought of the next answer depends on, as it is rendered.
fn prefix(planned: &Planned) -> (Value, Value, Vec<Value>) {
    let part = |name: &str| without_marks(&planned.body[name]);
    (part("tools"), part("system"), part("messages").as_array().cloned().unwrap_or_default())
}

fn extends(name: &str, before: &Planned, after: &Planned) {
    let ((tools, system, old), (more_tools, same_system, new)) = (prefix(before), prefix(after));
    assert_eq!(tools, more_tools, "{name}");
    assert_eq!(system, same_system, "{name}");
    assert!(new.len() > old.len(), "{name}: {} after {}", new.len(), old.len());
    assert_eq!(old, new[..old.len()], "{name}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_items_give_a_request_that_is_taken(items in items()) {
        let text = text_of(&json!({"model": "m", "input": items, "tools": [{"type": "function", "name": "f"}]}));
        for (name, dialect) in willing() {
            let (planned, _) = match plan_text(&text, &dialect, MEND, &TransparentSeal) {
                Ok(planned) => planned,
                Err(invalid) => panic!("{name}: {invalid}: {text}"),
            };
            if let Err(problem) = check_request(&planned.body) {
                panic!("{name}: {problem}\n{text}\n{}", planned.body);
            }
        }
    }

    #[test]
    fn any_request_is_refused_or_taken(request in request()) {
        let text = text_of(&request);
        for (name, dialect) in dialects() {
            for policy in [Policy::default(), MEND, Policy { strict: true, repair_history: false }] {
                if let Ok((planned, _)) = plan_text(&text, &dialect, policy, &TransparentSeal)
                    && let Err(problem) = check_request(&planned.body)
                {
                    panic!("{name}: {problem}\n{text}\n{}", planned.body);
                }
            }
        }
    }

    #[test]
    fn each_turn_extends_the_one_before(turns in conversation("one"), late in prop::collection::vec(prop::bool::ANY, 6)) {
        for (name, dialect) in willing() {
            let mut history: Vec<Value> = Vec::new();
            let mut before: Option<Planned> = None;
            for (number, Turn { input, output }) in turns.iter().enumerate() {
                // The application speaks before or after the user, or not at all.
                let said = json!({"role": "developer", "content": format!("Late {number}.")});
                if number > 0 && late[number % late.len()] {
                    history.push(said.clone());
                }
                history.extend(input.iter().cloned());
                if number > 0 && !late[(number + 1) % late.len()] {
                    history.push(said);
                }
                let request = json!({
                    "model": "m", "instructions": "Be brief.", "input": history,
                    "tools": [{"type": "function", "name": "f"}, {"type": "custom", "name": "c"}],
                    "text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object", "properties": {"a": {"type": "string"}}}}},
                });
                let planned = plan(&request, &dialect, Policy::default()).unwrap();
                prop_assert_eq!(check_request(&planned.body), Ok(()), "{}", planned.body);
                if let Some(before) = &before {
                    extends(&name, before, &planned);
                }
                history.extend(output.iter().map(blocks));
                before = Some(planned);
            }
        }
    }

    #[test]
    fn what_was_thought_returns_byte_for_byte(
        thought in "[ -~]{0,20}", signature in "[A-Za-z0-9+/=]{0,24}", calls in 0..3_usize, space in " {0,2}",
    ) {
        // With spaces, escapes and an order of members that no writer of ours has.
        let raw = format!(
            r#"{{{space}"signature":{}, "thinking" :{},"type":"thinking"{space}}}"#,
            json!(signature), json!(thought).to_string().replace('/', "\\/")
        );
        let redacted = r#"{ "type":"redacted_thinking","data":"x\/y" }"#;
        let sealed = format!(r#"glass:{{"v":1,"family":"one","text":"","bag":[{raw},{redacted}]}}"#);
        let mut input = vec![
            json!({"role": "user", "content": "Hi"}),
            json!({"type": "reasoning", "summary": [], "encrypted_content": sealed}),
            json!({"role": "assistant", "content": "Well."}),
        ];
        for call in 0..calls {
            let id = format!("c{call}");
            input.push(json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"}));
            input.push(json!({"type": "function_call_output", "call_id": id, "output": "ok"}));
        }
        input.push(json!({"role": "user", "content": "And?"}));
        for (name, dialect) in dialects().into_iter().filter(|(name, _)| name != "bare") {
            let planned = plan(&json!({"model": "m", "input": input}), &dialect, MEND).unwrap();
            let body = String::from_utf8(planned.bytes).unwrap();
            prop_assert!(body.contains(&format!("[{raw},{redacted},")), "{}\n{}\n{}", name, raw, body);
            let mut foreign = dialect;
            foreign.family = "another".to_owned();
            let planned = plan(&json!({"model": "m", "input": input}), &foreign, MEND).unwrap();
            prop_assert!(!String::from_utf8(planned.bytes).unwrap().contains("thinking\","), "{}", name);
        }
    }
}

/// The same item, with what it thought as a block.
fn blocks(item: &Value) -> Value {
    let mut item = item.clone();
    if item["type"] == "reasoning" {
        let bag = json!([{"type": "thinking", "thinking": "So.", "signature": "c2ln"}]);
        item["encrypted_content"] =
            format!("glass:{}", json!({"v": 1, "family": "one", "text": "", "bag": bag})).into();
    }
    item
}

/// Who says what, block by block: a user who is interrupted goes on in the same message.
fn spoken(messages: &[Value]) -> Vec<(&Value, &Value)> {
    let mut spoken = Vec::new();
    for message in messages {
        let blocks = message["content"].as_array().unwrap_or_else(|| panic!("{message}"));
        spoken.extend(blocks.iter().map(|block| (&message["role"], block)));
    }
    spoken
}

/// The tools may grow where the client brings some; everything else stays, and nothing that was offered moves.
fn a_session_extends(offer: Offer, loads: usize) {
    let seal = |text: &str| {
        let bag = json!([{"type": "thinking", "thinking": text, "signature": "c2ln"}]);
        format!("glass:{}", json!({"v": 1, "family": "one", "text": "", "bag": bag}))
    };
    let requests: Vec<Value> = codex_session(20, offer, &seal);
    for (name, dialect) in willing() {
        let bodies: Vec<Planned> = requests.iter().map(|request| plan(request, &dialect, MEND).unwrap()).collect();
        let mut grown = 0;
        for pair in bodies.windows(2) {
            let ((tools, system, old), (more, same, new)) = (prefix(&pair[0]), prefix(&pair[1]));
            assert_eq!(check_request(&pair[1].body), Ok(()), "{name}");
            let (tools, more) = (tools.as_array().cloned(), more.as_array().cloned());
            let (tools, more) = (tools.unwrap_or_default(), more.unwrap_or_default());
            assert_eq!(tools, more[..tools.len()], "{name}");
            grown += usize::from(more.len() > tools.len());
            assert_eq!(system, same, "{name}");
            let (old, new) = (spoken(&old), spoken(&new));
            assert_eq!(old, new[..old.len()], "{name}");
        }
        assert!(grown <= loads, "{name}: {grown}");
    }
}

#[test]
fn a_codex_session_extends_itself() {
    a_session_extends(Offer::Listed, 0);
}

#[test]
fn so_does_one_that_searches_for_tools() {
    a_session_extends(Offer::Searched, 3);
}

#[test]
fn so_does_one_whose_tools_are_in_its_input() {
    a_session_extends(Offer::Additional, 1);
}

#[test]
fn all_recorded_requests_of_codex_are_taken() {
    let wanted = |name: &str| name.strip_prefix("request-").is_some_and(|rest| rest.contains(".json"));
    let Some(files) = testkit::shared_files("fixtures/codex", wanted) else { return };
    assert!(files.len() > 30, "{}", files.len());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for (name, dialect) in willing() {
            let (planned, _) = plan_text(&text, &dialect, MEND, &TransparentSeal).unwrap();
            assert_eq!(check_request(&planned.body), Ok(()), "{} on {name}", file.display());
        }
    }
}

/// Where a recorded conversation is cut at any place where the model is about to speak, the rest extends it.
#[test]
fn recorded_conversations_extend_themselves() {
    let wanted = |name: &str| name.strip_prefix("request-").is_some_and(|rest| rest.contains(".json"));
    let Some(files) = testkit::shared_files("fixtures/codex", wanted) else { return };
    let is_answer = |item: &Value| {
        let kind = item["type"].as_str().unwrap_or("message");
        item["role"] == "assistant" || kind == "reasoning" || kind.ends_with("_call")
    };
    let dialects = willing();
    let mut compared = 0;
    for file in files {
        let request: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let Some(items) = request["input"].as_array() else { continue };
        let cuts: Vec<usize> =
            (1..items.len()).filter(|at| is_answer(&items[*at]) && !is_answer(&items[at - 1])).collect();
        for (name, dialect) in dialects.iter().filter(|(name, _)| name.ends_with("claude-opus-5-5")) {
            let whole = prefix(&plan(&request, dialect, MEND).unwrap());
            for cut in &cuts {
                let mut part = request.clone();
                part["input"] = items[..*cut].to_vec().into();
                let (_, system, messages) = prefix(&plan(&part, dialect, MEND).unwrap());
                assert_eq!(system, whole.1, "{} {name} {cut}", file.display());
                assert_eq!(messages, whole.2[..messages.len()], "{} {name} {cut}", file.display());
                compared += 1;
            }
        }
    }
    assert!(compared > 20, "{compared}");
}
