//! An answer in chunks, without a golden.

use bridge::{AnswerContext, End, Events, Reader, ResponseWriter, Setup};
use wire::id::Ids;
use wire::responses::Tail;

use crate::turn::Turn;

/// What an answer in these chunks becomes.
pub(crate) fn read<T: AsRef<[u8]>>(
    context: AnswerContext,
    echo: Tail,
    setup: Setup,
    chunks: &[T],
    out: Events,
) -> Vec<u8> {
    let response = ResponseWriter::new(Ids::new([7; 24]), 0, echo, true);
    let mut turn = Turn::new(Reader::new(context, setup), response, out);
    for chunk in chunks {
        let _ = turn.chunk(chunk.as_ref());
    }
    turn.end(End::Done).0
}
