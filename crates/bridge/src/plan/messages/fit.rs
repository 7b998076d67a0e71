//! A dialect as that API needs it, whatever a spec has left unsaid. Specs that say all of it are taken as they are.

use std::borrow::Cow;

use wire::responses::{CreateResponse, TextFormat};

use super::format;
use super::promises::Promises;
use crate::dialect::{
    Bounds, CallIds, DeveloperRole, Dialect, Effort, EffortField, JsonSchema, Parameter, Replay, ReplayField,
    SchemaRule, UserField,
};

/// The longest name of a tool.
const NAME: usize = 64;

/// Parameters that this API does not have.
const ABSENT: &[Parameter] = &[
    Parameter::PresencePenalty,
    Parameter::FrequencyPenalty,
    Parameter::TopLogprobs,
    Parameter::Verbosity,
    Parameter::PromptCacheKey,
];

/// The efforts that it has; others become the nearest of them.
const EFFORTS: &[Effort] = &[Effort::Low, Effort::Medium, Effort::High, Effort::Xhigh, Effort::Max];

pub(super) fn dialect<'d>(dialect: &'d Dialect, request: &CreateResponse<'_>) -> Cow<'d, Dialect> {
    let mut fitted = Cow::Borrowed(dialect);
    if dialect.developer_role != DeveloperRole::System {
        fitted.to_mut().developer_role = DeveloperRole::System;
    }
    formats(&mut fitted, request);
    for parameter in ABSENT.iter().filter(|parameter| !dialect.drops(**parameter)) {
        fitted.to_mut().drop.push(*parameter);
    }
    let rules = &dialect.request;
    if rules.messages.call_ids == CallIds::Any {
        fitted.to_mut().request.messages.call_ids = CallIds::Safe;
    }
    if rules.tools.name_length > NAME {
        fitted.to_mut().request.tools.name_length = NAME;
    }
    if !rules.tools.custom.is_empty() {
        fitted.to_mut().request.tools.custom.clear();
    }
    if !rules.tools.schema.contains(&SchemaRule::PlainRoot) {
        fitted.to_mut().request.tools.schema.push(SchemaRule::PlainRoot);
    }
    if rules.reasoning.replay != Replay::Never && rules.reasoning.field != ReplayField::Blocks {
        fitted.to_mut().request.reasoning.field = ReplayField::Blocks;
    }
    if rules.reasoning.effort == EffortField::Native && rules.reasoning.ladder.is_empty() {
        let ladder = EFFORTS.iter().map(|effort| (*effort, effort.name().to_owned()));
        fitted.to_mut().request.reasoning.ladder = ladder.collect();
    }
    if rules.options.user_field != UserField::User {
        fitted.to_mut().request.options.user_field = UserField::User;
    }
    let range = || Some(Bounds { min: "0".to_owned(), max: "1".to_owned() });
    if rules.options.temperature.is_none() {
        fitted.to_mut().request.options.temperature = range();
    }
    if rules.options.top_p.is_none() {
        fitted.to_mut().request.options.top_p = range();
    }
    fitted
}

/// There is no format for just any JSON object, and not every schema can be promised there: then words ask for it.
fn formats(fitted: &mut Cow<'_, Dialect>, request: &CreateResponse<'_>) {
    match request.text.as_ref().and_then(|text| text.format.as_ref()) {
        None | Some(TextFormat::Text) => {}
        Some(TextFormat::JsonObject) => fitted.to_mut().no_json_object = true,
        Some(TextFormat::JsonSchema { schema, .. }) => {
            let can_be_promised = || format::can_be_promised(schema.0) && Promises::default().have_room_for(schema.0);
            if fitted.json_schema != JsonSchema::Native || !can_be_promised() {
                fitted.to_mut().json_schema = JsonSchema::Prompt;
            }
        }
    }
}
