//! From rows to histories and pages: what is the same in every backend.
//!
//! Places are absolute: the item at place 7 is the eighth of the whole history, in whichever segment it is. A history
//! is only given out if every place of it is there; that is what makes a hole an error and never a shorter history.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;

use crate::encryption::{Cipher, Place};
use crate::prefix::Prefix;
use crate::room::{Meter, Reading};
use crate::{ChainLimits, Error, History, Item, ItemPage, Order, Page, Status, Turn};

/// Why a response is not there any more, though its row is.
pub(crate) mod gone {
    pub(crate) const LIVE: i64 = 0;
    /// Swept: its items stay as long as a living history needs them.
    pub(crate) const EXPIRED: i64 = 1;
    /// Deleted by its owner: its items are erased, and chains through it are broken.
    pub(crate) const DELETED: i64 = 2;
}

/// The place of a turn that was begun and may not have ended, and what was stored with it.
#[derive(Debug)]
pub(crate) struct LiveTurn {
    pub(crate) segment: i64,
    /// Its input is `own..middle`; there is no output yet.
    pub(crate) own: i64,
    pub(crate) middle: i64,
    pub(crate) prefix: Option<Prefix>,
    pub(crate) conversation: Option<String>,
    pub(crate) settings: Option<Vec<u8>>,
}

/// The status, unless the turn has ended.
pub(crate) fn running(code: i64) -> Result<Status, Error> {
    match status(code)? {
        status if status.is_final() => Err(Error::Ended { status }),
        status => Ok(status),
    }
}

pub(crate) fn status(code: i64) -> Result<Status, Error> {
    Status::from_code(code).ok_or_else(|| Error::corrupt("a response has no known status"))
}

/// A response's place in the tree.
#[derive(Debug, Clone)]
pub(crate) struct TurnRow {
    pub(crate) id: String,
    pub(crate) previous: Option<String>,
    pub(crate) status: i64,
    pub(crate) depth: i64,
    pub(crate) gone: i64,
    pub(crate) expires: Option<i64>,
    /// Own input is `own..middle`, output `middle..upto`.
    pub(crate) own: i64,
    pub(crate) middle: i64,
    pub(crate) upto: i64,
    pub(crate) settings: Option<Vec<u8>>,
}

#[derive(Debug)]
pub(crate) struct ItemRow {
    pub(crate) pos: i64,
    pub(crate) id: String,
    pub(crate) body: Option<Vec<u8>>,
}

/// The chain that ends in `id`, oldest first, out of all responses along its path. The newest must not have expired; what
/// it continues may have.
pub(crate) fn chain(rows: Vec<TurnRow>, id: &str, limits: ChainLimits, now: i64) -> Result<Vec<TurnRow>, Error> {
    let mut rows: HashMap<String, TurnRow> = rows.into_iter().map(|row| (row.id.clone(), row)).collect();
    let there = |row: &TurnRow| row.gone == gone::LIVE && row.expires.is_none_or(|expires| expires > now);
    let newest = rows.remove(id).filter(there).ok_or(Error::NotFound)?;
    if newest.depth > i64::from(limits.max_depth) {
        return Err(Error::TooDeep { limit: limits.max_depth });
    }
    let mut chain = vec![newest];
    while let Some(previous) = chain.last().and_then(|row| row.previous.as_ref()) {
        // Taken out of the map, so that even a circle, which cannot be stored, would end here.
        let row = rows.remove(previous).filter(|row| row.gone != gone::DELETED).ok_or(Error::DeletedAncestor)?;
        chain.push(row);
    }
    chain.reverse();
    Ok(chain)
}

/// The history of a chain, from all items along its path, in any order.
pub(crate) fn history(
    chain: Vec<TurnRow>,
    rows: Vec<ItemRow>,
    settings: &HashMap<Vec<u8>, Bytes>,
    cipher: &Cipher,
) -> Result<History, Error> {
    let upto = chain.last().map_or(0, |newest| newest.upto);
    let (items, places) = complete(cipher, rows, 0..upto)?;
    let place = |pos: i64| usize::try_from(pos).ok().and_then(|pos| places.get(pos).copied());
    let range = |range: Range<i64>| place(range.start).zip(place(range.end)).map(|(start, end)| start..end);
    let turns = chain.into_iter().map(|row| {
        let damaged = || Error::corrupt("a response points outside its history");
        Ok(Turn {
            status: status(row.status)?,
            input: range(row.own..row.middle).ok_or_else(damaged)?,
            output: range(row.middle..row.upto).ok_or_else(damaged)?,
            settings: row.settings.and_then(|hash| settings.get(&hash).cloned()),
            id: row.id,
        })
    });
    Ok(History { turns: turns.collect::<Result<_, Error>>()?, items })
}

/// All items of a range, in order, and for each place (the end included) how many items are before it.
///
/// A missing or erased one is [`Error::DeletedAncestor`]; one that was removed from its conversation is left out.
pub(crate) fn complete(
    cipher: &Cipher,
    mut rows: Vec<ItemRow>,
    range: Range<i64>,
) -> Result<(Vec<Item>, Vec<usize>), Error> {
    rows.sort_unstable_by_key(|row| row.pos);
    let mut items = Vec::with_capacity(rows.len());
    let mut places = Vec::with_capacity(rows.len() + 1);
    let mut expected = range.start;
    for row in rows {
        let body = row.body.filter(|_| row.pos == expected).ok_or(Error::DeletedAncestor)?;
        expected += 1;
        places.push(items.len());
        if !body.is_empty() {
            items.push(row_item(cipher, row.id, body)?);
        }
    }
    places.push(items.len());
    if expected == range.end.max(range.start) { Ok((items, places)) } else { Err(Error::DeletedAncestor) }
}

/// An item out of its row.
pub(crate) fn row_item(cipher: &Cipher, id: String, packed: Vec<u8>) -> Result<Item, Error> {
    let body = cipher.unpack(Place::item(&id), packed)?;
    Ok(Item { id, body })
}

/// Fills a page from ranges of places. Mostly one range is enough; removed items make it ask for more, and large ones for
/// less at once.
#[derive(Debug)]
pub(crate) struct Pager {
    order: Order,
    limit: usize,
    left: Range<i64>,
    window: i64,
    /// Bytes that the page may still take.
    bytes: usize,
    pub(crate) meter: Meter,
    cipher: Cipher,
    items: Vec<Item>,
    has_more: bool,
}

impl Pager {
    /// `after` is the cursor's place.
    pub(crate) fn new(page: &Page, upto: i64, after: Option<i64>, reading: &Reading) -> Self {
        let left = match (page.order, after) {
            (_, None) => 0..upto,
            (Order::OldestFirst, Some(pos)) => pos + 1..upto,
            (Order::NewestFirst, Some(pos)) => 0..pos.min(upto),
        };
        let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
        let window = i64::from(page.limit) + 1;
        let (bytes, meter, cipher) = (page.max_bytes, Meter::new(&reading.room), reading.cipher.clone());
        Self { order: page.order, limit, left, window, bytes, meter, cipher, items: Vec::new(), has_more: false }
    }

    /// The places to read next; none when the page is full or the list at its end.
    pub(crate) fn next(&mut self) -> Option<Range<i64>> {
        if self.has_more || self.left.is_empty() {
            return None;
        }
        let range = match self.order {
            Order::OldestFirst => self.left.start..self.left.end.min(self.left.start + self.window),
            Order::NewestFirst => self.left.start.max(self.left.end - self.window)..self.left.end,
        };
        match self.order {
            Order::OldestFirst => self.left.start = range.end,
            Order::NewestFirst => self.left.end = range.start,
        }
        self.window = self.window.saturating_mul(4);
        let alone = self.items.is_empty() && range.end - range.start == 1;
        self.meter.begin(if alone { usize::MAX } else { self.bytes });
        Some(range)
    }

    /// What was read at those places, by [`Self::meter`].
    pub(crate) fn take(&mut self, places: Range<i64>, rows: Result<Vec<ItemRow>, Error>) -> Result<(), Error> {
        let mut rows = match rows {
            Err(Error::NoRoom) if self.meter.is_beyond() => {
                self.shrink(&places);
                return Ok(());
            }
            rows => rows?,
        };
        self.bytes = self.bytes.saturating_sub(self.meter.taken());
        rows.sort_unstable_by_key(|row| row.pos);
        if self.order == Order::NewestFirst {
            rows.reverse();
        }
        for row in rows.into_iter().filter(|row| row.body.as_ref().is_none_or(|body| !body.is_empty())) {
            if self.items.len() == self.limit {
                self.has_more = true;
                break;
            }
            let body = row.body.ok_or(Error::DeletedAncestor)?;
            self.items.push(row_item(&self.cipher, row.id, body)?);
        }
        Ok(())
    }

    /// That was too much at once: half as many places, down to the one with which the page ends.
    fn shrink(&mut self, places: &Range<i64>) {
        self.meter.give_back();
        match self.order {
            Order::OldestFirst => self.left.start = places.start,
            Order::NewestFirst => self.left.end = places.end,
        }
        let count = places.end - places.start;
        self.window = (count / 2).max(1);
        self.has_more = count <= 1;
    }

    pub(crate) fn finish(self) -> ItemPage {
        ItemPage { items: self.items, has_more: self.has_more }
    }
}

/// A stored hash. One of another length is as good as none: it only finds what can be shared.
pub(crate) fn prefix(bytes: Option<Vec<u8>>) -> Option<Prefix> {
    bytes.and_then(|bytes| bytes.try_into().ok())
}
