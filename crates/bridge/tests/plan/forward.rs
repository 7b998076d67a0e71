//! Requests to upstreams that speak the Responses API themselves.

use bridge::{
    DeveloperRole, Dialect, Effort, Encrypted, ItemIds, Parameter, PlanTarget, Policy, Replay, Seal, SealedReasoning,
    ThoughtPlace,
};
use serde_json::{Value, json};
use wire::json::{FromRaw, Invalid, Kept, Raw};
use wire::responses::{CreateResponse, InputItem};

use crate::run::TransparentSeal;

pub(crate) struct Forwarded {
    pub(crate) text: String,
    pub(crate) body: Value,
    pub(crate) notes: Vec<String>,
    pub(crate) context: bridge::AnswerContext,
}

pub(crate) fn forward(request: &str, past: &[Value], dialect: &Dialect, strict: bool) -> Result<Forwarded, Invalid> {
    let policy = Policy { strict, repair_history: false };
    forwarded(request, past, dialect, policy, bridge::Hosting::default())
}

/// With tools that godex runs.
pub(crate) fn forward_hosted(
    request: &str,
    past: &[Value],
    dialect: &Dialect,
    hosting: bridge::Hosting,
) -> Result<Forwarded, Invalid> {
    forwarded(request, past, dialect, Policy::default(), hosting)
}

fn forwarded(
    request: &str,
    past: &[Value],
    dialect: &Dialect,
    policy: Policy,
    hosting: bridge::Hosting,
) -> Result<Forwarded, Invalid> {
    let Kept { raw, value } = Kept::<CreateResponse<'_>>::from_raw(Raw::parse(request).unwrap())?;
    let past: Vec<String> = past.iter().map(Value::to_string).collect();
    let past: Vec<InputItem<'_>> =
        past.iter().map(|item| InputItem::from_raw(Raw::parse(item).unwrap()).unwrap()).collect();
    let plan = bridge::forward(
        &value,
        raw,
        &past,
        PlanTarget {
            model: "up",
            dialect,
            policy,
            seal: &TransparentSeal,
            images: None,
            files: None,
            cache_key: None,
            hosting,
        },
    )?;
    let text = String::from_utf8(plan.body).unwrap();
    let body = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let notes = plan.notes.iter().map(ToString::to_string).collect();
    Ok(Forwarded { text, body, notes, context: plan.context })
}

fn dialect() -> Dialect {
    Dialect { developer_role: DeveloperRole::Developer, ..Dialect::default() }
}

#[test]
fn what_is_not_ours_goes_as_it_is() {
    let request = r#"{"model":"client","temperature":0.70,"top_p":1e0,"tools":[{"type":"custom","name":"p","format":{"type":"grammar","syntax":"lark","definition":"s"}}],
        "tool_choice":{"type":"custom","name":"p"},"text":{"verbosity":"low"},"reasoning":{"effort":"high","summary":"auto"},
        "input":[{"type":"message","role":"user","content":"h\u00e9","x":{"b":1,"a":2.50}},{"role":"developer","content":"d"}],
        "instructions":"Be brief.","previous_response_id":"resp_1","store":true,"stream":true,"metadata":{"a":"b"},
        "client_metadata":{"c":"d"},"stream_options":{"include_obfuscation":false},"include":["message.output_text.logprobs","reasoning.encrypted_content"],
        "max_output_tokens":32,"user":null,"prompt_cache_key":"k"}"#;
    let sent = forward(
        request,
        &[json!({"type": "message", "id": "msg_1", "role": "user", "content": "old"})],
        &dialect(),
        true,
    )
    .unwrap();
    let expected = r#"{"model":"up","temperature":0.70,"top_p":1e0,"tools":[{"type":"custom","name":"p","format":{"type":"grammar","syntax":"lark","definition":"s"}}],"tool_choice":{"type":"custom","name":"p"},"text":{"verbosity":"low"},"reasoning":{"effort":"high","summary":"auto"},"instructions":"Be brief.","max_output_tokens":32,"prompt_cache_key":"k","include":["message.output_text.logprobs"],"store":false,"stream":true,"input":[{"type":"message","role":"user","content":"old"},{"type":"message","role":"user","content":"h\u00e9","x":{"b":1,"a":2.50}},{"role":"developer","content":"d"}]}"#;
    assert_eq!(sent.text, expected);
    assert_eq!(sent.notes, Vec::<String>::new());
    assert!(sent.context.logprobs && matches!(sent.context.wire, bridge::AnswerWire::Responses(_)));
}

/// The server says by which name a provider knows a cache; a client that names none gets none.
#[test]
fn a_cache_has_the_name_that_the_server_gives_it() {
    let dialect = dialect();
    for (key, ours, expected) in
        [(Some("mine"), None, Some("mine")), (Some("mine"), Some("ours"), Some("ours")), (None, Some("ours"), None)]
    {
        let mut request = json!({"model": "m", "input": "x"});
        if let Some(key) = key {
            request["prompt_cache_key"] = json!(key);
        }
        let request = request.to_string();
        let Kept { raw, value } = Kept::<CreateResponse<'_>>::from_raw(Raw::parse(&request).unwrap()).unwrap();
        let target = PlanTarget {
            model: "up",
            dialect: &dialect,
            policy: Policy::default(),
            seal: &TransparentSeal,
            images: None,
            files: None,
            cache_key: ours,
            hosting: bridge::Hosting::default(),
        };
        let bodies = [bridge::forward(&value, raw, &[], target), bridge::plan(&value, &[], target)];
        for plan in bodies {
            let body: Value = serde_json::from_slice(&plan.unwrap().body).unwrap();
            assert_eq!(body.get("prompt_cache_key").and_then(Value::as_str), expected, "{body}");
        }
    }
}

#[test]
fn what_a_spec_drops_or_renames() {
    let mut dialect = Dialect { developer_role: DeveloperRole::User, ..Dialect::default() };
    dialect.drop = vec![Parameter::Temperature, Parameter::Verbosity, Parameter::ReasoningEffort, Parameter::User];
    dialect.request.native.encrypted = true;
    let request = json!({
        "model": "m", "input": [{"role": "developer", "content": "d"}, {"role": "user", "content": "u"}], "temperature": 1,
        "text": {"verbosity": "low", "format": {"type": "text"}}, "reasoning": {"effort": "low", "summary": "auto"},
        "user": "u", "unheard_of": 1,
    });
    let sent = forward(&request.to_string(), &[], &dialect, false).unwrap();
    assert_eq!(sent.body["input"][0]["role"], "user");
    assert_eq!(sent.body["text"], json!({"format": {"type": "text"}}));
    assert_eq!(sent.body["reasoning"], json!({"summary": "auto"}));
    assert_eq!(sent.body["include"], json!(["reasoning.encrypted_content"]));
    assert!(["temperature", "user", "unheard_of"].iter().all(|name| sent.body.get(name).is_none()), "{}", sent.text);
    let mut notes = sent.notes;
    notes.sort();
    let expected = [
        "reasoning.effort=ignored",
        "temperature=ignored",
        "text.verbosity=ignored",
        "unheard_of=ignored",
        "user=ignored",
    ];
    assert_eq!(notes, expected);
    let refused = forward(&request.to_string(), &[], &dialect, true).err().unwrap();
    assert_eq!(refused.code().name(), "unsupported_parameter");
}

#[test]
fn a_text_is_an_item_and_bad_values_are_refused() {
    let sent = forward(r#"{"model":"m","input":"Hi \u0041"}"#, &[], &dialect(), true).unwrap();
    assert!(
        sent.text.ends_with(r#""stream":false,"input":[{"type":"message","role":"user","content":"Hi \u0041"}]}"#),
        "{}",
        sent.text
    );
    for (request, path) in [
        (r#"{"model":"m","input":"x","temperature":3}"#, "temperature"),
        (
            r#"{"model":"m","input":"x","text":{"format":{"type":"json_schema","name":"no good","schema":{}}}}"#,
            "text.format.name",
        ),
    ] {
        assert_eq!(forward(request, &[], &dialect(), false).err().unwrap().path, path);
    }
}

fn sealed(family: &str, native: Option<&str>) -> String {
    let native = native.map(|content| Encrypted { id: "rs_up".to_owned(), content: content.to_owned() });
    let (family, text, place) = (family.to_owned(), "raw".to_owned(), ThoughtPlace::default());
    TransparentSeal.seal(&SealedReasoning { family, text, replay_data: None, native, place }.encode())
}

/// Reasoning goes to those who thought it, in the form in which they take it, and to nobody else.
#[test]
fn reasoning_goes_home() {
    let content = json!([{"type": "reasoning_text", "text": "raw"}]);
    let item = |encrypted: Value, content: &Value| json!({"type": "reasoning", "id": "rs_ours", "summary": [], "content": content, "encrypted_content": encrypted});
    let home = json!({"type": "reasoning", "id": "rs_up", "summary": [], "encrypted_content": "gAAA"});
    let plain = json!({"type": "reasoning", "id": "rs_ours", "summary": [], "content": content});
    let rows = [
        (item(json!(sealed("f", Some("gAAA"))), &content), Replay::Never, Some(&home)),
        (item(json!(sealed("other", Some("gAAA"))), &content), Replay::Always, None),
        (item(json!(sealed("f", None)), &content), Replay::Never, None),
        (item(json!(sealed("f", None)), &content), Replay::Always, Some(&plain)),
        (item(json!("gFOREIGN"), &content), Replay::Always, Some(&plain)),
        (item(json!("gFOREIGN"), &json!([])), Replay::Always, None),
        (item(json!(null), &content), Replay::Tools, Some(&plain)),
    ];
    for (given, replay, expected) in rows {
        let mut dialect = Dialect { family: "f".to_owned(), ..dialect() };
        dialect.request.reasoning.replay = replay;
        let request = json!({"model": "m", "input": [given, {"role": "user", "content": "u"}]}).to_string();
        let sent = forward(&request, &[], &dialect, false).unwrap();
        let input = sent.body["input"].as_array().unwrap();
        let found = (input.len() == 2).then(|| &input[0]);
        assert_eq!(found, expected, "{request} {replay:?}");
        assert!(!sent.text.contains("glass:") && !sent.text.contains("gFOREIGN"), "{}", sent.text);
        assert_eq!(sent.notes.is_empty(), expected.is_some() && !request.contains("gFOREIGN"), "{:?}", sent.notes);
    }
}

#[test]
fn ids_go_where_they_mean_something() {
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"});
    let mut dialect = dialect();
    for (item_ids, id) in [(ItemIds::Ours, json!(null)), (ItemIds::Theirs, json!("fc_1"))] {
        dialect.request.native.item_ids = item_ids;
        let sent = forward(r#"{"model":"m","input":[]}"#, std::slice::from_ref(&call), &dialect, false).unwrap();
        assert_eq!((&sent.body["input"][0]["id"], &sent.body["input"][0]["call_id"]), (&id, &json!("c")));
    }
}

/// The next turn's bytes extend this turn's, so that prompt caches hit.
#[test]
fn the_next_turn_extends_this_one() {
    let items: Vec<Value> =
        (0..6).map(|n| json!({"type": "message", "id": format!("m{n}"), "role": "user", "content": "x"})).collect();
    let turn = |count: usize| {
        let request = json!({"model": "m", "instructions": "i", "input": [items[count]]}).to_string();
        forward(&request, &items[..count], &dialect(), false).unwrap().text
    };
    for count in 1..5 {
        let (this, next) = (turn(count), turn(count + 1));
        assert!(next.starts_with(this.strip_suffix("]}").unwrap()), "{this}\n{next}");
    }
}

#[test]
fn efforts_are_those_that_the_model_has() {
    let mut dialect = Dialect::default();
    let word = |effort: Effort| (effort, effort.name().to_owned());
    dialect.request.reasoning.ladder = vec![word(Effort::Low), word(Effort::High)];
    for (effort, sent) in [("none", "low"), ("low", "low"), ("medium", "low"), ("max", "high"), ("heroic", "heroic")] {
        let request = json!({"model": "m", "input": "Hi", "reasoning": {"summary": "auto", "effort": effort}});
        let planned = forward(&request.to_string(), &[], &dialect, false).unwrap();
        assert_eq!(planned.body["reasoning"], json!({"summary": "auto", "effort": sent}), "{effort}");
        assert_eq!(planned.notes.len(), usize::from(effort != sent), "{effort}: {:?}", planned.notes);
    }
    let planned =
        forward(r#"{"model":"m","input":"Hi","reasoning":{"summary":"auto"}}"#, &[], &dialect, false).unwrap();
    assert_eq!(planned.body["reasoning"], json!({"summary": "auto"}));
}
