//! Documents and bodies as they are in the database: packed, and sealed where there is a key.
//!
//! What is sealed is a byte that says so, the id of the store's key, a nonce and the packed body. It is bound to its place: moved
//! elsewhere, it does not open. Nothing is written in clear because sealing failed.

use bytes::Bytes;

use super::TraceNumber;
use crate::encryption::KeyId;
use crate::{Encryption, Error, packed};

/// After the forms of `packed`.
const SEALED: u8 = 3;

/// Documents of a usual batch are less, and say all in few bytes: packing them would cost as much as all else of a trace.
const MANY: usize = 64 << 10;

/// Where something belongs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place<'a> {
    /// Documents, by the number of the first that was among them.
    Documents(TraceNumber),
    Payload(TraceNumber, &'a str),
}

impl Place<'_> {
    fn bound_to(self, key: KeyId) -> Vec<u8> {
        let (table, number, name) = match self {
            Self::Documents(first) => (1, first, ""),
            Self::Payload(number, name) => (2, number, name),
        };
        let mut bound = Vec::with_capacity(key.len() + name.len() + 10);
        bound.push(SEALED);
        bound.extend_from_slice(&key);
        bound.push(table);
        bound.extend_from_slice(&number.to_le_bytes());
        bound.extend_from_slice(name.as_bytes());
        bound
    }
}

pub(super) fn seal(encryption: &Encryption, place: Place<'_>, clear: &[u8]) -> Result<Vec<u8>, Error> {
    let packed = match place {
        Place::Documents(_) => packed::pack_from(MANY, clear),
        Place::Payload(..) => packed::pack(clear),
    };
    let Some(key) = &encryption.key else { return Ok(packed) };
    let mut sealed = Vec::with_capacity(packed.len() + 64);
    sealed.push(SEALED);
    sealed.extend_from_slice(key.id());
    key.seal_trace(&place.bound_to(*key.id()), &packed, &mut sealed)?;
    Ok(sealed)
}

/// None: no key opens it, or it is damaged.
pub(super) fn open(encryption: &Encryption, place: Place<'_>, stored: &[u8]) -> Option<Bytes> {
    let packed = match stored.split_first() {
        Some((&SEALED, rest)) => {
            let (id, sealed) = rest.split_first_chunk::<8>()?;
            encryption.find(id)?.open_trace(&place.bound_to(*id), sealed)?
        }
        _ => stored.to_vec(),
    };
    packed::unpack(&packed.into()).ok()
}

/// What becomes of something when the keys have changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Renewed {
    AsItWas,
    New(Vec<u8>),
    /// No key opens it.
    Lost,
}

pub(crate) fn renew(encryption: &Encryption, place: Place<'_>, stored: &[u8]) -> Result<Renewed, Error> {
    let is_sealed = stored.first() == Some(&SEALED);
    let is_right = match &encryption.key {
        Some(key) => is_sealed && stored.get(1..).is_some_and(|rest| rest.starts_with(key.id())),
        None => !is_sealed,
    };
    if is_right {
        return Ok(Renewed::AsItWas);
    }
    match open(encryption, place, stored) {
        Some(clear) => seal(encryption, place, &clear).map(Renewed::New),
        None => Ok(Renewed::Lost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreKey;

    fn with(key: Option<u8>, previous: &[u8]) -> Encryption {
        let key_of = |byte: &u8| StoreKey::new(&[*byte; 32]).unwrap();
        Encryption { key: key.as_ref().map(key_of), previous: previous.iter().map(key_of).collect() }
    }

    #[test]
    fn what_is_sealed_opens_in_its_place_and_with_its_key_only() {
        let one = with(Some(1), &[]);
        let sealed = seal(&one, Place::Payload(7, "request"), b"secret words").unwrap();
        assert!(!sealed.windows(6).any(|window| window == b"secret"));
        let opened = |encryption: &Encryption, place| open(encryption, place, &sealed);
        assert_eq!(opened(&with(Some(2), &[1]), Place::Payload(7, "request")).unwrap(), "secret words");
        for place in [Place::Payload(8, "request"), Place::Payload(7, "response"), Place::Documents(7)] {
            assert_eq!(opened(&one, place), None, "{place:?}");
        }
        for other in [with(None, &[]), with(Some(2), &[3])] {
            assert_eq!(opened(&other, Place::Payload(7, "request")), None);
        }
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(open(&one, Place::Payload(7, "request"), &changed), None, "{at}");
            assert_eq!(open(&one, Place::Payload(7, "request"), &sealed[..at]), None, "{at}");
        }
    }

    #[test]
    fn a_change_of_keys_renews_what_it_can_open() {
        let place = Place::Documents(1);
        for (written, now, expected) in [
            (with(Some(1), &[]), with(Some(1), &[]), Some(true)),
            (with(Some(1), &[]), with(Some(2), &[1]), Some(false)),
            (with(Some(1), &[]), with(Some(2), &[]), None),
            (with(Some(1), &[]), with(None, &[1]), Some(false)),
            (with(Some(1), &[]), with(None, &[]), None),
            (with(None, &[]), with(Some(1), &[]), Some(false)),
            (with(None, &[]), with(None, &[1]), Some(true)),
        ] {
            let stored = seal(&written, place, b"{}").unwrap();
            let renewed = renew(&now, place, &stored).unwrap();
            match expected {
                Some(true) => assert_eq!(renewed, Renewed::AsItWas),
                None => assert_eq!(renewed, Renewed::Lost),
                Some(false) => {
                    let Renewed::New(stored) = renewed else { panic!("{renewed:?}") };
                    assert_eq!(open(&now, place, &stored).unwrap(), "{}");
                    assert_eq!(renew(&now, place, &stored).unwrap(), Renewed::AsItWas);
                }
            }
        }
    }
}
