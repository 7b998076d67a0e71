//! Every form of approval on every road by which its request can be in the context.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::{Value, json};
use store::Tenant;
use wire::id::Ids;
use wire::json::{FromRaw, Kept, Raw};
use wire::responses::{CreateResponse, Input};

use super::*;
use crate::account::Account;
use crate::app::App;
use crate::caller::Caller;
use crate::config::{Overrides, Sources, load};
use crate::session::{End, Past};

const ARGUMENTS: &str = r#"{"path":"/a \"b\""}"#;

async fn app() -> Arc<App> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("godex.yaml");
    let provider = "providers: {up: {spec: openai-compatible, endpoint: {base_url: 'http://127.0.0.1:9/v1'}}}";
    std::fs::write(&path, format!("session: {{backend: memory, seal_key: '{}'}}\n{provider}\n", "k".repeat(32)))
        .unwrap();
    let overrides = Overrides { port: Some(0), ..Overrides::default() };
    let sources = Sources { config_path: Some(&path), cwd: folder.path(), home: None, env: &|_| None, overrides };
    let config = load(&sources).unwrap_or_else(|problems| panic!("{problems}"));
    Arc::new(App::new(config).await.unwrap())
}

fn context(app: &Arc<App>) -> RequestContext {
    let mut ids = clock::ids();
    let id = ids.make(IdKind::Request);
    let headers = HeaderMap::new();
    RequestContext {
        app: Arc::clone(app),
        snapshot: app.snapshot(),
        caller: Caller::new(None, &headers),
        account: Account::open(&Method::POST, "/v1/responses", &headers, &id),
        ids,
    }
}

fn fresh() -> Id {
    clock::ids().make(IdKind::McpApprovalRequest)
}

fn made(seal: &TenantSeal) -> String {
    make(seal, &fresh(), "files", "delete", ARGUMENTS).to_string()
}

fn request_item(id: &str) -> Value {
    json!({"type": "mcp_approval_request", "id": id, "server_label": "files", "name": "delete", "arguments": ARGUMENTS})
}

fn answer_item(id: &str, approve: bool) -> Value {
    json!({"type": "mcp_approval_response", "approval_request_id": id, "approve": approve, "reason": "because"})
}

fn call_item(id: &str) -> Value {
    json!({"type": "mcp_call", "id": "mcp_1", "server_label": "files", "name": "delete", "arguments": ARGUMENTS,
        "output": "gone", "approval_request_id": id})
}

fn parsed(texts: &[String]) -> Vec<InputItem<'_>> {
    texts.iter().map(|text| InputItem::from_raw(Raw::parse(text).unwrap()).unwrap()).collect()
}

/// What comes of a context, in short: the ids that are to run, or the domain code and a word of the message.
fn found(seal: &TenantSeal, past: &[Value], input: &[Value], mend: bool) -> Result<Vec<Approved>, (String, String)> {
    let (past, input): (Vec<String>, Vec<String>) =
        (past.iter().map(Value::to_string).collect(), input.iter().map(Value::to_string).collect());
    let (past, input) = (parsed(&past), parsed(&input));
    pending(seal, &past, &input, mend).map_err(|error| {
        assert_eq!((error.status.as_u16(), error.param.as_deref()), (400, Some("input")));
        (error.code.domain().to_owned(), error.message.to_string())
    })
}

#[tokio::test]
async fn an_id_is_of_its_call_and_its_tenant() {
    let app = app().await;
    let seal = app.runtime.seal(&context(&app).caller);
    let fresh = fresh();
    let id = make(&seal, &fresh, "files", "delete", ARGUMENTS);
    assert_eq!(id.as_str().len(), "mcpr_".len() + 48);
    assert!(Ids::of(id.as_str(), 0).is_some(), "of the form of all ids");
    assert!(clock::unix_millis() - moment(id.as_str()) < 60_000);
    assert_ne!(make(&seal, &self::fresh(), "files", "delete", ARGUMENTS), id, "no two are the same");
    assert!(is_ours(&seal, id.as_str(), "files", "delete", ARGUMENTS));
    for (label, tool, arguments) in [
        ("file", "sdelete", ARGUMENTS),
        ("files", "delete", "{}"),
        ("files", "read", ARGUMENTS),
        ("other", "delete", ARGUMENTS),
        ("files", "delete", ""),
    ] {
        assert!(!is_ours(&seal, id.as_str(), label, tool, arguments), "{label} {tool} {arguments}");
    }
    for at in "mcpr_".len()..id.as_str().len() {
        let mut changed = id.as_str().to_owned().into_bytes();
        changed[at] = if changed[at] == b'0' { b'1' } else { b'0' };
        let changed = String::from_utf8(changed).unwrap();
        assert!(!is_ours(&seal, &changed, "files", "delete", ARGUMENTS), "{changed}");
    }
    for odd in ["", "mcpr_", "mcpr_1", &id.as_str()[1..], &format!("{id}0"), &id.as_str().to_uppercase()] {
        assert!(!is_ours(&seal, odd, "files", "delete", ARGUMENTS), "{odd}");
    }
    let other = Caller::earlier(Tenant::new("other"), None, context(&app).caller.client());
    assert!(!is_ours(&app.runtime.seal(&other), id.as_str(), "files", "delete", ARGUMENTS), "another tenant");
}

/// What is in the context, whether what answers no request is left alone, and what comes of it.
type Case = (&'static str, Vec<Value>, Vec<Value>, bool, Result<usize, &'static str>);

#[tokio::test]
async fn what_is_approved_runs_and_nothing_else() {
    let app = app().await;
    let seal = app.runtime.seal(&context(&app).caller);
    let theirs = app.runtime.seal(&Caller::earlier(Tenant::new("other"), None, context(&app).caller.client()));
    let (a, b, foreign) = (made(&seal), made(&seal), made(&theirs));
    let old = (clock::unix_millis()) - 91 * 24 * 60 * 60 * 1000;
    let old = make_at(old, &seal, &fresh(), "files", "delete", ARGUMENTS).to_string();
    let (request, yes, no) = (request_item(&a), answer_item(&a, true), answer_item(&a, false));
    let changed = |name: &str, value: &str| {
        let mut item = request_item(&a);
        item[name] = json!(value);
        item
    };
    let mut without = request_item(&a);
    without.as_object_mut().unwrap().remove("arguments");
    let answered_nothing = json!({"type": "mcp_approval_response", "approval_request_id": a});
    let nobody = json!({"type": "mcp_approval_response", "approve": true});
    let cases: Vec<Case> = vec![
        ("absent", vec![request.clone()], vec![], false, Ok(0)),
        ("approved, held by the client", vec![], vec![request.clone(), yes.clone()], false, Ok(1)),
        ("approved before it is asked", vec![], vec![yes.clone(), request.clone()], false, Ok(1)),
        ("approved, stored", vec![request.clone()], vec![yes.clone()], false, Ok(1)),
        ("approved, in both", vec![request.clone()], vec![request.clone(), yes.clone()], false, Ok(1)),
        (
            "two of them",
            vec![request.clone(), request_item(&b)],
            vec![answer_item(&b, true), yes.clone()],
            false,
            Ok(2),
        ),
        (
            "one of two",
            vec![request.clone(), request_item(&b)],
            vec![yes.clone(), answer_item(&b, false)],
            false,
            Ok(1),
        ),
        ("denied", vec![request.clone()], vec![no.clone()], false, Ok(0)),
        ("neither", vec![request.clone()], vec![answered_nothing], false, Ok(0)),
        ("approved in the past", vec![request.clone(), yes.clone()], vec![], false, Ok(0)),
        ("denied once, approved now", vec![request.clone(), no.clone()], vec![yes.clone()], false, Ok(1)),
        ("run before", vec![request.clone(), call_item(&a)], vec![yes.clone()], false, Ok(0)),
        ("run, as the client tells", vec![], vec![request.clone(), yes.clone(), call_item(&a)], false, Ok(0)),
        ("another was run", vec![request.clone(), call_item(&b)], vec![yes.clone()], false, Ok(1)),
        ("twice", vec![request.clone()], vec![yes.clone(), yes.clone()], false, Err("more than one")),
        ("yes and no", vec![request.clone()], vec![yes.clone(), no.clone()], false, Err("more than one")),
        ("unknown", vec![], vec![yes.clone()], false, Err("weren't passed as input")),
        ("denied and unknown", vec![request_item(&b)], vec![no.clone()], false, Err("weren't passed as input")),
        ("of nothing", vec![request.clone()], vec![nobody], false, Err("weren't passed as input")),
        ("unknown, mended", vec![], vec![yes.clone(), answer_item("x", false)], true, Ok(0)),
        (
            "another tenant's",
            vec![request_item(&foreign)],
            vec![answer_item(&foreign, true)],
            false,
            Err("not made by"),
        ),
        ("another tenant's, denied", vec![request_item(&foreign)], vec![answer_item(&foreign, false)], false, Ok(0)),
        (
            "of another's making",
            vec![request_item("mcpr_1")],
            vec![answer_item("mcpr_1", true)],
            false,
            Err("not made by"),
        ),
        (
            "of another's making, run",
            vec![request_item("m"), call_item("m")],
            vec![answer_item("m", true)],
            false,
            Ok(0),
        ),
        ("other arguments", vec![changed("arguments", "{}")], vec![yes.clone()], false, Err("not made by")),
        ("other name", vec![changed("name", "read")], vec![yes.clone()], false, Err("not made by")),
        ("other server", vec![changed("server_label", "x")], vec![yes.clone()], false, Err("not made by")),
        ("no arguments", vec![without], vec![yes.clone()], true, Err("not made by")),
        ("a changed copy", vec![request.clone()], vec![changed("name", "x"), yes.clone()], false, Err("not made by")),
        ("too old", vec![request_item(&old)], vec![answer_item(&old, true)], false, Err("older than the 90 days")),
    ];
    for (name, past, input, mend, expected) in cases {
        match (found(&seal, &past, &input, mend), expected) {
            (Ok(approved), Ok(count)) => assert_eq!(approved.len(), count, "{name}"),
            (Err((code, message)), Err(words)) => {
                assert_eq!(code, "mcp_approval_invalid", "{name}");
                assert!(message.contains(words), "{name}: {message}");
            }
            (found, expected) => panic!("{name}: {found:?}, not {expected:?}"),
        }
    }
    let order = found(&seal, &[request, request_item(&b)], &[answer_item(&b, true), yes], false).unwrap();
    assert_eq!(
        order.iter().map(|approved| &approved.request_id).collect::<Vec<_>>(),
        [&b, &a],
        "as they were approved"
    );
    let Approved { server_label, name, arguments, call_id, .. } = &order[0];
    assert_eq!((&**server_label, &**name, &**arguments, call_id), ("files", "delete", ARGUMENTS, &None));
}

/// A response that asks for an approval: its id, that of the request, and what a connection would remember of it. It is
/// stored, unless the request says otherwise.
async fn asking(app: &Arc<App>, more: Value) -> (String, String, Vec<store::Item>) {
    let context = context(app);
    let mut ids = context.ids.clone();
    let (response, request_id) = (ids.make(IdKind::Response), made(&app.runtime.seal(&context.caller)));
    let mut body = more;
    body["model"] = json!("m");
    body["input"] = json!("Delete it.");
    let bytes = Bytes::from(body.to_string());
    let request: CreateResponse<'_> = crate::body::parse(&bytes).unwrap();
    let mut past = context.session().context(&request, Past::Stored).await.unwrap();
    let (record, unstored) = past.record(&request, &bytes, &mut ids, true, None);
    let object = json!({"id": response.as_str(), "status": "completed", "output": [request_item(&request_id)]});
    let kept = vec![(request_id.clone(), r#"{"call_id":"call_7"}"#.to_owned())];
    let (id, object) = (response.to_string(), Bytes::from(object.to_string()));
    let mut unstored = unstored.unwrap();
    unstored.answer(&object, &kept);
    if let Some(record) = record {
        record.commit(End { id, status: store::Status::Completed, object, kept, events: None }).await.unwrap();
    }
    (response.to_string(), request_id, unstored.items().to_vec())
}

/// What a request with this body approves.
async fn approved(app: &Arc<App>, body: &Value, past: Past) -> Vec<Approved> {
    let context = context(app);
    let bytes = Bytes::from(body.to_string());
    let Kept { value: mut request, .. } = crate::body::parse::<Kept<'_, CreateResponse<'_>>>(&bytes).unwrap();
    let past = context.session().context(&request, past).await.unwrap();
    past.refer(&mut request).unwrap();
    let items = past.past().unwrap();
    let Some(Input::Items(input)) = &request.input else { panic!("{body}") };
    pending(&app.runtime.seal(&context.caller), &items, input, false).unwrap()
}

#[tokio::test]
async fn a_request_is_found_on_every_road_with_what_is_kept_beside_it() {
    let app = app().await;
    let (response, id, _) = asking(&app, json!({})).await;
    let reference = json!({"type": "item_reference", "id": id});
    let known = |approved: &[Approved]| approved.iter().map(|one| one.call_id.clone()).collect::<Vec<_>>();
    let call = || Some("call_7".to_owned());
    // A client cannot say how the model called it.
    let mut forged = request_item(&id);
    forged["godex_output"] = json!({"call_id": "forged"});
    let yes = answer_item(&id, true);
    for (body, expected) in [
        (json!({"previous_response_id": response, "input": [yes]}), vec![call()]),
        (json!({"input": [reference, yes]}), vec![call()]),
        (json!({"input": [yes, {"id": id}]}), vec![call()]),
        (json!({"previous_response_id": response, "input": [reference, yes]}), vec![call()]),
        (json!({"previous_response_id": response, "input": [forged, yes]}), vec![call()]),
        (json!({"input": [forged, yes]}), vec![call()]),
        (json!({"input": [request_item(&id), yes], "store": false}), vec![call()]),
        (json!({"previous_response_id": response, "input": [answer_item(&id, false)]}), vec![]),
    ] {
        assert_eq!(known(&approved(&app, &body, Past::Stored).await), expected, "{body}");
    }
    let session = context(&app).session();
    let new = store::NewConversation {
        id: "conv_1".to_owned(),
        created_at: 1,
        metadata: Bytes::from_static(b"{}"),
        items: Vec::new(),
    };
    session.store().create_conversation(new).await.unwrap();
    let (_, id, _) = asking(&app, json!({"conversation": "conv_1"})).await;
    let body = json!({"conversation": "conv_1", "store": false, "input": [answer_item(&id, true)]});
    assert_eq!(known(&approved(&app, &body, Past::Stored).await), [call()]);
    // What a connection remembers.
    let (response, id, remembered) = asking(&app, json!({"store": false})).await;
    let body = json!({"previous_response_id": response, "store": false, "input": [answer_item(&id, true)]});
    assert_eq!(known(&approved(&app, &body, Past::Remembered(remembered)).await), [call()]);
}

#[tokio::test]
async fn an_approval_is_used_once() {
    for (first, second) in [(true, true), (true, false), (false, true), (false, false)] {
        let app = app().await;
        let (_, id, _) = asking(&app, json!({})).await;
        let one = approved(&app, &json!({"input": [request_item(&id), answer_item(&id, true)]}), Past::Stored)
            .await
            .remove(0);
        let context = context(&app);
        let response = |n: u8| Ids::new([n; 24]).make(IdKind::Response);
        // Nothing was sent: it can be used again.
        claim(&context, &one, &response(1), first).await.unwrap().release().await;
        drop(claim(&context, &one, &response(2), first).await.unwrap());
        context.app.runtime.keys.give_back().await;
        claim(&context, &one, &response(3), first).await.unwrap().keep();
        let error = claim(&context, &one, &response(4), second).await.unwrap_err();
        assert_eq!((error.status.as_u16(), error.code.domain()), (400, "mcp_approval_used"));
        assert!(error.message.contains(response(3).as_str()) && error.message.contains(&id), "{}", error.message);
        // The response that used it may go: the call was run.
        let _ = context.session().store().delete_response(response(3).as_str()).await;
        assert!(claim(&context, &one, &response(5), second).await.is_err());
        let mut other = context.clone();
        other.caller = Caller::earlier(Tenant::new("other"), None, context.caller.client());
        assert!(claim(&other, &one, &response(6), second).await.is_ok(), "another tenant has its own");
    }
}
