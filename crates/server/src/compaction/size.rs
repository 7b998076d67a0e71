//! How large things are to a model, and how much it takes: in tokens. What is planned is counted as well as it can be;
//! single items are weighed by their bytes, which is the same on every turn.

use wire::json::{Kind, Raw};

use crate::request::RequestContext;
use crate::upstream::Failover;

/// About how many bytes of JSON are a token.
const BYTES: usize = 4;

/// What an image or a file weighs, whatever its bytes are.
const MEDIA: usize = 1000 * BYTES;

/// How many tokens a body has for the target whose turn it is. Below `limit` an estimate will do.
pub(crate) fn body_tokens(context: &RequestContext, failover: &Failover, body: &[u8], limit: u64) -> u64 {
    let (tokens, provider, model) = (context.tokens(), &failover.provider().name, failover.model());
    let estimate = tokens.estimate(provider, model, body);
    if estimate < limit / 4 * 3 {
        return estimate;
    }
    tokens.count(provider, model, failover.dialect().tokenizer, body).tokens
}

/// About how many tokens a piece of JSON is.
pub(super) fn weight(raw: Raw<'_>) -> u64 {
    tokens(bytes(raw))
}

/// About how many tokens so many bytes are.
pub(super) const fn tokens(bytes: usize) -> u64 {
    (bytes / BYTES) as u64 + 1
}

/// About how many bytes so many tokens are.
pub(super) fn bytes_of(tokens: u64) -> usize {
    usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(BYTES)
}

/// The bytes of it that are words.
fn bytes(raw: Raw<'_>) -> usize {
    let text = raw.as_str();
    // Only what may hold media is worth a look.
    if !text.contains("base64,") && !text.contains("file_data") && !text.contains("\"data\"") {
        return text.len();
    }
    match raw.kind() {
        Kind::Object => raw.fields().map(|(key, value)| key.escaped().len() + 4 + member(key.escaped(), value)).sum(),
        Kind::Array => raw.elements().map(|value| bytes(value) + 1).sum(),
        _ => text.len(),
    }
}

fn member(key: &str, value: Raw<'_>) -> usize {
    if is_media(key, value) { MEDIA } else { bytes(value) }
}

/// Whether a member is the bytes of an image, a file, a recording.
pub(super) fn is_media(key: &str, value: Raw<'_>) -> bool {
    let long = value.kind() == Kind::String && value.as_str().len() > MEDIA;
    long && match key {
        "image_url" | "url" | "result" => value.as_str().starts_with("\"data:") || key == "result",
        "file_data" | "data" => true,
        _ => false,
    }
}
