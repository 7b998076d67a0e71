//! Room for what is read: bodies are asked for one by one while they are read, so that a short request for much holds no
//! more than its caller has.

use std::sync::Arc;

use crate::Error;
use crate::encryption::Cipher;

/// What a caller has for bodies that are read for it. What was taken is the caller's to give back, once the bodies are
/// gone; only what the store read in vain it gives back itself.
pub trait Room: std::fmt::Debug + Send + Sync {
    /// Whether there is room for that many bytes more; they are taken then.
    fn take(&self, bytes: usize) -> bool;
    fn give_back(&self, bytes: usize);
}

/// Room without end.
#[derive(Debug)]
pub(crate) struct Endless;

impl Room for Endless {
    fn take(&self, _: usize) -> bool {
        true
    }

    fn give_back(&self, _: usize) {}
}

/// How the bodies of a tenant are read: with which keys, and into what room.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub(crate) cipher: Cipher,
    pub(crate) room: Arc<dyn Room>,
}

/// Counts the bodies of one read.
#[derive(Debug)]
pub(crate) struct Meter {
    room: Arc<dyn Room>,
    /// How much this read wants at most, whatever room there is.
    most: usize,
    taken: usize,
    beyond: bool,
}

impl Meter {
    pub(crate) fn new(room: &Arc<dyn Room>) -> Self {
        Self { room: Arc::clone(room), most: usize::MAX, taken: 0, beyond: false }
    }

    /// Before a body is copied out of the database: [`Error::NoRoom`] if that is too much.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), Error> {
        let taken = self.taken.saturating_add(bytes);
        self.beyond = taken > self.most;
        if self.beyond || !self.room.take(bytes) {
            return Err(Error::NoRoom);
        }
        self.taken = taken;
        Ok(())
    }

    /// Begins a read that wants no more than this.
    pub(crate) fn begin(&mut self, most: usize) {
        (self.most, self.taken, self.beyond) = (most, 0, false);
    }

    /// What the read since [`Self::begin`] has taken.
    pub(crate) const fn taken(&self) -> usize {
        self.taken
    }

    /// Whether the last refusal was for more than was wanted, and not for want of room.
    pub(crate) const fn is_beyond(&self) -> bool {
        self.beyond
    }

    /// What was read since [`Self::begin`] is gone again.
    pub(crate) fn give_back(&mut self) {
        self.room.give_back(std::mem::take(&mut self.taken));
    }
}
