//! The provider's own `POST /responses`: a turn with a tool. A call, then its result with the answer as a stream.

use serde_json::{Value, json};

use super::words;
use crate::ask::{Endpoint, ProbeUpstream, Request};
use crate::bodies;
use crate::checks::messages::{Native, verdict};
use crate::reply::Reply;
use crate::run::{Abort, Run};

const FEATURE: &str = "native /responses";

pub(super) async fn run(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    let asked = json!({"role": "user", "content": bodies::CALL});
    let first = ask(run, json!([asked]), Some("required"), false).await?;
    let Some(object) = object(&first) else {
        run.findings.push(verdict(FEATURE, &first, "no response object came", None));
        return Ok(());
    };
    let lacking: Vec<&str> =
        ["status", "output", "usage", "tools", "tool_choice", "instructions", "incomplete_details"]
            .into_iter()
            .filter(|field| object.get(*field).is_none())
            .collect();
    let mut seen = Native::default();
    if !lacking.is_empty() {
        seen.remarks.push(format!("objects without {}", lacking.join(", ")));
    }
    let call = object["output"].as_array().into_iter().flatten().find(|item| item["type"] == "function_call").cloned();
    seen.calls = call.is_some();
    let call = call.unwrap_or_else(
        || json!({"type": "function_call", "call_id": bodies::PLAIN_ID, "name": "get_weather", "arguments": "{\"city\": \"Paris\"}"}),
    );
    let id = call["call_id"].as_str().unwrap_or(bodies::PLAIN_ID).to_owned();
    // As a client without a memory sends it back.
    let back = json!({"type": "function_call", "call_id": id, "name": call["name"], "arguments": call["arguments"]});
    let result = json!({"type": "function_call_output", "call_id": id, "output": "18 degrees and sunny"});
    let second = ask(run, json!([asked, back, result]), None, true).await?;
    seen.took_result = matches!(second, Reply::Answered(_));
    if let Reply::Answered(said) = &second {
        let ends = ["response.completed", "response.incomplete"];
        seen.streams =
            said.message.as_array().and_then(|events| events.last()).is_some_and(|last| ends.contains(&kind(last)));
        if !seen.streams {
            seen.remarks.push("no stream that ends as it should came".to_owned());
        }
    } else {
        seen.remarks.push(format!("the result of the call: {}", words(&second)));
    }
    run.findings.push(verdict(FEATURE, &first, "", Some(&seen)));
    Ok(())
}

fn kind(event: &Value) -> &str {
    event["type"].as_str().unwrap_or_default()
}

fn object(reply: &Reply) -> Option<Value> {
    match reply {
        Reply::Answered(said) if said.message["object"] == "response" => Some(said.message.clone()),
        _ => None,
    }
}

async fn ask(
    run: &mut Run<'_, impl ProbeUpstream>,
    input: Value,
    choice: Option<&str>,
    stream: bool,
) -> Result<Reply, Abort> {
    let function = &bodies::tools(false)[0]["function"];
    let tool = json!({
        "type": "function", "name": function["name"], "description": function["description"],
        "parameters": function["parameters"],
    });
    let mut body = json!({
        "model": run.settings.model, "input": input, "tools": [tool], "max_output_tokens": run.room(80),
        "store": false, "stream": stream,
    });
    if let Some(choice) = choice {
        body["tool_choice"] = json!(choice);
    }
    let (model, body) = (run.settings.model.clone(), body.to_string().into_bytes());
    run.send(Request { about: FEATURE, endpoint: Endpoint::Responses, model, body, stream }).await
}
