//! Providers, as the operator may see them: where they are, whether there is a key, and how their models fare.

use http::{Response, Uri};
use serde_json::{Value, json};

use super::routes::{self, Place};
use super::traces;
use crate::body::Body;
use crate::config::{KeyFrom, ProviderConfig};
use crate::error::ApiError;
use crate::upstream::{ModelState, ReplicaState};

pub(super) fn list(place: Place<'_>, uri: &Uri) -> Result<Response<Body>, ApiError> {
    traces::only(uri, &[])?;
    let snapshot = place.desk.map(|desk| desk.app.snapshot());
    let config = snapshot.as_ref().map_or(place.config, |snapshot| &snapshot.config);
    let shown = |provider: &ProviderConfig| {
        let connections = snapshot.as_ref().and_then(|snapshot| snapshot.connections(&provider.name));
        let known = connections.map(|connections| connections.health()).unwrap_or_default();
        let unknown = provider.models.iter().filter(|model| !known.iter().any(|(name, _)| name == *model));
        let states = connections.map(|connections| connections.replicas()).unwrap_or_default();
        let replicas: Vec<Value> = match states.as_slice() {
            [] => provider.base_urls.iter().map(|url| json!({"base_url": without_secrets(url)})).collect(),
            states => states.iter().map(replica).collect(),
        };
        let is_listed = |name: &str| provider.models.iter().any(|model| model == name);
        let mut models: Vec<Value> = known.iter().map(|(name, state)| model(name, state, is_listed(name))).collect();
        models.extend(unknown.map(|name| json!({"model": name, "listed": true, "state": "unknown", "failures": 0})));
        json!({
            "name": provider.name,
            "default": provider.name == config.default_provider,
            "spec": provider.provider.spec_name,
            "wire": provider.provider.wire.name(),
            "base_url": without_secrets(&provider.base_url),
            "replicas": replicas,
            "key": key(provider),
            "models": models,
        })
    };
    let data: Vec<Value> = config.providers.iter().map(shown).collect();
    Ok(routes::json(&json!({"object": "list", "data": data})))
}

/// One that is not listed was named by a client.
fn model(name: &str, state: &ModelState, listed: bool) -> Value {
    // Beyond so many models the rest is known as one.
    let name = if name.is_empty() { "(others)" } else { name };
    json!({
        "model": name,
        "listed": listed,
        "state": state.breaker,
        "failures": state.failures,
        "sent": state.sent,
        "accepted": state.accepted,
        "retried": state.retried,
        "left": state.left,
        "kept_away": state.kept_away,
    })
}

fn replica(state: &ReplicaState) -> Value {
    json!({
        "base_url": without_secrets(&state.url),
        "state": state.state,
        "share_percent": state.share,
        "open_requests": state.open,
        "own": state.own,
        "guests": state.guests,
    })
}

const fn key(provider: &ProviderConfig) -> &'static str {
    match (&provider.key_from, provider.api_keys.is_empty()) {
        (_, false) => "set",
        (KeyFrom::Missing(_), true) => "missing",
        (KeyFrom::Command(_), true) => "command",
        (_, true) => "none",
    }
}

/// An address without what may be a secret in it: who logs in, and the query.
fn without_secrets(address: &str) -> String {
    let Ok(mut url) = url::Url::parse(address) else { return String::new() };
    let _ = (url.set_username(""), url.set_password(None));
    url.set_query(None);
    url.set_fragment(None);
    url.as_str().trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_secrets() {
        for (address, expected) in [
            ("https://api.example.com/v1", "https://api.example.com/v1"),
            ("http://me:secret@127.0.0.1:80/v1/", "http://127.0.0.1/v1"),
            ("http://h/v1?key=secret#x", "http://h/v1"),
            ("", ""),
        ] {
            assert_eq!(without_secrets(address), expected);
        }
    }
}
