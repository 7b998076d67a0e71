//! A request that was made before is sent again, for its tenant, and stored nowhere; then both answers are compared.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use store::dollars;

use super::plans::{error_of, note};
use super::source::Source;
use super::{caller, onlooker};
use crate::app::App;
use crate::error::{ApiError, Code};
use crate::request::RequestContext;
use crate::trace::REPLAY;
use crate::turn::{Finished, Start, Started, Turn};

/// What is known of an answer.
#[derive(Debug, Default)]
struct Answered {
    response: Value,
    error: Value,
    /// None: not known.
    notes: Option<Vec<Value>>,
    cost: Option<String>,
}

/// Sends it again, to this model, or to the one that it was for. `before` is the trace of it, if there is one.
pub(crate) async fn replay(
    app: &Arc<App>,
    mut source: Source,
    model: Option<&str>,
    before: Option<&Value>,
) -> Result<Value, ApiError> {
    // What else is wrong with it is found by whoever sends it, and compared.
    drop(source.open(&onlooker(app, source.tenant.clone(), source.client.as_deref())).await?);
    let Source { origin, tenant, client, mut request, past, gone, response, .. } = source;
    if let Some(named) = gone.first() {
        let message = format!(
            "What this request continues or refers to ('{}') is gone, or was never stored: it cannot be sent again as it \
             was asked.",
            crate::error::clip(named)
        );
        return Err(ApiError::new(Code::InvalidRequest, message).with_param("id"));
    }
    if let Some(members) = request.as_object_mut() {
        members.remove("background");
        members.extend([("store".to_owned(), json!(false)), ("stream".to_owned(), json!(false))]);
        members.extend(model.map(|model| ("model".to_owned(), json!(model))));
    }
    let before = Answered {
        notes: before.and_then(|trace| trace["notes"].as_array().cloned()),
        cost: before.and_then(|trace| trace["cost_usd"].as_str().map(str::to_owned)),
        error: error_before(&response, before),
        response,
    };
    let context = RequestContext::of_operator(app, caller(tenant, client.as_deref()), REPLAY)?;
    let bytes = Bytes::from(request.to_string());
    context.account.received(bytes.len());
    let started = Box::pin(Turn::start(context.clone(), bytes, Start { past, ..Start::default() })).await;
    let after = match started {
        Ok(Started::Turn(turn)) => finished(&context, Box::pin(turn.run()).await),
        Ok(Started::Background(_) | Started::Known(_)) => Err(ApiError::shutting_down()),
        Err(error) => Err(error),
    };
    let after = after.unwrap_or_else(|error| {
        context.account.answered(error.status.as_u16(), Some(error.code.domain()));
        Answered { error: error_of(&error), ..Answered::default() }
    });
    let after = Answered { cost: context.account.cost().map(dollars), ..after };
    context.account.delivered(0, true);
    let differences = differences(&before, &after);
    Ok(json!({"source": origin.name(), "request": request, "before": shown(before), "after": shown(after),
        "differences": differences}))
}

/// What went wrong the first time: of a request that was refused only its trace knows.
fn error_before(response: &Value, trace: Option<&Value>) -> Value {
    let own = response.get("error").filter(|error| !error.is_null());
    let traced = || trace.filter(|_| response.is_null()).and_then(|trace| trace.get("error"));
    own.or_else(traced).cloned().unwrap_or_default()
}

fn finished(context: &RequestContext, finished: Finished) -> Result<Answered, ApiError> {
    let Finished { ended, notes } = finished;
    let object = ended.into_object()?;
    context.account.answered(200, None);
    let response: Value = serde_json::from_slice(&object).unwrap_or_default();
    let error = response["error"].clone();
    Ok(Answered { response, error, notes: Some(notes.iter().map(note).collect()), cost: None })
}

fn shown(answered: Answered) -> Value {
    let Answered { response, error, notes, cost } = answered;
    json!({"response": response, "error": error, "notes": notes, "cost_usd": cost})
}

/// What both say otherwise: the name of it, then each side. What one of them does not know is no difference: an answer that
/// never came says nothing of its model or its text.
fn differences(before: &Answered, after: &Answered) -> Vec<Value> {
    type Look = fn(&Answered) -> Option<Value>;
    let looks: [(&str, Look); 7] = [
        ("status", |answered| known(status(answered))),
        ("error", |answered| Some(answered.error["message"].clone())),
        ("model", |answered| known(answered.response["model"].clone())),
        ("text", |answered| (!answered.response.is_null()).then(|| texts(&answered.response))),
        ("tool_calls", |answered| (!answered.response.is_null()).then(|| calls(&answered.response))),
        ("notes", |answered| answered.notes.as_ref().map(|notes| notes.iter().map(said).collect())),
        ("cost_usd", |answered| answered.cost.clone().map(Value::from)),
    ];
    let mut found = Vec::new();
    let mut compare = |what: &str, before: Option<Value>, after: Option<Value>| {
        if let Some((before, after)) = before.zip(after).filter(|(before, after)| before != after) {
            found.push(json!({"what": what, "before": before, "after": after}));
        }
    };
    for (what, look) in looks {
        compare(what, look(before), look(after));
    }
    for (what, member) in [
        ("usage.input_tokens", "/input_tokens"),
        ("usage.cached_tokens", "/input_tokens_details/cached_tokens"),
        ("usage.output_tokens", "/output_tokens"),
        ("usage.reasoning_tokens", "/output_tokens_details/reasoning_tokens"),
    ] {
        let of = |answered: &Answered| answered.response["usage"].pointer(member).cloned().and_then(known);
        compare(what, of(before), of(after));
    }
    found
}

fn known(value: Value) -> Option<Value> {
    (!value.is_null()).then_some(value)
}

fn status(answered: &Answered) -> Value {
    match &answered.response["status"] {
        Value::Null if !answered.error.is_null() => json!("failed"),
        status => status.clone(),
    }
}

/// All that the model said, as one text.
fn texts(response: &Value) -> Value {
    let parts = response["output"].as_array().into_iter().flatten().filter_map(|item| item["content"].as_array());
    let parts = parts.flatten().filter(|part| part["type"] != "reasoning_text");
    let texts: Vec<&str> = parts.filter_map(|part| part["text"].as_str().or(part["refusal"].as_str())).collect();
    texts.join("\n").into()
}

/// Each call by its name and what it is called with: ids are each answer's own.
fn calls(response: &Value) -> Value {
    let call = |item: &Value| {
        let kind = item["type"].as_str().filter(|kind| kind.ends_with("_call"))?;
        let name = item["name"].as_str().unwrap_or(kind);
        let with = ["arguments", "input", "action", "operation"].iter().find_map(|member| item.get(*member));
        let with = with.map(|with| with.as_str().map_or_else(|| with.to_string(), str::to_owned)).unwrap_or_default();
        Some(Value::from(format!("{name} {with}")))
    };
    response["output"].as_array().into_iter().flatten().filter_map(call).collect()
}

fn said(note: &Value) -> Value {
    let text = |name: &str| note[name].as_str().unwrap_or_default();
    format!("{} {}", text("code"), text("path")).trim().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(text: &str, output_tokens: u64, notes: Option<&[&str]>) -> Answered {
        let notes = notes.map(|notes| notes.iter().map(|code| json!({"code": code, "path": "p"})).collect());
        let response = json!({"status": "completed", "model": "m", "output": [
            {"type": "reasoning", "content": [{"type": "reasoning_text", "text": text}]},
            {"type": "function_call", "id": text, "name": "f", "arguments": "{}"},
            {"type": "message", "content": [{"type": "output_text", "text": text}]}],
            "usage": {"input_tokens": 1, "output_tokens": output_tokens}});
        Answered { response, notes, ..Answered::default() }
    }

    #[test]
    fn only_what_differs_is_told() {
        let (one, other) = (answered("a", 1, Some(&["x"])), answered("b", 2, Some(&["x", "y"])));
        let whats = |differences: Vec<Value>| -> Vec<String> {
            differences.iter().map(|it| format!("{} {} {}", it["what"], it["before"], it["after"])).collect()
        };
        assert_eq!(
            whats(differences(&one, &other)),
            [r#""text" "a" "b""#, r#""notes" ["x p"] ["x p","y p"]"#, r#""usage.output_tokens" 1 2"#]
        );
        assert_eq!(whats(differences(&one, &answered("a", 1, None))), [""; 0]);
        let failed = Answered { error: json!({"message": "No."}), ..Answered::default() };
        let told = whats(differences(&one, &failed));
        assert!(told.contains(&r#""status" "completed" "failed""#.to_owned()), "{told:?}");
        // It failed before there was an answer, of which nothing is known.
        assert_eq!(told.len(), 2, "{told:?}");
        let cut = Answered { response: json!({"status": "failed", "model": "m", "output": []}), ..failed };
        assert!(whats(differences(&one, &cut)).contains(&r#""tool_calls" ["f {}"] []"#.to_owned()), "it said nothing");
    }
}
