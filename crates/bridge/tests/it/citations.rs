//! Links to what the tools have shown become citations that point at exact characters, however the text is cut on its
//! way; nothing else does.

use std::sync::Arc;

use bridge::{End, OutputContract, Setup, Source, Sources};
use serde_json::{Value, json};

use crate::laws::{Chance, for_all};
use crate::quirks::{done, text};
use crate::run::{Ran, Run, delta};

fn citing(mut run: Run) -> Run {
    let mut sources = Sources::default();
    for (url, title) in [("https://a.b/c", "A \"title\""), ("https://a.b/x_(y)", "")] {
        sources.add(&Source { url: url.to_owned(), title: title.to_owned() });
    }
    run.setup = Setup { sources: Some(Arc::new(sources)), ..run.setup };
    run
}

fn parts(ran: &Ran) -> impl Iterator<Item = &Value> {
    let items = ran.stream.response["output"].as_array().unwrap().iter();
    items.filter(|item| item["type"] == "message").flat_map(|item| item["content"].as_array().unwrap())
}

/// What is cited: the characters that each annotation points at.
fn cited(ran: &Ran) -> Vec<String> {
    let of = |part: &Value| {
        let characters: Vec<char> = part["text"].as_str().unwrap_or_default().chars().collect();
        let at = |annotation: &Value, name: &str| usize::try_from(annotation[name].as_u64().unwrap()).unwrap();
        let annotations = part["annotations"].as_array().into_iter().flatten();
        let cited = annotations.map(|one| characters[at(one, "start_index")..at(one, "end_index")].iter().collect());
        cited.collect::<Vec<String>>()
    };
    parts(ran).flat_map(of).collect()
}

/// Each annotation comes directly after the delta whose last character is its own last one.
fn check_order(ran: &Ran) -> Result<(), String> {
    let (mut text, mut follows) = (String::new(), false);
    for (name, event) in &ran.stream.events {
        match name.as_str() {
            "response.content_part.added" => text.clear(),
            "response.output_text.delta" => {
                text.push_str(event["delta"].as_str().unwrap());
                follows = true;
                continue;
            }
            "response.output_text.annotation.added" => {
                if !follows || event["annotation"]["end_index"] != text.chars().count() {
                    return Err(format!("after {text:?}: {event}"));
                }
            }
            _ => {}
        }
        follows = false;
    }
    Ok(())
}

const TEXT: &str = "😀 See ([T](https://a.b/c?utm_source=openai)) and [é\u{301} [1]](https://a.b/c), not [U](https://u.v/). <https://a.b/c>, https://a.b/x_(y).";
const CITED: [&str; 4] =
    ["([T](https://a.b/c?utm_source=openai))", "[é\u{301} [1]](https://a.b/c)", "<https://a.b/c>", "https://a.b/x_(y)"];

fn native_text(pieces: &[&str]) -> Vec<String> {
    let mut events: Vec<Value> = pieces
        .iter()
        .map(|piece| json!({"type": "response.output_text.delta", "item_id": "m", "content_index": 0, "delta": piece}))
        .collect();
    let part = json!({"type": "output_text", "text": pieces.concat(), "annotations": []});
    let item = json!({"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]});
    events.push(json!({"type": "response.output_item.done", "item": item}));
    let usage = json!({"input_tokens": 1, "output_tokens": 2});
    events.push(
        json!({"type": "response.completed", "response": {"status": "completed", "output": [item], "usage": usage}}),
    );
    events.iter().map(Value::to_string).collect()
}

#[test]
fn citations_point_at_exact_characters_wherever_the_text_is_cut() {
    for cut in (0..=TEXT.len()).filter(|cut| TEXT.is_char_boundary(*cut)) {
        let (one, two) = TEXT.split_at(cut);
        for (run, chunks) in [
            (Run::default(), done(vec![text(one), text(two)], "stop")),
            (crate::native::native(), native_text(&[one, two])),
        ] {
            let ran = crate::native::check(&citing(run), &chunks, End::Eof);
            assert_eq!(ran.stream.text, TEXT);
            assert_eq!(cited(&ran), CITED, "cut at {cut}");
            check_order(&ran).unwrap();
            let part = parts(&ran).next().unwrap();
            let first = &part["annotations"][0];
            let expected = json!({"type": "url_citation", "start_index": 6, "end_index": 44,
                "url": "https://a.b/c?utm_source=openai", "title": "A \"title\""});
            assert_eq!((first, &part["annotations"][3]["title"]), (&expected, &json!("")));
        }
    }
}

/// The link leaves in one piece, and nothing waits that cannot become one.
#[test]
fn a_link_is_whole_in_one_delta() {
    let pieces = ["See ", "[", "T", "](https", "://a.b/c)", " a", "[0", "] ", "x", " (", "y"];
    let ran = crate::native::check(&citing(Run::default()), &done(pieces.map(text).to_vec(), "stop"), End::Eof);
    let deltas: Vec<&str> = ran.stream.events.iter().filter_map(|(_, event)| event["delta"].as_str()).collect();
    assert_eq!(deltas, ["See ", "[T](https://a.b/c)", " a", "[0] ", "x", " ", "(y"]);
}

#[test]
fn nothing_is_cited_where_nothing_can_be() {
    let mut json = citing(Run::default());
    json.context.output = OutputContract::JsonObject;
    let object = r#"{"a":"[T](https://a.b/c)"}"#;
    let mut empty = citing(Run::default());
    empty.setup.sources = Some(Arc::default());
    for (run, said) in
        [(&json, object), (&empty, TEXT), (&Run::default(), TEXT), (&citing(Run::default()), "[U](https://u.v/)")]
    {
        let ran = crate::native::check(run, &done(vec![text(said)], "stop"), End::Eof);
        assert_eq!((ran.stream.text.as_str(), cited(&ran)), (said, vec![]));
        let deltas = ran.stream.types().iter().filter(|name| **name == "response.output_text.delta").count();
        assert_eq!(deltas, 1, "{said}");
    }
    // Reasoning and refusals cite nothing.
    let chunks = vec![delta(&json!({"reasoning_content": TEXT})), delta(&json!({"refusal": TEXT}))];
    let ran = crate::native::check(&citing(Run::default()), &done(chunks, "stop"), End::Eof);
    assert!(!ran.stream.types().contains(&"response.output_text.annotation.added"));
}

/// A text that ends before its link does, by a call or by a cut, says all that it has said.
#[test]
fn what_was_held_back_is_not_lost() {
    let call = delta(&json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]}));
    for (chunks, reason) in [
        (vec![text("a [T](https://a.b/c"), call.clone()], "tool_calls"),
        (vec![text("a [T](https://a.b/c")], "length"),
        (vec![text("a [T](https://a.b/c"), delta(&json!({"refusal": "no"}))], "stop"),
    ] {
        let ran = crate::native::check(&citing(Run::default()), &done(chunks, reason), End::Eof);
        assert_eq!((ran.stream.text.as_str(), cited(&ran)), ("a [T](https://a.b/c", vec!["https://a.b/c".to_owned()]));
    }
    // Half a character at the end, and one whose halves come apart.
    let raw = |text: &str| format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#);
    let chunks = vec![raw(r"[\ud83d"), raw(r"\ude00](https://a.b/c)"), raw(r"\ud83d")];
    let ran = crate::native::check(&citing(Run::default()), &done(chunks, "stop"), End::Eof);
    assert_eq!(
        (ran.stream.text.as_str(), cited(&ran)),
        ("[😀](https://a.b/c)\u{fffd}", vec!["[😀](https://a.b/c)".to_owned()])
    );
}

#[test]
fn probabilities_go_with_the_text_that_waited() {
    let token = |text: &str| json!({"token": text, "logprob": -0.5, "bytes": [], "top_logprobs": []});
    let chunk = |text: &str| {
        json!({"choices": [{"index": 0, "delta": {"content": text}, "logprobs": {"content": [token(text)]}}]})
            .to_string()
    };
    let mut run = citing(Run::default());
    run.context.logprobs = true;
    let pieces = ["a ", "[T", "](https://a.b/c)", "[x"];
    let ran = crate::native::check(&run, &done(pieces.map(chunk).to_vec(), "stop"), End::Eof);
    let expected: Vec<Value> = pieces.map(token).to_vec();
    assert_eq!(parts(&ran).next().unwrap()["logprobs"], json!(expected));
    let sent = ran.stream.events.iter().filter(|(name, _)| name == "response.output_text.delta");
    let sent: Vec<Value> = sent.flat_map(|(_, event)| event["logprobs"].as_array().unwrap().clone()).collect();
    assert_eq!(sent, expected);
}

/// Any text in any pieces: what is said and cited depends on the text alone.
#[test]
fn any_pieces_give_the_same_citations() {
    const WORDS: &[&str] = &[
        "[",
        "]",
        "(",
        ")",
        "](",
        "[T](https://a.b/c)",
        "https://a.b/c",
        "https://a.b/x_(y)",
        "https://u.v/",
        "<",
        ">",
        "\\",
        "!",
        "😀",
        "é",
        " ",
        "\n",
        "\n\n",
        ".",
        "\"",
        "'",
        "h",
        "http",
        "a",
        "[T](<https://a.b/c>)",
        " \"t\")",
        "utm",
    ];
    for_all(4_000, |number| {
        let mut chance = Chance(number);
        let words: Vec<&str> = (0..1 + chance.below(24)).map(|_| chance.one_of(WORDS)).collect();
        let whole = words.concat();
        let mut pieces = vec![String::new()];
        for c in whole.chars() {
            if chance.below(3) == 0 {
                pieces.push(String::new());
            }
            pieces.last_mut().unwrap().push(c);
        }
        let run = citing(Run::default());
        let apart = run.run(&done(pieces.iter().map(|piece| text(piece)).collect(), "stop"), End::Eof)?;
        let once = run.run(&done(vec![text(&whole)], "stop"), End::Eof)?;
        let borrowed: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let native = citing(crate::native::native()).run(&native_text(&borrowed), End::Eof)?;
        for ran in [&apart, &once, &native] {
            check_order(ran).map_err(|problem| format!("text {number}, {whole:?}: {problem}"))?;
            if ran.stream.text != whole || cited(ran) != cited(&once) {
                return Err(format!("text {number}, {pieces:?}: {:?}, once {:?}", cited(ran), cited(&once)));
            }
        }
        let odd = cited(&once).into_iter().find(|link| !link.contains("a.b/"));
        odd.map_or(Ok(()), |link| Err(format!("text {number}, {whole:?}: {link:?} cites nothing")))
    });
}
