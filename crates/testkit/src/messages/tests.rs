use serde_json::json;

use super::*;

fn body(messages: &Value) -> Value {
    json!({"model": "m", "max_tokens": 4096, "messages": messages})
}

fn with(name: &str, value: Value) -> Value {
    let mut body = body(&json!([{"role": "user", "content": "Hi"}]));
    body[name] = value;
    body
}

#[test]
fn what_is_lawful_passes() {
    let marked = json!({"type": "ephemeral"});
    let whole = json!({
        "model": "m", "max_tokens": 4096, "stream": true, "metadata": {"user_id": "u"}, "service_tier": "auto",
        "thinking": {"type": "enabled", "budget_tokens": 1024, "display": "summarized"},
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema":
            {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false}}},
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": true},
        "system": [{"type": "text", "text": "Be brief.", "cache_control": marked}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hi"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}]},
            {"role": "system", "content": [{"type": "text", "text": "Be kind."}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "", "signature": "s"}, {"type": "redacted_thinking", "data": "d"},
                {"type": "text", "text": "Well."}, {"type": "tool_use", "id": "a", "name": "f", "input": {}},
                {"type": "thinking", "thinking": "And?", "signature": "t"},
                {"type": "tool_use", "id": "b", "name": "f", "input": {"x": 1}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "b", "content": "ok"},
                {"type": "tool_result", "tool_use_id": "a", "is_error": true, "content": [{"type": "text", "text": "No."}]},
                {"type": "text", "text": "Go on.", "cache_control": marked}]},
            {"role": "assistant", "content": "Done."},
            {"role": "user", "content": "Thanks."}],
    });
    assert_eq!(check_request(&whole), Ok(()));
}

#[test]
fn each_fault_in_the_parameters_is_found() {
    let tool = |name: &str| json!({"name": name, "input_schema": {"type": "object"}});
    for (name, value, fault) in [
        ("seed", json!(1), "extra inputs"),
        ("model", json!(""), "model"),
        ("max_tokens", json!(0), "max_tokens"),
        ("max_tokens", Value::Null, "max_tokens"),
        ("temperature", json!(1.5), "0 to 1"),
        ("service_tier", json!("flex"), "service_tier"),
        ("metadata", json!({"team": "x"}), "extra inputs"),
        ("thinking", json!({"type": "enabled", "budget_tokens": 4096}), "budget_tokens"),
        ("thinking", json!({"type": "adaptive", "budget_tokens": 2048}), "extra inputs"),
        ("thinking", json!({"type": "disabled", "display": "omitted"}), "display"),
        ("output_config", json!({"effort": "minimal"}), "effort"),
        (
            "output_config",
            json!({"format": {"type": "json_schema", "schema": {"type": "object"}}}),
            "additionalProperties",
        ),
        ("tool_choice", json!({"type": "auto"}), "with tools"),
        ("tools", json!([]), "tools"),
        ("tools", json!([tool("a b")]), "name"),
        ("tools", json!([tool("a"), tool("a")]), "not unique"),
        ("tools", json!([{"name": "a", "input_schema": {"type": "object", "anyOf": []}}]), "at the root"),
        ("tools", json!([{"name": "a", "input_schema": {}}]), "input_schema.type"),
        ("system", json!([{"type": "text", "text": " \n"}]), "words"),
        ("system", json!([]), "neither"),
        ("cache_control", json!({"type": "forever"}), "forever"),
    ] {
        let problem = check_request(&with(name, value.clone())).expect_err(name);
        assert!(problem.contains(fault), "{name} {value}: {problem}");
    }
}

#[test]
fn each_fault_in_the_messages_is_found() {
    let user = json!({"role": "user", "content": "Hi"});
    let said = json!({"role": "assistant", "content": "Hm."});
    let system = json!({"role": "system", "content": "Be brief."});
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
    let calls = |blocks: Value| json!({"role": "assistant", "content": blocks});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "ok"});
    let results = |blocks: Value| json!({"role": "user", "content": blocks});
    let text = |text: &str| json!({"type": "text", "text": text});
    let mark = |ttl: &str| json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": ttl}});
    for (messages, fault) in [
        (json!([]), "at least one"),
        (json!([said]), "only answer the user"),
        (json!([user, said]), "must be the user's"),
        (json!([user, user]), "in a row"),
        (json!([system, user]), "follow the user's"),
        (json!([user, system, user]), "in a row"),
        (json!([user, said, system]), "follow the user's"),
        (json!([{"role": "user", "content": ""}]), "words"),
        (json!([results(json!([text("  ")]))]), "words"),
        (json!([user, calls(json!([call("a")]))]), "no results of"),
        (json!([user, calls(json!([call("a")])), user]), "no results of"),
        (json!([user, calls(json!([call("a")])), system]), "follow the user's"),
        (json!([results(json!([result("a")]))]), "no call before"),
        (json!([user, calls(json!([call("a")])), results(json!([text("x"), result("a")]))]), "behind other"),
        (json!([user, calls(json!([call("a"), text("x")])), results(json!([result("a")]))]), "behind a call"),
        (json!([user, calls(json!([call("a"), call("a")]))]), "unique"),
        (json!([user, calls(json!([call("a:0")]))]), "the id"),
        (json!([user, calls(json!([{"type": "tool_use", "id": "a", "name": "f", "input": "{}"}]))]), "an object"),
        (json!([user, calls(json!([{"type": "thinking", "thinking": "", "signature": ""}])), user]), "its end"),
        (json!([results(json!([mark("5m"), mark("5m"), mark("5m"), mark("5m"), mark("5m")]))]), "maximum of 4"),
        (json!([results(json!([mark("5m"), mark("1h")]))]), "must not come after"),
        (
            json!([results(
                json!([{"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "AA"}}])
            )]),
            "media type",
        ),
        (
            json!([results(json!([{"type": "image", "source": {"type": "url", "url": "http://a.b/c.png"}}]))]),
            "the address",
        ),
        (json!([results(json!([{"type": "audio"}]))]), "no such block"),
    ] {
        let problem = check_request(&body(&messages)).expect_err(fault);
        assert!(problem.contains(fault), "{messages}: {problem}");
    }
}

/// A PNG of this size, as far as its header goes, with so many more digits behind it.
fn png(width: u32, height: u32, more: usize) -> Value {
    let head = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), &width.to_be_bytes(), &height.to_be_bytes()].concat();
    let mut data = String::new();
    for three in head.chunks(3) {
        let bits = three.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        data.extend([18, 12, 6, 0].map(|shift| char::from(images::DIGITS[bits >> shift & 63])));
    }
    data.push_str(&"A".repeat(more));
    json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}})
}

#[test]
fn images_have_limits() {
    let images = |images: Vec<Value>| body(&json!([{"role": "user", "content": images}]));
    let many = |count: usize, image: Value| images(vec![image; count]);
    assert_eq!(check_request(&many(20, png(8000, 1, 0))), Ok(()));
    assert_eq!(check_request(&many(600, png(2000, 2000, 0))), Ok(()));
    for (request, fault) in [
        (many(1, png(1, 8001, 0)), "8001 pixels"),
        (many(21, png(2001, 1, 0)), "2001 pixels"),
        (many(601, png(1, 1, 0)), "too many"),
        (many(1, png(1, 1, 5_300_000)), "5 MB"),
        (many(10, png(1, 1, 4_000_000)), "request_too_large"),
    ] {
        let problem = check_request(&request).expect_err(fault);
        assert!(problem.contains(fault), "{problem}");
    }
}

#[test]
fn whoever_thinks_is_sampled_in_its_own_way() {
    for (thinking, temperature, is_good) in [
        (json!({"type": "enabled", "budget_tokens": 1024}), 0.5, false),
        (json!({"type": "adaptive"}), 0.5, false),
        (json!({"type": "adaptive"}), 1.0, true),
        (json!({"type": "disabled"}), 0.5, true),
    ] {
        let mut request = with("thinking", thinking);
        request["temperature"] = json!(temperature);
        assert_eq!(check_request(&request).is_ok(), is_good, "{request}");
    }
}

#[test]
fn each_fault_of_a_model_is_found() {
    let adaptive = || with("thinking", json!({"type": "adaptive"}));
    let mut both = adaptive();
    both["output_config"] = json!({"effort": "max"});
    both["thinking"]["type"] = "disabled".into();
    for (model, request, fault) in [
        ("claude-opus-5-5", with("thinking", json!({"type": "disabled"})), Some("thinking.type")),
        ("claude-opus-5-5", with("thinking", json!({"type": "enabled", "budget_tokens": 1024})), Some("thinking.type")),
        ("claude-haiku-4-5", adaptive(), Some("thinking.type")),
        ("claude-opus-5", adaptive(), None),
        ("claude-opus-5", both, Some("with")),
        ("claude-opus-4-6", with("output_config", json!({"effort": "xhigh"})), Some("effort")),
        ("claude-haiku-4-5", with("output_config", json!({"effort": "low"})), Some("effort")),
        ("claude-sonnet-5", with("temperature", json!(1)), Some("temperature")),
        ("claude-sonnet-4-6", with("temperature", json!(1)), None),
        ("claude-fable-5-1", with("tool_choice", json!({"type": "any"})), Some("tool_choice")),
        ("claude-haiku-5-5", with("tool_choice", json!({"type": "any"})), None),
        ("claude-haiku-4-5", with("max_tokens", json!(64_001)), Some("max_tokens")),
        ("claude-sonnet-5", with("messages", json!([{"role": "system", "content": "x"}])), Some("role")),
        ("claude-next-7", adaptive(), None),
        ("glm-5", adaptive(), Some("not_found")),
    ] {
        match (check_for_model(model, &request), fault) {
            (Ok(()), None) => {}
            (Err(problem), Some(fault)) => assert!(problem.contains(fault), "{model} {request}: {problem}"),
            (found, _) => panic!("{model} {request}: {found:?}"),
        }
    }
}
