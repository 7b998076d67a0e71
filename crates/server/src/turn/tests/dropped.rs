//! Whoever pulls a turn may let go of it at any time and pull again: no event is lost, and none comes twice.

use std::time::Duration;

use bridge::Frame;
use futures_util::FutureExt;
use serde_json::{Value, json};
use testkit::{McpServer, Script, Upstream};

use super::{Turn, app, call, request, results, script, start, with};

/// Two rounds with a hosted tool between them, byte by byte and with pauses in which there is nothing to read.
fn slowly(received: &Value) -> Script {
    let calls = json!([call("call_1", "a__echo"), call("call_2", "a__echo")]);
    let script = match results(received) {
        0 => script(true, &json!({"role": "assistant", "content": "Let me see.", "tool_calls": calls}), "tool_calls"),
        _ => script(true, &json!({"role": "assistant", "content": "It is noon."}), "stop"),
    };
    script.split_every(40).delay(Duration::from_millis(2))
}

/// Pulls the turn to its end, letting go whenever it would have to wait. What is there is taken only now and then, as if
/// it could not be sent on. Gives the events, and how often it let go.
async fn pull(turn: &mut Turn, takes: impl Fn(usize) -> bool) -> (Vec<(Frame, String)>, usize) {
    turn.as_frames();
    let (mut taken, mut polls, mut dropped) = (Vec::new(), 0, 0);
    loop {
        polls += 1;
        match turn.next().now_or_never() {
            None => {
                dropped += 1;
                tokio::task::yield_now().await;
            }
            Some(None) => return (taken, dropped),
            Some(Some(events)) => {
                if takes(polls) {
                    taken
                        .extend(events.iter().map(|(frame, json)| (frame, String::from_utf8_lossy(json).into_owned())));
                    events.clear();
                }
            }
        }
    }
}

fn as_stream(events: &[(Frame, String)]) -> Vec<u8> {
    let lines = events.iter().map(|(frame, json)| format!("event: {}\ndata: {json}\n\n", frame.kind.name()));
    (lines.collect::<String>() + "data: [DONE]\n\n").into_bytes()
}

#[tokio::test]
async fn no_event_is_lost_and_none_comes_twice() {
    let upstream = Upstream::start_with(|received| slowly(&received.json())).await.unwrap();
    let server = McpServer::modern().await.unwrap();
    let app = app(&upstream, &format!("server: {{heartbeat: 1s}}\n{}", with(&server))).await;
    let mut streamed = request();
    streamed["stream"] = json!(true);
    for rest in 0..6_usize {
        let mut turn = start(&app, &streamed).await;
        // The last one takes what there is at once, the others when they get round to it.
        let takes = |polls: usize| rest == 5 || polls % 7 == rest;
        let pulled = tokio::time::timeout(Duration::from_mins(1), pull(&mut turn, takes)).await;
        let (events, dropped) = pulled.unwrap();
        assert!(dropped > 3, "it was let go {dropped} times");
        let numbers: Vec<u64> = events.iter().map(|(frame, _)| frame.sequence).collect();
        assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
        let stream = testkit::grammar::check(&as_stream(&events)).unwrap_or_else(|problem| panic!("{problem}"));
        assert_eq!(stream.response["status"], "completed");
        assert_eq!(stream.text, "Let me see.It is noon.");
    }
}
