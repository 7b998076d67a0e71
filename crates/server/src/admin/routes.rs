//! The table of what the admin listener answers. The same is answered without a server, on a store that no server has
//! open; what only a server can do is not there then.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{Method, Response, Uri, header};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{Store, Tenant, TraceStore};

use super::client::{store_id, whole_path};
use super::{Desk, explain, keys, providers, store as stored, tenants, traces};
use crate::access::manage::ManageError;
use crate::body::Body;
use crate::clock;
use crate::config::{Config, NAME, is_name};
use crate::error::{ApiError, Code};
use crate::page;
use crate::route;
use crate::spending::report;
use crate::terms::Terms;
use crate::trace;

/// One method of one path. `{…}` is one segment.
#[derive(Debug, Clone, Copy)]
pub struct AdminRoute {
    pub method: &'static str,
    pub path: &'static str,
    endpoint: Endpoint,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endpoint {
    Status,
    Reload,
    Drain,
    ListKeys,
    CreateKey,
    ShowKey,
    RevokeKey,
    RotateKey,
    DeleteKey,
    ListTenants,
    EraseTenant,
    ShowTerms,
    SetTerms,
    ListSessions,
    Export,
    Usage(Report),
    ListTraces,
    ShowTrace,
    TraceChain,
    Series,
    Providers,
    Explain,
    ExplainTrace,
    Replay,
    Playground,
    Page,
    BackUp,
    Check,
}

/// In which form what was used is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Report {
    Completions,
    Costs,
    /// As `godex usage` has it.
    Plain,
}

const fn route(method: &'static str, path: &'static str, endpoint: Endpoint) -> AdminRoute {
    AdminRoute { method, path, endpoint }
}

/// Where the page sends what is tried out.
pub(super) const PLAYGROUND: &str = "/admin/playground/responses";

/// Everything that is answered.
pub const ADMIN_ROUTES: &[AdminRoute] = &[
    route("GET", "/admin/status", Endpoint::Status),
    route("POST", "/admin/reload", Endpoint::Reload),
    route("POST", "/admin/drain", Endpoint::Drain),
    route("GET", "/admin/keys", Endpoint::ListKeys),
    route("POST", "/admin/keys", Endpoint::CreateKey),
    route("GET", "/admin/keys/{name}", Endpoint::ShowKey),
    route("DELETE", "/admin/keys/{name}", Endpoint::RevokeKey),
    route("POST", "/admin/keys/{name}/rotate", Endpoint::RotateKey),
    route("POST", "/admin/keys/{name}/delete", Endpoint::DeleteKey),
    route("GET", "/admin/tenants", Endpoint::ListTenants),
    route("DELETE", "/admin/tenants/{tenant}", Endpoint::EraseTenant),
    route("GET", "/admin/tenants/{tenant}/terms", Endpoint::ShowTerms),
    route("PUT", "/admin/tenants/{tenant}/terms", Endpoint::SetTerms),
    route("GET", "/admin/tenants/{tenant}/sessions", Endpoint::ListSessions),
    route("GET", "/admin/tenants/{tenant}/export", Endpoint::Export),
    route("GET", "/admin/store/backup", Endpoint::BackUp),
    route("GET", "/admin/store/check", Endpoint::Check),
    route("GET", "/admin/usage", Endpoint::Usage(Report::Plain)),
    route("POST", "/admin/explain", Endpoint::Explain),
    route("GET", "/admin/traces/{id}/explain", Endpoint::ExplainTrace),
    route("POST", "/admin/replay", Endpoint::Replay),
    route("GET", "/v1/organization/usage/completions", Endpoint::Usage(Report::Completions)),
    route("GET", "/v1/organization/costs", Endpoint::Usage(Report::Costs)),
    route("GET", "/admin/traces", Endpoint::ListTraces),
    route("GET", "/admin/traces/{id}", Endpoint::ShowTrace),
    route("GET", "/admin/traces/{id}/chain", Endpoint::TraceChain),
    route("GET", "/admin/series", Endpoint::Series),
    route("GET", "/admin/providers", Endpoint::Providers),
    route("POST", PLAYGROUND, Endpoint::Playground),
    route("GET", "/", Endpoint::Page),
    route("GET", "/page/{file}", Endpoint::Page),
];

/// Where something is managed: in a server, or in a store that no server has open.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) store: &'a Store,
    pub(super) config: &'a Config,
    pub(super) desk: Option<&'a Arc<Desk>>,
    /// Where traces are if there is no server, once somebody has looked, or why they cannot be read.
    pub(super) traces: &'a OnceLock<LookedUp>,
}

/// The traces of a store that no server has open; None: none are kept.
pub(super) type LookedUp = Result<Option<TraceStore>, String>;

impl Place<'_> {
    /// The traces of a store that no server has open.
    pub(super) fn opened_traces(&self) -> Result<Option<TraceStore>, ApiError> {
        let opened = || trace::open(self.config, self.store).map_err(|error| error.to_string());
        let opened = self.traces.get_or_init(opened).clone();
        opened.map_err(|why| ApiError::new(Code::StorageUnavailable, why))
    }

    /// The server that this is, where only one can.
    pub(super) fn server(&self) -> Result<&Arc<Desk>, ApiError> {
        self.desk.ok_or_else(|| ApiError::new(Code::InvalidRequest, "Only a running server can do this."))
    }
}

pub(super) async fn answer(
    place: Place<'_>,
    method: &Method,
    uri: &Uri,
    body: Bytes,
) -> Result<Response<Body>, ApiError> {
    let (endpoint, name) = find(method, uri.path())?;
    let name = percent_decode_str(name).decode_utf8_lossy();
    let tenant = || tenant(&name);
    match endpoint {
        Endpoint::Status => place.server().map(|desk| status(desk)),
        Endpoint::Reload => reload(place.server()?).await,
        Endpoint::Drain => place.server().map(|desk| drain(desk)),
        Endpoint::ListKeys => keys::list(place).await,
        Endpoint::CreateKey => keys::create(place, parse(&body)?).await,
        Endpoint::ShowKey => keys::show(place, &name).await,
        Endpoint::RevokeKey => keys::revoke(place, &name).await,
        Endpoint::RotateKey => keys::rotate(place, &name, &parse_or_default(&body)?).await,
        Endpoint::DeleteKey => keys::delete(place, &name).await,
        Endpoint::ListTenants => tenants::list(place).await,
        Endpoint::EraseTenant => tenants::erase(place, tenant()?, flag(uri, "now")?).await,
        Endpoint::ShowTerms => tenants::terms(place, &tenant()?).await,
        Endpoint::SetTerms => tenants::set_terms(place, &tenant()?, &parse::<SaidTerms>(&body)?.0).await,
        Endpoint::ListSessions => tenants::sessions(place, &tenant()?, uri).await,
        Endpoint::Export => Ok(tenants::export(place, tenant()?)),
        Endpoint::Explain => explain::request(place, &body).await,
        Endpoint::ExplainTrace => explain::trace(place, &name, uri).await,
        Endpoint::Replay => explain::replay(place, &parse(&body)?).await,
        Endpoint::BackUp => stored::backup(place).await,
        Endpoint::Check => Ok(stored::check(place)),
        Endpoint::Usage(report) => usage(place, report, uri.query().unwrap_or_default()).await,
        Endpoint::ListTraces => traces::list(place, uri).await,
        Endpoint::ShowTrace => traces::get(place, &name, uri).await,
        Endpoint::TraceChain => traces::chain(place, &name, uri).await,
        Endpoint::Series => traces::series(place, uri).await,
        Endpoint::Providers => providers::list(place, uri),
        Endpoint::Playground => Ok(route::answer_operator(&place.server()?.app, PLAYGROUND, body).await),
        Endpoint::Page => page::file(uri.path()).ok_or_else(|| ApiError::not_found(method, uri.path())),
    }
}

/// The endpoint, and the part of the path that its pattern leaves open.
fn find<'p>(method: &Method, path: &'p str) -> Result<(Endpoint, &'p str), ApiError> {
    let mut allowed = Vec::new();
    for route in ADMIN_ROUTES {
        let Some(open) = fits(route.path, path) else { continue };
        if route.method == method.as_str() {
            return Ok((route.endpoint, open));
        }
        allowed.push(route.method);
    }
    match allowed[..] {
        [] => Err(ApiError::not_found(method, path)),
        _ => Err(ApiError::method_not_allowed(method, &allowed.join(", "))),
    }
}

fn fits<'p>(pattern: &str, path: &'p str) -> Option<&'p str> {
    let mut open = "";
    let (mut wanted, mut found) = (pattern.split('/'), path.split('/'));
    loop {
        match (wanted.next(), found.next()) {
            (None, None) => return Some(open),
            (Some(part), Some(name)) if part.starts_with('{') && !name.is_empty() => open = name,
            (Some(part), Some(name)) if part == name => {}
            _ => return None,
        }
    }
}

/// What the script of the page asks for: its door lets nothing else through.
pub(super) fn is_for_page(method: &Method, path: &str) -> bool {
    let wanted = |endpoint| {
        matches!(
            endpoint,
            Endpoint::Page
                | Endpoint::Status
                | Endpoint::ListKeys
                | Endpoint::Usage(Report::Plain)
                | Endpoint::ListTraces
                | Endpoint::ShowTrace
                | Endpoint::TraceChain
                | Endpoint::ExplainTrace
                | Endpoint::Series
                | Endpoint::Providers
                | Endpoint::Playground
        )
    };
    find(method, path).is_ok_and(|(endpoint, _)| wanted(endpoint))
}

/// Whether a request of a client is in what is sent there: it may be as large as it may be elsewhere.
pub(super) fn takes_requests(path: &str) -> bool {
    matches!(path, PLAYGROUND | "/admin/explain")
}

/// Names of tenants are as those of keys.
pub(super) fn tenant(name: &str) -> Result<Tenant, ApiError> {
    if is_name(name) {
        return Ok(Tenant::new(name));
    }
    Err(ApiError::new(Code::InvalidRequest, format!("a tenant's name is {NAME}")).with_param("tenant"))
}

/// What the query says of this name.
pub(super) fn query(uri: &Uri, name: &str) -> Option<String> {
    let pairs = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    pairs.into_iter().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

fn flag(uri: &Uri, name: &str) -> Result<bool, ApiError> {
    match query(uri, name).as_deref() {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(ApiError::new(Code::InvalidRequest, format!("`{name}` is true or false.")).with_param(name)),
    }
}

#[derive(Deserialize)]
struct SaidTerms(#[serde(deserialize_with = "Terms::of_object")] Terms);

fn parse<T: DeserializeOwned>(body: &Bytes) -> Result<T, ApiError> {
    serde_json::from_slice(body)
        .map_err(|error| ApiError::new(Code::InvalidRequest, format!("The body is not what is wanted here: {error}.")))
}

fn parse_or_default<T: DeserializeOwned + Default>(body: &Bytes) -> Result<T, ApiError> {
    if body.is_empty() { Ok(T::default()) } else { parse(body) }
}

pub(super) fn json(value: &impl Serialize) -> Response<Body> {
    json_bytes(serde_json::to_vec(value).unwrap_or_default().into())
}

fn json_bytes(body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::full(body));
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

impl From<ManageError> for ApiError {
    fn from(error: ManageError) -> Self {
        let code = match &error {
            ManageError::Invalid(_) => Code::InvalidRequest,
            ManageError::Taken(_) | ManageError::Works(_) => Code::ApiKeyConflict,
            ManageError::Unknown(_) => Code::ApiKeyNotFound,
            ManageError::Store(error) => return Self::store(error),
        };
        Self::new(code, error.to_string())
    }
}

fn status(desk: &Desk) -> Response<Body> {
    let (runtime, snapshot) = (&desk.app.runtime, desk.app.snapshot());
    let config = &snapshot.config;
    json(&json!({
        "name": "godex",
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "started_at": runtime.started_at,
        "uptime_seconds": clock::unix_seconds().saturating_sub(runtime.started_at),
        "draining": desk.app.is_draining(),
        "address": format!("{}://{}", config.server.scheme(), desk.address),
        "config": whole_path(config),
        "store": config.session.backend.to_string(),
        "store_id": store_id(config, &runtime.store),
    }))
}

async fn usage(place: Place<'_>, report: Report, query: &str) -> Result<Response<Body>, ApiError> {
    // What was used until now is in the answer.
    if let Some(desk) = place.desk {
        desk.app.runtime.spending.flush().await;
    }
    let body = match report {
        Report::Completions => report::completions(place.store, query).await?,
        Report::Costs => report::costs(place.store, query).await?,
        Report::Plain => report::plain(place.store, query).await?,
    };
    Ok(json_bytes(body))
}

/// On a thread of its own: files are read.
async fn reload(desk: &Desk) -> Result<Response<Body>, ApiError> {
    let (operator, (done, is_done)) = (Arc::clone(&desk.operator), tokio::sync::oneshot::channel());
    std::thread::spawn(move || done.send(operator.reload()));
    match is_done.await {
        Ok(Ok(())) => Ok(json(&json!({"reloaded": true}))),
        Ok(Err(problems)) => Err(ApiError::new(Code::ReloadFailed, problems)),
        Err(_) => Err(ApiError::new(Code::ReloadFailed, "The configuration could not be read.")),
    }
}

fn drain(desk: &Desk) -> Response<Body> {
    desk.drain.notify_one();
    tracing::info!("shutting down: the admin listener was told to");
    json(&json!({"draining": true}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_whole() {
        for (method, path, expected) in [
            ("GET", "/admin/status", Some((Endpoint::Status, ""))),
            ("GET", "/admin/keys/a", Some((Endpoint::ShowKey, "a"))),
            ("DELETE", "/admin/keys/a", Some((Endpoint::RevokeKey, "a"))),
            ("POST", "/admin/keys/a/rotate", Some((Endpoint::RotateKey, "a"))),
            ("PUT", "/admin/tenants/t/terms", Some((Endpoint::SetTerms, "t"))),
            ("GET", "/admin/keys/", None),
            ("GET", "/admin/keys//rotate", None),
            ("GET", "/", Some((Endpoint::Page, ""))),
            ("GET", "/page/app.js", Some((Endpoint::Page, "app.js"))),
            ("POST", "/admin/playground/responses", Some((Endpoint::Playground, ""))),
            ("GET", "/page/a/b", None),
            ("GET", "/admin", None),
            ("GET", "/v1/responses", None),
            ("GET", "/admin/tenants/a/b/terms", None),
        ] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(find(&method, path).ok(), expected, "{method} {path}");
        }
        let refused = find(&Method::PATCH, "/admin/keys").unwrap_err();
        assert_eq!((refused.status.as_u16(), refused.allow.as_deref()), (405, Some("GET, POST")));
    }

    #[test]
    fn names_of_tenants_are_plain() {
        for (name, good) in
            [("a", true), ("team-1_x.y", true), ("", false), ("a/b", false), ("ä", false), ("a b", false)]
        {
            assert_eq!(tenant(name).is_ok(), good, "{name}");
        }
        assert!(tenant(&"a".repeat(64)).is_ok() && tenant(&"a".repeat(65)).is_err());
    }
}
