//! API keys. What was changed here is in force here when it is answered, and on every other instance within a second.

use std::time::Duration;

use http::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::routes::{self, Place};
use crate::access::manage::{self, KeyInfo, MadeKey, NewKey, RevokedKey};
use crate::body::Body;
use crate::clock;
use crate::config::{Bare, parse_duration};
use crate::error::{ApiError, Code};

/// How long a key goes on working that was rotated, where nobody says.
const GRACE: Duration = Duration::from_hours(24);

/// What may be shown of a key, and whether it works.
#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    info: KeyInfo,
    state: &'static str,
    /// It is in `godex.yaml`, and nowhere else.
    declared: bool,
}

impl From<KeyInfo> for Shown {
    fn from(info: KeyInfo) -> Self {
        Self { state: state(&info), info, declared: false }
    }
}

fn state(info: &KeyInfo) -> &'static str {
    let now = clock::unix_seconds();
    match info {
        KeyInfo { revoked_at: Some(_), .. } => "revoked",
        KeyInfo { expires_at: Some(at), .. } if *at <= now => "expired",
        KeyInfo { replaced_by: Some(_), .. } => "replaced",
        _ => "active",
    }
}

pub(super) async fn list(place: Place<'_>) -> Result<Response<Body>, ApiError> {
    let stored = manage::list(place.store).await?.into_iter().map(Shown::from);
    let data: Vec<Shown> = declared(place).chain(stored).collect();
    Ok(routes::json(&json!({"object": "list", "data": data})))
}

pub(super) async fn show(place: Place<'_>, name: &str) -> Result<Response<Body>, ApiError> {
    if let Some(key) = declared(place).find(|key| key.info.name == name || key.info.id == name) {
        return Ok(routes::json(&key));
    }
    Ok(routes::json(&Shown::from(manage::show(place.store, name).await?)))
}

/// A [`NewKey`]; in place of `expires_at` it may have `expires_in`, such as `90d`.
pub(super) async fn create(place: Place<'_>, mut body: Map<String, Value>) -> Result<Response<Body>, ApiError> {
    if let Some(life) = body.remove("expires_in") {
        let life = life.as_str().and_then(|text| parse_duration(text, Bare::Seconds)).ok_or_else(|| {
            ApiError::new(Code::InvalidRequest, "`expires_in` is a duration such as `90d`.").with_param("expires_in")
        })?;
        body.insert("expires_at".to_owned(), clock::unix_seconds().saturating_add(life.as_secs()).into());
    }
    let new: NewKey = serde_json::from_value(body.into()).map_err(|error| {
        ApiError::new(Code::InvalidRequest, format!("The body is not what is wanted here: {error}."))
    })?;
    if declared(place).any(|key| key.info.name == new.name) {
        return Err(ApiError::new(Code::ApiKeyConflict, format!("the key {} is declared in godex.yaml", new.name)));
    }
    let made = manage::create(place.store, new).await?;
    refresh(place).await?;
    let closes = made.closes_the_door && place.config.keys.is_empty() && place.config.oidc.is_none();
    Ok(shown_once(&MadeKey { closes_the_door: closes, ..made }))
}

pub(super) async fn revoke(place: Place<'_>, name: &str) -> Result<Response<Body>, ApiError> {
    check_stored(place, name).await?;
    let RevokedKey { info, ids, hashes } = manage::revoke(place.store, name).await?;
    refresh(place).await?;
    let same = place.config.keys.iter().filter(|key| key.name == info.name || hashes.contains(&key.hash.0));
    let same: Vec<&str> = same.map(|key| key.name.as_str()).collect();
    let mut shown = serde_json::to_value(Shown::from(info)).unwrap_or_default();
    shown["revoked"] = Value::from(ids);
    // What is declared in a file is revoked there.
    shown["still_declared"] = Value::from(same);
    Ok(routes::json(&shown))
}

/// How the older key ends.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Rotation {
    /// `24h`.
    grace: Option<String>,
}

pub(super) async fn rotate(place: Place<'_>, name: &str, how: &Rotation) -> Result<Response<Body>, ApiError> {
    check_stored(place, name).await?;
    let grace = match &how.grace {
        None => GRACE,
        Some(text) => parse_duration(text, Bare::Seconds).ok_or_else(|| {
            ApiError::new(Code::InvalidRequest, "`grace` is a duration such as `24h` or `0s`.").with_param("grace")
        })?,
    };
    let made = manage::rotate(place.store, name, grace).await?;
    refresh(place).await?;
    Ok(shown_once(&made))
}

pub(super) async fn delete(place: Place<'_>, name: &str) -> Result<Response<Body>, ApiError> {
    check_stored(place, name).await?;
    let info = manage::delete(place.store, name).await?;
    refresh(place).await?;
    Ok(routes::json(&Shown::from(info)))
}

/// The only time that the key itself is shown.
fn shown_once(made: &MadeKey) -> Response<Body> {
    let mut shown = serde_json::to_value(Shown::from(made.info.clone())).unwrap_or_default();
    shown["key"] = Value::from(made.key.expose());
    shown["closes_the_door"] = Value::from(made.closes_the_door);
    if let Some(end) = made.older_ends_at {
        shown["older_ends_at"] = Value::from(end);
    }
    routes::json(&shown)
}

/// Those of the configuration.
fn declared(place: Place<'_>) -> impl Iterator<Item = Shown> {
    place.config.keys.iter().map(|key| {
        let info = KeyInfo {
            id: format!("config:{}", key.name),
            name: key.name.clone(),
            tenant: key.tenant.clone(),
            hint: String::new(),
            created_at: 0,
            expires_at: key.expires_at,
            revoked_at: None,
            replaced_by: None,
            terms: key.terms.clone(),
        };
        Shown { state: state(&info), info, declared: true }
    })
}

/// What is declared in a file is changed there. One of the store may have the same name: it was there first.
async fn check_stored(place: Place<'_>, name: &str) -> Result<(), ApiError> {
    if !declared(place).any(|key| key.info.name == name || key.info.id == name)
        || manage::show(place.store, name).await.is_ok()
    {
        return Ok(());
    }
    let message = format!(
        "the key {name} is declared in {}: take it out of `keys` there, then `godex reload`",
        place.config.origin
    );
    Err(ApiError::new(Code::ApiKeyConflict, message))
}

/// What was changed is in force before it is answered.
pub(super) async fn refresh(place: Place<'_>) -> Result<(), ApiError> {
    match place.desk {
        Some(desk) => desk.app.runtime.access.refresh().await.map_err(|error| ApiError::store(&error)),
        None => Ok(()),
    }
}
