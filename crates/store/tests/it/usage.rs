//! What every backend promises of usage.

use store::{Spender, Store, Tenant, UsageBatch, UsageBy, UsageKey, UsageQuery, UsageSum, Worker};
use tokio::task::JoinSet;

use crate::jobs::worker;

fn of(tenant: &str, key: &str, model: &str, hour: i64) -> UsageKey {
    let provider = "openai".to_owned();
    UsageKey { tenant: tenant.to_owned(), key: key.to_owned(), provider, model: model.to_owned(), hour }
}

fn sum(requests: u64, nanodollars: u64) -> UsageSum {
    UsageSum { requests, nanodollars, ..UsageSum::default() }
}

fn batch(worker: &Worker, number: i64, rows: Vec<(UsageKey, UsageSum)>) -> UsageBatch {
    UsageBatch { worker: *worker, number, rows }
}

/// Everything of one tenant, told apart by everything.
pub(crate) async fn used(store: &Store, tenant: &str) -> Vec<(UsageKey, UsageSum)> {
    let by = UsageBy { tenant: true, key: true, provider: true, model: true, hours: 1 };
    let tenants = vec![tenant.to_owned()];
    store.usage(UsageQuery { from: i64::MIN, to: i64::MAX, tenants, by, ..UsageQuery::default() }).await.unwrap()
}

pub(crate) async fn a_batch_counts_once(store: Store) {
    let (me, other, key) = (worker(), worker(), of("once", "k", "m", 7));
    let all = UsageSum {
        requests: 1,
        unpriced: 2,
        input_tokens: 3,
        cached_tokens: 4,
        output_tokens: 5,
        reasoning_tokens: 6,
        tool_calls: 7,
        nanodollars: 8,
    };
    for _ in 0..3 {
        store.add_usage(batch(&me, 1, vec![(key.clone(), all)])).await.unwrap();
    }
    assert_eq!(used(&store, "once").await, [(key.clone(), all)]);
    store.add_usage(batch(&other, 1, vec![(key.clone(), sum(10, 0)), (key.clone(), sum(20, 5))])).await.unwrap();
    store.add_usage(batch(&me, 2, vec![(key.clone(), sum(100, 0))])).await.unwrap();
    // Numbers may be left out, and an older one came before.
    store.add_usage(batch(&me, 9, vec![(key.clone(), sum(1_000, 0))])).await.unwrap();
    store.add_usage(batch(&me, 8, vec![(key.clone(), sum(10_000, 0))])).await.unwrap();
    store.add_usage(batch(&me, 10, Vec::new())).await.unwrap();
    assert_eq!(used(&store, "once").await, [(key, UsageSum { requests: 1_131, nanodollars: 13, ..all })]);
}

pub(crate) async fn usage_of_many_at_once_is_all_there(store: Store) {
    of_many(&[store], "at once").await;
}

pub(crate) async fn of_many(stores: &[Store], tenant: &str) {
    let mut tasks = JoinSet::new();
    for n in 0..8_usize {
        let (store, me, tenant) = (stores[n % stores.len()].clone(), worker(), tenant.to_owned());
        tasks.spawn(async move {
            for number in 1..=10 {
                // The same rows in another order: nobody waits for somebody who waits for him.
                let mut rows: Vec<_> = (0..20).map(|m| (of(&tenant, "k", &format!("m{m}"), 1), sum(1, 3))).collect();
                rows.rotate_left(n);
                store.add_usage(batch(&me, number, rows.clone())).await.unwrap();
                store.add_usage(batch(&me, number, rows)).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    let rows = used(&stores[0], tenant).await;
    assert_eq!(rows.len(), 20);
    assert!(rows.iter().all(|(_, found)| *found == sum(80, 240)), "{rows:?}");
}

pub(crate) async fn usage_is_told_apart_as_asked(store: Store) {
    let rows = [
        (of("ta", "k1", "m1", 25), sum(1, 1)),
        (of("ta", "k1", "m2", 47), sum(2, 10)),
        (of("ta", "k2", "m1", 48), sum(4, 100)),
        (of("tb", "k3", "m1", 49), sum(8, 1_000)),
        (of("tb", "", "m\0ż", 72), sum(16, 10_000)),
    ];
    store.add_usage(batch(&worker(), 1, rows.to_vec())).await.unwrap();
    let ours = || vec!["ta".to_owned(), "tb".to_owned()];
    let all = UsageQuery { from: 0, to: 1_000, tenants: ours(), ..UsageQuery::default() };
    let by = |query: &UsageQuery, by: UsageBy| UsageQuery { by, ..query.clone() };
    let none = UsageBy::default();
    let nothing = || of("", "", "", 0);
    let key = |tenant: &str, key: &str, model: &str, hour| UsageKey {
        provider: String::new(),
        ..of(tenant, key, model, hour)
    };
    let asked: Vec<(UsageQuery, Vec<(UsageKey, UsageSum)>)> = vec![
        (all.clone(), vec![(UsageKey { provider: String::new(), ..nothing() }, sum(31, 11_111))]),
        (
            by(&all, UsageBy { hours: 24, ..none }),
            vec![
                (key("", "", "", 24), sum(3, 11)),
                (key("", "", "", 48), sum(12, 1_100)),
                (key("", "", "", 72), sum(16, 10_000)),
            ],
        ),
        (
            by(&all, UsageBy { tenant: true, model: true, ..none }),
            vec![
                (key("ta", "", "m1", 0), sum(5, 101)),
                (key("ta", "", "m2", 0), sum(2, 10)),
                (key("tb", "", "m\0ż", 0), sum(16, 10_000)),
                (key("tb", "", "m1", 0), sum(8, 1_000)),
            ],
        ),
        (
            by(&UsageQuery { from: 47, to: 49, ..all.clone() }, UsageBy { key: true, provider: true, ..none }),
            vec![(of("", "k1", "", 0), sum(2, 10)), (of("", "k2", "", 0), sum(4, 100))],
        ),
        (
            UsageQuery { keys: vec!["k1".into(), "k3".into(), "k9".into()], models: vec!["m1".into()], ..all.clone() },
            vec![(key("", "", "", 0), sum(9, 1_001))],
        ),
        (UsageQuery { tenants: vec!["ta".into()], ..all.clone() }, vec![(key("", "", "", 0), sum(7, 111))]),
        (UsageQuery { from: 73, ..all.clone() }, Vec::new()),
        (UsageQuery { tenants: vec!["' OR 1=1 --".into()], ..all.clone() }, Vec::new()),
    ];
    for (query, expected) in asked {
        assert_eq!(store.usage(query.clone()).await.unwrap(), expected, "{query:?}");
    }
    let in_order = store.usage(by(&all, UsageBy { tenant: true, key: true, provider: true, model: true, hours: 1 }));
    assert_eq!(in_order.await.unwrap(), rows);
}

pub(crate) async fn what_was_spent_is_summed_since_an_hour(store: Store) {
    let rows = vec![
        (of("sa", "s1", "m1", 10), sum(1, 1)),
        (of("sa", "s1", "m2", 11), sum(1, 10)),
        (of("sa", "s2", "m1", 11), sum(1, 100)),
        (of("sb", "s1", "m1", 11), sum(1, 1_000)),
    ];
    store.add_usage(batch(&worker(), 1, rows)).await.unwrap();
    let (key, tenant) = (|id: &str| Spender::Key(id.to_owned()), |name: &str| Spender::Tenant(Tenant::new(name)));
    let asked = vec![
        (key("s1"), 0),
        (tenant("sa"), 11),
        (key("s1"), 11),
        (key("never"), 0),
        (tenant("sa"), 0),
        (tenant("sa"), 12),
        (tenant("s1"), 0),
    ];
    assert_eq!(store.spent(asked).await.unwrap(), [1_011, 110, 1_010, 0, 111, 0, 0]);
    assert_eq!(store.spent(Vec::new()).await.unwrap(), [0_u64; 0]);
}

/// Whatever an upstream says that it used, later sums are still given out.
pub(crate) async fn no_sum_overflows(store: Store) {
    let (me, most) = (worker(), UsageSum { input_tokens: u64::MAX, nanodollars: u64::MAX, ..sum(1, 0) });
    for number in 1..4 {
        let rows = (0..2_000).map(|hour| (of("much", "much", "m", hour), most)).collect();
        store.add_usage(batch(&me, number, rows)).await.unwrap();
    }
    let query = UsageQuery { from: 0, to: 2_000, tenants: vec!["much".into()], ..UsageQuery::default() };
    let (_, found) = store.usage(query).await.unwrap().remove(0);
    assert_eq!(found.requests, 6_000);
    assert!(found.input_tokens >= i64::MAX.unsigned_abs() / 2, "{found:?}");
    let spent = store.spent(vec![(Spender::Key("much".into()), 0), (Spender::Tenant(Tenant::new("much")), 0)]).await;
    assert!(spent.unwrap().iter().all(|spent| *spent >= i64::MAX.unsigned_abs() / 2));
}
