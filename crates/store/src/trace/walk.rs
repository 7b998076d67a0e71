//! How blocks are gone through. The one who looks is carried to where the blocks are: SQLite's threads, not the runtime's,
//! take them apart.

use std::ops::ControlFlow;

use super::{Block, Header, TraceNumber};
use crate::Error;

/// Which blocks, in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walk {
    /// Those with numbers below this one.
    NewestFirst { before: TraceNumber },
    /// Those with this number or higher ones.
    OldestFirst { from: TraceNumber },
}

/// Who looks for something.
pub(crate) trait Visit: Send + 'static {
    /// Whether the fingerprints of ids are to be looked at, too.
    fn by_ids(&self) -> bool;
    /// Whether the block may have something, as far as its summary tells.
    fn wants(&self, header: &Header) -> bool;
    fn wants_ids(&self, ids: &[u8]) -> bool;
    /// Looks at a block that it wanted; a break ends the walk.
    fn see(&mut self, block: &Block) -> Result<ControlFlow<()>, Error>;
}
