//! `GET /v1/models`, `GET /v1/models/{id}`: one body for OpenAI's clients (`data`) and for Codex (`models`).

use http::Response;
use wire::json::ObjectWriter;

use super::json;
use crate::app::App;
use crate::body::Body;
use crate::config::ListedModel;
use crate::error::ApiError;

pub(crate) fn list(app: &App) -> Response<Body> {
    let mut body = Vec::new();
    let mut list = ObjectWriter::new(&mut body);
    list.text("object", "list");
    let data = list.key("data");
    data.push(b'[');
    for (i, model) in app.config.models().iter().enumerate() {
        if i > 0 {
            data.push(b',');
        }
        write(model, app, data);
    }
    data.push(b']');
    // Codex merges this catalogue into its own; an empty one leaves its defaults alone.
    list.json("models", b"[]");
    list.end();
    json(body)
}

pub(crate) fn retrieve(app: &App, id: &str) -> Result<Response<Body>, ApiError> {
    let id = id.to_owned();
    let listed = app.config.models().into_iter().find(|model| model.id == id);
    // Names that are not listed but lead somewhere exist, too.
    let model = match listed {
        Some(model) => model,
        None if id.contains('/') => {
            let (provider, _) = app.config.resolve(&id).map_err(|_| ApiError::model_not_found(&id, ""))?;
            ListedModel { owned_by: provider.name.clone(), id }
        }
        None => return Err(ApiError::model_not_found(&id, "")),
    };
    let mut body = Vec::new();
    write(&model, app, &mut body);
    Ok(json(body))
}

fn write(model: &ListedModel, app: &App, out: &mut Vec<u8>) {
    let mut object = ObjectWriter::new(out);
    object.text("id", &model.id).text("object", "model").int("created", app.started_at);
    object.text("owned_by", &model.owned_by);
    object.end();
}
