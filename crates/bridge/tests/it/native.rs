//! Upstreams that speak the Responses API themselves: whatever they leave out, turn around or make up, what comes
//! out keeps the grammar, and is the same streamed and not.

pub(crate) mod laws;
mod recordings;
mod repairs;

use bridge::{AnswerWire, End, ItemIds, NativeContext};
use serde_json::{Value, json};

use crate::run::{Ran, Run};

pub(crate) fn native() -> Run {
    let mut run = Run::default();
    run.context.tools.clear();
    run.context.wire = AnswerWire::Responses(NativeContext { item_ids: ItemIds::Ours, silent_limit: None });
    run
}

/// Events through both roads; both schemas and the strict types hold.
pub(crate) fn check(run: &Run, events: &[impl AsRef<[u8]>], end: End) -> Ran {
    let ran = run.run(events, end).unwrap_or_else(|problem| panic!("{problem}"));
    let schemas = testkit::Schemas::if_present();
    for (name, event) in &ran.stream.events {
        if let Some(schemas) = &schemas {
            assert_eq!(crate::schemas::problems(schemas, event), Vec::<String>::new(), "{name}: {event}");
        }
        assert_eq!(crate::strict_types::problem(event), None);
    }
    ran
}

fn read(events: &[Value]) -> Ran {
    let events: Vec<String> = events.iter().map(Value::to_string).collect();
    check(&native(), &events, End::Eof)
}

/// `response.output_text.delta` and the like: a name, and what else is in the event.
fn event(name: &str, members: Value) -> Value {
    let mut event = members;
    event["type"] = json!(format!("response.{name}"));
    event
}

fn completed(output: &Value) -> Value {
    let usage = json!({"input_tokens": 5, "output_tokens": 2, "total_tokens": 7});
    event("completed", json!({"response": {"id": "up", "status": "completed", "output": output, "usage": usage}}))
}

fn message(text: &str) -> Value {
    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
    json!({"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": content})
}

fn call(id: &str, arguments: &str) -> Value {
    json!({
        "type": "function_call", "id": id, "call_id": format!("call_{id}"), "name": "f", "arguments": arguments,
        "status": "completed",
    })
}
