//! Whether a provider can be reached and takes its key, found out by the cheapest question that there is: for its list of
//! models. It decides nothing and changes nothing; for commands that set godex up, or look for what is wrong.

use std::time::Duration;

use probe::{Answer, no_list};
use providers::DiscoveryRules;
use serde_json::Value;
use tokio::time::{Instant, timeout};

pub use store::{
    Encryption, OpenError, PostgresLook, SqliteLook, inspect_postgres, inspect_sqlite, is_held, sqlite_version,
};

use crate::clock;
use crate::config::{KeyFrom, ProviderConfig};
use crate::upstream::{HttpClient, ask_for_models};

/// What a provider answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkup {
    pub status: u16,
    /// What it lists, if it does.
    pub models: Vec<String>,
    /// What there is in the place of a list, where it says that all is well: a page, or other words. Whoever answers so is
    /// hardly a provider.
    pub stranger: Option<String>,
    /// As it came.
    pub body: Vec<u8>,
    /// By how many seconds its clock is ahead of ours.
    pub clock_ahead: Option<i64>,
    pub took: Duration,
}

impl Checkup {
    /// Whether it has refused the key, or that there was none.
    pub const fn refuses_key(&self) -> bool {
        matches!(self.status, 401 | 403)
    }
}

/// Asks once. The demo model is not asked: it is inside this binary.
///
/// # Errors
/// Why there is no answer, in a sentence without secrets.
pub async fn check(config: &ProviderConfig, within: Duration) -> Result<Checkup, String> {
    let client = HttpClient::new(config).map_err(|error| error.to_string())?;
    let began = Instant::now();
    let asked = timeout(within, ask_for_models(&client, &config.provider.discovery)).await;
    let answered = asked.unwrap_or_else(|_| Err("it did not answer in time".to_owned()))?;
    let seconds = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
    let clock_ahead = answered.date.map(|date| seconds(date) - seconds(clock::unix_seconds()));
    Ok(Checkup {
        status: answered.status,
        stranger: (answered.status == 200 && answered.models.is_empty())
            .then(|| stranger(&answered.body, &config.provider.discovery))
            .flatten(),
        models: answered.models,
        body: answered.body,
        clock_ahead,
        took: began.elapsed(),
    })
}

/// In words, why the body is no list of models. A list without any is one.
fn stranger(body: &[u8], rules: &DiscoveryRules) -> Option<String> {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    let member = |way: &String| document.pointer(&format!("/{}", way.replace('.', "/"))).is_some_and(Value::is_array);
    if document.is_array() || rules.list.iter().any(member) {
        return None;
    }
    no_list(&Answer { status: 200, body: body.to_vec(), ..Answer::default() })
}

/// What an answer says of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyTrial {
    /// None was sent.
    Unsent,
    /// Whoever has none is told the same: it may be any.
    Untried,
    Tried,
}

/// Whether it is for its key that a provider has answered so: one that listed its models is asked once more, without.
pub async fn try_key(config: &ProviderConfig, answer: &Checkup, within: Duration) -> KeyTrial {
    if config.api_keys.is_empty() && config.provider.token.is_none() {
        return KeyTrial::Unsent;
    }
    // Who lists nothing has not taken it for what it is.
    if answer.status != 200 || answer.stranger.is_some() {
        return KeyTrial::Tried;
    }
    let mut without = config.clone();
    (without.api_keys, without.key_from, without.provider.token) = (Vec::new(), KeyFrom::Nowhere, None);
    match check(&without, within).await {
        Ok(Checkup { status: 200, .. }) => KeyTrial::Untried,
        _ => KeyTrial::Tried,
    }
}

/// Seconds since 1970, as this machine has them.
pub fn unix_seconds() -> u64 {
    clock::unix_seconds()
}

#[cfg(test)]
mod tests {
    use providers::{Library, resolve_named};

    use super::*;

    #[test]
    fn what_is_no_list_of_models_is_told_from_an_empty_one() {
        for (spec, body, expected) in [
            ("openai", r#"{"object":"list","data":[]}"#, None),
            ("ollama", r#"{"models":[]}"#, None),
            ("together", "[]", None),
            ("openai", r#"{"data":[{"id":"*"}]}"#, None),
            ("openai", r#"{"data":null}"#, Some(r#"it answered 200, but no list: {"data":null}"#)),
            ("openai", r#"{"status":"ok"}"#, Some(r#"it answered 200, but no list: {"status":"ok"}"#)),
            (
                "openai",
                "<html><title>Sign in</title></html>",
                Some("it answered 200, but no JSON, a web page: Sign in"),
            ),
            ("openai", "", Some("it answered 200, but no JSON, and nothing else")),
        ] {
            let rules = resolve_named(Library::BUILTIN, spec, &|_| None).unwrap().discovery;
            assert_eq!(stranger(body.as_bytes(), &rules).as_deref(), expected, "{spec}: {body}");
        }
    }
}
