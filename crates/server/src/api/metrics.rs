//! `GET /metrics`: numbers for monitors.

use http::{HeaderMap, Method, Response};

use crate::body::Body;
use crate::error::ApiError;
use crate::request::RequestContext;
use crate::scrape;

pub(crate) async fn metrics(
    context: &RequestContext,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response<Body>, ApiError> {
    if !context.snapshot.config.metrics.enabled {
        return Err(ApiError::not_found(method, "/metrics"));
    }
    scrape::admit(&context.app, &context.snapshot.config, headers)?;
    Ok(scrape::answer(&context.app, headers).await)
}
