//! `GET /v1/models`, `GET /v1/models/{id}`: one body for OpenAI's clients (`data`) and for Codex (`models`).

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use wire::json::ObjectWriter;

use super::json;
use crate::body::Body;
use crate::error::ApiError;
use crate::models::{self, Discovered, Known, Model};
use crate::request::RequestContext;

pub(crate) async fn list(context: &RequestContext, headers: &HeaderMap) -> Response<Body> {
    let discovered = Discovered::of(&context.snapshot).await;
    let models = models::list(&context.snapshot.config, &discovered);
    let models = models::usable(models, |name| may_use(context, name));
    let mut body = Vec::new();
    let mut list = ObjectWriter::new(&mut body);
    list.text("object", "list");
    let data = list.key("data");
    data.push(b'[');
    for (i, model) in models.iter().enumerate() {
        if i > 0 {
            data.push(b',');
        }
        write(model, context, data);
    }
    data.push(b']');
    let tokens = context.tokens();
    let window = |provider: &str, model: &str| {
        let declared = context.snapshot.context_window(provider, model);
        tokens.window(provider, model, declared)
    };
    let known = Known { discovered: &discovered, window: &window };
    models::write_catalog(&models, known, list.key("models"));
    list.end();
    tagged(body, headers)
}

pub(crate) async fn retrieve(context: &RequestContext, id: &str) -> Result<Response<Body>, ApiError> {
    let config = &context.snapshot.config;
    let discovered = Discovered::of(&context.snapshot).await;
    let listed = models::list(config, &discovered).into_iter().find(|model| model.id == id);
    // Names that are not listed but lead somewhere exist, too.
    let model = listed.or_else(|| Model::named(config, id).filter(|_| id.contains('/')));
    let model = model.filter(|model| may_use(context, &model.id));
    let model = model.ok_or_else(|| ApiError::model_not_found(id, ""))?;
    let mut body = Vec::new();
    write(&model, context, &mut body);
    Ok(json(body))
}

/// What a key may not use is not there for it.
fn may_use(context: &RequestContext, model: &str) -> bool {
    context.caller.grant().is_none_or(|grant| grant.allows_model(model))
}

fn write(model: &Model<'_>, context: &RequestContext, out: &mut Vec<u8>) {
    let mut object = ObjectWriter::new(out);
    object.text("id", &model.id).text("object", "model").int("created", context.app.runtime.started_at);
    object.text("owned_by", &model.owned_by);
    object.end();
}

/// With a tag of its content: a client that has this already is told so.
fn tagged(body: Vec<u8>, headers: &HeaderMap) -> Response<Body> {
    let hash = digest(&SHA256, &body);
    let tag = format!("\"{}\"", URL_SAFE_NO_PAD.encode(hash.as_ref()));
    let mut known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let is = |known: &str| matches!(known.trim(), "*") || known.trim().trim_start_matches("W/") == tag;
    let mut response = if known.any(|list| list.split(',').any(is)) {
        let mut unchanged = Response::new(Body::full(bytes::Bytes::new()));
        *unchanged.status_mut() = StatusCode::NOT_MODIFIED;
        unchanged
    } else {
        json(body)
    };
    if let Ok(tag) = HeaderValue::try_from(tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}
