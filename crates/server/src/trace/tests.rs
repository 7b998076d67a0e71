use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use http::{HeaderValue, Method};
use store::TraceBatch;

use super::*;
use crate::caller::Caller;
use crate::config::CaptureConfig;

fn config(max_queue_size: usize, batch_size: usize) -> TraceConfig {
    TraceConfig {
        enabled: true,
        place: TracePlace::Memory,
        max_queue_size,
        flush_interval: Duration::from_secs(1),
        batch_size,
        capture: CaptureConfig { enabled: false, unstored: false, max_bytes: 100 },
        ttl: None,
        max_bytes: 1 << 20,
    }
}

fn trace(method: Method, facts: Facts) -> Trace {
    let (path, request_id) = ("/v1/responses".into(), HeaderValue::from_static("req_1"));
    Trace { head: Head { method, path, request_id, began_at: 1, took: Duration::from_micros(5) }, facts }
}

fn turn() -> Trace {
    trace(Method::POST, Facts { route: Some("/v1/responses"), status: Some(200), ..Facts::default() })
}

/// A store that does as it is told.
#[derive(Debug, Clone, Default)]
struct Double {
    written: Arc<Mutex<Vec<usize>>>,
    fails: Arc<AtomicBool>,
    is_frozen: bool,
    pruned: Arc<AtomicU64>,
}

impl writer::Sink for Double {
    async fn add(&self, traces: Arc<TraceBatch>) -> Result<(), store::Error> {
        if self.is_frozen {
            std::future::pending::<()>().await;
        }
        if self.fails.load(Ordering::Relaxed) {
            return Err(store::Error::Full);
        }
        self.written.lock().unwrap().push(traces.len());
        Ok(())
    }

    async fn prune(&self, _: TraceRetention) -> Result<bool, store::Error> {
        // There is more three times.
        Ok(self.pruned.fetch_add(1, Ordering::Relaxed) < 3)
    }
}

fn writing(sink: Double, config: &TraceConfig) -> Traces {
    let kept = Kept::new(TraceStore::memory(1), config);
    let writer = Writer {
        queue: Arc::clone(&kept.queue),
        sink,
        patience: config.flush_interval,
        retention: TraceRetention {
            age_micros: config.ttl.map_or(i64::MAX, |ttl| i64::try_from(ttl.as_micros()).unwrap()),
            bytes: config.max_bytes,
        },
    };
    tasks::spawn_service(writer.run());
    Traces(Some(kept))
}

fn sizes(double: &Double) -> Vec<usize> {
    double.written.lock().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn many_are_written_at_once_and_few_after_a_while() {
    let double = Double::default();
    let traces = writing(double.clone(), &config(1000, 10));
    let pause = || tokio::time::sleep(Duration::from_millis(500));
    (0..10).for_each(|_| traces.keep(turn()));
    pause().await;
    assert_eq!(sizes(&double), [10]);
    // What has come at once is written at once, and what comes after it waits for more.
    (0..15).for_each(|_| traces.keep(turn()));
    pause().await;
    (0..5).for_each(|_| traces.keep(turn()));
    pause().await;
    assert_eq!(sizes(&double), [10, 15]);
    pause().await;
    pause().await;
    assert_eq!(sizes(&double), [10, 15, 5]);
    for _ in 0..12 {
        traces.keep(turn());
    }
    // Whoever waits for them does not wait for more.
    let began = tokio::time::Instant::now();
    assert!(traces.flush(Duration::from_secs(9)).await);
    assert_eq!((began.elapsed(), sizes(&double).iter().sum::<usize>()), (Duration::ZERO, 42));
    assert_eq!(traces.dropped(), 0);
}

/// A short queue is written before it is full, however many may be written at once.
#[tokio::test(start_paused = true)]
async fn a_short_queue_waits_until_half_of_it_is_full() {
    let double = Double::default();
    let traces = writing(double.clone(), &config(20, 1000));
    (0..10).for_each(|_| traces.keep(turn()));
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!((sizes(&double), traces.queued()), (vec![10], 0));
}

/// A disk that takes nothing any more: what fits into the queue waits, the rest is counted, and nobody waits.
#[tokio::test(start_paused = true)]
async fn a_frozen_store_blocks_nobody() {
    let traces = writing(Double { is_frozen: true, ..Double::default() }, &config(20, 10));
    let began = tokio::time::Instant::now();
    for _ in 0..100 {
        traces.keep(turn());
        tokio::task::yield_now().await;
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
    // Ten are being written, and twenty wait.
    assert_eq!(traces.dropped(), 70);
    assert!(!traces.flush(Duration::from_millis(300)).await);
    traces.close().await;
    assert_eq!(began.elapsed(), Duration::from_millis(300) + CLOSE);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_written_is_lost_and_counted() {
    let double = Double::default();
    let traces = writing(double.clone(), &config(100, 10));
    double.fails.store(true, Ordering::Relaxed);
    (0..15).for_each(|_| traces.keep(turn()));
    assert!(traces.flush(Duration::from_secs(9)).await);
    assert_eq!((traces.dropped(), sizes(&double)), (15, vec![]));
    double.fails.store(false, Ordering::Relaxed);
    traces.keep(turn());
    assert!(traces.flush(Duration::from_secs(9)).await);
    assert_eq!((traces.dropped(), sizes(&double)), (15, vec![1]));
}

#[tokio::test(start_paused = true)]
async fn old_ones_are_dropped_step_by_step_now_and_then() {
    let double = Double::default();
    let traces = writing(double.clone(), &config(100, 10));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(double.pruned.load(Ordering::Relaxed), 4);
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert!((5..=6).contains(&double.pruned.load(Ordering::Relaxed)));
    drop(traces);
}

/// Where little is to be kept, or not for long, nobody waits for a minute.
#[tokio::test(start_paused = true)]
async fn what_is_short_or_small_is_swept_sooner() {
    for (ttl, expected) in [(None, 60), (Some(1), 1), (Some(40), 10), (Some(86_400), 60)] {
        let age_micros = ttl.map_or(i64::MAX, |seconds: i64| seconds * 1_000_000);
        let every = writer::interval(TraceRetention { age_micros, bytes: 1 });
        assert_eq!(every, Duration::from_secs(expected), "{ttl:?}");
    }
    let double = Double::default();
    let traces = writing(double.clone(), &TraceConfig { max_bytes: 80_000, ..config(1000, 10) });
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(double.pruned.load(Ordering::Relaxed), 4);
    // A few are no reason.
    traces.keep(turn());
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(double.pruned.load(Ordering::Relaxed), 4);
    (0..60).for_each(|_| traces.keep(turn()));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!((5..=6).contains(&double.pruned.load(Ordering::Relaxed)));
}

/// Bodies that do not pack.
fn captured(rules: &capture::Rules, seed: u64) -> Option<Box<Captured>> {
    let mut captured = rules.of(true)?;
    let mut tape = captured.tape();
    let mut state = seed;
    for _ in 0..2_500 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        tape.push(&(state >> 8).to_le_bytes());
    }
    captured.push("request".to_owned(), tape, |_| {});
    Some(captured)
}

/// Much is written at once, and goes as fast as it comes.
#[tokio::test]
async fn a_small_limit_holds_under_load() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let store = TraceStore::sqlite(&path, &store::Encryption::default()).unwrap();
    let capture = CaptureConfig { enabled: true, unstored: true, max_bytes: 64 << 10 };
    let config = TraceConfig { capture, ..config(10_000, 1024) };
    let rules = capture::Rules::new(capture);
    let traces = Traces::writing(store.with_limit(config.max_bytes), &config);
    let bytes = || std::fs::metadata(&path).unwrap().len();
    let mut most = 0;
    for batch in 0..8 {
        for number in 0..400 {
            let facts = Facts { captured: captured(&rules, batch * 1000 + number), ..turn().facts };
            traces.keep(trace(Method::POST, facts));
        }
        assert!(traces.flush(Duration::from_mins(1)).await);
        most = most.max(bytes());
    }
    // Each batch has 8 MB.
    assert!(most < 24 << 20, "{most} bytes where {} may be", config.max_bytes);
    traces.close().await;
}

#[tokio::test]
async fn only_what_makes_something_or_fails_is_kept() {
    let kept = Kept::new(TraceStore::memory(1), &config(100, 10));
    let unknown = |route, status: u16| Facts { route, status: Some(status), ..Facts::default() };
    let caller = Caller::new(None, &http::HeaderMap::new());
    let facts = |route, status: u16| Facts { caller: Some(caller.clone()), ..unknown(route, status) };
    for (method, facts, expected) in [
        (Method::POST, facts(Some("/v1/responses"), 200), true),
        (Method::POST, Facts { put_off: true, ..facts(Some("/v1/responses"), 200) }, false),
        (Method::POST, Facts { put_off: true, ..facts(Some("/v1/responses"), 503) }, true),
        // The handshake of a WebSocket, and a turn over it.
        (Method::GET, facts(Some("/v1/responses"), 101), false),
        (Method::GET, Facts { kind: Some(Kind::Websocket), ..facts(Some("/v1/responses"), 200) }, true),
        (Method::POST, Facts { route: Some("background"), ..Facts::default() }, true),
        (Method::POST, facts(Some("/v1/responses/compact"), 200), true),
        (Method::POST, facts(Some(REPLAY), 200), true),
        (Method::GET, facts(Some("/v1/responses/{id}"), 200), false),
        (Method::GET, facts(Some("/v1/responses/{id}"), 404), true),
        (Method::GET, facts(Some("/health"), 503), false),
        (Method::GET, unknown(None, 404), false),
        (Method::GET, unknown(None, 405), false),
        (Method::POST, unknown(None, 401), true),
        (Method::POST, unknown(Some("/v1/responses"), 401), true),
    ] {
        let shown = format!("{method} {facts:?}");
        assert_eq!(kept.wants(&trace(method, facts)), expected, "{shown}");
    }
    for refused in [
        unknown(None, 401),
        unknown(Some("/v1/responses"), 401),
        unknown(Some("/v1/responses/{id}"), 403),
        unknown(Some("/v1/models"), 401),
        unknown(Some("/v1/responses/compact"), 401),
    ] {
        let (route, status) = (refused.route, refused.status.unwrap());
        let flood = (0..1000).filter(|_| kept.wants(&trace(Method::POST, unknown(route, status)))).count() as u64;
        // The clock may have gone on by a second meanwhile.
        assert!(flood < 3 * STRANGERS, "{route:?}: {flood}");
    }
    let known = (0..100).filter(|_| kept.wants(&trace(Method::POST, facts(Some("/v1/responses"), 429)))).count();
    assert_eq!(known, 100);
}

/// Neither in a trace's document nor in the log.
#[test]
fn details_that_quote_somebody_are_known() {
    use bridge::{Action, Note};
    let made = |path: &'static str| Note::new(Action::Degraded, path, format!("\"{}\" is not of type integer", "x"));
    let fixed = |path: &'static str| Note::new(Action::Degraded, path, "the answer was asked for twice");
    for (note, stored, unstored) in [
        (made("text.format"), true, true),
        (fixed("text.format"), false, false),
        (made("tool_calls"), true, true),
        (fixed("tool_calls"), true, true),
        (made("tools[0]"), false, true),
        (fixed("tools[0]"), false, false),
    ] {
        for (store, expected) in [(true, stored), (false, unstored)] {
            let asked = Some(Box::new(Asked { store, ..Asked::default() }));
            let facts = Facts { asked, ..Facts::default() };
            assert_eq!(facts.has_words(&note), expected, "{note:?} {store}");
        }
    }
}
