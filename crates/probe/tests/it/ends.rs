//! Probes that end early, and what they may spend.

use std::time::Duration;

use probe::{Abort, Limits, Observed, Settings};
use serde_json::json;
use server::config::{Secret, ad_hoc};
use server::probe::Client;
use testkit::Script;

use crate::model::{self, no_quirk, no_twist};
use crate::rig::{limits, probe_script, probe_with};

#[tokio::test]
async fn what_cannot_work_ends_at_once() {
    let error = |message: &str| json!({"error": {"message": message}});
    let cases = [
        (Script::json(401, &error("bad key")), "the provider refused the key (401: bad key)"),
        (Script::json(403, &error("not you")), "the provider refused the key (403: not you)"),
        (Script::json(402, &error("pay")), "the account has no quota left (402: pay)"),
        (
            Script::json(404, &error("The model `m` does not exist")),
            "the provider does not know the model (404: The model `m` does not exist); name one with --model",
        ),
        (Script::body(200, "text/html", "<html>Hello</html>"), "a plain request got no answer that can be read"),
        (Script::json(404, &json!({})), "even a plain request was refused (404"),
        (Script::json(500, &error("oops")), "even a plain request was refused (500: oops)"),
        (Script::hang_up(), "The provider cannot be reached"),
        (Script::garbage("nonsense\r\n\r\n"), "The provider's answer is not HTTP"),
    ];
    for (script, expected) in cases {
        let probed = probe_script(script).await;
        let message = probed.result.as_ref().unwrap_err().to_string();
        assert!(message.starts_with(expected), "{message}");
        assert!(probed.upstream.requests().len() <= 3, "{expected}");
    }
}

#[tokio::test]
async fn the_key_goes_out_and_stays_out_of_the_report() {
    let probed = probe_with("openai-compatible", limits(), |received| {
        let key = received.header("authorization").unwrap_or("none").to_owned();
        let tools = !received.json()["tools"].is_null();
        let echo = json!({"error": {"message": format!("no tools for {key}")}});
        if tools { Script::json(400, &echo) } else { model::answer(received, no_quirk, no_twist) }
    })
    .await;
    assert_eq!(probed.upstream.requests()[0].header("authorization"), Some("Bearer sk-very-secret-key"));
    assert!(format!("{:?}", probed.findings()).contains("no tools for Bearer [redacted]"));
    assert!(!format!("{:?}{}", probed.findings(), probed.written()).contains("very-secret"));
}

#[tokio::test]
async fn limits_hold() {
    let good = |received: &testkit::Received| model::answer(received, no_quirk, no_twist);
    let skipped = |probed: &crate::rig::Probed| {
        probed.findings().iter().filter(|finding| finding.observed == Observed::Skipped).count()
    };
    let probed = probe_with("openai-compatible", Limits { requests: 5, tokens: u64::MAX }, good).await;
    assert_eq!(probed.upstream.requests().len(), 5);
    assert!(skipped(&probed) > 10, "{:?}", probed.findings());
    assert_eq!(probed.changes(), [""; 0]);
    // Fifteen tokens for each answer; those of the stream are estimated.
    let probed = probe_with("openai-compatible", Limits { requests: 100, tokens: 60 }, good).await;
    assert_eq!(probed.upstream.requests().len(), 4);
    let spent = probed.result.as_ref().unwrap().1;
    assert!(spent.input_tokens + spent.output_tokens >= 60, "{spent:?}");
}

#[tokio::test]
async fn an_upstream_that_goes_away_is_given_up() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let probed = probe_with("openai-compatible", limits(), move |received| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if number < 6 { model::answer(received, no_quirk, no_twist) } else { Script::hang_up() }
    })
    .await;
    assert!(matches!(probed.result, Err(Abort::Unreachable(_))), "{:?}", probed.result);
}

/// A silent upstream: one request may take so long, all together so long.
#[tokio::test]
async fn time_is_limited() {
    let upstream = testkit::Upstream::start(Script::silent()).await.unwrap();
    let key = Some(Secret::new("k".to_owned()));
    let config = ad_hoc("openai-compatible", Some(&upstream.url()), key, &|_| None).unwrap();
    let dialect = config.provider.dialect.clone();
    let settings = Settings { model: "m".to_owned(), dialect, allow_overflow: false, limits: limits() };
    let cases = [
        (Duration::from_mins(1), Duration::from_millis(50), "the provider did not answer in time"),
        (Duration::ZERO, Duration::from_mins(1), "a plain request got no answer that can be read: the time is up"),
    ];
    for (total, each, expected) in cases {
        let mut client = Client::new(&config, total, each, |_| {}).unwrap();
        let aborted = probe::run(&mut client, &settings).await.unwrap_err();
        assert_eq!(aborted.to_string(), expected);
    }
    assert_eq!(upstream.requests().len(), 1);
}
