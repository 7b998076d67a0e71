use serde_json::json;

use super::*;

const PEDANT: Strictness = Strictness {
    developer: false,
    no_empty_text: true,
    system_first: true,
    alternate: true,
    assistant_after_tool: true,
    no_null_content: true,
    ids: Ids::Alnum9,
    name_length: 64,
    custom: false,
};

#[test]
fn the_pedant_finds_each_fault() {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let user = json!({"role": "user", "content": "Hi"});
    let calling = json!({"role": "assistant", "tool_calls": [call("abcdefghi")]});
    let result = json!({"role": "tool", "tool_call_id": "abcdefghi", "content": "ok"});
    for (messages, fault) in [
        (json!([]), "none"),
        (json!([{"role": "developer", "content": "x"}]), "no such role"),
        (json!([user, {"role": "system", "content": "x"}]), "a late system message"),
        (json!([user, user]), "two of one role"),
        (json!([{"role": "user", "content": ""}]), "an empty text"),
        (json!([{"role": "user", "content": null}]), "neither"),
        (json!([user, {"role": "assistant", "content": ""}]), "says nothing"),
        (json!([user, {"role": "assistant", "content": null, "tool_calls": [call("abcdefghi")]}, result]), "null"),
        (json!([user, calling]), "missing at the end"),
        (json!([user, calling, user]), "missing before"),
        (json!([user, calling, result, result]), "a result of no call"),
        (json!([user, calling, result, user]), "not the assistant"),
        (json!([user, {"role": "assistant", "tool_calls": [call("call_1")]}]), "the id"),
    ] {
        let problems = check(&json!({"messages": messages}), PEDANT);
        assert!(problems.iter().any(|problem| problem.contains(fault)), "{messages}: {problems:?}");
    }
    let good =
        json!([{"role": "system", "content": "s"}, user, calling, result, {"role": "assistant", "content": "a"}]);
    assert_eq!(check(&json!({"messages": good}), PEDANT), Vec::<String>::new());
}
