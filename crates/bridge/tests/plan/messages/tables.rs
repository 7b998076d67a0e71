//! What each thing becomes.

use bridge::{Policy, ThoughtDisplay};
use serde_json::{Value, json};
use testkit::messages::check_request;

use super::{named, plan, plan_text, without_marks};
use crate::run::{MEND, TransparentSeal};

const OPUS: &str = "anthropic/claude-opus-5-5";
const SONNET: &str = "anthropic/claude-sonnet-5";
const HAIKU: &str = "anthropic/claude-haiku-4-5";
const OTHER: &str = "messages-compatible/m";

fn body(request: Value, dialect: &str) -> Value {
    let planned = plan(&request, &named(dialect), MEND).unwrap();
    assert_eq!(check_request(&planned.body), Ok(()), "{}", planned.body);
    planned.body
}

fn messages(input: Value, dialect: &str) -> Value {
    without_marks(&body(json!({"model": "m", "input": input}), dialect)["messages"])
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn user(blocks: Value) -> Value {
    json!({"role": "user", "content": blocks})
}

fn assistant(blocks: Value) -> Value {
    json!({"role": "assistant", "content": blocks})
}

fn thought(name: &str) -> (Value, Value) {
    let block = json!({"type": "thinking", "thinking": name, "signature": "c2ln"});
    let sealed = json!({"v": 1, "family": "one", "text": "", "bag": [block]});
    (json!({"type": "reasoning", "summary": [], "encrypted_content": format!("glass:{sealed}")}), block)
}

#[test]
fn items_become_turns() {
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": ""});
    let used = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
    let output = |id: &str, text: &str| json!({"type": "function_call_output", "call_id": id, "output": text});
    let result = |id: &str, said: &str| json!({"type": "tool_result", "tool_use_id": id, "content": [text(said)]});
    let said = |role: &str, text: &str| json!({"role": role, "content": text});
    let ((first, first_block), (second, second_block)) = (thought("1"), thought("2"));
    for (input, expected) in [
        (json!("Hi"), json!([user(json!([text("Hi")]))])),
        // Neighbours are one turn; nothing is blank.
        (json!([said("user", "a"), said("user", " \n")]), json!([user(json!([text("a"), text("(empty)")]))])),
        // The user speaks first and last.
        (
            json!([said("assistant", "Hm.")]),
            json!([
                user(json!([text("(continue)")])),
                assistant(json!([text("Hm.")])),
                user(json!([text("(continue)")]))
            ]),
        ),
        // All results of a turn together, and first.
        (
            json!([said("user", "a"), call("x"), call("y"), output("y", "2"), said("user", "b"), output("x", "")]),
            json!([
                user(json!([text("a")])),
                assistant(json!([used("x"), used("y")])),
                user(json!([result("x", "(empty tool output)"), result("y", "2"), text("b")]))
            ]),
        ),
        // What the model has gone on without comes when it came.
        (
            json!([said("user", "a"), call("x"), said("user", "b"), said("assistant", "c"), output("x", "1")]),
            json!([
                user(json!([text("a")])),
                assistant(json!([used("x")])),
                user(json!([result("x", "[tool result unavailable: call interrupted]"), text("b")])),
                assistant(json!([text("c")])),
                user(json!([text("[Late result of the call x]\n1")]))
            ]),
        ),
        // Text comes before calls, thoughts stay where they were.
        (
            json!([
                said("user", "a"),
                first,
                said("assistant", "b"),
                call("x"),
                second,
                call("y"),
                output("x", "1"),
                output("y", "2")
            ]),
            json!([
                user(json!([text("a")])),
                assistant(json!([first_block, text("b"), used("x"), second_block, used("y")])),
                user(json!([result("x", "1"), result("y", "2")]))
            ]),
        ),
        (
            json!([said("user", "a"), call("x"), said("assistant", "b"), output("x", "1")]),
            json!([
                user(json!([text("a")])),
                assistant(json!([text("b"), used("x")])),
                user(json!([result("x", "1")]))
            ]),
        ),
        // A client that gives calls back before what led to them.
        (
            json!([said("user", "a"), call("x"), first, output("x", "1")]),
            json!([
                user(json!([text("a")])),
                assistant(json!([first_block, used("x")])),
                user(json!([result("x", "1")]))
            ]),
        ),
        // A thought that leads to nothing is no end of a message.
        (
            json!([said("user", "a"), said("assistant", "b"), first, said("user", "c")]),
            json!([user(json!([text("a")])), assistant(json!([text("b")])), user(json!([text("c")]))]),
        ),
    ] {
        assert_eq!(messages(input.clone(), OPUS), expected, "{input}");
    }
}

#[test]
fn the_application_speaks_late() {
    let said = |role: &str, text: &str| json!({"role": role, "content": text});
    let system = |said: &str| json!({"role": "system", "content": [text(said)]});
    let tagged = |said: &str| text(&format!("<system>\n{said}\n</system>"));
    let call = json!({"type": "function_call", "call_id": "x", "name": "f", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "x", "output": "1"});
    let used = json!({"type": "tool_use", "id": "x", "name": "f", "input": {}});
    let result = json!({"type": "tool_result", "tool_use_id": "x", "content": [text("1")]});
    for (input, native, user_says) in [
        // It slides behind what the user says.
        (
            json!([said("user", "a"), said("developer", "D"), said("user", "b")]),
            json!([user(json!([text("a"), text("b")])), system("D")]),
            json!([user(json!([text("a"), tagged("D"), text("b")]))]),
        ),
        // Never between a call and its result.
        (
            json!([said("user", "a"), call, said("developer", "D"), output]),
            json!([user(json!([text("a")])), assistant(json!([used])), user(json!([result])), system("D")]),
            json!([user(json!([text("a")])), assistant(json!([used])), user(json!([result, tagged("D")]))]),
        ),
        // Where the user has said nothing, it is the user's word.
        (
            json!([
                said("user", "a"),
                said("assistant", "b"),
                said("developer", "D"),
                said("assistant", "c"),
                said("user", "d")
            ]),
            json!([
                user(json!([text("a")])),
                assistant(json!([text("b")])),
                user(json!([tagged("D")])),
                assistant(json!([text("c")])),
                user(json!([text("d")]))
            ]),
            json!([
                user(json!([text("a")])),
                assistant(json!([text("b")])),
                user(json!([tagged("D")])),
                assistant(json!([text("c")])),
                user(json!([text("d")]))
            ]),
        ),
    ] {
        assert_eq!(messages(input.clone(), OPUS), native, "{input}");
        assert_eq!(messages(input.clone(), SONNET), user_says, "{input}");
    }
}

#[test]
fn media_become_blocks() {
    let part = |part: Value| json!([{"role": "user", "content": [part]}]);
    let image = |url: &str| part(json!({"type": "input_image", "image_url": url}));
    let pdf = |data: &str| part(json!({"type": "input_file", "filename": "a.pdf", "file_data": data}));
    let base64 = |kind: &str, media: &str, data: &str| json!({"type": kind, "source": {"type": "base64", "media_type": media, "data": data}});
    let named = |mut block: Value| {
        block["title"] = "a.pdf".into();
        block
    };
    let (png, jpeg, one) = ("iVBORw0KGgoAAAANSUhEUg==", "/9j/4AAQ", "JVBERi1vbmUlJUVPRg==");
    let omitted = text("[image omitted: this model cannot read it]");
    let no_access = |what: &str| text(&format!("[{what} omitted: this model has no access to it]"));
    for (input, expected) in [
        (image(&format!("data:image/png;base64,{png}")), base64("image", "image/png", png)),
        (image(&format!("data:image/jpg;base64,{jpeg}")), base64("image", "image/jpeg", jpeg)),
        // What its bytes are counts, and not what it is called: an API that is told another type refuses it.
        (image(&format!("data:image/jpeg;base64,{png}")), base64("image", "image/png", png)),
        (image(&format!("data:application/octet-stream;base64,{png}")), base64("image", "image/png", png)),
        (image("DATA:image/png;BASE64,_9j_4AAQ"), base64("image", "image/jpeg", jpeg)),
        (image("data:image/png;base64,iVBORw0KGgoAAAANSUhEUg"), base64("image", "image/png", png)),
        (image(&format!("data:image/png;base64,{one}")), omitted.clone()),
        (image("https://a.b/c"), json!({"type": "image", "source": {"type": "url", "url": "https://a.b/c"}})),
        (image("HTTPS://a.b/c"), json!({"type": "image", "source": {"type": "url", "url": "HTTPS://a.b/c"}})),
        // Only such addresses are taken.
        (image("http://a.b/c"), no_access("image")),
        (image("Http:\u{2f}/a.b/c"), no_access("image")),
        (part(json!({"type": "input_image", "file_id": "file-1"})), no_access("image")),
        (part(json!({"type": "input_file", "file_url": "http://a.b/c.pdf"})), no_access("file")),
        (part(json!({"type": "input_file", "file_id": "file-1"})), no_access("file")),
        (image("data:image/bmp;base64,AA=="), omitted.clone()),
        (image("data:,"), omitted),
        (pdf(&format!("data:application/pdf;base64,{one}")), named(base64("document", "application/pdf", one))),
        (pdf(one), named(base64("document", "application/pdf", one))),
        (pdf("JVBERi1v\nbmUlJUVPRg"), named(base64("document", "application/pdf", one))),
        (pdf(png), base64("image", "image/png", png)),
        (pdf("UEsDBAoAAAAAAA=="), text("[a.pdf: PDF omitted: it is damaged]")),
        (part(json!({"type": "input_file", "file_data": one})), base64("document", "application/pdf", one)),
        (part(json!({"type": "input_file", "filename": "a.txt", "file_data": "//5oAGkA"})), text("[a.txt]\nhi")),
        (
            part(json!({"type": "input_file", "file_url": "https://a.b/c.pdf"})),
            json!({"type": "document", "source": {"type": "url", "url": "https://a.b/c.pdf"}}),
        ),
        (
            part(json!({"type": "input_file", "filename": "a.doc", "file_data": "AA=="})),
            text("[file omitted: this model cannot read it]"),
        ),
    ] {
        assert_eq!(messages(input.clone(), OPUS)[0]["content"][0], expected, "{input}");
    }
}

#[test]
fn thinking_is_what_each_model_takes() {
    let adaptive = |display: &str| json!({"type": "adaptive", "display": display});
    let bound = |display: &str| json!({"type": "adaptive", "display": display, "block_binding": {"prefix_mismatch_behavior": "drop_block"}});
    let budget = |tokens: u64| json!({"type": "enabled", "budget_tokens": tokens});
    for (dialect, reasoning, thinking, effort) in [
        (OPUS, json!(null), bound("summarized"), json!(null)),
        (OPUS, json!({"effort": "none"}), bound("summarized"), json!("low")),
        (OPUS, json!({"effort": "minimal"}), bound("summarized"), json!("low")),
        (OPUS, json!({"effort": "xhigh"}), bound("summarized"), json!("xhigh")),
        ("anthropic/claude-sonnet-5-5", json!({"effort": "none"}), json!({"type": "between_tools"}), json!(null)),
        (SONNET, json!(null), adaptive("omitted"), json!(null)),
        (SONNET, json!({"summary": "auto"}), adaptive("summarized"), json!(null)),
        (SONNET, json!({"effort": "none"}), json!({"type": "disabled"}), json!(null)),
        ("anthropic/claude-opus-4-6", json!(null), json!(null), json!(null)),
        ("anthropic/claude-opus-4-6", json!({"effort": "xhigh"}), json!({"type": "adaptive"}), json!("max")),
        (HAIKU, json!(null), json!(null), json!(null)),
        (HAIKU, json!({"effort": "none"}), json!({"type": "disabled"}), json!(null)),
        ("anthropic/claude-opus-4-6", json!({"effort": "none"}), json!({"type": "disabled"}), json!(null)),
        (HAIKU, json!({"effort": "high"}), budget(16_384), json!(null)),
        (HAIKU, json!({"effort": "max"}), budget(32_000 - 4096), json!(null)),
        (OTHER, json!({"effort": "low"}), budget(4096), json!(null)),
        (OTHER, json!({"effort": "none"}), json!({"type": "disabled"}), json!(null)),
    ] {
        let body = body(json!({"model": "m", "input": "Hi", "reasoning": reasoning}), dialect);
        assert_eq!(body["thinking"], thinking, "{dialect} {reasoning}");
        assert_eq!(body["output_config"]["effort"], effort, "{dialect} {reasoning}");
    }
}

#[test]
fn a_budget_yields_to_the_limit_and_to_lost_thoughts() {
    let call = json!({"type": "function_call", "call_id": "x", "name": "f", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "x", "output": "1"});
    let user = json!({"role": "user", "content": "a"});
    let (kept, _) = thought("1");
    for (input, limit, budget) in [
        (json!([user]), 10_000, json!(10_000 - 4096)),
        (json!([user]), 5000, json!(null)),
        (json!([user, call, output]), 40_000, json!(null)),
        (json!([user, kept, call, output]), 40_000, json!(16_384)),
    ] {
        let request = json!({"model": "m", "input": input, "max_output_tokens": limit, "temperature": 0.5,
            "reasoning": {"effort": "high"}});
        let body = body(request, HAIKU);
        assert_eq!(body["thinking"]["budget_tokens"], budget, "{input}");
        assert_eq!(body.get("temperature").is_some(), budget.is_null(), "{input}");
    }
}

/// Whoever thinks, with a budget or as much as it likes, is sampled in its own way.
#[test]
fn nobody_is_sampled_otherwise_while_it_thinks() {
    for (dialect, effort, sampled) in [
        ("anthropic/claude-opus-4-6", json!("low"), false),
        (HAIKU, json!("low"), false),
        ("anthropic/claude-opus-4-6", json!("none"), true),
        ("anthropic/claude-opus-4-6", json!(null), true),
        (HAIKU, json!("none"), true),
    ] {
        let all = [("temperature", 0.3, !sampled), ("top_p", 0.5, !sampled), ("temperature", 1.0, false)];
        for (name, value, noted) in all {
            let request = json!({"model": "m", "input": "Hi", name: value, "reasoning": {"effort": effort}});
            let planned = plan(&request, &named(dialect), MEND).unwrap();
            assert_eq!(check_request(&planned.body), Ok(()), "{}", planned.body);
            assert_eq!(planned.body.get(name).is_none(), noted, "{dialect} {effort} {name} {value}");
            assert_eq!(planned.has_note("bridge.param.ignored", name), noted, "{dialect} {effort} {name} {value}");
        }
    }
}

/// One that thinks unless it is told not to refuses calls without what led to them.
#[test]
fn lost_thoughts_switch_thinking_off_where_it_is_on_by_itself() {
    let call = json!({"type": "function_call", "call_id": "x", "name": "f", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "x", "output": "1"});
    let (kept, _) = thought("1");
    let lost = json!([{"role": "user", "content": "a"}, call, output]);
    let whole = json!([{"role": "user", "content": "a"}, kept, call, output]);
    let answered = [json!({"role": "assistant", "content": "b"}), json!({"role": "user", "content": "c"})];
    let then = |input: &Value| json!([input.as_array().unwrap().as_slice(), &answered].concat());
    let (earlier, earlier_whole) = (then(&lost), then(&whole));
    let (off, on, unsaid) = (json!("disabled"), json!("enabled"), json!(null));
    for (dialect, input, effort, expected) in [
        // Some want back what led to earlier calls, too.
        ("deepseek-messages/m", &earlier, json!("high"), &off),
        ("deepseek-messages/m", &earlier, json!(null), &off),
        ("deepseek-messages/m", &earlier_whole, json!(null), &on),
        ("moonshot-messages/m", &earlier, json!("high"), &off),
        (HAIKU, &earlier, json!("high"), &on),
        (OTHER, &earlier, json!("high"), &on),
        // One that always thinks is not told not to.
        ("zhipu-messages/glm-5.3", &lost, json!("high"), &unsaid),
        ("zhipu-messages/glm-5.3", &whole, json!("none"), &unsaid),
        ("zhipu-messages/m", &lost, json!("high"), &off),
        (OTHER, &lost, json!("high"), &off),
        (OTHER, &whole, json!("high"), &on),
        ("deepseek-messages/m", &lost, json!(null), &off),
        ("deepseek-messages/m", &whole, json!(null), &on),
        ("deepseek-messages/m", &whole, json!("none"), &on),
        (HAIKU, &lost, json!("high"), &off),
    ] {
        let body = body(json!({"model": "m", "input": input, "reasoning": {"effort": effort}}), dialect);
        assert_eq!(&body["thinking"]["type"], expected, "{dialect} {effort} {input}");
    }
}

#[test]
fn choices_and_limits() {
    let tools = json!([{"type": "function", "name": "f"}]);
    for (dialect, choice, parallel, expected) in [
        (OPUS, json!("auto"), true, json!(null)),
        (OPUS, json!("auto"), false, json!({"type": "auto", "disable_parallel_tool_use": true})),
        (OPUS, json!("none"), false, json!({"type": "none"})),
        // It cannot be made to.
        (OPUS, json!("required"), true, json!(null)),
        (SONNET, json!("required"), false, json!({"type": "any", "disable_parallel_tool_use": true})),
        (SONNET, json!({"type": "function", "name": "f"}), true, json!({"type": "tool", "name": "f"})),
        // One that thinks only when it is asked to can be.
        (HAIKU, json!("required"), true, json!({"type": "any"})),
        (
            "anthropic/claude-opus-4-6",
            json!({"type": "function", "name": "f"}),
            true,
            json!({"type": "tool", "name": "f"}),
        ),
        // Of one that nobody knows the newest rules hold.
        ("anthropic/m", json!("required"), true, json!(null)),
    ] {
        let request = json!({"model": "m", "input": "Hi", "tools": tools, "tool_choice": choice, "parallel_tool_calls": parallel});
        assert_eq!(body(request, dialect)["tool_choice"], expected, "{dialect} {choice} {parallel}");
    }
    for (dialect, asked, expected) in [
        (OPUS, json!(null), 128_000),
        (OPUS, json!(500_000), 128_000),
        (HAIKU, json!(null), 32_000),
        (HAIKU, json!(50), 50),
        (OTHER, json!(null), 32_000),
    ] {
        let body = body(json!({"model": "m", "input": "Hi", "max_output_tokens": asked}), dialect);
        assert_eq!(body["max_tokens"], expected, "{dialect} {asked}");
    }
}

#[test]
fn formats_are_promised_or_asked_for() {
    let format = |schema: Value| json!({"format": {"type": "json_schema", "name": "n", "schema": schema}});
    let closed = json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false});
    let open = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    for (text, promised) in [
        (format(closed.clone()), Some(&closed)),
        (format(open), Some(&closed)),
        (format(map), None),
        (json!({"format": {"type": "json_object"}}), None),
    ] {
        let body = body(json!({"model": "m", "input": "Hi", "text": text}), OPUS);
        assert_eq!(body["output_config"].get("format").map(|format| &format["schema"]), promised, "{text}");
        assert_eq!(body.get("system").is_none(), promised.is_some(), "{text}");
    }
}

#[test]
fn marks_are_on_what_stays() {
    let said = |role: &str, text: &str| json!({"role": role, "content": text});
    let marked = |body: &Value| -> Vec<String> {
        let mut found = Vec::new();
        for name in ["tools", "system"] {
            for (index, block) in body[name].as_array().into_iter().flatten().enumerate() {
                found.extend(block.get("cache_control").map(|_| format!("{name}[{index}]")));
            }
        }
        for (index, message) in body["messages"].as_array().into_iter().flatten().enumerate() {
            for (block, content) in message["content"].as_array().into_iter().flatten().enumerate() {
                found.extend(content.get("cache_control").map(|_| format!("{index}.{block}")));
            }
        }
        found
    };
    let many: Vec<Value> = (0..24).map(|n| said("user", &format!("{n}"))).collect();
    let tools = json!([{"type": "function", "name": "f"}, {"type": "function", "name": "g"}]);
    for (input, instructions, expected) in [
        (vec![said("user", "a")], "Be brief.", vec!["system[0]", "0.0"]),
        (vec![said("user", "a")], "", vec!["tools[1]", "0.0"]),
        (vec![said("user", "a"), said("assistant", "b"), said("user", "c")], "x", vec!["system[0]", "0.0", "2.0"]),
        (
            [vec![said("user", "a"), said("assistant", "b")], many].concat(),
            "x",
            vec!["system[0]", "0.0", "2.11", "2.23"],
        ),
    ] {
        let request = json!({"model": "m", "input": input, "instructions": instructions, "tools": tools,
            "prompt_cache_retention": "24h"});
        let body = body(request.clone(), OPUS);
        assert_eq!(marked(&body), expected);
        assert!(body.to_string().contains(r#""ttl":"1h""#));
        assert_eq!(marked(&self::body(request, OTHER)), Vec::<String>::new());
    }
}

#[test]
fn parts_of_the_request_are_found_again() {
    let request = json!({"model": "m", "instructions": "i", "input": [
        {"role": "developer", "content": "D"}, {"role": "user", "content": "a"}, {"role": "developer", "content": "E"},
        {"role": "assistant", "content": "b"}]});
    let (_, links) = plan_text(&request.to_string(), &named(OPUS), Policy::default(), &TransparentSeal).unwrap();
    let found: Vec<(&str, String)> = links.iter().map(|link| (&*link.item, link.to.join(" "))).collect();
    let expected = [
        ("instructions", "system[0]"),
        ("input[0]", "system[1]"),
        ("input[1]", "messages[0]"),
        ("input[2]", "messages[1]"),
        ("input[3]", "messages[2]"),
        ("godex", "messages[3]"),
    ];
    assert_eq!(found, expected.map(|(item, to)| (item, to.to_owned())));
}

#[test]
fn what_a_dialect_leaves_unsaid_is_made_to_fit() {
    let mut dialect = named("bare");
    dialect.request.blocks.display = ThoughtDisplay::Always;
    let request = json!({"model": "m", "temperature": 1.7, "top_p": 0.5, "user": "u", "stop": "x", "input": [
        {"role": "user", "content": "a"}, {"type": "function_call", "call_id": "a:0", "name": "f", "arguments": "{"},
        {"type": "function_call_output", "call_id": "a:0", "output": "1"}],
        "tools": [{"type": "custom", "name": "c"}, {"type": "function", "name": "f", "parameters": {"type": "object", "anyOf": []}}]});
    let planned = plan(&request, &dialect, Policy::default()).unwrap();
    assert_eq!(check_request(&planned.body), Ok(()), "{}", planned.body);
    assert_eq!(planned.body["metadata"], json!({"user_id": "u"}));
    assert_eq!(planned.body["stop_sequences"], json!(["x"]));
    assert_eq!(planned.body["messages"][1]["content"][0]["input"], json!({"_raw": "{"}));
    assert!(planned.has_note("bridge.param.ignored", "top_p"));
}

/// What a provider refused of what is said to it unasked, or of its kinds of thinking: the next request goes without.
#[test]
fn what_turned_out_not_to_be_taken_is_left_out() {
    use bridge::{Parameter, ThinkingType as Kind, Unsupported as U};
    let tool = json!({"type": "function", "name": "f", "strict": true, "parameters":
        {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false}});
    let effort = |effort: &str| json!({"model": "m", "input": "Hi", "tools": [tool], "reasoning": {"effort": effort}});
    let told = |request: &Value, dialect: &str, refused: &[U]| {
        let planned = plan(request, &bridge::adapted(&named(dialect), refused), MEND).unwrap();
        assert_eq!(check_request(&planned.body), Ok(()), "{}", planned.body);
        let notes: Vec<String> = planned.notes.iter().map(|note| note.path.to_string()).collect();
        (planned.body, notes)
    };
    let thinking = |(body, _): &(Value, Vec<String>)| (body["thinking"].clone(), body["output_config"].clone());
    let adaptive = |more: Value| {
        let mut thinking = json!({"type": "adaptive", "display": "summarized"});
        thinking.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        thinking
    };
    let bound = json!({"block_binding": {"prefix_mismatch_behavior": "drop_block"}});
    let (low, low_effort) = (effort("low"), json!({"effort": "low"}));
    assert_eq!(thinking(&told(&low, OPUS, &[])), (adaptive(bound.clone()), low_effort.clone()));
    for refused in [U::Binding, U::Betas] {
        let without = bridge::adapted(&named(OPUS), &[refused]);
        assert_eq!(without.request.blocks.all_betas().count(), 0, "{refused:?}");
        assert_eq!(thinking(&told(&low, OPUS, &[refused])), (adaptive(json!({})), low_effort.clone()), "{refused:?}");
    }
    let no_effort = U::Parameter(Parameter::ReasoningEffort);
    for request in [&low, &effort("none")] {
        assert_eq!(thinking(&told(request, OPUS, &[no_effort])), (adaptive(bound.clone()), Value::Null));
    }
    // No kind that was refused comes back, and whoever cannot be stopped thinks as little as can be.
    let of = |kind| U::Thinking(Some(kind));
    for (dialect, asked, refused, expected) in [
        (OPUS, &low, vec![of(Kind::Adaptive)], (Value::Null, low_effort.clone())),
        (SONNET, &effort("none"), vec![of(Kind::Disabled)], (Value::Null, low_effort.clone())),
        (HAIKU, &low, vec![of(Kind::Enabled)], (json!({"type": "adaptive"}), Value::Null)),
        (HAIKU, &low, vec![of(Kind::Enabled), of(Kind::Adaptive)], (Value::Null, Value::Null)),
        (OTHER, &effort("none"), vec![of(Kind::Disabled)], (Value::Null, Value::Null)),
    ] {
        let told = told(asked, dialect, &refused);
        assert_eq!(thinking(&told), expected, "{dialect} {refused:?}");
        assert!(told.1.iter().any(|path| path.starts_with("reasoning")), "{dialect} {refused:?}: {:?}", told.1);
    }
    let tools = |refused: &[U]| told(&low, OPUS, refused).0["tools"][0].clone();
    let (whole, lazy, loose) = (tools(&[]), tools(&[U::EagerInput]), tools(&[U::Strict]));
    assert_eq!((&whole["strict"], &whole["eager_input_streaming"]), (&json!(true), &json!(true)));
    assert_eq!((&lazy["strict"], lazy.get("eager_input_streaming")), (&json!(true), None));
    assert_eq!((loose.get("strict"), &loose["eager_input_streaming"]), (None, &json!(true)));
}

/// Our own limit follows what an error says; a client's is cut to what there is, and else left alone.
#[test]
fn limits_follow_what_an_error_says() {
    use bridge::Unsupported as U;
    for (refused, asked, expected, noted) in [
        (U::Output(64_000), None, 64_000, false),
        (U::Output(64_000), Some(100_000), 64_000, true),
        (U::Output(64_000), Some(1000), 1000, false),
        (U::Room(15_000), None, 15_000, false),
        (U::Room(15_000), Some(100_000), 100_000, false),
    ] {
        let request = json!({"model": "m", "input": "Hi", "max_output_tokens": asked});
        let planned = plan(&request, &bridge::adapted(&named(OPUS), &[refused]), MEND).unwrap();
        let is_noted = planned.notes.iter().any(|note| note.path == "max_output_tokens");
        assert_eq!((&planned.body["max_tokens"], is_noted), (&json!(expected), noted), "{refused:?} {asked:?}");
    }
}

/// Where the API has it, and can promise what the schema says; however that is written.
#[test]
fn a_tool_is_strict_where_that_can_be_promised() {
    let closed = r#"{"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false}"#;
    let open = r#"{"type": "object", "properties": {"a": {"type": "string"}}}"#;
    for (dialect, schema, asked, expected, noted) in [
        (OPUS, closed, "true", true, false),
        (OPUS, closed, "false", false, false),
        (OPUS, closed, "null", false, false),
        (OPUS, open, "true", false, true),
        (OTHER, closed, "true", false, false),
    ] {
        let tool = format!(r#"{{"type": "function", "name": "f", "parameters": {schema}, "strict": {asked}}}"#);
        let request = format!(r#"{{"model": "m", "input": "Hi", "tools": [{tool}]}}"#);
        let (planned, _) = plan_text(&request, &named(dialect), MEND, &TransparentSeal).unwrap();
        let is_strict = planned.body["tools"][0].get("strict").is_some();
        let is_noted = planned.notes.iter().any(|note| note.path == "tools.strict");
        assert_eq!((is_strict, is_noted), (expected, noted), "{dialect} {tool}");
    }
}
