//! The provider's own `POST /messages`, Anthropic's API: a turn with a tool, with the key in either header. What a
//! native road must do, and the verdict on one, are here for both roads.

use serde_json::{Value, json};

use super::{open, words};
use crate::ask::{Endpoint, ProbeUpstream, Request};
use crate::bodies;
use crate::finding::{Confidence, Finding};
use crate::reply::{Refusal, Reply};
use crate::run::{Abort, Run};

const FEATURE: &str = "native /messages";

/// What was seen of a turn with a tool.
#[derive(Debug, Default)]
pub(super) struct Native {
    /// A call came where one was forced.
    pub(super) calls: bool,
    /// Its result was taken.
    pub(super) took_result: bool,
    /// The answer to that streamed, and ended as the API says.
    pub(super) streams: bool,
    pub(super) remarks: Vec<String>,
}

/// Whether there is such a road, and whether it carries.
pub(super) fn verdict(feature: &'static str, first: &Reply, foreign: &'static str, seen: Option<&Native>) -> Finding {
    let Some(seen) = seen else {
        return match first {
            Reply::Answered(_) => Finding::seen(feature, "-", "no", foreign),
            Reply::Refused(Refusal { status: 404 | 405 | 501, .. }) => Finding::seen(feature, "-", "no", words(first)),
            Reply::Refused(refusal) => Finding::unclear(feature, "-", refusal.words()),
            _ => open(feature, "-", first),
        };
    };
    let lacks: Vec<&str> =
        [(seen.calls, "calls"), (seen.took_result, "results of calls"), (seen.took_result && seen.streams, "streams")]
            .into_iter()
            .filter(|(works, _)| !works)
            .map(|(_, what)| what)
            .collect();
    let observed = if lacks.is_empty() { "yes".to_owned() } else { format!("yes, without {}", lacks.join(", ")) };
    // That a small model does not call is no fault of the road.
    let confidence = if seen.calls { Confidence::Certain } else { Confidence::Weak };
    Finding::seen(feature, "-", observed, seen.remarks.join("; ")).sure(confidence)
}

pub(super) async fn run(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    let asked = json!({"role": "user", "content": bodies::CALL});
    let mut endpoint = Endpoint::Messages;
    let mut first = ask(run, endpoint, json!([asked]), Some("any"), false).await?;
    if let Reply::Lost(_) = &first {
        // A key that is good elsewhere: it may have to be in the other header.
        endpoint = Endpoint::MessagesByKey;
        first = ask(run, endpoint, json!([asked]), Some("any"), false).await?;
    }
    let mut seen = Native::default();
    if let Reply::Refused(refusal) = &first
        && refusal.failure.message.contains("tool_choice")
    {
        seen.remarks.push(format!("tool_choice any: {}", refusal.words()));
        first = ask(run, endpoint, json!([asked]), None, false).await?;
    }
    let Some(message) = message(&first) else {
        run.findings.push(verdict(FEATURE, &first, "no message came", None));
        return Ok(());
    };
    let header = if endpoint == Endpoint::Messages { "with the key as for chat" } else { "with x-api-key" };
    seen.remarks.insert(0, header.to_owned());
    let call = message["content"].as_array().into_iter().flatten().find(|block| block["type"] == "tool_use").cloned();
    seen.calls = call.is_some();
    let call = call.unwrap_or_else(
        || json!({"type": "tool_use", "id": bodies::PLAIN_ID, "name": "get_weather", "input": {"city": "Paris"}}),
    );
    let result = json!({"type": "tool_result", "tool_use_id": call["id"], "content": "18 degrees and sunny"});
    // Thinking goes back as it came: some models refuse a call without it.
    let back = if seen.calls { message["content"].clone() } else { json!([call]) };
    let messages = json!([asked, {"role": "assistant", "content": back}, {"role": "user", "content": [result]}]);
    let second = ask(run, endpoint, messages, None, true).await?;
    seen.took_result = matches!(second, Reply::Answered(_));
    if let Reply::Answered(said) = &second {
        let last = said.message.as_array().and_then(|events| events.last());
        seen.streams = last.is_some_and(|event| event["type"] == "message_stop");
        if !seen.streams {
            seen.remarks.push("no stream that ends with message_stop came".to_owned());
        }
    } else {
        seen.remarks.push(format!("the result of the call: {}", words(&second)));
    }
    run.findings.push(verdict(FEATURE, &first, "", Some(&seen)));
    Ok(())
}

fn message(reply: &Reply) -> Option<Value> {
    match reply {
        Reply::Answered(said) if said.message["type"] == "message" && said.message["content"].is_array() => {
            Some(said.message.clone())
        }
        _ => None,
    }
}

async fn ask(
    run: &mut Run<'_, impl ProbeUpstream>,
    endpoint: Endpoint,
    messages: Value,
    choice: Option<&str>,
    stream: bool,
) -> Result<Reply, Abort> {
    let function = &bodies::tools(false)[0]["function"];
    let tool = json!({
        "name": function["name"], "description": function["description"], "input_schema": function["parameters"],
    });
    let mut body = json!({
        "model": run.settings.model, "max_tokens": run.room(80), "messages": messages, "tools": [tool], "stream": stream,
    });
    if let Some(choice) = choice {
        body["tool_choice"] = json!({"type": choice});
    }
    let model = run.settings.model.clone();
    run.send(Request { about: FEATURE, endpoint, model, body: body.to_string().into_bytes(), stream }).await
}
