//! A row as bytes, in the parts that a block takes over: numbers and ids as they are stored, and texts, for which the block has
//! places. Made where a request ends, so that whoever writes copies them.

use super::block::OF_ID;
use super::coding::{LONGEST as LONGEST_NUMBER, Numbers, Taker, fingerprint, put, put_bytes};
use super::{TraceRow, response_id};

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
    /// The fingerprints of the ids that are its own.
    pub(super) prints: OwnPrints,
}

/// The fingerprints of a request's id and its response's, whether it has one or not.
pub(super) type OwnPrints = [u32; 2];

/// The ids of a row that tell which others it goes with, and whether it has one of a response.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links<'p> {
    pub(super) has_response: bool,
    pub(super) previous: &'p [u8],
    pub(super) conversation: &'p [u8],
}

impl<'p> Parts<'p> {
    /// The texts, each as long as it may be; None where the row has none.
    pub(super) fn texts(&self) -> impl Iterator<Item = Option<&'p str>> {
        let mut taker = Taker(self.texts);
        std::iter::from_fn(move || match taker.maybe()? {
            Some(length) => taker.take(length).and_then(|text| str::from_utf8(text).ok()).map(Some),
            None => Some(None),
        })
    }

    pub(super) fn links(&self) -> Option<Links<'p>> {
        let mut taker = Taker(self.ids);
        taker.bytes()?;
        let has_response = !taker.bytes()?.is_empty();
        Some(Links { has_response, previous: taker.bytes()?, conversation: taker.bytes()? })
    }
}

/// What a block has of a row before its texts. It begins with whether it is an error.
pub(super) fn put_numbers(bytes: &mut Vec<u8>, row: &TraceRow<'_>) {
    let mut numbers = Numbers::<{ 13 * LONGEST_NUMBER }>::new();
    numbers.put(u64::from(row.is_error()));
    numbers.signed(row.began_at);
    numbers.signed(row.took_micros);
    numbers.maybe(row.first_token_micros.map(|micros| micros.max(0).cast_unsigned()));
    numbers.maybe(row.upstream_micros.map(|micros| micros.max(0).cast_unsigned()));
    numbers.maybe(row.input_tokens);
    numbers.maybe(row.cached_tokens);
    numbers.maybe(row.output_tokens);
    numbers.maybe(row.reasoning_tokens);
    numbers.maybe(row.nanodollars);
    numbers.maybe(row.status.map(u64::from));
    numbers.put(u64::from(row.attempts));
    numbers.put(u64::from(row.rounds));
    bytes.extend_from_slice(numbers.bytes());
}

pub(super) fn put_texts(bytes: &mut Vec<u8>, row: &TraceRow<'_>) {
    put_text(bytes, Some(&row.tenant));
    put_text(bytes, row.key.as_deref());
    put_text(bytes, Some(&row.kind));
    put_text(bytes, Some(&row.client));
    put_text(bytes, row.model.as_deref());
    put_text(bytes, row.provider.as_deref());
    put_text(bytes, row.upstream_model.as_deref());
    put_text(bytes, Some(&row.outcome));
    put_text(bytes, row.error.as_deref());
    put_text(bytes, Some(&row.notes));
}

#[inline]
fn put_text(bytes: &mut Vec<u8>, text: Option<&str>) {
    match text.map(short) {
        Some(text) => {
            put(bytes, text.len() as u64 + 1);
            bytes.extend_from_slice(text.as_bytes());
        }
        None => bytes.push(0),
    }
}

/// The ids of the request, the response, the response before, the conversation. What is missing is empty.
pub(super) fn put_ids(bytes: &mut Vec<u8>, row: &TraceRow<'_>) -> OwnPrints {
    let [request, response, previous, conversation] = [
        Some(&*row.request_id),
        row.response_id.as_deref(),
        row.previous_response_id.as_deref(),
        row.conversation_id.as_deref(),
    ]
    .map(|id| short(id.unwrap_or_default()));
    put_bytes(bytes, request.as_bytes());
    response_id::put_short(bytes, request, response);
    put_bytes(bytes, previous.as_bytes());
    put_bytes(bytes, conversation.as_bytes());
    [request, response].map(|id| fingerprint(OF_ID, id))
}

/// As much of a text as is kept.
#[inline]
pub(super) fn short(text: &str) -> &str {
    if text.len() <= LONGEST { text } else { text.get(..text.floor_char_boundary(LONGEST)).unwrap_or(text) }
}
