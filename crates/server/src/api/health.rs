//! `GET /health`: the process answers. `GET /ready`: it can take work.

use std::sync::atomic::Ordering;

use http::Response;
use wire::json::{ObjectWriter, write_text};

use super::json;
use crate::account::LOST_LOG_LINES;
use crate::app::App;
use crate::body::Body;
use crate::clock;
use crate::error::{ApiError, Code};
use crate::request::RequestContext;

pub(crate) fn health(context: &RequestContext) -> Response<Body> {
    let mut body = Vec::new();
    let mut health = ObjectWriter::new(&mut body);
    health.text("status", "ok").int("timestamp", clock::unix_millis());
    // By these a command knows that it is a godex that answers, and whether it is one like itself.
    health.text("name", "godex");
    // Where a key is needed, strangers are not told more than that.
    if context.caller.grant().is_none() && !context.app.runtime.access.lets_everybody_in() {
        health.end();
        return json(body);
    }
    health.text("version", env!("CARGO_PKG_VERSION"));
    let providers = health.key("providers");
    providers.push(b'[');
    for (i, provider) in context.snapshot.config.providers.iter().enumerate() {
        if i > 0 {
            providers.push(b',');
        }
        write_text(providers, &provider.name);
    }
    providers.push(b']');
    let several = context.snapshot.config.providers.iter().filter_map(|provider| {
        let states = context.snapshot.connections(&provider.name)?.replicas();
        (!states.is_empty()).then_some((provider, states))
    });
    // How many, and not where: that is the operator's.
    let mut counts = Vec::new();
    let mut replicas = ObjectWriter::new(&mut counts);
    for (provider, states) in several {
        let mut of = ObjectWriter::new(replicas.key(&provider.name));
        of.int("up", states.iter().filter(|state| state.share > 0).count()).int("of", states.len());
        of.end();
    }
    replicas.end();
    if counts != b"{}" {
        health.json("replicas", &counts);
    }
    // A provider that cannot be served stops the start; the list is here for monitors that read it.
    health.json("unsupported_providers", b"[]");
    let lost = LOST_LOG_LINES.load(Ordering::Relaxed);
    if lost > 0 {
        health.int("lost_log_lines", lost);
    }
    health.end();
    json(body)
}

pub(crate) async fn ready(app: &App) -> Result<Response<Body>, ApiError> {
    if app.is_draining() {
        return Err(ApiError::unavailable(Code::Draining, "The server is shutting down."));
    }
    app.runtime.limits.load().has_memory()?;
    match app.runtime.sessions.ping().await {
        Ok(()) => Ok(json(r#"{"status":"ready"}"#)),
        Err(error) => Err(ApiError::unavailable(Code::StorageUnavailable, error.to_string())),
    }
}
