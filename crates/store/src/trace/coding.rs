//! Numbers and texts as bytes: seven bits of a number in each byte, lengths before texts. What is damaged is `None`.

/// Appends a number.
#[inline]
pub(super) fn put(into: &mut Vec<u8>, number: u64) {
    // Most are short: to look for room once for each byte costs more than the byte.
    match number {
        0..0x80 => into.push(low(number)),
        0x80..0x4000 => into.extend_from_slice(&[low(number) | MORE, low(number >> 7)]),
        _ => put_long(into, number),
    }
}

/// In a byte that is not the last of its number.
const MORE: u8 = 0x80;

fn put_long(into: &mut Vec<u8>, number: u64) {
    let rest = number >> 21;
    let more = if rest == 0 { 0 } else { MORE };
    into.extend_from_slice(&[low(number) | MORE, low(number >> 7) | MORE, low(number >> 14) & !MORE | more]);
    if rest > 0 {
        put(into, rest);
    }
}

/// The bytes of the longest number.
pub(super) const LONGEST: usize = 10;

/// Numbers that are put together in a place of their own, which has room for all of them: to look for room before each would
/// cost more than the number.
#[derive(Debug)]
pub(super) struct Numbers<const ROOM: usize> {
    bytes: [u8; ROOM],
    length: usize,
}

impl<const ROOM: usize> Numbers<ROOM> {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; ROOM], length: 0 }
    }

    /// As [`put`].
    #[inline]
    pub(super) fn put(&mut self, number: u64) {
        let mut left = number;
        while left > 0x7f {
            self.byte(low(left) | MORE);
            left >>= 7;
        }
        self.byte(low(left));
    }

    /// As [`put_maybe`].
    #[inline]
    pub(super) fn maybe(&mut self, number: Option<u64>) {
        self.put(number.map_or(0, |number| number.saturating_add(1)));
    }

    /// As [`put_signed`].
    #[inline]
    pub(super) fn signed(&mut self, number: i64) {
        self.put(unsigned(number));
    }

    #[inline]
    pub(super) fn byte(&mut self, byte: u8) {
        debug_assert!(self.length < ROOM, "there is room for all numbers");
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// How many bytes [`put`] appends.
pub(super) const fn length(number: u64) -> usize {
    (70 - (number | 1).leading_zeros() as usize) / 7
}

const fn low(number: u64) -> u8 {
    let [low, ..] = number.to_le_bytes();
    low
}

/// Appends a number that may be negative: small ones of both signs are short.
#[cfg(test)]
fn put_signed(into: &mut Vec<u8>, number: i64) {
    put(into, unsigned(number));
}

const fn unsigned(number: i64) -> u64 {
    (number.cast_unsigned() << 1) ^ (number >> 63).cast_unsigned()
}

/// Appends a number that may be missing. The largest one of all becomes the one before it.
pub(super) fn put_maybe(into: &mut Vec<u8>, number: Option<u64>) {
    put(into, number.map_or(0, |number| number.saturating_add(1)));
}

pub(super) fn put_bytes(into: &mut Vec<u8>, bytes: &[u8]) {
    put(into, bytes.len() as u64);
    into.extend_from_slice(bytes);
}

/// Takes apart what was put together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taker<'b>(pub(super) &'b [u8]);

impl<'b> Taker<'b> {
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub(super) const fn byte(&mut self) -> Option<u8> {
        let Some((first, rest)) = self.0.split_first() else { return None };
        self.0 = rest;
        Some(*first)
    }

    #[inline]
    pub(super) fn number(&mut self) -> Option<u64> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        if first < 0x80 {
            return Some(u64::from(first));
        }
        let mut number = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    #[inline]
    pub(super) fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1).cast_signed() ^ -((number & 1).cast_signed()))
    }

    /// The outer `None` is damage.
    #[inline]
    #[expect(clippy::option_option, reason = "one says that it is damaged, the other that there is none")]
    pub(super) fn maybe(&mut self) -> Option<Option<u64>> {
        Some(self.number()?.checked_sub(1))
    }

    #[inline]
    pub(super) fn bytes(&mut self) -> Option<&'b [u8]> {
        let length = self.number()?;
        self.take(length)
    }

    #[inline]
    pub(super) fn take(&mut self, length: u64) -> Option<&'b [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }

    #[inline]
    pub(super) fn text(&mut self) -> Option<&'b str> {
        str::from_utf8(self.bytes()?).ok()
    }
}

/// By which a text is looked for, always the same: it is stored. Two texts may have the same one, and whoever finds it looks
/// again. The kind keeps a model from being taken for a tenant of that name.
pub(super) fn fingerprint(kind: u8, text: impl AsRef<[u8]>) -> u32 {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let text = text.as_ref();
    let (words, rest) = text.as_chunks::<8>();
    let mut hash = (u64::from(kind) | (text.len() as u64) << 8).wrapping_mul(MIX);
    let mut last = [0; 8];
    if let Some(place) = last.get_mut(..rest.len()) {
        place.copy_from_slice(rest);
    }
    for word in words.iter().chain([&last]) {
        hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(MIX);
        hash ^= hash >> 29;
    }
    let [.., a, b, c, d] = hash.wrapping_mul(MIX).to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// Whether a list of fingerprints has this one.
pub(super) fn has(list: &[u8], fingerprint: u32) -> bool {
    let (chunks, _) = list.as_chunks::<4>();
    // Without an early end, many are compared at once.
    chunks
        .chunks(256)
        .any(|chunks| chunks.iter().fold(false, |found, chunk| found | (u32::from_le_bytes(*chunk) == fingerprint)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_come_back() {
        let mut bytes = Vec::new();
        let mut numbers = vec![0, 1, 300, u64::MAX];
        numbers.extend((1..10).flat_map(|group| [(1 << (group * 7)) - 1, 1 << (group * 7)]));
        let signed = [0, -1, 1, i64::MIN, i64::MAX, 1_700_000_000_000_000];
        let maybe = [None, Some(0), Some(9), Some(u64::MAX - 1)];
        for number in &numbers {
            let before = bytes.len();
            put(&mut bytes, *number);
            assert_eq!(bytes.len() - before, length(*number), "{number}");
        }
        for number in signed {
            put_signed(&mut bytes, number);
        }
        for number in maybe {
            put_maybe(&mut bytes, number);
        }
        // The same, in a place of their own.
        let mut own = Numbers::<{ 40 * LONGEST }>::new();
        for number in &numbers {
            own.put(*number);
        }
        for number in signed {
            own.signed(number);
        }
        for number in maybe {
            own.maybe(number);
        }
        assert_eq!(own.bytes(), bytes);
        put_bytes(&mut bytes, "größe".as_bytes());
        let mut taker = Taker(&bytes);
        assert!(numbers.iter().all(|number| taker.number() == Some(*number)));
        assert_eq!(signed.map(|_| taker.signed().unwrap()), signed);
        assert_eq!(maybe.map(|_| taker.maybe().unwrap()), maybe);
        assert_eq!(taker.text(), Some("größe"));
        assert!(taker.is_empty() && taker.number().is_none());
        for damaged in [&[0x80][..], &[0xff; 11], &[5, b'a'], &[1, 0xff]] {
            assert!(Taker(damaged).number().is_none() || Taker(damaged).text().is_none(), "{damaged:?}");
        }
    }

    #[test]
    fn fingerprints_stay_as_they_are_and_are_found() {
        // What is stored is found by later versions.
        for (kind, text, expected) in
            [(b'i', "resp_1", 0x00a1_6291), (b'i', "resp_0123456789abcdef", 0x1e58_bfd2), (b't', "", 0x9e7b_8259)]
        {
            assert_eq!(fingerprint(kind, text), expected, "{text}");
        }
        let list: Vec<u8> = (0..1000_u32).flat_map(|number| (number * 7).to_le_bytes()).collect();
        for (wanted, expected) in [(0, true), (7, true), (8, false), (6993, true), (7000, false)] {
            assert_eq!(has(&list, wanted), expected, "{wanted}");
        }
        assert!(!has(&[], 0) && !has(&[0, 0, 0], 0));
    }
}
