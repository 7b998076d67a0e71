//! Which conversation a turn belongs to, as far as its provider's caches are concerned: what all of its turns have in
//! common, and others do not. It is read from the request and its past alone, so every instance finds the same.

use store::Tenant;
use wire::json::{Kind, Raw, Text};
use wire::responses::{Content, CreateResponse, Input, InputItem, Item};

use crate::request::RequestContext;
use crate::upstream::Affinity;

/// Nobody has more before the first word of the user.
const MOST_ITEMS: usize = 16;

/// So much is looked at of one text: images may be large.
const MOST_BYTES: usize = 16 << 10;

/// The conversation, by the first that the client gives: its id, a key for its cache, or how it begins. A chain begins
/// with its first turn, so each of its turns is known by the beginning of that.
pub(super) fn of(context: &RequestContext, request: &CreateResponse<'_>, past: &[InputItem<'_>]) -> Affinity {
    // Where instructions are replayed, those of the first turn are a part of the past.
    let replays = context.snapshot.config.session.chain.replay_instructions && !past.is_empty();
    named(context.caller.tenant(), request).unwrap_or_else(|| begun(context.caller.tenant(), request, past, replays))
}

fn named(tenant: &Tenant, request: &CreateResponse<'_>) -> Option<Affinity> {
    let (kind, name) = match (request.conversation, request.prompt_cache_key) {
        (Some(conversation), _) => ("conversation", conversation.id),
        (None, Some(key)) => ("cache key", key),
        (None, None) => return None,
    };
    Some(Affinity::of([tenant.name().as_bytes(), kind.as_bytes(), name.decode().as_bytes()]))
}

/// By the instructions, and all up to the first word of the user.
fn begun(tenant: &Tenant, request: &CreateResponse<'_>, past: &[InputItem<'_>], replays: bool) -> Affinity {
    let mut texts = vec![tenant.name().as_bytes(), b"beginning"];
    if let Some(instructions) = request.instructions.filter(|text| !replays && !text.is_empty()) {
        texts.push(clipped(instructions.escaped()));
    }
    let (items, text) = match &request.input {
        Some(Input::Items(items)) => (&items[..], None),
        Some(Input::Text(text)) => (&[][..], Some(*text)),
        None => (&[][..], None),
    };
    let mut is_over = false;
    for item in past.iter().chain(items).take(MOST_ITEMS) {
        is_over = push(&mut texts, item);
        if is_over {
            break;
        }
    }
    if let Some(text) = text.filter(|_| !is_over) {
        texts.push(clipped(text.escaped()));
    }
    Affinity::of(texts)
}

/// What an item says, however it is written. Whether it is the user's, or the model's.
fn push<'a>(texts: &mut Vec<&'a [u8]>, item: &InputItem<'a>) -> bool {
    let Item::Message(message) = &item.value else {
        texts.push(clipped(item.raw.as_str()));
        return false;
    };
    match &message.content {
        Some(Content::Text(text)) => texts.push(clipped(text.escaped())),
        _ => {
            let content = item.raw.get("content").filter(|content| content.kind() == Kind::Array);
            let parts = content.into_iter().flat_map(Raw::elements);
            texts.extend(parts.map(|part| clipped(text_of(part).map_or(part.as_str(), Text::escaped))));
        }
    }
    message.role.is_some_and(|role| role.is("user") || role.is("assistant"))
}

fn text_of(part: Raw<'_>) -> Option<Text<'_>> {
    part.get("text").and_then(Raw::text)
}

fn clipped(text: &str) -> &[u8] {
    &text.as_bytes()[..text.len().min(MOST_BYTES)]
}
