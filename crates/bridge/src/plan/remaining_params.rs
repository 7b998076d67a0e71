//! Every parameter that no other part of the plan decides. The request is taken apart completely: a parameter
//! that the API gets tomorrow is a compile error here until somebody decides it.

use wire::json::{Invalid, InvalidCode, Text};
use wire::responses::{CreateResponse, StreamOptions, TextConfig};

use super::Hosting;
use super::notes::{Notes, code};
use super::options::LOGPROBS;

/// What `include` may ask for that we give, or that has nothing to show here.
const INCLUDED: &[&str] = &[LOGPROBS, "reasoning.encrypted_content"];

/// The same, where godex searches.
const SOURCES: &str = "web_search_call.action.sources";

/// Whether a provider can be told how long to keep a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retention {
    Told,
    Unknown,
}

pub(super) fn plan(
    request: &CreateResponse<'_>,
    hosting: Hosting,
    retention: Retention,
    notes: &mut Notes,
) -> Result<(), Invalid> {
    let CreateResponse {
        // The server's: who answers, what came before and how much of it is sent, how it is delivered and kept.
        model: _,
        previous_response_id: _,
        conversation: _,
        store: _,
        background: _,
        stream: _,
        truncation: _,
        context_management: _,
        // Ours alone: repeated in the response, or private to the client. None of it reaches a provider.
        metadata: _,
        client_metadata: _,
        // Decided by `transcript`.
        input: _,
        instructions: _,
        // Decided by `tools`.
        tools: _,
        tool_choice: _,
        parallel_tool_calls: _,
        // Decided by `reasoning`.
        reasoning: _,
        // Decided by `options`.
        max_output_tokens: _,
        temperature: _,
        top_p: _,
        top_logprobs: _,
        presence_penalty: _,
        frequency_penalty: _,
        service_tier: _,
        safety_identifier: _,
        prompt_cache_key: _,
        user: _,
        verbosity: _,
        // Decided here; `text.format` by `output`.
        text,
        stream_options,
        include,
        max_tool_calls,
        prompt_cache_retention,
        prompt_cache_options,
        prompt,
        moderation,
        access_programs,
        image,
        extra,
    } = request;
    if prompt.is_some() {
        // Without the stored prompt the model would lack its instructions: no answer is better than that one.
        let message = "Unsupported parameter: 'prompt'. Stored prompts are not available here.";
        return Err(Invalid::sentence(InvalidCode::UnsupportedParameter, message).at("prompt"));
    }
    let missed: [(&'static str, bool); 2] = [("moderation", moderation.is_some()), ("image", image.is_some())];
    for (name, _) in missed.into_iter().filter(|(_, given)| *given) {
        notes.ignored(code::PARAM_IGNORED, name, "this parameter has no equivalent upstream");
    }
    let obfuscation = stream_options.as_ref().and_then(|options: &StreamOptions<'_>| options.include_obfuscation);
    let harmless: [(&'static str, bool); 5] = [
        // It counts the calls of tools that godex runs.
        ("max_tool_calls", max_tool_calls.is_some() && !hosting.runs()),
        ("access_programs", access_programs.is_some()),
        ("prompt_cache_retention", prompt_cache_retention.is_some() && retention == Retention::Unknown),
        ("prompt_cache_options", prompt_cache_options.is_some()),
        ("stream_options.include_obfuscation", obfuscation == Some(true)),
    ];
    for (name, _) in harmless.into_iter().filter(|(_, given)| *given) {
        notes.skipped(code::PARAM_IGNORED, name, "this parameter has no equivalent upstream");
    }
    included(include.as_deref().unwrap_or_default(), hosting, notes);
    unknown(text.as_ref(), extra, notes);
    Ok(())
}

fn included(include: &[Text<'_>], hosting: Hosting, notes: &mut Notes) {
    let of_search = |value: &Text<'_>| hosting.web_search.is_some() && value.is(SOURCES);
    for (index, value) in include.iter().enumerate() {
        if !of_search(value) && !INCLUDED.iter().any(|known| value.is(known)) {
            notes.skipped(code::PARAM_IGNORED, format!("include[{index}]"), "there is no such thing to include");
        }
    }
}

fn unknown(text: Option<&TextConfig<'_>>, extra: &wire::Extra<'_>, notes: &mut Notes) {
    let inner = text.iter().flat_map(|text| &text.extra).map(|(key, _)| ("text.", key));
    let outer = extra.iter().map(|(key, _)| ("", key)).filter(|(_, key)| !key.is("stop"));
    for (prefix, key) in inner.chain(outer) {
        let name: String = key.decode().chars().take(64).collect();
        notes.ignored(code::PARAM_UNKNOWN, format!("{prefix}{name}"), "this parameter is not known");
    }
}
