//! A row as bytes, in the parts that a block takes over: numbers and ids as they are stored, and texts, for which the block has
//! places. Made where a request ends, so that whoever writes copies them.

use super::TraceRow;
use super::coding::{Taker, put, put_bytes, put_maybe, put_signed};

/// What is longer is cut. Names come from clients, too.
const LONGEST: usize = 512;

/// The texts of a row that repeat, in their order.
pub(super) const TEXTS: usize = 10;

#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<'p> {
    pub(super) is_error: bool,
    pub(super) began_at: i64,
    pub(super) took: i64,
    pub(super) numbers: &'p [u8],
    pub(super) texts: &'p [u8],
    pub(super) ids: &'p [u8],
}

impl<'p> Parts<'p> {
    pub(super) fn of(numbers: &'p [u8], texts: &'p [u8], ids: &'p [u8]) -> Option<Self> {
        let mut taker = Taker(numbers);
        let is_error = taker.number()? == 1;
        Some(Self { is_error, began_at: taker.signed()?, took: taker.signed()?, numbers, texts, ids })
    }

    /// The texts, each as long as it may be; None where the row has none.
    pub(super) fn texts(&self) -> impl Iterator<Item = Option<&'p str>> {
        let mut taker = Taker(self.texts);
        std::iter::from_fn(move || match taker.maybe()? {
            Some(length) => taker.take(length).and_then(|text| str::from_utf8(text).ok()).map(Some),
            None => Some(None),
        })
    }

    /// The ids: of the request, the response, the response before, the conversation. What is missing is empty.
    pub(super) fn ids(&self) -> impl Iterator<Item = &'p [u8]> {
        let mut taker = Taker(self.ids);
        std::iter::from_fn(move || taker.bytes())
    }
}

/// What a block has of a row before its texts. It begins with what [`Parts::of`] reads.
pub(super) fn put_numbers(bytes: &mut Vec<u8>, row: &TraceRow<'_>) {
    put(bytes, u64::from(row.is_error()));
    put_signed(bytes, row.began_at);
    put_signed(bytes, row.took_micros);
    for micros in [row.first_token_micros, row.upstream_micros] {
        put_maybe(bytes, micros.map(|micros| micros.max(0).cast_unsigned()));
    }
    let used = [row.input_tokens, row.cached_tokens, row.output_tokens, row.reasoning_tokens, row.nanodollars];
    for number in used.into_iter().chain([row.status.map(u64::from)]) {
        put_maybe(bytes, number);
    }
    put(bytes, u64::from(row.attempts));
    put(bytes, u64::from(row.rounds));
}

pub(super) fn put_texts(bytes: &mut Vec<u8>, row: &TraceRow<'_>) {
    let texts: [Option<&str>; TEXTS] = [
        Some(&row.tenant),
        row.key.as_deref(),
        Some(&row.kind),
        Some(&row.client),
        row.model.as_deref(),
        row.provider.as_deref(),
        row.upstream_model.as_deref(),
        Some(&row.outcome),
        row.error.as_deref(),
        Some(&row.notes),
    ];
    for text in texts {
        let text = text.map(short);
        put_maybe(bytes, text.map(|text| text.len() as u64));
        bytes.extend_from_slice(text.unwrap_or_default().as_bytes());
    }
}

pub(super) fn put_ids(bytes: &mut Vec<u8>, row: &TraceRow<'_>) {
    let ids = [
        Some(&*row.request_id),
        row.response_id.as_deref(),
        row.previous_response_id.as_deref(),
        row.conversation_id.as_deref(),
    ];
    for id in ids {
        put_bytes(bytes, short(id.unwrap_or_default()).as_bytes());
    }
}

/// As much of a text as is kept.
#[inline]
pub(super) fn short(text: &str) -> &str {
    if text.len() <= LONGEST { text } else { text.get(..text.floor_char_boundary(LONGEST)).unwrap_or(text) }
}
