//! What migrations of both databases have in common.

use aws_lc_rs::digest;

/// By which a step that was applied is known again. It reads the text as it is: also a comment is never changed once
/// released.
pub(crate) fn checksum(step: &str) -> Vec<u8> {
    digest::digest(&digest::SHA256, step.as_bytes()).as_ref().to_vec()
}
