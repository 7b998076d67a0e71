//! What holds for the whole proxy: `general_settings`, `litellm_settings`, `router_settings`.

use std::fmt::Write;
use std::ops::RangeInclusive;

use providers::yaml::{Key, Node};
use server::config::KeyHash;

use super::deployment::{milliseconds, whole_number};
use super::notes::Notes;
use super::source::{Text, entries, get, is_true, list, no_text, number, scalar, shown};
use super::times::Times;

#[derive(Default)]
pub(super) struct Settings {
    pub(super) retries: Option<u64>,
    /// Of every request.
    pub(super) times: Times,
    pub(super) breaker_failures: Option<u64>,
    pub(super) turns: Option<u64>,
    pub(super) max_body_bytes: Option<u64>,
    pub(super) debug: bool,
    pub(super) json_logs: bool,
    pub(super) master_key: Option<MasterKey>,
    /// Who is asked when a name fails; `*` is every name. With the line.
    pub(super) fallbacks: Vec<(String, Vec<String>, usize)>,
    /// Other names for a name. With the line.
    pub(super) aliases: Vec<(String, String, usize)>,
    /// Who has said a number that holds: which, its path, its line.
    said: Vec<(Number, String, usize)>,
}

/// What may be said in several places.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Number {
    Retries,
    Timeout,
    StreamTimeout,
    BreakerFailures,
    Turns,
    MaxBodyBytes,
}

pub(super) enum MasterKey {
    Variable(String),
    /// `sha256:…`: what is written down cannot be used by whoever reads it.
    Hash(String),
}

/// Those that godex does by itself, or that need no word.
const NEEDLESS: &[&str] = &[
    "drop_params",
    "modify_params",
    "telemetry",
    "suppress_debug_info",
    "enable_pre_call_checks",
    "disable_spend_logs",
    "database_connection_pool_limit",
];

/// Others that have an answer elsewhere.
const ADVICE: &[(&str, &str)] = &[
    ("database_url", "sessions have a database of their own: `session.backend: postgres`"),
    ("redis_host", "several instances share Postgres (`session.backend: postgres`), and need no Redis"),
    ("redis_url", "several instances share Postgres (`session.backend: postgres`), and need no Redis"),
    ("redis_port", "several instances share Postgres (`session.backend: postgres`), and need no Redis"),
    ("redis_password", "several instances share Postgres (`session.backend: postgres`), and need no Redis"),
    ("cache", "answers are not cached; prompt caches of providers are used as well as can be"),
    ("cache_params", "answers are not cached; prompt caches of providers are used as well as can be"),
    ("callbacks", "see `/metrics`, `godex traces` and `otel`"),
    ("success_callback", "see `/metrics`, `godex traces` and `otel`"),
    ("failure_callback", "see `/metrics`, `godex traces` and `otel`"),
    ("service_callback", "see `/metrics`, `godex traces` and `otel`"),
    ("alerting", "watch `/metrics`"),
    ("cooldown_time", "a target that fails gets one request per second to try"),
    ("retry_after", "waits grow from `resilience.backoff_ms`; a provider's own wish is followed"),
    ("retry_policy", "what may help is retried, the same for all: `resilience`"),
    ("model_group_retry_policy", "what may help is retried, the same for all: `resilience`"),
    ("routing_strategy", "targets of a name are chosen by weight, or in order"),
    ("routing_strategy_args", "targets of a name are chosen by weight, or in order"),
    ("context_window_fallbacks", "`context.rescue: compact` shortens what is too long"),
    ("content_policy_fallbacks", "a refusal is given to the client"),
    ("enable_jwt_auth", "see `oidc`"),
    ("litellm_jwtauth", "see `oidc`"),
    ("max_budget", "keys have budgets: `godex keys create --budget`"),
    ("budget_duration", "keys have budgets: `godex keys create --budget`"),
    ("store_model_in_db", "models are in godex.yaml; `godex reload` reads it anew"),
    ("ssl_verify", "certificates are always checked; `providers.NAME.ca` adds roots"),
    ("mcp_servers", "declare them at `tools.mcp.servers`"),
    ("search_tools", "declare them at `tools.web_search`"),
    ("guardrails", "there are none"),
    ("include", "import each file by itself, and put them together"),
];

/// What to do instead.
pub(super) fn advice(name: &str) -> &'static str {
    ADVICE.iter().find(|(known, _)| *known == name).map_or("it has no equal", |(_, advice)| advice)
}

impl Settings {
    /// A section. What is said in a later one wins.
    pub(super) fn read(&mut self, section: &str, node: &Node, notes: &mut Notes) {
        for (Key { name, .. }, value) in entries(node).iter().filter(|(_, value)| !value.is_null()) {
            if !self.take(section, name, value, node, notes) && !NEEDLESS.contains(&name.as_str()) {
                notes.add(value, format!("`{section}.{name}`: {}", advice(name)));
            }
        }
    }

    /// Whether it has an equal, or its own note.
    fn take(&mut self, path: &str, name: &str, value: &Node, section: &Node, notes: &mut Notes) -> bool {
        let path = format!("{path}.{name}");
        let mut count = |range: RangeInclusive<u64>| count(section, name, &range, notes);
        let found = match name {
            "num_retries" => Some((Number::Retries, count(0..=10))),
            "request_timeout" | "timeout" => Some((Number::Timeout, milliseconds(section, name, notes))),
            "stream_timeout" => Some((Number::StreamTimeout, milliseconds(section, name, notes))),
            "allowed_fails" => Some((Number::BreakerFailures, count(0..=99_999).map(|fails| fails + 1))),
            // Of one deployment each, where the other is of the whole proxy.
            "max_parallel_requests" if number(section, "global_max_parallel_requests").is_some() => {
                notes.add(value, format!("`{path}` is left out: `global_max_parallel_requests` holds"));
                return true;
            }
            "max_parallel_requests" | "global_max_parallel_requests" => Some((Number::Turns, count(1..=1 << 32))),
            "max_request_size_mb" => Some((Number::MaxBodyBytes, count(1..=4095).map(|size| size << 20))),
            _ => None,
        };
        if let Some((which, number)) = found {
            if let Some(number) = number {
                self.settle(which, number, path, value.position.line, notes);
            }
            return true;
        }
        match name {
            "set_verbose" => self.debug |= is_true(value),
            "json_logs" => self.json_logs |= is_true(value),
            "routing_strategy" => return scalar(value) == Some("simple-shuffle"),
            "master_key" => self.master_key = master_key(value, notes),
            "fallbacks" => self.fallbacks.extend(list(value).iter().flat_map(pairs)),
            "default_fallbacks" => self.fallbacks.push(("*".to_owned(), names(value), value.position.line)),
            "model_group_alias" => self.aliases.extend(entries(value).iter().filter_map(|entry| alias(entry, notes))),
            _ => return false,
        }
        true
    }

    /// A number holds from now on; with a note if another did.
    fn settle(&mut self, which: Number, number: u64, path: String, line: usize, notes: &mut Notes) {
        let slot = match which {
            Number::Retries => &mut self.retries,
            Number::Timeout => &mut self.times.all,
            Number::StreamTimeout => &mut self.times.streams,
            Number::BreakerFailures => &mut self.breaker_failures,
            Number::Turns => &mut self.turns,
            Number::MaxBodyBytes => &mut self.max_body_bytes,
        };
        let before = slot.replace(number);
        match self.said.iter_mut().find(|(known, ..)| *known == which) {
            Some((_, other, at)) => {
                if before != Some(number) {
                    notes.add_at(*at, format!("`{other}` is left out: `{path}` holds, which is another number"));
                }
                (*other, *at) = (path, line);
            }
            None => self.said.push((which, path, line)),
        }
    }
}

/// A whole number; with a note where it is none, or not one that godex takes.
pub(super) fn count(section: &Node, name: &str, range: &RangeInclusive<u64>, notes: &mut Notes) -> Option<u64> {
    let given = get(section, name)?;
    let (least, most) = (*range.start(), *range.end());
    let found = number(section, name).map(whole_number).filter(|found| *found >= least);
    let shown = shown(given);
    match found {
        None => notes.add(given, format!("`{name}` is left out: it is {shown}, and no number from {least} to {most}")),
        Some(found) if found > most => notes.add(given, format!("`{name}`: {shown} becomes {most}, which is the most")),
        Some(_) => {}
    }
    found.map(|found| found.min(most))
}

/// `{name: [other, …]}`.
fn pairs(node: &Node) -> Vec<(String, Vec<String>, usize)> {
    let pair = |(key, others): &(Key, Node)| (key.name.clone(), names(others), key.position.line);
    entries(node).iter().map(pair).collect()
}

fn names(node: &Node) -> Vec<String> {
    list(node).iter().filter_map(|node| Some(scalar(node)?.to_owned())).collect()
}

/// `{name: other}`, or `{name: {model: other, hidden: true}}`.
fn alias((key, node): &(Key, Node), notes: &mut Notes) -> Option<(String, String, usize)> {
    let other = scalar(node).or_else(|| super::source::text(node, "model"))?;
    if get(node, "hidden").is_some_and(is_true) {
        notes.add(node, format!("`model_group_alias.{}` is `hidden`, and here it is in the list of models", key.name));
    }
    Some((key.name.clone(), other.to_owned(), key.position.line))
}

fn master_key(value: &Node, notes: &mut Notes) -> Option<MasterKey> {
    if let Some(why) = no_text(value) {
        notes.add(value, format!("`master_key` is left out: it is {why}"));
    }
    match scalar(value).and_then(Text::new)? {
        Text::Variable(name) => Some(MasterKey::Variable(name)),
        Text::Literal(key) if key.len() >= 20 && key.bytes().all(|byte| byte.is_ascii_graphic()) => {
            let hex = KeyHash::of(&key).0.iter().fold(String::new(), |mut hex, byte| {
                // Writing to a String cannot fail.
                let _ = write!(hex, "{byte:02x}");
                hex
            });
            Some(MasterKey::Hash(format!("sha256:{hex}")))
        }
        Text::Literal(_) => {
            notes.add(value, "`master_key` is left out: it could be guessed; make keys with `godex keys create NAME`");
            None
        }
    }
}
