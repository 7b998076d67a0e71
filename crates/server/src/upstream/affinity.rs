//! Who belongs where: requests of one conversation go to one place (an address, a key), because that is where their
//! beginning is cached.
//!
//! Rendezvous hashing: each place has a number for each conversation, and the highest takes it. Nothing is remembered, so
//! every instance chooses alike, and a place that comes or goes moves only what is its own. A place that is down or has
//! more than its share is passed over until that is over. No clock, no chance, no I/O.

#[cfg(test)]
mod tests;

/// A place with fewer requests than this is never said to have too many: an agent and its helpers stay together.
const FEW: usize = 4;

/// Above the mean by so much of a hundred, a place has more than its share.
const PERCENT: usize = 125;

/// All of a place's share; less while it only just came back.
pub(super) const WHOLE: usize = 1000;

/// What the requests of one conversation have in common, as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Affinity(u64);

impl Affinity {
    /// Of something that only this request is: it may go anywhere.
    pub(crate) const fn any(draw: u64) -> Self {
        Self(draw)
    }

    /// Of texts, one after the other; where one ends and the next begins counts as well.
    pub(crate) fn of<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self(texts.into_iter().fold(SEED, absorb))
    }

    /// How much this place wants it.
    const fn rank(self, place: PlaceId) -> u64 {
        stirred(self.0 ^ place.0)
    }

    /// Whether a place takes it that has only this share: the more of it, the more come back, and none of those leave again.
    fn is_within(self, place: PlaceId, share: usize) -> bool {
        let draw = stirred(self.rank(place) ^ SEED) % WHOLE as u64;
        draw < share as u64
    }
}

/// A place, by what it is: its number in a list may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlaceId(u64);

impl PlaceId {
    pub(super) fn of(name: &[u8]) -> Self {
        Self(stirred(absorb(SEED, name)))
    }
}

/// A place at this moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seat {
    pub(super) place: PlaceId,
    /// Requests that it has not ended.
    pub(super) open: usize,
    /// Of [`WHOLE`]; 0: it is to get nothing.
    pub(super) share: usize,
}

/// The places in the order in which they are to be asked: the conversation's own first. Those that have too much already
/// come after those that have not, and those that are to get nothing at the end.
pub(super) fn order(affinity: Affinity, seats: &[Seat]) -> Vec<usize> {
    let open: usize = seats.iter().filter(|seat| seat.share > 0).map(|seat| seat.open).sum();
    let shares: usize = seats.iter().map(|seat| seat.share).sum();
    let class = |seat: &Seat| match seat.share {
        0 => Class::Nothing,
        share if seat.open >= bound(open, share, shares) || !affinity.is_within(seat.place, share) => {
            // Who has least of its share, if it must be somebody.
            Class::Enough(seat.open * WHOLE / share)
        }
        _ => Class::Free,
    };
    let mut order: Vec<usize> = (0..seats.len()).collect();
    order.sort_by_cached_key(|at| {
        let seat = &seats[*at];
        (class(seat), std::cmp::Reverse(affinity.rank(seat.place)))
    });
    order
}

/// Where it would go if every place were up and idle.
pub(super) fn home(affinity: Affinity, places: impl Iterator<Item = PlaceId>) -> Option<usize> {
    places.enumerate().max_by_key(|(_, place)| affinity.rank(*place)).map(|(at, _)| at)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Free,
    Enough(usize),
    Nothing,
}

/// How many requests a place with this share may have when one more has come to `open` others.
fn bound(open: usize, share: usize, shares: usize) -> usize {
    FEW.max(((open + 1) * share * PERCENT).div_ceil(shares.max(1) * 100))
}

const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

/// The hash of all that was before, and of this text.
fn absorb(hash: u64, text: &[u8]) -> u64 {
    let (words, rest) = text.as_chunks::<8>();
    let hash = words.iter().fold(hash, |hash, word| folded(hash ^ u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    folded(folded(hash ^ u64::from_le_bytes(last)) ^ text.len() as u64 ^ SEED)
}

/// Both halves of a product. The constant that is added keeps a zero from staying one.
#[expect(clippy::cast_possible_truncation, reason = "the halves of a product")]
const fn folded(word: u64) -> u64 {
    let product = word.wrapping_add(SEED) as u128 * 0xA076_1D64_78BD_642F_u128;
    (product as u64) ^ ((product >> 64) as u64)
}

/// A number whose every bit depends on all of `word`'s; no two words have the same.
const fn stirred(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}
