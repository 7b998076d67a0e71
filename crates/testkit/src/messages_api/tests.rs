//! That the simulated API refuses what it should, and counts what it should.

use serde_json::{Value, json};

use super::cache::{CacheUse, PrefixCache};
use super::signed::{check, sign};

fn request(messages: &[Value]) -> Value {
    json!({"model": "m", "tools": [{"name": "f"}], "system": [{"type": "text", "text": "s"}], "messages": messages})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}]})
}

#[test]
fn a_thought_is_valid_where_it_was_made() {
    let first = request(&[user("a")]);
    let said = [json!({"type": "thinking", "thinking": "t"}), json!({"type": "text", "text": "x"})];
    let said = sign(&first, &[said[0].clone(), said[1].clone(), said[0].clone()]);
    let second = |before: Value, blocks: &[Value]| {
        request(&[before, json!({"role": "assistant", "content": blocks}), user("b")])
    };
    let strange = |request: &Value| check(request).strange.len();
    assert_eq!(strange(&second(user("a"), &said)), 0);
    // Marks move, and change nothing.
    let marked =
        json!({"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]});
    assert_eq!(strange(&second(marked, &said)), 0);
    for (other, expected) in [
        (second(user("A"), &said), 2),
        (second(user("a"), &said[1..]), 1),
        (second(user("a"), &[json!({"type": "thinking", "thinking": "T", "signature": said[0]["signature"]})]), 1),
        (second(user("a"), &[said[0].clone(), json!({"type": "text", "text": "y"}), said[2].clone()]), 1),
    ] {
        assert_eq!(strange(&other), expected, "{other}");
    }
    let mut more_tools = second(user("a"), &said);
    more_tools["tools"] = json!([{"name": "f"}, {"name": "g"}]);
    assert_eq!(strange(&more_tools), 2);
}

#[test]
fn marks_keep_what_is_before_them() {
    let mut cache = PrefixCache::default();
    let mark = |mut message: Value| {
        message["content"][0]["cache_control"] = json!({"type": "ephemeral"});
        message
    };
    let used = |blocks, read, written| CacheUse { blocks, read, written };
    assert_eq!(cache.use_for(&request(&[user("a")])), used(3, 0, 0));
    assert_eq!(cache.use_for(&request(&[mark(user("a"))])), used(3, 0, 3));
    assert_eq!(cache.use_for(&request(&[user("a"), user("b"), mark(user("c"))])), used(5, 3, 2));
    assert_eq!(cache.use_for(&request(&[mark(user("b"))])), used(3, 0, 3));
    // Too far back.
    let long: Vec<Value> = (0..30).map(|number| user(&number.to_string())).collect();
    let turns = [vec![user("a")], long, vec![mark(user("z"))]].concat();
    assert_eq!(cache.use_for(&request(&turns)), used(34, 0, 34));
}
