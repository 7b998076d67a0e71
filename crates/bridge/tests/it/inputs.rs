//! Inputs of custom tools under a grammar: they stream while they fit, wait from the piece on that does not, and are
//! mended, rejected, or delivered with a note. The grammar here is a text that the input has to be.

use std::sync::Arc;

use bridge::{
    Action, End, Events, Flow, InputCheck, InputGrammar, InputReading, InputSoFar, InputSyntax, InputVerdict, Note,
    RejectedCall, RoundEnd, note_code,
};
use serde_json::{Value, json};

use crate::quirks::{done, text};
use crate::run::{Run, delta, object};

/// `WANTED`: nothing else fits. `WANTED!`: what does not fit becomes it. `?`: nobody knows.
#[derive(Debug)]
struct Literal;

#[derive(Debug, Clone)]
struct Read {
    wanted: String,
    read: String,
}

impl InputCheck for Literal {
    fn begin(&self, grammar: &InputGrammar) -> Box<dyn InputReading> {
        Box::new(Read { wanted: grammar.definition.clone(), read: String::new() })
    }
}

impl InputReading for Read {
    fn push(&mut self, text: &str) -> InputSoFar {
        self.read.push_str(text);
        let wanted = self.wanted.trim_end_matches('!');
        match &*self.wanted {
            "?" => InputSoFar::Unknown,
            _ if wanted.starts_with(&self.read) => InputSoFar::Fits,
            repairable if repairable.ends_with('!') => InputSoFar::Broken,
            _ => InputSoFar::Misfit,
        }
    }

    fn finish(&mut self, input: &str, sent: &str) -> InputVerdict {
        assert!(input.starts_with(sent));
        let wanted = self.wanted.trim_end_matches('!');
        match &*self.wanted {
            "?" => InputVerdict::Unknown("who knows".to_owned()),
            _ if wanted == input => InputVerdict::Fits,
            repairable if repairable.ends_with('!') && wanted.starts_with(sent) => {
                InputVerdict::Repaired { input: wanted.to_owned(), how: vec!["mended"] }
            }
            _ => InputVerdict::Misfit(format!("it is {input}")),
        }
    }

    fn copied(&self) -> Box<dyn InputReading> {
        Box::new(self.clone())
    }
}

fn run(definition: &str, asks_input_again: bool) -> Run {
    let mut run = Run::default();
    let provider_name = "ns__write".to_owned();
    let grammar = InputGrammar { provider_name, syntax: InputSyntax::Lark, definition: definition.to_owned() };
    run.context.grammars.push(grammar);
    run.setup.inputs = Some(Arc::new(Literal));
    run.setup.asks_input_again = asks_input_again;
    run
}

/// A call whose input comes in these pieces.
fn call(pieces: &[&str]) -> Vec<String> {
    let first = json!({"index": 0, "id": "c", "function": {"name": "ns__write", "arguments": "{\"input\":\""}});
    let escaped = |piece: &str| {
        let quoted = json!(piece).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    let piece = |piece: &&str| json!({"index": 0, "function": {"arguments": escaped(piece)}});
    let last = json!({"index": 0, "function": {"arguments": "\"}"}});
    let deltas = std::iter::once(first).chain(pieces.iter().map(piece)).chain([last]);
    deltas.map(|call| delta(&json!({"tool_calls": [call]}))).collect()
}

/// The deltas of the input, and the input of each item, as they leave.
fn shown(out: &Events) -> (Vec<String>, Vec<Value>) {
    let stream = testkit::grammar::check(out.bytes()).unwrap();
    let deltas = stream.events.iter().filter(|(kind, _)| kind == "response.custom_tool_call_input.delta");
    let deltas = deltas.map(|(_, event)| event["delta"].as_str().unwrap().to_owned()).collect();
    let output = stream.response["output"].as_array().unwrap();
    (
        deltas,
        output.iter().filter(|item| item["type"] == "custom_tool_call").map(|item| item["input"].clone()).collect(),
    )
}

#[test]
fn what_fits_streams_and_what_does_not_waits() {
    let misfit = |input: &str| format!("the input of write does not fit its grammar: it is {input}");
    for (definition, pieces, deltas, input, note) in [
        ("a\nbc", &["a\n", "b", "c"][..], &["a\n", "b", "c"][..], "a\nbc", None),
        ("abc!", &["ab"], &["ab", "c"], "abc", Some((note_code::REPAIRED, "write: mended".to_owned()))),
        ("abc!", &["a", "bx", "y"], &["a", "bc"], "abc", Some((note_code::REPAIRED, "write: mended".to_owned()))),
        ("é\"c!", &["é\"", "x"], &["é\"", "c"], "é\"c", Some((note_code::REPAIRED, "write: mended".to_owned()))),
        ("abc!", &["```", "abc"], &["abc"], "abc", Some((note_code::REPAIRED, "write: mended".to_owned()))),
        ("abc", &["a", "x", "y"], &["a", "x", "y"], "axy", Some((note_code::TOOL_INPUT, misfit("axy")))),
        ("abc", &["a", "b"], &["a", "b"], "ab", Some((note_code::TOOL_INPUT, misfit("ab")))),
        (
            "?",
            &["a", "b"],
            &["a", "b"],
            "ab",
            Some((note_code::TOOL_INPUT, "the input of write could not be checked: who knows".to_owned())),
        ),
    ] {
        let ran = run(definition, false);
        let chunks = done(call(pieces), "tool_calls");
        let (out, _, notes) = ran.play(Events::sse(), &chunks, End::Eof);
        let (found, inputs) = shown(&out);
        assert_eq!((found.concat(), inputs), (input.to_owned(), vec![json!(input)]), "{definition} {pieces:?}");
        assert_eq!(found, deltas, "{definition} {pieces:?}");
        let about: Vec<&Note> = notes.iter().filter(|note| note.path == "tool_calls").collect();
        let about: Vec<_> = about.iter().map(|note| (note.code, note.message.to_string())).collect();
        assert_eq!(about, note.into_iter().collect::<Vec<_>>(), "{definition} {pieces:?}");
        // And without a stream it is the same.
        ran.run(&chunks, End::Eof).unwrap();
    }
}

#[test]
fn what_was_cut_is_neither_judged_nor_mended() {
    let chunks = done(call(&["a", "x"])[..3].to_vec(), "length");
    let (out, object_bytes, notes) = run("abc!", true).play(Events::sse(), &chunks, End::Eof);
    assert_eq!(shown(&out).1, [json!("ax")]);
    assert_eq!(object(&object_bytes)["status"], "incomplete");
    assert!(
        notes.iter().all(|note| note.code != note_code::TOOL_INPUT && note.action != Action::Repaired),
        "{notes:?}"
    );
}

/// Arguments without an end: nothing is added to them, and what nobody has seen is shown as it came.
#[test]
fn what_broke_off_is_never_mended() {
    for (pieces, reason, input) in [
        (&["a", "b"][..], Some("tool_calls"), "ab"),
        (&["ab"], Some("stop"), "ab"),
        (&["x", "y"], Some("tool_calls"), r#"{"input":"xy"#),
        (&["x", "y"], Some("length"), r#"{"input":"xy"#),
        (&["a", "b"], None, "ab"),
    ] {
        let mut chunks = call(pieces);
        chunks.pop();
        let chunks = reason.map_or_else(|| chunks.clone(), |reason| done(chunks.clone(), reason));
        for asks_again in [false, true] {
            let ran = run("abc!", asks_again);
            let (out, bytes, notes) = ran.play(Events::sse(), &chunks, End::Eof);
            assert_eq!(shown(&out).1, [json!(input)], "{pieces:?} {reason:?}");
            let object = object(&bytes);
            assert_eq!(object["output"][0]["status"], "incomplete", "{pieces:?} {reason:?}");
            let status = if reason == Some("length") { "incomplete" } else { "failed" };
            assert_eq!(object["status"], status, "{pieces:?} {reason:?}");
            let said =
                notes.iter().any(|note| note.message == "the arguments of write broke off: its input is not whole");
            assert_eq!(said, matches!(reason, Some("tool_calls" | "stop")), "{pieces:?} {reason:?}");
            assert!(notes.iter().all(|note| note.message != "write: mended"), "{notes:?}");
        }
    }
}

/// An answer that does not say that it is whole may have been going to say more.
#[test]
fn without_a_reason_nothing_is_mended() {
    let (out, _, notes) = run("abc!", false).play(Events::sse(), &call(&["ab"]), End::Done);
    assert_eq!(shown(&out).1, [json!("ab")]);
    assert!(notes.iter().any(|note| note.message.contains("may not be whole")), "{notes:?}");
    assert!(notes.iter().all(|note| note.message != "write: mended"), "{notes:?}");
}

/// Arguments that are no text: what they were meant to be is checked like any other input.
#[test]
fn odd_arguments_are_checked() {
    for (definition, arguments, input) in [
        ("a\nb", r#"{"input":["a","b"]}"#, "a\nb"),
        ("abc!", r#"{"input":{"input":"ab"}}"#, "abc"),
        ("abc", "{}", "{}"),
    ] {
        let piece = json!({"index": 0, "id": "c", "function": {"name": "ns__write", "arguments": arguments}});
        let chunks = done(vec![delta(&json!({"tool_calls": [piece]}))], "tool_calls");
        let (out, _, notes) = run(definition, false).play(Events::sse(), &chunks, End::Eof);
        assert_eq!(shown(&out).1, [json!(input)], "{arguments}");
        let odd = "the arguments of write are not the text that it takes";
        assert!(notes.iter().any(|note| note.message == odd), "{arguments}: {notes:?}");
    }
}

/// How the answer ends, what was shown of its calls.
fn end(run: &Run, chunks: &[String], out: Events) -> (RoundEnd, usize) {
    let mut turn = run.start(out);
    let over = chunks.iter().any(|chunk| turn.chunk(chunk.as_bytes()) == Flow::Over);
    let end = turn.reader.end(if over { End::Done } else { End::Eof }, &mut turn.response, &mut turn.out);
    turn.response.finish(RoundEnd::Completed);
    let output = object(&turn.terminal())["output"].clone();
    let calls = output.as_array().unwrap().iter().filter(|item| item["type"] == "custom_tool_call").count();
    if !turn.out.is_empty() {
        testkit::grammar::check(turn.out.bytes()).unwrap();
    }
    (end, calls)
}

#[test]
fn the_only_call_is_rejected_while_nobody_has_seen_it() {
    let rejected = |input: &str| {
        let [call_id, name] = ["c", "write"].map(str::to_owned);
        let (namespace, problem) = (Some("ns".to_owned()), format!("it is {input}"));
        RoundEnd::Rejected(RejectedCall { call_id, name, namespace, input: input.to_owned(), problem })
    };
    let with = |mut chunks: Vec<String>, more: String| {
        chunks.push(more);
        chunks
    };
    let other = delta(&json!({"tool_calls": [{"index": 1, "id": "d", "function": {"name": "f", "arguments": "{}"}}]}));
    let completed = || RoundEnd::Completed;
    // The definition, the answer, its end when it is streamed and when it is not.
    for (definition, chunks, streamed, whole) in [
        ("abc", call(&["x", "y"]), rejected("xy"), rejected("xy")),
        ("abc", call(&["a", "x"]), completed(), rejected("ax")),
        ("abc", call(&["a", "b"]), completed(), rejected("ab")),
        ("abc", call(&["a", "bc"]), completed(), completed()),
        ("abc!", call(&["x"]), completed(), completed()),
        ("?", call(&["x"]), completed(), completed()),
        ("abc", with(call(&["x"]), other), completed(), completed()),
        ("abc", with(call(&["x"]), text("And so on.")), completed(), completed()),
        ("abc", [vec![text("I write.")], call(&["x"])].concat(), rejected("x"), rejected("x")),
    ] {
        let chunks = done(chunks, "tool_calls");
        for (out, expected) in [(Events::sse(), streamed), (Events::silent(), whole)] {
            let shown = usize::from(expected == RoundEnd::Completed);
            assert_eq!(end(&run(definition, true), &chunks, out), (expected, shown), "{definition} {chunks:?}");
        }
        // Who may not ask again shows what came.
        assert_eq!(end(&run(definition, false), &chunks, Events::sse()), (RoundEnd::Completed, 1));
    }
}

#[test]
fn a_rejected_call_can_be_shown_after_all() {
    let ran = run("abc", true);
    let mut turn = ran.start(Events::sse());
    for chunk in done(call(&["x\n"]), "tool_calls") {
        let _ = turn.chunk(chunk.as_bytes());
    }
    let RoundEnd::Rejected(call) = turn.reader.end(End::Eof, &mut turn.response, &mut turn.out) else { panic!() };
    turn.response.call(&call, &mut turn.out);
    turn.response.finish(RoundEnd::Completed);
    turn.terminal();
    assert_eq!(shown(&turn.out), (vec!["x\n".to_owned()], vec![json!("x\n")]));
}
