//! How large a trace says that a request was, and what its client was sent.

use serde_json::{Value, json};
use testkit::{Script, Upstream};

use super::{Socket, Traced};
use crate::chat;

fn sizes(trace: &Value) -> [u64; 3] {
    let of = |value: &Value| value.as_u64().unwrap();
    [of(&trace["request"]["bytes"]), of(&trace["request"]["bytes_sent"]), of(&trace["events"]["sent"])]
}

impl Traced {
    /// The newest of so many.
    async fn newest(&self, count: usize) -> Value {
        let list = self.list("", count).await;
        self.good(&format!("/admin/traces/{}", list[0]["number"])).await
    }

    async fn received(&self) -> u64 {
        let text = String::from_utf8(self.rig.get("/metrics").await.body.to_vec()).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("godex_received_bytes_total "));
        line.unwrap().parse().unwrap()
    }
}

/// It is as large as the request that asked for it; what is sent of it, other requests are sent.
#[tokio::test]
async fn a_background_turn_is_as_large_as_its_request() {
    let it = Traced::start("").await;
    let mut all = 0;
    for (count, stream) in [(1, false), (2, true)] {
        let body = json!({"model": "m", "input": "Hi", "background": true, "stream": stream});
        assert_eq!(it.rig.post(&body).await.status, 200);
        let (trace, bytes) = (it.newest(count).await, body.to_string().len() as u64);
        assert_eq!(trace["kind"], "background");
        assert_eq!(sizes(&trace)[..2], [bytes, 0], "{trace:#}");
        all += bytes;
    }
    // It came once.
    assert_eq!(it.received().await, all);
}

/// An error event is all that its client is sent of it, whoever refused it.
#[tokio::test]
async fn the_error_of_a_websocket_turn_is_counted() {
    let upstream = Upstream::start(Script::json(400, &json!({"error": {"message": "no such thing"}}))).await.unwrap();
    let it = Traced::before(upstream, "").await;
    let mut socket = Socket::connect(&it.rig).await;
    for (count, message) in [
        (1, json!({"type": "response.create", "model": "m", "input": "Hi"})),
        (2, json!({"type": "response.create", "model": "m", "input": 7, "stream_id": "a"})),
        (3, json!({"type": "response.create", "model": "m", "previous_response_id": "resp_none"})),
        (4, json!({"type": "response.append"})),
    ] {
        socket.say(&message).await;
        let error = socket.next_text().await;
        assert!(error.contains(r#""type":"error""#), "{error}");
        let trace = it.newest(count).await;
        assert_eq!(trace["status"], 400, "{trace:#}");
        assert_eq!(sizes(&trace)[1..], [error.len() as u64, 1], "{trace:#}");
    }
}

/// A client that leaves had what was sent until then.
#[tokio::test]
async fn what_a_client_of_a_websocket_had_when_it_left_is_counted() {
    let script = Script::event_stream().event(&chat::text("one")).stall();
    let it = Traced::before(Upstream::start(script).await.unwrap(), "").await;
    let mut socket = Socket::connect(&it.rig).await;
    socket.say(&json!({"type": "response.create", "model": "m", "input": "Hi"})).await;
    let (mut bytes, mut events) = (0, 0);
    loop {
        let event = socket.next_text().await;
        bytes += event.len() as u64;
        events += 1;
        if event.contains("response.output_text.delta") {
            break;
        }
    }
    drop(socket);
    let trace = it.newest(1).await;
    assert_eq!(trace["outcome"], "client_left");
    assert_eq!(sizes(&trace)[1..], [bytes, events], "{trace:#}");
}
