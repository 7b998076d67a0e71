use serde_json::{Value, json};
use store::{MemoryLimits, UsageBatch, Worker};

use super::*;

/// 2026-11-16 00:00 UTC.
const TODAY: i64 = 1_794_787_200;

async fn store() -> Store {
    let store = Store::memory(MemoryLimits::default()).unwrap();
    let row = |tenant: &str, key: &str, model: &str, hours_ago: i64, sum: UsageSum| {
        let [tenant, key, model] = [tenant, key, model].map(str::to_owned);
        (UsageKey { tenant, key, provider: "p".to_owned(), model, hour: TODAY / HOUR - hours_ago }, sum)
    };
    let sum = |requests, nanodollars, unpriced| UsageSum {
        requests,
        unpriced,
        input_tokens: 100 * requests,
        cached_tokens: 40 * requests,
        output_tokens: 10 * requests,
        reasoning_tokens: 0,
        tool_calls: 0,
        nanodollars,
    };
    let search = UsageSum { tool_calls: 3, nanodollars: 15_000_000, ..UsageSum::default() };
    let rows = vec![
        row("red", "key_1", "m", 1, sum(2, 1_500_000_000, 0)),
        row("red", "key_1", "n", 2, sum(1, 0, 1)),
        row("red", "key_2", "m", 30, sum(4, 20, 0)),
        row("blue", "key_3", "m", 1, sum(1, 250_000_000, 0)),
        row("blue", "key_3", "web_search", 1, search),
    ];
    let worker = Worker::random().unwrap();
    store.add_usage(UsageBatch { worker, number: 1, rows }).await.unwrap();
    store
}

async fn get(store: &Store, shape: &Shape, query: &str) -> Value {
    serde_json::from_slice(&page(store, query, shape, TODAY).await.unwrap()).unwrap()
}

/// The shapes as OpenAI documents them: every member, and what it may be.
fn check_page(page: &Value, object: &str, members: &[(&str, &str)]) {
    let is = |value: &Value, kind: &str| match kind {
        "text" => value.is_string(),
        "text?" => value.is_string() || value.is_null(),
        "null" => value.is_null(),
        "count" => value.is_u64(),
        "amount?" => value.is_null() || value["value"].is_number() && value["currency"] == "usd",
        _ => false,
    };
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<std::collections::BTreeSet<_>>();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!((keys(page), &page["object"]), (names(&["object", "data", "has_more", "next_page"]), &json!("page")));
    assert!(page["has_more"].is_boolean() && is(&page["next_page"], "text?"), "{page}");
    for bucket in page["data"].as_array().unwrap() {
        assert_eq!(keys(bucket), names(&["object", "start_time", "end_time", "results"]));
        assert_eq!(bucket["object"], "bucket");
        assert!(bucket["end_time"].as_i64() > bucket["start_time"].as_i64(), "{bucket}");
        for result in bucket["results"].as_array().unwrap() {
            assert_eq!(result["object"], object);
            let expected: Vec<&str> = members.iter().map(|(name, _)| *name).chain(["object"]).collect();
            assert_eq!(keys(result), names(&expected));
            for (name, kind) in members {
                assert!(is(&result[*name], kind), "{name}: {result}");
            }
        }
    }
}

fn check_completions(page: &Value) {
    check_page(
        page,
        "organization.usage.completions.result",
        &[
            ("input_tokens", "count"),
            ("output_tokens", "count"),
            ("input_cached_tokens", "count"),
            ("input_audio_tokens", "count"),
            ("output_audio_tokens", "count"),
            ("num_model_requests", "count"),
            ("project_id", "text?"),
            ("user_id", "null"),
            ("api_key_id", "text?"),
            ("model", "text?"),
            ("batch", "null"),
            ("service_tier", "null"),
        ],
    );
}

fn check_costs(page: &Value) {
    let members = [("amount", "amount?"), ("line_item", "text?"), ("project_id", "text?"), ("api_key_id", "text?")];
    check_page(page, "organization.costs.result", &members);
}

#[tokio::test]
async fn usage_is_in_buckets_of_days() {
    let store = store().await;
    let start = TODAY - 2 * 86_400;
    let page = get(&store, &COMPLETIONS, &format!("start_time={start}")).await;
    check_completions(&page);
    let counts: Vec<_> = page["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bucket| {
            let first = &bucket["results"][0];
            let (requests, input) = (&first["num_model_requests"], &first["input_tokens"]);
            (bucket["start_time"].as_i64().unwrap() - start, requests.as_u64(), input.as_u64())
        })
        .collect();
    assert_eq!(counts, [(0, Some(4), Some(400)), (86_400, Some(4), Some(400))]);
    assert_eq!((&page["has_more"], &page["next_page"]), (&json!(false), &Value::Null));
}

#[tokio::test]
async fn usage_is_told_apart_and_filtered() {
    let store = store().await;
    let start = TODAY - 86_400;
    for (query, expected) in [
        ("group_by=project_id", json!([["blue", null, null, 1], ["red", null, null, 3]])),
        (
            "group_by[]=project_id&group_by[]=model",
            json!([["blue", null, "p/m", 1], ["red", null, "p/m", 2], ["red", null, "p/n", 1]]),
        ),
        ("group_by=api_key_id,model&project_ids[]=red", json!([[null, "key_1", "p/m", 2], [null, "key_1", "p/n", 1]])),
        ("models=p/m,other/n&group_by=model", json!([[null, null, "p/m", 3]])),
        ("models=q/m", json!([])),
        ("group_by=model&models=m&api_key_ids=key_3", json!([[null, null, "p/m", 1]])),
        ("project_ids=green", json!([])),
    ] {
        let page = get(&store, &COMPLETIONS, &format!("start_time={start}&{query}")).await;
        check_completions(&page);
        let results = page["data"][0]["results"].as_array().unwrap().iter();
        let short = results.map(|result| {
            json!([result["project_id"], result["api_key_id"], result["model"], result["num_model_requests"]])
        });
        assert_eq!(Value::Array(short.collect()), expected, "{query}");
    }
}

#[tokio::test]
async fn pages_follow_each_other() {
    let store = store().await;
    let (start, end) = (TODAY - 86_400, TODAY);
    let mut query = format!("start_time={start}&end_time={end}&bucket_width=1h&limit=10");
    let mut seen = Vec::new();
    loop {
        let page = get(&store, &COMPLETIONS, &query).await;
        check_completions(&page);
        seen.extend(page["data"].as_array().unwrap().iter().map(|bucket| bucket["start_time"].as_i64().unwrap()));
        let Some(next) = page["next_page"].as_str() else { break };
        assert_eq!(page["has_more"], true);
        query = format!("start_time={start}&end_time={end}&bucket_width=1h&limit=10&page={next}");
    }
    assert_eq!(seen, (0..24).map(|hour| start + hour * 3600).collect::<Vec<_>>());
}

#[tokio::test]
async fn costs_that_are_not_known_are_null() {
    let store = store().await;
    let start = TODAY - 86_400;
    let page = get(&store, &COSTS, &format!("start_time={start}&group_by=line_item&group_by=project_id")).await;
    check_costs(&page);
    let results = page["data"][0]["results"].as_array().unwrap().iter();
    let short: Vec<Value> =
        results.map(|result| json!([result["project_id"], result["line_item"], result["amount"]["value"]])).collect();
    let expected =
        json!([["blue", "p/m", 0.25], ["blue", "p/web_search", 0.015], ["red", "p/m", 1.5], ["red", "p/n", null]]);
    assert_eq!(Value::Array(short), expected);
    // Of a sum, what is known.
    let page = get(&store, &COSTS, &format!("start_time={start}")).await;
    check_costs(&page);
    assert_eq!(page["data"][0]["results"][0]["amount"], json!({"value": 1.765, "currency": "usd"}));
}

#[tokio::test]
async fn what_cannot_be_is_said() {
    let store = store().await;
    for (shape, query, param) in [
        (&COMPLETIONS, "", "start_time"),
        (&COMPLETIONS, "start_time=x", "start_time"),
        (&COMPLETIONS, "start_time=99999999999999", "start_time"),
        (&COMPLETIONS, "start_time=100&end_time=50", "end_time"),
        (&COMPLETIONS, "start_time=0&bucket_width=1m", "bucket_width"),
        (&COSTS, "start_time=0&bucket_width=1h", "bucket_width"),
        (&COMPLETIONS, "start_time=0&group_by=user_id", "group_by"),
        (&COSTS, "start_time=0&group_by=model", "group_by"),
        (&COMPLETIONS, "start_time=0&limit=32", "limit"),
        (&COMPLETIONS, "start_time=0&limit=0", "limit"),
        (&COMPLETIONS, "start_time=0&page=page_x", "page"),
        (&COMPLETIONS, "start_time=0&page=page_7", "page"),
        (&COMPLETIONS, "start_time=0&batch=true", "batch"),
        (&COMPLETIONS, "start_time=0&user_ids=u", "user_ids"),
    ] {
        let error = ApiError::from(page(&store, query, shape, TODAY).await.unwrap_err());
        assert_eq!((error.status.as_u16(), error.param.as_deref()), (400, Some(param)), "{query}: {}", error.message);
        assert!(error.message.contains(param), "{query}: {}", error.message);
    }
    let too_many = format!("start_time=0&models={}", "m,".repeat(300));
    assert!(page(&store, &too_many, &COMPLETIONS, TODAY).await.is_err());
}

#[tokio::test]
async fn plain_reports_have_a_row_for_each() {
    let store = store().await;
    for (query, expected) in [
        ("by=tenant", json!([["blue", "0.265"], ["red", "1.50000002"]])),
        ("by=tenant&since=1794700800", json!([["blue", "0.265"], ["red", "1.5"]])),
    ] {
        let rows: Value = serde_json::from_slice(&plain(&store, query).await.unwrap()).unwrap();
        let rows = rows["rows"].as_array().unwrap().iter().map(|row| json!([row["tenant"], row["cost_usd"]]));
        assert_eq!(Value::Array(rows.collect()), expected, "{query}");
    }
    let rows: Value = serde_json::from_slice(&plain(&store, "by=day,model").await.unwrap()).unwrap();
    let days = rows["rows"].as_array().unwrap().iter().map(|row| json!([row["day"], row["model"], row["cost_usd"]]));
    let expected = json!([
        ["2026-11-14", "p/m", "0.00000002"],
        ["2026-11-15", "p/m", "1.75"],
        ["2026-11-15", "p/n", null],
        ["2026-11-15", "p/web_search", "0.015"]
    ]);
    assert_eq!(Value::Array(days.collect()), expected);
    assert!(matches!(plain(&store, "by=colour").await, Err(ReportError::Invalid { .. })));
}

#[test]
fn spans_are_read() {
    for (text, seconds) in [
        ("12h", Some(43_200)),
        ("30d", Some(2_592_000)),
        ("2w", Some(1_209_600)),
        ("d", None),
        ("5", None),
        ("5y", None),
        ("99999999999999999999d", None),
    ] {
        assert_eq!(span(text), seconds, "{text}");
    }
}
