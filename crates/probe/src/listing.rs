//! What a server's own list of models says of one model, in the words that servers have for it: those of the spec first,
//! then those of servers that are known. A list that says nothing of something is no word against it, and what is not of
//! the kind that is expected there says nothing.

use bridge::Effort;
use providers::DiscoveryRules;
use serde_json::Value;

/// Where servers say how many tokens fit. What a model was trained for (`meta.n_ctx_train`) is not what a server has room
/// for, so it is not among them.
const WINDOWS: &[&str] = &[
    "meta.n_ctx",
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
    "loaded_context_length",
    "max_input_tokens",
    "top_provider.context_length",
];
/// Where they say what a model takes, and the value that means images.
const IMAGES: &[(&str, &str)] = &[
    ("architecture.input_modalities", "image"),
    ("input_modalities", "image"),
    ("modalities.input", "image"),
    ("capabilities.image_input.supported", "true"),
    ("capabilities.vision", "true"),
];
/// Lists of efforts.
const EFFORTS: &[&str] = &["reasoning.supported_efforts", "supported_reasoning_efforts", "reasoning_efforts"];
/// Objects with a member for each effort, which says whether it is `supported`.
const EFFORT_MEMBERS: &[&str] = &["capabilities.effort"];
/// Lists of parameters, or of what they are for.
const PARAMETERS: &[&str] = &["supported_parameters", "supported_features"];

/// Windows outside of this are not known, or not counted in tokens.
const TOKENS: std::ops::RangeInclusive<u64> = 1024..=1_000_000_000;

/// Something that the list says, and the member that says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said<T> {
    pub(crate) value: T,
    pub(crate) at: String,
}

/// All that it says of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ListedModel {
    pub(crate) context_window: Option<Said<u64>>,
    pub(crate) images: Option<Said<bool>>,
    pub(crate) efforts: Option<Said<Vec<Effort>>>,
    /// Whether tools are among the parameters.
    pub(crate) tools: Option<Said<bool>>,
}

/// What the list says of this model; None: it does not name it.
pub(crate) fn find(list: &Value, rules: &DiscoveryRules, model: &str) -> Option<ListedModel> {
    let members = rules.list.iter().filter_map(|way| at(list, way));
    let entries = std::iter::once(list).chain(members).find_map(Value::as_array)?;
    let is_it = |entry: &&Value| rules.name.iter().any(|way| at(entry, way).and_then(Value::as_str) == Some(model));
    let entry = entries.iter().find(is_it)?;
    Some(ListedModel {
        context_window: context_window(entry, rules),
        images: images(entry, rules),
        efforts: efforts(entry),
        tools: first(PARAMETERS, |way| Some(words(at(entry, way)?)?.contains(&"tools"))),
    })
}

fn context_window(entry: &Value, rules: &DiscoveryRules) -> Option<Said<u64>> {
    // Where the server says it elsewhere, an entry of its list has another number.
    let of_spec = rules.context_window.iter().filter(|_| rules.server_path.is_none()).map(String::as_str);
    let ways: Vec<&str> = of_spec.chain(WINDOWS.iter().copied()).collect();
    first(&ways, |way| at(entry, way)?.as_u64().filter(|tokens| TOKENS.contains(tokens)))
}

fn images(entry: &Value, rules: &DiscoveryRules) -> Option<Said<bool>> {
    let of_spec = rules.images.iter().map(|(way, values)| (way.as_str(), values.iter().map(String::as_str).collect()));
    let known = IMAGES.iter().map(|(way, value)| (*way, vec![*value]));
    let mut ways = of_spec.chain(known);
    ways.find_map(|(way, wanted): (&str, Vec<&str>)| {
        Some(Said { value: has(at(entry, way)?, &wanted)?, at: way.to_owned() })
    })
}

fn efforts(entry: &Value) -> Option<Said<Vec<Effort>>> {
    let all =
        |takes: &dyn Fn(&str) -> bool| Effort::ALL.iter().copied().filter(|effort| takes(effort.name())).collect();
    let listed = first(EFFORTS, |way| {
        let list = words(at(entry, way)?)?;
        Some(all(&|name| list.contains(&name)))
    });
    let by_member = || {
        first(EFFORT_MEMBERS, |way| {
            let members = at(entry, way)?.as_object()?;
            let is_said = |effort: &Value| effort.get("supported").is_none_or(Value::is_boolean);
            let known = members.values().all(is_said);
            known.then(|| all(&|name| members.get(name).is_some_and(|effort| effort["supported"] == true)))
        })
    };
    listed.or_else(by_member).filter(|said: &Said<Vec<Effort>>| !said.value.is_empty())
}

fn first<T>(ways: &[&str], read: impl Fn(&str) -> Option<T>) -> Option<Said<T>> {
    ways.iter().find_map(|way| Some(Said { value: read(way)?, at: (*way).to_owned() }))
}

/// What a way of member names, with dots between them, leads to; nothing where that is null.
fn at<'v>(value: &'v Value, way: &str) -> Option<&'v Value> {
    way.split('.').try_fold(value, |value, member| value.get(member)).filter(|value| !value.is_null())
}

/// Whether it is one of these words, or a list with one; None: it is no answer to that.
fn has(value: &Value, wanted: &[&str]) -> Option<bool> {
    let is_truth = |word: &&str| matches!(*word, "true" | "false");
    let (said, of_truth) = match value {
        Value::Bool(true) => (vec!["true"], true),
        Value::Bool(false) => (vec!["false"], true),
        Value::String(text) => (vec![text.as_str()], is_truth(&text.as_str())),
        value => (words(value)?, false),
    };
    (wanted.iter().all(is_truth) == of_truth).then(|| said.iter().any(|word| wanted.contains(word)))
}

/// A list that has nothing but words.
fn words(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use providers::{Library, resolve_named};
    use serde_json::json;

    use super::*;

    type Row<'r> = (Option<u64>, Option<bool>, Option<&'r str>, Option<bool>);

    fn is(spec: &str, entry: &Value, expected: Option<Row<'_>>) {
        let rules = resolve_named(Library::BUILTIN, spec, &|_| None).unwrap().discovery;
        let found = find(&json!({"data": [{"id": "other"}, entry]}), &rules, "m");
        let efforts = found.as_ref().and_then(|said| said.efforts.as_ref()).map(|said| said.value.iter().copied());
        let efforts = efforts.map(|efforts| efforts.map(Effort::name).collect::<Vec<_>>().join(" "));
        let row = found.map(|said| {
            let ListedModel { context_window, images, efforts: _, tools } = said;
            let value = |said: Option<Said<bool>>| said.map(|said| said.value);
            (context_window.map(|said| said.value), value(images), efforts.as_deref(), value(tools))
        });
        assert_eq!(row, expected, "{spec} {entry}");
    }

    /// Each server in its own words.
    #[test]
    fn lists_say_what_a_model_takes() {
        let on = json!({"supported": true});
        let cases: [(&str, Value, Row<'_>); 16] = [
            ("openai", json!({"id": "m", "object": "model", "owned_by": "o"}), (None, None, None, None)),
            ("vllm", json!({"id": "m", "max_model_len": 32768}), (Some(32768), None, None, None)),
            (
                "openrouter",
                json!({"id": "m", "context_length": 262_144, "architecture": {"input_modalities": ["text", "image"]},
                    "supported_parameters": ["max_tokens", "tools"], "reasoning": {"supported_efforts": ["high", "low"]}}),
                (Some(262_144), Some(true), Some("low high"), Some(true)),
            ),
            (
                "openrouter",
                json!({"id": "m", "architecture": {"input_modalities": ["text"]}, "supported_parameters": ["stop"],
                    "reasoning": {"supported_efforts": null}}),
                (None, Some(false), None, Some(false)),
            ),
            ("llamacpp", json!({"id": "m", "meta": {"n_ctx_train": 131_072}}), (None, None, None, None)),
            (
                "llamacpp",
                json!({"id": "m", "meta": {"n_ctx": 4096, "n_ctx_train": 131_072}}),
                (Some(4096), None, None, None),
            ),
            (
                "messages-compatible",
                json!({"id": "m", "max_input_tokens": 200_000, "capabilities": {"image_input": on,
                    "effort": {"supported": true, "low": on, "high": on, "max": {"supported": false}}}}),
                (Some(200_000), Some(true), Some("low high"), None),
            ),
            (
                "openai-compatible",
                json!({"id": "m", "context_length": 0, "input_modalities": "text"}),
                (None, Some(false), None, None),
            ),
            (
                "openai-compatible",
                json!({"id": "m", "context_length": "many", "reasoning_efforts": ["fast"]}),
                (None, None, None, None),
            ),
            // What is of another kind than it should be is no word against anything.
            (
                "openai-compatible",
                json!({"id": "m", "capabilities": {"vision": "yes"}, "supported_parameters": "tools"}),
                (None, None, None, None),
            ),
            (
                "openai-compatible",
                json!({"id": "m", "capabilities": {"vision": 1}, "supported_parameters": [1], "supports_image_in": null}),
                (None, None, None, None),
            ),
            (
                "openai-compatible",
                json!({"id": "m", "input_modalities": true, "supported_parameters": {"tools": true}}),
                (None, None, None, None),
            ),
            (
                "openai-compatible",
                json!({"id": "m", "architecture": {"input_modalities": {"image": true}}, "input_modalities": ["image"]}),
                (None, Some(true), None, None),
            ),
            (
                "openai-compatible",
                json!({"id": "m", "capabilities": {"vision": "false"}, "reasoning_efforts": ["low", 3]}),
                (None, Some(false), None, None),
            ),
            (
                "openai-compatible",
                json!({"id": "m", "input_modalities": [], "supported_features": []}),
                (None, Some(false), None, Some(false)),
            ),
            (
                "messages-compatible",
                json!({"id": "m", "capabilities": {"image_input": {"supported": "yes"},
                    "effort": {"low": on, "high": {"supported": 1}}}}),
                (None, None, None, None),
            ),
        ];
        for (spec, entry, expected) in cases {
            is(spec, &entry, Some(expected));
        }
        is("openai", &json!({"id": "n"}), None);
        assert_eq!(find(&json!("no list"), &DiscoveryRules::default(), "m"), None);
    }
}
