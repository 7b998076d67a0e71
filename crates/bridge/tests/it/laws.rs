//! Laws over generated answers, sane and insane: any chunks give a lawful stream whose end is the fold of its
//! events, the same object without a stream, and the same bytes however the network cuts them.
//!
//! 100,000 answers, a million with `GODEX_FULL=1`. The generator is our own and counts: a failure names its
//! number, and the chunks that are needed for it.

mod answers;

use bridge::{End, Events};
use wire::sse::Decoder;

use crate::run::{OTHER_FORMS, Run};
pub(crate) use answers::{Answer, Chance, answer};

fn count() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a test's own switch")]
    let full = std::env::var("GODEX_FULL").is_ok_and(|value| value == "1");
    if full { 1_000_000 } else { 100_000 }
}

/// Runs a law over all numbers on all cores.
pub(crate) fn for_all(count: u64, law: impl Fn(u64) -> Result<(), String> + Sync) {
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let law = &law;
    let problem = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads as u64)
            .map(|first| scope.spawn(move || (first..count).step_by(threads).find_map(|n| law(n).err())))
            .collect();
        handles.into_iter().find_map(|handle| handle.join().unwrap())
    });
    assert!(problem.is_none(), "{}", problem.unwrap_or_default());
}

/// The same of generated answers: each gives a lawful stream, for any client.
pub(crate) fn all_are_lawful(count: u64, answer: impl Fn(u64) -> Answer + Sync) {
    for_all(count, |number| {
        let mut answer = answer(number);
        if number % 3 == 0 {
            answer.run.forms = OTHER_FORMS;
        }
        answer.run.run(&answer.chunks, answer.end.clone()).map(drop).map_err(|_| {
            let chunks = shrunk(&answer);
            let problem = answer.run.run(&chunks, answer.end.clone()).err().unwrap_or_default();
            format!("answer {number}: {problem}\n{}\n{:?}", chunks.join("\n"), answer.end)
        })
    });
}

/// The fewest chunks that still break the law.
fn shrunk(answer: &Answer) -> Vec<String> {
    let mut chunks = answer.chunks.clone();
    let mut at = 0;
    while at < chunks.len() {
        let mut fewer = chunks.clone();
        fewer.remove(at);
        if answer.run.run(&fewer, answer.end.clone()).is_err() {
            chunks = fewer;
        } else {
            at += 1;
        }
    }
    chunks
}

/// However the bytes are cut, they give the same answer. `framed`: an answer's bytes.
pub(crate) fn no_split_matters(
    count: u64,
    answer: impl Fn(u64) -> Answer + Sync,
    framed: impl Fn(&Answer) -> String + Sync,
) {
    for_all(count, |number| {
        let answer = answer(number);
        let framed = framed(&answer);
        let whole = bytes(&answer.run, &[framed.as_bytes()]);
        let size = 1 + usize::try_from(number % 23).unwrap();
        let pieces: Vec<&[u8]> = framed.as_bytes().chunks(size).collect();
        if bytes(&answer.run, &pieces) == whole { Ok(()) } else { Err(format!("answer {number} by {size}:\n{framed}")) }
    });
}

/// SSE bytes in pieces through decoder and reader.
fn bytes(run: &Run, pieces: &[&[u8]]) -> Vec<u8> {
    let mut decoder = Decoder::new(1 << 20);
    let mut turn = run.start(Events::sse());
    let mut end = End::Eof;
    'read: for piece in pieces {
        decoder.push(piece);
        while let Some(event) = decoder.next_event().unwrap() {
            if turn.chunk(event.data) == bridge::Flow::Over {
                end = End::Done;
                break 'read;
            }
        }
    }
    turn.end(end);
    turn.terminal();
    turn.out.take()
}

/// The laws are worth what the answers reach: each of these words is the status of some of them, the kind of an item, or
/// a note.
pub(crate) fn all_are_reached(count: u64, answer: impl Fn(u64) -> Answer, words: &[&str]) {
    let mut seen = std::collections::BTreeMap::<String, u32>::new();
    for number in 0..count {
        let answer = answer(number);
        let ran = answer.run.run(&answer.chunks, answer.end).unwrap();
        let response = &ran.stream.response;
        let items = response["output"].as_array().unwrap().iter().map(|item| &item["type"]);
        let words = items.chain([&response["status"]]).filter_map(|word| word.as_str());
        for word in words.chain(ran.notes.iter().map(|note| &*note.message)) {
            *seen.entry(word.to_owned()).or_default() += 1;
        }
    }
    for word in words {
        assert!(seen.get(*word).is_some_and(|count| *count >= 3), "{word}: {seen:#?}");
    }
}

#[test]
fn any_chunks_give_a_lawful_stream() {
    all_are_lawful(count(), answer);
}

#[test]
fn any_split_of_the_bytes_gives_the_same_answer() {
    no_split_matters(count() / 10, answer, |answer| format!("data: {}\n\n", answer.chunks.join("\n\ndata: ")));
}

/// Every status, every kind of item, and most notes.
#[test]
fn the_answers_reach_everything() {
    let words = [
        "completed",
        "incomplete",
        "failed",
        "message",
        "reasoning",
        "function_call",
        "custom_tool_call",
        "shell_call",
        "local_shell_call",
        "apply_patch_call",
        "tool_search_call",
        "a call without a name was left out",
        "arguments of two calls in one were taken apart",
        "arguments that came twice were taken once",
        "what came for a call after its end was left out",
        "more of the answer came after it",
        "the code fence around the answer was taken off",
    ];
    all_are_reached(4000, answer, &words);
}
