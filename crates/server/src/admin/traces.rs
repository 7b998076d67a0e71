//! Traces for the operator: lists, one with all that belongs to it, the tree of turns it is of, sums over time. A store that
//! does not answer makes nobody wait for long.

use std::future::Future;
use std::time::Duration;

use http::{Response, Uri};
use serde_json::{Map, Value, json};
use store::{StoredTrace, Tenant, TraceFilter, TraceNumber, TracePage, TracePoint, TraceRow, TraceStore, dollars};
use tokio::time::timeout;

use super::routes::{self, Place, query};
use crate::body::Body;
use crate::clock;
use crate::config::{Bare, parse_duration};
use crate::error::{ApiError, Code, clip};
use crate::trace;

/// The most of one page, and how many it has where nobody says.
const MOST: u32 = 1000;
const USUAL: u32 = 50;
/// The most turns of one tree.
const TREE: u32 = 500;
/// The most steps of a series, and about how many there are where nobody says.
const STEPS: i64 = 500;
const USUAL_STEPS: i64 = 60;
const NICE_STEPS: [i64; 12] = [1, 5, 15, 60, 300, 900, 1800, 3600, 10_800, 21_600, 86_400, 604_800];
/// A series that does not say how far back it goes.
const SERIES: Duration = Duration::from_hours(1);

/// How long what was traced so far is waited for, and any answer of the store.
const FLUSH: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(15);

const SECOND: i64 = 1_000_000;

/// What is wrong with a member of the query.
fn wrong(name: &str, what: &str) -> ApiError {
    ApiError::new(Code::InvalidRequest, format!("`{name}` is {what}.")).with_param(name)
}

/// Where traces are; what was traced so far is there.
pub(super) async fn store(place: Place<'_>) -> Result<TraceStore, ApiError> {
    let off = || ApiError::new(Code::TracesOff, "No traces are kept: `trace.enabled` is false, or see the log.");
    let Some(desk) = place.desk else { return place.opened_traces()?.ok_or_else(off) };
    let traces = &desk.app.runtime.observers.traces;
    let store = traces.store().cloned().ok_or_else(off)?;
    // What does not come in time is in a later answer.
    let _ = traces.flush(FLUSH).await;
    Ok(store)
}

async fn patiently<T>(answer: impl Future<Output = Result<T, store::Error>>) -> Result<T, ApiError> {
    let late = || ApiError::new(Code::StorageUnavailable, "The store of traces does not answer.");
    timeout(PATIENCE, answer).await.map_err(|_| late())?.map_err(|error| {
        // As other stores are told of, by its own name.
        let told = ApiError::store(&error);
        ApiError::new(told.code, trace::of_traces(&told.message))
    })
}

/// What the query may say of which traces are wanted.
const FILTERS: [&str; 11] =
    ["tenant", "key", "model", "provider", "outcome", "errors", "note", "id", "since", "until", "slower_ms"];

/// A name that nobody reads was meant to be another: what it would have left out would be taken for found.
pub(super) fn only(uri: &Uri, known: &[&str]) -> Result<(), ApiError> {
    let pairs = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let Some((odd, _)) = pairs.into_iter().find(|(name, _)| !known.contains(&&**name)) else { return Ok(()) };
    let odd = clip(&odd);
    let known = if known.is_empty() { String::new() } else { format!(": {}", known.join(", ")) };
    let message = format!("There is no `{odd}` here{known}.");
    Err(ApiError::new(Code::InvalidRequest, message).with_param(odd))
}

pub(super) async fn list(place: Place<'_>, uri: &Uri) -> Result<Response<Body>, ApiError> {
    only(uri, &[&FILTERS[..], &["limit", "before", "after"]].concat())?;
    let number = |name: &str| match query(uri, name) {
        None => Ok(None),
        Some(text) => text.parse::<i64>().map(Some).map_err(|_| wrong(name, "the number of a trace")),
    };
    let limit = match query(uri, "limit") {
        None => USUAL,
        Some(text) => text
            .parse()
            .ok()
            .filter(|limit| (1..=MOST).contains(limit))
            .ok_or_else(|| wrong("limit", "a number from 1 to 1000"))?,
    };
    let page = TracePage { before: number("before")?, after: number("after")?, limit: limit + 1 };
    let filter = filter(uri)?;
    let mut found = patiently(store(place).await?.list(filter, page)).await?;
    let has_more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let data: Vec<Value> = found.iter().map(|(number, row)| summary(*number, row)).collect();
    let dropped = place.desk.map_or(0, |desk| desk.app.runtime.observers.traces.dropped());
    Ok(routes::json(&json!({"object": "list", "data": data, "has_more": has_more, "dropped": dropped})))
}

pub(super) async fn get(place: Place<'_>, id: &str, uri: &Uri) -> Result<Response<Body>, ApiError> {
    Ok(routes::json(&detail(&found(place, id, tenant(uri)?.as_ref()).await?)))
}

/// Whose trace is asked for, of whom nothing else is asked.
fn tenant(uri: &Uri) -> Result<Option<Tenant>, ApiError> {
    only(uri, &["tenant"])?;
    query(uri, "tenant").map(|name| routes::tenant(&name)).transpose()
}

/// A trace by its number, or the newest of a response or a request; of this tenant, where one is named.
pub(super) async fn found(place: Place<'_>, id: &str, tenant: Option<&Tenant>) -> Result<StoredTrace, ApiError> {
    let (store, name) = (store(place).await?, tenant.map(Tenant::name));
    let found = match id.parse::<TraceNumber>() {
        Ok(number) => patiently(store.get(number)).await?,
        Err(_) => patiently(store.find(id.to_owned(), name)).await?,
    };
    let found = found.filter(|trace| name.is_none_or(|name| *trace.row.tenant == *name));
    found.ok_or_else(|| {
        let message = format!("There is no trace of '{}'.", clip(id));
        ApiError::new(Code::TraceNotFound, message)
    })
}

pub(super) async fn chain(place: Place<'_>, id: &str, uri: &Uri) -> Result<Response<Body>, ApiError> {
    let StoredTrace { number, row, .. } = found(place, id, tenant(uri)?.as_ref()).await?;
    let turns = match &row.response_id {
        Some(response_id) => {
            let store = store(place).await?;
            patiently(store.chain(row.tenant.to_string(), response_id.to_string(), TREE)).await?
        }
        None => vec![(number, row)],
    };
    let data: Vec<Value> = turns.iter().map(|(number, row)| summary(*number, row)).collect();
    Ok(routes::json(&json!({"object": "list", "data": data})))
}

pub(super) async fn series(place: Place<'_>, uri: &Uri) -> Result<Response<Body>, ApiError> {
    only(uri, &[&FILTERS[..], &["step"]].concat())?;
    let mut filter = filter(uri)?;
    let now = now();
    let until = *filter.until.get_or_insert(now + 1);
    let since = *filter.since.get_or_insert(until - micros(SERIES));
    let span = (until - since).max(1);
    let step = match query(uri, "step") {
        None => {
            let about = span / SECOND / USUAL_STEPS;
            let nice = NICE_STEPS.into_iter().find(|step| *step >= about);
            nice.unwrap_or(about).max(span / SECOND / STEPS + 1) * SECOND
        }
        Some(text) => parse_duration(&text, Bare::Milliseconds)
            .map(micros)
            .filter(|step| *step > 0 && span / step < STEPS)
            .ok_or_else(|| wrong("step", "a time such as `1m`, or milliseconds, with at most 500 steps"))?,
    };
    let points = patiently(store(place).await?.series(filter, step)).await?;
    let data: Vec<Value> = points.iter().map(point).collect();
    Ok(routes::json(&json!({"object": "list", "step_ms": step / 1000, "data": data})))
}

fn point(point: &TracePoint) -> Value {
    json!({
        "at": moment(point.at),
        "requests": point.requests,
        "errors": point.errors,
        "input_tokens": point.input_tokens,
        "cached_tokens": point.cached_tokens,
        "output_tokens": point.output_tokens,
        "cost_usd": dollars(point.nanodollars),
        "took_p50_ms": point.took_p50_micros.map(ms),
        "took_p95_ms": point.took_p95_micros.map(ms),
        "first_token_p50_ms": point.first_token_p50_micros.map(ms),
    })
}

// === what is asked for ===

/// What the query says of which traces are wanted.
fn filter(uri: &Uri) -> Result<TraceFilter, ApiError> {
    let errors = match query(uri, "errors").as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(wrong("errors", "true or false")),
    };
    let slower = match query(uri, "slower_ms") {
        None => None,
        Some(text) => {
            let ms = text.parse::<i64>().ok().filter(|ms| *ms >= 0).and_then(|ms| ms.checked_mul(1000));
            Some(ms.ok_or_else(|| wrong("slower_ms", "a number of milliseconds"))?)
        }
    };
    let time = |name: &str| match query(uri, name) {
        None => Ok(None),
        Some(text) => time(&text).map(Some).ok_or_else(|| {
            wrong(name, "Unix seconds or milliseconds, `2026-11-16T16:00:00Z`, or how long ago, such as `1h`")
        }),
    };
    let outcome = query(uri, "outcome");
    if outcome.as_deref().is_some_and(|outcome| !trace::OUTCOMES.contains(&outcome)) {
        return Err(wrong("outcome", &format!("one of {}", trace::OUTCOMES.join(", "))));
    }
    Ok(TraceFilter {
        tenant: query(uri, "tenant"),
        key: query(uri, "key"),
        model: query(uri, "model"),
        provider: query(uri, "provider"),
        outcome,
        errors,
        note: query(uri, "note"),
        id: query(uri, "id"),
        since: time("since")?,
        until: time("until")?,
        slower_than_micros: slower,
    })
}

fn now() -> i64 {
    i64::try_from(clock::unix_micros()).unwrap_or(i64::MAX)
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// A moment, in microseconds since 1970.
fn time(text: &str) -> Option<i64> {
    /// More are milliseconds: as seconds it would be the year 5138.
    const SECONDS: i64 = 100_000_000_000;
    if let Ok(number) = text.parse::<i64>() {
        return number.checked_mul(if number < SECONDS { SECOND } else { 1000 }).filter(|_| number >= 0);
    }
    let ago = parse_duration(text, Bare::Refused).map(|ago| now() - micros(ago));
    ago.or_else(|| clock::parse_rfc3339(text))
}

// === what is shown ===

fn ms(micros: i64) -> Value {
    match micros % 1000 {
        0 => Value::from(micros / 1000),
        #[expect(clippy::cast_precision_loss, reason = "no request takes a century")]
        _ => Value::from(micros as f64 / 1000.0),
    }
}

fn moment(micros: i64) -> String {
    clock::rfc3339(micros)
}

/// What a list shows of a trace.
pub(super) fn summary(number: TraceNumber, row: &TraceRow<'_>) -> Value {
    json!({
        "number": number,
        "began_at": moment(row.began_at),
        "took_ms": ms(row.took_micros),
        "first_token_ms": row.first_token_micros.map(ms),
        "upstream_ms": row.upstream_micros.map(ms),
        "tenant": &*row.tenant,
        "key": row.key,
        "request_id": row.request_id,
        "response_id": row.response_id,
        "previous_response_id": row.previous_response_id,
        "conversation_id": row.conversation_id,
        "kind": row.kind,
        "client": row.client,
        "model": row.model,
        "provider": row.provider,
        "upstream_model": row.upstream_model,
        "status": row.status,
        "outcome": row.outcome,
        "error": row.error,
        "attempts": row.attempts,
        "rounds": row.rounds,
        "input_tokens": row.input_tokens,
        "cached_tokens": row.cached_tokens,
        "output_tokens": row.output_tokens,
        "reasoning_tokens": row.reasoning_tokens,
        "cost_usd": row.nanodollars.map(dollars),
        "notes": row.notes.split_ascii_whitespace().collect::<Vec<_>>(),
    })
}

/// All that is kept of a trace. What is nothing is there, too, so that whoever reads it need not ask.
pub(super) fn detail(trace: &StoredTrace) -> Value {
    let mut shown = summary(trace.number, &trace.row);
    for list in ["attempts", "rounds", "tool_calls", "notes", "charges"] {
        shown[list] = json!([]);
    }
    for object in ["request", "times"] {
        shown[object] = json!({});
    }
    for nothing in ["usage", "own_usage", "prefix", "error"] {
        shown[nothing] = Value::Null;
    }
    shown["events"] = json!({"upstream": 0, "sent": 0});
    if let Ok(Value::Object(document)) = serde_json::from_slice(&trace.document) {
        for (name, value) in document {
            shown[name] = value;
        }
    }
    shown["overhead_ms"] = overhead(&trace.row, &shown["times"]["client_ms"]).map_or(Value::Null, ms);
    let mut payloads = Map::new();
    for payload in &trace.payloads {
        if payload.name == trace::WORDS {
            let words = serde_json::from_slice(&payload.bytes).unwrap_or_default();
            tell(&mut shown, &words);
            continue;
        }
        let text = String::from_utf8_lossy(&payload.bytes);
        payloads.insert(payload.name.clone(), json!({"text": text, "cut_from": payload.cut_from}));
    }
    shown["payloads"] = payloads.into();
    shown
}

/// What was left for godex itself, as metrics and spans have it. Lists do not know for how long the client was waited for.
fn overhead(row: &TraceRow<'_>, client: &Value) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "no request takes a century")]
    let client = client.as_f64().map_or(0, |ms| (ms * 1000.0).round() as i64);
    let own = row.took_micros.saturating_sub(row.upstream_micros?).saturating_sub(client);
    Some(own.max(0))
}

/// Puts what others said where it belongs.
fn tell(shown: &mut Value, words: &Value) {
    if let (Value::String(message), true) = (&words["message"], shown["error"].is_object()) {
        shown["error"]["message"] = message.as_str().into();
    }
    for (at, detail) in words["details"].as_object().into_iter().flatten() {
        let note = at.parse::<usize>().ok().and_then(|at| shown["notes"].get_mut(at));
        if let Some(note) = note {
            note["detail"] = detail.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_in_every_form() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1700000000", Some(1_700_000_000_000_000)),
            ("1700000000123", Some(1_700_000_000_123_000)),
            ("2026-11-16T16:33:12.345Z", Some(1_794_846_792_345_000)),
            ("-1", None),
            ("yesterday", None),
            ("9223372036854775807", None),
        ] {
            assert_eq!(time(text), expected, "{text}");
        }
        let then = time("1h").unwrap();
        let ago = now() - then;
        assert!((micros(SERIES)..micros(SERIES) + SECOND).contains(&ago), "{ago}");
    }

    #[test]
    fn what_the_client_was_waited_for_is_not_ours() {
        for (upstream, times, expected) in [
            (Some(1_000), "{}", json!(8)),
            (Some(1_000), "{\"client_ms\":5.250}", json!(2.75)),
            (Some(7_000), "{\"client_ms\":5}", json!(0)),
            (None, "{\"client_ms\":5}", Value::Null),
        ] {
            let shown = detail(&StoredTrace {
                number: 7,
                unreadable: false,
                row: TraceRow { took_micros: 9_000, upstream_micros: upstream, ..TraceRow::default() },
                document: format!("{{\"times\":{times}}}").into(),
                payloads: Vec::new(),
            });
            assert_eq!(shown["overhead_ms"], expected, "{times}");
        }
    }

    #[test]
    fn a_trace_without_anything_has_all_members() {
        let trace = StoredTrace {
            number: 7,
            unreadable: false,
            row: TraceRow { took_micros: 1500, notes: "a b".into(), ..TraceRow::default() },
            document: bytes::Bytes::from_static(b"{\"error\":{\"code\":\"x\"},\"notes\":[{\"code\":\"a\"}]}"),
            payloads: vec![
                store::Payload {
                    name: trace::WORDS.to_owned(),
                    bytes: bytes::Bytes::from_static(b"{\"message\":\"no\",\"details\":{\"0\":\"d\",\"9\":\"e\"}}"),
                    cut_from: None,
                },
                store::Payload {
                    name: "response".to_owned(),
                    bytes: bytes::Bytes::from_static(b"{\xff"),
                    cut_from: Some(9),
                },
            ],
        };
        let shown = detail(&trace);
        assert_eq!(shown["error"], json!({"code": "x", "message": "no"}));
        assert_eq!(shown["notes"], json!([{"code": "a", "detail": "d"}]));
        assert_eq!(shown["payloads"], json!({"response": {"text": "{\u{fffd}", "cut_from": 9}}));
        assert_eq!((&shown["took_ms"], &shown["attempts"], &shown["usage"]), (&json!(1.5), &json!([]), &Value::Null));
        assert_eq!(summary(7, &trace.row)["notes"], json!(["a", "b"]));
    }
}
