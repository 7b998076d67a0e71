//! What requests become, and became: plans for whoever wants to see them, and requests that are sent once more.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, Uri};
use serde::Deserialize;
use serde_json::json;
use store::{StoredTrace, Tenant};
use wire::json::{Kind, Raw, Text};

use super::routes::{self, Place};
use super::traces;
use crate::app::App;
use crate::body::{self, Body};
use crate::error::{ApiError, Code};
use crate::explain::{self, Source};
use crate::session::Past;

/// What `POST /admin/explain` may say.
const MEMBERS: [&str; 3] = ["request", "models", "tenant"];

/// `POST /admin/replay`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Replay {
    /// A response, or whatever else a trace is known by.
    id: String,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    tenant: Option<String>,
}

/// The server, or what is there of one without it.
async fn app(place: Place<'_>) -> Result<Arc<App>, ApiError> {
    if let Some(desk) = place.desk {
        return Ok(Arc::clone(&desk.app));
    }
    let app = App::looking(place.config.clone(), place.store.clone()).await;
    app.map(Arc::new).map_err(|error| ApiError::new(Code::InvalidRequest, error.to_string()))
}

/// Plans a request that nobody has sent.
pub(super) async fn request(place: Place<'_>, body: &Bytes) -> Result<Response<Body>, ApiError> {
    let said = body::parse::<Raw<'_>>(body)?;
    let refused = |message: String, param: &str| ApiError::new(Code::InvalidRequest, message).with_param(param);
    if let Some((key, _)) = said.fields().find(|(key, _)| !MEMBERS.iter().any(|name| key.is(name))) {
        let name: String = key.decode().chars().take(64).collect();
        return Err(refused(format!("There is no '{name}' here: {}.", MEMBERS.join(", ")), &name));
    }
    let member = |name: &str| said.get(name).filter(|value| !value.is_null());
    let Some(request) = member("request").filter(|request| request.kind() == Kind::Object) else {
        return Err(refused("'request' is the request to plan, an object.".to_owned(), "request"));
    };
    let text = |value: Raw<'_>| value.text().map(Text::decode).map(std::borrow::Cow::into_owned);
    let models: Option<Vec<String>> = match member("models") {
        Some(models) if models.kind() == Kind::Array => models.elements().map(text).collect(),
        Some(_) => None,
        None => Some(Vec::new()),
    };
    let models = models.ok_or_else(|| refused("'models' is a list of names.".to_owned(), "models"))?;
    if models.len() > explain::MOST_MODELS {
        let message = format!("'models' has {} names, and may have {}.", models.len(), explain::MOST_MODELS);
        return Err(refused(message, "models"));
    }
    let tenant = member("tenant").and_then(text).map(|name| routes::tenant(&name)).transpose()?;
    let context = explain::onlooker(&app(place).await?, tenant.unwrap_or_default(), None);
    let request = body.slice_ref(request.as_str().as_bytes());
    Ok(routes::json(&Box::pin(explain::of_models(&context, request, Past::Stored, &models)).await?))
}

/// Plans a request again that was made before.
pub(super) async fn trace(place: Place<'_>, id: &str, uri: &Uri) -> Result<Response<Body>, ApiError> {
    traces::only(uri, &["model", "tenant"])?;
    let app = app(place).await?;
    let tenant = routes::query(uri, "tenant").map(|name| routes::tenant(&name)).transpose()?;
    let Found { trace, unreadable } = find(place, &app, id, tenant.as_ref()).await?;
    let detail = trace.as_ref().map(traces::detail);
    let Some(source) = Source::find(&app, id, tenant, trace.as_ref()).await? else {
        let (Some(trace), Some(detail)) = (&trace, detail) else {
            return Err(unreadable.unwrap_or_else(|| ApiError::trace_not_found(id)));
        };
        let mut answer = json!({"trace": detail, "source": "none", "plan": null});
        // It may be there, though what it continued is not.
        let (id, tenant) = (trace.row.response_id.as_deref().unwrap_or(id), Tenant::new(&trace.row.tenant));
        if let Some(response) = Source::stored(&app, id, &tenant).await? {
            (answer["past_is_gone"], answer["response"]) = (true.into(), response);
        }
        return Ok(routes::json(&answer));
    };
    let model = routes::query(uri, "model");
    let mut again = Box::pin(explain::again(&app, source, model.as_deref())).await?;
    again["trace"] = detail.unwrap_or_default();
    if let Some(why) = unreadable {
        again["trace_unreadable"] = (*why.message).into();
    }
    Ok(routes::json(&again))
}

/// Sends a request again that was made before.
pub(super) async fn replay(place: Place<'_>, asked: &Replay) -> Result<Response<Body>, ApiError> {
    let app = Arc::clone(&place.server()?.app);
    let tenant: Option<Tenant> = asked.tenant.as_deref().map(routes::tenant).transpose()?;
    let Found { trace, unreadable } = find(place, &app, &asked.id, tenant.as_ref()).await?;
    let source = Source::find(&app, &asked.id, tenant, trace.as_ref()).await?;
    let Some(source) = source else {
        let Some(trace) = &trace else {
            return Err(unreadable.unwrap_or_else(|| ApiError::trace_not_found(&asked.id)));
        };
        let much = match beginning(trace) {
            Some((bytes, of)) => {
                format!(
                    "Only the beginning of this request was captured ({bytes} of {of} bytes, `trace.payload_max_bytes`)"
                )
            }
            None => "Nothing of this request was captured".to_owned(),
        };
        let message =
            format!("{much}, and its response, or what that continued, is not stored: it cannot be sent again.");
        return Err(ApiError::new(Code::InvalidRequest, message).with_param("id"));
    };
    let before = trace.as_ref().map(traces::detail);
    let mut answer = Box::pin(explain::replay(&app, source, asked.model.as_deref(), before.as_ref())).await?;
    if let Some((bytes, of)) = trace.as_ref().and_then(beginning) {
        answer["captured"] = json!({"bytes": bytes, "of": of});
    }
    Ok(routes::json(&answer))
}

/// How many bytes of the request were captured, and how many it had, where only its beginning was.
fn beginning(trace: &StoredTrace) -> Option<(usize, u64)> {
    let request = trace.payloads.iter().find(|payload| payload.name == "request")?;
    Some((request.bytes.len(), request.cut_from?))
}

/// What is known of a request by its trace.
struct Found {
    trace: Option<StoredTrace>,
    /// Why no trace can be read. What the store has of a response is there all the same.
    unreadable: Option<ApiError>,
}

/// The trace of that number, response or request, if there is one; of the tenant's, where one is named. Clients choose the
/// ids of requests: one that is a stored response's means that response.
async fn find(place: Place<'_>, app: &Arc<App>, id: &str, tenant: Option<&Tenant>) -> Result<Found, ApiError> {
    let none = |unreadable| Found { trace: None, unreadable };
    let trace = match traces::found(place, id, tenant).await {
        Ok(trace) => trace,
        Err(ApiError { code: Code::TracesOff | Code::TraceNotFound, .. }) => return Ok(none(None)),
        Err(error) => return Ok(none(Some(error))),
    };
    let is_by_request = trace.row.request_id == id && trace.row.response_id.as_deref() != Some(id);
    let is_another = is_by_request && Source::is_stored(app, id, tenant).await?;
    Ok(Found { trace: Some(trace).filter(|_| !is_another), unreadable: None })
}
