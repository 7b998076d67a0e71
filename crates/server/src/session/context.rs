//! What a request continues: the chain of `previous_response_id`, or a conversation, and the items it refers to.

use std::collections::HashSet;
use std::sync::Arc;

use bridge::{Action, Note, Severity};
use bytes::Bytes;
use store::{ChainLimits, Error, History, Item, Room as _, Status, Tenanted};
use wire::id::Ids;
use wire::json::{FromRaw, Invalid, InvalidCode, Kept, ObjectWriter, Raw, Text};
use wire::responses::{CreateResponse, Input, InputItem, Item as WireItem};

use super::lease::{Held, LEASE};
use super::record::{NewRecord, Record};
use super::unstored::Unstored;
use super::{Session, hidden, new_id, object, own_id};
use crate::body::Room;
use crate::error::{ApiError, clip};
use crate::idempotency;

/// Everything of the store that one request needs.
#[derive(Debug)]
pub(crate) struct Context {
    session: Session,
    past: Vec<Item>,
    /// Of the past, which is needed until somebody has taken the request.
    room: Arc<Room>,
    referred: Vec<Referred>,
    /// Of these, which are stored with the turn.
    referred_room: Arc<Room>,
    /// Calls of hosted tools that the client sends back, with what is kept beside them, by their places in the input.
    restored: Vec<(usize, Item)>,
    continues: Continues,
    /// How many items the client sent: what follows them in a later round is ours.
    sent: usize,
    /// The store does not have the past: a connection remembers it.
    remembered: bool,
}

/// Where a turn's past is.
#[derive(Debug, Default)]
pub(crate) enum Past {
    /// In the store, as the request names it.
    #[default]
    Stored,
    /// Here: the connection knows it.
    Remembered(Vec<Item>),
    /// In the store; the turn itself is there, too, and has its conversation.
    Begun,
}

/// A place in the input that is a reference: the item, or none if the context has it already.
type Referred = (usize, Option<Item>);

/// References that one request may have: more than any client's history, and few enough to look up in a moment.
const MOST_REFERENCES: usize = 4096;

/// What storing the turn will extend.
#[derive(Debug, Default)]
pub(super) enum Continues {
    #[default]
    Nothing,
    Response(String),
    Conversation(Held),
}

impl Session {
    /// Reads what the request continues, unless that is remembered. A conversation is taken for this turn, unless it was
    /// when the turn began.
    pub(crate) async fn context(&self, request: &CreateResponse<'_>, past: Past) -> Result<Context, ApiError> {
        let references = match &request.input {
            Some(Input::Items(items)) => references(items)?,
            _ => Vec::new(),
        };
        if let Some(conversation) = request.conversation {
            check_conversation(&conversation.id.decode())?;
        }
        if request.store.unwrap_or(true) {
            self.ensure_up().await?;
        }
        let mut context = Context {
            session: self.clone(),
            past: Vec::new(),
            room: self.room(),
            referred: Vec::new(),
            referred_room: self.room(),
            restored: Vec::new(),
            continues: Continues::Nothing,
            sent: match &request.input {
                None => 0,
                Some(Input::Text(_)) => 1,
                Some(Input::Items(items)) => items.len(),
            },
            remembered: matches!(past, Past::Remembered(_)),
        };
        match self.read(&mut context, request, past, references).await {
            Ok(()) => Ok(context),
            Err(error) => {
                // Before anybody is told: the next turn may come at once.
                if let Continues::Conversation(held) = context.continues {
                    held.release().await;
                }
                Err(error)
            }
        }
    }

    async fn read(
        &self,
        context: &mut Context,
        request: &CreateResponse<'_>,
        past: Past,
        references: Vec<(usize, String)>,
    ) -> Result<(), ApiError> {
        let begun = matches!(past, Past::Begun);
        if let Past::Remembered(items) = past {
            context.past = items;
        } else if let Some(id) = request.previous_response_id {
            let id = id.decode().into_owned();
            context.past = self.chain(&id, &context.room).await?;
            context.continues = Continues::Response(id);
        } else if let Some(conversation) = request.conversation {
            let id = conversation.id.decode();
            let absent = || ApiError::conversation_not_found(&id).with_param("conversation");
            if request.store.unwrap_or(true) && !begun {
                context.continues = Continues::Conversation(self.take(&id, absent).await?);
            }
            context.past = self.observe(self.reading(&context.room).conversation_history(&id).await, absent)?;
        }
        if let Some(Input::Items(items)) = &request.input {
            let past = context.past.iter().map(|item| item.id.clone()).collect();
            context.referred = self.referred(references, items, past, &context.referred_room).await?;
            context.restored = self.restored(items, &context.referred_room).await?;
        }
        Ok(())
    }

    /// The calls of hosted tools in an input of which it is known what the model was told.
    async fn restored(&self, input: &[InputItem<'_>], room: &Arc<Room>) -> Result<Vec<(usize, Item)>, ApiError> {
        let hosted = input.iter().enumerate().filter(|(_, item)| hidden::may_have(item));
        let named: Vec<(usize, String)> =
            hosted.filter_map(|(place, item)| Some((place, own_id(item.raw)?))).take(MOST_REFERENCES).collect();
        let (mut restored, mut stored) = (Vec::new(), Vec::new());
        for (place, id) in named {
            match self.all.recall.of(&self.tenant, &id) {
                Some(member) => restored.push((place, Item { body: hidden::beside(input[place].raw, &member), id })),
                None => stored.push((place, id)),
            }
        }
        if stored.is_empty() {
            return Ok(restored);
        }
        let wanted = stored.iter().map(|(_, id)| id.clone()).collect();
        let found = self.observe(self.reading(room).items(wanted).await, || ApiError::item_not_found(""))?;
        for ((place, id), found) in stored.into_iter().zip(found) {
            let member = found.as_ref().and_then(|item| hidden::of(&item.body));
            restored.extend(member.map(|member| (place, Item { body: hidden::beside(input[place].raw, member), id })));
        }
        restored.sort_by_key(|(place, _)| *place);
        Ok(restored)
    }

    async fn take(&self, id: &str, absent: impl Fn() -> ApiError) -> Result<Held, ApiError> {
        let lease = self.observe(Tenanted::new_lease(id), &absent)?;
        // Held before it is taken: a client that leaves in between gives it back all the same.
        let held = self.all.leases.hold(self.store.clone(), lease.clone());
        let taken = self.store.take(&lease, LEASE).await;
        let refused = matches!(taken, Err(Error::Locked | Error::NotFound));
        match self.observe(taken, absent) {
            Err(error) if refused => {
                held.lease_is_over();
                Err(error)
            }
            taken => taken.map(|()| held),
        }
    }

    /// Every item up to and including that response.
    async fn chain(&self, id: &str, room: &Arc<Room>) -> Result<Vec<Item>, ApiError> {
        let config = &self.all.config;
        let max_depth = u32::try_from(config.chain.max_depth).unwrap_or(u32::MAX);
        let limits = ChainLimits { max_depth, settings: config.chain.replay_instructions };
        let status = config.unknown_previous_response_status;
        let history = self.all.observe(self.reading(room).history(id, limits).await).map_err(|error| match error {
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
        if config.chain.replay_instructions { with_instructions(history, room) } else { Ok(history.items) }
    }

    /// A client's items as they are stored in that conversation, or in a new one; what they refer to is put in its
    /// place, and takes room.
    pub(crate) async fn own_items(
        &self,
        items: &[InputItem<'_>],
        conversation: Option<&str>,
        body: &Bytes,
        ids: &mut Ids,
    ) -> Result<(Vec<Item>, Arc<Room>), ApiError> {
        let references = references(items)?;
        let named = items.iter().filter_map(|item| own_id(item.raw));
        let named: Vec<String> = named.chain(references.iter().map(|(_, id)| id.clone())).collect();
        let mut present = HashSet::new();
        if let Some(conversation) = conversation.filter(|_| !named.is_empty()) {
            let absent = || ApiError::conversation_not_found(conversation);
            present = self.observe(self.store.conversation_has(conversation, named).await, absent)?;
        }
        let room = self.room();
        let referred = self.referred(references, items, present.clone(), &room).await?;
        Ok((own(items, &referred, &[], present, body, ids), room))
    }

    /// The stored items that an input refers to. Each once: one that `present` names, or the input itself, or an
    /// earlier reference, is in the context already.
    async fn referred(
        &self,
        references: Vec<(usize, String)>,
        input: &[InputItem<'_>],
        mut present: HashSet<String>,
        room: &Arc<Room>,
    ) -> Result<Vec<Referred>, ApiError> {
        if references.is_empty() {
            return Ok(Vec::new());
        }
        present.extend(input.iter().filter(|item| !is_reference(item)).filter_map(|item| own_id(item.raw)));
        let fresh: Vec<bool> = references.iter().map(|(_, id)| present.insert(id.clone())).collect();
        let wanted = references.iter().zip(&fresh).filter(|(_, fresh)| **fresh).map(|((_, id), _)| id.clone());
        let missing = || ApiError::item_not_found("");
        let mut found = self.observe(self.reading(room).items(wanted.collect()).await, missing)?.into_iter();
        let mut referred = Vec::with_capacity(references.len());
        for ((place, id), fresh) in references.into_iter().zip(fresh) {
            if !fresh {
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
    /// What is to be stored of this turn; none with `store: false`. And what continues it as long as it is not stored, if
    /// that is to be remembered.
    pub(crate) fn record(
        &mut self,
        request: &CreateResponse<'_>,
        body: &Bytes,
        ids: &mut Ids,
        remember: bool,
        key: Option<&idempotency::Held>,
    ) -> (Option<Record>, Option<Unstored>) {
        let store = request.store.unwrap_or(true);
        if !store && !remember {
            return (None, None);
        }
        let mut input = self.input(request, body, ids);
        let unstored = remember.then(|| self.unstored(request, &input));
        if !store {
            return (None, unstored);
        }
        if self.remembered {
            // Whoever continues it later finds all of it, although the store has nothing that it follows.
            input.splice(0..0, self.past.iter().cloned());
        }
        let continues = std::mem::take(&mut self.continues);
        let key = key.and_then(idempotency::Held::claimed).map(str::to_owned);
        let record = NewRecord::new(self.session.clone(), continues, input, key, Arc::clone(&self.referred_room));
        (Some(Record::New(record)), unstored)
    }

    /// What follows what the connection remembers already.
    fn unstored(&self, request: &CreateResponse<'_>, input: &[Item]) -> Unstored {
        let chain = self.session.all.config.chain;
        let instructions = request.instructions.filter(|text| chain.replay_instructions && !text.is_empty());
        let instructions = instructions.map(|text| instruction_item(text.raw().as_str()));
        let past = if self.remembered { &[][..] } else { &self.past[..] };
        let items = past.iter().cloned().chain(instructions).chain(input.iter().cloned()).collect();
        let rooms = vec![Arc::clone(&self.room), Arc::clone(&self.referred_room)];
        Unstored::new(items, rooms, chain.include_incomplete)
    }

    /// The client's items, as they are in `body`, with ids.
    fn input(&self, request: &CreateResponse<'_>, body: &Bytes, ids: &mut Ids) -> Vec<Item> {
        match &request.input {
            None => Vec::new(),
            Some(Input::Text(text)) => vec![text_item(*text, ids)],
            Some(Input::Items(items)) => {
                let past = self.past.iter().map(|item| item.id.clone()).collect();
                own(items, &self.referred, &self.restored, past, body, ids)
            }
        }
    }

    /// Whether there is a past that the client does not send.
    pub(crate) fn has_past(&self) -> bool {
        !self.past.is_empty()
    }

    /// Whether only the client's connection has it.
    pub(crate) const fn is_remembered(&self) -> bool {
        self.remembered
    }

    /// What was not done as asked.
    pub(crate) fn notes(&self) -> Vec<Note> {
        let again = self.referred.iter().filter(|(_, item)| item.is_none());
        let note = |(place, _): &Referred| {
            let message = "the context has this item already; it is kept once";
            Note::new(Action::Ignored, format!("input[{place}]"), message).with_severity(Severity::Info)
        };
        again.map(note).collect()
    }

    /// Puts stored items where the input refers to them, with what is kept beside them. A client's own have nothing there.
    pub(crate) fn refer<'a>(&'a self, request: &mut CreateResponse<'a>) -> Result<(), ApiError> {
        let Some(Input::Items(items)) = &mut request.input else { return Ok(()) };
        items.iter_mut().take(self.sent).for_each(hidden::forget);
        for (place, item) in &self.restored {
            items[*place] = parse(item)?;
        }
        for (place, item) in self.referred.iter().rev() {
            match item {
                Some(item) => items[*place] = parse(item)?,
                None => drop(items.remove(*place)),
            }
        }
        Ok(())
    }

    /// The past as it is stored.
    pub(crate) fn past_items(&self) -> &[Item] {
        &self.past
    }

    /// The past as the plan takes it.
    pub(crate) fn past(&self) -> Result<Vec<InputItem<'_>>, ApiError> {
        self.past.iter().map(parse).collect()
    }

    /// How many bytes the past has, and what is referred to.
    pub(crate) fn bytes(&self) -> usize {
        let referred = self.referred.iter().filter_map(|(_, item)| Some(item.as_ref()?.body.len()));
        self.past.iter().map(|item| item.body.len()).chain(referred).sum()
    }
}

fn is_reference(item: &InputItem<'_>) -> bool {
    matches!(item.value, WireItem::ItemReference(_))
}

/// The places in the input that are references, and the ids that they name.
fn references(input: &[InputItem<'_>]) -> Result<Vec<(usize, String)>, ApiError> {
    let reference = |(place, item): (usize, &InputItem<'_>)| match &item.value {
        WireItem::ItemReference(reference) => {
            Some((place, reference.id.map(Text::decode).unwrap_or_default().into_owned()))
        }
        _ => None,
    };
    let count = input.iter().filter(|item| is_reference(item)).count();
    if count > MOST_REFERENCES {
        let message = format!(
            "too many item references. Expected at most {MOST_REFERENCES}, but got {count} instead. Send the items \
             themselves, or continue with 'previous_response_id' or 'conversation'."
        );
        return Err(Invalid::rule(InvalidCode::ArrayAboveMaxLength, message).at("input").into());
    }
    Ok(input.iter().enumerate().filter_map(reference).collect())
}

/// Refuses what cannot be the id of any conversation.
fn check_conversation(id: &str) -> Result<(), ApiError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let expected = match id {
        _ if !id.starts_with("conv_") => "begins with 'conv_'.",
        _ if !id.bytes().all(plain) => {
            "contains letters, numbers, underscores, or dashes, but this value contained additional characters."
        }
        _ => return Ok(()),
    };
    let message = format!("Invalid 'conversation': '{}'. Expected an ID that {expected}", clip(id));
    Err(ApiError::bad_request(InvalidCode::InvalidValue, message).with_param("conversation"))
}

/// The client's items as they are stored: their JSON untouched but for what is [`hidden`], slices of `body`, each under
/// its own id or a new one.
fn own(
    items: &[InputItem<'_>],
    referred: &[Referred],
    restored: &[(usize, Item)],
    present: HashSet<String>,
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
        // It asks for something now, and is nothing that a later turn or a list could show.
        if matches!(item.value, WireItem::CompactionTrigger(_)) {
            continue;
        }
        let id = own_id(item.raw);
        named |= id.is_some();
        let id = id.unwrap_or_else(|| new_id(item.raw, ids));
        if let Ok(at) = restored.binary_search_by_key(&place, |(at, _)| *at) {
            stored.push(restored[at].1.clone());
            continue;
        }
        let kept = || body.slice_ref(item.raw.as_str().as_bytes());
        stored.push(Item { id, body: hidden::shown(item.raw).map_or_else(kept, Bytes::from) });
    }
    if named {
        rename(&mut stored, present, ids);
    }
    stored
}

/// Lists are paged through by the ids of their items: one that is there already is given to no other item.
fn rename(items: &mut [Item], mut taken: HashSet<String>, ids: &mut Ids) {
    for item in items {
        if taken.insert(item.id.clone()) {
            continue;
        }
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

/// `session.chain.replay_instructions`: each turn's instructions come before its input.
///
/// One copy of them is stored, and may become one for each turn here.
pub(super) fn with_instructions(history: History, room: &Room) -> Result<Vec<Item>, ApiError> {
    let mut turns = history.turns.iter().peekable();
    let mut items = Vec::with_capacity(history.items.len() + history.turns.len());
    for (place, item) in history.items.into_iter().enumerate() {
        while let Some(turn) = turns.next_if(|turn| turn.input.start <= place) {
            let Some(text) = turn.settings.as_ref().and_then(|settings| object::instructions(settings)) else {
                continue;
            };
            if !room.take(text.len()) {
                return Err(ApiError::too_many_bytes());
            }
            items.push(instruction_item(text));
        }
        items.push(item);
    }
    Ok(items)
}

fn instruction_item(text: &str) -> Item {
    let body = format!(r#"{{"type":"message","role":"system","content":{text}}}"#);
    Item { id: String::new(), body: body.into() }
}
