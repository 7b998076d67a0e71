//! Providers that are odd about pictures, files and caches.

use probe::Settings;

use super::*;
use crate::model::{self, say};
use crate::rig::probe_settings;

fn holds(body: &Value, text: &str) -> bool {
    body["messages"].to_string().contains(text)
}

fn picture_in_result(body: &Value) -> bool {
    let messages = body["messages"].as_array().into_iter().flatten();
    messages.filter(|message| message["role"] == "tool").any(|message| message["content"].is_array())
}

/// An answer to the long prefix, with what was cached of it.
fn cached(usage: &Value) -> Script {
    let choice = json!({"message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"});
    Script::json(200, &json!({"choices": [choice], "usage": usage}))
}

pub(super) const MEDIA: &[Case] = &[
    Case {
        name: "sees pictures in results",
        quirk: |body| picture_in_result(body).then(|| say("Red.")),
        changes: &["request.content.tool_images: native"],
        seen: &[("images in tool results", "native")],
        ..PLAIN
    },
    Case {
        name: "takes no pictures in results",
        quirk: |body| picture_in_result(body).then(|| refuse(400, "tool content must be a string")),
        seen: &[("images in tool results", "refused")],
        ..PLAIN
    },
    Case {
        name: "knows two kinds of pictures",
        quirk: |body| holds(body, "image/webp").then(|| refuse(400, "unsupported image format")),
        seen: &[("images", "data"), ("image kinds", "png, jpeg")],
        ..PLAIN
    },
    Case {
        name: "reads PDF files",
        quirk: |body| holds(body, "application/pdf").then(|| say("The word is osprey-52.")),
        changes: &["request.content.files: true"],
        seen: &[("PDF files", "read"), ("text files", "unclear")],
        ..PLAIN
    },
    Case {
        name: "takes no files, against its spec",
        spec: "openai",
        quirk: |body| holds(body, "file_data").then(|| refuse(400, "unknown part: file")),
        changes: &["request.content.files: false"],
        seen: &[("PDF files", "refused"), ("text files", "refused")],
        ..PLAIN
    },
    Case {
        name: "caches",
        quirk: |body| {
            let usage = json!({"prompt_tokens": 1600, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 1536}});
            holds(body, "Rule 1:").then(|| cached(&usage))
        },
        seen: &[("cached prefix", "reported")],
        ..PLAIN
    },
    Case {
        name: "caches, and says so in its own words",
        quirk: |body| {
            let usage = json!({"prompt_tokens": 1600, "completion_tokens": 3, "prompt_cache_hit_tokens": 1600});
            holds(body, "Rule 1:").then(|| cached(&usage))
        },
        seen: &[("cached prefix", "reported")],
        ..PLAIN
    },
    Case {
        name: "says that nothing was cached",
        quirk: |body| {
            let usage =
                json!({"prompt_tokens": 1600, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 0}});
            holds(body, "Rule 1:").then(|| cached(&usage))
        },
        seen: &[("cached prefix", "not reported")],
        ..PLAIN
    },
    Case {
        name: "refuses a key and marks for caches",
        spec: "openai",
        quirk: |body| {
            let marked = holds(body, "cache_control") || has(body, "prompt_cache_key");
            marked.then(|| refuse(400, "extra inputs are not permitted"))
        },
        changes: &["drop: [prompt_cache_key]", "drop: [prompt_cache_key]"],
        seen: &[("prompt_cache_key", "refused"), ("cache_control marks", "refused")],
        ..PLAIN
    },
];

/// Addresses are tried where one is named, and only there.
#[tokio::test]
async fn addresses_of_pictures_are_judged() {
    const URL: &str = "https://pictures.example/red.png";
    let quirks: [(Quirk, &str, &[&str], &str); 4] = [
        (no_quirk, "openai-compatible", &[], "all"),
        (no_quirk, "ollama", &["request.content.images: all"], "all"),
        (
            |body| holds(body, URL).then(|| refuse(400, "cannot fetch")),
            "openai-compatible",
            &["request.content.images: data"],
            "refused",
        ),
        (|body| holds(body, URL).then(|| say("A cat.")), "openai-compatible", &[], "unclear"),
    ];
    for (quirk, spec, changes, seen) in quirks {
        let named = |all| Settings { image_url: Some(URL.to_owned()), ..all };
        let probed = probe_settings(spec, named, move |received| model::answer(received, quirk, no_twist)).await;
        assert_eq!(probed.observed("image addresses"), seen, "{:#?}", probed.findings());
        let about = |change: &String| change.starts_with("request.content.images");
        assert_eq!(probed.changes().into_iter().filter(about).collect::<Vec<_>>(), changes);
    }
}
