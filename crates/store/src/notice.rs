//! The outbox: what is to be told to others about the end of a turn, stored with that end.
//!
//! A notice is given out until somebody says that it is done, so it is told at least once.

use bytes::Bytes;

use crate::encryption::{Cipher, Place};
use crate::{Error, Tenant};

/// A notice that is stored with the end of a turn.
#[derive(Debug, Clone)]
pub struct NewNotice {
    /// One that no other notice of this tenant has.
    pub id: String,
    /// Where it goes; a name or an address, as the caller likes.
    pub endpoint: String,
    pub body: Bytes,
}

/// A notice that is to be sent now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub tenant: Tenant,
    pub id: String,
    pub endpoint: String,
    pub body: Bytes,
    /// How often it was given out, this time included.
    pub tries: u32,
}

/// A notice made ready for the writer.
#[derive(Debug)]
pub(crate) struct PreparedNotice {
    pub(crate) id: String,
    pub(crate) endpoint: String,
    pub(crate) packed: Vec<u8>,
}

impl PreparedNotice {
    pub(crate) fn new(cipher: &Cipher, notice: NewNotice) -> Result<Self, Error> {
        let NewNotice { id, endpoint, body } = notice;
        let packed = cipher.pack(Place::notice(&id), &body)?;
        Ok(Self { id, endpoint, packed })
    }
}
