//! What holds for every case in which the provider answered.

use bridge::Events;
use serde_json::Value;
use testkit::golden::{Case, Shows, UpstreamAnswer};
use testkit::{Schemas, grammar};

use crate::run::{streamed, whole};

pub(crate) fn check(case: &Case) {
    if case.status >= 400 {
        return;
    }
    let stream = whole(case, Events::sse()).out;
    published(&stream);
    streamed_and_not_streamed_are_the_same_object(case, &stream);
    where_the_network_cuts_the_bytes_does_not_matter(case, &stream);
}

/// The grammar and both schemas.
fn published(stream: &[u8]) {
    let stream = grammar::check(stream).unwrap_or_else(|problem| panic!("{problem}"));
    let Some(schemas) = Schemas::if_present() else { return };
    for (kind, event) in &stream.events {
        assert_eq!(schemas.event(event), Vec::<String>::new(), "{kind}");
    }
    assert_eq!(schemas.response(&stream.response), Vec::<String>::new());
}

fn streamed_and_not_streamed_are_the_same_object(case: &Case, stream: &[u8]) {
    let object: Value = serde_json::from_slice(&whole(case, Events::silent()).out).unwrap();
    assert_eq!(object, grammar::check(stream).unwrap().response);
}

fn where_the_network_cuts_the_bytes_does_not_matter(case: &Case, expected: &[u8]) {
    let UpstreamAnswer::Sse(bytes) = &case.upstream else { return };
    // Pages that show bytes hold what streams can be like; the others repeat that with other words.
    let cuts = if case.shows == Shows::Bytes { bytes.len() } else { 0 };
    for at in 0..=cuts {
        let (left, right) = bytes.split_at(at);
        assert!(streamed(case, Events::sse(), &[left, right]).out == expected, "cut at {at}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert!(streamed(case, Events::sse(), &single).out == expected, "byte by byte");
}
