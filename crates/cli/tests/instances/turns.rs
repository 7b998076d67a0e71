//! Chains and conversations that change the instance with each turn, asked for the moment the last one is known to be over.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::load::repeat;
use crate::streams::{Reader, data};
use crate::world::{Instance, Kept, World, object, request, size};

const LONG: usize = 20;

/// One chain, or one conversation. Counts its turns.
async fn chain(world: Arc<World>, number: usize) -> (usize, ()) {
    let (mut previous, mut conversation) = (Value::Null, Value::Null);
    if number % 3 == 2 {
        let instance = world.any(number + 1);
        let made = instance.client.post_json(&instance.url("/v1/conversations"), &json!({})).await.unwrap();
        conversation = object(&made)["id"].clone();
    }
    for turn in 0..LONG {
        // Not streamed, streamed, and streamed in the background.
        let kind = (number + turn) % 3;
        let mut more = json!({"stream": kind > 0, "background": kind == 2});
        if conversation.is_null() {
            more["previous_response_id"] = previous;
        } else {
            more["conversation"] = conversation.clone();
        }
        let tag = format!("t{number}.{turn}");
        let response = completed(world.any(number + turn), &request(&tag, "n=2", more)).await;
        let text = response["output"][0]["content"][0]["text"].as_str().unwrap_or_default();
        assert_eq!(text, format!("{} {tag}.1", 2 * turn + 1), "{response}");
        assert_eq!(world.upstream.calls(&tag).len(), 1);
        previous = response["id"].clone();
    }
    (LONG, ())
}

/// The response, as soon as anybody can know that it is completed: nothing after that is waited for.
async fn completed(instance: &Instance, request: &Value) -> Value {
    if request["stream"] == false {
        return object(&instance.post(request).await);
    }
    let stream = instance.stream(request).await;
    if stream.status != 200 {
        return object(&stream.collect().await.unwrap());
    }
    let mut reader = Reader::new(stream);
    while let Some(event) = reader.next().await {
        let event = data(&event);
        if event["type"] == "response.completed" {
            return event["response"].clone();
        }
        assert!(event["type"] != "response.failed" && event["type"] != "error", "{event}");
    }
    panic!("a stream without an end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_continued_elsewhere_the_moment_it_is_completed() {
    let Some(world) = World::new("turns", Kept::Postgres, "").await.map(Arc::new) else { return };
    let (turns, chains) = repeat(&world, size(500, 10_000), 6, chain).await;
    println!("turns: {turns} in {} chains and conversations, each on the other instance: 0 not found", chains.len());
}
