//! Requests that the provider refuses as too long: told, rescued, or truncated.

use serde_json::{Value, json};
use server::config::Rescue;

use super::{Scribe, kinds, text_of, texts, turn_text, user};
use crate::rig::{self, Settings, object};

fn rescuing() -> Settings {
    Settings { tweak: Some(|config| config.context.rescue = Rescue::Compact), ..Settings::default() }
}

fn history(turns: usize, question: &str) -> Vec<Value> {
    let mut items = vec![json!({"role": "developer", "content": "Be brief."})];
    for turn in 1..=turns {
        items.extend([user(&turn_text(turn)), json!({"role": "assistant", "content": "Noted."})]);
    }
    items.push(user(question));
    items
}

#[tokio::test]
async fn nothing_is_done_unless_the_operator_wants_it() {
    let (rig, scribe) = Scribe::start(Settings::default()).await;
    let request = json!({"model": "m", "input": history(100, "What is port?")});
    let refused = rig::error(&rig.post(&request).await);
    assert_eq!((refused.status, refused.code.as_str()), (400, "context_length_exceeded"));
    assert_eq!((scribe.refusals(), scribe.summaries()), (1, 0));
}

/// A history of many windows is summarised piece by piece.
#[tokio::test]
async fn a_refused_request_is_compacted_and_sent_once_more() {
    let (rig, scribe) = Scribe::start(rescuing()).await;
    let request = json!({"model": "m", "input": history(300, "What is port?")});
    let (whole, streamed) = rig.both(&request).await;
    for response in [object(&whole), rig::stream(&streamed).response] {
        assert_eq!((kinds(&response), text_of(&response)), (vec!["compaction", "message"], "It is 58213.".to_owned()));
        let next = json!({"model": "m", "input": "What is code word?", "previous_response_id": response["id"]});
        let next = object(&rig.post(&next).await);
        assert_eq!((kinds(&next), text_of(&next)), (vec!["message"], "It is Zwiebelkuchen-4711.".to_owned()));
    }
    assert!(scribe.summaries() >= 4, "{}", scribe.summaries());
    assert_eq!(scribe.refusals(), 2, "it said how much it takes");
}

/// A tool's output that is larger than the window by itself.
#[tokio::test]
async fn one_item_may_be_larger_than_the_window() {
    let (rig, _) = Scribe::start(rescuing()).await;
    let output = format!("FACT: first=1\n{}\nFACT: last=2", "x ".repeat(200_000));
    for question in ["What is first?", "What is last?"] {
        let input = json!([user("Look."), {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": output}, user(question)]);
        let response = object(&rig.post(&json!({"model": "m", "input": input})).await);
        assert!(text_of(&response).starts_with("It is "), "{response}");
    }
}

#[tokio::test]
async fn what_cannot_be_mended_stays_what_it_was() {
    let (rig, scribe) = Scribe::with_window(100, rescuing()).await;
    let request = json!({"model": "m", "input": history(20, "What is port?")});
    let (whole, streamed) = rig.both(&request).await;
    assert_eq!(rig::error(&whole).code, "context_length_exceeded");
    let response = rig::stream(&streamed).response;
    assert_eq!(
        (&response["status"], &response["error"]["code"]),
        (&json!("failed"), &json!("context_length_exceeded"))
    );
    assert_eq!(scribe.summaries(), 0);
    assert!(scribe.refusals() < 64, "{}", scribe.refusals());
}

/// With a window that is known, nobody has to refuse anything; the beginning moves seldom.
#[tokio::test]
async fn the_oldest_turns_are_left_out_where_the_window_is_known() {
    let spec = "{extends: openai-compatible, context_window: 16384}";
    let (rig, scribe) = Scribe::start(Settings { spec, ..Settings::default() }).await;
    let mut firsts = Vec::new();
    for turns in 80..140 {
        let request = json!({"model": "m", "input": history(turns, "Go on."), "truncation": "auto"});
        let answer = rig.post(&request).await;
        assert!(answer.header("x-godex-compat").is_some_and(|notes| notes.contains("truncation=degraded")));
        object(&answer);
        let said = texts(&rig.upstream.requests().last().unwrap().json());
        assert_eq!((said[0].as_str(), said.last().unwrap().as_str()), ("Be brief.", "Go on."));
        firsts.push(said[1].clone());
    }
    firsts.dedup();
    assert!(firsts.len() <= 8, "{}", firsts.len());
    assert_eq!((scribe.refusals(), scribe.summaries()), (0, 0));
}

#[tokio::test]
async fn where_it_is_not_known_what_is_refused_is_sent_again_with_less() {
    let (rig, scribe) = Scribe::start(Settings::default()).await;
    let request = json!({"model": "m", "input": history(100, "What is port?"), "truncation": "auto"});
    let (whole, streamed) = rig.both(&request).await;
    for response in [object(&whole), rig::stream(&streamed).response] {
        assert_eq!(text_of(&response), "I do not know.");
    }
    assert!((1..=4).contains(&scribe.refusals()), "{}", scribe.refusals());
    // The newest turn is never left out.
    let long = user(&"x ".repeat(100_000));
    let refused = rig::error(&rig.post(&json!({"model": "m", "input": [user("a"), long], "truncation": "auto"})).await);
    assert_eq!(refused.code, "context_length_exceeded");
}

/// The pieces of a long history end between calls, never between a call and its output.
#[tokio::test]
async fn a_piece_has_whole_calls() {
    let (rig, scribe) = Scribe::with_window(8000, rescuing()).await;
    let mut input = vec![user("Go.")];
    for turn in 0..24 {
        let (a, b) = (format!("a{turn}"), format!("b{turn}"));
        let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "get", "arguments": "{}"});
        let output = |id: &str, size: usize| json!({"type": "function_call_output", "call_id": id, "output": format!("RESULT {}", "word ".repeat(size))});
        // One of them is too much for a piece by itself.
        let size = if turn == 9 { 9000 } else { 500 };
        input.extend([call(&a), call(&b), output(&a, size), output(&b, size)]);
    }
    input.push(user("What is port?"));
    object(&rig.post(&json!({"model": "m", "input": input})).await);
    assert!(scribe.summaries() > 2, "{}", scribe.summaries());
    for received in rig.upstream.requests() {
        let body = received.json().to_string();
        assert!(!body.contains("unavailable") && !body.contains("not in this conversation"), "{body}");
    }
}
