//! A request that was made before, out of what is known of it: the body that was captured, or else what the store has of
//! the response. The latter is not what the client wrote: what was left at its default, and keys of tools, are not there.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Map, Value, json};
use store::{StoredTrace, Tenant};

use super::gone::Gone;
use super::plans::shown_item;
use crate::app::App;
use crate::body::Room;
use crate::error::ApiError;
use crate::request::RequestContext;
use crate::session::{Given, Past, Session};
use crate::turn::Question;

/// What the request is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Captured,
    Stored,
}

impl Origin {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Captured => "captured",
            Self::Stored => "stored",
        }
    }
}

/// A request, as it can be planned again.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) origin: Origin,
    pub(crate) tenant: Tenant,
    /// The program that asked.
    pub(crate) client: Option<String>,
    pub(crate) request: Value,
    pub(crate) past: Past,
    /// What was taken out of it, because the store does not have it. It is planned without, and must not be sent so.
    pub(super) gone: Gone,
    /// `provider/model`, as far as it is known.
    pub(crate) served: Option<String>,
    /// What came of it; null if that is not known.
    pub(crate) response: Value,
    /// Of the past, which was read.
    _room: Option<Arc<Room>>,
}

/// What a response repeats of its request, and what it says where the request was silent.
fn echoed() -> [(&'static str, Value); 18] {
    [
        ("model", Value::Null),
        ("instructions", Value::Null),
        ("tools", json!([])),
        ("tool_choice", json!("auto")),
        ("parallel_tool_calls", json!(true)),
        ("max_tool_calls", Value::Null),
        ("max_output_tokens", Value::Null),
        ("temperature", json!(1.0)),
        ("top_p", json!(1.0)),
        ("top_logprobs", json!(0)),
        ("presence_penalty", json!(0.0)),
        ("frequency_penalty", json!(0.0)),
        ("text", json!({"format": {"type": "text"}, "verbosity": "medium"})),
        ("reasoning", json!({"effort": null, "summary": null})),
        ("truncation", json!("disabled")),
        ("metadata", json!({})),
        ("prompt_cache_key", Value::Null),
        ("user", Value::Null),
    ]
}

impl Source {
    /// What is known of that response, or of what that trace is of; None if nothing is.
    pub(crate) async fn find(
        app: &Arc<App>,
        id: &str,
        tenant: Option<Tenant>,
        trace: Option<&StoredTrace>,
    ) -> Result<Option<Self>, ApiError> {
        let row = trace.map(|trace| &trace.row);
        let id = row.and_then(|row| row.response_id.as_deref()).unwrap_or(id);
        let tenants = match (row, tenant) {
            (Some(row), _) => vec![Tenant::new(&row.tenant)],
            (None, Some(tenant)) => vec![tenant],
            (None, None) => all_tenants(app).await?,
        };
        let mut found = None;
        for tenant in &tenants {
            let session = app.runtime.sessions.of(tenant.clone());
            if let Some(stored) = session.stored(id).await? {
                let object = Session::object(&stored).and_then(|object| super::read(&object).ok());
                found = Some((session, tenant.clone(), object.unwrap_or(Value::Null)));
                break;
            }
        }
        let served =
            row.and_then(|row| Some(format!("{}/{}", row.provider.as_deref()?, row.upstream_model.as_deref()?)));
        let client = row.map(|row| row.client.to_string());
        if let Some(request) = trace.and_then(|trace| captured(trace, "request")) {
            let asked = match &found {
                Some((session, ..)) => AsAsked::with(request, there(session.given(id).await)?),
                None => AsAsked::alone(request),
            };
            let tenant = tenants.into_iter().next().unwrap_or_default();
            let AsAsked { request, past, gone, room } = asked;
            let response =
                found.map(|(_, _, object)| object).or_else(|| trace.and_then(|trace| captured(trace, "response")));
            let response = response.unwrap_or_default();
            return Ok(Some(Self {
                origin: Origin::Captured,
                tenant,
                client,
                request,
                past,
                gone,
                served,
                response,
                _room: room,
            }));
        }
        let Some((session, tenant, response)) = found else { return Ok(None) };
        let given = session.given(id).await;
        // What it continued is gone: then its trace is all that can be told of it.
        let given = if trace.is_some() { there(given)? } else { Some(given?) };
        let Some(Given { past, input, room }) = given else { return Ok(None) };
        let request = of_response(&response, input.iter().map(shown_item).collect());
        let (past, gone, room) = (Past::Remembered(past), Gone::default(), Some(room));
        Ok(Some(Self { origin: Origin::Stored, tenant, client, request, past, gone, served, response, _room: room }))
    }

    /// Reads what it continues. What the store does not have is taken out of it. The inner error is what else is wrong with
    /// it, for which a client is refused.
    pub(super) async fn open(&mut self, context: &RequestContext) -> Result<Result<Question, ApiError>, ApiError> {
        loop {
            let past = match &self.past {
                Past::Remembered(items) => Past::Remembered(items.clone()),
                Past::Stored | Past::Begun => Past::Stored,
            };
            let opened = Question::open(context, Bytes::from(self.request.to_string()), past).await;
            let Err(error) = opened else { return Ok(opened) };
            if !self.gone.take(&error, &mut self.request, context).await? {
                return if error.status.is_client_error() { Ok(Err(error)) } else { Err(error) };
            }
        }
    }

    /// The response, if the store has it.
    pub(crate) async fn stored(app: &Arc<App>, id: &str, tenant: &Tenant) -> Result<Option<Value>, ApiError> {
        let stored = app.runtime.sessions.of(tenant.clone()).stored(id).await?;
        let object = |stored| Session::object(&stored).and_then(|object| super::read(&object).ok());
        Ok(stored.map(|stored| object(stored).unwrap_or_default()))
    }

    /// Whether the store has that response; of this tenant, or of any.
    pub(crate) async fn is_stored(app: &Arc<App>, id: &str, tenant: Option<&Tenant>) -> Result<bool, ApiError> {
        let tenants = match tenant {
            Some(tenant) => vec![tenant.clone()],
            None => all_tenants(app).await?,
        };
        for tenant in tenants {
            if app.runtime.sessions.of(tenant).stored(id).await?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// What a response was given, or None if part of that was deleted. A store that does not answer has deleted nothing.
fn there(given: Result<Given, ApiError>) -> Result<Option<Given>, ApiError> {
    match given {
        Err(error) if error.status == StatusCode::NOT_FOUND => Ok(None),
        given => given.map(Some),
    }
}

/// The tenant of whoever needs no key first.
async fn all_tenants(app: &Arc<App>) -> Result<Vec<Tenant>, ApiError> {
    let holdings = app.runtime.store.holdings().await.map_err(|error| ApiError::store(&error))?;
    let others = holdings.into_iter().map(|held| held.tenant).filter(|tenant| *tenant != Tenant::default());
    Ok(std::iter::once(Tenant::default()).chain(others).collect())
}

/// A body that was captured as a whole.
fn captured(trace: &StoredTrace, name: &str) -> Option<Value> {
    let payload = trace.payloads.iter().find(|payload| payload.name == name && payload.cut_from.is_none())?;
    super::read(&payload.bytes).ok().filter(Value::is_object)
}

/// A captured request with the past that it had.
struct AsAsked {
    request: Value,
    past: Past,
    gone: Gone,
    room: Option<Arc<Room>>,
}

impl AsAsked {
    fn alone(request: Value) -> Self {
        Self { request, past: Past::Stored, gone: Gone::default(), room: None }
    }

    /// A conversation has gone on since: what a stored response was `given` is its past. None: part of that was deleted.
    fn with(mut request: Value, given: Option<Given>) -> Self {
        let mut gone = Gone::default();
        if !gone.take_past(&mut request) {
            return Self::alone(request);
        }
        match given {
            Some(Given { mut past, mut input, room }) => {
                // What only its connection remembered is stored nowhere else: it is the beginning of what was given.
                if past.is_empty() {
                    input.truncate(input.len().saturating_sub(own_items(&request)));
                    past = input;
                }
                Self { past: Past::Remembered(past), room: Some(room), ..Self::alone(request) }
            }
            None => Self { gone, ..Self::alone(request) },
        }
    }
}

/// How many items the request has itself.
fn own_items(request: &Value) -> usize {
    match &request["input"] {
        Value::Array(items) => items.len(),
        input => usize::from(!input.is_null()),
    }
}

/// The request that such a response was made for.
fn of_response(response: &Value, input: Vec<Value>) -> Value {
    let mut request = Map::new();
    for (name, usual) in echoed() {
        let said = response.get(name).filter(|said| !said.is_null() && !same(said, &usual));
        request.extend(said.map(|said| (name.to_owned(), said.clone())));
    }
    for object in ["reasoning", "text"] {
        if let Some(Value::Object(members)) = request.get_mut(object) {
            members.retain(|_, value| !value.is_null());
        }
    }
    request.insert("input".to_owned(), Value::Array(input));
    request.into()
}

/// Whether both say the same: `1` is `1.0`.
fn same(one: &Value, other: &Value) -> bool {
    one == other || one.is_number() && one.as_f64() == other.as_f64()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use store::{MemoryLimits, Payload, Store, TraceRow};

    use super::*;
    use crate::config::{Overrides, Purpose, Sources, load};
    use crate::explain::again;

    async fn app() -> Arc<App> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("godex.yaml");
        std::fs::write(&path, "session: {backend: memory}\nproviders: {groq: {}, demo: {}}\n").unwrap();
        let overrides = Overrides { purpose: Purpose::Look, ..Overrides::default() };
        let sources = Sources { config_path: Some(&path), cwd: folder.path(), home: None, env: &|_| None, overrides };
        let config = load(&sources).unwrap_or_else(|problems| panic!("{problems}"));
        let store = Store::memory(MemoryLimits::default()).unwrap();
        Arc::new(App::looking(config, store).await.unwrap())
    }

    fn traced(request: &str, response: &str) -> StoredTrace {
        let payload = |name: &str, bytes: &str| Payload {
            name: name.to_owned(),
            bytes: Bytes::copy_from_slice(bytes.as_bytes()),
            cut_from: None,
        };
        let row = TraceRow {
            tenant: "a".into(),
            client: "codex/0.50.0".into(),
            provider: Some("groq".into()),
            upstream_model: Some("x".into()),
            ..TraceRow::default()
        };
        let payloads = vec![payload("request", request), payload("response", response)];
        StoredTrace { number: 7, row, document: Bytes::from_static(b"{}"), payloads, unreadable: false }
    }

    #[tokio::test]
    async fn what_was_captured_is_planned_for_whom_it_was_sent_to() {
        let app = app().await;
        // Codex may send an output whose call is gone; from anybody else it would be refused.
        let request = r#"{"model":"alias","input":[{"type":"function_call_output","call_id":"c","output":"x"}],"temperature":0.5}"#;
        let trace = traced(request, r#"{"id":"resp_1","status":"completed"}"#);
        let source = Source::find(&app, "7", None, Some(&trace)).await.unwrap().unwrap();
        assert_eq!((source.origin, source.tenant.name()), (Origin::Captured, "a"));
        let again = again(&app, source, None).await.unwrap();
        assert_eq!(
            (&again["source"], &again["plan"]["provider"], &again["plan"]["model"]),
            (&json!("captured"), &json!("groq"), &json!("x"))
        );
        assert_eq!(again["plan"]["chat_request"]["temperature"], 0.5);
        assert_eq!(again["plan"]["links"], json!([{"item": "input[0]", "to": ["messages[0]"]}]));
        assert_eq!(again["plan"]["notes"][0]["action"], "repaired");
        assert_eq!(again["response"]["id"], "resp_1");
    }

    #[tokio::test]
    async fn nothing_is_known_of_what_is_neither_captured_nor_stored() {
        let app = app().await;
        let mut trace = traced("{}", "{}");
        trace.payloads.clear();
        assert!(Source::find(&app, "7", None, Some(&trace)).await.unwrap().is_none());
        assert!(Source::find(&app, "resp_none", None, None).await.unwrap().is_none());
    }

    #[test]
    fn only_a_whole_body_is_a_request() {
        let payload = |name: &str, bytes: &'static str, cut_from| Payload {
            name: name.to_owned(),
            bytes: Bytes::from_static(bytes.as_bytes()),
            cut_from,
        };
        for (payload, expected) in [
            (payload("request", r#"{"model":"m"}"#, None), true),
            (payload("request", r#"{"model":"m"}"#, Some(100)), false),
            (payload("request", r#"{"model":"#, None), false),
            (payload("request", "[]", None), false),
            (payload("chat_request.1", r#"{"model":"m"}"#, None), false),
        ] {
            let row = TraceRow::default();
            let trace = StoredTrace {
                number: 1,
                row,
                document: Bytes::new(),
                payloads: vec![payload.clone()],
                unreadable: false,
            };
            assert_eq!(captured(&trace, "request").is_some(), expected, "{payload:?}");
        }
    }

    #[test]
    fn what_was_left_at_its_default_is_not_asked_for() {
        let response = json!({"id": "resp_1", "model": "m", "temperature": 1, "top_p": 0.5, "tools": [], "tool_choice": "auto",
            "reasoning": {"effort": "low", "summary": null}, "text": {"format": {"type": "text"}, "verbosity": "medium"},
            "metadata": {}, "instructions": null, "output": [], "usage": {}, "previous_response_id": "resp_0"});
        let expected = json!({"model": "m", "top_p": 0.5, "reasoning": {"effort": "low"}, "input": ["x"]});
        assert_eq!(of_response(&response, vec![json!("x")]), expected);
    }
}
