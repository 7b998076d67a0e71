//! One request through `plan`, and what came of it as JSON.

use bridge::{AnswerContext, Dialect, Hosting, Note, Plan, PlanTarget, Policy, Seal, Unsealed};
use serde_json::Value;
use wire::json::{FromRaw, Invalid, Raw};
use wire::responses::{CreateResponse, InputItem};

pub(crate) struct Planned {
    pub(crate) bytes: Vec<u8>,
    pub(crate) body: Value,
    pub(crate) notes: Vec<Note>,
    pub(crate) context: AnswerContext,
}

impl Planned {
    pub(crate) fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().unwrap()
    }

    pub(crate) fn has_note(&self, code: &str, path: &str) -> bool {
        self.notes.iter().any(|note| note.code.name() == code && note.path == path)
    }
}

pub(crate) const MEND: Policy = Policy { strict: false, repair_history: true };

pub(crate) fn plan(request: &Value, dialect: &Dialect) -> Result<Planned, Invalid> {
    plan_with(request, &[], dialect, Policy::default(), &Unsealed)
}

/// The request as a client sends it: `past` and `request` are JSON texts that are parsed as the server does.
pub(crate) fn plan_with(
    request: &Value,
    past: &[Value],
    dialect: &Dialect,
    policy: Policy,
    seal: &dyn Seal,
) -> Result<Planned, Invalid> {
    let past: Vec<String> = past.iter().map(Value::to_string).collect();
    plan_text(&request.to_string(), &past, dialect, policy, seal)
}

pub(crate) fn plan_text(
    request: &str,
    past: &[String],
    dialect: &Dialect,
    policy: Policy,
    seal: &dyn Seal,
) -> Result<Planned, Invalid> {
    plan_hosted(request, past, dialect, policy, seal, Hosting::default())
}

/// The same, with tools that godex runs.
pub(crate) fn plan_hosted(
    request: &str,
    past: &[String],
    dialect: &Dialect,
    policy: Policy,
    seal: &dyn Seal,
    hosting: Hosting,
) -> Result<Planned, Invalid> {
    let request = CreateResponse::from_raw(Raw::parse(request).unwrap())?;
    let past: Vec<InputItem<'_>> =
        past.iter().map(|item| InputItem::from_raw(Raw::parse(item).unwrap())).collect::<Result<_, _>>()?;
    let Plan { body: bytes, context, notes } = bridge::plan(
        &request,
        &past,
        PlanTarget { model: "up", dialect, policy, seal, images: None, files: None, cache_key: None, hosting },
    )?;
    let body = serde_json::from_slice(&bytes).unwrap_or_else(|error| {
        panic!("not JSON: {error}: {}", String::from_utf8_lossy(&bytes));
    });
    Ok(Planned { bytes, body, notes, context })
}

/// A seal that is none, so that tests can write what is inside.
#[derive(Debug)]
pub(crate) struct TransparentSeal;

impl Seal for TransparentSeal {
    fn seal(&self, plain: &[u8]) -> String {
        format!("glass:{}", String::from_utf8_lossy(plain))
    }

    fn open(&self, sealed: &str) -> Option<Vec<u8>> {
        sealed.strip_prefix("glass:").map(|plain| plain.as_bytes().to_vec())
    }
}
