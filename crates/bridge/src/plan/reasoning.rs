//! `reasoning`: how much thinking is asked for, in the provider's words.

use std::borrow::Cow;

use wire::chat::Str;
use wire::json::{Invalid, InvalidCode};
use wire::responses::{CreateResponse, ReasoningConfig};

use super::notes::{Notes, code};
use super::tools::Tools;
use crate::dialect::{Dialect, Effort, EffortField, ForcedWhileThinking, Parameter, ReasoningRules, Thinking};

/// What is said about thinking.
#[derive(Debug)]
pub(super) struct Planned<'a> {
    /// The effort, and the member that carries it.
    pub(super) effort: Option<(EffortField, Str<'a>)>,
    /// Members of the body; JSON objects.
    pub(super) members: Vec<&'a str>,
    /// The model thinks, as far as we know.
    pub(super) thinks: bool,
    /// The request switches it off, in the way that the dialect has for that.
    pub(super) is_off: bool,
}

/// What the request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Nothing,
    Off,
    On,
}

pub(super) fn plan<'a>(
    request: &CreateResponse<'a>,
    dialect: &'a Dialect,
    tools: &mut Tools<'a>,
    carries_reasoning: bool,
    notes: &mut Notes,
) -> Result<Planned<'a>, Invalid> {
    let rules = &dialect.request.reasoning;
    let config = request.reasoning.as_ref();
    note_rest(config, notes);
    let asked = match config.and_then(|config| config.effort) {
        None => Asked::Nothing,
        Some(effort) if effort.is("none") => Asked::Off,
        Some(_) => Asked::On,
    };
    let mut state = match (asked, rules.unsaid) {
        (Asked::Nothing, Thinking::On) => Asked::On,
        (Asked::Nothing, Thinking::Off) => Asked::Off,
        (asked, _) => asked,
    };
    if rules.history_keeps_on && carries_reasoning && state != Asked::On {
        if asked == Asked::Off {
            notes.degraded(code::PARAM_DEGRADED, "reasoning.effort", "thinking stays on while the history has some");
        }
        state = Asked::On;
    }
    state = yield_to_choice(state, rules, dialect, tools, notes)?;
    // Who cannot be told not to think is told to think as little as it can, where it has efforts.
    let has_efforts = matches!(rules.effort, EffortField::Native | EffortField::Object) && !rules.ladder.is_empty();
    let thinks_little = always_thinks(rules) && has_efforts && !dialect.drops(Parameter::ReasoningEffort);
    if asked == Asked::Off && state == Asked::Off && always_thinks(rules) && !thinks_little {
        notes.degraded(code::PARAM_DEGRADED, "reasoning.effort", "this model always thinks");
    }
    let mut members: Vec<&'a str> = rules.always.as_deref().into_iter().collect();
    members.extend(match state {
        Asked::Nothing => None,
        Asked::Off => rules.off.as_deref(),
        Asked::On => rules.on.as_deref(),
    });
    let mut effort = match state {
        Asked::Off if rules.off.is_some() && !thinks_little => None,
        _ if asked == Asked::Nothing => None,
        Asked::Off => effort(Some("none".into()), Effort::None.name(), dialect, notes),
        Asked::Nothing | Asked::On => {
            let asked = config.and_then(|config| config.effort);
            let name = asked.map(|effort| effort.decode().into_owned()).unwrap_or_default();
            effort(asked.map(Str::Wire), &name, dialect, notes)
        }
    };
    if let Some((EffortField::Members, Str::Ours(Cow::Borrowed(object)))) = effort {
        members.push(object);
        effort = None;
    }
    let is_off = state == Asked::Off && rules.off.is_some() && !always_thinks(rules);
    Ok(Planned { effort, members, thinks: state != Asked::Off || always_thinks(rules), is_off })
}

/// Whether nothing switches thinking off.
fn always_thinks(rules: &ReasoningRules) -> bool {
    rules.off.as_deref() == Some("{}")
}

/// Where a call can be forced only without thinking, one of the two gives way.
fn yield_to_choice(
    state: Asked,
    rules: &ReasoningRules,
    dialect: &Dialect,
    tools: &mut Tools<'_>,
    notes: &mut Notes,
) -> Result<Asked, Invalid> {
    if !tools.forced || state == Asked::Off && !always_thinks(rules) {
        return Ok(state);
    }
    match dialect.request.tools.forced_while_thinking {
        ForcedWhileThinking::Allowed => Ok(state),
        ForcedWhileThinking::DropThinking if rules.off.is_some() && !always_thinks(rules) => {
            notes.degraded(code::PARAM_DEGRADED, "reasoning", "off for this call: a tool must be called");
            Ok(Asked::Off)
        }
        ForcedWhileThinking::DropThinking | ForcedWhileThinking::Degrade => {
            notes.degraded(code::PARAM_DEGRADED, "tool_choice", "this model cannot be made to call a tool: auto");
            tools.forget_choice();
            Ok(state)
        }
        ForcedWhileThinking::Reject => {
            let message = "Unsupported value: 'tool_choice': this model cannot be made to call a tool while it thinks.";
            Err(Invalid::sentence(InvalidCode::UnsupportedValue, message).at("tool_choice"))
        }
    }
}

/// The effort's name at the provider.
pub(super) fn effort<'a>(
    asked: Option<Str<'a>>,
    name: &str,
    dialect: &'a Dialect,
    notes: &mut Notes,
) -> Option<(EffortField, Str<'a>)> {
    const PATH: &str = "reasoning.effort";
    let asked = asked?;
    let rules = &dialect.request.reasoning;
    if rules.effort == EffortField::None || dialect.drops(Parameter::ReasoningEffort) {
        if rules.on.is_none() {
            notes.ignored(code::PARAM_IGNORED, PATH, "this provider has no such setting");
        } else if name != Effort::None.name() {
            notes.lowered(code::PARAM_DEGRADED, PATH, "thinking is only on or off here: on");
        }
        return None;
    }
    if rules.ladder.is_empty() {
        return (rules.effort != EffortField::Members).then_some((rules.effort, asked));
    }
    let Some(rung) = Effort::ALL.iter().position(|effort| effort.name() == name) else {
        notes.ignored(code::PARAM_IGNORED, PATH, "this provider has no such effort");
        return None;
    };
    let height = |effort: &Effort| Effort::ALL.iter().position(|other| other == effort);
    // Whoever asks for some thinking does not get none of it.
    let rungs = || rules.ladder.iter().filter(|(effort, _)| rung == 0 || *effort != Effort::None);
    let below = rungs().filter(|(effort, _)| height(effort) <= Some(rung));
    let nearest = below.max_by_key(|(effort, _)| height(effort));
    let (effort, word) = nearest.or_else(|| rungs().min_by_key(|(effort, _)| height(effort)))?;
    let its_name = if rules.effort == EffortField::Members { effort.name() } else { word };
    if its_name != name {
        notes.degraded(code::PARAM_DEGRADED, PATH, format!("{its_name}: the nearest that this provider has"));
    }
    Some((rules.effort, Str::Ours(Cow::Borrowed(word))))
}

fn note_rest(config: Option<&ReasoningConfig<'_>>, notes: &mut Notes) {
    let Some(config) = config else { return };
    let ReasoningConfig { effort: _, summary: _, generate_summary: _, context: _, mode, extra } = config;
    if mode.is_some_and(|mode| !mode.is("standard")) {
        notes.ignored(code::PARAM_IGNORED, "reasoning.mode", "this provider has no such setting");
    }
    for (key, _) in extra {
        let name: String = key.decode().chars().take(64).collect();
        notes.ignored(code::PARAM_UNKNOWN, format!("reasoning.{name}"), "this parameter is not known");
    }
}
