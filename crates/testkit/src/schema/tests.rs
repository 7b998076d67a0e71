use serde_json::{Value, json};

use super::Schemas;

fn response() -> Value {
    json!({
        "id": "resp_1", "object": "response", "created_at": 7, "status": "completed", "background": false,
        "completed_at": 8, "error": null, "frequency_penalty": 0, "incomplete_details": null,
        "instructions": null, "max_output_tokens": null, "max_tool_calls": null, "metadata": {}, "model": "demo",
        "output": [
            {"id": "rs_1", "type": "reasoning", "status": "completed", "summary": [],
             "content": [{"type": "reasoning_text", "text": "hm"}]},
            {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant",
             "content": [{"type": "output_text", "text": "Hi", "annotations": [], "logprobs": []}]},
            {"id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_1", "name": "f",
             "arguments": "{}"},
            {"id": "ctc_1", "type": "custom_tool_call", "status": "completed", "call_id": "call_2", "name": "p",
             "input": "x"},
        ],
        "parallel_tool_calls": true, "presence_penalty": 0, "previous_response_id": null,
        "prompt_cache_key": null, "reasoning": {"effort": null, "summary": null}, "safety_identifier": null,
        "service_tier": "default", "store": false, "temperature": 1, "text": {"format": {"type": "text"},
        "verbosity": "medium"}, "tool_choice": "auto", "tools": [], "top_logprobs": 0, "top_p": 1,
        "truncation": "disabled", "user": null,
        "usage": {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 2, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 3},
    })
}

#[test]
fn a_full_response_is_valid_by_both() {
    let Some(schemas) = Schemas::load() else { return };
    assert_eq!(schemas.response(&response()), Vec::<String>::new());
    let event = json!({"type": "response.completed", "sequence_number": 3, "response": response()});
    assert_eq!(schemas.event(&event), Vec::<String>::new());
}

#[test]
fn tells_what_is_wrong_and_by_which_schema() {
    let Some(schemas) = Schemas::load() else { return };
    let mut broken = response();
    broken["status"] = json!("finished");
    broken["presence_penalty"] = json!("none");
    let problems = schemas.response(&broken).join("\n");
    assert!(problems.contains("OpenAI") && problems.contains("/status"), "{problems}");
    assert!(problems.contains("Open Responses ResponseResource/presence_penalty"), "{problems}");
}

#[test]
fn events_are_found_by_their_type() {
    let Some(schemas) = Schemas::load() else { return };
    let delta = json!({"type": "response.reasoning_text.delta", "sequence_number": 3, "item_id": "rs_1",
        "output_index": 0, "content_index": 0, "delta": "x"});
    assert_eq!(schemas.event(&delta), Vec::<String>::new());
    let unknown = json!({"type": "keepalive", "sequence_number": 3});
    assert_eq!(schemas.event(&unknown).len(), 2);
    let incomplete = json!({"type": "response.output_text.delta", "sequence_number": 3, "delta": "x"});
    assert!(schemas.event(&incomplete).len() > 2);
}
