//! How bodies are written in the database: a byte that says how, then the bytes, compressed when that pays.
//!
//! What is sealed says so in front, with the number of its data key and its length (`encryption`); it is packed before.
//!
//! An item's body that is NULL was erased with its response; an empty one was removed from its conversation.

use std::cell::RefCell;

use bytes::Bytes;
use zstd::bulk::{Compressor, Decompressor};

use crate::Error;

const RAW: u8 = 0;
const ZSTD: u8 = 1;
pub(crate) const SEALED: u8 = 2;

/// What comes before the nonce of a sealed body: its form, the number of its data key, its length.
pub(crate) const HEADER: usize = 9;

/// Below this, taking a body apart again costs more time, in every history that has it, than its room is worth.
const WORTH_IT: usize = 16 << 10;

/// The largest body that is taken apart again: a claimed size beyond it is damage, not data.
const LARGEST: usize = 1 << 30;

thread_local! {
    // A compressor's tables cost more to set up than a typical item to compress.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = RefCell::new(Compressor::new(1).ok());
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = RefCell::new(Decompressor::new().ok());
}

pub(crate) fn pack(body: &[u8]) -> Vec<u8> {
    pack_from(WORTH_IT, body)
}

/// Compressed only where it is as long as this.
pub(crate) fn pack_from(worth_it: usize, body: &[u8]) -> Vec<u8> {
    if body.len() >= worth_it
        && let Some(packed) = compress(body)
        && packed.len() < body.len()
    {
        return packed;
    }
    let mut packed = Vec::with_capacity(body.len() + 1);
    packed.push(RAW);
    packed.extend_from_slice(body);
    packed
}

/// The code, the length in four bytes, the compressed bytes.
fn compress(body: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(body.len()).ok()?;
    COMPRESSOR.with_borrow_mut(|compressor| {
        let compressed = compressor.as_mut()?.compress(body).ok()?;
        let mut packed = Vec::with_capacity(compressed.len() + 5);
        packed.push(ZSTD);
        packed.extend_from_slice(&length.to_le_bytes());
        packed.extend_from_slice(&compressed);
        Some(packed)
    })
}

/// How long the body is, before it is taken apart. What is damaged has no length; unpacking tells.
pub(crate) fn length(packed: &[u8]) -> usize {
    match packed.split_first() {
        Some((&ZSTD, rest)) => claimed(rest),
        Some((&SEALED, rest)) => claimed(rest.get(4..).unwrap_or_default()),
        Some((_, rest)) => rest.len(),
        None => 0,
    }
}

fn claimed(rest: &[u8]) -> usize {
    let length = rest.first_chunk::<4>().map(|length| u32::from_le_bytes(*length));
    length.and_then(|length| usize::try_from(length).ok()).filter(|length| *length <= LARGEST).unwrap_or(0)
}

/// What every body begins with that is sealed by this data key.
pub(crate) const fn mark(number: u32) -> [u8; 5] {
    let [a, b, c, d] = number.to_le_bytes();
    [SEALED, a, b, c, d]
}

/// The number of the data key of a sealed body.
pub(crate) fn number(packed: &[u8]) -> Option<u32> {
    packed.get(1..)?.first_chunk::<4>().map(|number| u32::from_le_bytes(*number))
}

/// A body that is not sealed, or not any more.
pub(crate) fn unpack(packed: &Bytes) -> Result<Bytes, Error> {
    match packed.first() {
        Some(&RAW) => Ok(packed.slice(1..)),
        Some(&ZSTD) => decompress(packed).ok_or_else(|| Error::corrupt("a stored body cannot be decompressed")),
        _ => Err(Error::corrupt("a stored body is of no known form")),
    }
}

fn decompress(packed: &[u8]) -> Option<Bytes> {
    let (length, compressed) = packed.get(1..)?.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok().filter(|length| *length <= LARGEST)?;
    let body =
        DECOMPRESSOR.with_borrow_mut(|decompressor| decompressor.as_mut()?.decompress(compressed, length).ok())?;
    (body.len() == length).then(|| body.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_come_back_byte_for_byte() {
        let long = br#"{"text":"again and "}"#.repeat(5_000);
        for body in [&b""[..], b"{}", b"{\"a\":\"\\u0000\\ud800\"}", b"\0\xff", &long] {
            assert_eq!(length(&pack(body)), body.len());
            assert_eq!(unpack(&pack(body).into()).unwrap(), body);
        }
        assert!(pack(&long).len() < long.len() / 10);
    }

    #[test]
    fn damage_is_an_error() {
        let mut packed = pack(&b"abcdefgh".repeat(5_000));
        packed.truncate(12);
        assert!(matches!(unpack(&packed.into()), Err(Error::Corrupt(_))));
        assert!(matches!(unpack(&vec![9, 9].into()), Err(Error::Corrupt(_))));
        assert!(matches!(unpack(&vec![ZSTD, 255, 255, 255, 255].into()), Err(Error::Corrupt(_))));
    }
}
