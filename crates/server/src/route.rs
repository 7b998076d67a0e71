//! The table of routes, and what every answer carries.

use std::sync::Arc;

use http::{HeaderValue, Method, Request, Response};
use hyper::body::Incoming;
use wire::id::{IdKind, Ids};

use crate::api::{health, models, responses};
use crate::app::App;
use crate::body::Body;
use crate::clock;
use crate::error::ApiError;

/// Answers one request. Errors become OpenAI's error object, every answer gets its `x-request-id`.
pub(crate) async fn answer(app: Arc<App>, request: Request<Incoming>) -> Response<Body> {
    let mut ids = clock::ids();
    let request_id = ids.make(IdKind::Request);
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut response = match dispatch(app, request, ids).await {
        Ok(response) => response,
        Err(error) => {
            let status = error.status.as_u16();
            let code = error.domain;
            tracing::info!(%request_id, %method, %path, status, code, detail = %error.message, "refused");
            error.response()
        }
    };
    if let Ok(id) = HeaderValue::try_from(request_id.as_str()) {
        response.headers_mut().insert("x-request-id", id);
    }
    response
}

async fn dispatch(app: Arc<App>, request: Request<Incoming>, ids: Ids) -> Result<Response<Body>, ApiError> {
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    match (path.as_str(), &method) {
        ("/v1/responses", &Method::POST) => responses::create(app, request, ids).await,
        ("/v1/responses", &Method::GET) if request.headers().contains_key(http::header::UPGRADE) => {
            Err(ApiError::upgrade_required())
        }
        ("/v1/responses", _) => Err(ApiError::method_not_allowed(&method, "POST")),
        ("/v1/models", &Method::GET) => Ok(models::list(&app)),
        ("/health", &Method::GET | &Method::HEAD) => Ok(health::health(&app)),
        ("/ready", &Method::GET | &Method::HEAD) => health::ready(&app).await,
        ("/v1/models", _) => Err(ApiError::method_not_allowed(&method, "GET")),
        ("/health" | "/ready", _) => Err(ApiError::method_not_allowed(&method, "GET, HEAD")),
        (path, _) => match path.strip_prefix("/v1/models/").filter(|id| !id.is_empty()) {
            Some(id) if method == Method::GET => models::retrieve(&app, id),
            Some(_) => Err(ApiError::method_not_allowed(&method, "GET")),
            None => Err(ApiError::not_found(&method, path)),
        },
    }
}
