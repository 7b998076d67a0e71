//! `thinking` and `output_config`: what a dialect says about them in several places is one object each. A budget leaves
//! room for the answer, and thoughts are bound, and shown, only where there are some.

use wire::json::{Kind, ObjectWriter, Raw};
use wire::messages::{Content, Message, Request, Role};

use super::lower::is_thought;
use crate::dialect::{Dialect, EffortField, Parameter, ReasoningRules, RequestRules, ThinkingType, ThoughtDisplay};
use crate::plan::notes::{Notes, code};
use crate::plan::{json, reasoning};

/// The least budget that is taken.
const LEAST: i64 = 1024;
/// What an answer has beside what was thought.
const ANSWER: i64 = 4096;

const ENABLED: &str = "\"enabled\"";
const BINDING: &str = r#"{"prefix_mismatch_behavior":"drop_block"}"#;

pub(super) fn plan(
    planned: reasoning::Planned<'_>,
    wants_summary: bool,
    dialect: &Dialect,
    body: &mut Request<'_>,
    notes: &mut Notes,
) {
    let RequestRules { reasoning, blocks: rules, .. } = &dialect.request;
    for object in planned.members {
        merge(object, body);
    }
    if let Some((_, word)) = planned.effort {
        set(&mut body.output_config, "effort", json::text(|out| word.write(out)));
    }
    keep_to_budget(reasoning, body, notes);
    let has_effort = reasoning.effort == EffortField::Native && !dialect.drops(Parameter::ReasoningEffort);
    do_without(&rules.refused, has_effort, body, notes);
    if dialect.drops(Parameter::ReasoningEffort) {
        body.output_config.retain(|(name, _)| name != "effort");
    }
    let kind = get(&body.thinking, "type").map(str::to_owned);
    if !matches!(kind.as_deref(), Some("\"adaptive\"" | ENABLED)) {
        return;
    }
    if !planned.thinks {
        notes.degraded(code::PARAM_DEGRADED, "reasoning.effort", "this model always thinks: as little as it can");
    }
    let display = match rules.display {
        ThoughtDisplay::Unsaid => None,
        ThoughtDisplay::Asked if !wants_summary => Some("\"omitted\""),
        ThoughtDisplay::Asked | ThoughtDisplay::Always => Some("\"summarized\""),
    };
    if let Some(display) = display {
        set(&mut body.thinking, "display", display.to_owned());
    }
    if !rules.binding_beta.is_empty() {
        set(&mut body.thinking, "block_binding", BINDING.to_owned());
    }
    sample_freely(body, notes);
}

/// A kind of thinking that turned out not to be taken: another one that comes near, or none.
fn do_without(refused: &[ThinkingType], has_effort: bool, body: &mut Request<'_>, notes: &mut Notes) {
    const EFFORT: &str = "reasoning.effort";
    let is = |kind: &ThinkingType| get(&body.thinking, "type") == Some(&format!("\"{}\"", kind.name()));
    let Some(kind) = refused.iter().copied().find(is) else { return };
    body.thinking.clear();
    match kind {
        ThinkingType::Enabled if !refused.contains(&ThinkingType::Adaptive) => {
            set(&mut body.thinking, "type", "\"adaptive\"".to_owned());
            notes.degraded(code::PARAM_DEGRADED, EFFORT, "this model has no budget for it: as much as it likes");
        }
        ThinkingType::Disabled => {
            if has_effort {
                set(&mut body.output_config, "effort", "\"low\"".to_owned());
            }
            notes.degraded(code::PARAM_DEGRADED, EFFORT, "this model always thinks: as little as it can");
        }
        ThinkingType::Enabled | ThinkingType::Adaptive => {
            notes.degraded(code::PARAM_DEGRADED, "reasoning", "nothing is said of it: this model does not take that");
        }
    }
}

/// Takes the members of an object into the body's.
fn merge(object: &str, body: &mut Request<'_>) {
    for (key, value) in Raw::parse(object).unwrap_or(Raw::NULL).fields() {
        let inner = value.kind() == Kind::Object;
        let into = match &*key.decode() {
            "thinking" if inner => &mut body.thinking,
            "output_config" if inner => &mut body.output_config,
            name => {
                body.extra.push(json::text(|out| {
                    let mut object = ObjectWriter::new(out);
                    object.raw(name, value);
                    object.end();
                }));
                continue;
            }
        };
        for (name, value) in value.fields() {
            set(into, &name.decode(), value.as_str().to_owned());
        }
    }
}

fn get<'m>(members: &'m [(String, String)], name: &str) -> Option<&'m str> {
    members.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn set(members: &mut Vec<(String, String)>, name: &str, value: String) {
    match members.iter_mut().find(|(known, _)| known == name) {
        Some((_, known)) => *known = value,
        None => members.push((name.to_owned(), value)),
    }
}

/// A budget is part of the limit. Where there is no room for it, or where the calls that are being answered have lost the
/// thought that led to them, which such a model insists on, it does not think. Some insist on those of earlier calls, too.
fn keep_to_budget(rules: &ReasoningRules, body: &mut Request<'_>, notes: &mut Notes) {
    if get(&body.thinking, "type") != Some(ENABLED) {
        return;
    }
    let Some(budget) = get(&body.thinking, "budget_tokens").and_then(|budget| budget.parse::<i64>().ok()) else {
        return;
    };
    let room = body.max_tokens - ANSWER;
    let why = if room < LEAST {
        "off for this call: max_output_tokens leaves no room for it"
    } else if answers_thoughtless_calls(&body.messages) {
        "off for this call: the reasoning before the last calls is lost"
    } else if rules.placeholder && body.messages.iter().any(calls_without_thought) {
        "off: the reasoning before earlier calls is lost, and this model wants all of it back"
    } else {
        set(&mut body.thinking, "budget_tokens", budget.clamp(LEAST, room).to_string());
        return;
    };
    notes.degraded(code::PARAM_DEGRADED, "reasoning", why);
    body.thinking.clear();
    // Who thinks unless told not to has to be told.
    merge(rules.off.as_deref().unwrap_or_default(), body);
}

fn calls_without_thought(message: &Message<'_>) -> bool {
    let calls = message.blocks.iter().any(|block| matches!(block.content, Content::ToolUse { .. }));
    let thinks = message.blocks.iter().any(|block| matches!(&block.content, Content::Raw(json) if is_thought(json)));
    calls && !thinks
}

fn answers_thoughtless_calls(messages: &[Message<'_>]) -> bool {
    let Some(Message { blocks, .. }) = messages.iter().rfind(|message| message.role == Role::User) else {
        return false;
    };
    let answers = blocks.first().is_some_and(|block| matches!(block.content, Content::ToolResult { .. }));
    let called = messages.iter().rfind(|message| message.role == Role::Assistant);
    let first = called.and_then(|message| message.blocks.first()).map(|block| &block.content);
    // What the provider's own tools did returns as it came, too, and is no thought.
    answers && !matches!(first, Some(Content::Raw(json)) if is_thought(json))
}

/// A model that thinks is sampled in its own way, with a budget or without.
fn sample_freely(body: &mut Request<'_>, notes: &mut Notes) {
    let given = [("temperature", &mut body.temperature), ("top_p", &mut body.top_p)];
    for (name, value) in given {
        if value.take_if(|value| !is_one(value.value)).is_some() {
            notes.ignored(code::PARAM_IGNORED, name, "this model takes none while it thinks");
        }
    }
}

fn is_one(value: f64) -> bool {
    (value - 1.0).abs() < f64::EPSILON
}
