//! What is to be written, made from what is there and what is new: the same for every database.

use super::batch::Waiting;
use super::block::{OF_TENANT, Writer};
use super::coding::{fingerprint, has};
use super::document::{self, Chunks};
use super::{Block, Chunk, Header, PayloadRow, TraceBatch, TraceNumber};
use crate::{Encryption, Error};

/// A block that is new, or goes on, with what else belongs to the traces that it got.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) block: Block,
    /// Whether the block was there before.
    pub(crate) goes_on: bool,
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) payloads: Vec<PayloadRow>,
}

struct Changing {
    writer: Writer,
    goes_on: bool,
    chunks: Chunks,
    payloads: Vec<PayloadRow>,
}

impl Changing {
    /// With room for these, or as many of them as a block has.
    fn new(mut writer: Writer, traces: &TraceBatch) -> Self {
        let goes_on = !writer.is_empty();
        writer.reserve(traces.len());
        // Documents are the smaller part.
        let chunks = Chunks::for_bytes(traces.own_bytes() / 2);
        Self { goes_on, writer, chunks, payloads: Vec::new() }
    }

    fn push(&mut self, encryption: &Encryption, number: TraceNumber, trace: Waiting<'_>) -> Result<(), Error> {
        self.writer.push(number, trace.row);
        let stored = self.chunks.push(encryption, number, trace.document)?;
        self.writer.add_beside(stored);
        for (_, payload) in trace.payloads {
            // Two of one name would be one: the first counts.
            if self.payloads.iter().all(|other| other.number != number || other.name != payload.name) {
                let row = PayloadRow::new(encryption, number, payload)?;
                self.writer.add_beside(row.body.len() + row.name.len());
                self.payloads.push(row);
            }
        }
        Ok(())
    }

    fn finish(mut self, encryption: &Encryption) -> Result<Change, Error> {
        let stored = self.chunks.end(encryption)?;
        self.writer.add_beside(stored);
        Ok(Change {
            block: self.writer.finish(),
            goes_on: self.goes_on,
            chunks: self.chunks.done,
            payloads: self.payloads,
        })
    }
}

/// After the newest block that is there, traces with numbers from this one on, in blocks of about so many bytes.
pub(crate) fn prepare(
    newest: Option<Block>,
    next: TraceNumber,
    traces: &TraceBatch,
    encryption: &Encryption,
    room: i64,
) -> Result<Vec<Change>, Error> {
    let mut changes = Vec::new();
    let mut current = Changing::new(Writer::after(newest)?, traces);
    let mut is_new = false;
    for (number, trace) in (next..).zip(traces.iter()) {
        if !current.writer.has_room_for(trace.row.began_at, room) {
            let another = Changing::new(Writer::default(), traces);
            let full = std::mem::replace(&mut current, another);
            if is_new {
                changes.push(full.finish(encryption)?);
            }
        }
        current.push(encryption, number, trace)?;
        is_new = true;
    }
    if is_new {
        changes.push(current.finish(encryption)?);
    }
    Ok(changes)
}

/// What is left of a block when a tenant is gone.
#[derive(Debug)]
pub(crate) struct Remains {
    /// None if nothing is left.
    pub(crate) block: Option<Block>,
    /// The traces that are gone, by their numbers.
    pub(crate) gone: Vec<TraceNumber>,
}

impl Remains {
    /// What is left of its documents.
    pub(crate) fn chunk(&self, chunk: &Chunk, encryption: &Encryption) -> Result<Option<Vec<u8>>, Error> {
        document::without(encryption, chunk, &self.gone)
    }
}

/// Whether a block may have traces of a tenant.
pub(crate) fn may_have(header: &Header, tenant: &str) -> bool {
    has(&header.terms, fingerprint(OF_TENANT, super::parts::short(tenant)))
}

/// A block without the traces of a tenant; None if it has none of them.
pub(crate) fn without(block: &Block, tenant: &str) -> Result<Option<Remains>, Error> {
    let tenant = super::parts::short(tenant);
    // It stays where it was, by whichever number it is found.
    let mut writer = Writer::starting_at(block.header.first);
    let mut gone = Vec::new();
    for entry in block.entries()? {
        let entry = entry?;
        if entry.tenant() == tenant {
            gone.push(entry.number);
        } else {
            writer.push_row(entry.number, &entry.row()?);
        }
    }
    if gone.is_empty() {
        return Ok(None);
    }
    if writer.is_empty() {
        return Ok(Some(Remains { block: None, gone }));
    }
    // About as much of what is beside it as of its traces.
    let beside = block.header.bytes.saturating_sub(block.own_bytes()).max(0).cast_unsigned();
    let left = block.entries()?.count() - gone.len();
    let share = beside.saturating_mul(left as u64) / block.header.count.max(1).cast_unsigned();
    writer.add_beside(usize::try_from(share).unwrap_or(0));
    let mut left = writer.finish();
    // Numbers are not used again.
    left.header.last = block.header.last;
    Ok(Some(Remains { block: Some(left), gone }))
}
