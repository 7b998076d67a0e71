//! Custom tools with a grammar: inputs are checked, mended where little is wrong, asked for once more where that is
//! wanted, and else delivered as they are.

use serde_json::{Value, json};
use server::config::GrammarPolicy;
use testkit::{Answer, Script};

use crate::chat;
use crate::rig::{Rig, Settings, object, stream};

const PATCH: &str = r#"
start: "*** Begin Patch" NL part+ "*** End Patch" NL?
part: "*** Update File: " NAME NL (("+" | "-" | " ") REST NL)+
NAME: /.+/
REST: /.*/
NL: /\n/
"#;
const SOUND: &str = "*** Begin Patch\n*** Update File: a\n-x\n+y\n*** End Patch\n";
const OPEN: &str = "*** Begin Patch\n*** Update File: a\n-x\n+y\n";
const WRONG: &str = "*** Begin Patch\n*** Update File: a\nx\n*** End Patch\n";
const FENCED: &str = "```diff\n*** Begin Patch\n*** Update File: a\n-x\n+y\n*** End Patch\n```\n";
const DIFF: &str = "--- a\n+++ a\n-x\n+y\n";

fn request(syntax: &str, definition: &str) -> Value {
    let format = json!({"type": "grammar", "syntax": syntax, "definition": definition});
    let tool = json!({"type": "custom", "name": "apply_patch", "format": format});
    json!({"model": "m", "input": "Patch it.", "tools": [tool]})
}

/// Calls with these inputs, whole or streamed in pieces of this size.
fn whole(inputs: &[&str]) -> Script {
    let call = |(index, input): (usize, &&str)| {
        let arguments = json!({"input": input}).to_string();
        json!({"id": format!("call_{index}"), "type": "function", "function": {"name": "apply_patch", "arguments": arguments}})
    };
    let mut completion = chat::completion();
    let calls: Vec<Value> = inputs.iter().enumerate().map(call).collect();
    completion["choices"][0] = json!({"index": 0, "finish_reason": "tool_calls",
        "message": {"role": "assistant", "content": null, "tool_calls": calls}});
    Script::json(200, &completion)
}

fn streamed(input: &str) -> Script {
    let head =
        json!({"index": 0, "id": "call_0", "type": "function", "function": {"name": "apply_patch", "arguments": ""}});
    let arguments = json!({"input": input}).to_string();
    let characters: Vec<char> = arguments.chars().collect();
    let pieces = characters.chunks(6).map(|piece| {
        let piece: String = piece.iter().collect();
        chat::chunk(&json!({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}), None)
    });
    let mut chunks = vec![chat::text("I patch it."), chat::chunk(&json!({"tool_calls": [head]}), None)];
    chunks.extend(pieces);
    chunks.push(chat::chunk(&json!({}), Some("tool_calls")));
    Script::sse(&chunks)
}

async fn rig(policy: GrammarPolicy, answer: Script) -> Rig {
    let tweak: fn(&mut server::config::Config) = match policy {
        GrammarPolicy::Off => |config| config.tools.grammar = GrammarPolicy::Off,
        GrammarPolicy::Check => |config| config.tools.grammar = GrammarPolicy::Check,
        GrammarPolicy::Reask => |config| config.tools.grammar = GrammarPolicy::Reask,
    };
    Rig::with(answer, Settings { tweak: Some(tweak), ..Settings::default() }).await
}

/// The inputs of the calls in a response.
fn inputs(response: &Value) -> Vec<String> {
    let calls = response["output"].as_array().unwrap().iter().filter(|item| item["type"] == "custom_tool_call");
    calls.map(|call| call["input"].as_str().unwrap().to_owned()).collect()
}

fn noted(answer: &Answer) -> &str {
    answer.header("x-godex-compat").unwrap_or_default()
}

#[tokio::test]
async fn inputs_are_checked_and_mended() {
    use GrammarPolicy::{Check, Off, Reask};
    for (policy, input, expected, note) in [
        (Check, SOUND, SOUND, None),
        (Check, OPEN, SOUND, Some("tool_calls=repaired")),
        (Check, FENCED, SOUND, Some("tool_calls=repaired")),
        (Check, WRONG, WRONG, Some("tool_calls=degraded")),
        (Reask, OPEN, SOUND, Some("tool_calls=repaired")),
        (Off, OPEN, OPEN, None),
        (Off, WRONG, WRONG, None),
    ] {
        let rig = rig(policy, whole(&[input])).await;
        let answer = rig.post(&request("lark", PATCH)).await;
        assert_eq!(inputs(&object(&answer)), [expected], "{policy:?} {input:?}");
        let found = noted(&answer);
        match note {
            Some(note) => assert!(found.contains(note), "{policy:?} {input:?}: {found}"),
            None => assert!(!found.contains("tool_calls"), "{policy:?} {input:?}: {found}"),
        }
        assert_eq!(rig.upstream.requests().len(), 1, "{policy:?} {input:?}");
    }
}

/// What fits is seen while it comes; what does not waits for its repair.
#[tokio::test]
async fn streamed_inputs_are_previewed_and_mended() {
    let mut body = request("lark", PATCH);
    body["stream"] = json!(true);
    for (input, expected, previewed) in
        [(SOUND, SOUND, true), (OPEN, SOUND, true), (FENCED, SOUND, false), (WRONG, WRONG, true), (DIFF, DIFF, false)]
    {
        let rig = rig(GrammarPolicy::Check, streamed(input)).await;
        let stream = stream(&rig.post(&body).await);
        assert_eq!(inputs(&stream.response), [expected], "{input:?}");
        let deltas = stream.events.iter().filter(|(kind, _)| kind == "response.custom_tool_call_input.delta");
        let deltas: Vec<&str> = deltas.filter_map(|(_, event)| event["delta"].as_str()).collect();
        assert_eq!(deltas.concat(), expected, "{input:?}");
        assert_eq!(deltas.len() > 3, previewed, "{input:?}: {deltas:?}");
    }
}

#[tokio::test]
async fn a_call_that_does_not_fit_is_asked_for_once_more() {
    let rig = rig(GrammarPolicy::Reask, whole(&[WRONG])).await;
    rig.upstream.queue(whole(&[WRONG]));
    rig.upstream.queue(whole(&[SOUND]));
    let answer = rig.post(&request("lark", PATCH)).await;
    let response = object(&answer);
    assert_eq!(inputs(&response), [SOUND]);
    assert_eq!(response["usage"]["total_tokens"], 14);
    assert!(noted(&answer).contains("tool_calls=repaired"), "{}", noted(&answer));
    let asked = rig.upstream.requests();
    assert_eq!(asked.len(), 2);
    // An ordinary exchange: the call as it was made, and what is wrong with it.
    let messages = asked[1].json()["messages"].clone();
    let [.., call, problem] = &messages.as_array().unwrap()[..] else { panic!("{messages}") };
    let arguments = call["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(arguments).unwrap(), json!({"input": WRONG}));
    assert_eq!((&problem["role"], &problem["tool_call_id"]), (&json!("tool"), &call["tool_calls"][0]["id"]));
    assert!(problem["content"].as_str().unwrap().contains("line 3, column 1: 'x' does not fit"), "{problem}");

    // No more than once: then it is delivered as it is.
    let answer = rig.post(&request("lark", PATCH)).await;
    assert_eq!(inputs(&object(&answer)), [WRONG]);
    assert_eq!(rig.upstream.requests().len(), 4);
}

#[tokio::test]
async fn a_streamed_call_is_asked_for_once_more_while_nobody_has_seen_it() {
    let mut body = request("lark", PATCH);
    body["stream"] = json!(true);
    let rig = rig(GrammarPolicy::Reask, streamed(SOUND)).await;
    for (first, expected, asked) in [(DIFF, SOUND, 2), (WRONG, WRONG, 1), (FENCED, SOUND, 1)] {
        let before = rig.upstream.requests().len();
        rig.upstream.queue(streamed(first));
        let stream = stream(&rig.post(&body).await);
        assert_eq!(inputs(&stream.response), [expected], "{first:?}");
        let texts =
            stream.response["output"].as_array().unwrap().iter().filter(|item| item["type"] == "message").count();
        assert_eq!((rig.upstream.requests().len() - before, texts), (asked, asked), "{first:?}");
    }
}

/// Without a second answer the first one counts.
#[tokio::test]
async fn what_cannot_be_asked_for_again_is_delivered() {
    let rig = rig(GrammarPolicy::Reask, Script::json(400, &json!({"error": {"message": "no"}}))).await;
    for stream_wanted in [false, true] {
        rig.upstream.queue(if stream_wanted { streamed(DIFF) } else { whole(&[DIFF]) });
        let mut body = request("lark", PATCH);
        body["stream"] = json!(stream_wanted);
        let answer = rig.post(&body).await;
        let response = if stream_wanted { stream(&answer).response } else { object(&answer) };
        assert_eq!((&response["status"], inputs(&response)), (&json!("completed"), vec![DIFF.to_owned()]));
    }
}

/// A second answer that breaks off, or has nothing in it, is none, as long as nobody has seen anything of it.
#[tokio::test]
async fn without_a_good_second_answer_the_first_one_counts() {
    let call = |arguments: &str| {
        json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function",
            "function": {"name": "apply_patch", "arguments": arguments}}]})
    };
    let half = || Script::sse(&[chat::chunk(&call("{\"input\":\"*** Begin"), None)]);
    let empty = || Script::sse(&[chat::chunk(&json!({"content": ""}), Some("stop"))]);
    let nothing = || {
        let mut completion = chat::completion();
        completion["choices"][0]["message"]["content"] = json!("");
        Script::json(200, &completion)
    };
    let broken = || {
        let mut completion = chat::completion();
        completion["choices"][0] = json!({"index": 0, "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": null, "tool_calls": call("{\"input\":\"*** Begin")["tool_calls"]}});
        Script::json(200, &completion)
    };
    for (streams, second, status) in [
        (false, nothing(), "completed"),
        (false, broken(), "completed"),
        (true, empty(), "completed"),
        (true, half(), "failed"),
    ] {
        let rig = rig(GrammarPolicy::Reask, second).await;
        rig.upstream.queue(if streams { streamed(DIFF) } else { whole(&[DIFF]) });
        let mut body = request("lark", PATCH);
        body["stream"] = json!(streams);
        let answer = rig.post(&body).await;
        let response = if streams { stream(&answer).response } else { object(&answer) };
        assert_eq!(response["status"], status, "{response}");
        if status == "completed" {
            assert_eq!(inputs(&response), [DIFF], "{response}");
        }
    }
}

/// A client that has other calls to make does not wait for a better one of these.
#[tokio::test]
async fn one_of_several_calls_is_not_asked_for_again() {
    let rig = rig(GrammarPolicy::Reask, whole(&[SOUND, WRONG])).await;
    let answer = rig.post(&request("lark", PATCH)).await;
    assert_eq!(inputs(&object(&answer)), [SOUND, WRONG]);
    assert!(noted(&answer).contains("tool_calls=degraded"), "{}", noted(&answer));
    assert_eq!(rig.upstream.requests().len(), 1);
}

#[tokio::test]
async fn regular_expressions_are_checked_as_a_whole() {
    for (input, note) in [("2025-07", false), ("2025-07-01", true), ("", true)] {
        let rig = rig(GrammarPolicy::Check, whole(&[input])).await;
        let answer = rig.post(&request("regex", r"\d{4}-\d{2}")).await;
        assert_eq!(inputs(&object(&answer)), [input]);
        assert_eq!(noted(&answer).contains("tool_calls=degraded"), note, "{input:?}: {}", noted(&answer));
    }
}

/// A grammar that nobody can use, or that is made to cost much, changes nothing but the notes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_grammar_stops_nobody() {
    let input = "a".repeat(300_000);
    let wide = format!("start: {}", vec!["\"a\""; 20_000].join(" | "));
    for (syntax, definition) in [
        ("lark", "start: ("),
        ("lark", "start: start start | start start start | \"a\""),
        ("lark", "start: \"a\" start | \"b\""),
        ("lark", "start: a{1,1000000}\na: b{1,1000000}\nb: \"b\""),
        ("lark", wide.as_str()),
        ("regex", "(a|b)*b(a|b){30}"),
        ("regex", "((a{1,1000}){1,1000}){1,1000}b"),
    ] {
        let rig = rig(GrammarPolicy::Check, whole(&[&input])).await;
        let answer = rig.post(&request(syntax, definition)).await;
        assert_eq!(inputs(&object(&answer)), [input.as_str()], "{}", &definition[..definition.len().min(60)]);
        assert!(noted(&answer).contains("tool_calls=degraded"), "{}", noted(&answer));
    }
}
