//! Providers that are odd about efforts, switches, and reasoning that comes back.

use super::*;

/// Reasoning of so many tokens.
fn thought(tokens: usize) -> Value {
    json!("Hm, ".repeat(tokens))
}

fn thinks(_: &Value, message: &mut Value) {
    message["reasoning_content"] = thought(60);
}

/// Whether a message of the assistant lacks this member.
fn lacks(body: &Value, field: &str, plain: bool) -> bool {
    body["messages"].as_array().into_iter().flatten().any(|message| {
        let counts = message["role"] == "assistant" && (plain || has(message, "tool_calls"));
        counts && message[field].as_str().is_none_or(str::is_empty) && !message[field].is_array()
    })
}

pub(super) const THINKING: &[Case] = &[
    Case {
        name: "thinks as long as it is told to",
        twist: |body, message| {
            let tokens = match body["reasoning_effort"].as_str() {
                Some("none") => return,
                Some("minimal") => 10,
                Some("low") => 30,
                Some("medium") | None => 90,
                Some("high") => 200,
                Some(_) => 300,
            };
            message["reasoning_content"] = thought(tokens);
        },
        seen: &[
            ("effort changes thinking", "more with effort"),
            ("thinking switch", "by the effort none"),
            ("reasoning replay", "optional"),
            ("reasoning is read again", "no sign"),
            ("replay without calls", "optional"),
            ("reasoning comes back as", "reasoning_content, reasoning"),
        ],
        ..PLAIN
    },
    Case {
        name: "thinks the same whatever it is told",
        twist: thinks,
        seen: &[("effort changes thinking", "no difference"), ("thinking switch", "none found")],
        ..PLAIN
    },
    Case {
        name: "is switched off by a member that nobody has declared",
        twist: |body, message| {
            if body["enable_thinking"] != false {
                thinks(body, message);
            }
        },
        changes: &["request.reasoning.off: '{\"enable_thinking\":false}'"],
        seen: &[("thinking switch", "{\"enable_thinking\":false}")],
        ..PLAIN
    },
    Case {
        name: "is switched off as declared",
        spec: "sglang",
        twist: |body, message| {
            if body["chat_template_kwargs"]["enable_thinking"] != false {
                thinks(body, message);
            }
        },
        seen: &[("thinking switch", "works")],
        ..PLAIN
    },
    Case {
        name: "refuses the declared switch and has another",
        spec: "llamacpp",
        quirk: |body| (body["chat_template_kwargs"]["enable_thinking"] == false).then(|| refuse(400, "unknown member")),
        twist: |body, message| {
            if body["thinking"]["type"] != "disabled" {
                thinks(body, message);
            }
        },
        changes: &[
            "request.tools.choices: [auto, none, required, function]",
            "request.reasoning.off: '{\"thinking\":{\"type\":\"disabled\"}}'",
        ],
        ..PLAIN
    },
    Case {
        name: "has efforts that the spec does not send",
        spec: "together",
        quirk: |body| {
            let effort = body["reasoning_effort"].as_str()?;
            (!["low", "high"].contains(&effort)).then(|| refuse(400, "reasoning_effort must be low or high"))
        },
        changes: &["request.reasoning.effort: reasoning_effort", "request.reasoning.ladder: {low: low, high: high}"],
        seen: &[("reasoning efforts", "low, high")],
        ..PLAIN
    },
    Case {
        name: "takes no reasoning back, against its spec",
        spec: "llamacpp",
        quirk: |body| {
            let call = calling(body)?;
            has(call, "reasoning_content").then(|| refuse(400, "unknown member reasoning_content"))
        },
        twist: thinks,
        changes: &["request.tools.choices: [auto, none, required, function]", "request.reasoning.replay: never"],
        seen: &[("reasoning replay", "never"), ("replay without calls", "optional")],
    },
    Case {
        name: "wants its list of details back",
        quirk: |body| lacks(body, "reasoning_details", false).then(|| refuse(400, "reasoning_details are missing")),
        twist: |_, message| {
            message["reasoning_details"] = json!([{"type": "reasoning.encrypted", "data": "c2VhbGVk"}]);
        },
        changes: &["request.reasoning.replay: tools", "request.reasoning.field: bag"],
        seen: &[("reasoning replay", "needed on calls"), ("reasoning is read again", "skipped")],
        ..PLAIN
    },
    Case {
        name: "wants it back under its other name",
        quirk: |body| lacks(body, "reasoning", false).then(|| refuse(400, "reasoning is missing")),
        twist: |_, message| message["reasoning"] = thought(60),
        changes: &[
            "request.reasoning.replay: tools",
            "request.reasoning.field: reasoning",
            "request.reasoning.placeholder: true",
        ],
        seen: &[("reasoning comes back as", "reasoning")],
        ..PLAIN
    },
    Case {
        name: "wants it back on every turn",
        quirk: |body| lacks(body, "reasoning_content", true).then(|| refuse(400, "reasoning_content is missing")),
        twist: thinks,
        changes: &[
            "request.reasoning.replay: tools",
            "request.reasoning.placeholder: true",
            "request.reasoning.replay: always",
        ],
        seen: &[("late system message", "unclear"), ("empty content", "unclear"), ("replay without calls", "needed")],
        ..PLAIN
    },
    Case {
        name: "reads what it thought",
        twist: |body, message| {
            thinks(body, message);
            if body["messages"].to_string().contains("HERON-31") {
                message["content"] = json!("HERON-31");
            }
        },
        seen: &[("reasoning is read again", "yes")],
        ..PLAIN
    },
];

/// Which were refused, and in which words, is all there.
#[tokio::test]
async fn refused_efforts_are_listed_with_their_words() {
    let quirk = |body: &Value| match body["reasoning_effort"].as_str()? {
        "none" | "minimal" => Some(refuse(400, "it always thinks")),
        "xhigh" => Some(refuse(400, "not that much")),
        "low" | "medium" | "high" | "max" => None,
        _ => Some(refuse(400, "no such effort")),
    };
    let probed = probe("openai-compatible", quirk, no_twist).await;
    let finding = probed.finding("reasoning efforts");
    assert_eq!(finding.evidence, "none, minimal: 400: it always thinks; xhigh: 400: not that much");
    assert_eq!(finding.confidence.name(), "certain");
    // One that takes any word has shown nothing by it.
    let probed = probe("openai-compatible", no_quirk, no_twist).await;
    let finding = probed.finding("reasoning efforts");
    assert_eq!((finding.evidence.as_str(), finding.confidence.name()), ("any word is taken", "weak"));
}
