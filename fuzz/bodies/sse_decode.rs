//! Any bytes, cut anywhere, decode to the same events.

use wire::sse::Decoder;

/// The first byte chooses where the bytes after it are cut.
pub(super) fn run(data: &[u8]) {
    let Some((&size, bytes)) = data.split_first() else { return };
    let whole = decode(&[bytes]);
    let pieces: Vec<&[u8]> = bytes.chunks(usize::from(size).max(1)).collect();
    assert_eq!(decode(&pieces), whole);
}

/// The data of every event; `None` where the decoder gave up.
fn decode(pieces: &[&[u8]]) -> Vec<Option<Vec<u8>>> {
    let mut decoder = Decoder::new(1 << 12);
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next_event() {
                Ok(Some(event)) => events.push(Some(event.data.to_vec())),
                Ok(None) => break,
                Err(_) => {
                    events.push(None);
                    return events;
                }
            }
        }
    }
    events.extend(decoder.rest().map(|event| Some(event.data.to_vec())));
    events
}
