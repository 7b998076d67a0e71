//! JSON that a plan writes itself.

/// What `write` writes, as text. Everything that writes JSON here copies or escapes text, so it is always UTF-8; were
/// it not, an empty text would be refused, and half of one might be taken.
pub(super) fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap_or_default()
}
