//! Tools that godex runs: what the model is offered for them, and what their items become.

use bridge::{Dialect, Hosting, Lacking, Policy, Round, SearchFunctions, ToolKind};
use serde_json::{Value, json};
use wire::json::Invalid;

use crate::dialects::{all, named, strictness};
use crate::forward::forward_hosted;
use crate::marks::without_marks;
use crate::run::{MEND, Planned, TransparentSeal, plan_hosted};

const ALL: Hosting = Hosting {
    unsearched: bridge::Unsearched::LeaveOut,
    mcp: true,
    lists_pending: false,
    web_search: Some(SearchFunctions { pages: true }),
    round: Round::First,
    resumes: false,
    answered_tokens: 0,
};

fn try_plan(request: &Value, dialect: &Dialect, hosting: Hosting) -> Result<Planned, Invalid> {
    plan_hosted(&request.to_string(), &[], dialect, Policy::default(), &TransparentSeal, hosting)
}

fn plan(request: &Value) -> Planned {
    try_plan(request, &Dialect::default(), ALL).unwrap()
}

fn list(label: &str, tools: &Value) -> Value {
    json!({"type": "mcp_list_tools", "id": "mcpl_1", "server_label": label, "tools": tools})
}

fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}."), "input_schema": {"type": "object", "properties": {}}})
}

fn mcp(label: &str) -> Value {
    json!({"type": "mcp", "server_label": label})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn names(planned: &Planned) -> Vec<String> {
    let tools = planned.body["tools"].as_array().into_iter().flatten();
    tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_latest_list_of_a_server_is_offered() {
    let annotated = |name: &str, annotations: Value| json!({"name": name, "annotations": annotations});
    let listed = json!([
        annotated("reads", json!({"read_only": true})),
        annotated("hints", json!({"readOnlyHint": true})),
        annotated("writes", json!({"read_only": false})),
        {"name": "plain"}, {"name": ""}, {"title": "nameless"}, {"name": "plain", "description": "again"},
    ]);
    let with = |member: &str, value: Value| {
        let mut tool = mcp("s");
        tool[member] = value;
        json!([tool])
    };
    for (tools, items, expected) in [
        (json!([mcp("s")]), vec![list("s", &json!([tool("old")])), list("s", &json!([tool("new")]))], vec!["s__new"]),
        (
            json!([mcp("b"), {"type": "function", "name": "f"}, mcp("a")]),
            vec![list("a", &json!([tool("x")])), list("b", &json!([tool("x"), tool("y.z")]))],
            vec!["b__x", "b__y_z_", "f", "a__x"],
        ),
        // One that failed is none, and what another server has is not offered.
        (
            json!([mcp("s")]),
            vec![
                list("s", &json!([tool("a")])),
                json!({"type": "mcp_list_tools", "server_label": "s", "tools": [], "error": {"type": "http_error"}}),
                list("t", &json!([tool("b")])),
            ],
            vec!["s__a"],
        ),
        (json!([mcp("s")]), vec![list("s", &listed)], vec!["s__reads", "s__hints", "s__writes", "s__plain"]),
        (with("allowed_tools", json!(["plain", "gone"])), vec![list("s", &listed)], vec!["s__plain"]),
        (with("allowed_tools", json!({"read_only": true})), vec![list("s", &listed)], vec!["s__reads", "s__hints"]),
        (with("allowed_tools", json!({"read_only": false})), vec![list("s", &listed)], vec!["s__writes", "s__plain"]),
        (
            with("allowed_tools", json!({"tool_names": ["reads", "writes"], "read_only": true})),
            vec![list("s", &listed)],
            vec!["s__reads"],
        ),
        (with("allowed_tools", json!([])), vec![list("s", &listed)], vec![]),
        // The client's own function keeps its name, wherever it is declared.
        (
            json!([mcp("s"), {"type": "function", "name": "s__a"}]),
            vec![list("s", &json!([tool("a")]))],
            vec!["s__a_", "s__a"],
        ),
    ] {
        let input: Vec<Value> = items.into_iter().chain([user("Hi")]).collect();
        let planned = plan(&json!({"model": "m", "input": input, "tools": tools}));
        let found = names(&planned);
        assert_eq!(found.len(), expected.len(), "{found:?} {tools}");
        for (found, expected) in found.iter().zip(&expected) {
            // A name that had to change ends with a hash.
            assert!(found == expected || expected.ends_with('_') && found.starts_with(expected), "{found} {expected}");
        }
        let hosted = planned.context.tools.iter().filter(|tool| tool.kind == ToolKind::Mcp);
        for tool in hosted {
            assert!(matches!(tool.namespace.as_deref(), Some("s" | "a" | "b")), "{tool:?}");
            assert!(!tool.name.contains("__"), "{tool:?}");
        }
    }
}

#[test]
fn a_function_says_what_the_list_says() {
    let listed = json!([
        {"name": "add", "description": "Adds \"numbers\".", "input_schema": {
            "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"n": {"$ref": "#/$defs/N"}, "l": {"type": "array"}},
            "$defs": {"N": {"type": "number"}}}},
        {"name": "bare", "input_schema": true},
        {"name": "loop", "input_schema": {"properties": {"self": {"$ref": "#"}}}},
    ]);
    let mut server = mcp("s");
    server["server_description"] = json!("Sums.");
    let planned = plan(&json!({"model": "m", "input": [list("s", &listed), user("Hi")], "tools": [server]}));
    let expected = json!([
        {"type": "function", "function": {"name": "s__add", "description": "Adds \"numbers\".\n\nSums.", "parameters": {
            "type": "object", "properties": {"n": {"type": "number"}, "l": {"type": "array", "items": {}}}}}},
        {"type": "function", "function": {"name": "s__bare", "parameters": {"type": "object", "properties": {}}}},
        {"type": "function", "function": {"name": "s__loop", "parameters": {
            "type": "object", "properties": {"self": {"properties": {"self": {}}}}}}},
    ]);
    assert_eq!(planned.body["tools"], expected);
    let notes: Vec<&str> = planned.notes.iter().map(|note| note.message.as_ref()).collect();
    assert_eq!(
        notes,
        [
            "bare has no schema: it is offered without parameters",
            "loop has a schema that refers to itself, or to what is not there"
        ]
    );
}

#[test]
fn servers_that_cannot_be_are_refused() {
    let pattern = "^[A-Za-z][A-Za-z0-9_-]{0,63}$";
    let expected_pattern = format!(
        "Invalid 'tools[0].server_label': string does not match pattern. Expected a string that matches the pattern '{pattern}'."
    );
    let connector = "Unsupported value: 'tools[0].connector_id': connectors and tunnels are not available here. Name a server by 'server_url', or one that is declared here by its 'server_label'.";
    for (tools, path, message) in [
        (json!([{"type": "mcp"}]), "tools[0].server_label", "Missing required parameter: 'tools[0].server_label'."),
        (json!([mcp("1a")]), "tools[0].server_label", expected_pattern.as_str()),
        (json!([mcp("a b")]), "tools[0].server_label", expected_pattern.as_str()),
        (json!([mcp(&"x".repeat(65))]), "tools[0].server_label", expected_pattern.as_str()),
        (
            json!([mcp("a"), mcp("a")]),
            "tools[1].server_label",
            "Duplicate server_label found: 'a'. Each MCP server of a request needs a label of its own.",
        ),
        (
            json!([{"type": "mcp", "server_label": "a", "connector_id": "connector_x"}]),
            "tools[0].connector_id",
            connector,
        ),
        (
            json!([{"type": "mcp", "server_label": "a", "allowed_tools": [1]}]),
            "tools[0].allowed_tools[0]",
            "Invalid type for 'tools[0].allowed_tools[0]': expected a string, but got an integer instead.",
        ),
        (
            json!([{"type": "mcp", "server_label": "a", "allowed_tools": {"read_only": "yes"}}]),
            "tools[0].allowed_tools.read_only",
            "Invalid type for 'tools[0].allowed_tools.read_only': expected a boolean, but got a string instead.",
        ),
    ] {
        let request = json!({"model": "m", "input": "Hi", "tools": tools});
        let invalid = try_plan(&request, &Dialect::default(), ALL).err().unwrap();
        assert_eq!((invalid.path.as_str(), invalid.to_string().as_str()), (path, message));
    }
    let tunnel =
        json!({"model": "m", "input": "Hi", "tools": [{"type": "mcp", "server_label": "a", "tunnel_id": "t"}]});
    assert_eq!(try_plan(&tunnel, &Dialect::default(), ALL).err().unwrap().path, "tools[0].tunnel_id");
    // Where godex asks no servers, they are left out.
    let planned = try_plan(&tunnel, &Dialect::default(), Hosting::default()).unwrap();
    assert!(planned.has_note("bridge.tool.ignored", "tools[0]"));
}

#[test]
fn too_many_tools_are_counted_by_server() {
    let many = |count: usize| (0..count).map(|n| tool(&format!("t{n}"))).collect::<Value>();
    let input = json!([list("a", &many(100)), list("b", &many(29)), user("Hi")]);
    let request = json!({"model": "m", "input": input, "tools": [mcp("a"), mcp("b")]});
    let invalid = try_plan(&request, &named("deepseek"), ALL).err().unwrap();
    assert_eq!((invalid.path.as_str(), invalid.code().name()), ("tools", "array_above_max_length"));
    let message = "at most 128 tools, but got 129 instead (tools in namespaces and in the input count one by one). Of these, MCP servers have: 'a' 100, 'b' 29. Use 'allowed_tools' to offer fewer of them.";
    assert!(invalid.to_string().contains(message), "{invalid}");
}

#[test]
fn web_search_is_three_functions() {
    let search = |more: Value| {
        let mut tool = json!({"type": "web_search"});
        tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        tool
    };
    let about = |tool: Value| {
        let planned = plan(&json!({"model": "m", "input": "Hi", "tools": [tool]}));
        planned.body["tools"][0]["function"]["description"].as_str().unwrap().to_owned()
    };
    let plain = about(search(json!({})));
    assert!(plain.contains("Markdown link"), "{plain}");
    for (tool, added) in [
        (json!({}), ""),
        (json!({"user_location": {"type": "approximate"}}), ""),
        (
            json!({"user_location": {"type": "approximate", "city": "Paris", "country": "FR", "timezone": "Europe/Paris"}}),
            "\n\nThe user is in Paris, FR (time zone Europe/Paris).",
        ),
        (json!({"user_location": {"type": "approximate", "timezone": "UTC"}}), "\n\nThe user's time zone is UTC."),
        (
            json!({"filters": {"allowed_domains": ["a.org", "b.org"]}}),
            "\n\nOnly these domains can be searched: a.org, b.org.",
        ),
    ] {
        assert_eq!(about(search(tool)), format!("{plain}{added}"));
    }
    let kinds = [ToolKind::WebSearch, ToolKind::OpenPage, ToolKind::FindInPage];
    let planned =
        plan(&json!({"model": "m", "input": "Hi", "tools": [search(json!({})), {"type": "web_search_preview"}]}));
    assert_eq!(names(&planned), ["web_search", "open_page", "find_in_page"]);
    assert_eq!(planned.context.tools.iter().map(|tool| tool.kind).collect::<Vec<_>>(), kinds);
    let only = Hosting { web_search: Some(SearchFunctions { pages: false }), ..ALL };
    let request = json!({"model": "m", "input": "Hi", "tools": [{"type": "web_search"}, {"type": "function", "name": "web_search"}],
        "include": ["web_search_call.action.sources"], "max_tool_calls": 2});
    let planned = try_plan(&request, &Dialect::default(), only).unwrap();
    let [ours, theirs] = &planned.context.tools[..] else { panic!("two: {:?}", planned.context.tools) };
    assert_eq!((theirs.provider_name.as_str(), theirs.kind), ("web_search", ToolKind::Function));
    assert!(ours.provider_name.starts_with("web_search_") && ours.kind == ToolKind::WebSearch, "{ours:?}");
    assert_eq!(planned.notes, []);
    // A provider's own search comes first.
    let planned = try_plan(&request, &named("rich"), ALL).unwrap();
    assert_eq!(planned.body["tools"][0], json!({"type": "web_search"}));
}

/// Which tools are offered, and what is said about them.
#[test]
fn choices_in_each_round() {
    let tools = json!([mcp("s"), {"type": "web_search"}, {"type": "function", "name": "f"}]);
    let allowed = |mode: &str, tools: Value| json!({"type": "allowed_tools", "mode": mode, "tools": tools});
    let every = "s__a s__b web_search open_page find_in_page f";
    let function = |name: &str| json!({"type": "function", "function": {"name": name}});
    let none = json!("none");
    let auto = json!(null);
    for (choice, first, first_said, later) in [
        (json!("auto"), every, auto.clone(), every),
        (json!("required"), every, json!("required"), every),
        (json!({"type": "mcp", "server_label": "s"}), "s__a s__b", json!("required"), every),
        (json!({"type": "mcp"}), "s__a s__b", json!("required"), every),
        (json!({"type": "mcp", "server_label": "s", "name": "b"}), every, function("s__b"), every),
        (json!({"type": "web_search_preview"}), every, function("web_search"), every),
        (json!({"type": "web_search"}), every, function("web_search"), every),
        (json!({"type": "function", "name": "f"}), every, function("f"), every),
        (
            allowed("required", json!([{"type": "mcp", "server_label": "s"}])),
            "s__a s__b",
            json!("required"),
            "s__a s__b",
        ),
        (
            allowed("auto", json!([{"type": "mcp", "server_label": "s", "name": "a"}, {"type": "web_search"}])),
            "s__a web_search open_page find_in_page",
            auto.clone(),
            "s__a web_search open_page find_in_page",
        ),
    ] {
        let input = json!([list("s", &json!([tool("a"), tool("b")])), user("Hi")]);
        let request = json!({"model": "m", "input": input, "tools": tools, "tool_choice": choice});
        let rounds = [
            (Round::First, first, first_said),
            (Round::Later, later, auto.clone()),
            (Round::Last, later, none.clone()),
        ];
        for (round, offered, said) in rounds {
            let planned = try_plan(&request, &Dialect::default(), Hosting { round, ..ALL }).unwrap();
            assert_eq!(
                (names(&planned).join(" "), &planned.body["tool_choice"]),
                (offered.to_owned(), &said),
                "{choice} {round:?}"
            );
        }
        // Who has no word for it is offered nothing in the last round.
        let mut wordless = Dialect::default();
        wordless.request.tools.choices = vec![bridge::ChoiceKind::Auto];
        let planned = try_plan(&request, &wordless, Hosting { round: Round::Last, ..ALL }).unwrap();
        assert_eq!((planned.body.get("tools"), planned.body.get("tool_choice")), (None, None), "{choice}");
    }
}

#[test]
fn what_is_not_there_cannot_be_demanded() {
    let pending = Hosting { lists_pending: true, ..ALL };
    let off = Hosting::default();
    let listed = list("s", &json!([tool("a")]));
    let not_here = |kind: &str| format!("Unsupported value: 'tool_choice': {kind} is not available here.");
    let function = json!({"type": "function", "name": "f"});
    for (tools, items, choice, hosting, expected) in [
        (mcp("s"), vec![], json!({"type": "mcp", "server_label": "s"}), pending, None),
        (mcp("s"), vec![], json!("required"), pending, None),
        (mcp("s"), vec![], json!({"type": "mcp", "server_label": "s"}), ALL, Some(not_here("mcp"))),
        (mcp("s"), vec![], json!({"type": "mcp", "server_label": "s"}), off, Some(not_here("mcp"))),
        (
            mcp("s"),
            vec![listed.clone()],
            json!({"type": "mcp", "server_label": "s", "name": "z"}),
            ALL,
            Some("Tool choice 'z' not found in 'tools' parameter.".to_owned()),
        ),
        (
            mcp("s"),
            vec![listed],
            json!({"type": "mcp", "server_label": "t"}),
            ALL,
            Some("Tool choice 't' not found in 'tools' parameter.".to_owned()),
        ),
        (json!({"type": "web_search"}), vec![], json!({"type": "web_search"}), off, Some(not_here("web_search"))),
        (json!({"type": "file_search"}), vec![], json!({"type": "file_search"}), ALL, Some(not_here("file_search"))),
        (
            json!({"type": "code_interpreter"}),
            vec![],
            json!({"type": "code_interpreter"}),
            ALL,
            Some(not_here("code_interpreter")),
        ),
        (
            json!({"type": "image_generation"}),
            vec![],
            json!({"type": "image_generation"}),
            ALL,
            Some(not_here("image_generation")),
        ),
    ] {
        let input: Vec<Value> = items.into_iter().chain([user("Hi")]).collect();
        let request = json!({"model": "m", "input": input, "tools": [tools, function], "tool_choice": choice});
        let planned = try_plan(&request, &Dialect::default(), hosting);
        let refused = planned.as_ref().err().map(|invalid| (invalid.to_string(), invalid.path.clone()));
        assert_eq!(refused, expected.map(|message| (message, "tool_choice".to_owned())), "{request}");
    }
    // Not demanded, they are left out with a note.
    for kind in ["file_search", "code_interpreter", "image_generation"] {
        let planned = plan(&json!({"model": "m", "input": "Hi", "tools": [{"type": kind}, function]}));
        assert_eq!(names(&planned), ["f"]);
        let [note] = &planned.notes[..] else { panic!("one note") };
        let message = format!("this provider has no {kind} of its own");
        assert_eq!((note.code.name(), &*note.path, &*note.message), ("bridge.tool.ignored", "tools[0]", &*message));
    }
}

#[test]
fn a_limit_is_for_all_rounds() {
    for (answered, limit) in [(0, 100), (60, 40), (100, 1), (u64::MAX, 1)] {
        let request = json!({"model": "m", "input": "Hi", "max_output_tokens": 100});
        let hosting = Hosting { answered_tokens: answered, ..ALL };
        let planned = try_plan(&request, &Dialect::default(), hosting).unwrap();
        assert_eq!(planned.body["max_tokens"], limit, "{answered}");
        let sent = forward_hosted(&request.to_string(), &[], &Dialect::default(), hosting).unwrap();
        assert_eq!(sent.body["max_output_tokens"], limit.max(16), "{answered}");
    }
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn said(calls: Value) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn result(id: &str, content: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": content})
}

fn messages(items: Value) -> Value {
    plan(&json!({"model": "m", "input": items})).body["messages"].clone()
}

fn mcp_call(id: &str, more: Value) -> Value {
    let mut item = json!({"type": "mcp_call", "id": id, "server_label": "s", "name": "n", "arguments": "{\"a\":1}"});
    item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    item
}

#[test]
fn items_become_calls_and_results() {
    let kept = |id: &str, text: &str, ends: bool| json!({"call_id": id, "output": text, "ends_round": ends});
    let text = |text: &str| json!({"role": "assistant", "content": text});
    let search = |action: Value, more: Value| {
        let mut item = json!({"type": "web_search_call", "id": "ws", "status": "completed", "action": action});
        item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        item
    };
    let n = |id: &str| call(id, "s__n", "{\"a\":1}");
    for (items, expected) in [
        // What the model saw counts, under the id by which it called.
        (
            json!([
                mcp_call("mcp_1", json!({"output": "shown", "godex_output": kept("c1", "seen", true)})),
                text("So.")
            ]),
            json!([said(json!([n("c1")])), result("c1", "seen"), text("So.")]),
        ),
        // Two rounds of calls alone; two calls of one round.
        (
            json!([
                mcp_call("mcp_1", json!({"godex_output": kept("c1", "one", true)})),
                mcp_call("mcp_2", json!({"godex_output": kept("c2", "two", false)})),
                mcp_call("mcp_3", json!({"godex_output": kept("c3", "three", true)})),
            ]),
            json!([
                said(json!([n("c1")])),
                result("c1", "one"),
                said(json!([n("c2"), n("c3")])),
                result("c2", "two"),
                result("c3", "three")
            ]),
        ),
        // Without what was kept, text or thinking begins the next message.
        (
            json!([
                mcp_call("mcp_1", json!({"output": "shown"})),
                mcp_call("mcp_2", json!({"output": "too"})),
                text("So.")
            ]),
            json!([
                said(json!([n("mcp_1"), n("mcp_2")])),
                result("mcp_1", "shown"),
                result("mcp_2", "too"),
                text("So.")
            ]),
        ),
        // A mixed answer: the client's output ends it.
        (
            json!([
                mcp_call("mcp_1", json!({"godex_output": kept("c1", "seen", false)})),
                {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c2", "output": "theirs"},
                text("So."),
            ]),
            json!([
                said(json!([n("c1"), call("c2", "f", "{}")])),
                result("c1", "seen"),
                result("c2", "theirs"),
                text("So.")
            ]),
        ),
        // An id that is used again is used by the first.
        (
            json!([
                mcp_call("mcp_1", json!({"godex_output": kept("c", "1", true)})),
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "2"},
                mcp_call("mcp_2", json!({"godex_output": kept("c", "3", true)})),
            ]),
            json!([
                said(json!([n("c")])),
                result("c", "1"),
                said(json!([call("c_2", "f", "{}")])),
                result("c_2", "2"),
                said(json!([n("c_2_2")])),
                result("c_2_2", "3"),
            ]),
        ),
        // Failures say so.
        (
            json!([
                mcp_call(
                    "a",
                    json!({"status": "failed", "error": {"type": "mcp_protocol_error", "code": 1, "message": "Nope."}})
                ),
                mcp_call(
                    "b",
                    json!({"error": {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "No."}]}})
                ),
                mcp_call("c", json!({"error": "Old."})),
                mcp_call("d", json!({"status": "failed"})),
                mcp_call("e", json!({})),
            ]),
            json!([
                said(json!([n("a"), n("b"), n("c"), n("d"), n("e")])),
                result("a", "The call failed.\nNope."),
                result("b", "The call failed.\nNo."),
                result("c", "The call failed.\nOld."),
                result("d", "The call failed."),
                result("e", "(no result was kept)"),
            ]),
        ),
        // Searches.
        (
            json!([
                search(
                    json!({"type": "search", "query": "q", "queries": ["q", "r"]}),
                    json!({"godex_output": kept("c1", "found", false)})
                ),
                search(
                    json!({"type": "open_page", "url": "https://a.b"}),
                    json!({"godex_output": kept("c2", "page", true)})
                ),
                search(
                    json!({"type": "find_in_page", "url": "https://a.b", "pattern": "p"}),
                    json!({"id": "w3", "status": "failed"})
                ),
                search(
                    json!({"type": "search", "query": "q", "sources": [{"type": "url", "url": "https://a.b"}]}),
                    json!({"id": "w4"})
                ),
                text("So."),
            ]),
            json!([
                said(json!([
                    call("c1", "web_search", "{\"queries\":[\"q\",\"r\"]}"),
                    call("c2", "open_page", "{\"url\":\"https://a.b\"}")
                ])),
                result("c1", "found"),
                result("c2", "page"),
                said(json!([
                    call("w3", "find_in_page", "{\"url\":\"https://a.b\",\"pattern\":\"p\"}"),
                    call("w4", "web_search", "{\"queries\":[\"q\"]}")
                ])),
                result("w3", "The call failed."),
                result("w4", "(what was found was not kept)\nSources:\nhttps://a.b"),
                text("So."),
            ]),
        ),
    ] {
        let items: Vec<Value> = [user("Hi")].into_iter().chain(items.as_array().unwrap().iter().cloned()).collect();
        let expected: Vec<Value> =
            [user("Hi")].into_iter().chain(expected.as_array().unwrap().iter().cloned()).collect();
        assert_eq!(messages(json!(items)), json!(expected), "{items:?}");
    }
}

#[test]
fn images_go_the_way_of_images_in_outputs() {
    let output = json!([{"type": "input_text", "text": "Look."}, {"type": "input_image", "image_url": "data:image/png;base64,AA=="}]);
    let item = mcp_call(
        "mcp_1",
        json!({"output": "[image]", "godex_output": {"call_id": "c", "output": output, "ends_round": true}}),
    );
    let found = messages(json!([user("Hi"), item]));
    assert_eq!(found[2], result("c", "Look.\n[image: in the next message]"));
    assert_eq!(found[3]["content"][1]["image_url"]["url"], "data:image/png;base64,AA==");
}

#[test]
fn an_approval_is_told_where_it_was_asked_for() {
    let request = json!({"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "n", "arguments": "{\"a\":1}", "godex_output": {"call_id": "c1"}});
    let answer = |approve: bool, reason: Value| json!({"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": approve, "reason": reason});
    let made = mcp_call(
        "mcp_1",
        json!({"output": "done", "approval_request_id": "mcpr_1", "godex_output": {"call_id": "x", "output": "seen", "ends_round": true}}),
    );
    let go_on = json!({"role": "assistant", "content": "So."});
    for (rest, told) in [
        (vec![answer(true, json!(null)), made.clone(), go_on.clone()], "seen"),
        (vec![answer(true, json!(null)), user("Do it."), made, go_on.clone()], "seen"),
        (vec![answer(false, json!(null)), go_on.clone()], "The user did not approve this call. It was not made."),
        (
            vec![answer(false, json!("Too dear.")), go_on.clone()],
            "The user did not approve this call. It was not made.\nReason: Too dear.",
        ),
        (
            vec![answer(true, json!(null)), go_on.clone()],
            "The user approved this call, but what came of it is not known.",
        ),
        (vec![user("Never mind.")], "The user has not said whether this call may be made. It was not made."),
    ] {
        let spoken: Vec<Value> = rest.iter().filter(|item| item.get("role").is_some()).cloned().collect();
        let items: Vec<Value> = [user("Hi"), request.clone()].into_iter().chain(rest).collect();
        let before = [user("Hi"), said(json!([call("c1", "s__n", "{\"a\":1}")])), result("c1", told)];
        let expected: Vec<Value> = before.into_iter().chain(spoken).collect();
        assert_eq!(messages(json!(items)), json!(expected));
    }
    // Nobody asked.
    let orphan = json!({"model": "m", "input": [user("Hi"), answer(true, json!(null))]});
    let invalid = try_plan(&orphan, &Dialect::default(), ALL).err().unwrap();
    let message = "The approval request 'mcpr_1' of this MCP approval response was not found.";
    assert_eq!((invalid.path.as_str(), invalid.to_string().as_str()), ("input", message));
    let mended = plan_hosted(&orphan.to_string(), &[], &Dialect::default(), MEND, &TransparentSeal, ALL).unwrap();
    assert!(mended.has_note("bridge.item.repaired", "input[1]"), "{:?}", mended.notes);
}

/// Each is what a response adds to its input, round by round, and what the next request adds to that: every request begins
/// with the one before.
#[test]
fn rounds_and_turns_extend_each_other() {
    let thought = |text: &str| json!({"type": "reasoning", "summary": [], "encrypted_content": format!(r#"glass:{{"v":1,"family":"one","text":"{text}"}}"#)});
    let kept = |id: &str, ends: bool| json!({"call_id": id, "output": format!("result of {id}"), "ends_round": ends});
    let ran = |id: &str, ends: bool| {
        mcp_call(&format!("mcp_{id}"), json!({"output": "shown", "godex_output": kept(id, ends)}))
    };
    let image = mcp_call(
        "mcp_i",
        json!({"godex_output": {"call_id": "i", "ends_round": true, "output": [{"type": "input_image", "image_url": "data:image/png;base64,AA=="}]}}),
    );
    let searched = |id: &str, ends: bool| json!({"type": "web_search_call", "id": format!("ws_{id}"), "status": "completed", "action": {"type": "search", "query": "q", "queries": ["q"]}, "godex_output": kept(id, ends)});
    let text = |text: &str| json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]});
    let asks = json!({"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "n", "arguments": "{}", "godex_output": {"call_id": "a"}});
    let approved = json!({"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": true});
    let made = mcp_call("mcp_a", json!({"approval_request_id": "mcpr_1", "godex_output": kept("a2", true)}));
    let theirs = json!({"type": "function_call", "call_id": "f1", "name": "f", "arguments": "{}"});
    let answered = json!({"type": "function_call_output", "call_id": "f1", "output": "theirs"});
    let requests: [Vec<Vec<Value>>; 4] = [
        vec![
            vec![thought("1"), text("I look."), ran("c1", false), searched("c2", true)],
            vec![ran("c3", true)],
            vec![thought("2"), image],
            vec![thought("3"), text("Done."), user("And now?")],
            vec![searched("c4", true)],
            vec![text("That.")],
        ],
        // A mixed answer ends the response; so does one that needs an approval.
        vec![
            vec![ran("c1", false), theirs.clone(), answered.clone()],
            vec![thought("1"), ran("c2", true)],
            vec![text("Done."), user("Go on.")],
        ],
        vec![
            vec![thought("1"), ran("c1", false), asks, theirs, approved, answered, made],
            vec![text("Done."), user("Go on.")],
        ],
        // Ids begin anew in every answer.
        vec![
            vec![ran("c", true)],
            vec![ran("c", true)],
            vec![
                json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}),
                json!({"type": "function_call_output", "call_id": "c", "output": "x"}),
            ],
            vec![ran("c", true)],
        ],
    ];
    let listed = list("s", &json!([tool("n")]));
    for requests in requests {
        for (name, mut dialect) in all() {
            dialect.family = "one".to_owned();
            dialect.request.content.lacking = Lacking::Degrade;
            let mut items = vec![user("Hi"), listed.clone()];
            let mut before: Option<(Vec<u8>, Value)> = None;
            let mut native = String::new();
            for (at, more) in [vec![]].into_iter().chain(requests.clone()).enumerate() {
                items.extend(more);
                let request = json!({"model": "m", "input": items, "tools": [mcp("s"), {"type": "function", "name": "f"}], "max_output_tokens": 100});
                let planned = try_plan(&request, &dialect, ALL).unwrap();
                let problems = testkit::transcript::check(&planned.body, strictness(&dialect));
                assert!(problems.is_empty(), "{name}: {problems:?}");
                // Where messages of one role are merged, the last one goes on inside.
                let end = if dialect.request.messages.turns == bridge::Turns::Merged { 8 } else { 2 };
                let start = planned.bytes.windows(12).position(|window| window == b"\"messages\":[").unwrap();
                let (bytes, _) = without_marks(&planned.bytes[start..planned.bytes.len() - end]);
                if let Some((before, tools)) = &before {
                    let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    assert!(bytes.starts_with(before), "{name} {at}\n{}\n{}", show(before), show(&bytes));
                    assert_eq!(tools, &planned.body["tools"]);
                }
                before = Some((bytes, planned.body["tools"].clone()));
                let sent = forward_hosted(&request.to_string(), &[], &Dialect::default(), ALL).unwrap();
                let sent = sent.text.strip_suffix("]}").unwrap().to_owned();
                assert!(sent.starts_with(&native), "{at}\n{native}\n{sent}");
                native = sent;
            }
        }
    }
}

#[test]
fn a_provider_with_that_api_gets_functions_and_pairs() {
    let listed = list(
        "s",
        &json!([{"name": "n", "description": "Does n.", "input_schema": {"type": "object", "properties": {}}}]),
    );
    let kept = json!({"call_id": "c1", "output": [{"type": "input_text", "text": "seen"}], "ends_round": true});
    let ran = mcp_call("mcp_1", json!({"output": "shown", "godex_output": kept}));
    let searched = json!({"type": "web_search_call", "id": "ws", "action": {"type": "search", "query": "q"}, "godex_output": {"call_id": "c2", "output": "found"}});
    let asks = json!({"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "n", "arguments": "{}", "godex_output": {"call_id": "c3"}});
    let refused = json!({"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": false});
    let theirs = json!({"type": "mcp_call", "id": "mcp_9", "server_label": "their", "name": "x", "arguments": "{}", "output": "y"});
    let items = json!([user("Hi"), listed, ran, searched, asks, refused, theirs, {"type": "mcp_list_tools", "server_label": "their", "tools": []}]);
    let function = json!({"type": "function", "name": "f"});
    let connector = json!({"type": "mcp", "server_label": "their", "connector_id": "c"});
    let request = json!({"model": "m", "input": items, "tools": [mcp("s"), function, connector], "tool_choice": {"type": "mcp", "server_label": "s"}, "max_tool_calls": 1});
    let sent = |hosting: Hosting| forward_hosted(&request.to_string(), &[], &Dialect::default(), hosting).unwrap();
    let n = json!({"type": "function", "name": "s__n", "description": "Does n.", "parameters": {"type": "object", "properties": {}}, "strict": false});
    let called = |id: &str, name: &str, arguments: &str| json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments});
    let output = |id: &str, output: Value| json!({"type": "function_call_output", "call_id": id, "output": output});
    let pairs = [
        called("c1", "s__n", "{\"a\":1}"),
        output("c1", json!([{"type": "input_text", "text": "seen"}])),
        called("c2", "web_search", "{\"queries\":[\"q\"]}"),
        output("c2", json!("found")),
        called("c3", "s__n", "{}"),
        output("c3", json!("The user did not approve this call. It was not made.")),
    ];
    let native = [
        json!({"type": "mcp_call", "server_label": "their", "name": "x", "arguments": "{}", "output": "y"}),
        json!({"type": "mcp_list_tools", "server_label": "their", "tools": []}),
    ];
    let first = sent(ALL);
    assert_eq!((&first.body["tools"], &first.body["tool_choice"]), (&json!([n]), &json!("required")));
    let expected: Vec<Value> = [user("Hi")].into_iter().chain(pairs.clone()).chain(native.clone()).collect();
    assert_eq!(first.body["input"], json!(expected));
    let offered: Vec<_> = first.context.tools.iter().map(|tool| (tool.provider_name.as_str(), tool.kind)).collect();
    assert_eq!(offered, [("s__n", ToolKind::Mcp)]);
    for (round, choice) in [(Round::Later, json!(null)), (Round::Last, json!("none"))] {
        let later = sent(Hosting { round, ..ALL });
        assert_eq!((&later.body["tools"], &later.body["tool_choice"]), (&json!([n, function, connector]), &choice));
    }
    // What was run here stays a pair where nothing is run any more; all else is the provider's.
    let none = sent(Hosting::default());
    assert_eq!((&none.body["tools"], &none.body["tool_choice"]), (&request["tools"], &request["tool_choice"]));
    let mut unlisted = items[1].clone();
    unlisted.as_object_mut().unwrap().remove("id");
    let expected: Vec<Value> = [user("Hi"), unlisted].into_iter().chain(pairs).chain(native).collect();
    assert_eq!(none.body["input"], json!(expected));
    for sent in [&first, &none] {
        assert!(!sent.text.contains("godex_output"), "{}", sent.text);
    }
}

/// What becomes of a search that nobody runs is the operator's choice.
#[test]
fn a_search_that_nobody_runs() {
    for (unsearched, expected) in [
        (bridge::Unsearched::LeaveOut, Ok(vec![])),
        (bridge::Unsearched::Refuse, Err("tools[0].type")),
        (bridge::Unsearched::ClientCall, Ok(vec!["web_search"])),
    ] {
        let hosting = Hosting { unsearched, ..Hosting::default() };
        let request = json!({"model": "m", "input": "Hi.", "tools": [{"type": "web_search"}]});
        let planned = try_plan(&request, &Dialect::default(), hosting);
        let found = planned.map(|planned| planned.context.tools).map_err(|invalid| invalid.path);
        match (found, expected) {
            (Ok(tools), Ok(names)) => {
                assert_eq!(tools.iter().map(|tool| &*tool.provider_name).collect::<Vec<_>>(), names);
                assert!(tools.iter().all(|tool| tool.kind == ToolKind::Function));
            }
            (Err(path), Err(expected)) => assert_eq!(path, expected),
            (found, _) => panic!("{unsearched:?}: {found:?}"),
        }
    }
}
