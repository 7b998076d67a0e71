//! The table of routes, and what every answer carries.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, EXPECT, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Version};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;
use wire::id::IdKind;

use crate::access::Shown;
use crate::account::{Account, Outcome};
use crate::api::{conversations, health, metrics, models, responses, search};
use crate::app::App;
use crate::body::Body;
use crate::caller::Caller;
use crate::client::Client;
use crate::clock;
use crate::error::ApiError;
use crate::guard;
use crate::request::RequestContext;
use crate::socket;
use crate::turn::Start;

/// Of a body that nobody wants, so many bytes are read, for so long.
const READ_AWAY: u64 = 64 << 10;
const READ_AWAY_WITHIN: Duration = Duration::from_secs(1);

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
    CompactResponse,
    InputItems,
    InputTokens,
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
    Search,
    Health,
    Ready,
    Metrics,
}

const fn route(method: &'static str, path: &'static str, endpoint: Endpoint) -> Route {
    Route { method, path, endpoint }
}

/// Everything that is served.
pub const ROUTES: &[Route] = &[
    route("POST", "/v1/responses", Endpoint::CreateResponse),
    route("GET", "/v1/responses", Endpoint::ResponsesSocket),
    route("POST", "/v1/responses/compact", Endpoint::CompactResponse),
    route("POST", "/v1/responses/input_tokens", Endpoint::InputTokens),
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
    route("POST", "/v1/alpha/search", Endpoint::Search),
    route("GET", "/health", Endpoint::Health),
    route("GET", "/ready", Endpoint::Ready),
    route("GET", "/metrics", Endpoint::Metrics),
];

/// Who is at the other end of a connection.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    pub(crate) shown: Shown,
}

/// Answers one request. Errors become OpenAI's error object, every answer gets its `x-request-id`, and all of it is in
/// the request's account.
pub(crate) async fn answer(app: Arc<App>, request: Request<Incoming>, from: &Peer) -> Response<Body> {
    let mut ids = clock::ids();
    let own_id = ids.make(IdKind::Request);
    let path = request.uri().path().to_owned();
    let account = Account::open(request.method(), &path, request.headers(), &own_id);
    account.observed_by(&app.runtime.observers);
    let (method, snapshot, client) = (request.method().clone(), app.snapshot(), Client::of(request.headers()));
    account.came_from(snapshot.config.server.trusted_proxies.client(from.address, request.headers()));
    let admitted = guard::admit(&snapshot.config.server, &request, is_public(&path));
    let mut closes = false;
    let (admitted, answer) = match admitted {
        Ok(admitted) => match admitted.preflight(&request, || methods(&path)) {
            Some(response) => (Some(admitted), Ok(response)),
            None => match caller(&app, request.headers(), &from.shown, &path, &account).await {
                Ok(caller) => {
                    let context = RequestContext { app, snapshot, caller, account: account.clone(), ids };
                    (Some(admitted), dispatch_until_stopped(context, request, &path).await)
                }
                Err(error) => {
                    closes = Box::pin(turned_away(request, &path, &account)).await;
                    (Some(admitted), Err(error))
                }
            },
        },
        Err(error) => {
            closes = Box::pin(turned_away(request, &path, &account)).await;
            (None, Err(error))
        }
    };
    // What a client makes of errors is known of requests that make something; others look at the path itself.
    let answer = answer.map_err(|error| if method == Method::POST { client.shown(error) } else { error });
    let domain = answer.as_ref().err().map(|error| {
        account.explained(&error.message);
        account.refused();
        error.code.domain()
    });
    let mut response = answer.unwrap_or_else(|error| error.response().map(Body::full));
    if method == Method::HEAD {
        without_body(&mut response);
    }
    if let Some(admitted) = admitted {
        admitted.share(response.headers_mut());
    }
    if closes {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    account.sign(response.headers_mut());
    account.answered(response.status().as_u16(), domain);
    response.body_mut().charge(account);
    response
}

/// A request that is refused before its body is read: a short body is read away, so that the connection can be used for the
/// next one. Whether the connection ends, because that would take too long.
async fn turned_away(request: Request<Incoming>, path: &str, account: &Account) -> bool {
    if let Ok((route, _)) = find(request.method(), path, request.headers().contains_key(UPGRADE)) {
        account.heads_for(route.path);
    }
    // Whoever waits to be asked for the body is not asked for it.
    let waits = request.headers().contains_key(EXPECT);
    let (is_plain, mut body) = (request.version() <= Version::HTTP_11, request.into_body());
    if !is_plain || http_body::Body::is_end_stream(&body) {
        return false;
    }
    if waits || http_body::Body::size_hint(&body).lower() > READ_AWAY {
        return true;
    }
    let read = async {
        let mut read = 0;
        while let Some(Ok(frame)) = body.frame().await {
            read += frame.data_ref().map_or(0, Bytes::len) as u64;
            if read > READ_AWAY {
                return false;
            }
        }
        true
    };
    !tokio::time::timeout(READ_AWAY_WITHIN, read).await.unwrap_or(false)
}

/// Answers the operator as a client without a key is answered who creates a response. The body was read, under the cap for
/// clients' bodies.
pub(crate) async fn answer_operator(app: &Arc<App>, path: &'static str, body: Bytes) -> Response<Body> {
    let (mut ids, nothing) = (clock::ids(), HeaderMap::new());
    let account = Account::open(&Method::POST, path, &nothing, &ids.make(IdKind::Request));
    account.observed_by(&app.runtime.observers);
    account.received(body.len());
    let caller = Caller::operator(Client::of(&nothing));
    account.routed("/v1/responses", &caller);
    let (app, snapshot) = (Arc::clone(app), app.snapshot());
    let begun = app.runtime.limits.load().takes_turns().and_then(|()| app.runtime.presence.enter(caller.tenant()));
    let answer = match begun {
        Ok(present) => {
            account.works_for(present);
            let (presence, tenant) = (Arc::clone(&app.runtime.presence), caller.tenant().clone());
            let context = RequestContext { app, snapshot, caller, account: account.clone(), ids };
            tokio::select! {
                biased;
                () = presence.must_end(&tenant) => Err(presence.ended()),
                answer = responses::begin(context, body, Start::default()) => answer,
            }
        }
        Err(error) => Err(error),
    };
    let domain = answer.as_ref().err().map(|error| error.code.domain());
    let mut response = answer.unwrap_or_else(|error| error.response().map(Body::full));
    account.sign(response.headers_mut());
    account.answered(response.status().as_u16(), domain);
    response.body_mut().charge(account);
    response
}

/// Who asks, if it may.
async fn caller(
    app: &App,
    headers: &HeaderMap,
    shown: &Shown,
    path: &str,
    account: &Account,
) -> Result<Caller, ApiError> {
    // Whether the operator asks, the endpoint itself looks.
    let public = is_public(path) || path == "/metrics";
    let grant = match app.runtime.access.admit(headers, shown).await {
        Err(_) if public => None,
        admitted => admitted?,
    };
    let caller = Caller::new(grant, headers);
    if !public {
        account.works_for(app.runtime.presence.enter(caller.tenant())?);
    }
    Ok(caller)
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
    *response.body_mut() = Body::full(Bytes::new());
}

/// What is not answered when the server stops at once is answered with that.
async fn dispatch_until_stopped(
    context: RequestContext,
    request: Request<Incoming>,
    path: &str,
) -> Result<Response<Body>, ApiError> {
    let (presence, account) = (Arc::clone(&context.app.runtime.presence), context.account.clone());
    let tenant = context.caller.tenant().clone();
    tokio::select! {
        biased;
        () = presence.must_end(&tenant) => {
            account.ended(Outcome::Stopped);
            Err(presence.ended())
        }
        answer = dispatch(context, request, path) => answer,
    }
}

async fn dispatch(context: RequestContext, request: Request<Incoming>, path: &str) -> Result<Response<Body>, ApiError> {
    let upgrade = request.headers().contains_key(UPGRADE);
    let (route, parameters) = find(request.method(), path, upgrade)?;
    context.account.routed(route.path, &context.caller);
    bearable(&context.app, route.endpoint)?;
    let [id, item_id] = parameters.map(|part| percent_decode_str(part).decode_utf8_lossy());
    let (id, item_id, uri) = (&*id, &*item_id, request.uri().clone());
    match route.endpoint {
        Endpoint::CreateResponse => responses::create(context, request).await,
        Endpoint::ResponsesSocket => socket::open(&context, request),
        Endpoint::RetrieveResponse => responses::retrieve(&context, id, &uri).await,
        Endpoint::DeleteResponse => responses::delete(&context, id).await,
        Endpoint::CompactResponse => responses::compact(context, request).await,
        Endpoint::CancelResponse => responses::cancel(&context, id).await,
        Endpoint::InputTokens => responses::input_tokens(&context, request).await,
        Endpoint::InputItems => responses::input_items(&context, id, &uri).await,
        Endpoint::CreateConversation => conversations::create(&context, request).await,
        Endpoint::RetrieveConversation => conversations::retrieve(&context, id).await,
        Endpoint::UpdateConversation => conversations::update(&context, id, request).await,
        Endpoint::DeleteConversation => conversations::delete(&context, id).await,
        Endpoint::CreateItems => conversations::create_items(&context, id, request).await,
        Endpoint::ListItems => conversations::list_items(&context, id, &uri).await,
        Endpoint::RetrieveItem => conversations::retrieve_item(&context, id, item_id).await,
        Endpoint::DeleteItem => conversations::delete_item(&context, id, item_id).await,
        Endpoint::ListModels => Ok(models::list(&context, request.headers()).await),
        Endpoint::RetrieveModel => models::retrieve(&context, id).await,
        Endpoint::Search => search::search(&context, request).await,
        Endpoint::Health => Ok(health::health(&context)),
        Endpoint::Ready => health::ready(&context.app).await,
        Endpoint::Metrics => metrics::metrics(&context, request.method(), request.headers()).await,
    }
}

/// Refuses the newest work first, before its body is read, when the server has as much as it can bear.
fn bearable(app: &App, endpoint: Endpoint) -> Result<(), ApiError> {
    let load = app.runtime.limits.load();
    match endpoint {
        Endpoint::Health | Endpoint::Ready | Endpoint::Metrics => Ok(()),
        Endpoint::CreateResponse | Endpoint::CompactResponse | Endpoint::Search => load.takes_turns(),
        // Each of its turns is looked at when it comes.
        Endpoint::ResponsesSocket => load.has_memory(),
        _ => load.takes_requests(),
    }
}

/// The route, and the parts of the path that its pattern leaves open. A HEAD is a GET without the body.
fn find<'p>(method: &Method, path: &'p str, upgrade: bool) -> Result<(&'static Route, [&'p str; 2]), ApiError> {
    let name = if *method == Method::HEAD { "GET" } else { method.as_str() };
    for (route, parameters) in candidates(path) {
        if route.method == name && (upgrade || route.endpoint != Endpoint::ResponsesSocket) {
            return Ok((route, parameters));
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
            (Method::POST, "/v1/responses/input_tokens", Some((Endpoint::InputTokens, ["", ""]))),
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
            let found = find(&method, path, false).ok().map(|(route, parameters)| (route.endpoint, parameters));
            assert_eq!(found, expected, "{method} {path}");
        }
        let refused = find(&Method::PUT, "/v1/conversations/c", false).unwrap_err();
        assert_eq!((refused.status.as_u16(), refused.allow.as_deref()), (405, Some("GET, HEAD, POST, DELETE")));
    }
}
