//! What errors mean: facts about providers, which are in the specs and nowhere else.

mod refusals;

use std::fs;
use std::path::Path;

use bridge::{AnswerDialect, Failure, FailureClass, Proof};
use providers::yaml::{Document, Node, Value};
use providers::{Library, resolve_named};

fn failure(spec: &str, status: u16, body: &str) -> Failure {
    Failure::from_answer_in(&dialect(spec), status, body.as_bytes())
}

fn dialect(spec: &str) -> AnswerDialect {
    resolve_named(Library::BUILTIN, spec, &|_| None).unwrap().dialect.answer
}

/// What an unknown server may say, or a gateway that passes on the words of another.
const SHARED: &[(u16, &str, FailureClass)] = &[
    (400, r#"{"error":{"message":"This model's maximum context length is 10"}}"#, FailureClass::ContextOverflow),
    (400, r#"{"error":{"code":400,"message":"x","type":"exceed_context_size_error"}}"#, FailureClass::ContextOverflow),
    (
        429,
        r#"{"error":{"type":"rate_limit_error","message":"prompt is too long: 2 > 1"}}"#,
        FailureClass::ContextOverflow,
    ),
    (529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, FailureClass::Overloaded),
    (429, r#"{"error":{"type":"engine_overloaded_error","message":"busy"}}"#, FailureClass::Overloaded),
    (500, r#"{"error":{"type":"rate_limit_reached_error","message":"slow"}}"#, FailureClass::RateLimit),
    (429, r#"{"error":{"type":"rate_limit_reached_error","message":"Insufficient balance"}}"#, FailureClass::Quota),
    (402, r#"{"error":{"message":"Insufficient Balance"}}"#, FailureClass::Quota),
    (403, r#"{"error":{"message":"credit balance is too low"}}"#, FailureClass::Quota),
    (429, r#"{"error":{"type":"exceeded_current_quota_error","message":"x"}}"#, FailureClass::Quota),
    (
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}}"#,
        FailureClass::Quota,
    ),
    (
        400,
        r#"{"error":{"code":"Arrearage","message":"Access denied, please make sure your account is in good standing."}}"#,
        FailureClass::Quota,
    ),
    (403, r#"{"error":{"code":"AccountOverdueError","message":"x"}}"#, FailureClass::Quota),
    (400, r#"{"error":{"message":"Content Exists Risk"}}"#, FailureClass::ContentPolicy),
    (400, r#"{"error":{"code":"data_inspection_failed","message":"x"}}"#, FailureClass::ContentPolicy),
    (400, r#"{"error":{"message":"Model Not Exist"}}"#, FailureClass::ModelNotFound),
    (400, r#"[{"error":{"code":400,"message":"API key not valid."}}]"#, FailureClass::Auth),
    (400, r#"{"error":{"type":"authentication_error","message":"x"}}"#, FailureClass::Auth),
    (413, r#"{"error":{"code":"tokens_limit_reached","message":"x"}}"#, FailureClass::ContextOverflow),
    // More than a whole minute's tokens: no wait helps.
    (
        413,
        r#"{"error":{"message":"Request too large for model `x` in organization `org_1` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 8000, please reduce your message size and try again.","type":"tokens","code":"rate_limit_exceeded"}}"#,
        FailureClass::ContextOverflow,
    ),
    (
        429,
        r#"{"error":{"message":"Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 40000. The input or output tokens must be reduced in order to run successfully.","type":"tokens","code":"rate_limit_exceeded"}}"#,
        FailureClass::ContextOverflow,
    ),
    (
        429,
        r#"{"error":{"message":"Rate limit reached for model `x` on tokens per minute (TPM): Limit 6000, Used 5000, Requested 2000. Please try again in 9s.","type":"tokens","code":"rate_limit_exceeded"}}"#,
        FailureClass::RateLimit,
    ),
    // A code of the API says more than words that happen to be in the message.
    (400, r#"{"error":{"code":"invalid_api_key","message":"Your context window is closed"}}"#, FailureClass::Auth),
];

/// How servers say that a prompt is too long.
const TOO_LONG: &[&str] = &[
    "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
    "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]",
    "Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)",
    "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
    "The decoder prompt (length 8357) is longer than the maximum model length of 8192.",
    "This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
    "Input is too long for requested model.",
    "prompt token count of 93854 exceeds the limit of 90000",
    "Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with context length of \
     only 7866 tokens, which is not enough.",
    "Prompt exceeds max length",
    "Prompt too long",
    "Prompt 超长",
    "tokens in request more than max tokens allowed",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 1512. Given: 1000 `inputs` tokens",
    "Input validation error: inputs tokens + max_new_tokens must be <= 2048",
    "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000",
    "The number of tokens to keep from the initial prompt is greater than the context length.",
    "Input length (9000 tokens) exceeds the maximum allowed length (8192 tokens).",
    "Please reduce the length of the messages or completion.",
    "Request body too large for gpt-4o model. Max size: 8000 tokens.",
    "length of prompt_tokens (57535) must be less than max_seq_len (32768).",
    "Total tokens of image and text exceed max message tokens. Request id: 0217",
    "the input length exceeds the context length",
    "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.",
    "too many tokens: size limit exceeded by 1247 tokens. Try using shorter or fewer inputs.",
    "You passed 140000 input tokens and requested 32000 output tokens. However, the model's context length is only 131072 \
     tokens, resulting in a maximum input length of 99072 tokens. Please reduce the length of the input prompt. \
     (parameter=input_tokens, value=140000)",
    "Input length 140000 exceeds the maximum length 131072",
    "Context size has been exceeded.",
    "number of input tokens (83121) have exceeded max_prompt_tokens (65536) limit.",
    "Prompt tokens too long",
    "Total message token length exceed model limit",
    "Input is too long: too many total text bytes: 21000000 > 20000000",
    "The maximum supported sequence length is 16384, but the prompt has 20000 tokens",
];

#[test]
fn every_spec_knows_what_is_too_long() {
    for spec in Library::BUILTIN.names() {
        let dialect = dialect(spec);
        for message in TOO_LONG {
            let error =
                |code: &str| format!(r#"{{"error":{{"message":{message:?},"type":"invalid_request_error"{code}}}}}"#);
            for code in ["", r#","code":null"#, r#","code":"invalid_parameter_error""#, r#","code":"1210""#] {
                let class = Failure::from_answer_in(&dialect, 400, error(code).as_bytes()).class;
                assert_eq!(class, FailureClass::ContextOverflow, "{spec}: {message} {code}");
            }
        }
    }
    // As SiliconFlow and Ollama say it: without an object around it.
    for body in [
        r#"{"code":20015,"message":"length of prompt_tokens (57535) must be less than max_seq_len (32768).","data":null}"#,
        r#"{"error":"the input length exceeds the context length"}"#,
    ] {
        assert_eq!(failure("siliconflow", 400, body).class, FailureClass::ContextOverflow, "{body}");
    }
    let coded = |code: &str| format!(r#"{{"error":{{"message":"x","code":"{code}"}}}}"#);
    assert_eq!(failure("zhipu", 400, &coded("1261")).class, FailureClass::ContextOverflow);
    assert_eq!(failure("qwen", 400, &coded("1261")).class, FailureClass::InvalidRequest);
    assert_eq!(failure("qwen", 400, &coded("model_max_prompt_tokens_exceeded")).class, FailureClass::ContextOverflow);
}

/// Every spec extends the generic one, and its own errors do not take the place of the others.
#[test]
fn every_spec_knows_what_servers_say_alike() {
    for spec in Library::BUILTIN.names() {
        let dialect = dialect(spec);
        for (status, body, class) in SHARED {
            let failure = Failure::from_answer_in(&dialect, *status, body.as_bytes());
            assert_eq!(failure.class, *class, "{spec}: {status} {body}");
        }
    }
}

#[test]
fn numbers_mean_what_they_mean_at_one_provider() {
    let body =
        |number: u16, words: &str| format!(r#"{{"base_resp":{{"status_code":{number},"status_msg":{words:?}}}}}"#);
    for (number, words, class) in [
        (1002, "slow", FailureClass::RateLimit),
        (1004, "login", FailureClass::Auth),
        (1008, "pay", FailureClass::Quota),
        (1026, "sensitive", FailureClass::ContentPolicy),
        (2013, "invalid params", FailureClass::InvalidRequest),
        (2013, "invalid params, context window exceeds limit", FailureClass::ContextOverflow),
        (1000, "unknown", FailureClass::Server),
    ] {
        assert_eq!(failure("minimax", 500, &body(number, words)).class, class, "{number} {words}");
    }
    assert_eq!(failure("zhipu", 500, &body(1004, "login")).class, FailureClass::Server);
    let coded = |code: &str| format!(r#"{{"error":{{"code":"{code}","message":"您的账户已欠费"}}}}"#);
    for (status, code, class) in [
        (429, "1113", FailureClass::Quota),
        (429, "1308", FailureClass::Quota),
        (429, "1310", FailureClass::Quota),
        (429, "1305", FailureClass::Overloaded),
        (429, "1312", FailureClass::Overloaded),
        (429, "1302", FailureClass::RateLimit),
        (400, "1210", FailureClass::InvalidRequest),
        (400, "1261", FailureClass::ContextOverflow),
    ] {
        for spec in ["zhipu", "zhipu-messages"] {
            assert_eq!(failure(spec, status, &coded(code)).class, class, "{spec} {status} {code}");
        }
    }
    for (status, body, class) in [
        (413, "", FailureClass::ContextOverflow),
        (400, "", FailureClass::ContextOverflow),
        (400, r#"{"message":"wrong_api_format"}"#, FailureClass::InvalidRequest),
        (429, "", FailureClass::RateLimit),
    ] {
        assert_eq!(failure("cerebras", status, body).class, class, "{status} {body}");
    }
    assert_eq!(failure("groq", 413, "").class, FailureClass::InvalidRequest);
    // Something else was under way there: the same may be asked again.
    let conflict = r#"{"type":"error","error":{"type":"conflict_error","message":"Conflict"}}"#;
    for (spec, class) in [("anthropic", FailureClass::Server), ("openai-compatible", FailureClass::InvalidRequest)] {
        assert_eq!(failure(spec, 409, conflict).class, class, "{spec}");
    }
}

/// What an aggregator was told itself, as it passes it on.
#[test]
fn a_wrapped_error_means_what_the_inner_one_does() {
    use FailureClass as C;
    let wrapped = |code: u16, raw: &str| {
        format!(
            r#"{{"error":{{"message":"Provider returned error","code":{code},"metadata":{{"raw":{raw},"provider_name":"X"}}}}}}"#
        )
    };
    let overflow =
        r#"{"error":{"message":"This model's maximum context length is 10 tokens.","type":"x","code":null}}"#;
    let said = "Provider returned error: This model's maximum context length is 10 tokens.";
    let plain = "\"This model's maximum context length is 10 tokens.\"";
    let unknown = r#"{"fault":{"why":"maximum context length"}}"#;
    let pay = r#"{"error":{"message":"Pay.","code":"insufficient_quota"}}"#;
    for (status, raw, class, message) in [
        (400, format!("{overflow:?}"), C::ContextOverflow, said),
        (400, overflow.to_owned(), C::ContextOverflow, said),
        (400, format!("{:?}", format!("[{overflow}]")), C::ContextOverflow, said),
        (400, plain.to_owned(), C::ContextOverflow, said),
        (400, wrapped(400, &format!("{overflow:?}")), C::ContextOverflow, said),
        (400, format!("{:?}", wrapped(400, &format!("{:?}", wrapped(400, plain)))), C::ContextOverflow, said),
        (400, format!("{unknown:?}"), C::ContextOverflow, &format!("Provider returned error: {unknown}")),
        (429, format!("{pay:?}"), C::Quota, "Provider returned error: Pay."),
        (502, "\"provider returned error\"".to_owned(), C::Server, "Provider returned error"),
        (400, "null".to_owned(), C::InvalidRequest, "Provider returned error"),
        (400, "\" \"".to_owned(), C::InvalidRequest, "Provider returned error"),
    ] {
        let failure = failure("openrouter", status, &wrapped(status, &raw));
        assert_eq!((failure.class, failure.message.as_str()), (class, message), "{status} {raw}");
    }
    let refused = |raw: &str| {
        let refusal = failure("openrouter", 400, &wrapped(400, &format!("{raw:?}"))).unsupported;
        refusal.map(|refusal| (refusal.unsupported.member(), refusal.proof))
    };
    let fields = r#"{"error":{"message":"no","param":"top_p","code":"unsupported_parameter"}}"#;
    let list =
        r#"{"detail":[{"type":"extra_forbidden","loc":["body","user"],"msg":"Extra inputs are not permitted"}]}"#;
    assert_eq!(refused(fields), Some(("top_p", Proof::Fields)));
    assert_eq!(refused(list), Some(("user", Proof::Fields)));
    assert_eq!(refused("Unsupported parameter: temperature"), Some(("temperature", Proof::Words)));
}

/// Errors that never say which member they are about.
#[test]
fn some_refusals_are_about_what_they_do_not_name() {
    let plain = |message: &str| format!(r#"{{"error":{{"message":{message:?},"type":"api_error","code":"1210"}}}}"#);
    let thinking = r#""llama3.2:latest" does not support thinking"#;
    let level = "Thinking level MINIMAL is not supported for this model. Please retry with other thinking level.";
    for (spec, message, expected) in [
        ("ollama", thinking, Some(("reasoning_effort", Proof::Words))),
        ("ollama", r#""llama3.2" does not support tools"#, None),
        ("gemini", level, Some(("reasoning_effort", Proof::Hearsay))),
        ("zhipu", "API 调用参数有误,请检查文档。", Some(("reasoning_effort", Proof::Hearsay))),
        ("openai-compatible", thinking, Some(("reasoning_effort", Proof::Words))),
        ("openai-compatible", "The server does not support what you think", None),
    ] {
        let refusal = failure(spec, 400, &plain(message)).unsupported;
        assert_eq!(refusal.map(|refusal| (refusal.unsupported.member(), refusal.proof)), expected, "{spec}: {message}");
    }
}

#[test]
fn waits_are_in_the_words_of_those_who_are_busy() {
    for (status, message, expected) in [
        (429, "Please try again in 20s.", Some(20)),
        (503, "Overloaded, retry after 3 seconds", Some(3)),
        (400, "Please try again in 20s.", None),
        (429, "slow down", None),
    ] {
        let body = format!(r#"{{"error":{{"message":"{message}"}}}}"#);
        assert_eq!(failure("xai", status, &body).retry_after, expected, "{status} {message}");
    }
}

/// The same words are said of a minute's limit, of a day's, and of what must be paid for.
#[test]
fn a_quota_that_a_short_wait_gives_back_is_a_rate() {
    use FailureClass as C;
    let words = "You exceeded your current quota, please check your plan and billing details.";
    let delay = |time: &str| format!(r#"{{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"{time}"}}"#);
    let quota = |period: &str| {
        let id = format!("GenerateRequestsPer{period}PerProjectPerModel-FreeTier");
        format!(r#"{{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{{"quotaId":"{id}"}}]}}"#)
    };
    for (more, details, class, wait) in [
        (" Please retry in 2.1s.", String::new(), C::RateLimit, Some(3)),
        ("", delay("2s"), C::RateLimit, Some(2)),
        (" Please retry in 2.1s.", format!("{},{}", quota("Minute"), delay("2s")), C::RateLimit, Some(3)),
        ("", quota("Minute"), C::RateLimit, None),
        (" Please retry in 4m.", String::new(), C::RateLimit, Some(120)),
        ("", String::new(), C::Quota, None),
        (" Please retry in 7h2m1.5s.", String::new(), C::Quota, None),
        ("", delay("25321s"), C::Quota, None),
        (" Please retry in 2.1s.", format!("{},{}", quota("Day"), delay("2s")), C::Quota, None),
        ("", format!("{},{}", quota("Minute"), quota("Day")), C::Quota, None),
    ] {
        let error = format!(
            r#"{{"error":{{"code":429,"message":"{words}{more}","status":"RESOURCE_EXHAUSTED","details":[{details}]}}}}"#
        );
        for (spec, body) in [("gemini", format!("[{error}]")), ("vertex", error.clone()), ("openai-compatible", error)]
        {
            let failure = failure(spec, 429, &body);
            assert_eq!((failure.class, failure.retry_after), (class, wait), "{spec} {body}");
        }
    }
    let coded = format!(r#"{{"error":{{"code":"insufficient_quota","message":"{words} Please retry in 2s."}}}}"#);
    assert_eq!(failure("openai", 429, &coded).class, C::Quota);
}

/// Whatever status a server gives it.
#[test]
fn a_context_that_is_full_is_no_failure_of_the_server() {
    let body = r#"{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}"#;
    let nested = r#"{"error":{"message":"Bad Request","type":"AI_APICallError","param":{"error":"prompt is too long: 215000 tokens > 200000 maximum"}}}"#;
    let coded = r#"{"error":{"code":"tokens_too_long","message":"no"}}"#;
    for (spec, status, body) in
        [("llamacpp", 500, body), ("lmstudio", 400, body), ("vercel", 400, nested), ("qianfan", 400, coded)]
    {
        assert_eq!(failure(spec, status, body).class, FailureClass::ContextOverflow, "{spec} {body}");
    }
}

/// Words of a spec that are in the kernel's source all the same, each with the reason.
const OUR_OWN: &[(&str, &str)] = &[
    ("unsupported parameter", "godex refuses parameters itself, in OpenAI's words"),
    ("unsupported value", "the same of values"),
    ("unknown parameter", "the same of names"),
    ("authentication_error", "a type of errors that the Messages API defines"),
    ("overloaded_error", "the same"),
    ("billing_error", "the same"),
    ("not_found_error", "the same"),
    ("request_too_large", "the same"),
    ("context window", "godex's own message about a finish reason that means it"),
];

/// The kernel knows no provider: neither by name, nor by what its errors say.
#[test]
fn nothing_that_a_spec_says_of_errors_is_in_the_kernel() {
    let mut facts = Vec::new();
    for entry in fs::read_dir(testkit::root().join("specs")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let document = Document::parse(&path.display().to_string(), &fs::read_to_string(&path).unwrap()).unwrap();
        gather(&document.root, "", &mut facts);
    }
    assert!(facts.len() > 40 && facts.contains(&"1002".to_owned()), "{facts:?}");
    let mut lines = Vec::new();
    code_below(&testkit::root().join("crates/bridge/src"), &mut lines);
    assert!(lines.len() > 5000, "{} lines", lines.len());
    for (at, line) in &lines {
        for fact in facts.iter().filter(|fact| OUR_OWN.iter().all(|(own, _)| own != fact)) {
            assert!(!has_phrase(line, fact), "{at} knows `{fact}`: say it in a spec");
        }
    }
    for (own, why) in OUR_OWN {
        assert!(lines.iter().any(|(_, line)| has_phrase(line, own)), "{own} ({why}) is nowhere any more");
    }
}

/// Everything under `answer.errors`, `overflow` and `wait`, also of single models. Statuses are HTTP's, and meanings are
/// words of our own.
fn gather(node: &Node, path: &str, facts: &mut Vec<String>) {
    match &node.value {
        Value::Map(entries) => {
            for (key, child) in entries.iter().filter(|(key, _)| {
                !matches!(&*key.name, "means" | "status" | "names_wait" | "no_message" | "parameter" | "retry")
            }) {
                gather(child, &format!("{path}.{}", key.name), facts);
            }
        }
        Value::Seq(elements) => elements.iter().for_each(|element| gather(element, path, facts)),
        Value::Scalar(scalar) => {
            let is_fact = ["answer.errors", "answer.overflow", "answer.wait"].iter().any(|place| path.contains(place));
            facts.extend(is_fact.then(|| scalar.text.to_lowercase()));
        }
    }
}

/// Every line without comments and tests, in lower case.
fn code_below(folder: &Path, lines: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            code_below(&path, lines);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let logic = text.lines().take_while(|line| !line.trim_start().starts_with("#[cfg(test)]"));
        let code = logic.map(|line| line.split("//").next().unwrap_or_default().to_lowercase());
        lines.extend(code.enumerate().map(|(index, line)| (format!("{}:{}", path.display(), index + 1), line)));
    }
}

/// Whether the phrase is in the line, and not within longer words.
fn has_phrase(line: &str, phrase: &str) -> bool {
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(phrase)
        .any(|(at, _)| !joins(line[..at].chars().next_back()) && !joins(line[at + phrase.len()..].chars().next()))
}

#[test]
fn phrases_are_whole() {
    assert!(has_phrase("(\"prompt is too long\", x)", "prompt is too long"));
    assert!(has_phrase("1002 | 1039 => 429", "1039"));
    assert!(!has_phrase("10021", "1002") && !has_phrase("retry_in", "retry in"));
}
