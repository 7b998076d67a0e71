//! Every case against its expected files, and the laws that hold for all of them.

use bridge::{Events, Note};
use serde_json::Value;
use testkit::golden::{self, Case, Output, Upstream};
use testkit::{Schemas, grammar};

use crate::gist;
use crate::pretty::pretty;
use crate::run::{plan, streamed, whole};

#[test]
fn goldens() {
    let outcome = golden::run(|case| {
        if case.is_page() {
            return Ok(Output { sections: gist::sections(case), ..Output::default() });
        }
        let ran = whole(case, Events::sse());
        let notes: Vec<String> = ran.notes.iter().map(|note: &Note| format!("{note}: {}\n", note.message)).collect();
        Ok(Output {
            chat_json: Some(pretty(&plan(case).body)),
            response_sse: Some(ran.out),
            response_json: Some(pretty(&whole(case, Events::silent()).out)),
            notes: (!notes.is_empty()).then(|| notes.concat().into_bytes()),
            ..Output::default()
        })
    });
    outcome.unwrap();
}

fn all() -> Vec<Case> {
    golden::cases(&testkit::root().join("tests/golden")).unwrap()
}

/// Those in which the provider answered.
fn cases() -> Vec<Case> {
    let cases: Vec<Case> = all().into_iter().filter(|case| case.status < 400).collect();
    assert!(cases.len() >= 100, "{} cases", cases.len());
    cases
}

/// Text, a stream, a call, reasoning, a schema and an error of every spec.
#[test]
fn every_spec_has_its_goldens() {
    let cases = all();
    let mut missing = Vec::new();
    for spec in providers::Library::BUILTIN.names() {
        for case in ["text", "stream", "tool-call", "reasoning", "structured", "error"] {
            if !cases.iter().any(|known| known.provider == spec && known.is_page() && known.name == case) {
                missing.push(format!("{spec}/{case}"));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

fn label(case: &Case) -> String {
    format!("{}/{}", case.provider, case.name)
}

#[test]
fn every_stream_keeps_the_grammar_and_both_schemas() {
    let schemas = Schemas::load();
    for case in cases() {
        let name = label(&case);
        let stream = grammar::check(&whole(&case, Events::sse()).out).unwrap_or_else(|p| panic!("{name}: {p}"));
        let Some(schemas) = &schemas else { continue };
        for (kind, event) in &stream.events {
            assert_eq!(schemas.event(&as_published(event)), Vec::<String>::new(), "{name}: {kind}");
        }
        assert_eq!(schemas.response(&as_published(&stream.response)), Vec::<String>::new(), "{name}");
    }
}

/// The codes that are sent in practice and clients act on, although the published list is without them.
fn as_published(object: &Value) -> Value {
    const LIVE: [&str; 2] = ["context_length_exceeded", "insufficient_quota"];
    let mut object = object.clone();
    for place in ["/error/code", "/response/error/code"] {
        if let Some(code) = object.pointer_mut(place)
            && LIVE.iter().any(|live| code == live)
        {
            *code = "server_error".into();
        }
    }
    object
}

#[test]
fn streamed_and_not_streamed_are_the_same_object() {
    for case in cases() {
        let streamed = grammar::check(&whole(&case, Events::sse()).out).unwrap().response;
        let object: Value = serde_json::from_slice(&whole(&case, Events::silent()).out).unwrap();
        assert_eq!(object, streamed, "{}", label(&case));
    }
}

#[test]
fn where_the_network_cuts_the_bytes_does_not_matter() {
    for case in cases() {
        let Upstream::Sse(bytes) = &case.upstream else { continue };
        let expected = whole(&case, Events::sse()).out;
        // The folders hold what streams can be like; the pages repeat that with other words.
        let cuts = if case.is_page() { 0 } else { bytes.len() };
        for at in 0..=cuts {
            let (left, right) = bytes.split_at(at);
            assert!(streamed(&case, Events::sse(), &[left, right]).out == expected, "{}: cut at {at}", label(&case));
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert!(streamed(&case, Events::sse(), &single).out == expected, "{}: byte by byte", label(&case));
    }
}
