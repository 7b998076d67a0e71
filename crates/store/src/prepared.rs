//! A turn made ready for the writer: everything that reads whole bodies is done before it gets there.

use bytes::Bytes;

use crate::encryption::{Cipher, Place};
use crate::event::PackedEvents;
use crate::notice::PreparedNotice;
use crate::prefix::{EMPTY, Hasher, Prefix};
use crate::{Claim, Error, Item, Lease, NewTurn, Parent, Status, TurnEnd, same};

/// An item as it will be in the database.
#[derive(Debug)]
pub(crate) struct PackedItem {
    pub(crate) id: String,
    pub(crate) packed: Vec<u8>,
    content: Prefix,
}

#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) id: String,
    pub(crate) parent: Parent,
    pub(crate) status: Status,
    pub(crate) created: i64,
    pub(crate) expires: Option<i64>,
    pub(crate) head: Vec<u8>,
    pub(crate) settings: Option<(Prefix, Vec<u8>)>,
    /// Input, then output.
    pub(crate) items: Vec<PackedItem>,
    pub(crate) inputs: usize,
    /// None without a log.
    pub(crate) log: Option<FirstEvents>,
    /// That it answers.
    pub(crate) key: Option<String>,
    hasher: Hasher,
}

/// What a log begins with, if not empty.
#[derive(Debug)]
pub(crate) struct FirstEvents(pub(crate) Option<PackedEvents>);

/// Where a turn's list begins, and what is known of the list before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Base {
    /// The segment of the item before; none at the root.
    pub(crate) segment: Option<i64>,
    pub(crate) at: i64,
    /// None where nothing is shared: after a hole, or in a conversation.
    pub(crate) prefix: Option<Prefix>,
    pub(crate) depth: i64,
}

impl Base {
    pub(crate) const ROOT: Self = Self { segment: None, at: 0, prefix: Some(EMPTY), depth: 0 };
}

impl Prepared {
    pub(crate) fn new(hasher: &Hasher, cipher: &Cipher, turn: NewTurn) -> Result<Self, Error> {
        let NewTurn { id, parent, status, created_at, expires_at, head, settings, input, output, events, key } = turn;
        let inputs = input.len();
        let items = input.into_iter().chain(output);
        let log = events.map(|events| match PackedEvents::new(cipher, &id, &events)? {
            Some(events) if events.first != 0 => Err(Error::OutOfOrder { expected: 0 }),
            events => Ok(FirstEvents(events)),
        });
        let items = items.map(|item| PackedItem::new(hasher, cipher, item));
        Ok(Self {
            head: cipher.pack(Place::head(&id), &head)?,
            settings: packed_settings(hasher, cipher, settings)?,
            items: items.collect::<Result<_, _>>()?,
            log: log.transpose()?,
            id,
            parent,
            status,
            created: created_at,
            expires: expires_at,
            inputs,
            key,
            hasher: hasher.clone(),
        })
    }

    /// The hash of the list after each item, if it is known before the first.
    pub(crate) fn prefixes(&self, base: Option<Prefix>) -> Vec<Option<Prefix>> {
        prefixes(&self.hasher, &self.items, base)
    }

    /// By when its parent must not have expired: what was there when the turn began can be continued when it ends.
    pub(crate) fn began(&self, now: i64) -> i64 {
        self.created.min(now)
    }
}

fn prefixes(hasher: &Hasher, items: &[PackedItem], base: Option<Prefix>) -> Vec<Option<Prefix>> {
    let mut list = base;
    let extend = |item: &PackedItem| {
        list = list.map(|list| hasher.extend(&list, &item.content));
        list
    };
    items.iter().map(extend).collect()
}

/// Settings and their hash, under which they are kept.
fn packed_settings(
    hasher: &Hasher,
    cipher: &Cipher,
    settings: Option<Bytes>,
) -> Result<Option<(Prefix, Vec<u8>)>, Error> {
    let Some(settings) = settings else { return Ok(None) };
    let hash = hasher.content(&settings);
    Ok(Some((hash, cipher.pack(Place::settings(&hash), &settings)?)))
}

/// The end of a turn, made ready for the writer.
#[derive(Debug)]
pub(crate) struct PreparedEnd {
    pub(crate) id: String,
    pub(crate) status: Status,
    pub(crate) head: Vec<u8>,
    pub(crate) settings: Option<(Prefix, Vec<u8>)>,
    /// The output.
    pub(crate) items: Vec<PackedItem>,
    pub(crate) lease: Option<Lease>,
    pub(crate) events: Option<PackedEvents>,
    pub(crate) claim: Option<Claim>,
    pub(crate) notices: Vec<PreparedNotice>,
    hasher: Hasher,
}

impl PreparedEnd {
    pub(crate) fn new(hasher: &Hasher, cipher: &Cipher, end: TurnEnd) -> Result<Self, Error> {
        let TurnEnd { id, status, head, settings, output, lease, events, claim, notices } = end;
        let items = output.into_iter().map(|item| PackedItem::new(hasher, cipher, item));
        let notices = notices.into_iter().map(|notice| PreparedNotice::new(cipher, notice));
        Ok(Self {
            head: cipher.pack(Place::head(&id), &head)?,
            settings: packed_settings(hasher, cipher, settings)?,
            items: items.collect::<Result<_, _>>()?,
            events: events.map(|events| PackedEvents::new(cipher, &id, &events)).transpose()?.flatten(),
            notices: notices.collect::<Result<_, _>>()?,
            id,
            status,
            lease,
            claim,
            hasher: hasher.clone(),
        })
    }

    /// As [`Prepared::prefixes`], of the output.
    pub(crate) fn prefixes(&self, base: Option<Prefix>) -> Vec<Option<Prefix>> {
        prefixes(&self.hasher, &self.items, base)
    }
}

impl PackedItem {
    pub(crate) fn new(hasher: &Hasher, cipher: &Cipher, item: Item) -> Result<Self, Error> {
        let packed = cipher.pack(Place::item(&item.id), &item.body)?;
        Ok(Self { content: hasher.content(&same::key(&item.body)), packed, id: item.id })
    }
}

/// How many of the first `count` hashes are held, given that a held list's beginnings are held too.
///
/// A client that resends everything adds one or two items to what we have: look near the end before halving.
pub(crate) fn longest<E>(count: usize, mut held: impl FnMut(usize) -> Result<bool, E>) -> Result<usize, E> {
    if count == 0 || !held(1)? {
        return Ok(0);
    }
    let (mut low, mut high) = (1, count + 1);
    for back in 0..4 {
        let candidate = count.saturating_sub(back);
        if candidate <= low {
            return Ok(low);
        }
        if held(candidate)? {
            return Ok(candidate);
        }
        high = candidate;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if held(middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_held_beginning_is_found_in_few_looks() {
        for count in 0..40 {
            for held in 0..=count {
                let mut looks = 0;
                let found = longest(count, |k| {
                    looks += 1;
                    Ok::<_, ()>(k <= held)
                });
                assert_eq!(found, Ok(held), "{count} {held}");
                assert!(looks <= 11, "{count} {held}: {looks}");
            }
        }
    }
}
