//! What every place for traces promises.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use store::{
    Clock, NewTrace, Payload, Tenant, TraceBatch, TraceDocument, TraceFilter, TraceNumber, TracePage, TracePoint,
    TraceRetention, TraceRow, TraceStore, member,
};

use crate::trace_room::little_room_is_never_empty;

/// In microseconds since 1970.
pub(crate) const BEGIN: i64 = 1_700_000_000_000_000;
const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;

/// One that was there long ago and for ever: each case asks only for its own tenants.
pub(crate) fn row(tenant: &str, number: i64) -> TraceRow<'static> {
    let count = number.unsigned_abs();
    let some = |every: i64, text: String| (number % every != 0).then(|| text.into());
    TraceRow {
        began_at: BEGIN + number * SECOND,
        took_micros: 1_000 + number * 37 % 5_000,
        first_token_micros: (number % 4 != 0).then_some(number),
        upstream_micros: (number % 5 != 0).then_some(number),
        tenant: tenant.to_owned().into(),
        key: some(7, format!("key {}", number % 5)),
        request_id: format!("req_{tenant}_{number}").into(),
        response_id: some(6, format!("resp_{tenant}_{number}")),
        previous_response_id: None,
        conversation_id: some(9, format!("conv_{tenant}_{}", number / 10)),
        kind: "stream".into(),
        client: "codex".into(),
        model: some(11, format!("model-{}", number % 4)),
        provider: some(8, format!("provider-{}", number % 2)),
        upstream_model: some(8, format!("upstream-{}", number % 4)),
        status: (number % 5 != 0).then_some(if number % 10 == 1 { 429 } else { 200 }),
        outcome: if number % 10 == 2 { "failed" } else { "completed" }.into(),
        error: (number % 10 == 1).then(|| "upstream.rate_limited".into()),
        attempts: 1,
        rounds: 2,
        input_tokens: (number % 3 != 0).then_some(count),
        cached_tokens: (number % 3 != 0).then_some(count / 2),
        output_tokens: (number % 3 != 0).then_some(count * 2),
        reasoning_tokens: (number % 6 == 1).then_some(count),
        nanodollars: (number % 4 != 0).then_some(count * 1_000),
        notes: match number % 200 {
            3 => "degraded.tool dropped.param".into(),
            4 => "dropped.param".into(),
            _ => "".into(),
        },
    }
}

/// One that is added.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) row: TraceRow<'static>,
    pub(crate) document: Vec<u8>,
    pub(crate) payloads: Vec<Payload>,
}

pub(crate) fn trace(row: TraceRow<'static>) -> Sample {
    let document = format!(r#"{{"of":"{}","tenant":"{}"}}"#, row.request_id, row.tenant).into_bytes();
    Sample { row, document, payloads: Vec::new() }
}

pub(crate) fn batched(samples: impl IntoIterator<Item = Sample>) -> TraceBatch {
    let new = |Sample { row, document, payloads }| NewTrace::with_document(&row, &document).with_payloads(payloads);
    samples.into_iter().map(new).collect()
}

/// Rows of a tenant, in batches of uneven size.
async fn filled(traces: &TraceStore, tenant: &str, count: i64) -> Vec<TraceRow<'static>> {
    let rows: Vec<TraceRow<'static>> = (1..=count).map(|number| row(tenant, number)).collect();
    let (mut left, mut size) = (rows.as_slice(), 1);
    while !left.is_empty() {
        let (some, rest) = left.split_at(size.min(left.len()));
        traces.add(batched(some.iter().cloned().map(trace))).await.unwrap();
        left = rest;
        size = size * 3 % 301 + 1;
    }
    rows
}

pub(crate) fn of(tenant: &str) -> TraceFilter {
    TraceFilter { tenant: Some(tenant.into()), ..TraceFilter::default() }
}

pub(crate) const fn newest(limit: u32) -> TracePage {
    TracePage { before: None, after: None, limit }
}

fn rows(found: Vec<(TraceNumber, TraceRow<'static>)>) -> Vec<TraceRow<'static>> {
    found.into_iter().map(|(_, row)| row).collect()
}

fn requests(found: &[(TraceNumber, TraceRow<'_>)]) -> String {
    let names: Vec<&str> = found.iter().map(|(_, row)| row.request_id.rsplit('_').next().unwrap()).collect();
    names.join(" ")
}

async fn what_was_added_comes_back(traces: TraceStore) {
    let t = "comes back";
    assert_eq!(traces.get(1 << 60).await.unwrap(), None);
    assert_eq!(traces.get(0).await.unwrap(), None);
    assert_eq!(traces.find("resp_unknown".into(), None).await.unwrap(), None);
    assert_eq!(traces.find(String::new(), None).await.unwrap(), None);
    traces.add(TraceBatch::default()).await.unwrap();
    let payload = |name: &str, bytes: Vec<u8>, cut_from| Payload { name: name.into(), bytes: bytes.into(), cut_from };
    let payloads = vec![
        payload("request", br#"{"input":"hello"}"#.to_vec(), None),
        payload("chat_request.1", vec![0, 255, 7], Some(9)),
        payload("response", b"long ".repeat(20_000), Some(1 << 40)),
        payload("events", Vec::new(), None),
    ];
    let whole = Sample { payloads: payloads.clone(), ..trace(row(t, 1)) };
    let long = Sample { document: vec![b' '; 300_000], ..trace(row(t, 2)) };
    traces.add(batched([trace(row(t, 0)), whole.clone(), long.clone(), trace(row(t, 3))])).await.unwrap();
    for (id, expected) in [("req_comes back_1", &whole), ("resp_comes back_1", &whole), ("req_comes back_2", &long)] {
        let found = traces.find(id.into(), None).await.unwrap().unwrap();
        assert_eq!((&found.row, &*found.document), (&expected.row, &*expected.document));
        assert_eq!((&found.payloads, found.unreadable), (&expected.payloads, false));
        assert_eq!(traces.get(found.number).await.unwrap(), Some(found));
    }
    let last = traces.find("resp_comes back_3".into(), None).await.unwrap().unwrap();
    assert_eq!(traces.get(last.number + 1).await.unwrap(), None);
    // What is made for every request is JSON when somebody reads it.
    let mut document = TraceDocument::default();
    document.object(member::REQUEST, |request| {
        request.text(member::PATH, "/v1/\"x\"").int(member::ITEMS, 3);
    });
    traces.add(batched([Sample { document: document.into_bytes(), ..trace(row(t, 7)) }])).await.unwrap();
    let found = traces.find("req_comes back_7".into(), None).await.unwrap().unwrap();
    assert_eq!(found.document, r#"{"request":{"path":"/v1/\"x\"","items":3}}"#);
    // The newest of several.
    let again = TraceRow { outcome: "again".into(), ..row(t, 1) };
    traces.add(batched([trace(again.clone())])).await.unwrap();
    assert_eq!(traces.find("resp_comes back_1".into(), None).await.unwrap().unwrap().row, again);
    // Clients choose the ids of requests: one that is a response's is not in its way, in the same block or a later one.
    let shadow = |number| TraceRow { request_id: "resp_comes back_1".into(), ..row(t, number) };
    traces.add(batched([trace(shadow(4))])).await.unwrap();
    traces.add(batched((0..300).map(|_| trace(shadow(5))))).await.unwrap();
    assert_eq!(traces.find("resp_comes back_1".into(), None).await.unwrap().unwrap().row, again);
    let newest = TraceRow { request_id: "chosen".into(), outcome: "newest".into(), ..row(t, 6) };
    let older = TraceRow { request_id: "chosen".into(), ..row(t, 6) };
    traces.add(batched([trace(older.clone()), trace(newest.clone())])).await.unwrap();
    assert_eq!(traces.find("chosen".into(), None).await.unwrap().unwrap().row, newest);
    // Each tenant has its own, in blocks of its own or of others, too.
    let theirs = TraceRow { tenant: "comes after".into(), ..newest.clone() };
    let not_theirs = TraceRow { request_id: "resp_comes back_1".into(), tenant: "comes after".into(), ..row(t, 8) };
    traces.add(batched([trace(newest.clone()), trace(theirs.clone()), trace(not_theirs.clone())])).await.unwrap();
    traces.add(batched((0..300).map(|_| trace(theirs.clone())))).await.unwrap();
    for (id, tenant, expected) in [
        ("chosen", t, Some(&newest)),
        ("chosen", "comes after", Some(&theirs)),
        ("chosen", "nobody", None),
        ("resp_comes back_1", t, Some(&again)),
        ("resp_comes back_1", "comes after", Some(&not_theirs)),
    ] {
        let found = traces.find(id.into(), Some(tenant)).await.unwrap();
        assert_eq!(found.map(|found| found.row).as_ref(), expected, "{id} {tenant}");
    }
}

async fn odd_texts_are_only_odd(traces: TraceStore) {
    let t = "odd \u{0} \"'; DROP TABLE godex_trace_block; -- ünï\u{1f600}";
    let odd = TraceRow {
        key: Some("".into()),
        model: Some("a\nb\u{7f}".into()),
        request_id: "%_*".into(),
        took_micros: i64::MAX,
        began_at: i64::MIN,
        status: Some(u16::MAX),
        attempts: u32::MAX,
        input_tokens: Some(u64::MAX - 1),
        ..row(t, 1)
    };
    let huge = TraceRow { model: Some("m".repeat(100_000).into()), tenant: t.into(), ..TraceRow::default() };
    traces.add(batched([trace(odd.clone()), trace(huge.clone())])).await.unwrap();
    let found = rows(traces.list(of(t), newest(9)).await.unwrap());
    let short = TraceRow { model: Some("m".repeat(512).into()), ..huge.clone() };
    assert_eq!(found, [short.clone(), odd.clone()]);
    for (filter, expected) in [
        (TraceFilter { model: huge.model.as_deref().map(str::to_owned), ..of(t) }, &short),
        (TraceFilter { key: Some(String::new()), ..of(t) }, &odd),
        (TraceFilter { id: Some("%_*".into()), ..of(t) }, &odd),
    ] {
        assert_eq!(rows(traces.list(filter, newest(9)).await.unwrap()), std::slice::from_ref(expected));
    }
    assert_eq!(traces.erase(Tenant::new(t)).await.unwrap(), 2);
}

/// What a filter finds, by looking at every row.
fn matching(rows: &[TraceRow<'static>], filter: &TraceFilter) -> Vec<TraceRow<'static>> {
    let is = |wanted: &Option<String>, is: Option<&str>| wanted.is_none() || wanted.as_deref() == is;
    let note = |row: &TraceRow<'_>| match filter.note.as_deref() {
        None => true,
        Some("") => !row.notes.is_empty(),
        Some(note) => row.notes.split(' ').any(|code| code == note),
    };
    let id = |row: &TraceRow<'_>| {
        filter.id.is_none()
            || filter.id.as_deref() == Some(&row.request_id)
            || filter.id.as_deref() == row.response_id.as_deref()
            || filter.id.as_deref() == row.conversation_id.as_deref()
    };
    let target = |row: &TraceRow<'_>| Some(format!("{}/{}", row.provider.as_deref()?, row.upstream_model.as_deref()?));
    let matches = |row: &&TraceRow<'_>| {
        is(&filter.tenant, Some(&row.tenant))
            && is(&filter.key, row.key.as_deref())
            && (is(&filter.model, row.model.as_deref())
                || is(&filter.model, row.upstream_model.as_deref())
                || is(&filter.model, target(row).as_deref()))
            && is(&filter.provider, row.provider.as_deref())
            && is(&filter.outcome, Some(&row.outcome))
            && (!filter.errors || row.error.is_some() || row.outcome == "failed")
            && note(row)
            && id(row)
            && filter.since.is_none_or(|since| row.began_at >= since)
            && filter.until.is_none_or(|until| row.began_at < until)
            && filter.slower_than_micros.is_none_or(|than| row.took_micros > than)
    };
    rows.iter().filter(matches).cloned().collect()
}

fn filters(t: &str) -> Vec<TraceFilter> {
    let some = |text: &str| Some(text.to_owned());
    vec![
        of(t),
        TraceFilter { key: some("key 3"), ..of(t) },
        TraceFilter { key: some("nobody"), ..of(t) },
        TraceFilter { model: some("model-2"), ..of(t) },
        TraceFilter { model: some("upstream-2"), ..of(t) },
        TraceFilter { model: some("provider-1/upstream-1"), ..of(t) },
        TraceFilter { model: some("provider-0/upstream-1"), ..of(t) },
        TraceFilter { model: some("/"), ..of(t) },
        TraceFilter { provider: some("provider-1"), ..of(t) },
        TraceFilter { outcome: some("failed"), ..of(t) },
        TraceFilter { errors: true, ..of(t) },
        TraceFilter { note: some("degraded.tool"), ..of(t) },
        TraceFilter { note: some("dropped.param"), ..of(t) },
        TraceFilter { note: some("dropped"), ..of(t) },
        TraceFilter { note: some(""), ..of(t) },
        TraceFilter { id: Some(format!("req_{t}_77")), ..of(t) },
        TraceFilter { id: Some(format!("resp_{t}_77")), ..of(t) },
        TraceFilter { id: Some(format!("conv_{t}_7")), ..of(t) },
        TraceFilter { id: some("resp_of nobody"), ..of(t) },
        TraceFilter { since: Some(BEGIN + 500 * SECOND), ..of(t) },
        TraceFilter { until: Some(BEGIN + 500 * SECOND), ..of(t) },
        TraceFilter { since: Some(BEGIN + 300 * SECOND), until: Some(BEGIN + 301 * SECOND), ..of(t) },
        TraceFilter { slower_than_micros: Some(5_900), ..of(t) },
        TraceFilter { errors: true, model: some("model-1"), note: some(""), ..of(t) },
        TraceFilter { tenant: None, id: Some(format!("resp_{t}_77")), ..TraceFilter::default() },
        TraceFilter { tenant: None, key: some("key 2"), id: Some(format!("conv_{t}_9")), ..TraceFilter::default() },
    ]
}

async fn every_filter_finds_its_own_page_by_page(traces: TraceStore) {
    let t = "filtered";
    filled(&traces, "of another", 300).await;
    let all = filled(&traces, t, 900).await;
    for filter in filters(t) {
        let mut expected = matching(&all, &filter);
        for limit in [1, 7, 10_000] {
            // Oldest first, as who follows.
            let (mut found, mut last) = (Vec::new(), 0);
            while found.len() < expected.len() || limit > 1 {
                let page = TracePage { before: None, after: Some(last), limit };
                let page = traces.list(filter.clone(), page).await.unwrap();
                assert!(page.is_sorted_by_key(|(number, _)| *number) && page.len() <= limit as usize);
                let Some((number, _)) = page.last() else { break };
                last = *number;
                found.extend(rows(page));
                if limit == 1 && found.len() > 20 {
                    break;
                }
            }
            assert_eq!(found, expected[..found.len()], "{filter:?}");
            assert!(limit == 1 || found.len() == expected.len(), "{filter:?}");
        }
        expected.reverse();
        for limit in [7, 100] {
            let (mut found, mut before) = (Vec::new(), None);
            loop {
                let page = TracePage { before, after: None, limit };
                let page = traces.list(filter.clone(), page).await.unwrap();
                assert!(page.len() == limit as usize || found.len() + page.len() == expected.len(), "{filter:?}");
                let Some((number, _)) = page.last() else { break };
                before = Some(*number);
                found.extend(rows(page));
            }
            assert_eq!(found, expected, "{filter:?}");
        }
    }
    assert_eq!(traces.list(of(t), newest(0)).await.unwrap(), []);
    // Between two numbers.
    let few = traces.list(of(t), newest(5)).await.unwrap();
    let page = TracePage { before: Some(few[0].0), after: Some(few[3].0), limit: 9 };
    assert_eq!(requests(&traces.list(of(t), page).await.unwrap()), "898 899");
}

/// A turn by its name; a name begins with the one of the turn that it continues.
fn turn(tenant: &str, name: &str) -> Sample {
    let id = |name: &str| format!("resp_{tenant}_{name}");
    let previous = name.len().checked_sub(1).map(|end| &name[..end]).filter(|name| !name.is_empty());
    let request_id = format!("req_{tenant}_{name}");
    trace(TraceRow {
        request_id: request_id.into(),
        response_id: Some(id(name).into()),
        previous_response_id: previous.map(|name| id(name).into()),
        conversation_id: None,
        ..row(tenant, 5)
    })
}

async fn a_chain_is_the_whole_tree(traces: TraceStore) {
    let (t, other) = ("chained", "chained too");
    for name in ["a", "ab", "z", "abc", "ac", "abd", "abcd", "aca", "zz"] {
        filled(&traces, "between", 200).await;
        traces.add(batched([turn(t, name)])).await.unwrap();
        // Somebody else has the same ids.
        let row = TraceRow { tenant: other.into(), ..turn(t, name).row };
        traces.add(batched([trace(row)])).await.unwrap();
    }
    // Who only reads a response is with it.
    let read = TraceRow { previous_response_id: None, kind: "GET".into(), ..turn(t, "ab").row };
    traces.add(batched([trace(read)])).await.unwrap();
    for (id, limit, expected) in [
        ("a", 99, "a ab abc ac abd abcd aca ab"),
        ("abcd", 99, "a ab abc ac abd abcd aca ab"),
        ("ab", 3, "a ab abc"),
        ("zz", 99, "z zz"),
        ("nobody", 99, ""),
        ("", 99, ""),
    ] {
        let chain = traces.chain(t.into(), format!("resp_{t}_{id}"), limit).await.unwrap();
        assert_eq!(requests(&chain), expected, "{id}");
        assert!(chain.iter().all(|(_, row)| *row.tenant == *t));
    }
    assert_eq!(traces.chain(t.into(), String::new(), 9).await.unwrap(), []);
    assert_eq!(traces.chain("nobody".into(), format!("resp_{t}_a"), 9).await.unwrap(), []);
    // What is gone leaves what continued it.
    let orphans = "chained without";
    traces.add(batched([turn(orphans, "ab"), turn(orphans, "abc"), turn(orphans, "ac")])).await.unwrap();
    let chain = traces.chain(orphans.into(), format!("resp_{orphans}_abc"), 99).await.unwrap();
    assert_eq!(requests(&chain), "ab abc ac");
}

async fn a_series_sums_up(traces: TraceStore) {
    let t = "summed";
    let all = filled(&traces, t, 700).await;
    let (since, until) = (Some(BEGIN + 95 * SECOND), Some(BEGIN + 650 * SECOND));
    for filter in [
        TraceFilter { since, until, ..of(t) },
        TraceFilter { since, until, errors: true, ..of(t) },
        TraceFilter { since, until, model: Some("model-3".into()), ..of(t) },
        TraceFilter { since, until, slower_than_micros: Some(3_000), ..of(t) },
    ] {
        let points = traces.series(filter.clone(), 60 * SECOND).await.unwrap();
        let steps: Vec<i64> = points.iter().map(|point| point.at).collect();
        let first = (BEGIN + 95 * SECOND) / (60 * SECOND) * 60 * SECOND;
        let expected: Vec<i64> =
            (0..100).map(|n| first + n * 60 * SECOND).take_while(|at| *at < until.unwrap()).collect();
        assert_eq!(steps, expected);
        for point in points {
            let inside = |row: &&TraceRow<'_>| row.began_at / (60 * SECOND) * 60 * SECOND == point.at;
            let rows = matching(&all, &filter);
            let rows: Vec<&TraceRow<'_>> = rows.iter().filter(inside).collect();
            let sum = |of: fn(&TraceRow<'_>) -> Option<u64>| rows.iter().filter_map(|row| of(row)).sum::<u64>();
            let percentile = |of: fn(&TraceRow<'_>) -> Option<i64>, percent: usize| {
                let mut values: Vec<i64> = rows.iter().filter_map(|row| of(row)).collect();
                values.sort_unstable();
                values.get((values.len() * percent).div_ceil(100).saturating_sub(1)).copied()
            };
            let expected = TracePoint {
                at: point.at,
                requests: rows.len() as u64,
                errors: rows.iter().filter(|row| row.is_error()).count() as u64,
                input_tokens: sum(|row| row.input_tokens),
                cached_tokens: sum(|row| row.cached_tokens),
                output_tokens: sum(|row| row.output_tokens),
                nanodollars: sum(|row| row.nanodollars),
                took_p50_micros: percentile(|row| Some(row.took_micros), 50),
                took_p95_micros: percentile(|row| Some(row.took_micros), 95),
                first_token_p50_micros: percentile(|row| row.first_token_micros, 50),
            };
            assert_eq!(point, expected);
        }
    }
    // Without an end it goes up to the newest.
    let points = traces.series(TraceFilter { since, ..of(t) }, HOUR).await.unwrap();
    assert!(!points.is_empty() && points.len() <= 500);
    assert_eq!(points.iter().map(|point| point.requests).sum::<u64>(), 700 - 94);
    let none = TraceFilter { since: until, until: since, ..of(t) };
    assert_eq!(traces.series(none, HOUR).await.unwrap(), []);
}

async fn what_is_a_tenants_goes_with_it(traces: TraceStore) {
    let (mine, theirs) = ("erased", "not erased");
    let pairs = (1..=400).flat_map(|n| [trace(row(mine, n)), trace(row(theirs, n))]);
    let with_payload = pairs.map(|new| {
        let bytes = Bytes::from(format!("words of {}", new.row.tenant));
        Sample { payloads: vec![Payload { name: "request".into(), bytes, cut_from: None }], ..new }
    });
    traces.add(batched(with_payload)).await.unwrap();
    filled(&traces, mine, 600).await;
    let newest_number = traces.list(of(mine), newest(1)).await.unwrap()[0].0;
    assert_eq!(traces.erase(Tenant::new(mine)).await.unwrap(), 1_000);
    assert_eq!(traces.erase(Tenant::new(mine)).await.unwrap(), 0);
    assert_eq!(traces.list(of(mine), newest(9)).await.unwrap(), []);
    assert_eq!(traces.get(newest_number).await.unwrap(), None);
    assert_eq!(traces.find(format!("resp_{mine}_77"), None).await.unwrap(), None);
    let left = traces.list(of(theirs), newest(1_000)).await.unwrap();
    assert_eq!(left.len(), 400);
    for (number, expected) in left.iter().step_by(37) {
        let found = traces.get(*number).await.unwrap().unwrap();
        assert_eq!((&found.row, found.unreadable), (expected, false));
        assert_eq!(found.document, trace(expected.clone()).document);
        assert_eq!(found.payloads[0].bytes, "words of not erased");
    }
    // Numbers do not come again, and all goes on.
    traces.add(batched([trace(row(theirs, 401))])).await.unwrap();
    let (number, row) = traces.list(of(theirs), newest(1)).await.unwrap().remove(0);
    assert!(number > newest_number && row.request_id.ends_with("_401"), "{number} {newest_number}");
    let found = traces.get(number).await.unwrap().unwrap();
    assert!(!found.unreadable && found.payloads.is_empty());
    assert_eq!(traces.erase(Tenant::new(theirs)).await.unwrap(), 401);
}

/// The last case of all: it leaves nothing.
async fn what_is_too_old_or_too_much_goes(traces: TraceStore) {
    let everything = TraceRetention { age_micros: i64::MAX, bytes: u64::MAX };
    let pruned = async |traces: &TraceStore, retention| {
        let mut rounds = 0;
        while traces.prune(retention).await.unwrap() {
            rounds += 1;
            assert!(rounds < 10_000);
        }
    };
    let all = async |traces: &TraceStore| traces.list(TraceFilter::default(), newest(10_000)).await.unwrap();
    // By age: everything before is older.
    let t = "pruned";
    let at = |hours: i64| BEGIN + 1_000 * HOUR + hours * HOUR;
    let hourly = (0..50).map(|hours| trace(TraceRow { began_at: at(hours), ..row(t, hours) }));
    traces.add(batched(hourly)).await.unwrap();
    let before = all(&traces).await.len();
    let traces = traces.with_clock(Clock::new(move || at(49) / 1_000));
    pruned(&traces, everything).await;
    assert_eq!(all(&traces).await.len(), before);
    pruned(&traces, TraceRetention { age_micros: 10 * HOUR, ..everything }).await;
    let left = all(&traces).await;
    // Each block has an hour at most.
    assert!((11..=12).contains(&left.len()), "{}", left.len());
    assert!(left.iter().all(|(_, row)| row.began_at >= at(38)));
    // By bytes: the oldest go first, and nothing of them stays.
    let payloads = |n: u8| vec![Payload { name: "request".into(), bytes: vec![n; 9_000].into(), cut_from: None }];
    for n in 0..200 {
        let new = trace(TraceRow { began_at: at(50), ..row(t, i64::from(n)) });
        traces.add(batched([Sample { payloads: payloads(n), ..new }])).await.unwrap();
        traces.add(batched((0..20).map(|_| trace(TraceRow { began_at: at(50), ..row(t, 1) })))).await.unwrap();
    }
    let before = all(&traces).await;
    pruned(&traces, TraceRetention { bytes: 900_000, ..everything }).await;
    let left = all(&traces).await;
    assert!(left.len() < before.len() * 2 / 3 && left.len() > before.len() / 10, "{} of {}", left.len(), before.len());
    assert_eq!(left, before[..left.len()]);
    let (number, _) = left.last().unwrap();
    assert!(traces.get(*number).await.unwrap().is_some() && traces.get(*number - 1).await.unwrap().is_none());
    pruned(&traces, TraceRetention { bytes: 0, ..everything }).await;
    let left = all(&traces).await;
    assert!(!left.is_empty() && left == before[..left.len()], "{}", left.len());
    pruned(&traces, TraceRetention { age_micros: -2 * HOUR, bytes: 0 }).await;
    assert_eq!(all(&traces).await, []);
    traces.add(batched([trace(row(t, 1))])).await.unwrap();
    assert!(all(&traces).await[0].0 > before[0].0);
}

type Case = fn(TraceStore) -> Pin<Box<dyn Future<Output = ()>>>;

macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        const CASES: &[(&str, Case)] = &[$((stringify!($name), |traces| Box::pin($name(traces)))),*];
    };
}

cases![
    what_was_added_comes_back,
    odd_texts_are_only_odd,
    every_filter_finds_its_own_page_by_page,
    a_chain_is_the_whole_tree,
    a_series_sums_up,
    what_is_a_tenants_goes_with_it,
    little_room_is_never_empty,
    what_is_too_old_or_too_much_goes,
];

async fn run_all(traces: &TraceStore) {
    for (name, case) in CASES {
        println!("{name}");
        case(traces.clone()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn traces_in_memory_keep_the_contract() {
    run_all(&TraceStore::memory(1 << 30)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn traces_in_sqlite_keep_the_contract() {
    for encryption in [store::Encryption::default(), crate::encryption::keys(&[1])] {
        let folder = tempfile::tempdir().unwrap();
        let traces = TraceStore::sqlite(&folder.path().join("new").join("trace.db"), &encryption).unwrap();
        run_all(&traces).await;
        traces.close().await;
    }
}

#[tokio::test]
async fn traces_in_memory_have_a_bound() {
    let traces = TraceStore::memory(200_000);
    for round in 0..100 {
        let payloads = vec![Payload { name: "request".into(), bytes: vec![7; 5_000].into(), cut_from: None }];
        let new = Sample { payloads, ..trace(row("t", round)) };
        traces.add(batched([new, trace(row("t", round))])).await.unwrap();
    }
    let left = traces.list(TraceFilter::default(), newest(1_000)).await.unwrap();
    assert!(left.len() < 100, "{}", left.len());
    traces.add(batched([trace(row("t", 1))])).await.unwrap();
    assert!(!traces.list(TraceFilter::default(), newest(1_000)).await.unwrap().is_empty());
}

#[cfg(unix)]
mod shared {
    use super::*;
    use crate::postgres::postgres;
    use crate::server::Opened;
    use store::{PostgresOptions, Store};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn traces_in_postgres_keep_the_contract() {
        let server = postgres!();
        run_all(&TraceStore::shared(&server.store().await).unwrap()).await;
        let options = PostgresOptions::default();
        let store = Store::encrypted_postgres(&server.url(), &options, crate::encryption::keys(&[1])).await.unwrap();
        run_all(&TraceStore::shared(&store).unwrap()).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn whoever_follows_several_instances_misses_nothing() {
        let server = postgres!();
        let stores = [server.store().await, server.store().await];
        let shared = stores.each_ref().map(|store| TraceStore::shared(store).unwrap());
        let mut tasks = tokio::task::JoinSet::new();
        for (instance, traces) in shared.iter().cloned().enumerate() {
            tasks.spawn(async move {
                for batch in 0..40 {
                    let name = format!("instance {instance}");
                    let new = (0..5).map(|n| trace(row(&name, batch * 5 + n)));
                    traces.add(batched(new)).await.unwrap();
                }
            });
        }
        let (mut found, mut after) = (Vec::new(), 0);
        while found.len() < 400 {
            let page = TracePage { before: None, after: Some(after), limit: 50 };
            let page = shared[0].list(TraceFilter::default(), page).await.unwrap();
            found.extend(page.iter().map(|(number, _)| *number));
            after = found.last().copied().unwrap_or(0);
            if page.is_empty() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        }
        tasks.join_all().await;
        assert_eq!(found, (1..=400).collect::<Vec<_>>());
        for instance in 0..2 {
            let own = shared[1].list(of(&format!("instance {instance}")), newest(1_000)).await.unwrap();
            assert_eq!(own.len(), 200);
        }
        assert!(TraceStore::shared(&Store::memory(store::MemoryLimits::default()).unwrap()).is_none());
    }
}
