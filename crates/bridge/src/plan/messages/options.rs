//! Limits, sampling and names. What chat has decided about them is put into this API's words.

use wire::chat::{self, Json, Str};
use wire::json::{Kind, Raw};
use wire::messages::Request;
use wire::responses::CreateResponse;

use crate::plan::notes::{Notes, code};
use crate::plan::{PlanTarget, options};

/// The longest name of a user.
const USER: usize = 256;

pub(super) fn plan<'a>(
    request: &CreateResponse<'a>,
    target: PlanTarget<'a>,
    body: &mut Request<'a>,
    notes: &mut Notes,
) {
    let mut chat = chat::Request::default();
    options::plan(request, target, &mut chat, notes);
    let chat::Request { temperature, top_p, limit, stop, strings, extra, .. } = chat;
    (body.temperature, body.top_p) = (temperature, top_p);
    if temperature.is_some() && top_p.is_some() {
        body.top_p = None;
        notes.ignored(code::PARAM_IGNORED, "top_p", "this provider takes one of temperature and top_p");
    }
    body.max_tokens = limit.map_or_else(|| default_limit(target), |(_, limit)| limit);
    body.stop_sequences = stop.and_then(stop_sequences);
    body.extra = extra.into_iter().map(str::to_owned).collect();
    for (name, value) in strings {
        match name {
            "service_tier" => tier(&value, target, body, notes),
            "user" => body.user_id = user(value, notes),
            _ => {}
        }
    }
}

/// The limit of an answer for which nobody has set one.
fn default_limit(target: PlanTarget<'_>) -> i64 {
    let default = target.dialect.request.blocks.default_limit;
    let limit = target.dialect.max_output.map_or(default, |most| most.min(default));
    i64::try_from(limit).unwrap_or(i64::MAX).max(1)
}

/// One text, or a list of them.
fn stop_sequences(stop: Raw<'_>) -> Option<Json<'_>> {
    match stop.kind() {
        Kind::String => Some(Json::Ours(format!("[{}]", stop.as_str()).into_bytes())),
        Kind::Array => {
            let texts = stop.elements().next().is_some() && stop.elements().all(|stop| stop.kind() == Kind::String);
            texts.then_some(Json::Wire(stop))
        }
        _ => None,
    }
}

fn tier(tier: &Str<'_>, target: PlanTarget<'_>, body: &mut Request<'_>, notes: &mut Notes) {
    match &*tier.decode() {
        "default" => body.service_tier = Some("standard_only"),
        // Whatever is reserved is used.
        "priority" => body.service_tier = Some("auto"),
        "fast" if target.dialect.request.blocks.fast => body.speed = Some("fast"),
        _ => notes.skipped(code::PARAM_IGNORED, "service_tier", "this provider has no such tier"),
    }
}

fn user<'a>(name: Str<'a>, notes: &mut Notes) -> Option<Str<'a>> {
    if name.is_blank() || name.decode().chars().count() > USER {
        notes.skipped(code::PARAM_IGNORED, "user", "this provider takes names of 1 to 256 characters");
        return None;
    }
    Some(name)
}
