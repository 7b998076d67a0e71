//! Traces in memory: the oldest block makes room for the new.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{
    Block, Chunk, Header, PayloadRow, Stored, TraceBatch, TraceNumber, Visit, Walk, may_have, prepare, without,
};
use crate::{Encryption, Error};

#[derive(Debug, Clone)]
pub(super) struct Memory {
    held: Arc<Mutex<Held>>,
    limit: u64,
}

#[derive(Debug, Default)]
struct Held {
    next: TraceNumber,
    blocks: VecDeque<Arc<Block>>,
    chunks: BTreeMap<TraceNumber, Vec<u8>>,
    payloads: BTreeMap<TraceNumber, Vec<PayloadRow>>,
}

impl Memory {
    pub(super) fn new(limit: u64) -> Self {
        Self { held: Arc::default(), limit }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, traces: &TraceBatch, room: i64) -> Result<(), Error> {
        let mut held = self.held();
        let next = held.next.max(1);
        let newest = held.blocks.back().map(|block| Block::clone(block));
        let changes = prepare(newest, next, traces, &Encryption::default(), room)?;
        held.next = next.saturating_add(i64::try_from(traces.len()).unwrap_or(i64::MAX));
        for change in changes {
            if change.goes_on {
                held.blocks.pop_back();
            }
            held.blocks.push_back(Arc::new(change.block));
            held.chunks.extend(change.chunks.into_iter().map(|chunk| (chunk.first, chunk.body)));
            for payload in change.payloads {
                held.payloads.entry(payload.number).or_default().push(payload);
            }
        }
        held.shrink(self.limit, i64::MIN);
        Ok(())
    }

    pub(super) fn walk(&self, walk: Walk, visitor: &mut impl Visit) -> Result<(), Error> {
        // Nobody waits for whoever looks.
        let mut blocks: Vec<Arc<Block>> = self.held().blocks.iter().cloned().collect();
        if let Walk::NewestFirst { .. } = walk {
            blocks.reverse();
        }
        for block in blocks {
            let inside = match walk {
                Walk::NewestFirst { before } => block.header.first < before,
                Walk::OldestFirst { from } => block.header.last >= from,
            };
            let wanted = inside && visitor.wants(&block.header) && visitor.wants_ids(&block.ids);
            if wanted && visitor.see(&block)? == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn newest(&self) -> Option<i64> {
        self.held().blocks.iter().map(|block| block.header.began_max).max()
    }

    pub(super) fn stored(&self, number: TraceNumber) -> Option<Stored> {
        let held = self.held();
        let block = held.blocks.iter().rev().find(|block| block.header.first <= number)?;
        let chunk = held.chunks.range(..=number).next_back();
        let chunk = chunk.map(|(first, body)| Chunk { first: *first, body: body.clone() });
        let payloads = held.payloads.get(&number).cloned().unwrap_or_default();
        Some(Stored { block: Block::clone(block), chunk, payloads })
    }

    pub(super) fn prune(&self, limit: u64, before: i64) {
        self.held().shrink(limit.min(self.limit), before);
    }

    pub(super) fn erase(&self, tenant: &str) -> Result<u64, Error> {
        let mut held = self.held();
        let mut count = 0;
        for block in std::mem::take(&mut held.blocks) {
            let remains = if may_have(&block.header, tenant) { without(&block, tenant)? } else { None };
            let Some(remains) = remains else {
                held.blocks.push_back(block);
                continue;
            };
            count += remains.gone.len() as u64;
            let chunks: Vec<Chunk> = held
                .chunks
                .extract_if(block.header.first..=block.header.last, |_, _| true)
                .map(|(first, body)| Chunk { first, body })
                .collect();
            for chunk in chunks {
                if let Some(body) = remains.chunk(&chunk, &Encryption::default())? {
                    held.chunks.insert(chunk.first, body);
                }
            }
            held.payloads.retain(|number, _| remains.gone.binary_search(number).is_err());
            held.blocks.extend(remains.block.map(Arc::new));
        }
        Ok(count)
    }
}

impl Held {
    fn shrink(&mut self, limit: u64, before: i64) {
        let mut bytes = self.blocks.iter().map(|block| block.header.bytes.max(0).cast_unsigned()).sum::<u64>();
        let goes = |header: &Header, all: u64| header.is_beyond(limit, all) || header.began_max < before;
        while let Some(oldest) = self.blocks.pop_front_if(|block| goes(&block.header, bytes)) {
            bytes = bytes.saturating_sub(oldest.header.bytes.max(0).cast_unsigned());
            let after = oldest.header.last.saturating_add(1);
            self.chunks = self.chunks.split_off(&after);
            self.payloads = self.payloads.split_off(&after);
        }
    }
}
