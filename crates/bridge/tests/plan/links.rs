//! What became of each part of a request: tables of the cases that are not one to one, and laws.

use std::collections::{BTreeMap, BTreeSet};

use bridge::{Dialect, Hosting, Link, Plan, PlanTarget, Policy, SealedSummary, SearchFunctions};
use proptest::prelude::*;
use serde_json::{Value, json};
use wire::json::{FromRaw, Invalid, Kept, Raw};
use wire::responses::{CreateResponse, InputItem};

use crate::dialects::{all, named};
use crate::make::items;
use crate::run::{MEND, TransparentSeal};

struct Linked {
    body: Value,
    links: Vec<Link>,
}

impl Linked {
    /// `input[0]>messages[0]`, or with what was left out `input[0]!`.
    fn short(&self) -> String {
        let one = |link: &Link| match &link.left_out {
            Some(_) => format!("{}!", link.item),
            None => format!("{}>{}", link.item, link.to.join("+")),
        };
        let short = self.links.iter().map(one).collect::<Vec<_>>().join(" ");
        short.replace("messages[", "m[").replace("tools[", "t[").replace("input[", "i[").replace("past[", "p[")
    }

    fn places(&self, item: &str) -> BTreeSet<String> {
        self.links.iter().filter(|link| link.item == item).flat_map(|link| link.to.iter().cloned()).collect()
    }
}

#[derive(Clone, Copy)]
struct Way<'d> {
    dialect: &'d Dialect,
    hosting: Hosting,
    forwards: bool,
}

fn linked(request: &str, past: &[Value], way: Way<'_>) -> Result<Linked, Invalid> {
    let Kept { raw, value } = Kept::<CreateResponse<'_>>::from_raw(Raw::parse(request).unwrap())?;
    let past: Vec<String> = past.iter().map(Value::to_string).collect();
    let past: Vec<InputItem<'_>> =
        past.iter().map(|item| InputItem::from_raw(Raw::parse(item).unwrap()).unwrap()).collect();
    let Way { dialect, hosting, forwards } = way;
    let seal = &TransparentSeal;
    let target =
        PlanTarget { model: "up", dialect, policy: MEND, seal, images: None, files: None, cache_key: None, hosting };
    let (silent, (Plan { body, notes, .. }, links)) = if forwards {
        (bridge::forward(&value, raw, &past, target)?, bridge::forward_linked(&value, raw, &past, target)?)
    } else {
        (bridge::plan(&value, &past, target)?, bridge::plan_linked(&value, &past, target)?)
    };
    // Who asks gets the very same plan.
    assert_eq!((silent.body, silent.notes), (body.clone(), notes));
    Ok(Linked { body: serde_json::from_slice(&body).unwrap(), links })
}

fn chat(request: &Value, past: &[Value], dialect: &Dialect) -> Linked {
    linked(&request.to_string(), past, Way { dialect, hosting: Hosting::default(), forwards: false }).unwrap()
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"})
}

fn output(id: &str, output: Value) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": output})
}

fn thought(family: &str) -> Value {
    let sealed = format!(r#"glass:{{"v":1,"family":"{family}","text":"Hm."}}"#);
    json!({"type": "reasoning", "summary": [], "encrypted_content": sealed})
}

#[test]
fn items_that_are_not_one_message() {
    let image = json!([{"type": "input_image", "image_url": "data:image/png;base64,AA=="}]);
    let custom = json!({"type": "custom_tool_call", "call_id": "c", "name": "p", "input": "x"});
    let report = |text: &str| json!({"type": "custom_tool_call_output", "call_id": "c", "output": text});
    let summary = SealedSummary {
        after: String::new(),
        text: "They met.".to_owned(),
        stands_for_all: true,
        instructions: "[]".to_owned(),
        kept: "[]".to_owned(),
    };
    let sealed = format!("glass:{}", String::from_utf8(summary.encode()).unwrap());
    let compaction = json!({"type": "compaction", "encrypted_content": sealed});
    let asks = json!({"type": "mcp_approval_request", "id": "r", "server_label": "s", "name": "n", "arguments": "{}"});
    let says = json!({"type": "mcp_approval_response", "approval_request_id": "r", "approve": true});
    let did = json!({"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "n", "arguments": "{}", "output": "done", "approval_request_id": "r"});
    for (name, dialect, past, input, expected) in [
        ("a text", "generic", vec![], json!("Hi"), "input>m[0]"),
        (
            "the past first",
            "generic",
            vec![user("a"), assistant("b")],
            json!([user("c")]),
            "p[0]>m[0] p[1]>m[1] i[0]>m[2]",
        ),
        (
            "text and calls of the assistant are one message, their outputs one each",
            "generic",
            vec![],
            json!([
                user("a"),
                assistant("b"),
                call("1"),
                call("2"),
                output("2", json!("x")),
                output("1", json!("y")),
                user("c")
            ]),
            "i[0]>m[0] i[1]>m[1] i[2]>m[1] i[3]>m[1] i[4]>m[3] i[5]>m[2] i[6]>m[4]",
        ),
        (
            "a call that nobody answered has an answer of ours",
            "generic",
            vec![],
            json!([user("a"), call("1")]),
            "i[0]>m[0] i[1]>m[1]+m[2]",
        ),
        (
            "an output of no call is a message",
            "generic",
            vec![],
            json!([output("9", json!("x")), user("a")]),
            "i[0]>m[0] i[1]>m[1]",
        ),
        (
            "an image in an output is also in the message behind",
            "openai",
            vec![],
            json!([call("1"), output("1", image)]),
            "i[0]>m[0] i[1]>m[1]+m[2]",
        ),
        (
            "all reports of a free-form tool are one result",
            "generic",
            vec![],
            json!([custom, report("one"), report("two")]),
            "i[0]>m[0] i[1]>m[1] i[2]>m[1]",
        ),
        (
            "reasoning goes with what follows it, to whoever thought it",
            "rich",
            vec![],
            json!([user("a"), thought("rich"), call("1"), output("1", json!("x")), thought("other"), assistant("b")]),
            "i[0]>m[0] i[1]>m[1] i[2]>m[1] i[3]>m[2] i[4]! i[5]>m[3]",
        ),
        (
            "and to nobody else",
            "generic",
            vec![],
            json!([user("a"), thought("rich"), assistant("b")]),
            "i[0]>m[0] i[1]! i[2]>m[1]",
        ),
        ("what says nothing is nowhere", "generic", vec![], json!([user("a"), assistant("")]), "i[0]>m[0] i[1]!"),
        (
            "nothing could be sent",
            "generic",
            vec![],
            json!([{"type": "compaction", "encrypted_content": "foreign"}]),
            "i[0]! godex>m[0]",
        ),
        (
            "messages of one role are merged, and the assistant speaks after a tool",
            "strict",
            vec![],
            json!([user("a"), user("b"), call("1"), output("1", json!("x")), user("c")]),
            "i[0]>m[0] i[1]>m[0] i[2]>m[1] i[3]>m[2] i[4]>m[4] godex>m[3]",
        ),
        (
            "a summary has taken the place of what was before",
            "generic",
            vec![user("old"), assistant("older"), compaction],
            json!([user("a")]),
            "p[0]! p[1]! p[2]>m[0] i[0]>m[1]",
        ),
        (
            "an approval and what came of it are told with the call",
            "generic",
            vec![],
            json!([user("a"), asks, says, did]),
            "i[0]>m[0] i[1]>m[1]+m[2] i[2]>m[2] i[3]>m[2]",
        ),
    ] {
        let linked = chat(&json!({"model": "m", "input": input}), &past, &named(dialect));
        assert_eq!(linked.short(), expected, "{name}: {}", linked.body);
    }
}

#[test]
fn instructions_formats_and_tools() {
    let function = |name: &str| json!({"type": "function", "name": name});
    let space = json!({"type": "namespace", "name": "ns", "tools": [function("a"), function("b")]});
    let schema = json!({"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}});
    let allowed = json!({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "g"}]});
    for (name, dialect, request, expected) in [
        ("instructions", "generic", json!({"instructions": "Be.", "input": "a"}), "instructions>m[0] input>m[1]"),
        ("none", "generic", json!({"instructions": "", "input": "a"}), "instructions! input>m[0]"),
        ("a format in words", "strict", json!({"input": "a", "text": schema}), "input>m[1] text.format>m[0]"),
        (
            "a namespace is several tools, a tool that is declared twice is one",
            "generic",
            json!({"input": "a", "tools": [function("f"), space, {"type": "custom", "name": "c"}, function("f")]}),
            "input>m[0] t[0]>t[0] t[1]>t[1]+t[2] t[2]>t[3] t[3]>t[0]",
        ),
        (
            "what the provider lacks is not offered",
            "generic",
            json!({"input": "a", "tools": [{"type": "file_search"}, function("f"), {"type": "smell"}]}),
            "input>m[0] t[0]! t[1]>t[0] t[2]!",
        ),
        (
            "what it has is",
            "rich",
            json!({"input": "a", "tools": [function("f"), {"type": "web_search"}]}),
            "input>m[0] t[0]>t[0] t[1]>t[1]",
        ),
        (
            "tools in the input",
            "generic",
            json!({"input": [{"type": "additional_tools", "tools": [function("g")]}, user("a")], "tools": [function("f")]}),
            "i[0]>t[1] i[1]>m[0] t[0]>t[0]",
        ),
    ] {
        let mut request = request;
        request["model"] = json!("m");
        let linked = chat(&request, &[], &named(dialect));
        assert_eq!(linked.short(), expected, "{name}: {}", linked.body);
    }
    let mut dialect = named("generic");
    dialect.request.tools.choices.clear();
    let request = json!({"model": "m", "input": "a", "tools": [function("f"), function("g")], "tool_choice": allowed});
    for dialect in [dialect, named("generic")] {
        let linked = chat(&request, &[], &dialect);
        let sent = linked.body["tools"].as_array().map_or(0, Vec::len);
        let place = linked.places("tools[1]").into_iter().next().unwrap();
        assert_eq!(place, format!("tools[{}]", sent - 1), "{}", linked.body);
    }
}

#[test]
fn tools_that_godex_runs() {
    let hosting = Hosting { mcp: true, web_search: Some(SearchFunctions { pages: true }), ..Hosting::default() };
    let list = json!({"type": "mcp_list_tools", "server_label": "s", "tools": [{"name": "n", "input_schema": {"type": "object"}}]});
    let request = json!({"model": "m", "input": [list, user("a")], "tools": [
        {"type": "function", "name": "f"}, {"type": "web_search"}, {"type": "mcp", "server_label": "s"}, {"type": "web_search"}]})
    .to_string();
    let dialect = named("generic");
    let chat = linked(&request, &[], Way { dialect: &dialect, hosting, forwards: false }).unwrap();
    assert_eq!(chat.short(), "i[0]>t[4] i[1]>m[0] t[0]>t[0] t[1]>t[1]+t[2]+t[3] t[2]>t[4] t[3]>t[1]+t[2]+t[3]");
    let native = linked(&request, &[], Way { dialect: &dialect, hosting, forwards: true }).unwrap();
    assert_eq!(native.short(), "i[0]! i[1]>i[0] t[0]>t[0] t[1]>t[1]+t[2]+t[3] t[2]>t[4] t[3]!");

    // A server that nobody has asked yet is not left out: it is asked when the request is made.
    let unlisted =
        json!({"model": "m", "input": [user("a")], "tools": [{"type": "mcp", "server_label": "s"}]}).to_string();
    let hidden = request.replace("\"input\":", "\"tool_choice\":\"none\",\"input\":");
    for forwards in [false, true] {
        let hosting = Hosting { lists_pending: true, ..hosting };
        let way = Way { dialect: &dialect, hosting, forwards };
        let found = linked(&unlisted, &[], way).unwrap();
        let server = found.links.iter().find(|link| link.item == "tools[0]").unwrap();
        assert!(server.to.is_empty() && server.left_out.is_none() && server.by_godex.is_some(), "{server:?}");
        let found = linked(&hidden, &[], way).unwrap();
        assert!(found.links.iter().all(|link| link.by_godex.is_none()), "{:?}", found.links);
    }
}

#[test]
fn what_is_forwarded() {
    let dialect = Dialect::default();
    let ran = json!({"type": "web_search_call", "id": "ws", "action": {"type": "search", "query": "q"}, "godex_output": {"call_id": "c", "output": "found"}});
    let request = json!({"model": "m", "instructions": "Be.", "input": [user("a"), thought("other"), ran, user("b")],
        "tools": [{"type": "web_search"}]});
    let way = Way { dialect: &dialect, hosting: Hosting::default(), forwards: true };
    let found = linked(&request.to_string(), &[user("old")], way).unwrap();
    assert_eq!(found.short(), "instructions>instructions p[0]>i[0] i[0]>i[1] i[1]! i[2]>i[2]+i[3] i[3]>i[4] t[0]>t[0]");
    let text = linked(r#"{"model":"m","input":"Hi"}"#, &[], way).unwrap();
    assert_eq!(text.short(), "input>i[0]");
}

#[test]
fn what_is_refused_is_refused_in_the_same_words() {
    let request = r#"{"model":"m","input":[{"role":"critic","content":"a"}]}"#;
    let value = CreateResponse::from_raw(Raw::parse(request).unwrap()).unwrap();
    let dialect = Dialect::default();
    let (policy, seal, hosting) = (Policy::default(), &TransparentSeal, Hosting::default());
    let target = PlanTarget {
        model: "up",
        dialect: &dialect,
        policy,
        seal,
        images: None,
        files: None,
        cache_key: None,
        hosting,
    };
    let (silent, linked) = (bridge::plan(&value, &[], target), bridge::plan_linked(&value, &[], target));
    assert_eq!(silent.unwrap_err().to_string(), linked.unwrap_err().to_string());
}

/// The item with a word in everything that it says that no other has.
fn marked(mut item: Value, index: usize) -> Value {
    let mark = format!("MARK{index}END");
    for member in ["content", "output", "input", "code", "result"] {
        match &mut item[member] {
            Value::String(text) => text.push_str(&mark),
            Value::Array(parts) => {
                for part in parts {
                    if let Some(Value::String(text)) = part.get_mut("text") {
                        text.push_str(&mark);
                    }
                }
            }
            Value::Null => {
                item.as_object_mut().map(|members| members.remove(member));
            }
            _ => {}
        }
    }
    if item["type"] == "function_call" || item["type"] == "mcp_call" {
        item["arguments"] = json!(format!(r#"{{"m":"{mark}"}}"#));
    }
    item
}

/// Every place that has a mark is linked to the item of that mark; every item has a link; every message has an origin.
fn check(linked: &Linked, items: &[Value], list: &str) -> Result<(), TestCaseError> {
    let sent = linked.body[list].as_array().cloned().unwrap_or_default();
    let mut origins: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for link in &linked.links {
        prop_assert_eq!(link.to.is_empty(), link.left_out.is_some() != link.by_godex.is_some(), "{:?}", link);
        for place in &link.to {
            let (of, index) = place.split_once('[').unwrap_or((place, ""));
            let index: usize = index.trim_end_matches(']').parse().unwrap_or(usize::MAX);
            prop_assert!(linked.body[of].get(index).is_some() || of == "instructions", "{}: {}", place, linked.body);
            if of == list {
                origins.entry(index).or_default().push(&link.item);
            }
        }
    }
    for (index, message) in sent.iter().enumerate() {
        prop_assert!(origins.contains_key(&index), "{}[{}] comes from nowhere: {}", list, index, message);
        let text = message.to_string();
        for at in 0..items.len() {
            if text.contains(&format!("MARK{at}END")) {
                let places = linked.places(&format!("input[{at}]"));
                prop_assert!(places.contains(&format!("{list}[{index}]")), "{}: {:?}\n{}", at, places, linked.body);
            }
        }
    }
    for (at, item) in items.iter().enumerate() {
        let name = format!("input[{at}]");
        let count = linked.links.iter().filter(|link| link.item == name).count();
        prop_assert_eq!(count, 1, "{}", name);
        // A message of the user is where it is linked to, and nowhere else.
        let places = linked.places(&name);
        if item["role"] == "user" && item["content"].is_string() && item.get("type").is_none() {
            prop_assert_eq!(places.len(), 1, "{}", item);
            let there = sent.iter().filter(|message| message.to_string().contains(&format!("MARK{at}END"))).count();
            prop_assert_eq!(there, 1, "{}", item);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_message_has_an_origin_and_every_item_an_end(items in items()) {
        let items: Vec<Value> = items.into_iter().enumerate().map(|(index, item)| marked(item, index)).collect();
        let hosting = Hosting { mcp: true, web_search: Some(SearchFunctions { pages: true }), ..Hosting::default() };
        let text = json!({"model": "m", "instructions": "Be.", "input": items, "tools": [
            {"type": "web_search"}, {"type": "function", "name": "f"}, {"type": "mcp", "server_label": "s"}],
            "text": {"format": {"type": "json_object"}}}).to_string();
        for (_, dialect) in all() {
            for hosting in [hosting, Hosting::default()] {
                // Some refuse what they lack; what is refused has no links.
                if let Ok(linked) = linked(&text, &[], Way { dialect: &dialect, hosting, forwards: false }) {
                    check(&linked, &items, "messages")?;
                }
            }
        }
        let dialect = Dialect::default();
        for hosting in [hosting, Hosting::default()] {
            if let Ok(linked) = linked(&text, &[], Way { dialect: &dialect, hosting, forwards: true }) {
                check(&linked, &items, "input")?;
            }
        }
    }
}
