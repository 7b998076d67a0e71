//! Where we knowingly differ from a published description, read from `tests/tolerated.json`, the one list of it. An
//! entry changes a copy of what is checked; everything else in it is checked.

use std::sync::OnceLock;

use serde_json::{Map, Value};

/// The list, with its own words on what its members mean.
const LIST: &str = include_str!("../../../../tests/tolerated.json");

fn entries(by: &str) -> impl Iterator<Item = &'static Value> {
    static READ: OnceLock<Value> = OnceLock::new();
    let list = READ.get_or_init(|| serde_json::from_str(LIST).unwrap_or_default());
    let entries = list["tolerated"].as_array().into_iter().flatten();
    entries.filter(move |entry| entry["by"].as_array().into_iter().flatten().any(|name| name == by))
}

/// A response object or an event as `by` is to check it; `None` where it cannot be said there.
pub(super) fn tolerated(by: &str, value: &Value) -> Option<Value> {
    let name = value["type"].as_str().unwrap_or_default();
    let mut value = value.clone();
    for entry in entries(by) {
        let mut events = entry["event"].as_array().into_iter().flatten().filter_map(Value::as_str);
        if events.any(|prefix| name.starts_with(prefix)) {
            return None;
        }
        let steps: Vec<&str> = entry["at"].as_str().unwrap_or_default().split('/').skip(1).collect();
        if steps.is_empty() {
            continue;
        }
        if apply(entry, &steps, &mut value) == Outcome::Skip {
            return None;
        }
        if let Some(response) = value.get_mut("response") {
            apply(entry, &steps, response);
        }
    }
    Some(value)
}

#[derive(PartialEq, Eq)]
enum Outcome {
    Checked,
    Skip,
}

fn apply(entry: &Value, steps: &[&str], value: &mut Value) -> Outcome {
    match (steps, value) {
        (["*"], Value::Array(elements)) if entry["remove"] == true => elements.retain(|element| !fits(entry, element)),
        (["*", rest @ ..], Value::Array(elements)) => {
            for element in elements {
                apply(entry, rest, element);
            }
        }
        ([_], Value::Object(members)) if !held(entry, members) => {}
        ([last], Value::Object(members)) => match members.get_mut(*last) {
            None => {
                if let Some(added) = entry.get("add") {
                    members.insert((*last).to_owned(), added.clone());
                }
            }
            Some(found) if !fits(entry, found) => {}
            Some(_) if entry["skip"] == true => return Outcome::Skip,
            Some(_) if entry["remove"] == true => drop(members.remove(*last)),
            Some(found) => {
                if let Some(other) = entry.get("as") {
                    *found = other.clone();
                }
            }
        },
        ([step, rest @ ..], Value::Object(members)) => {
            if let Some(member) = members.get_mut(*step) {
                return apply(entry, rest, member);
            }
        }
        _ => {}
    }
    Outcome::Checked
}

/// Whether the entry is about members of this object.
fn held(entry: &Value, members: &Map<String, Value>) -> bool {
    entry["of"].as_array().is_none_or(|list| members.get("type").is_some_and(|kind| list.contains(kind)))
}

/// Whether the entry is about this value.
fn fits(entry: &Value, value: &Value) -> bool {
    let value = value.get("type").unwrap_or(value);
    let lists = |name: &str| entry[name].as_array().map(|list| list.contains(value));
    lists("values").or_else(|| lists("except").map(|listed| !listed)).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_entry_says_whose_it_is_and_why() {
        let list: Value = serde_json::from_str(LIST).unwrap();
        for entry in list["tolerated"].as_array().unwrap() {
            let known = ["openai", "open-responses", "python", "node"];
            let by = entry["by"].as_array().unwrap();
            assert!(!by.is_empty() && by.iter().all(|name| known.iter().any(|known| name == known)), "{entry}");
            assert!(entry["why"].is_string() && (entry["event"].is_array() != entry["at"].is_string()), "{entry}");
        }
    }

    #[test]
    fn only_the_place_changes() {
        let failed = json!({"type": "response.failed", "response": {"error": {"code": "insufficient_quota"}}});
        let seen = tolerated("openai", &failed).unwrap();
        assert_eq!(seen["response"]["error"]["code"], "server_error");
        assert_eq!(tolerated("open-responses", &failed).unwrap(), failed);
        let odd = json!({"type": "response.failed", "response": {"error": {"code": "no_such_code"}}});
        assert_eq!(tolerated("openai", &odd).unwrap(), odd);
        let item = |kind: &str| json!({"type": "response.output_item.done", "item": {"type": kind}});
        assert_eq!(tolerated("open-responses", &item("shell_call")), None);
        assert_eq!(tolerated("open-responses", &item("message")), Some(item("message")));
        let output = json!({"output": [{"type": "message"}, {"type": "shell_call"}], "tool_choice": "required"});
        assert_eq!(tolerated("open-responses", &output).unwrap()["output"], json!([{"type": "message"}]));
        assert_eq!(tolerated("open-responses", &output).unwrap()["tool_choice"], "required");
    }
}
