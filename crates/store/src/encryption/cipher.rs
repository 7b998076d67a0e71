//! How bodies are sealed and opened: for one tenant, each in its place.
//!
//! A sealed body is the form's byte, the number of its data key, the length of what it holds, a nonce, and the packed body,
//! sealed. Everything before the nonce is authenticated with it.

use std::sync::Arc;

use aws_lc_rs::aead::{Aad, LessSafeKey, MAX_TAG_LEN, NONCE_LEN, Nonce};
use bytes::Bytes;

use super::{DataKey, Encryption, aead, nonce, refused};
use crate::packed::{self, HEADER, SEALED};
use crate::{Error, Tenant};

/// Where a body belongs. What is sealed for one place opens in no other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    table: u8,
    id: &'a [u8],
    number: i64,
}

impl<'a> Place<'a> {
    /// By its id and not by its place in a list: a begun turn's items move to another list when it ends.
    pub(crate) const fn item(id: &'a str) -> Self {
        Self { table: 1, id: id.as_bytes(), number: 0 }
    }

    pub(crate) const fn head(response: &'a str) -> Self {
        Self { table: 2, id: response.as_bytes(), number: 0 }
    }

    pub(crate) const fn settings(hash: &'a [u8]) -> Self {
        Self { table: 3, id: hash, number: 0 }
    }

    pub(crate) const fn conversation(id: &'a str) -> Self {
        Self { table: 4, id: id.as_bytes(), number: 0 }
    }

    /// A batch of events, by the number of its first.
    pub(crate) const fn events(response: &'a str, first: i64) -> Self {
        Self { table: 5, id: response.as_bytes(), number: first }
    }

    pub(crate) const fn job(response: &'a str) -> Self {
        Self { table: 6, id: response.as_bytes(), number: 0 }
    }

    pub(crate) const fn notice(id: &'a str) -> Self {
        Self { table: 7, id: id.as_bytes(), number: 0 }
    }
}

/// The data keys of one tenant.
pub(super) struct Ring {
    tenant: Tenant,
    keys: Vec<(u32, LessSafeKey)>,
    /// With which bodies are sealed now; none: they are written in clear.
    current: Option<u32>,
    /// Whether a body in clear is damage: the tenant has none.
    sealed_only: bool,
}

impl Ring {
    pub(super) fn new(encryption: &Encryption, tenant: &Tenant, rows: &[DataKey]) -> Result<Self, Error> {
        let unwrap = |row: &DataKey| {
            let key = encryption.unwrap(&DataKey::bound_to(tenant, row.number), &row.wrapped)?;
            Ok::<_, Error>((row.number, aead(&key)?))
        };
        let current = DataKey::current(rows);
        Ok(Self {
            tenant: tenant.clone(),
            keys: rows.iter().map(unwrap).collect::<Result<_, _>>()?,
            current: current.map(|row| row.number),
            sealed_only: current.is_some_and(|row| row.sealed_only),
        })
    }

    pub(super) const fn current(&self) -> Option<u32> {
        self.current
    }

    fn key(&self, number: u32) -> Option<&LessSafeKey> {
        self.keys.iter().find(|(known, _)| *known == number).map(|(_, key)| key)
    }

    /// What is authenticated with a body: what comes before its nonce, and its place.
    fn bound_to(&self, header: &[u8], place: Place<'_>) -> Vec<u8> {
        let tenant = self.tenant.key();
        let mut bound = Vec::with_capacity(header.len() + tenant.len() + place.id.len() + 17);
        bound.extend_from_slice(header);
        bound.extend_from_slice(&(tenant.len() as u64).to_le_bytes());
        bound.extend_from_slice(tenant);
        bound.push(place.table);
        bound.extend_from_slice(&place.number.to_le_bytes());
        bound.extend_from_slice(place.id);
        bound
    }
}

/// Packs and unpacks for one tenant; without keys, in clear.
#[derive(Clone, Default)]
pub(crate) struct Cipher(Option<Arc<Ring>>);

impl Cipher {
    pub(super) const fn new(ring: Arc<Ring>) -> Self {
        Self(Some(ring))
    }

    /// With these data keys.
    pub(crate) fn of(encryption: &Encryption, tenant: &Tenant, rows: &[DataKey]) -> Result<Self, Error> {
        Ok(Self::new(Arc::new(Ring::new(encryption, tenant, rows)?)))
    }

    /// What the bodies that are sealed now begin with, if any are.
    pub(super) fn mark(&self) -> Option<[u8; 5]> {
        Some(packed::mark(self.0.as_ref()?.current?))
    }

    /// The body as it will be in the database.
    pub(crate) fn pack(&self, place: Place<'_>, body: &[u8]) -> Result<Vec<u8>, Error> {
        let packed = packed::pack(body);
        let Some((ring, number)) = self.0.as_ref().and_then(|ring| Some((ring, ring.current?))) else {
            return Ok(packed);
        };
        let key = ring.key(number).ok_or_else(refused)?;
        let nonce = nonce()?;
        let mut sealed = Vec::with_capacity(HEADER + NONCE_LEN + packed.len() + MAX_TAG_LEN);
        sealed.extend_from_slice(&packed::mark(number));
        sealed.extend_from_slice(&length(body).to_le_bytes());
        let bound = Aad::from(ring.bound_to(&sealed, place));
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(&packed);
        let content = sealed.get_mut(HEADER + NONCE_LEN..).unwrap_or_default();
        let tag = key.seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), bound, content);
        sealed.extend_from_slice(tag.map_err(|_| refused())?.as_ref());
        Ok(sealed)
    }

    /// The body that was packed for this place.
    pub(crate) fn unpack(&self, place: Place<'_>, packed: Vec<u8>) -> Result<Bytes, Error> {
        let ring = self.0.as_ref();
        if packed.first() != Some(&SEALED) {
            if ring.is_some_and(|ring| ring.sealed_only) {
                return Err(Error::corrupt("a stored body is in clear, where all are encrypted"));
            }
            return packed::unpack(&packed.into());
        }
        let ring = ring.ok_or_else(|| Error::corrupt("a stored body is encrypted, and there is no key"))?;
        Self::open(ring, place, packed)
    }

    fn open(ring: &Ring, place: Place<'_>, mut packed: Vec<u8>) -> Result<Bytes, Error> {
        let damaged = || Error::corrupt("a stored body does not open: it was changed, or belongs elsewhere");
        let number = packed::number(&packed).ok_or_else(damaged)?;
        let key = ring.key(number).ok_or_else(|| Error::corrupt("the data key of a stored body is gone"))?;
        let (header, rest) = packed.split_at_mut_checked(HEADER).ok_or_else(damaged)?;
        let (nonce, sealed) = rest.split_first_chunk_mut::<NONCE_LEN>().ok_or_else(damaged)?;
        let bound = Aad::from(ring.bound_to(header, place));
        let opened = key.open_in_place(Nonce::assume_unique_for_key(*nonce), bound, sealed);
        let end = HEADER + NONCE_LEN + opened.map_err(|_| damaged())?.len();
        let claimed = packed::length(&packed);
        let body = packed::unpack(&Bytes::from(packed).slice(HEADER + NONCE_LEN..end))?;
        if body.len() == claimed { Ok(body) } else { Err(damaged()) }
    }
}

/// A body that has more bytes than fit here fits no database either.
fn length(body: &[u8]) -> u32 {
    u32::try_from(body.len()).unwrap_or(u32::MAX)
}

/// Keys are not for logs.
impl std::fmt::Debug for Cipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Cipher(<redacted>)" } else { "Cipher(none)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreKey;

    fn rows(encryption: &Encryption, tenant: &Tenant, sealed_only: bool) -> Vec<DataKey> {
        let made = (1..=2).map(|number| DataKey::made(encryption, tenant, number).unwrap().unwrap());
        let row = |(number, new): (u32, crate::encryption::NewDataKey)| DataKey {
            number,
            wrapped: new.wrapped,
            coming: false,
            retired: false,
            sealed_only,
        };
        (1..).zip(made).map(row).collect()
    }

    fn cipher(tenant: &str, sealed_only: bool) -> Cipher {
        let encryption = Encryption { key: Some(StoreKey::new(&[1; 32]).unwrap()), previous: Vec::new() };
        let tenant = Tenant::new(tenant);
        let rows = rows(&encryption, &tenant, sealed_only);
        Cipher::new(Arc::new(Ring::new(&encryption, &tenant, &rows).unwrap()))
    }

    #[test]
    fn bodies_come_back_byte_for_byte_and_show_nothing() {
        let cipher = cipher("t", true);
        let long = br#"{"text":"again and "}"#.repeat(5_000);
        for body in [&b""[..], b"{}", b"\0\xff", b"the quick brown fox", &long] {
            let sealed = cipher.pack(Place::item("i"), body).unwrap();
            assert_eq!(packed::length(&sealed), body.len());
            assert!(body.len() < 3 || memchr::memmem::find(&sealed, body).is_none());
            assert_ne!(sealed, cipher.pack(Place::item("i"), body).unwrap(), "no two are alike");
            assert_eq!(cipher.unpack(Place::item("i"), sealed).unwrap(), body);
        }
        assert!(cipher.pack(Place::item("i"), &long).unwrap().len() < long.len() / 10, "compressed first");
    }

    #[test]
    fn a_body_opens_in_its_place_only() {
        let (ours, theirs) = (cipher("a", true), cipher("b", true));
        let places = [
            Place::item("x"),
            Place::item("y"),
            Place::head("x"),
            Place::settings(b"x"),
            Place::conversation("x"),
            Place::events("x", 0),
            Place::events("x", 1),
            Place::job("x"),
            Place::notice("x"),
        ];
        for (at, place) in places.iter().enumerate() {
            let sealed = ours.pack(*place, b"words").unwrap();
            for (other, elsewhere) in places.iter().enumerate() {
                let opened = ours.unpack(*elsewhere, sealed.clone());
                assert_eq!(opened.is_ok(), at == other, "{place:?} {elsewhere:?}");
            }
            assert!(matches!(theirs.unpack(*place, sealed.clone()), Err(Error::Corrupt(_))), "another tenant");
            assert!(matches!(Cipher::default().unpack(*place, sealed), Err(Error::Corrupt(_))), "no key");
        }
    }

    /// Each byte of 200 bodies, changed in each bit and to some other values: never other words.
    #[test]
    fn whatever_is_changed_is_damage() {
        let cipher = cipher("t", true);
        for n in 0..200_usize {
            let body = format!(r#"{{"n":{n},"text":"{}"}}"#, "word ".repeat(n % 7));
            let sealed = cipher.pack(Place::item("i"), body.as_bytes()).unwrap();
            for at in 0..sealed.len() {
                for change in [1, 2, 3, 4, 8, 16, 32, 64, 128, 255] {
                    let mut changed = sealed.clone();
                    changed[at] ^= change;
                    let opened = cipher.unpack(Place::item("i"), changed);
                    assert!(matches!(opened, Err(Error::Corrupt(_))), "{n}: {at} ^ {change}: {opened:?}");
                }
            }
            for cut in 0..sealed.len() {
                assert!(cipher.unpack(Place::item("i"), sealed[..cut].to_vec()).is_err(), "{n}: {cut}");
            }
        }
    }

    #[test]
    fn what_is_in_clear_is_read_while_that_may_be() {
        let clear = Cipher::default().pack(Place::head("r"), b"{}").unwrap();
        assert_eq!(cipher("t", false).unpack(Place::head("r"), clear.clone()).unwrap(), &b"{}"[..]);
        assert!(matches!(cipher("t", true).unpack(Place::head("r"), clear), Err(Error::Corrupt(_))));
    }
}
