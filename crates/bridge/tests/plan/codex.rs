//! Every recorded request of Codex, three generations of it, plans on the generic dialect, and everything that
//! it brought is in the chat request.

use std::collections::BTreeSet;

use bridge::Unsealed;
use serde_json::Value;
use testkit::transcript;

use crate::dialects::{all, named, strictness};
use crate::run::{MEND, Planned, plan_text};

fn requests() -> Option<Vec<(String, String)>> {
    let wanted = |name: &str| name.strip_prefix("request-").is_some_and(|rest| rest.contains(".json"));
    let read = |path: std::path::PathBuf| (path.display().to_string(), std::fs::read_to_string(path).unwrap());
    Some(testkit::shared_files("fixtures/codex", wanted)?.into_iter().map(read).collect())
}

#[test]
fn all_recorded_requests_plan_everywhere() {
    let Some(requests) = requests() else { return };
    assert!(requests.len() > 30, "{}", requests.len());
    let generic = named("generic");
    for (name, text) in &requests {
        let planned = plan_text(text, &[], &generic, bridge::Policy::default(), &Unsealed);
        let planned = planned.unwrap_or_else(|invalid| panic!("{name}: {invalid}"));
        everything_is_there(name, &serde_json::from_str(text).unwrap(), &planned);
        for (dialect_name, dialect) in all() {
            if dialect_name == "strict" {
                continue; // Takes four tools.
            }
            let planned = plan_text(text, &[], &dialect, MEND, &Unsealed).unwrap();
            let problems = transcript::check(&planned.body, strictness(&dialect));
            assert_eq!(problems, Vec::<String>::new(), "{name} on {dialect_name}");
        }
    }
}

fn everything_is_there(name: &str, request: &Value, planned: &Planned) {
    let sent = planned.body["messages"].to_string();
    let contains = |text: &str| {
        let escaped = Value::from(text).to_string();
        let inner = &escaped[1..escaped.len() - 1];
        assert!(text.is_empty() || sent.contains(inner), "{name}: {text:.80?} is missing");
    };
    let functions: BTreeSet<&str> =
        planned.body["tools"].as_array().into_iter().flatten().filter_map(|t| t["function"]["name"].as_str()).collect();
    let offered = |kind: &str, namespace: Option<&str>, tool: &str| {
        let tool = planned.context.tools.iter().find(|offered| {
            offered.name == tool && offered.namespace.as_deref() == namespace && offered.kind.name() == kind
        });
        let tool = tool.unwrap_or_else(|| panic!("{name}: {namespace:?} {tool:?}"));
        assert!(functions.contains(&*tool.provider_name), "{name}: {}", tool.provider_name);
    };
    let mut declared: Vec<&Value> = request["tools"].as_array().into_iter().flatten().collect();
    for item in request["input"].as_array().into_iter().flatten() {
        declared.extend(item["tools"].as_array().into_iter().flatten());
        texts(item, &contains);
    }
    contains(request["instructions"].as_str().unwrap_or_default());
    for tool in declared {
        match tool["type"].as_str().unwrap() {
            kind @ ("function" | "custom") => offered(kind, None, tool["name"].as_str().unwrap()),
            "namespace" => {
                for inner in tool["tools"].as_array().unwrap() {
                    let kind = inner["type"].as_str().unwrap();
                    offered(kind, tool["name"].as_str(), inner["name"].as_str().unwrap());
                }
            }
            "tool_search" => offered("tool_search", None, "tool_search"),
            "web_search" => {
                assert!(planned.notes.iter().any(|note| note.code.name() == "bridge.tool.ignored"), "{name}");
            }
            other => panic!("{name}: {other}"),
        }
    }
}

/// The texts and images of an item, messages and outputs alike.
fn texts(item: &Value, contains: &impl Fn(&str)) {
    if item["type"] == "reasoning" {
        return;
    }
    for member in ["content", "output"] {
        contains(item[member].as_str().unwrap_or_default());
        for part in item[member].as_array().into_iter().flatten() {
            contains(part["text"].as_str().unwrap_or_default());
            contains(part["image_url"].as_str().unwrap_or_default());
        }
    }
    contains(item["call_id"].as_str().unwrap_or_default());
}
