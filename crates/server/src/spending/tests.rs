//! Budgets and batches over a real store, with a clock of their own.

use std::sync::atomic::AtomicU64;

use store::{MemoryLimits, SqliteOptions, Tenant, UsageBy, UsageQuery};

use super::*;
use crate::terms::Terms;

/// 2026-11-16, 13:00 UTC.
const NOW: u64 = 1_794_834_000;

struct Rig {
    spending: Arc<Spending>,
    store: Store,
    now: Arc<AtomicU64>,
}

fn rig_on(store: Store) -> Rig {
    let now = Arc::new(AtomicU64::new(NOW));
    let clock = Arc::clone(&now);
    let clock = Arc::new(move || clock.load(Ordering::Relaxed));
    let spending = Spending::by(store.clone(), Worker::random().unwrap(), clock);
    Rig { spending, store, now }
}

fn rig() -> Rig {
    rig_on(Store::memory(MemoryLimits::default()).unwrap())
}

fn grant(key: Option<&str>, tenant: Option<&str>) -> Grant {
    let terms = |budget: Option<&str>| Terms { budget: budget.map(|text| text.parse().unwrap()), ..Terms::default() };
    Grant {
        id: "key_1".to_owned(),
        name: "one".to_owned(),
        tenant: Tenant::default(),
        terms: terms(key),
        tenant_terms: Arc::new(terms(tenant)),
        expires_at: None,
        line: Arc::default(),
        mark: None,
    }
}

fn used(key: &str, nanodollars: Option<u64>) -> Used<'_> {
    let limited_as = key;
    let usage = Usage { input_tokens: 10, output_tokens: 5, total_tokens: 15, ..Usage::default() };
    Used { tenant: "default", key, limited_as, provider: "p", model: "m", usage, nanodollars, tool_calls: 0 }
}

impl Rig {
    /// A turn begins, costs so much, and ends.
    async fn turn(&self, grant: &Grant, nanodollars: u64) -> Result<(), ApiError> {
        let reservation = self.spending.check(grant, 0).await?;
        self.spending.add(&Used { limited_as: grant.limited_as(), ..used(&grant.id, Some(nanodollars)) });
        drop(reservation);
        Ok(())
    }

    async fn requests(&self) -> u64 {
        let query = UsageQuery { from: 0, to: i64::MAX / 3600, by: UsageBy::default(), ..UsageQuery::default() };
        self.store.usage(query).await.unwrap().iter().map(|(_, sum)| sum.requests).sum()
    }
}

#[tokio::test]
async fn a_budget_stops_at_its_limit() {
    let rig = rig();
    let grant = grant(Some("0.00000001usd/day"), None);
    for _ in 0..2 {
        rig.turn(&grant, 5).await.unwrap();
    }
    let refused = rig.turn(&grant, 5).await.unwrap_err();
    assert_eq!((refused.status.as_u16(), refused.wire.as_deref()), (429, Some("insufficient_quota")));
    assert_eq!((refused.code.kind(), refused.code.lasts(), refused.retry_after), ("insufficient_quota", true, None));
    let message = "You exceeded your current quota, please check your plan and billing details. The budget of this key is \
                   spent. It begins anew on 2026-11-17, 00:00 UTC.";
    assert_eq!(&*refused.message, message);
    // Written or not, read back or not: it is the same.
    rig.spending.write_and_read().await.unwrap();
    assert!(rig.turn(&grant, 5).await.is_err());
    rig.spending.write_and_read().await.unwrap();
    assert!(rig.turn(&grant, 5).await.is_err());
    assert_eq!(rig.requests().await, 2);
    // Another process has to read it first, and finds the same.
    assert!(rig_on(rig.store.clone()).turn(&grant, 5).await.is_err());
}

/// Rotating a key gives it no second budget, also not in a process that knew only the older one.
#[tokio::test]
async fn keys_that_took_each_others_place_share_a_budget() {
    let rig = rig();
    let older = grant(Some("0.00000001usd/month"), None);
    rig.turn(&older, 6).await.unwrap();
    rig.spending.write_and_read().await.unwrap();
    let line: Arc<[String]> = ["key_1", "key_2"].map(str::to_owned).into();
    let older = Grant { line: Arc::clone(&line), ..older };
    let newer = Grant { id: "key_2".to_owned(), ..older.clone() };
    rig.turn(&newer, 6).await.unwrap();
    for process in [&rig, &rig_on(rig.store.clone())] {
        rig.spending.write_and_read().await.unwrap();
        for grant in [&older, &newer] {
            let refused = process.turn(grant, 1).await.unwrap_err();
            assert_eq!(refused.wire.as_deref(), Some("insufficient_quota"));
        }
    }
    // What was used is still told apart.
    let query = UsageQuery {
        from: 0,
        to: i64::MAX / 3600,
        by: UsageBy { key: true, ..UsageBy::default() },
        ..UsageQuery::default()
    };
    assert_eq!(rig.store.usage(query).await.unwrap().len(), 2);
}

/// Of what the new one spent elsewhere, a process that had the older one's tab knows at once.
#[tokio::test]
async fn a_key_that_was_rotated_is_looked_at_anew_where_it_was_known() {
    let rig = rig();
    let older = grant(Some("0.00000001usd/month"), None);
    rig.turn(&older, 1).await.unwrap();
    rig.spending.write_and_read().await.unwrap();
    let line: Arc<[String]> = ["key_1", "key_2"].map(str::to_owned).into();
    let older = Grant { line: Arc::clone(&line), ..older };
    let newer = Grant { id: "key_2".to_owned(), ..older.clone() };
    let elsewhere = rig_on(rig.store.clone());
    elsewhere.turn(&newer, 9).await.unwrap();
    elsewhere.spending.write_and_read().await.unwrap();
    // It asked for the older one only.
    rig.spending.write_and_read().await.unwrap();
    for grant in [&newer, &older] {
        let refused = rig.turn(grant, 1).await.unwrap_err();
        assert_eq!(refused.wire.as_deref(), Some("insufficient_quota"), "{}", grant.id);
    }
}

/// What running turns may cost is nobody else's; who is refused for that may try again.
#[tokio::test]
async fn what_is_promised_is_not_promised_twice() {
    let rig = rig();
    let grant = grant(Some("0.00000001usd/day"), None);
    let first = rig.spending.check(&grant, 12).await.unwrap();
    let refused = rig.spending.check(&grant, 1).await.unwrap_err();
    assert_eq!((refused.status.as_u16(), refused.wire.as_deref()), (429, Some("rate_limit_exceeded")));
    assert_eq!((refused.code.lasts(), refused.retry_after), (false, Some(1)));
    drop(first);
    rig.turn(&grant, 1).await.unwrap();
}

#[tokio::test]
async fn a_tenants_budget_is_for_all_of_its_keys() {
    let rig = rig();
    let one = grant(None, Some("0.00000001usd/total"));
    let other = Grant { id: "key_2".to_owned(), ..one.clone() };
    rig.turn(&one, 6).await.unwrap();
    rig.turn(&other, 6).await.unwrap();
    for grant in [&one, &other] {
        let refused = rig.turn(grant, 1).await.unwrap_err();
        assert!(refused.message.ends_with("The budget of this project is spent."), "{}", refused.message);
    }
    // A key of the tenant that has none of its own is held to the tenant's as well; nothing stays reserved.
    let both = grant(Some("1usd/day"), Some("0.00000001usd/total"));
    assert!(rig.spending.check(&both, 5).await.is_err());
    let tab = rig.spending.tabs.of(&grant(Some("1usd/day"), None), i64::try_from(NOW / 3600).unwrap());
    assert!(format!("{tab:?}").contains("reserved: 0"), "{tab:?}");
}

#[tokio::test]
async fn what_running_turns_will_cost_counts() {
    let rig = rig();
    let grant = grant(Some("0.00000001usd/day"), None);
    let first = rig.spending.check(&grant, 6).await.unwrap();
    let second = rig.spending.check(&grant, 6).await.unwrap();
    assert!(rig.spending.check(&grant, 6).await.is_err());
    drop(first);
    let third = rig.spending.check(&grant, 6).await.unwrap();
    drop((second, third));
    rig.turn(&grant, 0).await.unwrap();
    assert!(rig.spending.check(&self::grant(Some("0usd/month"), None), 0).await.is_err());
}

#[tokio::test]
async fn a_new_period_begins_anew_and_a_clock_that_goes_back_does_not() {
    let rig = rig();
    let grant = grant(Some("0.00000001usd/month"), None);
    // The last hour of November.
    rig.now.store(NOW + 14 * 86_400 + 10 * 3600, Ordering::Relaxed);
    rig.turn(&grant, 20).await.unwrap();
    assert!(rig.turn(&grant, 1).await.is_err());
    rig.now.fetch_add(3600, Ordering::Relaxed);
    rig.turn(&grant, 4).await.unwrap();
    rig.spending.write_and_read().await.unwrap();
    rig.turn(&grant, 20).await.unwrap();
    assert!(rig.turn(&grant, 1).await.is_err());
    rig.spending.write_and_read().await.unwrap();
    assert!(rig.turn(&grant, 1).await.is_err());
    // Back to where there was something left, or before.
    for ago in [3600, 40 * 86_400] {
        rig.now.fetch_sub(ago, Ordering::Relaxed);
        assert!(rig.turn(&grant, 1).await.is_err());
        rig.spending.write_and_read().await.unwrap();
        assert!(rig.turn(&grant, 1).await.is_err());
    }
    assert_eq!(rig.requests().await, 3);
}

#[tokio::test]
async fn a_budget_that_changes_counts_at_once() {
    let rig = rig();
    rig.turn(&grant(Some("0.00000001usd/day"), None), 30).await.unwrap();
    rig.spending.write_and_read().await.unwrap();
    rig.turn(&grant(Some("0.0000001usd/day"), None), 1).await.unwrap();
    assert!(rig.turn(&grant(Some("0.00000002usd/month"), None), 1).await.is_err());
    rig.turn(&grant(None, None), 1).await.unwrap();
}

#[tokio::test]
async fn what_is_unpriced_or_free_spends_nothing_and_is_counted() {
    let rig = rig();
    let grant = grant(Some("0.000000001usd/day"), None);
    for nanodollars in [None, Some(0)] {
        rig.spending.add(&used("key_1", nanodollars));
    }
    drop(rig.spending.check(&grant, 0).await.unwrap());
    rig.spending.flush().await;
    assert_eq!(rig.requests().await, 2);
}

/// The commit is done and its answer is lost: the same batch is sent again, and counts once.
#[tokio::test]
async fn a_batch_that_is_sent_twice_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let rig = rig_on(Store::sqlite(&folder.path().join("s.db"), &SqliteOptions::default()).unwrap());
    rig.spending.add(&used("key_1", Some(7)));
    let batch = rig.spending.next_batch().unwrap();
    rig.store.add_usage(batch.clone()).await.unwrap();
    // What comes meanwhile is in the next one.
    rig.spending.add(&used("key_1", Some(8)));
    assert_eq!(rig.spending.next_batch().map(|batch| (batch.number, batch.rows)), Some((1, batch.rows)));
    rig.spending.flush().await;
    assert_eq!(rig.requests().await, 2);
    assert!(rig.spending.next_batch().is_none());
}
