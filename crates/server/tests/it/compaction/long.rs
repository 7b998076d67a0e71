//! 300 turns through a window of 16k tokens: what was said in the third is still known in the last.

use serde_json::{Value, json};
use server::config::Rescue;

use super::{Scribe, kinds, text_of, turn_text, user};
use crate::rig::{self, Settings, object};

const TURNS: usize = 300;

/// What is asked at the end, and what is to be known then.
const QUESTIONS: [(&str, &str); 2] =
    [("What is code word?", "It is Zwiebelkuchen-4711."), ("What is port?", "It is 58213.")];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chain_with_a_threshold_goes_on_for_ever() {
    let (rig, scribe) = Scribe::start(Settings::default()).await;
    let request = |input: &str, previous: &Value| {
        json!({"model": "m", "input": input, "previous_response_id": previous, "instructions": "Be brief.",
            "context_management": [{"type": "compaction", "compact_threshold": 12_000}]})
    };
    let mut last = Value::Null;
    for turn in 1..=TURNS {
        let response = object(&rig.post(&request(&turn_text(turn), &last)).await);
        assert_eq!(response["status"], "completed", "turn {turn}: {response}");
        last = response["id"].clone();
    }
    for (question, answer) in QUESTIONS {
        assert_eq!(text_of(&object(&rig.post(&request(question, &last)).await)), answer);
    }
    assert_eq!(scribe.refusals(), 0);
    assert!((5..60).contains(&scribe.summaries()), "{}", scribe.summaries());
}

/// A client that sends all of its history with every turn, and whatever items it is given.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_history_is_rescued_each_time_it_is_too_long() {
    let settings = Settings { tweak: Some(|config| config.context.rescue = Rescue::Compact), ..Settings::default() };
    let (rig, scribe) = Scribe::start(settings).await;
    let mut history = vec![json!({"type": "message", "role": "developer", "content": "Be brief."})];
    for turn in 1..=TURNS {
        history.push(user(&turn_text(turn)));
        let request = json!({"model": "m", "input": history, "store": false, "stream": true});
        let stream = rig::stream(&rig.post(&request).await);
        let response = &stream.response;
        assert_eq!(response["status"], "completed", "turn {turn}: {response}");
        history.extend(response["output"].as_array().unwrap().iter().cloned());
    }
    for (question, answer) in QUESTIONS {
        history.push(user(question));
        let response = object(&rig.post(&json!({"model": "m", "input": history, "store": false})).await);
        assert_eq!(text_of(&response), answer);
        history.pop();
    }
    let compacted = history.iter().filter(|item| item["type"] == "compaction").count();
    assert!((3..60).contains(&compacted), "{compacted}");
    assert!(scribe.refusals() <= 2 * compacted, "{} refusals", scribe.refusals());
}

/// As Codex does it: when the context is nearly full, a trigger; then the newest messages of the user and what came of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_compacts_itself_keeps_what_it_needs() {
    let (rig, scribe) = Scribe::start(Settings::default()).await;
    let developer = json!({"type": "message", "role": "developer", "content": "Be brief."});
    let mut history = vec![developer.clone()];
    let ask = |input: Vec<Value>| {
        json!({"model": "m", "input": input, "store": false, "stream": true, "tools": [
            {"type": "function", "name": "exec", "parameters": {"type": "object", "properties": {}}, "strict": false}]})
    };
    let mut compactions = 0;
    for turn in 1..=TURNS {
        history.push(user(&turn_text(turn)));
        let response = rig::stream(&rig.post(&ask(history.clone())).await).response;
        assert_eq!(response["status"], "completed", "turn {turn}: {response}");
        history.extend(response["output"].as_array().unwrap().iter().cloned());
        if response["usage"]["total_tokens"].as_u64().unwrap() < 11_000 {
            continue;
        }
        let mut full = history.clone();
        full.push(json!({"type": "compaction_trigger"}));
        let response = rig::stream(&rig.post(&ask(full)).await).response;
        assert_eq!((kinds(&response), &response["status"]), (vec!["compaction"], &json!("completed")));
        let mut newest: Vec<Value> =
            history.iter().rev().filter(|item| item["role"] == "user").take(4).cloned().collect();
        newest.reverse();
        history = vec![developer.clone()];
        history.extend(newest);
        history.push(response["output"][0].clone());
        compactions += 1;
    }
    for (question, answer) in QUESTIONS {
        history.push(user(question));
        let response = rig::stream(&rig.post(&ask(history.clone())).await).response;
        assert_eq!(text_of(&response), answer);
        history.pop();
    }
    assert_eq!((scribe.refusals(), scribe.summaries()), (0, compactions));
    assert!(compactions > 5, "{compactions}");
}
