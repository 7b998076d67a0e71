//! What one client does, drawn from a seed, and what the store must show for it afterwards.
//!
//! The process that is cut off and the one that checks draw the same operations, so a ledger need only say how far a
//! world came. Worlds share a tenant and words, but touch only their own responses.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;

use super::chance::Chance;
use crate::{
    ChainLimits, Error, EventLimits, Item, JobKind, JobLimits, NewConversation, NewEvents, NewJob, NewTurn, Parent,
    Runs, Status, Store, Tenant, Tenanted, TurnEnd, Worker,
};

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
    Begin { id: String, own: Vec<String> },
    Log { id: String, number: usize },
    Finish { id: String, number: usize, answer: String },
}

#[derive(Clone)]
struct Turn {
    items: Vec<String>,
    /// Itself and what it continues.
    chain: Vec<String>,
    expires: bool,
    spoken: bool,
    /// Of one that was begun: the events of its log, and whether it has ended.
    log: Option<(usize, bool)>,
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
        let kinds = if self.drawn > self.calm { 28 } else { 19 };
        let (live, open, running) = (self.state.live(), self.state.open(), self.state.running());
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
            24 => return Operation::Begin { id: format!("r{id}"), own },
            25..28 if !running.is_empty() => {
                let id = any(&mut self.chance, &running);
                let number = self.state.turns[&id].log.map_or(0, |(events, _)| events);
                return match kind {
                    25 | 26 => Operation::Log { id, number },
                    _ => Operation::Finish { id, number, answer },
                };
            }
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
        let ended = |turn: &Turn| turn.log.is_none_or(|(_, ended)| ended);
        let live = self.turns.iter().filter(|(_, turn)| turn.fate == Fate::Live && ended(turn));
        live.map(|(id, _)| id.clone()).collect()
    }

    fn running(&self) -> Vec<String> {
        let running = self.turns.iter().filter(|(_, turn)| matches!(turn.log, Some((_, false))));
        running.map(|(id, _)| id.clone()).collect()
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
                let turn = Turn { items, chain, expires: *expires, spoken: false, log: None, fate: Fate::Live };
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
                let turn = Turn { items, chain, expires: false, spoken: true, log: None, fate: Fate::Live };
                self.turns.insert(id.clone(), turn);
            }
            Operation::Append { conversation, item } => {
                self.conversations.get_mut(conversation).unwrap().as_mut().unwrap().push(item.clone());
            }
            Operation::Close(conversation) => {
                self.conversations.insert(conversation.clone(), None);
            }
            Operation::Begin { id, own } => {
                let (items, chain) = (own.clone(), vec![id.clone()]);
                let log = Some((0, false));
                self.turns
                    .insert(id.clone(), Turn { items, chain, expires: false, spoken: false, log, fate: Fate::Live });
            }
            Operation::Log { id, number } => self.turns.get_mut(id).unwrap().log = Some((number + 1, false)),
            Operation::Finish { id, number, answer } => {
                let turn = self.turns.get_mut(id).unwrap();
                turn.items.push(answer.clone());
                turn.log = Some((number + 1, true));
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
        let logs = self.turns.iter().filter_map(|(id, turn)| Some((id, turn.fate, turn.log?)));
        let logs = logs.map(|(id, fate, (events, ended))| {
            let numbers: Vec<String> = (0..events).map(|number| number.to_string()).collect();
            let shown = if fate == Fate::Live { log_shown(&numbers, ended) } else { MISSING.to_owned() };
            (format!("l{id}"), shown)
        });
        turns.chain(conversations).chain(logs).collect()
    }
}

fn log_shown(numbers: &[String], ended: bool) -> String {
    format!("{}{}", numbers.join(" "), if ended { " end" } else { "" })
}

/// Whoever runs all turns that are begun.
const WORKER: Worker = Worker([7; 16]);

/// The log of a turn that was begun, and whether the turn has ended.
async fn look_at_log(tenant: &Tenanted, id: &str) -> Result<String, Error> {
    let page = tenant.events_after(id, None, EventLimits { events: 10_000, bytes: usize::MAX }).await?;
    let number = |event: &crate::Event| String::from_utf8_lossy(&event.json).into_owned();
    let numbers: Vec<String> = page.events.iter().map(number).collect();
    // Its job is there as long as it runs.
    if !page.status.is_final() && tenant.ask_to_cancel(id).await? != Runs::By(WORKER) {
        return Ok("a turn without its job".to_owned());
    }
    Ok(log_shown(&numbers, page.status.is_final()))
}

async fn look(tenant: &Tenanted, name: &str) -> String {
    let found = match name.split_at(1) {
        ("c", _) => tenant.conversation_history(name).await.map(|items| names(&items)),
        ("l", id) => look_at_log(tenant, id).await,
        _ => tenant.history(name, DEEP).await.map(|history| names(&history.items)),
    };
    match found {
        Ok(shown) => shown,
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
        events: None,
        key: None,
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
        Operation::Begin { id, own } => {
            let events = Some(NewEvents { first: 0, events: Vec::new() });
            let begun =
                NewTurn { status: Status::InProgress, output: Vec::new(), events, ..turn(&id, items(&own), "") };
            let job = NewJob { kind: JobKind::Foreground, request: Some(Bytes::from_static(b"request")) };
            let limits = JobLimits { running: 0, queued: 0 };
            tenant.begin_job(begun, job, &WORKER, limits, Duration::from_hours(1)).await.map(drop)
        }
        Operation::Log { id, number } => tenant.append_events(&id, &event(number), None).await,
        Operation::Finish { id, number, answer } => {
            let NewTurn { id, status, head, settings, output, .. } = turn(&id, Vec::new(), &answer);
            let events = Some(event(number));
            tenant
                .finish(TurnEnd {
                    id,
                    status,
                    head,
                    settings,
                    output,
                    lease: None,
                    events,
                    claim: None,
                    notices: Vec::new(),
                })
                .await
        }
    }
}

/// The event with this number, which is also what it says.
fn event(number: usize) -> NewEvents {
    NewEvents { first: u64::try_from(number).unwrap(), events: vec![Bytes::from(number.to_string())] }
}

/// All worlds are one tenant's: they share what they have in common.
pub(super) fn tenant(store: &Store) -> Tenanted {
    store.for_tenant(Tenant::default())
}
