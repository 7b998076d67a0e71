//! Names for the provider: letters, digits, `_` and `-`, of bounded length. A name that fits stays as it is;
//! any other keeps a readable beginning and gets a hash of the whole, the same in every request.

use std::borrow::Cow;
use std::fmt::Write;

/// The length of `_` and the hash.
const TAIL: usize = 9;

/// The name under which the provider knows `name`.
pub(in crate::plan) fn encode(name: &str, limit: usize) -> Cow<'_, str> {
    let fits = !name.is_empty() && name.len() <= limit && name.bytes().all(allowed);
    if fits { Cow::Borrowed(name) } else { Cow::Owned(hashed(name, name, limit)) }
}

/// A readable beginning of `name`, and the hash of `identity`.
pub(super) fn hashed(name: &str, identity: &str, limit: usize) -> String {
    let readable = name.chars().map(|c| if c.is_ascii() && allowed(c as u8) { c } else { '_' });
    let mut text: String = readable.take(limit.saturating_sub(TAIL)).collect();
    if text.is_empty() {
        text.push_str("tool");
    }
    let hash = fnv(identity.as_bytes());
    let _ = write!(text, "_{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff));
    text
}

const fn allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// FNV-1a: no secret is at stake, only that the same name gives the same hash for ever.
pub(in crate::plan) fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_differ() {
        for (name, expected) in [
            ("exec_command", "exec_command"),
            ("a-b_C9", "a-b_C9"),
            ("files.read", "files_read_48e4db6a"),
            ("files/read", "files_read_0b7f7049"),
            ("", "tool_80a7a381"),
            ("é", "__4ea7dbe5"),
        ] {
            let encoded = encode(name, 64);
            assert!(encoded.len() <= 64 && encoded.bytes().all(allowed), "{encoded}");
            if name.bytes().all(allowed) && !name.is_empty() {
                assert_eq!(encoded, expected);
            } else {
                assert_eq!(encoded.rsplit_once('_').unwrap().0, expected.rsplit_once('_').unwrap().0, "{name}");
            }
        }
        assert_ne!(encode("files.read", 64), encode("files/read", 64));
        let (long, longer) = ("x".repeat(65), "x".repeat(66));
        assert_eq!(encode(&long, 64).len(), 64);
        assert_ne!(encode(&long, 64), encode(&longer, 64));
        assert_eq!(encode(&long[..64], 64), long[..64]);
    }
}
