//! What a provider caches is a prefix: over a long session of Codex each body begins with nearly all of the one before,
//! whatever the dialect.

use bridge::{Dialect, Lacking, PlanTarget};
use serde_json::{Value, json};
use testkit::{Offer, codex_session};
use wire::json::{FromRaw, Raw};
use wire::responses::CreateResponse;

use crate::dialects::all;
use crate::marks::without_marks;
use crate::run::{MEND, TransparentSeal};

const TURNS: usize = 60;

/// Every dialect, none of which refuses what Codex offers.
fn willing() -> Vec<(String, Dialect)> {
    let mut dialects = all();
    for (_, dialect) in &mut dialects {
        dialect.request.tools.lacking_hosted = Lacking::Degrade;
        dialect.request.tools.max = None;
        dialect.family = "one".to_owned();
    }
    dialects
}

fn read(requests: &[String]) -> Vec<CreateResponse<'_>> {
    requests.iter().map(|request| CreateResponse::from_raw(Raw::ours(request)).unwrap()).collect()
}

fn bodies(requests: &[CreateResponse<'_>], dialect: &Dialect) -> Vec<Vec<u8>> {
    let target = PlanTarget {
        model: "up",
        dialect,
        policy: MEND,
        images: None,
        files: None,
        cache_key: None,
        seal: &TransparentSeal,
        hosting: bridge::Hosting::default(),
    };
    let body = |request| {
        // Marks move with the end of the conversation, and only they.
        let (body, marks) = without_marks(&bridge::plan(request, &[], target).unwrap().body);
        assert!(marks <= 4, "{marks} marks");
        body
    };
    requests.iter().map(body).collect()
}

/// How many bytes both begin with.
fn common(one: &[u8], other: &[u8]) -> usize {
    const BLOCK: usize = 1024;
    let same = one.chunks(BLOCK).zip(other.chunks(BLOCK)).take_while(|(a, b)| a == b).count() * BLOCK;
    let at = same.min(one.len()).min(other.len());
    at + one[at..].iter().zip(&other[at..]).take_while(|(a, b)| a == b).count()
}

/// The requests of a session whose thoughts are all of one family.
fn session(offer: Offer) -> Vec<String> {
    let seal = |text: &str| format!("glass:{}", json!({"v": 1, "family": "one", "text": text}));
    codex_session(TURNS, offer, &seal).iter().map(Value::to_string).collect()
}

/// What is lost of each body is what closes it, but for the turns in which tools come: they are before the messages, in
/// what is sent and in what a model is shown.
fn repeats_its_prefix(offer: Offer, loads: usize) {
    /// `]}` after the last message; a message that is merged with the next one has more that closes it.
    const CLOSING: usize = 200;
    let requests = session(offer);
    assert!(requests.len() > 2 * TURNS);
    let requests = read(&requests);
    for (name, dialect) in willing() {
        let bodies = bodies(&requests, &dialect);
        let (mut shared, mut of, mut breaks) = (0, 0, Vec::new());
        for (at, pair) in bodies.windows(2).enumerate() {
            let common = common(&pair[0], &pair[1]);
            (shared, of) = (shared + common, of + pair[0].len());
            if common + CLOSING < pair[0].len() {
                let around = |body: &[u8]| {
                    let (from, to) = (common.saturating_sub(60), (common + 80).min(body.len()));
                    String::from_utf8_lossy(&body[from..to]).into_owned()
                };
                breaks.push(format!("request {at} at {common}\n{}\n{}", around(&pair[0]), around(&pair[1])));
            }
        }
        assert!(breaks.len() <= loads, "{name}: {}", breaks.join("\n"));
        assert!(shared * 100 >= of * 95, "{name}: {shared} of {of} bytes");
    }
}

#[test]
fn a_codex_session_repeats_its_prefix_on_every_dialect() {
    repeats_its_prefix(Offer::Listed, 0);
}

#[test]
fn so_does_one_that_searches_for_tools() {
    repeats_its_prefix(Offer::Searched, 3);
}

#[test]
fn so_does_one_whose_tools_are_in_its_input() {
    repeats_its_prefix(Offer::Additional, 1);
}

/// Each is a history, what a client adds to it, and whether it brings tools: then the tools go on as they were, else the
/// messages do.
#[test]
fn what_comes_later_changes_nothing_before_it() {
    let space = |tools: &[&str]| {
        let tools: Vec<Value> = tools.iter().map(|name| json!({"type": "function", "name": name})).collect();
        json!({"type": "namespace", "name": "ns", "description": "What it is for.", "tools": tools})
    };
    let user = json!({"role": "user", "content": "Go on."});
    let search = |id: &str, tools: &[&str]| {
        [
            json!({"type": "tool_search_call", "call_id": id, "execution": "client", "arguments": {"query": "q"}}),
            json!({"type": "tool_search_output", "call_id": id, "execution": "client", "tools": [space(tools)]}),
        ]
    };
    let script = json!({"type": "custom_tool_call", "call_id": "c", "name": "exec", "input": "x"});
    let notice = |text: &str| json!({"type": "custom_tool_call_output", "call_id": "c", "output": text});
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "Late."});
    let developer = json!({"role": "developer", "content": [{"type": "input_text", "text": "From now on, be brief."}]});
    let additional = |tools: &[&str]| json!({"type": "additional_tools", "role": "developer", "tools": [space(tools)]});
    let said = json!({"role": "assistant", "content": "So far."});
    let cases = [
        (vec![user.clone()], vec![said.clone(), developer], false),
        (vec![user.clone(), script, notice("a"), notice("b")], vec![said.clone(), notice("c")], false),
        ([vec![user.clone()], search("s", &["a", "b"]).to_vec()].concat(), search("t", &["c", "a"]).to_vec(), true),
        ([vec![user.clone()], search("s", &["a", "b"]).to_vec()].concat(), search("t", &["b", "a"]).to_vec(), false),
        // The model has gone on without the result.
        (vec![user.clone(), call("a"), user.clone()], vec![said.clone(), output("a")], false),
        (vec![user.clone(), call("a"), call("b"), output("b")], vec![said.clone(), output("a")], false),
        // Ids that are used again.
        (vec![user.clone(), call("a"), user.clone()], vec![call("a"), output("a"), said.clone()], false),
        (vec![user.clone(), call("a"), user.clone(), call("a"), output("a")], vec![said.clone(), output("a")], false),
        (vec![user.clone(), call("a"), output("a"), output("a")], vec![said.clone(), call("a"), output("a")], false),
        (vec![additional(&["a"]), user.clone()], vec![said, user, additional(&["b", "a"])], true),
    ];
    let part = |body: &[u8], name: &str| -> Vec<u8> {
        let body: &str = str::from_utf8(body).unwrap();
        let list = Raw::parse(body).unwrap().get(name).map_or("[]", Raw::as_str);
        list.as_bytes()[..list.len() - 1].to_vec()
    };
    for (history, more, brings_tools) in cases {
        for (name, dialect) in willing() {
            let requests = [history.clone(), [history.clone(), more.clone()].concat()];
            let requests = requests.map(|input| json!({"model": "m", "input": input}).to_string());
            let [before, after] = &bodies(&read(&requests), &dialect)[..] else { panic!("two") };
            for (member, grows) in [("tools", brings_tools), ("messages", true)] {
                let (before, after) = (part(before, member), part(after, member));
                let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                // Where messages of one role are merged, the last one goes on inside.
                let known = if member == "messages" { &before[..before.len() - 2] } else { &before[..] };
                assert!(after.starts_with(known), "{name} {member}\n{}\n{}", shown(&before), shown(&after));
                assert_eq!(after.len() > before.len(), grows, "{name} {member}\n{}\n{}", shown(&before), shown(&after));
            }
        }
    }
}
