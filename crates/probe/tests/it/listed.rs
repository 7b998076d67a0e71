//! What the provider's own list says of the model, beside what the checks have seen.

use probe::{Check, Report, Settings, Was};
use serde_json::{Value, json};
use testkit::Script;

use crate::model::{self, no_quirk, no_twist};
use crate::rig::{Probed, probe_settings};

/// A good model whose list has this entry.
async fn listed(spec: &str, only: &[Check], list: Value) -> Probed {
    let change = |all| Settings { only: only.to_vec(), ..all };
    probe_settings(spec, change, move |received| {
        if received.path.ends_with("/models") {
            return Script::json(200, &list);
        }
        model::answer(received, no_quirk, no_twist)
    })
    .await
}

fn entry(more: &Value) -> Value {
    let mut entry = json!({"id": "m", "context_length": 65536});
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"object": "list", "data": [{"id": "n", "context_length": 1_000_000}, entry]})
}

#[tokio::test]
async fn what_is_listed_is_said_and_changes_the_spec_where_nothing_else_was_seen() {
    let list = entry(&json!({
        "architecture": {"input_modalities": ["text"]}, "supported_parameters": ["stop"],
        "reasoning": {"supported_efforts": ["low", "high"]},
    }));
    let probed = listed("openrouter", &[Check::Listed], list.clone()).await;
    for (feature, observed, confidence) in [
        ("list of models", "names the model", "certain"),
        ("listed context window", "65536", "listed"),
        ("listed images", "no", "listed"),
        ("listed efforts", "low, high", "listed"),
        ("listed tools", "no", "listed"),
    ] {
        let finding = probed.finding(feature);
        assert_eq!((finding.observed.text(), finding.confidence.name()), (observed, confidence), "{feature}");
    }
    let changes =
        ["context_window: 65536", "request.content.images: none", "request.reasoning.ladder: {low: low, high: high}"];
    assert_eq!(probed.changes(), changes);
    let report = Report::new("t", "m", "s", probed.result.clone().unwrap());
    let diff = report.diff(|_| None::<Was>).yaml();
    assert!(
        diff.contains(
            "# listed context window is 65536 (listed): context_length in its list: 65536\ncontext_window: 65536\n"
        ),
        "{diff}"
    );
    assert!(diff.contains("# no word for it: listed tools: the list names no tools"), "{diff}");
    assert!(probed.written().contains("\ncontext_window: 65536\n"), "{}", probed.written());

    // What was tried counts more than what a list says.
    let probed = listed("openrouter", &[], list).await;
    assert_eq!((probed.observed("images"), probed.observed("listed images")), ("data", "no"));
    let changes = probed.changes();
    assert!(changes.contains(&"context_window: 65536".to_owned()), "{changes:?}");
    assert!(!changes.iter().any(|change| change.starts_with("request.content.images")), "{changes:?}");
}

#[tokio::test]
async fn what_a_list_does_not_say_is_not_guessed() {
    for (list, said) in [
        (json!({"data": [{"id": "m", "owned_by": "me"}]}), "names the model"),
        (json!({"data": [{"id": "n", "context_length": 65536}]}), "does not name the model"),
        (json!({"data": []}), "does not name the model"),
        (json!({"error": {"message": "not for you"}}), "none"),
    ] {
        let probed = listed("openai-compatible", &[Check::Listed], list).await;
        assert_eq!(probed.observed("list of models"), said);
        assert_eq!(probed.changes(), [""; 0], "{said}");
        assert!(!probed.findings().iter().any(|finding| finding.feature.starts_with("listed")));
    }
}
