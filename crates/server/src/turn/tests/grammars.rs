//! A grammar is compiled when there is an input to check, and for nothing else.

use super::*;

#[tokio::test]
async fn nothing_is_compiled_that_is_not_called() {
    let custom = json!({"type": "custom", "name": "say",
        "format": {"type": "grammar", "syntax": "regex", "definition": "[a-z]+"}});
    let text = json!({"role": "assistant", "content": "Hello."});
    let called = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "say", "arguments": "{\"input\":\"hello\"}"}}]});
    let upstream = Upstream::start(script(false, &text, "stop")).await.unwrap();
    let app = app(&upstream, "").await;
    for (tools, answer, compiled) in [
        (json!([]), &text, 0),
        (json!([custom]), &text, 0),
        (json!([custom]), &called, 1),
        (json!([custom]), &called, 1),
    ] {
        let mut asked = request();
        asked["tools"] = tools;
        upstream.queue(script(false, answer, if answer == &text { "stop" } else { "tool_calls" }));
        let bytes = Bytes::from(asked.to_string());
        let started = Box::pin(Turn::start(context(&app), bytes, Start::default())).await.unwrap();
        let Started::Turn(turn) = started else { panic!() };
        turn.run().await;
        assert_eq!(app.runtime.grammars.count(), compiled, "{asked}");
    }
}
