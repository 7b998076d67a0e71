//! What a request becomes on its way to providers, shown to the operator: planned without being sent, for one model or for
//! every provider side by side; of a request that was made before, out of what was captured or stored of it; and sent again,
//! to see what is different now. Clients get nothing of this.

mod gone;
mod plans;
mod replay;
mod source;

use std::sync::Arc;

use serde_json::{Value, json};
use store::{MemoryLimits, Store, Tenant};
use wire::json::sanitize_into;

use crate::app::App;
use crate::caller::Caller;
use crate::client::Client;
use crate::config::{Backend, Config};
use crate::error::ApiError;
use crate::request::RequestContext;
use crate::seal::SealKey;
use crate::session::Past;
pub(crate) use plans::{MOST_MODELS, of_models};
pub(crate) use replay::replay;
pub(crate) use source::Source;

/// A request as a tree. Half a surrogate pair, which clients may send, becomes the sign for what cannot be read.
///
/// # Errors
/// It is not JSON.
pub fn read(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(bytes).or_else(|error| {
        let mut mended = String::with_capacity(bytes.len());
        let cut = str::from_utf8(bytes).map(|text| sanitize_into(&mut mended, text));
        if cut == Ok("") { serde_json::from_str(&mended) } else { Err(error) }
    })
}

/// Plans a request for these models, or for every configured provider, without a server and without its store: nothing that
/// the request refers to can be found.
///
/// # Errors
/// The configuration cannot be used, or the request is none; in a sentence.
pub async fn dry_run(mut config: Config, request: Vec<u8>, models: &[String]) -> Result<Value, String> {
    if !SealKey::is_there(&config.session) {
        // None is made for this.
        (config.session.backend, config.session.beside) = (Backend::Memory { max_bytes: 1 << 20 }, None);
    }
    let store = Store::memory(MemoryLimits::default()).map_err(|error| error.to_string())?;
    let app = App::looking(config, store).await.map_err(|error| error.to_string())?;
    let context = onlooker(&Arc::new(app), Tenant::default(), None);
    let planned = of_models(&context, request.into(), Past::Stored, models).await;
    planned.map_err(|error| error.message.into_string())
}

/// Who looks with a tenant's eyes, at what a client of that name has asked.
pub(crate) fn onlooker(app: &Arc<App>, tenant: Tenant, client: Option<&str>) -> RequestContext {
    RequestContext::of_onlooker(app, caller(tenant, client))
}

fn caller(tenant: Tenant, client: Option<&str>) -> Caller {
    let (name, version) = match client.map(|client| client.split_once(['/', ' ']).unwrap_or((client, ""))) {
        Some((name, version)) => (name, Some(version).filter(|version| !version.is_empty())),
        None => ("", None),
    };
    Caller::earlier(tenant, None, Client::named(name, version))
}

/// What is known of a request that was made before, planned again: for whom it was made, or for this model. What is missing
/// of it, or would be refused, is no reason not to show the rest.
pub(crate) async fn again(app: &Arc<App>, mut source: Source, model: Option<&str>) -> Result<Value, ApiError> {
    let context = onlooker(app, source.tenant.clone(), source.client.as_deref());
    let asked = source.request["model"].as_str().unwrap_or_default().to_owned();
    let served = source.served.clone().filter(|served| context.failover(served).is_ok());
    let model = model.map(str::to_owned).or(served).unwrap_or(asked);
    let (mut plan, past) = match source.open(&context).await? {
        Ok(question) => {
            let plan = plans::plan(&model, question.plan(&context, &model).await);
            (plan, if source.gone.has_past() { Value::Null } else { plans::past_of(question.past()) })
        }
        Err(error) => (plans::plan(&model, Err(error)), Value::Null),
    };
    let Source { origin, mut request, gone, response, .. } = source;
    let past_is_gone = !gone.is_empty();
    gone.put_back(&mut request, &mut plan);
    plans::tell_of_servers(&mut plan, &request, &response);
    Ok(json!({
        "source": origin.name(),
        "request": request,
        "past": past,
        "past_is_gone": past_is_gone,
        "response": response,
        "plan": plan,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_pair_is_no_reason_to_refuse() {
        let read = |text: &str| read(text.as_bytes()).ok();
        assert_eq!(read(r#"{"a":"x\ud800y","b":"\ud83d\ude00"}"#), Some(json!({"a": "x\u{fffd}y", "b": "\u{1f600}"})));
        assert_eq!(read(r#"{"a":"\udfff"}"#), Some(json!({"a": "\u{fffd}"})));
        assert!(read("{").is_none() && read(r#"{"a":"\ud800"#).is_none());
    }
}
