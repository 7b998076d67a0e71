//! The items in their order: the one that is open, and those that wait for it.

use std::collections::{BTreeSet, VecDeque};

use wire::json::{Raw, Text};
use wire::responses::{Incoming, Status};

use super::event::{self, EventMeaning, Key, Op};
use super::item::Open;
use super::{Ctx, string};
use crate::failure::{Failure, FailureClass};
use crate::note::Action;

/// More items at once than any model begins.
const MOST: usize = 1024;

#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    live: Option<Open>,
    waiting: VecDeque<Waiting>,
    /// How much the events of those that wait are: they are kept as they came.
    waiting_bytes: usize,
    /// The upstream's ids of closed items.
    ended: BTreeSet<String>,
    /// How many items were closed, those that came to nothing among them.
    count: usize,
}

/// An item that began before the one before it ended, and its events so far.
#[derive(Debug, Clone)]
struct Waiting {
    key: Key,
    events: Vec<String>,
}

impl Queue {
    pub(super) fn has_open_call(&self) -> bool {
        self.live.as_ref().is_some_and(|open| open.key.item_type.ends_with("_call"))
    }

    pub(super) fn held(&self) -> usize {
        self.waiting_bytes + self.live.as_ref().map_or(0, |open| open.item.held())
    }

    pub(super) fn accept(&mut self, op: Op, event: &Incoming<'_>, ctx: &mut Ctx<'_>) -> Result<(), Failure> {
        if self.live.as_ref().is_some_and(|open| open.key.is_of(op, event)) {
            self.apply(op, event, ctx);
            self.next(ctx);
            return Ok(());
        }
        if let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.key.is_of(op, event)) {
            self.waiting_bytes += event.source.len();
            waiting.events.push(event.source.to_owned());
            return Ok(());
        }
        if event::id(event).is_some_and(|id| self.ended.contains(&id)) {
            ctx.response.remark(Action::Repaired, "stream", "what came for an item after its end was left out");
            return Ok(());
        }
        let Some(key) = Key::of(op, event) else {
            ctx.response.remark(Action::Ignored, "stream", "an event that belongs to no item was left out");
            return Ok(());
        };
        if self.live.is_some() {
            if self.waiting.len() >= MOST {
                let message = "The provider's answer begins too many items at once.";
                return Err(Failure::new(FailureClass::Protocol, message));
            }
            self.waiting_bytes += event.source.len();
            self.waiting.push_back(Waiting { key, events: vec![event.source.to_owned()] });
            return Ok(());
        }
        if !matches!(op, Op::Added) {
            ctx.response.remark(Action::Repaired, "stream", "an item that was never announced was");
        }
        self.live = Some(Open::new(key));
        self.apply(op, event, ctx);
        self.next(ctx);
        Ok(())
    }

    fn apply(&mut self, op: Op, event: &Incoming<'_>, ctx: &mut Ctx<'_>) {
        let Some(open) = &mut self.live else { return };
        if !matches!(op, Op::Done) {
            return open.item.apply(op, event, ctx);
        }
        if let Some(open) = self.live.take() {
            let other = event::id(event).filter(|id| *id != open.key.id);
            self.ended.extend(other);
            self.close(open, event.item, Status::Completed, ctx);
        }
    }

    fn close(&mut self, open: Open, last: Option<Raw<'_>>, status: Status, ctx: &mut Ctx<'_>) {
        let Open { key, item } = open;
        // What became another kind of item on the way is not this one.
        let last = last.filter(|item| string(item.get("type")).is_some_and(|name| name.is(&key.item_type)));
        if !key.id.is_empty() {
            self.ended.insert(key.id);
        }
        self.count += 1;
        item.close(last, status, ctx);
    }

    /// The turn of those that waited.
    fn next(&mut self, ctx: &mut Ctx<'_>) {
        while self.live.is_none() {
            let Some(Waiting { key, events }) = self.waiting.pop_front() else { return };
            self.waiting_bytes -= events.iter().map(String::len).sum::<usize>();
            self.live = Some(Open::new(key));
            for text in &events {
                let Ok(event) = Incoming::parse(text) else { continue };
                let name = string(event.kind).map(Text::decode).unwrap_or_default();
                if let EventMeaning::Item(op) = event::read(&name) {
                    self.apply(op, &event, ctx);
                }
            }
        }
    }

    /// Nothing more will come: what began after the open item shows that this one was over.
    pub(super) fn close_waiting(&mut self, ctx: &mut Ctx<'_>) {
        while !self.waiting.is_empty() {
            if let Some(open) = self.live.take() {
                self.close(open, None, Status::Completed, ctx);
            }
            self.next(ctx);
        }
    }

    /// Closes everything, knowing what the object at the end says of it, and adds what only that knows of.
    pub(super) fn finish(&mut self, items: &[Raw<'_>], status: Status, ctx: &mut Ctx<'_>) {
        let keys: Vec<Option<Key>> = items.iter().map(|item| Key::of_item(*item)).collect();
        while let Some(open) = self.live.take() {
            let same_id =
                |key: &Option<Key>| key.as_ref().is_some_and(|key| !key.id.is_empty() && key.id == open.key.id);
            let same_place = |place: &usize| {
                let key = keys.get(*place).and_then(Option::as_ref);
                key.is_some_and(|key| key.item_type == open.key.item_type && !self.ended.contains(&key.id))
            };
            let place = keys.iter().position(same_id).or_else(|| Some(self.count).filter(same_place));
            if let Some(key) = place.and_then(|place| keys[place].as_ref()) {
                self.ended.insert(key.id.clone());
            }
            self.close(open, place.map(|place| items[place]), status, ctx);
            self.next(ctx);
        }
        for (place, (item, key)) in items.iter().zip(keys).enumerate() {
            let Some(key) = key else {
                ctx.response.remark(Action::Ignored, "output", "an item without a type was left out");
                continue;
            };
            if place < self.count || self.ended.contains(&key.id) {
                continue;
            }
            self.close(Open::new(key), Some(*item), status, ctx);
        }
    }
}
