//! Limits under a clock of their own, and several processes on a database of a few lines.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;

use store::{Share, Tenant};

use super::window::Window;
use super::*;
use crate::error::Code;

/// What a shared database does, in memory.
#[derive(Debug, Clone, Default)]
pub(super) struct TestBank(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    used: Mutex<HashMap<String, Window>>,
    places: Mutex<HashMap<String, HashMap<usize, u64>>>,
    away: AtomicBool,
    asked: AtomicU64,
}

impl TestBank {
    fn enter(&self) -> Result<(), String> {
        self.0.asked.fetch_add(1, Ordering::Relaxed);
        if self.0.away.load(Ordering::Relaxed) { Err("on purpose".to_owned()) } else { Ok(()) }
    }

    pub(super) fn take(&self, wishes: &[ShareWish]) -> Result<Vec<Share>, String> {
        self.enter()?;
        let (now, mut used) = (Instant::now(), self.0.used.lock().unwrap());
        let give = |wish: &ShareWish| {
            let window = used.entry(wish.subject.clone()).or_insert_with(|| Window::new(now));
            let number = window.add(wish.overdrawn, now);
            // From what was used last.
            let mut back = wish.wanted.min(0).unsigned_abs();
            for number in (0..=number).rev().take(60) {
                let before = window.used(now);
                window.give_back(back, number, now);
                back -= before - window.used(now);
            }
            let left = wish.limit.saturating_sub(window.used(now));
            let wanted = u64::try_from(wish.wanted).unwrap_or(0);
            let granted = wanted.min(left);
            let wait = window.wait(wish.limit, wanted, now).map_or(0, |wait| wait.as_millis().try_into().unwrap());
            window.add(granted, now);
            Share { granted, left: left - granted, wait }
        };
        Ok(wishes.iter().map(give).collect())
    }

    pub(super) fn hold(&self, me: usize, subject: &str, wanted: u64, limit: u64) -> Result<u64, String> {
        self.enter()?;
        let mut places = self.0.places.lock().unwrap();
        let held = places.entry(subject.to_owned()).or_default();
        let others: u64 = held.iter().filter(|(who, _)| **who != me).map(|(_, held)| held).sum();
        let mine = held.get(&me).copied().unwrap_or(0);
        let now = wanted.min(limit.saturating_sub(others).max(mine));
        held.insert(me, now);
        Ok(now)
    }
}

const NO_LIMITS: LimitsConfig = LimitsConfig {
    body_bytes_in_flight: 0,
    remembered_bytes: 0,
    turns: None,
    memory: None,
    write_stall: Duration::ZERO,
    key_grace: Duration::ZERO,
};

fn alone() -> Arc<Limits> {
    Arc::new(Limits::with(Bank::None, &NO_LIMITS))
}

fn together(bank: &TestBank, number: usize) -> Arc<Limits> {
    Arc::new(Limits::with(Bank::Test(bank.clone(), number), &NO_LIMITS))
}

fn terms(rpm: u64, tpm: u64, concurrency: u64) -> Terms {
    let some = |limit| (limit > 0).then_some(limit);
    Terms { rpm: some(rpm), tpm: some(tpm), concurrency: some(concurrency), ..Terms::default() }
}

fn grant(id: &str, terms: Terms, tenant_terms: Terms) -> Arc<Grant> {
    Arc::new(Grant {
        id: id.to_owned(),
        name: format!("the {id}"),
        tenant: Tenant::default(),
        terms,
        tenant_terms: Arc::new(tenant_terms),
        expires_at: None,
        line: Arc::default(),
        mark: None,
    })
}

async fn admit(limits: &Arc<Limits>, grant: &Arc<Grant>, input: u64) -> Result<Permit, ApiError> {
    limits.admit(Some(grant), Asks::Turn, || Tokens { input, output: 0 }).await.permit
}

/// How many of so many get in.
async fn admitted(limits: &Arc<Limits>, grant: &Arc<Grant>, tries: usize) -> usize {
    let mut count = 0;
    for _ in 0..tries {
        if let Ok(permit) = admit(limits, grant, 0).await {
            permit.settle(Some(0), Instant::now());
            count += 1;
        }
    }
    count
}

#[tokio::test(start_paused = true)]
async fn so_many_requests_per_minute_and_then_the_wait_that_is_said() {
    let (limits, grant) = (alone(), grant("k", terms(3, 0, 0), Terms::default()));
    for left in [2, 1, 0] {
        let Admitted { permit, rates } = limits.admit(Some(&grant), Asks::Turn, Tokens::default).await;
        assert!(permit.is_ok());
        let rate = rates.requests.unwrap();
        assert_eq!((rate.limit.number, rate.remaining, rate.reset), (3, left, 61));
    }
    tokio::time::advance(Duration::from_secs(30)).await;
    let Admitted { permit, rates } = limits.admit(Some(&grant), Asks::Turn, Tokens::default).await;
    let error = permit.unwrap_err();
    assert_eq!(
        (error.status.as_u16(), error.code.kind(), error.wire.as_deref()),
        (429, "requests", Some("rate_limit_exceeded"))
    );
    assert_eq!(rates.requests.map(|rate| rate.remaining), Some(0));
    // When the last second of which any part was less than a minute ago is over.
    let message = "Rate limit reached for key 'the k' on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 31s.";
    assert_eq!((&*error.message, error.retry_after), (message, Some(31)));
    tokio::time::advance(Duration::from_secs(30)).await;
    assert!(admit(&limits, &grant, 0).await.is_err());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(admitted(&limits, &grant, 9).await, 3);
}

#[tokio::test(start_paused = true)]
async fn a_tenant_is_limited_over_all_of_its_keys_and_who_is_refused_has_used_nothing() {
    let limits = alone();
    let keys = ["a", "b"].map(|id| grant(id, terms(3, 0, 0), terms(4, 0, 0)));
    assert_eq!(admitted(&limits, &keys[0], 9).await, 3);
    assert_eq!(admitted(&limits, &keys[1], 9).await, 1);
    let error = admit(&limits, &keys[1], 0).await.unwrap_err();
    assert!(
        error.message.starts_with("Rate limit reached for tenant 'default' on requests per min"),
        "{}",
        error.message
    );
    // Of its own three it has used one: those that the tenant refused do not count.
    let other = grant("b", terms(3, 0, 0), Terms::default());
    assert_eq!(admitted(&limits, &other, 9).await, 2);
}

#[tokio::test(start_paused = true)]
async fn tokens_are_held_back_and_settled() {
    let (limits, grant) = (alone(), grant("k", terms(0, 1000, 0), Terms::default()));
    let left = |limits: &Arc<Limits>| {
        limits.keys.find("k", String::new).state().tokens.remaining(1000, Mode::Alone, Instant::now())
    };
    let permit = admit(&limits, &grant, 600).await.unwrap();
    assert_eq!(left(&limits), 400);
    let refused = admit(&limits, &grant, 500).await.unwrap_err();
    assert_eq!((refused.code, refused.code.kind()), (Code::TokensPerMinute, "tokens"));
    permit.settle(Some(100), Instant::now());
    assert_eq!(left(&limits), 900);
    // Nobody was asked; and dropped, which is the same.
    admit(&limits, &grant, 500).await.unwrap().settle(None, Instant::now());
    drop(admit(&limits, &grant, 500).await.unwrap());
    assert_eq!(left(&limits), 900);
    // More than was held back.
    admit(&limits, &grant, 10).await.unwrap().settle(Some(2000), Instant::now());
    assert_eq!(left(&limits), 0);
    tokio::time::advance(Duration::from_secs(59)).await;
    assert!(admit(&limits, &grant, 1).await.is_err(), "what was used too much counts as well");
    tokio::time::advance(Duration::from_mins(1)).await;
    // A turn that lasts longer than a minute gives nothing back to another minute.
    let long = admit(&limits, &grant, 400).await.unwrap();
    tokio::time::advance(Duration::from_secs(150)).await;
    admit(&limits, &grant, 300).await.unwrap().settle(Some(300), Instant::now());
    long.settle(Some(0), Instant::now());
    assert_eq!(left(&limits), 700);
}

#[tokio::test(start_paused = true)]
async fn what_no_wait_helps_is_said_at_once() {
    let limits = alone();
    let grant = grant("k", terms(0, 1000, 0), Terms::default());
    let Admitted { permit, rates } = limits.admit(Some(&grant), Asks::Turn, || Tokens { input: 1001, output: 0 }).await;
    let error = permit.unwrap_err();
    assert_eq!(rates.tokens.map(|rate| (rate.limit.number, rate.remaining)), Some((1000, 1000)));
    let message = "Request too large for key 'the k' on tokens per min (TPM): Limit 1000, Requested 1001. The input or output tokens must be reduced in order to run successfully.";
    assert_eq!((&*error.message, error.retry_after, error.code.lasts()), (message, None, true));
    // The same where nothing is known yet of what others have used.
    let shared = together(&TestBank::default(), 1);
    let refused = shared.admit(Some(&grant), Asks::Turn, || Tokens { input: 1001, output: 0 }).await;
    assert_eq!(refused.rates.tokens.map(|rate| rate.remaining), Some(1000));
    // What the answer may take is no reason: of what is left, a quarter is held back for it.
    let all = limits.admit(Some(&grant), Asks::Turn, || Tokens { input: 1000, output: 4000 }).await;
    assert!(all.permit.is_ok());
    let most = limits.admit(Some(&grant), Asks::Turn, || Tokens { input: 200, output: 4000 }).await;
    assert_eq!(most.rates.tokens.map(|rate| rate.remaining), Some(0));
}

/// What a turn continues is known only when it was let in, and counts as if it had been in the request.
#[tokio::test(start_paused = true)]
async fn the_past_is_held_back_as_well() {
    let grant = grant("k", terms(9, 1000, 2), Terms::default());
    let shared = TestBank::default();
    for limits in [alone(), together(&shared, 1)] {
        let longer = async |input| {
            let permit = admit(&limits, &grant, 100).await?;
            assert!(permit.has_tokens());
            limits.admit_longer(&grant, permit, || Tokens { input, output: 0 }).await.permit
        };
        let runs = longer(700).await.unwrap();
        let refused = longer(400).await.unwrap_err();
        assert_eq!((refused.code.status().as_u16(), refused.code.lasts()), (429, false), "{refused:?}");
        // What never fits is said; and who was refused has used nothing, also no place.
        assert!(longer(1001).await.unwrap_err().code.lasts());
        let other = longer(290).await.unwrap();
        let left = limits.left(&grant).await;
        assert_eq!(left.requests.map(|rate| rate.remaining), Some(7));
        assert_eq!(admit(&limits, &grant, 0).await.unwrap_err().code, Code::TurnsAtOnce);
        drop(other);
        // It used less than it might have.
        runs.settle(Some(300), Instant::now());
        longer(690).await.unwrap().settle(Some(690), Instant::now());
    }
}

/// Who was let in, and was refused before anybody was asked.
#[tokio::test(start_paused = true)]
async fn what_asked_nobody_is_given_back() {
    let bank = TestBank::default();
    for limits in [alone(), together(&bank, 1)] {
        let grant = grant("k", terms(2, 1000, 1), terms(9, 0, 0));
        for _ in 0..5 {
            let left = admit(&limits, &grant, 600).await.unwrap().undo();
            let left = [left.requests, left.tokens].map(|rate| rate.map(|rate| rate.remaining));
            assert_eq!(left, [Some(2), Some(1000)]);
        }
        assert_eq!(admitted(&limits, &grant, 9).await, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn so_many_turns_at_once() {
    let (limits, grant) = (alone(), grant("k", terms(0, 0, 2), Terms::default()));
    let mut running = vec![admit(&limits, &grant, 0).await.unwrap(), admit(&limits, &grant, 0).await.unwrap()];
    let error = admit(&limits, &grant, 0).await.unwrap_err();
    assert_eq!((error.code, error.retry_after), (Code::TurnsAtOnce, Some(1)));
    running.pop();
    assert!(admit(&limits, &grant, 0).await.is_ok());
}

/// It is a request when it is submitted, and takes tokens and a place when it runs.
#[tokio::test(start_paused = true)]
async fn a_background_response_counts_once() {
    let (limits, grant) = (alone(), grant("k", terms(2, 100, 1), Terms::default()));
    let ask = async |asks| limits.admit(Some(&grant), asks, || Tokens { input: 100, output: 0 }).await.permit;
    for _ in 0..2 {
        assert!(ask(Asks::Submits).await.is_ok());
    }
    assert_eq!(ask(Asks::Submits).await.unwrap_err().code, Code::RequestsPerMinute);
    let running = ask(Asks::Runs).await.unwrap();
    let code = ask(Asks::Runs).await.unwrap_err().code;
    assert!(matches!(code, Code::TurnsAtOnce | Code::TokensPerMinute), "{code:?}");
    running.settle(None, Instant::now());
    assert!(ask(Asks::Runs).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn who_uses_nothing_is_forgotten_and_who_runs_is_not() {
    let limits = alone();
    let running = admit(&limits, &grant("runs", terms(1, 0, 1), Terms::default()), 0).await.unwrap();
    for number in 0..500 {
        let _ = admit(&limits, &grant(&number.to_string(), terms(1, 0, 0), Terms::default()), 0).await;
    }
    // No limit, no trace.
    let _ = admit(&limits, &grant("free", Terms::default(), Terms::default()), 0).await;
    assert_eq!(limits.keys.len(), 501);
    tokio::time::advance(Duration::from_secs(100)).await;
    limits.forget(Instant::now());
    assert_eq!(limits.keys.len(), 501, "what still counts is not forgotten");
    tokio::time::advance(Duration::from_secs(100)).await;
    limits.forget(Instant::now());
    assert_eq!(limits.keys.len(), 1);
    drop(running);
}

/// Two processes, asked in turn, over some minutes: never more than may be, and hardly less.
#[tokio::test(start_paused = true)]
async fn several_processes_keep_a_limit_together() {
    for limit in [10, 100, 1000] {
        let bank = TestBank::default();
        let (one, other) = (together(&bank, 1), together(&bank, 2));
        let grant = grant("k", terms(limit, 0, 0), Terms::default());
        let tries = usize::try_from(limit).unwrap();
        let mut first = 0;
        for _ in 0..tries {
            first += admitted(&one, &grant, 1).await + admitted(&other, &grant, 1).await;
            tokio::task::yield_now().await;
        }
        assert!(first <= tries && first * 10 >= tries * 9, "{first} of {limit}");
        let asked = bank.0.asked.load(Ordering::Relaxed);
        assert!(limit < 1000 || asked < 100, "{asked} questions for {limit} requests");
        // All of them refused, and the database is left alone.
        assert_eq!(admitted(&one, &grant, 500).await, 0);
        assert!(bank.0.asked.load(Ordering::Relaxed) <= asked + 10);
        tokio::time::advance(Duration::from_mins(2)).await;
        let later = admitted(&other, &grant, tries * 2).await;
        assert!(later <= tries && later * 10 >= tries * 9, "{later} of {limit}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_does_not_use_the_other_gets() {
    let bank = TestBank::default();
    let (one, other) = (together(&bank, 1), together(&bank, 2));
    let grant = grant("k", terms(100, 0, 0), Terms::default());
    assert_eq!(admitted(&one, &grant, 1).await, 1);
    tokio::task::yield_now().await;
    let at_once = admitted(&other, &grant, 200).await;
    assert!((94..=99).contains(&at_once), "{at_once}");
    tokio::time::advance(Duration::from_secs(6)).await;
    one.tidy().await;
    // The other has just been told that there is no more.
    tokio::time::advance(Duration::from_secs(2)).await;
    let in_all = 1 + at_once + admitted(&other, &grant, 200).await;
    assert!((100..=112).contains(&in_all), "{in_all}");
}

#[tokio::test(start_paused = true)]
async fn tokens_are_settled_with_the_others() {
    let bank = TestBank::default();
    let (one, other) = (together(&bank, 1), together(&bank, 2));
    let grant = grant("k", terms(0, 10_000, 0), Terms::default());
    // Held back and not used: the other can have it.
    admit(&one, &grant, 9_000).await.unwrap().settle(Some(1_000), Instant::now());
    assert!(admit(&other, &grant, 8_000).await.is_err());
    one.tidy().await;
    tokio::time::advance(Duration::from_secs(2)).await;
    let held = admit(&other, &grant, 8_000).await;
    // More than was held back: the other cannot.
    held.unwrap().settle(Some(9_500), Instant::now());
    other.tidy().await;
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(admit(&one, &grant, 600).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_database_that_is_away_refuses_nobody_and_hears_of_it_later() {
    let bank = TestBank::default();
    let (one, other) = (together(&bank, 1), together(&bank, 2));
    let grant = grant("k", terms(100, 0, 3), Terms::default());
    bank.0.away.store(true, Ordering::Relaxed);
    assert_eq!(admitted(&one, &grant, 150).await, 100, "by itself each keeps the limit");
    let asked = bank.0.asked.load(Ordering::Relaxed);
    assert!(asked <= 2, "{asked}: it is left alone while it is away");
    bank.0.away.store(false, Ordering::Relaxed);
    tokio::time::advance(Duration::from_secs(2)).await;
    one.tidy().await;
    assert_eq!(admitted(&other, &grant, 10).await, 0, "what was used meanwhile counts");
}

#[tokio::test(start_paused = true)]
async fn places_are_held_together_and_come_back() {
    let bank = TestBank::default();
    let (one, other) = (together(&bank, 1), together(&bank, 2));
    let grant = grant("k", terms(0, 0, 4), Terms::default());
    let mut running = Vec::new();
    for limits in [&one, &other, &one, &other, &one, &other] {
        running.extend(admit(limits, &grant, 0).await);
    }
    assert_eq!(running.len(), 4);
    running.clear();
    for limits in [&one, &other] {
        limits.tidy().await;
    }
    tokio::time::advance(Duration::from_secs(1)).await;
    for _ in 0..6 {
        running.extend(admit(&other, &grant, 0).await);
    }
    assert_eq!(running.len(), 4, "what the one held is the other's");
}

/// A task that loses the race for what the database gave asks again, and nobody waits for ever.
#[tokio::test(start_paused = true)]
async fn many_at_the_same_time_are_as_many_as_may_be() {
    let bank = TestBank::default();
    let limits = together(&bank, 1);
    let grant = grant("k", terms(50, 0, 0), terms(60, 0, 0));
    let asked = (0..200).map(|_| admit(&limits, &grant, 0));
    let admitted = futures_util::future::join_all(asked).await.into_iter().flatten().count();
    assert_eq!(admitted, 50);
}

/// The hold for an answer becomes less as less is left, so that all of a limit can be used by small answers.
#[tokio::test(start_paused = true)]
async fn small_answers_use_nearly_all_of_a_limit() {
    let grant = grant("k", terms(0, 3000, 0), Terms::default());
    let ask = async |limits: &Arc<Limits>| {
        let asked = limits.admit(Some(&grant), Asks::Turn, || Tokens { input: 8, output: 1000 }).await;
        asked.permit.map(|permit| permit.settle(Some(15), Instant::now())).map_or(0, |()| 15)
    };
    let limits = alone();
    let mut used = 0;
    for _ in 0..300 {
        used += ask(&limits).await;
    }
    assert!((2950..=3000).contains(&used), "{used}");
    // Of two who share it each may have a twentieth that it does not use.
    let bank = TestBank::default();
    let (one, other) = (together(&bank, 1), together(&bank, 2));
    let (mut used, mut refused) = (0, 0);
    while refused == 0 {
        for limits in [&one, &other] {
            match ask(limits).await {
                0 => refused += 1,
                more => used += more,
            }
        }
    }
    assert!((2650..=3000).contains(&used), "{used}");
}
