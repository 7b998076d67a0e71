//! `POST /v1/responses/compact`: a conversation is compacted without a response. What comes of it is no turn: nothing is
//! stored, and its id cannot be continued; its output is the input of a new chain.

use bridge::{Action, CompactionWish, Needs, Note, note_code};
use bytes::Bytes;
use wire::id::IdKind;
use wire::json::{Invalid, InvalidCode, Kept, ObjectWriter, Raw, pair_surrogates};
use wire::responses::CreateResponse;

use super::affinity;
use super::compacting::nothing_to_do;
use super::open::{ask_in, keep_priced, targets};
use crate::account::Outcome;
use crate::ask::NoAnswer;
use crate::body;
use crate::clock;
use crate::compaction::{self, NotCompacted, Scope};
use crate::error::ApiError;
use crate::limits::{Asks, Tokens};
use crate::request::RequestContext;
use crate::session::{Past, write_listed};

/// What such a request may say; of a create request's other parameters none means anything here.
const KNOWN: &[&str] = &[
    "model",
    "input",
    "previous_response_id",
    "conversation",
    "instructions",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
    "service_tier",
    "safety_identifier",
    "user",
];

/// A compacted conversation.
#[derive(Debug)]
pub(crate) struct Compaction {
    pub(crate) object: Vec<u8>,
    /// What was not done as asked.
    pub(crate) notes: Vec<Note>,
}

pub(crate) async fn compact(context: &RequestContext, bytes: &Bytes) -> Result<Compaction, ApiError> {
    let Kept { raw: document, value: mut request } = body::parse::<Kept<'_, CreateResponse<'_>>>(bytes)?;
    let mut notes = unknown(document, context.snapshot.config.compat.strict)?;
    // Nothing of it is stored, and no conversation is taken for it.
    (request.store, request.background) = (Some(false), None);
    ask_in(context, &request, document)?;
    CompactionWish::of(&request)?;
    let (mut failover, model) = targets(context, &request)?;
    keep_priced(context, &mut failover)?;
    let tokens = || Tokens::of(bytes, None);
    context.admit(Asks::Turn, Some(&failover), tokens).await?;
    let past = context.session().context(&request, Past::Stored).await?;
    context.set_aside(&failover, tokens, past.bytes()).await?;
    past.refer(&mut request)?;
    let items = past.past()?;
    let mut ids = context.ids.clone();
    let (id, created_at) = (ids.make(IdKind::Response), clock::unix_seconds());
    context.account.opened(&id, &model);
    context.account.noted(&notes);
    failover.require(|| Needs::of(&request, &items));
    failover.belongs_to(|| affinity::of(context, &request, &items));
    let (scope, nobody) = (Scope::WhatIsLeftOut, || {});
    let compacted = compaction::compact(context, &mut failover, &request, &items, scope, &nobody).await;
    let compacted = compacted.map_err(|not| failed(context, not))?;
    context.account.noted(&compacted.notes);
    notes.extend(compacted.notes.iter().cloned());
    let window = failover.context_window();
    let retained = compaction::retained(context, &request, &items, window, &mut ids);
    let mut body = Vec::new();
    let mut object = ObjectWriter::new(&mut body);
    object.text("id", id.as_str()).text("object", "response.compaction").int("created_at", created_at);
    let output = object.key("output");
    output.push(b'[');
    for item in &retained {
        write_listed(item, output).map_err(|error| ApiError::store(&error))?;
        output.push(b',');
    }
    output.extend_from_slice(compacted.item(&ids.make(IdKind::Compaction)).as_bytes());
    output.push(b']');
    compacted.usage.unwrap_or_default().write(object.key("usage"));
    object.end();
    pair_surrogates(&mut body);
    context.account.ended(Outcome::Completed);
    Ok(Compaction { object: body, notes })
}

fn failed(context: &RequestContext, not: NotCompacted) -> ApiError {
    match not {
        NotCompacted::NoAnswer(NoAnswer { failure, deadline }) => {
            context.account.ended(deadline.map_or(Outcome::Failed(failure.class), Outcome::Late));
            ApiError::upstream(&failure)
        }
        NotCompacted::NothingToDo => nothing_to_do(),
    }
}

/// Notes for what is not known here; refused, if the operator wants that.
fn unknown(document: Raw<'_>, strict: bool) -> Result<Vec<Note>, Invalid> {
    const MOST: usize = 32;
    let mut notes = Vec::new();
    for (key, value) in document.fields() {
        let name: String = key.decode().chars().take(64).collect();
        if value.is_null() || KNOWN.contains(&name.as_str()) {
            continue;
        }
        if strict {
            let message = format!("Unknown parameter: '{name}'.");
            return Err(Invalid::sentence(InvalidCode::UnknownParameter, message).at(&name));
        }
        if notes.len() < MOST {
            let note = Note::new(Action::Ignored, name, "this parameter is not known here");
            notes.push(note.coded(note_code::PARAM_UNKNOWN));
        }
    }
    Ok(notes)
}
