//! Laws under property testing: any items give a transcript that a pedant accepts, and turns extend each other.

use bridge::{Dialect, Hosting, Lacking, Policy, SearchFunctions};
use proptest::prelude::*;
use serde_json::json;
use testkit::transcript;

use crate::dialects::{all, strictness};
use crate::forward::forward_hosted;
use crate::make::{Turn, conversation, items, request, text_of};
use crate::marks::without_marks;
use crate::run::{MEND, Planned, TransparentSeal, plan_hosted, plan_text, plan_with};

/// Every dialect, none of which refuses: the law is about what is sent.
fn willing() -> Vec<(String, Dialect)> {
    let mut dialects = all();
    for (_, dialect) in &mut dialects {
        dialect.request.content.lacking = Lacking::Degrade;
        dialect.request.tools.lacking_hosted = Lacking::Degrade;
        dialect.request.tools.max = None;
    }
    dialects
}

/// The messages' bytes, without what closes the body, and without marks: those move from turn to turn.
fn messages(planned: &Planned) -> Vec<u8> {
    let start = planned.bytes.windows(12).position(|window| window == b"\"messages\":[").unwrap();
    let (messages, marks) = without_marks(&planned.bytes[start..planned.bytes.len() - 2]);
    assert!(marks <= 4, "{marks} marks");
    messages
}

/// What the law below has found.
#[test]
fn an_empty_output_beside_an_image_is_no_part() {
    let image = json!([{"type": "input_image", "image_url": "data:image/png;base64,AA=="}]);
    let text = text_of(&json!({"model": "m", "input": [
        {"type": "function_call_output", "call_id": "call_0", "output": ""},
        {"type": "function_call_output", "call_id": "call_0", "output": image},
        {"type": "function_call", "call_id": "call_0", "name": "f", "arguments": "{}"}]}));
    for (name, dialect) in willing() {
        let planned = plan_text(&text, &[], &dialect, MEND, &TransparentSeal).unwrap();
        let problems = transcript::check(&planned.body, strictness(&dialect));
        assert!(problems.is_empty(), "{name}: {problems:?}\n{}", planned.body["messages"]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_items_give_a_lawful_transcript(items in items()) {
        let text = text_of(&json!({"model": "m", "input": items}));
        for (name, dialect) in willing() {
            let planned = match plan_text(&text, &[], &dialect, MEND, &TransparentSeal) {
                Ok(planned) => planned,
                Err(invalid) => panic!("{name}: {invalid}: {text}"),
            };
            let problems = transcript::check(&planned.body, strictness(&dialect));
            prop_assert!(problems.is_empty(), "{}: {:?}\n{}\n{}", name, problems, text, planned.body["messages"]);
            let again = plan_text(&text, &[], &dialect, MEND, &TransparentSeal).unwrap();
            prop_assert_eq!(planned.bytes, again.bytes);
        }
    }

    #[test]
    fn so_they_do_with_tools_that_godex_runs(items in items()) {
        let text = text_of(&json!({"model": "m", "input": items, "tools": [
            {"type": "web_search"}, {"type": "function", "name": "web_search"}, {"type": "mcp", "server_label": "s"}]}));
        let hosting = Hosting { mcp: true, web_search: Some(SearchFunctions { pages: true }), ..Hosting::default() };
        for (name, dialect) in willing() {
            let planned = match plan_hosted(&text, &[], &dialect, MEND, &TransparentSeal, hosting) {
                Ok(planned) => planned,
                Err(invalid) => panic!("{name}: {invalid}: {text}"),
            };
            let problems = transcript::check(&planned.body, strictness(&dialect));
            prop_assert!(problems.is_empty(), "{}: {:?}\n{}\n{}", name, problems, text, planned.body);
            prop_assert!(!planned.body.to_string().contains("godex_output"), "{}: {}", name, planned.body);
        }
        let request = json!({"model": "m", "input": items, "tools": [{"type": "web_search"}, {"type": "mcp", "server_label": "s"}]});
        for hosting in [hosting, Hosting::default()] {
            let sent = forward_hosted(&request.to_string(), &[], &Dialect::default(), hosting).unwrap();
            prop_assert!(!sent.text.contains("godex_output"), "{}", sent.text);
        }
    }

    #[test]
    fn any_request_is_refused_or_lawful(request in request()) {
        let text = text_of(&request);
        for (name, dialect) in all() {
            for policy in [Policy::default(), MEND, Policy { strict: true, repair_history: false }] {
                if let Ok(planned) = plan_text(&text, &[], &dialect, policy, &TransparentSeal) {
                    let problems = transcript::check(&planned.body, strictness(&dialect));
                    prop_assert!(problems.is_empty(), "{}: {:?}\n{}", name, problems, text);
                }
            }
        }
    }

    #[test]
    fn the_past_and_the_input_are_one_conversation(items in items(), cut in 0..14_usize) {
        let whole = json!({"model": "m", "input": items});
        let (past, rest) = items.split_at(cut.min(items.len() - 1));
        let parted = json!({"model": "m", "input": rest});
        for (name, dialect) in willing() {
            let whole = plan_with(&whole, &[], &dialect, MEND, &TransparentSeal).unwrap();
            let parted = plan_with(&parted, past, &dialect, MEND, &TransparentSeal).unwrap();
            prop_assert_eq!(messages(&whole), messages(&parted), "{}", name);
        }
    }

    #[test]
    fn each_turn_extends_the_one_before(turns in conversation("openai")) {
        for (name, mut dialect) in willing() {
            dialect.family = "openai".to_owned();
            let mut history: Vec<serde_json::Value> = Vec::new();
            let mut before: Option<Planned> = None;
            for Turn { input, output } in &turns {
                history.extend(input.iter().cloned());
                let request = json!({
                    "model": "m", "instructions": "Be brief.", "input": history,
                    "tools": [{"type": "function", "name": "f"}, {"type": "custom", "name": "c"}],
                    "text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}},
                });
                let planned = plan_with(&request, &[], &dialect, Policy::default(), &TransparentSeal).unwrap();
                if let Some(before) = &before {
                    let (old, new) = (messages(before), messages(&planned));
                    let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    prop_assert!(new.starts_with(&old), "{name}\n{}\n{}", show(&old), show(&new));
                    prop_assert_eq!(&before.body["tools"], &planned.body["tools"]);
                }
                history.extend(output.iter().cloned());
                before = Some(planned);
            }
        }
    }
}
