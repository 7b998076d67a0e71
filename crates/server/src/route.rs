//! The table of routes, and what every answer carries.

use std::sync::Arc;

use http::{HeaderValue, Method, Request, Response};
use hyper::body::Incoming;
use wire::id::{IdKind, Ids};

use crate::api::{conversations, health, models, responses};
use crate::app::App;
use crate::body::Body;
use crate::clock;
use crate::error::ApiError;
use crate::guard;

/// One method of one path. `{id}` is one segment, `{*id}` the rest of the path.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    pub method: &'static str,
    pub path: &'static str,
    endpoint: Endpoint,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endpoint {
    CreateResponse,
    ResponsesSocket,
    RetrieveResponse,
    DeleteResponse,
    CancelResponse,
    InputItems,
    CreateConversation,
    RetrieveConversation,
    UpdateConversation,
    DeleteConversation,
    CreateItems,
    ListItems,
    RetrieveItem,
    DeleteItem,
    ListModels,
    RetrieveModel,
    Health,
    Ready,
}

const fn route(method: &'static str, path: &'static str, endpoint: Endpoint) -> Route {
    Route { method, path, endpoint }
}

/// Everything that is served.
pub const ROUTES: &[Route] = &[
    route("POST", "/v1/responses", Endpoint::CreateResponse),
    route("GET", "/v1/responses", Endpoint::ResponsesSocket),
    route("GET", "/v1/responses/{id}", Endpoint::RetrieveResponse),
    route("DELETE", "/v1/responses/{id}", Endpoint::DeleteResponse),
    route("POST", "/v1/responses/{id}/cancel", Endpoint::CancelResponse),
    route("GET", "/v1/responses/{id}/input_items", Endpoint::InputItems),
    route("POST", "/v1/conversations", Endpoint::CreateConversation),
    route("GET", "/v1/conversations/{id}", Endpoint::RetrieveConversation),
    route("POST", "/v1/conversations/{id}", Endpoint::UpdateConversation),
    route("DELETE", "/v1/conversations/{id}", Endpoint::DeleteConversation),
    route("POST", "/v1/conversations/{id}/items", Endpoint::CreateItems),
    route("GET", "/v1/conversations/{id}/items", Endpoint::ListItems),
    route("GET", "/v1/conversations/{id}/items/{item_id}", Endpoint::RetrieveItem),
    route("DELETE", "/v1/conversations/{id}/items/{item_id}", Endpoint::DeleteItem),
    route("GET", "/v1/models", Endpoint::ListModels),
    route("GET", "/v1/models/{*id}", Endpoint::RetrieveModel),
    route("GET", "/health", Endpoint::Health),
    route("GET", "/ready", Endpoint::Ready),
];

/// Answers one request. Errors become OpenAI's error object, every answer gets its `x-request-id`.
pub(crate) async fn answer(app: Arc<App>, request: Request<Incoming>) -> Response<Body> {
    let mut ids = clock::ids();
    let request_id = ids.make(IdKind::Request);
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let admitted = guard::admit(&app.config.server, &request, is_public(&path));
    let (admitted, answer) = match admitted {
        Ok(admitted) => match admitted.preflight(&request, &methods(&path)) {
            Some(response) => (Some(admitted), Ok(response)),
            None => (Some(admitted), dispatch_until_stopped(app, request, &path, ids).await),
        },
        Err(error) => (None, Err(error)),
    };
    let mut response = answer.unwrap_or_else(|error| {
        let status = error.status.as_u16();
        let code = error.code.domain();
        // Not the message: it may repeat what the client or the model said, and that is not for the log.
        tracing::info!(%request_id, %method, %path, status, code, param = error.param.as_deref(), "refused");
        error.response()
    });
    if method == Method::HEAD {
        without_body(&mut response);
    }
    if let Some(admitted) = admitted {
        admitted.share(response.headers_mut());
    }
    if let Ok(id) = HeaderValue::try_from(request_id.as_str()) {
        response.headers_mut().insert("x-request-id", id);
    }
    response
}

/// Everybody may ask whether the server is there: balancers, and pages that show it.
fn is_public(path: &str) -> bool {
    matches!(path, "/health" | "/ready")
}

/// The head of the answer to a GET, with its length.
fn without_body(response: &mut Response<Body>) {
    let length = http_body::Body::size_hint(response.body()).exact();
    if let Some(length) = length {
        response.headers_mut().insert(http::header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    *response.body_mut() = Body::full(bytes::Bytes::new());
}

/// What is not answered when the server stops at once is answered with that.
async fn dispatch_until_stopped(
    app: Arc<App>,
    request: Request<Incoming>,
    path: &str,
    ids: Ids,
) -> Result<Response<Body>, ApiError> {
    let stop = Arc::clone(&app.stop);
    tokio::select! {
        biased;
        () = stop.now() => Err(ApiError::shutting_down()),
        answer = dispatch(app, request, path, ids) => answer,
    }
}

async fn dispatch(app: Arc<App>, request: Request<Incoming>, path: &str, ids: Ids) -> Result<Response<Body>, ApiError> {
    let (endpoint, parameters) = find(request.method(), path, request.headers().contains_key(http::header::UPGRADE))?;
    let [id, item_id] = parameters.map(percent_decode);
    let (id, item_id) = (id.as_str(), item_id.as_str());
    match endpoint {
        // Boxed: it is large, and hyper keeps the room for it as long as the connection lives, through every stream.
        Endpoint::CreateResponse => Box::pin(responses::create(app, request, ids)).await,
        Endpoint::ResponsesSocket => Err(ApiError::upgrade_required()),
        Endpoint::RetrieveResponse => responses::retrieve(&app, id, request.uri()).await,
        Endpoint::DeleteResponse => responses::delete(&app, id).await,
        Endpoint::CancelResponse => responses::cancel(&app, id).await,
        Endpoint::InputItems => responses::input_items(&app, id, request.uri()).await,
        Endpoint::CreateConversation => conversations::create(&app, request, ids).await,
        Endpoint::RetrieveConversation => conversations::retrieve(&app, id).await,
        Endpoint::UpdateConversation => conversations::update(&app, id, request).await,
        Endpoint::DeleteConversation => conversations::delete(&app, id).await,
        Endpoint::CreateItems => conversations::create_items(&app, id, request, ids).await,
        Endpoint::ListItems => conversations::list_items(&app, id, request.uri()).await,
        Endpoint::RetrieveItem => conversations::retrieve_item(&app, id, item_id).await,
        Endpoint::DeleteItem => conversations::delete_item(&app, id, item_id).await,
        Endpoint::ListModels => Ok(models::list(&app)),
        Endpoint::RetrieveModel => models::retrieve(&app, id),
        Endpoint::Health => Ok(health::health(&app)),
        Endpoint::Ready => health::ready(&app).await,
    }
}

/// The endpoint, and the parts of the path that its pattern leaves open. A HEAD is a GET without the body.
fn find<'p>(method: &Method, path: &'p str, upgrade: bool) -> Result<(Endpoint, [&'p str; 2]), ApiError> {
    let name = if *method == Method::HEAD { "GET" } else { method.as_str() };
    for (route, parameters) in candidates(path) {
        if route.method == name && (upgrade || route.endpoint != Endpoint::ResponsesSocket) {
            return Ok((route.endpoint, parameters));
        }
    }
    match methods(path) {
        none if none.is_empty() => Err(ApiError::not_found(method, path)),
        allowed => Err(ApiError::method_not_allowed(method, &allowed)),
    }
}

fn candidates(path: &str) -> impl Iterator<Item = (&'static Route, [&str; 2])> {
    ROUTES.iter().filter_map(move |route| Some((route, matched(route.path, path)?)))
}

/// What a path allows, as the `Allow` header has it; empty if there is no such path.
fn methods(path: &str) -> String {
    let mut allowed: Vec<&str> = Vec::new();
    for (route, _) in candidates(path).filter(|(route, _)| route.endpoint != Endpoint::ResponsesSocket) {
        allowed.push(route.method);
        if route.method == "GET" {
            allowed.push("HEAD");
        }
    }
    allowed.join(", ")
}

/// What a client escaped: the slash of `provider/model`, or everything but letters.
fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..2).filter(|hex| *first == b'%' && hex.iter().all(u8::is_ascii_hexdigit));
        match digits.and_then(|hex| u8::from_str_radix(str::from_utf8(hex).ok()?, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn matched<'p>(pattern: &str, path: &'p str) -> Option<[&'p str; 2]> {
    let mut parameters = [""; 2];
    let mut free = parameters.iter_mut();
    let mut rest = Some(path.strip_prefix('/')?);
    for part in pattern.strip_prefix('/')?.split('/') {
        let left = rest?;
        let (segment, tail) = match left.split_once('/') {
            Some((segment, tail)) if !part.starts_with("{*") => (segment, Some(tail)),
            _ => (left, None),
        };
        if part.starts_with('{') {
            *free.next()? = Some(segment).filter(|segment| !segment.is_empty())?;
        } else if part != segment {
            return None;
        }
        rest = tail;
    }
    rest.is_none().then_some(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_their_endpoints() {
        for (method, path, expected) in [
            (Method::POST, "/v1/responses", Some((Endpoint::CreateResponse, ["", ""]))),
            (Method::GET, "/v1/responses/resp_1", Some((Endpoint::RetrieveResponse, ["resp_1", ""]))),
            (Method::GET, "/v1/responses/a/input_items", Some((Endpoint::InputItems, ["a", ""]))),
            (Method::GET, "/v1/conversations/c/items/i", Some((Endpoint::RetrieveItem, ["c", "i"]))),
            (Method::GET, "/v1/models/a/b/c", Some((Endpoint::RetrieveModel, ["a/b/c", ""]))),
            (Method::GET, "/v1/responses/", None),
            (Method::GET, "/v1/responses/a/", None),
            (Method::GET, "/v1/responses//input_items", None),
            (Method::GET, "/v1/models/", None),
            (Method::GET, "", None),
            (Method::GET, "/v1/responses/a/b/c", None),
            (Method::GET, "/v1/responses", None),
        ] {
            assert_eq!(find(&method, path, false).ok(), expected, "{method} {path}");
        }
        for (escaped, plain) in [
            ("resp_1", "resp_1"),
            ("resp%5F1%2f", "resp_1/"),
            ("%", "%"),
            ("%4", "%4"),
            ("%+5%zz", "%+5%zz"),
            ("%C3%B6%ff", "ö\u{fffd}"),
        ] {
            assert_eq!(percent_decode(escaped), plain);
        }
        let refused = find(&Method::PUT, "/v1/conversations/c", false).unwrap_err();
        assert_eq!((refused.status.as_u16(), refused.allow.as_deref()), (405, Some("GET, HEAD, POST, DELETE")));
    }
}
