//! The tree of turns that a response belongs to: up to the first, then all that grew out of it.
//!
//! A turn is written after the one that it continues, so two walks find the whole tree. Where instances write together, a turn
//! may be written a moment before the one that it continues; then the tree begins with it.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use super::block::{OF_ID, OF_TENANT};
use super::coding::{fingerprint, has};
use super::parts::short;
use super::{Block, Header, TraceNumber, TraceRow, Visit};
use crate::Error;

/// Newest first: finds the first turn.
#[derive(Debug)]
pub(super) struct Up {
    tenant: String,
    of_tenant: u32,
    /// The one that is looked for, at last the first of all.
    pub(super) wanted: String,
    print: u32,
    /// Where the oldest one that was found is.
    pub(super) oldest: TraceNumber,
}

impl Up {
    pub(super) fn new(tenant: &str, id: &str) -> Self {
        let (tenant, wanted) = (short(tenant).to_owned(), short(id).to_owned());
        let (of_tenant, print) = (fingerprint(OF_TENANT, &tenant), fingerprint(OF_ID, &wanted));
        Self { tenant, of_tenant, wanted, print, oldest: 0 }
    }
}

impl Visit for Up {
    fn by_ids(&self) -> bool {
        true
    }

    fn wants(&self, header: &Header) -> bool {
        !self.wanted.is_empty() && has(&header.terms, self.of_tenant)
    }

    fn wants_ids(&self, ids: &[u8]) -> bool {
        has(ids, self.print)
    }

    fn see(&mut self, block: &Block) -> Result<ControlFlow<()>, Error> {
        let entries: Vec<_> = block.entries()?.collect::<Result<_, _>>()?;
        for entry in entries.iter().rev().filter(|entry| entry.tenant() == self.tenant) {
            let ids = entry.ids()?;
            if ids.response.as_deref() != Some(&self.wanted) {
                continue;
            }
            self.oldest = entry.number;
            // Also who only reads a response has its id, and continues nothing.
            if let Some(previous) = ids.previous {
                previous.clone_into(&mut self.wanted);
                self.print = fingerprint(OF_ID, previous);
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Oldest first: finds what grew out of a turn.
#[derive(Debug)]
pub(super) struct Down {
    tenant: String,
    of_tenant: u32,
    ids: HashSet<String>,
    prints: Prints,
    limit: usize,
    pub(super) found: BTreeMap<TraceNumber, TraceRow<'static>>,
}

impl Down {
    pub(super) fn new(up: Up, limit: u32) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let (ids, prints) = (HashSet::from([up.wanted]), Prints::new(up.print));
        Self { tenant: up.tenant, of_tenant: up.of_tenant, ids, prints, limit, found: BTreeMap::new() }
    }
}

impl Visit for Down {
    fn by_ids(&self) -> bool {
        true
    }

    fn wants(&self, header: &Header) -> bool {
        has(&header.terms, self.of_tenant)
    }

    fn wants_ids(&self, ids: &[u8]) -> bool {
        let (prints, _) = ids.as_chunks::<4>();
        prints.iter().any(|print| self.prints.have(u32::from_le_bytes(*print)))
    }

    fn see(&mut self, block: &Block) -> Result<ControlFlow<()>, Error> {
        for entry in block.entries()? {
            let entry = entry?;
            if entry.tenant() != self.tenant {
                continue;
            }
            let ids = entry.ids()?;
            let is_in = |id: Option<&str>| id.is_some_and(|id| self.ids.contains(id));
            if !is_in(ids.response.as_deref()) && !is_in(ids.previous) {
                continue;
            }
            if self.found.len() >= self.limit {
                return Ok(ControlFlow::Break(()));
            }
            if let Some(id) = ids.response {
                self.prints.add(fingerprint(OF_ID, &*id));
                self.ids.insert(id.into_owned());
            }
            self.found.insert(entry.number, entry.row()?);
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Some fingerprints, of which millions are asked for: nearly all of them are not here, which one bit tells.
#[derive(Debug)]
struct Prints {
    all: HashSet<u32>,
    bits: Vec<u64>,
}

impl Prints {
    fn new(first: u32) -> Self {
        let mut prints = Self { all: HashSet::new(), bits: vec![0; 1024] };
        prints.add(first);
        prints
    }

    fn add(&mut self, print: u32) {
        self.all.insert(print);
        if let Some(word) = self.bits.get_mut(Self::word(print)) {
            *word |= 1 << (print % 64);
        }
    }

    fn have(&self, print: u32) -> bool {
        self.bits.get(Self::word(print)).is_some_and(|word| word >> (print % 64) & 1 == 1) && self.all.contains(&print)
    }

    const fn word(print: u32) -> usize {
        (print >> 6) as usize % 1024
    }
}
