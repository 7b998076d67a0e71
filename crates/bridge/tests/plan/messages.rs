//! The Messages API: what each thing becomes there, and laws that hold for any conversation.

mod bound;
mod images;
mod keys;
mod laws;
mod schemas;
mod tables;

use std::sync::OnceLock;

use bridge::{Dialect, Hosting, Link, PlanTarget, Policy, Seal};
use providers::{Library, Wire, resolve_named};
use serde_json::Value;
use wire::json::{FromRaw, Invalid, Raw};
use wire::responses::{CreateResponse, InputItem};

use crate::run::{Planned, TransparentSeal};

/// The dialects of all built-in specs that speak it, and of the kinds of models that the first of them tells apart, all of
/// one family.
pub(crate) fn dialects() -> Vec<(String, Dialect)> {
    static ALL: OnceLock<Vec<(String, Dialect)>> = OnceLock::new();
    ALL.get_or_init(read).clone()
}

fn read() -> Vec<(String, Dialect)> {
    let models =
        ["claude-opus-5-5", "claude-sonnet-5-5", "claude-sonnet-5", "claude-opus-4-6", "claude-haiku-4-5", "m"];
    // One that always thinks, and is told so in no way.
    let others = [("zhipu-messages", "glm-5.3")];
    let mut all = Vec::new();
    for name in Library::BUILTIN.names() {
        let provider = resolve_named(Library::BUILTIN, name, &|_| None).unwrap();
        if provider.wire == Wire::Messages {
            let told_apart = all.is_empty();
            let own = others.into_iter().filter(|(spec, _)| *spec == name).map(|(_, model)| model);
            for model in models.into_iter().filter(|model| told_apart || *model == "m").chain(own) {
                let dialect = Dialect { family: "one".to_owned(), ..provider.for_model(model).dialect };
                all.push((format!("{name}/{model}"), dialect));
            }
        }
    }
    // What says nothing is made to fit.
    all.push(("bare".to_owned(), Dialect { family: "one".to_owned(), ..Dialect::default() }));
    all
}

pub(crate) fn named(name: &str) -> Dialect {
    dialects().into_iter().find(|(known, _)| known == name).map(|(_, dialect)| dialect).unwrap()
}

pub(crate) fn plan(request: &Value, dialect: &Dialect, policy: Policy) -> Result<Planned, Invalid> {
    plan_text(&request.to_string(), dialect, policy, &TransparentSeal).map(|(planned, _)| planned)
}

pub(crate) fn plan_text(
    request: &str,
    dialect: &Dialect,
    policy: Policy,
    seal: &dyn Seal,
) -> Result<(Planned, Vec<Link>), Invalid> {
    plan_hosting(request, dialect, policy, seal, Hosting::default())
}

fn plan_hosting(
    request: &str,
    dialect: &Dialect,
    policy: Policy,
    seal: &dyn Seal,
    hosting: Hosting,
) -> Result<(Planned, Vec<Link>), Invalid> {
    let request = CreateResponse::from_raw(Raw::parse(request).unwrap())?;
    let past: &[InputItem<'_>] = &[];
    let target = PlanTarget { model: "up", dialect, policy, seal, images: None, files: None, cache_key: None, hosting };
    let (plan, links) = bridge::plan_messages_linked(&request, past, target)?;
    let bytes = plan.body;
    assert_eq!(bytes, bridge::plan_messages(&request, past, target).unwrap().body, "links change nothing");
    let body = serde_json::from_slice(&bytes)
        .unwrap_or_else(|error| panic!("not JSON: {error}: {}", String::from_utf8_lossy(&bytes)));
    Ok((Planned { bytes, body, notes: plan.notes, context: plan.context }, links))
}

/// A body's part without the marks of the cache.
pub(crate) fn without_marks(value: &Value) -> Value {
    match value {
        Value::Array(values) => values.iter().map(without_marks).collect(),
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| *name != "cache_control");
            kept.map(|(name, value)| (name.clone(), without_marks(value))).collect()
        }
        other => other.clone(),
    }
}
