//! Every case against its expected files, and the laws that hold for all of them.

use bridge::{Framing, Note};
use serde_json::Value;
use testkit::golden::{self, Case, Output, Upstream};
use testkit::{Schemas, grammar};

use crate::pretty::pretty;
use crate::run::{streamed, whole};

#[test]
fn goldens() {
    let outcome = golden::run(|case| {
        let ran = whole(case, Framing::Sse);
        let notes: Vec<String> = ran.notes.iter().map(|note: &Note| format!("{note}: {}\n", note.message)).collect();
        Ok(Output {
            response_sse: Some(ran.out),
            response_json: Some(pretty(&whole(case, Framing::Silent).out)),
            notes: (!notes.is_empty()).then(|| notes.concat().into_bytes()),
        })
    });
    outcome.unwrap();
}

fn cases() -> Vec<Case> {
    let cases = golden::cases(&testkit::root().join("tests/golden")).unwrap();
    assert!(cases.len() >= 20, "{} cases", cases.len());
    cases
}

fn label(case: &Case) -> String {
    format!("{}/{}", case.provider, case.name)
}

#[test]
fn every_stream_keeps_the_grammar_and_both_schemas() {
    let schemas = Schemas::load();
    for case in cases() {
        let name = label(&case);
        let stream = grammar::check(&whole(&case, Framing::Sse).out).unwrap_or_else(|p| panic!("{name}: {p}"));
        let Some(schemas) = &schemas else { continue };
        for (kind, event) in &stream.events {
            assert_eq!(schemas.event(event), Vec::<String>::new(), "{name}: {kind}");
        }
        assert_eq!(schemas.response(&stream.response), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn streamed_and_not_streamed_are_the_same_object() {
    for case in cases() {
        let streamed = grammar::check(&whole(&case, Framing::Sse).out).unwrap().response;
        let object: Value = serde_json::from_slice(&whole(&case, Framing::Silent).out).unwrap();
        assert_eq!(object, streamed, "{}", label(&case));
    }
}

#[test]
fn where_the_network_cuts_the_bytes_does_not_matter() {
    for case in cases() {
        let Upstream::Sse(bytes) = &case.upstream else { continue };
        let expected = whole(&case, Framing::Sse).out;
        for at in 0..=bytes.len() {
            let (left, right) = bytes.split_at(at);
            assert!(streamed(&case, Framing::Sse, &[left, right]).out == expected, "{}: cut at {at}", label(&case));
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert!(streamed(&case, Framing::Sse, &single).out == expected, "{}: byte by byte", label(&case));
    }
}
