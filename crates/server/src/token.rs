//! `admin.token`: what an operator shows. Known by its hash only.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use http::{HeaderMap, header};

use crate::config::Secret;

/// SHA-256 of a token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenHash([u8; 32]);

impl TokenHash {
    pub(crate) fn of(token: &Secret) -> Self {
        Self(hash(token.expose().as_bytes()))
    }

    /// Whether a request shows it. Both are hashed, so that the time it takes tells nothing of either.
    pub(crate) fn is_shown_in(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return false };
        let bearer = value.as_bytes().split_at_checked("bearer ".len());
        let shown = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer ")).map(|(_, shown)| hash(shown));
        shown.is_some_and(|shown| verify_slices_are_equal(&shown, &self.0).is_ok())
    }
}

/// Whether two texts are the same, told in a time that says nothing of either.
pub(crate) fn are_same(one: &str, other: &str) -> bool {
    verify_slices_are_equal(&hash(one.as_bytes()), &hash(other.as_bytes())).is_ok()
}

fn hash(bytes: &[u8]) -> [u8; 32] {
    digest(&SHA256, bytes).as_ref().first_chunk().copied().unwrap_or_default()
}
