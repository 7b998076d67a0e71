use proptest::prelude::*;

use super::*;

fn events(chunks: &[&[u8]]) -> Vec<(String, String)> {
    let mut decoder = Decoder::new(1 << 20);
    let mut out = Vec::new();
    for chunk in chunks {
        decoder.push(chunk);
        while let Some(event) = decoder.next_event().unwrap() {
            out.push((lossy(event.name), lossy(event.data)));
        }
    }
    out
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn events_as_the_specification_has_them() {
    for (input, expected) in [
        ("data: a\n\n", vec![("", "a")]),
        ("data:a\r\n\r\ndata: b\r\rdata:  c\n\n", vec![("", "a"), ("", "b"), ("", " c")]),
        ("event: x\ndata: a\ndata: b\n\n", vec![("x", "a\nb")]),
        (": comment\n\ndata: a\nid: 7\nretry: 5\n\n", vec![("", "a")]),
        ("\u{feff}data: a\n\n", vec![("", "a")]),
        ("event: only\n\ndata: a\n\n", vec![("", "a")]),
        ("data\n\n", vec![("", "")]),
        ("data: cut", vec![]),
        ("data: a\ndata\ndata: b\n\n", vec![("", "a\n\nb")]),
        // A field that the specification does not have, where it cannot be anything else.
        ("data: a\n\nerror: {\"x\":1}\n\nerror: words\n\n", vec![("", "a"), ("error", "{\"x\":1}")]),
    ] {
        let expected: Vec<_> = expected.into_iter().map(|(n, d)| (n.to_owned(), d.to_owned())).collect();
        assert_eq!(events(&[input.as_bytes()]), expected, "{input:?}");
        let bytes: Vec<&[u8]> = input.as_bytes().chunks(1).collect();
        assert_eq!(events(&bytes), expected, "byte by byte: {input:?}");
    }
}

#[test]
fn an_endless_line_ends() {
    let mut decoder = Decoder::new(1000);
    let mut failed = false;
    for _ in 0..100 {
        decoder.push(&[b'x'; 100]);
        failed |= decoder.next_event().is_err();
    }
    assert!(failed);
    let mut decoder = Decoder::new(1000);
    let mut failed = false;
    for _ in 0..100 {
        decoder.push(b"data: many lines of one event, none of them long\n");
        failed |= decoder.next_event().is_err();
    }
    assert!(failed);
}

#[test]
fn small_events_in_a_large_push_are_no_large_event() {
    let mut decoder = Decoder::new(100);
    decoder.push("data: small\n\n".repeat(1000).as_bytes());
    let mut count = 0;
    while decoder.next_event().unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 1000);
}

#[test]
fn the_unfinished_event_can_be_had_at_the_end() {
    for (input, expected) in
        [("data: a\n\ndata: b", Some("b")), ("data: a\n\ndata: b\n", Some("b")), ("data: a\n\n", None)]
    {
        let mut decoder = Decoder::new(100);
        decoder.push(input.as_bytes());
        assert_eq!(decoder.next_event().unwrap().map(|e| lossy(e.data)), Some("a".to_owned()));
        assert_eq!(decoder.next_event().unwrap(), None);
        assert_eq!(decoder.rest().map(|e| lossy(e.data)), expected.map(str::to_owned), "{input:?}");
    }
}

/// The independent decoder that ours must agree with.
fn oracle(bytes: &[u8]) -> Vec<(String, String)> {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};
    let mut stream = pin!(sse_stream::SseStream::from_bytes_stream(Once(Some(bytes.to_vec()))));
    let mut context = Context::from_waker(Waker::noop());
    let mut out = Vec::new();
    while let Poll::Ready(Some(Ok(event))) = futures_core::Stream::poll_next(stream.as_mut(), &mut context) {
        if let Some(data) = event.data {
            out.push((event.event.unwrap_or_default(), data));
        }
    }
    out
}

struct Once(Option<Vec<u8>>);

impl futures_core::Stream for Once {
    type Item = Result<bytes::Bytes, std::convert::Infallible>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Ready(self.0.take().map(|bytes| Ok(bytes.into())))
    }
}

fn stream_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("data: "),
        Just("data:"),
        Just("data"),
        Just("event: e"),
        Just("event:"),
        Just(": c"),
        Just("id: 1"),
        Just("\n"),
        Just("\n\n"),
        Just("\r\n"),
        Just("\r"),
        Just("x"),
        Just("é"),
        Just(" "),
        Just(":"),
        Just("{\"a\":1}"),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_split_gives_the_same_events(text in stream_text(), cuts in prop::collection::vec(0_usize..200, 0..8)) {
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
        prop_assert_eq!(events(&chunks), events(&[bytes]));
    }

    #[test]
    fn an_independent_decoder_agrees(text in stream_text()) {
        prop_assert_eq!(events(&[text.as_bytes()]), oracle(text.as_bytes()));
    }
}
