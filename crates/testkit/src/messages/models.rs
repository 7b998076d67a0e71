//! What single models refuse, beside what all of them do. From the API's own tables, as of November 2026.

use serde_json::Value;

use super::{demand, tools};

const ALL: &[&str] = &["low", "medium", "high", "xhigh", "max"];

/// A model, by a part of its name; the first that fits counts.
struct Model {
    name: &'static str,
    /// Forms of `thinking` that it takes.
    thinking: &'static [&'static str],
    efforts: &'static [&'static str],
    samples: bool,
    /// It can be made to call a tool, unless it thinks within a budget.
    is_forced: bool,
    /// The application may speak in the midst of a conversation.
    late_system: bool,
    max_tokens: u64,
    images: usize,
}

const NEW: Model = Model {
    name: "",
    thinking: &["adaptive"],
    efforts: ALL,
    samples: false,
    is_forced: false,
    late_system: true,
    max_tokens: 128_000,
    images: 600,
};

const BUDGET: Model = Model {
    name: "",
    thinking: &["enabled", "disabled"],
    efforts: &[],
    samples: true,
    is_forced: true,
    late_system: false,
    max_tokens: 64_000,
    images: 100,
};

const MODELS: &[Model] = &[
    Model { name: "fable-5", ..NEW },
    Model { name: "mythos-5", ..NEW },
    Model { name: "opus-5-5", ..NEW },
    Model { name: "sonnet-5-5", thinking: &["adaptive", "between_tools"], ..NEW },
    Model { name: "haiku-5-5", thinking: &["adaptive", "disabled"], is_forced: true, ..NEW },
    Model { name: "opus-5", thinking: &["adaptive", "disabled"], is_forced: true, ..NEW },
    Model { name: "sonnet-5", thinking: &["adaptive", "disabled"], is_forced: true, late_system: false, ..NEW },
    Model { name: "opus-4-8", thinking: &["adaptive", "disabled"], is_forced: true, ..NEW },
    Model { name: "opus-4-7", thinking: &["adaptive", "disabled"], is_forced: true, late_system: false, ..NEW },
    Model {
        name: "opus-4-6",
        thinking: &["adaptive", "enabled", "disabled"],
        efforts: &["low", "medium", "high", "max"],
        max_tokens: 128_000,
        images: 600,
        ..BUDGET
    },
    Model {
        name: "sonnet-4-6",
        thinking: &["adaptive", "enabled", "disabled"],
        efforts: &["low", "medium", "high", "max"],
        images: 600,
        ..BUDGET
    },
    Model { name: "opus-4", ..BUDGET },
    Model { name: "sonnet-4", ..BUDGET },
    Model { name: "haiku-4", ..BUDGET },
    // One that nobody knows yet.
    Model { name: "claude", ..NEW },
];

/// The first thing that this model refuses in a body that is lawful otherwise.
pub fn check_for_model(model: &str, body: &Value) -> Result<(), String> {
    let of = MODELS.iter().find(|known| model.contains(known.name));
    let of = of.ok_or_else(|| format!("{model}: not_found_error"))?;
    let thinking = &body["thinking"]["type"];
    let text = thinking.as_str();
    demand(text.is_none_or(|kind| of.thinking.contains(&kind)), || {
        format!("{model}: thinking.type: {thinking} is not supported for this model")
    })?;
    let effort = body["output_config"]["effort"].as_str();
    demand(effort.is_none_or(|effort| of.efforts.contains(&effort)), || format!("{model}: the effort {effort:?}"))?;
    let little = matches!(text, Some("disabled" | "between_tools"));
    demand(!(little && matches!(effort, Some("xhigh" | "max"))), || format!("{model}: {thinking} with {effort:?}"))?;
    for name in ["temperature", "top_p", "top_k"] {
        demand(of.samples || body.get(name).is_none(), || format!("{model}: {name}: extra inputs are not permitted"))?;
    }
    let is_forced = matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool"));
    demand(!is_forced || of.is_forced, || {
        format!("{model}: tool_choice: type \"tool\" and \"any\" are not supported for this model.")
    })?;
    let late = body["messages"].as_array().into_iter().flatten().any(|message| message["role"] == "system");
    demand(!late || of.late_system, || format!("{model}: messages: no role \"system\""))?;
    let limit = body["max_tokens"].as_u64().unwrap_or_default();
    demand(limit <= of.max_tokens, || format!("{model}: max_tokens: {limit} > {}", of.max_tokens))?;
    tools::check_schemas(body).map_err(|problem| format!("{model}: {problem}"))?;
    let images = body["messages"].to_string().matches(r#""type":"image""#).count();
    demand(images <= of.images, || format!("{model}: {images} images"))
}
