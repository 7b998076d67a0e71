//! `GET /v1/models`, `GET /v1/models/{id}`: one body for OpenAI's clients (`data`) and for Codex (`models`).

use http::Response;
use wire::json::ObjectWriter;

use super::json;
use crate::body::Body;
use crate::config::ListedModel;
use crate::error::ApiError;
use crate::request::RequestContext;

pub(crate) fn list(context: &RequestContext) -> Response<Body> {
    let mut body = Vec::new();
    let mut list = ObjectWriter::new(&mut body);
    list.text("object", "list");
    let data = list.key("data");
    data.push(b'[');
    for (i, model) in context.snapshot.config.models().iter().enumerate() {
        if i > 0 {
            data.push(b',');
        }
        write(model, context, data);
    }
    data.push(b']');
    // Codex merges this catalogue into its own; an empty one leaves its defaults alone.
    list.json("models", b"[]");
    list.end();
    json(body)
}

pub(crate) fn retrieve(context: &RequestContext, id: &str) -> Result<Response<Body>, ApiError> {
    let id = id.to_owned();
    let listed = context.snapshot.config.models().into_iter().find(|model| model.id == id);
    // Names that are not listed but lead somewhere exist, too.
    let model = match listed {
        Some(model) => model,
        None if id.contains('/') => {
            let (provider, _) = context.snapshot.config.resolve(&id).map_err(|_| ApiError::model_not_found(&id, ""))?;
            ListedModel { owned_by: provider.name.clone(), id }
        }
        None => return Err(ApiError::model_not_found(&id, "")),
    };
    let mut body = Vec::new();
    write(&model, context, &mut body);
    Ok(json(body))
}

fn write(model: &ListedModel, context: &RequestContext, out: &mut Vec<u8>) {
    let mut object = ObjectWriter::new(out);
    object.text("id", &model.id).text("object", "model").int("created", context.app.runtime.started_at);
    object.text("owned_by", &model.owned_by);
    object.end();
}
