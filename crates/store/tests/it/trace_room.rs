//! Where little room is given to traces.

use store::{Payload, TraceRetention, TraceRow, TraceStore};

use crate::traces::{Sample, batched, newest, of, row, trace};

/// When all of them began, in microseconds since 1970.
const AT: i64 = 1_703_240_000_000_000;

/// What no compression makes smaller.
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed + 1;
    let next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// Where little may be kept, the newest are always there, and about as many as there is room for.
pub(crate) async fn little_room_is_never_empty(traces: TraceStore) {
    let (t, limit) = ("little", 1 << 20);
    let traces = traces.with_limit(limit);
    for n in 0..60_u8 {
        let payloads = vec![Payload { name: "request".into(), bytes: noise(100_000, n.into()).into(), cut_from: None }];
        let new = trace(TraceRow { began_at: AT, ..row(t, i64::from(n)) });
        traces.add(batched([Sample { payloads, ..new }])).await.unwrap();
        while traces.prune(TraceRetention { age_micros: i64::MAX, bytes: limit }).await.unwrap() {}
        let left = traces.list(of(t), newest(100)).await.unwrap();
        let count = i64::try_from(left.len()).unwrap();
        assert!((i64::from(n + 1).min(7)..=10).contains(&count), "{count} after {n}");
        assert_eq!(left[0].1, TraceRow { began_at: AT, ..row(t, i64::from(n)) });
    }
    // What has no room is kept until there is something newer.
    let payloads = vec![Payload { name: "request".into(), bytes: noise(2 << 20, 60).into(), cut_from: None }];
    let new = trace(TraceRow { began_at: AT, ..row(t, 60) });
    traces.add(batched([Sample { payloads, ..new }])).await.unwrap();
    while traces.prune(TraceRetention { age_micros: i64::MAX, bytes: limit }).await.unwrap() {}
    assert_eq!(traces.list(of(t), newest(100)).await.unwrap().len(), 1);
}
