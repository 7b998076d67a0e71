//! The tokens of a tokenizer, found by their bytes.

/// Every token, in the order in which they are merged. It is looked up in a table of its own: one of the standard library
/// would take four times the memory, and each look into it a slower hash.
pub(crate) struct Vocabulary {
    /// Each token after its length.
    list: &'static [u8],
    slots: Vec<Slot>,
    longest: usize,
}

/// Where a token is in the list: those that are merged first come first.
pub(crate) type Rank = u32;

#[derive(Clone, Copy)]
struct Slot {
    /// Of the token's hash, what does not say where its slot is.
    tag: u32,
    rank: Rank,
}

const EMPTY: Slot = Slot { tag: 0, rank: Rank::MAX };

impl Vocabulary {
    pub(crate) fn new(list: &'static [u8]) -> Self {
        // Half of the slots stay empty, so that there is one not far from any place.
        let slots = vec![EMPTY; (2 * tokens(list).count()).next_power_of_two()];
        let longest = tokens(list).map(|(_, token)| token.len()).max().unwrap_or(0);
        let mut vocabulary = Self { list, slots, longest };
        for (rank, token) in tokens(list) {
            vocabulary.insert(rank, token);
        }
        vocabulary
    }

    fn insert(&mut self, rank: Rank, token: &[u8]) {
        let (tag, mut at) = self.place(token);
        while let Some(slot) = self.slots.get_mut(at) {
            if slot.rank == EMPTY.rank {
                *slot = Slot { tag, rank };
                return;
            }
            at = self.after(at);
        }
    }

    /// The rank of the token that has these bytes.
    pub(crate) fn rank(&self, bytes: &[u8]) -> Option<Rank> {
        if bytes.len() > self.longest {
            return None;
        }
        let (tag, mut at) = self.place(bytes);
        loop {
            let slot = self.slots.get(at).filter(|slot| slot.rank != EMPTY.rank)?;
            if slot.tag == tag && token(self.list, slot.rank) == Some(bytes) {
                return Some(slot.rank);
            }
            at = self.after(at);
        }
    }

    /// How many bytes the token of a rank has.
    pub(crate) fn length(&self, rank: Rank) -> usize {
        self.list.get(rank as usize).map_or(0, |length| usize::from(*length))
    }

    fn place(&self, bytes: &[u8]) -> (u32, usize) {
        let hash = hash(bytes);
        let at = hash & (self.slots.len() - 1) as u64;
        // Both fit; nothing is lost.
        (u32::try_from(hash >> 32).unwrap_or(u32::MAX), usize::try_from(at).unwrap_or(0))
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }
}

/// The tokens of a list, each with its rank.
fn tokens(list: &[u8]) -> impl Iterator<Item = (Rank, &[u8])> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let rank = next;
        let token = token(list, rank)?;
        next = rank + 1 + Rank::try_from(token.len()).ok()?;
        Some((rank, token))
    })
}

fn token(list: &[u8], rank: Rank) -> Option<&[u8]> {
    let (length, rest) = list.get(rank as usize..)?.split_first()?;
    rest.get(..usize::from(*length))
}

/// Of all bytes, eight at a time. Whoever sends text that collides gains nothing: only our tokens are in the table.
fn hash(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| (hash.rotate_left(26) ^ word).wrapping_mul(FACTOR);
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(bytes.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let last = rest.iter().fold(0, |word, byte| (word << 8) | u64::from(*byte));
    let hash = mix(hash, last);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_found_by_their_bytes_and_nothing_else_is() {
        let vocabulary = Vocabulary::new(b"\x01a\x01b\x02ab\x09abababab\xff\x00");
        for (bytes, rank) in [("a", Some(0)), ("b", Some(2)), ("ab", Some(4)), ("abababab\u{1}", None), ("ba", None)] {
            assert_eq!(vocabulary.rank(bytes.as_bytes()), rank, "{bytes:?}");
        }
        assert_eq!(vocabulary.rank(b"abababab\xff"), Some(7));
        assert_eq!(vocabulary.rank(b""), Some(17));
        assert_eq!(vocabulary.rank(&[b'a'; 1000]), None);
    }

    #[test]
    fn an_empty_list_and_a_torn_one_have_what_is_whole() {
        assert_eq!(Vocabulary::new(b"").rank(b"a"), None);
        assert_eq!(Vocabulary::new(b"\x01a\x05b").rank(b"a"), Some(0));
    }
}
