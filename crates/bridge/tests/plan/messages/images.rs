//! How many images such a provider takes, and how large: one too many would have this request refused, and all later ones.

use bridge::Dialect;
use serde_json::{Value, json};
use testkit::messages::{check_for_model, check_request};

use super::{named, plan, without_marks};
use crate::run::MEND;

const OPUS: &str = "anthropic/claude-opus-5-5";
const HAIKU: &str = "anthropic/claude-haiku-4-5";

/// The header of a PNG of this width, and so many digits more.
fn png(width: u32, more: usize) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let head = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), &width.to_be_bytes(), &9_u32.to_be_bytes()].concat();
    let mut url = "data:image/png;base64,".to_owned();
    for three in head.chunks(3) {
        let bits = three.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        url.extend([18, 12, 6, 0].map(|shift| char::from(DIGITS[bits >> shift & 63])));
    }
    url + &"A".repeat(more)
}

fn shown(url: &str) -> Value {
    json!({"role": "user", "content": [{"type": "input_image", "image_url": url}]})
}

/// A picture that a tool took, with its call.
fn looked(number: usize, url: &str) -> [Value; 2] {
    let id = format!("c{number}");
    [
        json!({"type": "function_call", "call_id": id, "name": "look", "arguments": "{}"}),
        json!({"type": "function_call_output", "call_id": id, "output": [{"type": "input_image", "image_url": url}]}),
    ]
}

/// Which images are left, by their place among all that were there.
fn left(input: &[Value], dialect: &Dialect) -> (Vec<usize>, Value) {
    let planned = plan(&json!({"model": "m", "input": input}), dialect, MEND).unwrap();
    assert_eq!(check_request(&planned.body), Ok(()));
    let mut all = Vec::new();
    collect(&planned.body["messages"], &mut all);
    let is_noted = planned.notes.iter().any(|note| note.message.contains("images left out"));
    assert_eq!(is_noted, all.contains(&false), "{:?}", planned.notes);
    let left = all.iter().enumerate().filter(|(_, is_there)| **is_there).map(|(at, _)| at).collect();
    (left, without_marks(&planned.body["messages"]))
}

fn collect(value: &Value, all: &mut Vec<bool>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect(value, all)),
        Value::Object(members) if members.get("type") == Some(&json!("image")) => all.push(true),
        Value::Object(members) => {
            let text = members.get("text").and_then(Value::as_str).unwrap_or_default();
            all.extend(text.starts_with("[image omitted").then_some(false));
            collect(members.get("content").unwrap_or(&Value::Null), all);
        }
        _ => {}
    }
}

#[test]
fn what_is_too_large_is_left_out() {
    let opus = named(OPUS);
    let (small, wide, long) = (png(100, 0), png(8001, 0), png(100, 5_300_000));
    let input: Vec<Value> = [&small, &wide, &long, &small].map(|url| shown(url)).to_vec();
    assert_eq!(left(&input, &opus).0, [0, 3]);
    // Where nothing is known of it, nothing is left out.
    let planned = plan(&json!({"model": "m", "input": input}), &named("messages-compatible/m"), MEND).unwrap();
    assert!(planned.notes.is_empty(), "{:?}", planned.notes);
}

#[test]
fn a_large_image_of_long_ago_gives_way_to_many() {
    let opus = named(OPUS);
    let mut input = vec![shown(&png(2400, 0))];
    input.extend((1..20).map(|_| shown(&png(100, 0))));
    assert_eq!(left(&input, &opus).0.len(), 20);
    input.push(shown(&png(100, 0)));
    let (kept, first) = left(&input, &opus);
    assert_eq!(kept, (1..21).collect::<Vec<_>>());
    // It stays away, and nothing else changes.
    input.push(json!({"role": "assistant", "content": "Hm."}));
    input.push(shown(&png(100, 0)));
    let (_, second) = left(&input, &opus);
    assert_eq!(first[0]["content"], second[0]["content"]);
}

/// Pictures of a large screen, one after the other: the newest is always there, and the beginning seldom changes.
#[test]
fn an_agent_that_looks_at_a_screen_goes_on_for_ever() {
    let opus = named(OPUS);
    let mut input = vec![json!({"role": "user", "content": "Look."})];
    let (mut before, mut changes): (Vec<Value>, usize) = (Vec::new(), 0);
    for number in 0..75 {
        input.extend(looked(number, &png(2880, 0)));
        let (kept, messages) = left(&input, &opus);
        assert!(kept.ends_with(&[number]) && kept.len() <= 20 && kept.len() > 10.min(number), "{number}: {kept:?}");
        let messages = messages.as_array().unwrap().clone();
        changes += usize::from(!messages.starts_with(&before));
        before = messages;
    }
    assert_eq!(changes, 6);
}

#[test]
fn the_oldest_go_where_there_are_too_many() {
    let haiku = named(HAIKU);
    let input: Vec<Value> = (0..131).map(|_| shown(&png(100, 0))).collect();
    let (kept, messages) = left(&input, &haiku);
    assert_eq!(kept, (40..131).collect::<Vec<_>>());
    assert_eq!(check_for_model("claude-haiku-4-5", &json!({"messages": messages})), Ok(()));
    // And where they are too much.
    let input: Vec<Value> = (0..40).map(|_| shown(&png(100, 1_000_000))).collect();
    let (kept, _) = left(&input, &named(OPUS));
    assert!(kept.ends_with(&[39]) && (18..=25).contains(&kept.len()), "{kept:?}");
}

/// The same holds wherever a spec says so.
#[test]
fn chat_has_the_same_limits() {
    let mut dialect = Dialect::default();
    dialect.request.content.max_images = Some(5);
    let input: Vec<Value> = (0..8).map(|_| shown("https://a.b/c.png")).collect();
    let request = json!({"model": "m", "input": input});
    let planned = crate::run::plan(&request, &dialect).unwrap();
    let sent = planned.body["messages"].to_string();
    assert_eq!((sent.matches("image_url\"").count() / 2, sent.matches("[image omitted").count()), (4, 4), "{sent}");
}
