//! A provider that is asked by its Responses API alone.

use serde_json::{Value, json};
use testkit::{Received, Script};

use crate::rig::{limits, probe_with};

fn answer(received: &Received) -> Script {
    if received.path.ends_with("/models") {
        return Script::json(200, &json!({"data": [{"id": "m"}]}));
    }
    let body = received.json();
    if !received.path.ends_with("/responses") || body["messages"].is_array() {
        return Script::json(404, &json!({"error": {"message": "There is nothing here."}}));
    }
    if body["reasoning"]["effort"] == "max" || body["reasoning"]["effort"] == "godex-probe" {
        return Script::json(400, &json!({"error": {"message": "no such effort", "param": "reasoning.effort"}}));
    }
    let input = body["input"].to_string();
    let call = |city: &str| json!({"type": "function_call", "call_id": format!("call_{city}"), "name": "get_weather", "arguments": format!("{{\"city\":\"{city}\"}}")});
    let calls = body["tools"].is_array() && !input.contains("function_call_output");
    let output = match calls {
        true if input.contains("London") && body["parallel_tool_calls"] != false => vec![call("Paris"), call("London")],
        true => vec![call("Paris")],
        false => {
            let text = json!({"type": "output_text", "text": "1 2 3"});
            vec![json!({"type": "message", "role": "assistant", "content": [text]})]
        }
    };
    let is_cut = body["max_output_tokens"] == 16;
    let response = json!({
        "object": "response", "status": if is_cut { "incomplete" } else { "completed" }, "output": output, "error": null,
        "incomplete_details": if is_cut { json!({"reason": "max_output_tokens"}) } else { Value::Null },
        "usage": {"input_tokens": 5, "output_tokens": 5}, "tools": [], "tool_choice": "auto", "instructions": null,
    });
    if body["stream"] != true {
        return Script::json(200, &response);
    }
    let end = if is_cut { "response.incomplete" } else { "response.completed" };
    Script::event_stream()
        .event(&json!({"type": "response.created", "response": {"object": "response", "output": [], "error": null}}))
        .event(&json!({"type": "response.output_text.delta", "delta": "1"}))
        .event(&json!({"type": end, "response": response}))
}

#[tokio::test]
async fn a_responses_api_is_asked_by_its_own_wire() {
    let probed = probe_with("responses-compatible", limits(), answer).await;
    let ladder =
        "request.reasoning.ladder: {none: none, minimal: minimal, low: low, medium: medium, high: high, xhigh: xhigh}";
    for (feature, expected) in [
        ("plain answer", "yes"),
        ("limit field", "max_output_tokens"),
        ("stream", "yes"),
        ("end of stream", "as the API says"),
        ("tools", "called"),
        ("parallel calls", "yes"),
        ("parallel_tool_calls: false", "yes"),
        ("reasoning efforts", "none, minimal, low, medium, high, xhigh"),
        ("native /responses", "yes"),
        ("list of models", "names the model"),
    ] {
        assert_eq!(probed.observed(feature), expected, "{feature}: {:#?}", probed.finding(feature));
    }
    assert_eq!(probed.changes(), [ladder], "{:#?}", probed.findings());
    assert!(probed.result.unwrap().not_asked.contains(&probe::Check::Images));
}
