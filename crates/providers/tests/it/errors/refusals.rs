//! What is refused of a request, how far that is believed, and what the request is sent again without.

use bridge::{FailureClass, Parameter, Proof, Refusal, Unsupported};

use super::failure;

const UNIONS: &str = "Schemas contains too many parameters with union types (18 parameters with type arrays or anyOf) which \
                      causes exponential compilation cost. Reduce the number of nullable or union-typed parameters \
                      (limit: 16 parameters with unions).";

/// What godex adds by itself to requests of the Messages API, and how servers refuse it.
#[test]
fn what_godex_adds_is_done_without_where_it_is_refused() {
    use Proof as P;
    let asked = |members: &str| {
        format!(r#"{{"model":"m","max_tokens":128000,"messages":[{{"role":"user","content":"Hi"}}]{members}}}"#)
    };
    let thinks = |kind: &str| format!(r#","thinking":{{"type":"{kind}","block_binding":{{}}}}"#);
    let effort = r#","output_config":{"effort":"low"}"#.to_owned();
    let both = r#","output_config":{"effort":"low","format":{"type":"json_schema"}}"#.to_owned();
    let shown = r#","thinking":{"type":"adaptive","display":"omitted"}"#.to_owned();
    let marked = r#","system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}]"#.to_owned();
    let marked_at_once = r#","cache_control":{"type":"ephemeral"}"#.to_owned();
    let format = r#","output_config":{"format":{"type":"json_schema"}}"#.to_owned();
    let tool = r#","tools":[{"name":"f","input_schema":{},"strict":true,"eager_input_streaming":true}]"#.to_owned();
    for (message, members, expected) in [
        (
            "thinking.block_binding: Extra inputs are not permitted",
            thinks("adaptive"),
            Some(("block_binding", P::Words)),
        ),
        (
            "thinking.adaptive.block_binding: Extra inputs are not permitted",
            thinks("adaptive"),
            Some(("block_binding", P::Words)),
        ),
        (
            "Unexpected value(s) `thinking-binding-controls-2026-08-01` for the `anthropic-beta` header.",
            thinks("adaptive"),
            Some(("betas", P::Words)),
        ),
        ("output_config: Extra inputs are not permitted", effort.clone(), Some(("reasoning_effort", P::Words))),
        ("output_config: Extra inputs are not permitted", both.clone(), Some(("reasoning_effort", P::Words))),
        ("output_config: Extra inputs are not permitted", format.clone(), Some(("output_config.format", P::Words))),
        // It is the format alone; and what is said of a schema is about the client's own.
        (
            "output_config.format: Extra inputs are not permitted",
            both.clone(),
            Some(("output_config.format", P::Words)),
        ),
        ("output_config.format.schema: 'not' is not supported", both, Some(("output_config.format", P::Hearsay))),
        ("output_config.format: Extra inputs are not permitted", effort.clone(), None),
        ("thinking.adaptive.display: Extra inputs are not permitted", shown.clone(), Some(("display", P::Words))),
        ("thinking.adaptive.display: Extra inputs are not permitted", thinks("adaptive"), None),
        ("thinking: Extra inputs are not permitted", shown, Some(("thinking", P::Words))),
        (
            "messages.0.content.0.cache_control: Extra inputs are not permitted",
            marked.clone(),
            Some(("cache_control", P::Words)),
        ),
        ("cache_control: Extra inputs are not permitted", marked_at_once, Some(("cache_control", P::Words))),
        (
            "system.0.cache_control.ephemeral.ttl: Extra inputs are not permitted",
            marked,
            Some(("cache_control", P::Words)),
        ),
        ("the effort parameter must be one of low, high", effort.clone(), None),
        ("output_config: Extra inputs are not permitted", String::new(), None),
        ("This model does not support the effort parameter.", effort.clone(), Some(("reasoning_effort", P::Words))),
        ("output_config.effort: Input should be 'high'", effort.clone(), Some(("reasoning_effort", P::Hearsay))),
        ("adaptive thinking is not supported on this model", thinks("adaptive"), Some(("thinking", P::Words))),
        (
            "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.",
            r#","temperature":0.3,"thinking":{"type":"adaptive"}"#.to_owned(),
            Some(("temperature", P::Words)),
        ),
        (
            r#""thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior."#,
            thinks("enabled"),
            Some(("thinking", P::Words)),
        ),
        (
            r#""thinking.type.disabled" is not supported for this model."#,
            thinks("disabled"),
            Some(("thinking", P::Words)),
        ),
        (r#""thinking.type.disabled" is not supported for this model."#, thinks("adaptive"), None),
        (
            "tools.0.custom.eager_input_streaming: Extra inputs are not permitted",
            tool.clone(),
            Some(("eager_input_streaming", P::Words)),
        ),
        ("tools.0.custom.strict: Extra inputs are not permitted", tool.clone(), Some(("strict", P::Words))),
        ("Our strict rules are not supported here", tool.clone(), None),
        // A client's own schemas: of tools first, then that of the answer.
        (UNIONS, format!("{tool}{format}"), Some(("strict", P::Hearsay))),
        (UNIONS, format!("{}{format}", tool.replace("true", "false")), Some(("output_config.format", P::Hearsay))),
        (UNIONS, tool.replace("true", "false"), None),
        (
            "Circular reference detected in schema definitions: __schema0 -> __schema0. Self-referencing or \
             mutually-referencing definitions are not supported.",
            format.clone(),
            Some(("output_config.format", P::Hearsay)),
        ),
        (
            "Schemas contains too many optional parameters (87), which would make grammar compilation inefficient. Reduce \
             the number of optional parameters in your tool schemas (limit: 24).",
            tool.clone(),
            Some(("strict", P::Hearsay)),
        ),
        (
            "The compiled grammar is too large, which would cause performance issues. Simplify your tool schemas or reduce \
             the number of strict tools.",
            tool.clone(),
            Some(("strict", P::Hearsay)),
        ),
        ("tools.0.custom: Schema is too complex for compilation.", tool.clone(), Some(("strict", P::Hearsay))),
        ("'claude-opus-4-0' does not support strict tools.", tool, Some(("strict", P::Words))),
        ("'claude-opus-4-0' does not support output format.", format, Some(("output_config.format", P::Words))),
        (
            "This model does not support effort level 'xhigh'. Supported levels: high, low, max, medium.",
            effort.clone(),
            Some(("reasoning_effort", P::Hearsay)),
        ),
        (
            "max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens for m",
            String::new(),
            Some(("max_tokens", P::Words)),
        ),
        (
            "input length and `max_tokens` exceed context limit: 85000 + 128000 > 200000, decrease input length",
            String::new(),
            Some(("max_tokens", P::Hearsay)),
        ),
        ("input length and `max_tokens` exceed context limit: 205000 + 128000 > 200000", String::new(), None),
    ] {
        let body = format!(r#"{{"type":"error","error":{{"type":"invalid_request_error","message":{message:?}}}}}"#);
        let request = asked(&members);
        let refusal = failure("anthropic", 400, &body).weighed(request.as_bytes(), body.as_bytes()).unsupported;
        let found = refusal.and_then(|refusal| Some((refusal.unsupported.within(request.as_bytes())?, refusal.proof)));
        assert_eq!(found.map(|(unsupported, proof)| (unsupported.member(), proof)), expected, "{message} {members}");
    }
}

/// What a conversation has and a server does not take would be refused in every later turn, too.
#[test]
fn what_is_in_the_messages_is_told_otherwise_where_it_is_refused() {
    let said = |message: &str| format!(r#"{{"error":{{"message":{message:?},"type":"invalid_request_error"}}}}"#);
    let typed = |message: &str| {
        format!(r#"{{"type":"error","error":{{"type":"invalid_request_error","message":{message:?}}}}}"#)
    };
    let asked = |parts: &str| format!(r#"{{"model":"m","messages":[{parts}]}}"#);
    let (system, user) = (r#"{"role":"system","content":"s"}"#, r#"{"role":"user","content":"u"}"#);
    let pdf = r#"{"role":"user","content":[{"type":"document","source":{}}]}"#;
    let of_tool = r#"{"role":"user","content":[{"type":"tool_result","content":[{"type":"document","source":{}}]}]}"#;
    let template = said("Error: System message must be at the beginning.");
    let invalid = typed("messages.2.content.0.pdf.source.base64.data: The PDF specified was not valid.");
    let locked = typed("The PDF specified is password protected.");
    for (spec, body, request, expected) in [
        ("vllm", &template, asked(&[user, system].join(",")), Some((Unsupported::LateSystem, Proof::Words))),
        (
            "llamacpp",
            &template,
            asked(&[system, user, system].join(",")),
            Some((Unsupported::LateSystem, Proof::Words)),
        ),
        ("vllm", &template, asked(&[system, user].join(",")), None),
        ("anthropic", &invalid, asked(pdf), Some((Unsupported::Files, Proof::Hearsay))),
        ("bedrock-anthropic", &locked, asked(of_tool), Some((Unsupported::Files, Proof::Hearsay))),
        ("anthropic", &locked, asked(user), None),
    ] {
        let failure = failure(spec, 400, body).weighed(request.as_bytes(), body.as_bytes());
        let found = failure.unsupported.filter(|refusal| refusal.unsupported.is_in(request.as_bytes()));
        let expected = expected.map(|(unsupported, proof)| Refusal { unsupported, proof });
        assert_eq!(found, expected, "{spec}: {body}");
    }
}

/// The input would fit beside less output: as much as there is room for is asked for, where godex chose how much. What is
/// too long by itself stays that.
#[test]
fn how_much_output_there_is_room_for_is_read_out_of_the_refusal() {
    use FailureClass as C;
    let passed = |input: u64, output: u64| {
        format!(
            "You passed {input} input tokens and requested {output} output tokens. However, the model's context length is \
             only 131072 tokens, resulting in a maximum input length of {} tokens. Please reduce the length of the input \
             prompt. (parameter=input_tokens, value={input})",
            131_072_u64.saturating_sub(output)
        )
    };
    let large = |input: u64| {
        format!(
            "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 16384 \
             tokens and your request has {input} input tokens (32000 > 16384 - {input})."
        )
    };
    let window = "max_tokens=32000 cannot be greater than max_model_len=max_total_tokens=16384.".to_owned();
    for (message, class, limit, expected) in [
        (passed(99_073, 32_000), C::ContextOverflow, 32_000, Some(Unsupported::Room(31_999))),
        (passed(1000, 131_072), C::ContextOverflow, 131_072, Some(Unsupported::Room(130_072))),
        (passed(140_000, 32_000), C::ContextOverflow, 32_000, None),
        (passed(131_000, 32_000), C::ContextOverflow, 32_000, None),
        (large(20), C::ContextOverflow, 32_000, Some(Unsupported::Room(16_364))),
        (large(16_000), C::ContextOverflow, 32_000, None),
        // How long the input is, nobody says: half of it.
        (window.clone(), C::InvalidRequest, 32_000, Some(Unsupported::Room(8192))),
        // No less is asked for already.
        (window, C::InvalidRequest, 8192, None),
    ] {
        let body = format!(r#"{{"error":{{"message":{message:?},"type":"BadRequestError","param":null,"code":400}}}}"#);
        let typed = format!(r#"{{"type":"error","error":{{"type":"invalid_request_error","message":{message:?}}}}}"#);
        for (spec, member, body) in [
            ("openai-compatible", "max_tokens", &body),
            ("vllm", "max_completion_tokens", &body),
            ("messages-compatible", "max_tokens", &body),
            ("messages-compatible", "max_tokens", &typed),
            ("anthropic", "max_tokens", &typed),
        ] {
            let request = format!(r#"{{"model":"m","{member}":{limit}}}"#);
            let failure = failure(spec, 400, body).weighed(request.as_bytes(), body.as_bytes());
            assert_eq!(failure.class, class, "{spec}: {message}");
            let found = failure.unsupported.filter(|refusal| refusal.unsupported.is_in(request.as_bytes()));
            let expected = expected.map(|unsupported| Refusal { unsupported, proof: Proof::Hearsay });
            assert_eq!(found, expected, "{spec}: {message}");
        }
    }
}

fn refused(body: &str) -> Option<&'static str> {
    failure("openai-compatible", 400, body).unsupported.map(|refusal| refusal.unsupported.member())
}

#[test]
fn what_is_not_taken_is_read_out_of_the_refusal() {
    let plain = |message: &str| format!(r#"{{"error":{{"message":{message:?}}}}}"#);
    let openai = r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model.
        Use 'max_completion_tokens' instead.","param":"max_tokens","code":"unsupported_parameter"}}"#;
    let role = r#"{"error":{"message":"Unsupported value: 'messages[0].role' does not support 'user'",
        "param":"messages[0].role","code":"unsupported_value"}}"#;
    let fastapi = r#"{"detail":[{"type":"extra_forbidden","loc":["body","parallel_tool_calls"],
        "msg":"Extra inputs are not permitted"}]}"#;
    for (body, expected) in [
        (openai.replace('\n', " "), Some("max_tokens")),
        (role.replace('\n', " "), None),
        (fastapi.replace('\n', " "), Some("parallel_tool_calls")),
        (plain("Unrecognized request argument supplied: stream_options"), Some("stream_options")),
        (plain("Argument not supported on this model: presencePenalty"), Some("presence_penalty")),
        (plain("invalid temperature: only 1 is allowed for this model"), Some("temperature")),
        (plain("This response_format type is unavailable now"), Some("response_format")),
        (plain("`temperature` is deprecated for this model."), Some("temperature")),
        (plain("The parameters top_p and temperature are deprecated for this model"), Some("top_p")),
        (plain("top_logprobs not supported for this model"), Some("top_logprobs")),
        (plain("The model `temperature-1` has been deprecated"), None),
        (plain("Unknown name \"stop\": Cannot find field."), Some("stop")),
        (plain("The user is not supported here, stop it"), None),
        (plain("temperature must be between 0 and 2"), None),
        (plain("é: `top_p` is not supported"), Some("top_p")),
        (plain("messages is not supported"), None),
    ] {
        assert_eq!(refused(&body), expected, "{body}");
    }
    assert_eq!(failure("openai-compatible", 500, &openai.replace('\n', " ")).unsupported, None);
    let strict = plain("tools.0.function.strict: Extra inputs are not permitted");
    let request = br#"{"tools":[{"type":"function","function":{"name":"f","strict":true}}],"messages":[]}"#;
    let refusal = failure("openai-compatible", 400, &strict).weighed(request, strict.as_bytes()).unsupported.unwrap();
    assert_eq!((refusal.unsupported.within(request), refusal.proof), (Some(Unsupported::Strict), Proof::Words));
    // What a gateway is told of schemas, of the format of a request without strict tools.
    let refusal = failure("openai-compatible", 400, &plain(UNIONS)).unsupported.unwrap();
    let request =
        br#"{"response_format":{"type":"json_schema"},"tools":[{"type":"function","function":{"name":"f"}}]}"#;
    assert_eq!(
        (refusal.unsupported.within(request), refusal.proof),
        (Some(Unsupported::ResponseFormat), Proof::Hearsay)
    );
    assert_eq!(refusal.unsupported.within(br#"{"response_format":{"type":"json_object"}}"#), None);
}

/// One that another model would take: the request is sent again without, and nothing is learned.
#[test]
fn a_value_that_is_none_of_those_that_are_listed_is_left_out_once() {
    let effort = Unsupported::Parameter(Parameter::ReasoningEffort);
    let pydantic = "1 validation error: {'type': 'literal_error', 'loc': ('body', 'reasoning_effort'), 'msg': \"Input should \
                    be 'low', 'medium' or 'high'\", 'input': 'xhigh', 'ctx': {'expected': \"'low', 'medium' or 'high'\"}}";
    let listed = r#"{"detail":[{"loc":["body","reasoning_effort"],"type":"literal_error","msg":"Input should be 'low', 'medium' or 'high'","input":"xhigh"}]}"#;
    let anthropic = "This model does not support effort level 'xhigh'. Supported levels: high, low, max, medium.";
    let thinks = "tool_choice 'specified' is incompatible with thinking enabled";
    let plain = |message: &str| format!(r#"{{"error":{{"message":{message:?}}}}}"#);
    for (status, body, expected) in [
        (400, plain(pydantic), Some(effort)),
        (422, listed.to_owned(), Some(effort)),
        (400, plain(anthropic), Some(effort)),
        (400, plain(thinks), Some(Unsupported::Parameter(Parameter::ToolChoice))),
        // A number out of its range is no word.
        (400, plain("{'type': 'less_than_equal', 'loc': ('body', 'temperature'), 'msg': 'Input should be'}"), None),
    ] {
        let refusal = failure("vllm", status, &body).unsupported;
        assert_eq!(
            refusal.map(|refusal| (refusal.unsupported, refusal.proof)),
            expected.map(|e| (e, Proof::Hearsay)),
            "{body}"
        );
    }
}

#[test]
fn a_refusal_is_believed_as_far_as_it_goes() {
    use Proof as P;
    let error = |message: &str, param: &str, code: &str| {
        format!(r#"{{"error":{{"message":{message:?},"param":{param:?},"code":{code:?}}}}}"#)
    };
    let plain = |message: &str| format!(r#"{{"error":{{"message":{message:?}}}}}"#);
    let list = |loc: &str| {
        format!(
            r#"{{"detail":[{{"type":"extra_forbidden","loc":{loc},"msg":"Extra inputs are not permitted","input":"top_p"}}]}}"#
        )
    };
    for (body, expected) in [
        (error("no", "max_tokens", "unsupported_parameter"), Some(("max_tokens", P::Fields))),
        (error("no", "body.user", "unknown_parameter"), Some(("user", P::Fields))),
        (error("max_tokens is not supported", "max_tokens", "x"), Some(("max_tokens", P::Words))),
        (plain("Unrecognized request argument supplied: stream_options"), Some(("stream_options", P::Words))),
        // Names that a client chose.
        (error("no", "metadata.max_tokens", "unsupported_parameter"), None),
        (error("no", "tools[0].function.parameters/temperature", "unknown_parameter"), None),
        (list(r#"["body","top_p"]"#), Some(("top_p", P::Fields))),
        (list(r#"["body","metadata","top_p"]"#), Some(("metadata", P::Hearsay))),
        // Values that a client chose.
        (error("Unsupported value", "reasoning_effort", "unsupported_value"), Some(("reasoning_effort", P::Hearsay))),
        (plain("`tool_choice` does not support 'required'"), Some(("tool_choice", P::Hearsay))),
        (
            plain("Invalid schema for response_format 'n': 'oneOf' is not supported"),
            Some(("response_format", P::Hearsay)),
        ),
        (plain("response_format of type json_schema is not supported"), Some(("response_format", P::Words))),
        (
            error("Unsupported value: 'temperature' does not support 0.2", "temperature", "unsupported_value"),
            Some(("temperature", P::Fields)),
        ),
    ] {
        let refusal = failure("openai-compatible", 400, &body).unsupported;
        assert_eq!(refusal.map(|refusal| (refusal.unsupported.member(), refusal.proof)), expected, "{body}");
    }
}
