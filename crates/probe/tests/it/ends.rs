//! Probes that end early, and what they may spend.

use std::time::Duration;

use probe::{Abort, Check, Difference, Limits, Observed, Report, Settings};
use serde_json::json;
use server::config::{Secret, ad_hoc};
use server::probe::Client;
use testkit::Script;

use crate::model::{self, no_quirk, no_twist};
use crate::rig::{Probed, limits, probe_script, probe_settings, probe_with, settings};

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
    let skipped =
        |probed: &Probed| probed.findings().iter().filter(|finding| finding.observed == Observed::Skipped).count();
    let probed = probe_with("openai-compatible", Limits { requests: 5, tokens: u64::MAX }, good).await;
    assert_eq!(probed.upstream.requests().len(), 5);
    assert!(skipped(&probed) > 10, "{:?}", probed.findings());
    assert_eq!(probed.changes(), [""; 0]);
    // Fifteen tokens for each answer; those of the stream are estimated.
    let probed = probe_with("openai-compatible", Limits { requests: 100, tokens: 60 }, good).await;
    assert_eq!(probed.upstream.requests().len(), 4);
    let spent = probed.result.as_ref().unwrap().spent;
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
    let report = ended(&probed);
    assert!(matches!(report.ended, Some(Abort::Unreachable(_))), "{report:?}");
    // What was found until then is said, and of the rest that it was not tried.
    assert_eq!((probed.observed("plain answer"), probed.observed("messages")), ("yes", "skipped"));
    assert!(report.table().contains("ended early: The provider cannot be reached"), "{}", report.table());
    assert!(report.json().contains("\"ended_early\": \"The provider"), "{}", report.json());
    assert!(probed.upstream.requests().len() < 12);
}

fn ended(probed: &Probed) -> Report {
    Report::new("t", "m", "s", probed.result.clone().unwrap())
}

/// Good answers, then one and the same thing for all that follows.
async fn turning(after: usize, script: Script) -> Probed {
    let count = std::sync::atomic::AtomicUsize::new(0);
    probe_with("openai-compatible", limits(), move |received| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if number < after { model::answer(received, no_quirk, no_twist) } else { script.clone() }
    })
    .await
}

#[tokio::test]
async fn an_upstream_that_goes_wrong_half_way_is_reported_as_such() {
    let error = |message: &str| json!({"error": {"message": message}});
    let busy = Script::json(429, &error("slow down")).header("retry-after", "0");
    for (script, expected) in [
        (
            Script::body(200, "text/html", "<html>Hello</html>"),
            "answers in a row were of no use; the last: the answer is not JSON",
        ),
        (
            Script::json(200, &json!({"nonsense": [1, 2]})),
            "answers in a row were of no use; the last: the answer is empty",
        ),
        (Script::json(502, &error("bad gateway")), "answers in a row were of no use; the last: 502 from a gateway"),
        (busy, "answers in a row were of no use; the last: 429: slow down"),
        (Script::json(402, &error("pay")), "the account has no quota left (402: pay)"),
    ] {
        let probed = turning(20, script).await;
        let report = ended(&probed);
        let words = report.ended.as_ref().map(ToString::to_string).unwrap_or_default();
        assert!(words.contains(expected), "{words}");
        assert_eq!(probed.observed("plain answer"), "yes");
        let differs = |finding: &&probe::Finding| finding.difference != Difference::None;
        assert_eq!(report.findings.iter().filter(differs).count(), 0, "{report:?}");
        assert!(report.costs.iter().map(|cost| cost.requests).sum::<usize>() == report.spent.requests, "{report:?}");
    }
}

/// Errors of a server that breaks over everything odd are refusals; the report goes to its end.
#[tokio::test]
async fn an_upstream_that_fails_at_all_that_is_odd_is_probed_to_the_end() {
    let error = json!({"error": {"message": "Internal Server Error"}});
    let probed = turning(20, Script::json(500, &error)).await;
    assert_eq!(ended(&probed).ended, None);
    assert_eq!(probed.observed("native /responses"), "unclear");
}

/// It hangs after the first answers: each request has its time, and three in a row are enough.
#[tokio::test]
async fn an_upstream_that_hangs_half_way_is_given_up() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let upstream = testkit::Upstream::start_with(move |received| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if number < 6 { model::answer(received, no_quirk, no_twist) } else { Script::silent() }
    });
    let upstream = upstream.await.unwrap();
    let config = ad_hoc("openai-compatible", Some(&upstream.url()), None, &|_| None).unwrap();
    let mut client = Client::new(&config, Duration::from_mins(1), Duration::from_millis(200), |_| {}).unwrap();
    let probed = probe::run(&mut client, &settings(config.provider.dialect.clone())).await.unwrap();
    assert_eq!(probed.ended, Some(Abort::Unreachable("the provider did not answer in time".to_owned())));
    assert_eq!(probed.spent.requests, 9);
}

#[tokio::test]
async fn named_checks_run_with_what_they_need() {
    let good = |received: &testkit::Received| model::answer(received, no_quirk, no_twist);
    for (only, expected) in [
        (&[Check::Stop][..], &[Check::Plain, Check::Stop][..]),
        (&[Check::History, Check::Errors], &[Check::Plain, Check::Tools, Check::History, Check::Errors]),
    ] {
        let probed = probe_settings("openai-compatible", |all| Settings { only: only.to_vec(), ..all }, good).await;
        let costs = &probed.result.as_ref().unwrap().costs;
        assert_eq!(costs.iter().map(|cost| cost.check).collect::<Vec<_>>(), expected);
        assert!(costs.iter().all(|cost| cost.requests > 0), "{costs:?}");
        assert!(probed.findings().iter().all(|finding| expected.contains(&finding.check)));
    }
}

/// A silent upstream: one request may take so long, all together so long.
#[tokio::test]
async fn time_is_limited() {
    let upstream = testkit::Upstream::start(Script::silent()).await.unwrap();
    let key = Some(Secret::new("k".to_owned()));
    let config = ad_hoc("openai-compatible", Some(&upstream.url()), key, &|_| None).unwrap();
    let dialect = config.provider.dialect.clone();
    let settings = Settings { allow_overflow: false, ..settings(dialect) };
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
