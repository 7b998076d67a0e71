//! What godex runs, as it is shown: the events that OpenAI sends, in its order, valid by its schema; and the same again out
//! of the object, and whole when the writer is lost on the way.

use bridge::{Events, Failure, FailureClass, HostedEnd, HostedItem, HostedStart, ResponseWriter, RoundEnd};
use serde_json::{Value, json};
use wire::id::IdKind;

use crate::run::{Run, object};

fn list() -> HostedStart {
    HostedStart::ListTools { server_label: "s".to_owned() }
}

fn call() -> HostedStart {
    HostedStart::McpCall {
        server_label: "s".to_owned(),
        name: "time".to_owned(),
        arguments: "{\"zone\":\"\u{1f600}\"}".to_owned(),
        approval_request_id: Some("mcpr_1".to_owned()),
    }
}

fn action() -> String {
    json!({"type": "search", "query": "q", "queries": ["q"], "sources": [{"type": "url", "url": "https://a.b/"}]})
        .to_string()
}

fn tools() -> HostedEnd {
    let schema = json!({"type": "object", "$schema": "https://json-schema.org/draft/2020-12/schema"});
    HostedEnd::Tools(
        json!([{"name": "time", "description": "d", "input_schema": schema, "annotations": {"read_only": false}}])
            .to_string(),
    )
}

fn failed(error: &Value) -> HostedEnd {
    HostedEnd::Failed { error: error.to_string() }
}

/// One item between the opening and the end of a response; events without `response.`, and the item at its end.
fn written(write: impl Fn(&mut ResponseWriter, &mut Events)) -> (Vec<String>, Value, Value) {
    let (mut response, mut out, mut whole) = (Run::plain().response(), Events::sse(), Vec::new());
    response.open(&mut out);
    write(&mut response, &mut out);
    response.finish(RoundEnd::Failed(Failure::new(FailureClass::Server, "over")));
    response.object(1_700_000_001, true, &mut whole);
    response.terminal(&whole, &mut out);
    let stream = testkit::grammar::check(out.bytes()).unwrap_or_else(|problem| panic!("{problem}"));
    let schemas = testkit::Schemas::if_present();
    for (name, event) in &stream.events {
        let problems = schemas.iter().flat_map(|schemas| crate::schemas::problems(schemas, event));
        assert_eq!(problems.collect::<Vec<_>>(), Vec::<String>::new(), "{name}: {event}");
        assert_eq!(crate::strict_types::problem(event), None);
    }
    assert_eq!(stream.response, object(&whole));
    let mut again = Events::sse();
    bridge::replay(&whole, &mut again).unwrap();
    let replayed = testkit::grammar::check(again.bytes()).unwrap_or_else(|problem| panic!("replay: {problem}"));
    assert_eq!(replayed.events, stream.events, "the same events, out of the object");
    let types = stream.types();
    let types = types[2..types.len() - 2].iter().map(|name| name.trim_start_matches("response.").to_owned());
    (types.collect(), stream.events[2].1["item"].clone(), stream.response["output"][0].clone())
}

fn hosted(start: &HostedStart, end: Option<&HostedEnd>) -> (Vec<String>, Value, Value) {
    written(|response, out| {
        let item: HostedItem = response.open_hosted(start.clone(), out);
        match end {
            Some(end) => response.close_hosted(&item, end, out),
            None => response.abandon_hosted(&item, out),
        }
    })
}

#[test]
fn events_come_in_the_recorded_order() {
    let http = json!({"type": "http_error", "code": 500, "message": "m"});
    let searched = HostedEnd::Searched { action: action() };
    let not_searched = HostedEnd::NotSearched { action: action() };
    for (start, end, between, status) in [
        (list(), Some(tools()), "mcp_list_tools.in_progress mcp_list_tools.completed", None),
        (list(), Some(failed(&json!("down"))), "mcp_list_tools.in_progress mcp_list_tools.failed", None),
        (list(), None, "mcp_list_tools.in_progress mcp_list_tools.failed", None),
        (
            call(),
            Some(HostedEnd::Output("noon".to_owned())),
            "mcp_call.in_progress mcp_call_arguments.delta mcp_call_arguments.done mcp_call.completed",
            Some("completed"),
        ),
        (
            call(),
            Some(failed(&http)),
            "mcp_call.in_progress mcp_call_arguments.delta mcp_call_arguments.done mcp_call.failed",
            Some("failed"),
        ),
        (call(), None, "mcp_call.in_progress mcp_call_arguments.delta mcp_call_arguments.done", Some("incomplete")),
        (
            HostedStart::WebSearch,
            Some(searched),
            "web_search_call.in_progress web_search_call.searching web_search_call.completed",
            Some("completed"),
        ),
        (
            HostedStart::WebSearch,
            Some(not_searched),
            "web_search_call.in_progress web_search_call.searching",
            Some("failed"),
        ),
        (HostedStart::WebSearch, None, "web_search_call.in_progress web_search_call.searching", Some("failed")),
    ] {
        let (types, _, item) = hosted(&start, end.as_ref());
        assert_eq!(types.join(" "), format!("output_item.added {between} output_item.done"));
        assert_eq!(item.get("status").and_then(Value::as_str), status, "{item}");
    }
}

#[test]
fn items_are_as_they_were_recorded() {
    let (_, added, done) = hosted(&list(), Some(&tools()));
    assert_eq!(added, json!({"id": added["id"], "type": "mcp_list_tools", "server_label": "s", "tools": []}));
    assert!(done["id"].as_str().unwrap().starts_with("mcpl_") && done.get("error").is_none(), "{done}");
    assert_eq!(done["tools"][0]["annotations"], json!({"read_only": false}));
    let (_, _, done) = hosted(&list(), Some(&failed(&json!("down"))));
    assert_eq!((&done["error"], &done["tools"]), (&json!("down"), &json!([])));
    let (_, added, done) = hosted(&call(), Some(&HostedEnd::Output("noon".to_owned())));
    let expected = json!({"id": added["id"], "type": "mcp_call", "status": "in_progress", "approval_request_id": "mcpr_1",
        "arguments": "", "error": null, "name": "time", "output": null, "server_label": "s"});
    assert_eq!(added, expected);
    assert!(done["id"].as_str().unwrap().starts_with("mcp_"));
    assert_eq!((&done["output"], &done["arguments"]), (&json!("noon"), &json!("{\"zone\":\"\u{1f600}\"}")));
    let (_, added, done) = hosted(&HostedStart::WebSearch, Some(&HostedEnd::Searched { action: action() }));
    assert_eq!(added, json!({"id": added["id"], "type": "web_search_call", "status": "in_progress"}));
    assert!(done["id"].as_str().unwrap().starts_with("ws_"));
    assert_eq!(done["action"], serde_json::from_str::<Value>(&action()).unwrap());
}

#[test]
fn an_approval_is_asked_for_at_once() {
    let (types, added, done) = written(|response, out| {
        let id = response.make_id(IdKind::McpApprovalRequest);
        response.approval_request(id, "s", "time", "{\"a\":\"\\n\"}", out);
    });
    assert_eq!(types, ["output_item.added", "output_item.done"]);
    let arguments = "{\"a\":\"\\n\"}";
    let expected = json!({"id": done["id"], "type": "mcp_approval_request", "arguments": arguments, "name": "time", "server_label": "s"});
    assert_eq!((&added, &done), (&expected, &expected));
    assert!(done["id"].as_str().unwrap().starts_with("mcpr_"));
}
