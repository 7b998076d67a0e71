//! What one client does, drawn from a seed, and what the store must show for it afterwards.
//!
//! The process that is cut off and the one that checks draw the same operations, so a ledger need only say how far a
//! world came. Worlds share a tenant and words, but touch only their own responses.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;

use super::chance::Chance;
use crate::{ChainLimits, Error, Item, NewConversation, NewTurn, Parent, Status, Store, Tenant, Tenanted};

const DEEP: ChainLimits = ChainLimits { max_depth: 100_000, settings: false };

/// Before this moment, for those that have any, a response expires.
const SOON: i64 = 1;

#[derive(Debug, Clone)]
pub(super) enum Operation {
    Put { id: String, parent: Option<String>, resent: Vec<String>, own: Vec<String>, answer: String, expires: bool },
    Delete(String),
    Sweep,
    Open { conversation: String, items: Vec<String> },
    Speak { conversation: String, id: String, own: Vec<String>, answer: String },
    Append { conversation: String, item: String },
    Close(String),
}

#[derive(Clone)]
struct Turn {
    items: Vec<String>,
    /// Itself and what it continues.
    chain: Vec<String>,
    expires: bool,
    spoken: bool,
    fate: Fate,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Live,
    Expired,
    Deleted,
}

#[derive(Default, Clone)]
struct State {
    turns: BTreeMap<String, Turn>,
    conversations: BTreeMap<String, Option<Vec<String>>>,
}

pub(super) struct World {
    name: String,
    chance: Chance,
    /// Sweeps are for all, so only one world has them, and responses that expire.
    sweeps: bool,
    /// How many operations only add.
    calm: usize,
    drawn: usize,
    state: State,
    pending: Option<Operation>,
}

impl World {
    pub(super) fn new(name: &str, calm: usize) -> Self {
        let seed = name.bytes().fold(17, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
        let (chance, sweeps) = (Chance::new(seed), name == "0.0");
        let (drawn, state, pending) = (0, State::default(), None);
        Self { name: name.to_owned(), chance, sweeps, calm, drawn, state, pending }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The world that goes on where this one's fate is not known.
    pub(super) fn successor(&self) -> Self {
        let (task, number) = self.name.split_once('.').unwrap();
        Self::new(&format!("{task}.{}", number.parse::<usize>().unwrap() + 1), self.calm)
    }

    /// Draws the next operation. Until [`Self::done`] it may or may not have happened.
    pub(super) fn next(&mut self) -> Operation {
        self.drawn += 1;
        let operation = self.draw();
        self.pending = Some(operation.clone());
        operation
    }

    pub(super) fn done(&mut self) {
        let operation = self.pending.take().unwrap();
        self.state.apply(&operation);
    }

    fn draw(&mut self) -> Operation {
        let kinds = if self.drawn > self.calm { 24 } else { 19 };
        let (live, open) = (self.state.live(), self.state.open());
        let id = format!("{}.{:04}", self.name, self.drawn);
        let (own, answer) = (self.words(), format!("a{id}"));
        let kind = self.chance.below(kinds);
        let any = |chance: &mut Chance, of: &[String]| of[chance.below(of.len())].clone();
        match kind {
            15 => return Operation::Open { conversation: format!("c{id}"), items: own },
            16 | 17 if !open.is_empty() => {
                return Operation::Speak {
                    conversation: any(&mut self.chance, &open),
                    id: format!("r{id}"),
                    own,
                    answer,
                };
            }
            18 if !open.is_empty() => {
                return Operation::Append { conversation: any(&mut self.chance, &open), item: format!("i{id}") };
            }
            19 if self.sweeps => return Operation::Sweep,
            20 if !open.is_empty() => return Operation::Close(any(&mut self.chance, &open)),
            21..24 => {
                let alone: Vec<String> = live.iter().filter(|id| !self.state.turns[*id].spoken).cloned().collect();
                if !alone.is_empty() {
                    return Operation::Delete(any(&mut self.chance, &alone));
                }
            }
            _ => {}
        }
        let expires = self.sweeps && self.chance.below(4) == 0;
        let (mut parent, mut resent) = (None, Vec::new());
        if !live.is_empty() {
            match kind {
                // A recent one, or any.
                0..7 => parent = Some(live[live.len() - 1 - self.chance.below(live.len().min(2))].clone()),
                7..10 => parent = Some(any(&mut self.chance, &live)),
                10..13 => resent.clone_from(&self.state.turns[&any(&mut self.chance, &live)].items),
                _ => {}
            }
        }
        Operation::Put { id: format!("r{id}"), parent, resent, own, answer, expires }
    }

    fn words(&mut self) -> Vec<String> {
        (0..self.chance.below(3)).map(|_| format!("u{}", self.chance.below(6))).collect()
    }

    /// What is wrong with what the store shows: nothing, if it is as after the last operation that was done, or as
    /// after the one that may have been.
    pub(super) async fn check(&self, tenant: &Tenanted) -> Vec<String> {
        let mut later = self.state.clone();
        if let Some(pending) = &self.pending {
            later.apply(pending);
        }
        let later = later.view();
        let mut seen = BTreeMap::new();
        for name in later.keys() {
            seen.insert(name.clone(), look(tenant, name).await);
        }
        let mut sooner = self.state.view();
        for name in later.keys() {
            sooner.entry(name.clone()).or_insert_with(|| MISSING.to_owned());
        }
        if seen == later || seen == sooner {
            return Vec::new();
        }
        let wrong = seen.iter().filter(|(name, found)| **found != later[*name] && **found != sooner[*name]);
        let wrong = wrong.map(|(name, found)| format!("{name}: {found}, not {}", sooner[name]));
        let mut wrong: Vec<String> = wrong.collect();
        if wrong.is_empty() {
            wrong.push(format!("half of {:?}", self.pending));
        }
        wrong
    }
}

pub(super) const MISSING: &str = "missing";
const BROKEN: &str = "a hole";

impl State {
    fn live(&self) -> Vec<String> {
        let live = self.turns.iter().filter(|(_, turn)| turn.fate == Fate::Live);
        live.map(|(id, _)| id.clone()).collect()
    }

    fn open(&self) -> Vec<String> {
        self.conversations.iter().filter(|(_, items)| items.is_some()).map(|(id, _)| id.clone()).collect()
    }

    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Put { id, parent, resent, own, answer, expires } => {
                let before = parent.as_ref().map(|parent| self.turns[parent].clone());
                let (items, chain) = before.map_or_else(Default::default, |turn| (turn.items, turn.chain));
                let items = [items, resent.clone(), own.clone(), vec![answer.clone()]].concat();
                let chain = [chain, vec![id.clone()]].concat();
                let turn = Turn { items, chain, expires: *expires, spoken: false, fate: Fate::Live };
                self.turns.insert(id.clone(), turn);
            }
            Operation::Delete(id) => self.turns.get_mut(id).unwrap().fate = Fate::Deleted,
            Operation::Sweep => {
                let due = self.turns.values_mut().filter(|turn| turn.expires && turn.fate == Fate::Live);
                due.for_each(|turn| turn.fate = Fate::Expired);
            }
            Operation::Open { conversation, items } => {
                self.conversations.insert(conversation.clone(), Some(items.clone()));
            }
            Operation::Speak { conversation, id, own, answer } => {
                let Some(Some(items)) = self.conversations.get_mut(conversation) else { panic!("no {conversation}") };
                items.extend(own.iter().cloned().chain([answer.clone()]));
                let (items, chain) = (items.clone(), vec![id.clone()]);
                self.turns.insert(id.clone(), Turn { items, chain, expires: false, spoken: true, fate: Fate::Live });
            }
            Operation::Append { conversation, item } => {
                self.conversations.get_mut(conversation).unwrap().as_mut().unwrap().push(item.clone());
            }
            Operation::Close(conversation) => {
                self.conversations.insert(conversation.clone(), None);
            }
        }
    }

    /// By name, what the store must show.
    fn view(&self) -> BTreeMap<String, String> {
        let turns = self.turns.iter().map(|(id, turn)| {
            let broken = turn.chain.iter().any(|id| self.turns[id].fate == Fate::Deleted);
            let shown = match turn.fate {
                Fate::Live if broken => BROKEN.to_owned(),
                Fate::Live => turn.items.join(" "),
                Fate::Expired | Fate::Deleted => MISSING.to_owned(),
            };
            (id.clone(), shown)
        });
        let conversations = self.conversations.iter().map(|(id, items)| {
            (id.clone(), items.as_ref().map_or_else(|| MISSING.to_owned(), |items| items.join(" ")))
        });
        turns.chain(conversations).collect()
    }
}

async fn look(tenant: &Tenanted, name: &str) -> String {
    let found = if name.starts_with('c') {
        tenant.conversation_history(name).await
    } else {
        tenant.history(name, DEEP).await.map(|history| history.items)
    };
    match found {
        Ok(items) => names(&items),
        Err(Error::NotFound) => MISSING.to_owned(),
        Err(Error::DeletedAncestor) => BROKEN.to_owned(),
        Err(error) => format!("an error: {error:?}"),
    }
}

fn names(items: &[Item]) -> String {
    let whole = |found: &Item| *found == item(found.id.trim_start_matches("msg_"));
    let name = |found: &Item| format!("{}{}", found.id.trim_start_matches("msg_"), if whole(found) { "" } else { "!" });
    items.iter().map(name).collect::<Vec<_>>().join(" ")
}

/// Its name, and as much noise as belongs to that name.
fn item(name: &str) -> Item {
    /// Made once: letters one by one are slow without the optimiser.
    static NOISE: LazyLock<String> = LazyLock::new(|| {
        let mut chance = Chance::new(1);
        (0..30_000).map(|_| char::from(b'a' + u8::try_from(chance.below(26)).unwrap())).collect()
    });
    let mut chance = Chance::new(name.bytes().fold(1, |seed: u64, byte| seed.wrapping_mul(131) + u64::from(byte)));
    let (length, from) = ([80, 300, 2_000, 9_000][chance.below(4)], chance.below(20_000));
    let noise = &NOISE[from..from + length];
    let body = format!(r#"{{"type":"message","role":"user","content":"{name} {noise}"}}"#);
    Item { id: format!("msg_{name}"), body: Bytes::from(body) }
}

fn items(names: &[String]) -> Vec<Item> {
    names.iter().map(|name| item(name)).collect()
}

fn turn(id: &str, input: Vec<Item>, answer: &str) -> NewTurn {
    NewTurn {
        id: id.to_owned(),
        parent: Parent::None,
        status: Status::Completed,
        created_at: 1_700_000_000_000,
        expires_at: None,
        head: Bytes::from(format!(r#"{{"id":"{id}","object":"response"}}"#)),
        settings: Some(Bytes::from_static(b"the same instructions for all")),
        input,
        output: vec![item(answer)],
    }
}

/// Does it to the store.
pub(super) async fn perform(store: &Store, operation: Operation) -> Result<(), Error> {
    let tenant = tenant(store);
    match operation {
        Operation::Put { id, parent, resent, own, answer, expires } => {
            let parent = parent.map_or(Parent::None, Parent::Response);
            let input = items(&[resent, own].concat());
            tenant.put(NewTurn { parent, expires_at: expires.then_some(SOON), ..turn(&id, input, &answer) }).await
        }
        Operation::Delete(id) => tenant.delete_response(&id).await,
        Operation::Sweep => store.sweep(SOON + 1, 1_000).await.map(drop),
        Operation::Open { conversation, items: names } => {
            let metadata = Bytes::from_static(b"{}");
            let new = NewConversation { id: conversation, created_at: 1, metadata, items: items(&names) };
            tenant.create_conversation(new).await
        }
        Operation::Speak { conversation, id, own, answer } => {
            let lease = tenant.begin_turn(&conversation, Duration::from_hours(1)).await?;
            tenant.put(NewTurn { parent: Parent::Conversation(lease), ..turn(&id, items(&own), &answer) }).await
        }
        Operation::Append { conversation, item: name } => tenant.append_items(&conversation, vec![item(&name)]).await,
        Operation::Close(conversation) => tenant.delete_conversation(&conversation).await,
    }
}

/// All worlds are one tenant's: they share what they have in common.
pub(super) fn tenant(store: &Store) -> Tenanted {
    store.for_tenant(Tenant::default())
}
