//! Plans as JSON. Keys for somebody else's server, and what godex keeps beside items, are in none of it.

use std::collections::HashMap;

use bridge::{Link, Note};
use bytes::Bytes;
use serde_json::{Value, json};
use store::Item;
use wire::json::{ObjectWriter, Raw};

use crate::config::Config;
use crate::error::ApiError;
use crate::request::RequestContext;
use crate::session::Past;
use crate::turn::{Explained, Question};

/// Models that are planned for at once; of more providers, the first.
pub(crate) const MOST_MODELS: usize = 100;

/// Tools of one server that are named.
const MOST_TOOLS: usize = 20;

/// Of the past that is shown, in bytes; what is beyond is only named.
const MOST_PAST: usize = 4 << 20;

/// A request, planned for each of these models; for every provider, if there are none.
pub(crate) async fn of_models(
    context: &RequestContext,
    request: Bytes,
    past: Past,
    models: &[String],
) -> Result<Value, ApiError> {
    let question = Question::open(context, request.clone(), past).await?;
    let config = &context.snapshot.config;
    let every;
    let models = if models.is_empty() {
        every = every_provider(config, &request);
        &every
    } else {
        models
    };
    let mut data = Vec::new();
    for model in models.iter().take(MOST_MODELS) {
        data.push(plan(model, question.plan(context, model).await));
        // Whoever else has something to do here has a turn between two of them.
        tokio::task::yield_now().await;
    }
    Ok(json!({"object": "list", "data": data, "past": past_of(question.past())}))
}

/// Every provider with the model that the request names there, or else with its own.
fn every_provider(config: &Config, request: &[u8]) -> Vec<String> {
    let asked = str::from_utf8(request).ok().and_then(|text| Raw::parse(text).ok()).and_then(|raw| raw.get("model"));
    let asked = asked.and_then(Raw::text).map(|model| model.decode().into_owned()).unwrap_or_default();
    let resolved = config.resolve(&asked).ok();
    let model = |provider: &crate::config::ProviderConfig| {
        let named = resolved.as_ref().filter(|(found, _)| found.name == provider.name).map(|(_, model)| model.clone());
        let own = || provider.provider.default_model.clone().or_else(|| provider.models.first().cloned());
        let model = named.or_else(own).or_else(|| resolved.as_ref().map(|(_, model)| model.clone()));
        let model = model.unwrap_or_else(|| "model".to_owned());
        format!("{}/{model}", provider.name)
    };
    config.providers.iter().map(model).collect()
}

pub(super) fn plan(asked: &str, explained: Result<Explained, ApiError>) -> Value {
    let explained = match explained {
        Ok(explained) => explained,
        Err(error) => {
            return json!({"asked": asked, "provider": null, "model": asked, "wire": null, "error": error_of(&error),
                "notes": [], "chat_request": null, "links": []});
        }
    };
    let Explained { provider, model, wire, plan } = explained;
    let mut shown = json!({"asked": asked, "provider": provider, "model": model, "wire": wire.name()});
    match plan {
        Ok(plan) => {
            shown["notes"] = plan.notes.iter().map(note).collect();
            shown["chat_request"] = shown_request(&plan.body);
            shown["links"] = plan.links.iter().map(link).collect();
        }
        Err(error) => {
            shown["error"] = error_of(&error);
            shown["notes"] = json!([]);
            shown["chat_request"] = Value::Null;
            shown["links"] = json!([]);
        }
    }
    shown
}

pub(super) fn note(note: &Note) -> Value {
    json!({"code": note.code.name(), "severity": note.severity.name(), "action": note.action.name(),
        "path": note.path, "detail": note.message})
}

fn link(link: &Link) -> Value {
    let mut shown = json!({"item": link.item, "to": link.to});
    if let Some(why) = &link.left_out {
        shown["left_out"] = json!(why);
    }
    if let Some(how) = &link.by_godex {
        shown["by_godex"] = json!(how);
    }
    shown
}

/// What the servers of a request listed when it was made: a plan asks none of them, but its response tells.
pub(super) fn tell_of_servers(plan: &mut Value, request: &Value, response: &Value) {
    let mut lists: HashMap<&str, String> = HashMap::new();
    for item in response["output"].as_array().into_iter().flatten().filter(|item| item["type"] == "mcp_list_tools") {
        let tools = item["tools"].as_array().map_or(&[][..], Vec::as_slice);
        let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).take(MOST_TOOLS).collect();
        let more = if tools.len() > names.len() { ", …" } else { "" };
        let said =
            format!("its server listed {} tools then, which were offered: {}{more}", tools.len(), names.join(", "));
        lists.extend(item["server_label"].as_str().map(|label| (label, said)));
    }
    for link in plan["links"].as_array_mut().into_iter().flatten().filter(|link| link["by_godex"].is_string()) {
        let index = link["item"].as_str().and_then(|item| item.strip_prefix("tools[")?.strip_suffix(']')?.parse().ok());
        let tool = index.and_then(|index: usize| request["tools"].get(index));
        if let Some(said) = tool.and_then(|tool| lists.get(tool["server_label"].as_str()?)) {
            link["by_godex"] = json!(said);
        }
    }
}

pub(super) fn error_of(error: &ApiError) -> Value {
    json!({"code": error.wire.as_deref().unwrap_or_else(|| error.code.domain()), "message": error.message, "param": error.param})
}

/// A request of either API as it may be shown.
pub(crate) fn shown_request(body: &[u8]) -> Value {
    let Some(raw) = str::from_utf8(body).ok().and_then(|text| Raw::parse(text).ok()) else { return Value::Null };
    let mut out = Vec::with_capacity(body.len());
    let mut object = ObjectWriter::new(&mut out);
    for (key, value) in raw.fields() {
        let name = key.decode();
        match &*name {
            "tools" => bridge::shown_tools(value, object.key(&name)),
            "tool_choice" => bridge::shown_tool(value, object.key(&name)),
            "input" if value.as_str().starts_with('[') => items(value, object.key(&name)),
            _ => drop(object.raw(&name, value)),
        }
    }
    object.end();
    super::read(&out).unwrap_or_default()
}

fn items(list: Raw<'_>, out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, item) in list.elements().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        match bridge::shown_item(item) {
            Some(shown) => out.extend_from_slice(&shown),
            None => out.extend_from_slice(item.as_str().as_bytes()),
        }
    }
    out.push(b']');
}

/// A stored item as it may be shown.
pub(crate) fn shown_item(item: &Item) -> Value {
    let Some(raw) = str::from_utf8(&item.body).ok().and_then(|text| Raw::parse(text).ok()) else { return Value::Null };
    let shown = bridge::shown_item(raw);
    super::read(shown.as_deref().unwrap_or(&item.body)).unwrap_or_default()
}

pub(super) fn past_of(items: &[Item]) -> Value {
    let mut bytes = 0_usize;
    let shown = |item: &Item| {
        bytes = bytes.saturating_add(item.body.len());
        if bytes <= MOST_PAST {
            return shown_item(item);
        }
        let kind =
            str::from_utf8(&item.body).ok().and_then(|text| Raw::parse(text).ok()).and_then(|raw| raw.get("type"));
        let kind = kind.and_then(Raw::text).map(|kind| kind.decode().into_owned());
        json!({"type": kind, "id": item.id, "omitted": true})
    };
    items.iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_what_is_kept_are_not_shown_and_halves_are_replaced() {
        let body =
            br#"{"model":"m","tools":[{"type":"mcp","server_label":"s","authorization":"KEY","headers":{"a":"KEY"}}],
            "tool_choice":{"type":"allowed_tools","tools":[{"type":"mcp","authorization":"KEY"}]},
            "input":[{"type":"mcp_call","godex_output":{"output":"KEY"}},{"role":"user","content":"a\ud83d"}]}"#;
        let shown = shown_request(body);
        assert!(!shown.to_string().contains("KEY"), "{shown}");
        assert_eq!(shown["input"][1]["content"], "a\u{fffd}");
        assert_eq!(shown["tools"], json!([{"type": "mcp", "server_label": "s"}]));
        assert_eq!(shown_request(b"no JSON"), Value::Null);
    }

    #[test]
    fn what_a_server_listed_then_is_told() {
        let link = |item: &str| json!({"item": item, "to": [], "by_godex": "not asked"});
        let mut plan = json!({"links": [link("tools[0]"), link("tools[1]"), {"item": "tools[2]", "to": ["tools[0]"]}]});
        let request = json!({"tools": [{"type": "mcp", "server_label": "a"}, {"type": "mcp", "server_label": "b"}]});
        let listed = json!({"type": "mcp_list_tools", "server_label": "a", "tools": [{"name": "x"}, {"name": "y"}]});
        tell_of_servers(&mut plan, &request, &json!({"output": [listed, {"type": "message"}]}));
        assert_eq!(plan["links"][0]["by_godex"], "its server listed 2 tools then, which were offered: x, y");
        assert_eq!((&plan["links"][1]["by_godex"], &plan["links"][2]["by_godex"]), (&json!("not asked"), &Value::Null));
    }
}
