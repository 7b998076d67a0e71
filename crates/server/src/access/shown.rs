//! What the last request of a connection has shown, with its hash: nearly every connection shows the same again and again,
//! and many processors take long for a hash. Only the hash is remembered, never what it stands for: whether it is good is
//! looked up each time.

use std::sync::{Mutex, PoisonError};

use aws_lc_rs::constant_time::verify_slices_are_equal;

use super::key;
use crate::config::Secret;

/// Longer ones are hashed each time: a connection that idles holds no more than this.
const LONGEST: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Shown(Mutex<Option<(Secret, [u8; 32])>>);

impl Shown {
    pub(super) fn hash(&self, sent: &[u8]) -> [u8; 32] {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A proxy may send requests of several clients here: none of them learns anything of another's key.
        if let Some((shown, hash)) = &*last
            && verify_slices_are_equal(shown.expose().as_bytes(), sent).is_ok()
        {
            return *hash;
        }
        let hash = key::hash(sent);
        if let Some(text) = str::from_utf8(sent).ok().filter(|text| text.len() <= LONGEST) {
            *last = Some((Secret::new(text.to_owned()), hash));
        }
        hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_always_that_of_what_was_sent() {
        let shown = Shown::default();
        let long = [b'a'; LONGEST + 1];
        let sent: [&[u8]; 9] =
            [b"key-1", b"key-1", b"key-2", b"key-", b"key-2", &long, b"key-2", b"\xff\xfe", b"key-1"];
        for sent in sent {
            assert_eq!(shown.hash(sent), key::hash(sent), "{sent:?}");
        }
        assert!(!format!("{shown:?}").contains("key-1"), "{shown:?}");
    }
}
