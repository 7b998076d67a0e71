//! Tools of the provider's own that are no tools there, but members of the body.

use bridge::{ChoiceKind, Dialect, Hosted, Hosting, Policy, SearchFunctions, Unsealed};
use serde_json::{Value, json};

use crate::run::{Planned, plan, plan_hosted};

fn dialect() -> Dialect {
    let mut dialect = Dialect::default();
    let template =
        r#"{"enable_search":true,"search_options":{"size":{"$search_context_size":{"high":9,"default":3}}}}"#;
    dialect.request.tools.native_members = vec![(Hosted::WebSearch, template.to_owned())];
    dialect
}

fn request(tools: Value, choice: Value) -> Value {
    json!({"model": "m", "input": "News?", "tools": tools, "tool_choice": choice})
}

fn sent(planned: &Planned) -> Value {
    let body = &planned.body;
    json!([body["enable_search"], body["search_options"]["size"], body["tools"], body["tool_choice"]])
}

#[test]
fn the_members_are_sent_and_no_tool() {
    let search = json!({"type": "web_search"});
    let large = json!({"type": "web_search", "search_context_size": "high"});
    let function = json!({"type": "function", "name": "f"});
    let declared =
        json!([{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]);
    for (tools, choice, expected) in [
        (json!([search]), json!("auto"), json!([true, 3, null, null])),
        (json!([large, search]), json!(null), json!([true, 9, null, null])),
        (json!([function, search]), json!("required"), json!([true, 3, declared, "required"])),
        (json!([function, search]), json!("none"), json!([null, null, declared, "none"])),
        (json!([search]), json!("none"), json!([null, null, null, null])),
        (
            json!([function, search]),
            json!({"type": "allowed_tools", "mode": "auto", "tools": [function]}),
            json!([null, null, declared, null]),
        ),
        (
            json!([function, search]),
            json!({"type": "allowed_tools", "mode": "auto", "tools": [search]}),
            json!([true, 3, null, null]),
        ),
        (json!([function]), json!("auto"), json!([null, null, declared, null])),
        // It cannot be demanded.
        (json!([search]), json!("required"), json!([true, 3, null, null])),
        (json!([function, search]), json!({"type": "web_search"}), json!([true, 3, declared, null])),
    ] {
        let planned = plan(&request(tools.clone(), choice.clone()), &dialect()).unwrap();
        assert_eq!(sent(&planned), expected, "{tools} {choice}");
        let demands = choice == "required" && tools.as_array().unwrap().len() == 1 || choice["type"] == "web_search";
        assert_eq!(planned.has_note("bridge.param.degraded", "tool_choice"), demands, "{tools} {choice}");
    }
}

/// Where `none` cannot be said, no tool is sent, and nothing is switched on.
#[test]
fn nothing_is_switched_on_where_no_tool_may_be_called() {
    let mut dialect = dialect();
    dialect.request.tools.choices = vec![ChoiceKind::Auto];
    let planned = plan(&request(json!([{"type": "web_search"}]), json!("none")), &dialect).unwrap();
    assert_eq!(sent(&planned), json!([null, null, null, null]));
}

/// What a provider runs itself stays there.
#[test]
fn godex_does_not_search_in_its_place() {
    let request = request(json!([{"type": "web_search"}]), json!("auto")).to_string();
    let hosting = Hosting { web_search: Some(SearchFunctions { pages: true }), ..Hosting::default() };
    let planned = plan_hosted(&request, &[], &dialect(), Policy::default(), &Unsealed, hosting).unwrap();
    assert_eq!(sent(&planned), json!([true, 3, null, null]));
}
