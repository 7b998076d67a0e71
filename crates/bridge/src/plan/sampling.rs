//! Sampling, limits and the other parameters that only change their name, or nothing.

use wire::chat;
use wire::responses::CreateResponse;

use crate::dialect::{Dialect, Parameter};
use crate::note::{Action, Note};

pub(super) fn plan<'a>(
    request: &CreateResponse<'a>,
    dialect: &Dialect,
    body: &mut chat::Request<'a>,
    notes: &mut Vec<Note>,
) {
    let mut keep = |parameter: Parameter, given: bool| {
        if given && dialect.drops(parameter) {
            notes.push(Note::new(Action::Ignored, parameter.name(), "this provider refuses the parameter"));
        }
        given && !dialect.drops(parameter)
    };
    body.temperature = request.temperature.filter(|_| keep(Parameter::Temperature, true));
    body.top_p = request.top_p.filter(|_| keep(Parameter::TopP, true));
    body.presence_penalty = request.presence_penalty.filter(|_| keep(Parameter::PresencePenalty, true));
    body.frequency_penalty = request.frequency_penalty.filter(|_| keep(Parameter::FrequencyPenalty, true));
    body.limit = request
        .max_output_tokens
        .filter(|_| keep(Parameter::MaxOutputTokens, true))
        .map(|limit| (dialect.limit_field.name(), limit));
    let verbosity = request.text.as_ref().and_then(|text| text.verbosity).or(request.verbosity);
    let effort = request.reasoning.as_ref().and_then(|reasoning| reasoning.effort);
    let strings = [
        (Parameter::ReasoningEffort, effort),
        (Parameter::Verbosity, verbosity),
        (Parameter::ServiceTier, request.service_tier.filter(|tier| !tier.is("auto"))),
        (Parameter::SafetyIdentifier, request.safety_identifier),
        (Parameter::PromptCacheKey, request.prompt_cache_key),
        (Parameter::User, request.user),
    ];
    for (parameter, value) in strings {
        if let Some(value) = value.filter(|_| keep(parameter, true)) {
            body.strings.push((parameter.name(), value));
        }
    }
}
