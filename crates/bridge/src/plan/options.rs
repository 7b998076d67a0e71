//! Sampling, limits and the other parameters that only change their name or their range, or nothing.

use wire::chat::{self, Str};
use wire::json::{Number, Raw, Text};
use wire::responses::CreateResponse;

use super::PlanTarget;
use super::notes::{Notes, code};
use crate::dialect::{Bounds, Dialect, Parameter, UserField};

pub(super) const LOGPROBS: &str = "message.output_text.logprobs";

pub(super) fn plan<'a>(
    request: &CreateResponse<'a>,
    target: PlanTarget<'a>,
    body: &mut chat::Request<'a>,
    notes: &mut Notes,
) {
    let PlanTarget { dialect, hosting, cache_key, .. } = target;
    let rules = &dialect.request.options;
    let mut gate = Gate { dialect, notes };
    let temperature = gate.warn(Parameter::Temperature, request.temperature);
    body.temperature = temperature.map(|asked| gate.clamp(Parameter::Temperature, asked, rules.temperature.as_ref()));
    let top_p = gate.warn(Parameter::TopP, request.top_p);
    body.top_p = top_p.map(|asked| gate.clamp(Parameter::TopP, asked, rules.top_p.as_ref()));
    body.presence_penalty = gate.warn(Parameter::PresencePenalty, request.presence_penalty);
    body.frequency_penalty = gate.warn(Parameter::FrequencyPenalty, request.frequency_penalty);
    let limit = gate.warn(Parameter::MaxOutputTokens, request.max_output_tokens);
    let limit = limit.map(|asked| gate.cap(hosting.left_of(asked, 1), dialect.max_output));
    body.limit = limit.map(|limit| (dialect.limit_field.name(), limit));
    let asked = wants_logprobs(request).then_some(request.top_logprobs.filter(|count| *count > 0));
    if let Some(count) = gate.warn(Parameter::TopLogprobs, asked) {
        body.logprobs = true;
        body.top_logprobs = count;
    }
    let stop = request.extra.iter().find(|(key, _)| key.is("stop")).map(|(_, value)| *value);
    body.stop = gate.warn(Parameter::Stop, stop.filter(|stop| !stop.is_null()));
    strings(request, cache_key, &mut gate, body);
    body.extra.extend(rules.members.as_deref());
}

/// What tells requests, users and prices apart; the answer is the same without it.
fn strings<'a>(
    request: &CreateResponse<'a>,
    cache_key: Option<&'a str>,
    gate: &mut Gate<'_>,
    body: &mut chat::Request<'a>,
) {
    let rules = &gate.dialect.request.options;
    let verbosity = request.text.as_ref().and_then(|text| text.verbosity).or(request.verbosity);
    push(body, "verbosity", gate.warn(Parameter::Verbosity, verbosity));
    // Where there is a choice of tiers, `default` is one of them, and `auto` is none; where there is none, everybody
    // gets the default.
    let only_one = gate.dialect.drops(Parameter::ServiceTier);
    let tier = request.service_tier.filter(|tier| !(tier.is("auto") || only_one && tier.is("default")));
    push(body, "service_tier", gate.info(Parameter::ServiceTier, tier));
    let asked = gate.info(Parameter::PromptCacheKey, request.prompt_cache_key).filter(|key| !key.is_empty());
    let sent = asked.map(|asked| cache_key.map_or_else(|| asked.into(), |ours| Str::Ours(ours.into())));
    body.strings.extend(sent.map(|key| (rules.cache_key_field.name(), key)));
    let safety = gate.info(Parameter::SafetyIdentifier, request.safety_identifier);
    let user = gate.info(Parameter::User, request.user);
    match rules.user_field {
        UserField::Own => {
            push(body, "safety_identifier", safety);
            push(body, "user", user);
        }
        // One field there: the identifier that is meant for it wins.
        field @ (UserField::User | UserField::UserId) => push(body, field.name(), safety.or(user)),
    }
}

fn push<'a>(body: &mut chat::Request<'a>, name: &'static str, value: Option<Text<'a>>) {
    body.strings.extend(value.filter(|value| !value.is_empty()).map(|value| (name, value.into())));
}

/// Whether token probabilities are asked for, in either way.
pub(super) fn wants_logprobs(request: &CreateResponse<'_>) -> bool {
    let included = request.include.iter().flatten().any(|value| value.is(LOGPROBS));
    included || request.top_logprobs.is_some_and(|count| count > 0)
}

/// Keeps what the dialect drops from passing, and says so.
struct Gate<'t> {
    dialect: &'t Dialect,
    notes: &'t mut Notes,
}

impl Gate<'_> {
    fn warn<T>(&mut self, parameter: Parameter, value: Option<T>) -> Option<T> {
        if value.is_some() && self.dialect.drops(parameter) {
            self.notes.ignored(code::PARAM_IGNORED, parameter.name(), "this provider refuses the parameter");
            return None;
        }
        value
    }

    fn info<T>(&mut self, parameter: Parameter, value: Option<T>) -> Option<T> {
        if value.is_some() && self.dialect.drops(parameter) {
            self.notes.skipped(code::PARAM_IGNORED, parameter.name(), "this provider refuses the parameter");
            return None;
        }
        value
    }

    fn cap(&mut self, asked: i64, most: Option<u64>) -> i64 {
        match most.and_then(|most| i64::try_from(most).ok()).filter(|most| *most < asked) {
            None => asked,
            Some(most) => {
                let parameter = Parameter::MaxOutputTokens.name();
                self.notes.degraded(code::PARAM_DEGRADED, parameter, format!("{most}: this model gives no more"));
                most
            }
        }
    }

    fn clamp<'a>(&mut self, parameter: Parameter, asked: Number<'a>, bounds: Option<&'a Bounds>) -> Number<'a> {
        let end = |text: &'a str| Some(Number { raw: Raw::parse(text).ok()?, value: text.parse().ok()? });
        let Some((low, high)) = bounds.and_then(|bounds| end(&bounds.min).zip(end(&bounds.max))) else { return asked };
        let clamped = if asked.value < low.value {
            low
        } else if asked.value > high.value {
            high
        } else {
            return asked;
        };
        let message = format!("{}: this provider goes from {} to {}", clamped.value, low.value, high.value);
        self.notes.degraded(code::PARAM_DEGRADED, parameter.name(), message);
        clamped
    }
}
