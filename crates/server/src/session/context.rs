//! What a request continues: the chain of `previous_response_id`, or a conversation, and the items it refers to.

use std::collections::HashSet;

use bytes::Bytes;
use store::{ChainLimits, Error, History, Item, Status, Tenanted};
use wire::id::Ids;
use wire::json::{FromRaw, Kept, ObjectWriter, Raw, Text};
use wire::responses::{CreateResponse, Input, InputItem, Item as WireItem};

use super::lease::{Held, LEASE};
use super::record::Record;
use super::{Session, new_id, object, own_id};
use crate::error::ApiError;

/// Everything of the store that one request needs.
#[derive(Debug)]
pub(crate) struct Context {
    session: Session,
    past: Vec<Item>,
    /// The places in the input that are references: the item, or none if the past has it already.
    referred: Vec<(usize, Option<Item>)>,
    continues: Continues,
}

/// What storing the turn will extend.
#[derive(Debug, Default)]
pub(super) enum Continues {
    #[default]
    Nothing,
    Response(String),
    Conversation(Held),
}

impl Session {
    /// Reads what the request continues. A conversation is taken for this turn.
    pub(crate) async fn context(&self, request: &CreateResponse<'_>) -> Result<Context, ApiError> {
        let stored = request.store.unwrap_or(true);
        if stored {
            self.well().await?;
        }
        let mut context =
            Context { session: self.clone(), past: Vec::new(), referred: Vec::new(), continues: Continues::Nothing };
        if let Some(id) = request.previous_response_id {
            let id = id.decode().into_owned();
            context.past = self.chain(&id).await?;
            context.continues = Continues::Response(id);
        } else if let Some(conversation) = request.conversation {
            let id = conversation.id.decode();
            if stored {
                let absent = || ApiError::conversation_not_found(&id).with_param("conversation");
                let lease = self.heard(Tenanted::new_lease(&id), absent)?;
                // Held before it is taken: a client that leaves in between gives it back all the same.
                let held = self.all.leases.hold(self.store.clone(), lease.clone());
                let absent = || ApiError::conversation_not_found(&id).with_param("conversation");
                let taken = self.store.take(&lease, LEASE).await;
                if matches!(taken, Err(Error::Locked | Error::NotFound)) {
                    held.settled();
                    return self.heard(taken.map(|()| context), absent);
                }
                self.heard(taken, absent)?;
                context.continues = Continues::Conversation(held);
            }
            let absent = || ApiError::conversation_not_found(&id).with_param("conversation");
            context.past = self.heard(self.store.conversation_history(&id).await, absent)?;
        }
        if let Some(Input::Items(items)) = &request.input {
            context.referred = self.referred(items, &context.past).await?;
        }
        Ok(context)
    }

    /// Every item up to and including that response.
    async fn chain(&self, id: &str) -> Result<Vec<Item>, ApiError> {
        let config = &self.all.config;
        let max_depth = u32::try_from(config.chain.max_depth).unwrap_or(u32::MAX);
        let limits = ChainLimits { max_depth, settings: config.chain.replay_instructions };
        let status = config.unknown_previous_response_status;
        let history = self.all.heard(self.store.history(id, limits).await).map_err(|error| match error {
            Error::NotFound => ApiError::previous_not_found(id, status),
            Error::DeletedAncestor => ApiError::ancestor_deleted(id, status),
            Error::TooDeep { limit } => ApiError::chain_too_deep(limit),
            error => ApiError::store(&error),
        })?;
        let refused = |status| match status {
            Status::Completed => false,
            Status::Incomplete => !config.chain.include_incomplete,
            Status::Failed | Status::Cancelled | Status::Queued | Status::InProgress => true,
        };
        if let Some(turn) = history.turns.iter().find(|turn| refused(turn.status)) {
            return Err(ApiError::chain_unavailable(&turn.id, turn.status));
        }
        Ok(if config.chain.replay_instructions { with_instructions(history) } else { history.items })
    }

    /// A client's items as they are stored in that conversation, or in a new one; what they refer to stands in its
    /// place.
    pub(crate) async fn own_items(
        &self,
        items: &[InputItem<'_>],
        conversation: Option<&str>,
        body: &Bytes,
        ids: &mut Ids,
    ) -> Result<Vec<Item>, ApiError> {
        let referred = self.referred(items, &[]).await?;
        let mut present = Vec::new();
        if let Some(conversation) = conversation {
            for id in items.iter().filter_map(|item| own_id(item.raw)) {
                match self.all.heard(self.store.conversation_item(conversation, &id).await) {
                    Ok(item) => present.push(item),
                    Err(Error::NotFound) => {}
                    Err(error) => return Err(ApiError::store(&error)),
                }
            }
        }
        Ok(own(items, &referred, &present, body, ids))
    }

    /// The stored items that an input refers to.
    async fn referred(&self, input: &[InputItem<'_>], past: &[Item]) -> Result<Vec<(usize, Option<Item>)>, ApiError> {
        let reference = |(place, item): (usize, &InputItem<'_>)| match &item.value {
            WireItem::ItemReference(reference) => {
                Some((place, reference.id.map(Text::decode).unwrap_or_default().into_owned()))
            }
            _ => None,
        };
        let references: Vec<(usize, String)> = input.iter().enumerate().filter_map(reference).collect();
        if references.is_empty() {
            return Ok(Vec::new());
        }
        let known: HashSet<&str> = past.iter().map(|item| item.id.as_str()).collect();
        let wanted: Vec<String> =
            references.iter().map(|(_, id)| id.clone()).filter(|id| !known.contains(id.as_str())).collect();
        let missing = || ApiError::item_not_found("");
        let mut found = self.heard(self.store.items(wanted).await, missing)?.into_iter();
        let mut referred = Vec::with_capacity(references.len());
        for (place, id) in references {
            if known.contains(id.as_str()) {
                referred.push((place, None));
                continue;
            }
            let item = found.next().flatten().ok_or_else(|| ApiError::item_not_found(&id).with_param("input"))?;
            referred.push((place, Some(item)));
        }
        Ok(referred)
    }
}

impl Context {
    /// What is to be stored of this turn; none with `store: false`. The client's items stay as they are in `body`.
    pub(crate) fn record(&mut self, request: &CreateResponse<'_>, body: &Bytes, ids: &mut Ids) -> Option<Record> {
        if !request.store.unwrap_or(true) {
            return None;
        }
        let input = match &request.input {
            None => Vec::new(),
            Some(Input::Text(text)) => vec![text_item(*text, ids)],
            Some(Input::Items(items)) => own(items, &self.referred, &self.past, body, ids),
        };
        Some(Record::new(self.session.clone(), std::mem::take(&mut self.continues), input))
    }

    /// Puts stored items where the input refers to them.
    pub(crate) fn refer<'a>(&'a self, request: &mut CreateResponse<'a>) -> Result<(), ApiError> {
        let Some(Input::Items(items)) = &mut request.input else { return Ok(()) };
        for (place, item) in self.referred.iter().rev() {
            match item {
                Some(item) => items[*place] = parse(item)?,
                None => drop(items.remove(*place)),
            }
        }
        Ok(())
    }

    /// The past as the plan takes it.
    pub(crate) fn past(&self) -> Result<Vec<InputItem<'_>>, ApiError> {
        self.past.iter().map(parse).collect()
    }
}

/// The client's items as they are stored: their JSON untouched but for the keys in tools, slices of `body`, each under
/// its own id or a new one.
fn own(
    items: &[InputItem<'_>],
    referred: &[(usize, Option<Item>)],
    past: &[Item],
    body: &Bytes,
    ids: &mut Ids,
) -> Vec<Item> {
    let (mut referred, mut named) = (referred.iter().peekable(), false);
    let mut stored = Vec::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        if let Some((_, item)) = referred.next_if(|(at, _)| *at == place) {
            named = true;
            stored.extend(item.clone());
            continue;
        }
        let id = own_id(item.raw);
        named |= id.is_some();
        let id = id.unwrap_or_else(|| new_id(item.raw, ids));
        let kept = || body.slice_ref(item.raw.as_str().as_bytes());
        stored.push(Item { id, body: bridge::shown_item(item.raw).map_or_else(kept, Bytes::from) });
    }
    if named {
        rename(&mut stored, past, ids);
    }
    stored
}

/// Lists are paged through by the ids of their items: one that is there already is given to no other item.
fn rename(items: &mut [Item], past: &[Item], ids: &mut Ids) {
    let mut taken: HashSet<&str> = past.iter().map(|item| item.id.as_str()).collect();
    let again: Vec<usize> =
        items.iter().enumerate().filter(|(_, item)| !taken.insert(&item.id)).map(|(place, _)| place).collect();
    for place in again {
        let item = &mut items[place];
        let raw = str::from_utf8(&item.body).ok().and_then(|text| Raw::parse(text).ok());
        item.id = new_id(raw.unwrap_or(Raw::NULL), ids);
    }
}

/// A stored item. It was valid when it came.
fn parse(item: &Item) -> Result<InputItem<'_>, ApiError> {
    let raw = str::from_utf8(&item.body).ok().and_then(|text| Raw::parse(text).ok());
    let kept = raw.and_then(|raw| Kept::from_raw(raw).ok());
    kept.ok_or_else(|| ApiError::store(&Error::Corrupt(format!("item {}", item.id).into())))
}

/// A plain text as the message that it is.
fn text_item(text: Text<'_>, ids: &mut Ids) -> Item {
    let mut body = Vec::with_capacity(text.escaped().len() + 96);
    let mut message = ObjectWriter::new(&mut body);
    message.text("type", "message").text("role", "user");
    let content = message.key("content");
    content.extend_from_slice(br#"[{"type":"input_text","text":"#);
    content.extend_from_slice(text.raw().as_str().as_bytes());
    content.extend_from_slice(b"}]");
    message.end();
    Item { id: ids.make(wire::id::IdKind::Message).to_string(), body: body.into() }
}

/// `session.chain.replay_instructions`: each turn's instructions stand before its input.
fn with_instructions(history: History) -> Vec<Item> {
    let mut turns = history.turns.iter().peekable();
    let mut items = Vec::with_capacity(history.items.len() + history.turns.len());
    for (place, item) in history.items.into_iter().enumerate() {
        while let Some(turn) = turns.next_if(|turn| turn.input.start <= place) {
            items.extend(turn.settings.as_ref().and_then(|settings| instruction_item(settings)));
        }
        items.push(item);
    }
    items
}

fn instruction_item(settings: &[u8]) -> Option<Item> {
    let text = object::instructions(settings)?;
    let body = format!(r#"{{"type":"message","role":"system","content":{text}}}"#);
    Some(Item { id: String::new(), body: body.into() })
}
