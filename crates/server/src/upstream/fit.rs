//! What does not fit into a model's context: the input, or the output that was asked for beside it.

use bridge::{Failure, FailureClass};
use wire::json::Raw;

/// The members that limit the output, in the APIs of providers.
const LIMITS: [&str; 3] = ["max_tokens", "max_completion_tokens", "max_output_tokens"];

/// A refusal of what is too long, as one of the request where not the input is to blame but the output that it asks for:
/// a shorter input would lose something, and help little. For that the provider must name its window, the input must
/// fit into it with some room, and be the smaller part.
pub(super) fn judged(failure: Failure, body: &[u8], input: impl FnOnce() -> u64) -> Failure {
    let Some((window, limit)) = tokens::window_in(&failure.message).zip(limit_of(body)) else { return failure };
    let input = input();
    if limit < input || limit.saturating_add(input) < window || input > window / 4 * 3 {
        return failure;
    }
    // The limit may be ours: then the client has not said any.
    let message = format!(
        "The answer may have {limit} tokens, which beside the input are more than the {window} of the model's context: a \
         smaller 'max_output_tokens' fits. The provider said: {}",
        failure.message
    );
    // Its code may say that the input is too long.
    Failure { class: FailureClass::InvalidRequest, message, upstream_code: None, ..failure }
}

fn limit_of(body: &[u8]) -> Option<u64> {
    let body = Raw::parse(str::from_utf8(body).ok()?).ok()?;
    LIMITS.into_iter().find_map(|name| body.get(name)?.as_str().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_part_is_to_blame() {
        let vllm = "'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's maximum context length is \
                    8000 tokens and your request has 5 input tokens (9000 > 8000 - 5).";
        let openai = "This model's maximum context length is 8000 tokens. However, you requested 9005 tokens (5 in the \
                      messages, 9000 in the completion).";
        let anthropic = "input length and `max_tokens` exceed context limit: 10 + 64000 > 60000, decrease input length or \
                         `max_tokens` and try again";
        for (message, body, input, is_limit) in [
            (anthropic, r#"{"max_tokens":64000}"#, 10, true),
            (anthropic, r#"{"max_tokens":16000}"#, 50_000, false),
            (vllm, r#"{"max_tokens":9000}"#, 5, true),
            (vllm, r#"{"max_completion_tokens":9000}"#, 5, true),
            (openai, r#"{"max_output_tokens":9000}"#, 5, true),
            (openai, r#"{"max_tokens":6000}"#, 3000, true),
            // What was said is the larger part.
            (openai, r#"{"max_tokens":4000}"#, 5000, false),
            // It may not even fit alone: counts are estimates.
            (openai, r#"{"max_tokens":9000}"#, 7000, false),
            // Together they fit: the estimate is wrong.
            (openai, r#"{"max_tokens":100}"#, 5, false),
            (openai, r#"{"max_tokens":null}"#, 5, false),
            (openai, "{}", 5, false),
            ("prompt is too long", r#"{"max_tokens":9000}"#, 5, false),
        ] {
            let code = Some("context_length_exceeded".to_owned());
            let overflow = Failure { upstream_code: code, ..Failure::new(FailureClass::ContextOverflow, message) };
            let failure = judged(overflow.clone(), body.as_bytes(), || input);
            if is_limit {
                assert_eq!((failure.class, &failure.upstream_code), (FailureClass::InvalidRequest, &None), "{body}");
                assert!(failure.message.contains("'max_output_tokens'") && failure.message.ends_with(message));
            } else {
                assert_eq!(failure, overflow, "{body} {input}");
            }
        }
    }
}
