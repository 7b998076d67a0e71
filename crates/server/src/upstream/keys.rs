//! The keys of one provider: each conversation has its own, because accounts have caches of their own, and what belongs to
//! none takes them in turn; one that was refused rests while others work.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bridge::{Failure, FailureClass};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::Instant;

use super::affinity::{Affinity, PlaceId, Seat, WHOLE, order};
use super::load::{Load, OpenRequest};

/// How long a key rests that was refused for good, as far as we know.
const REFUSED: Duration = Duration::from_mins(5);

/// How long a key rests that is over its limit and was not told when to come back.
const LIMITED: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Keys {
    began: Instant,
    keys: Vec<Key>,
    next: AtomicUsize,
}

#[derive(Debug)]
struct Key {
    header: Option<(HeaderName, HeaderValue)>,
    place: PlaceId,
    load: Load,
    /// Milliseconds since `began` until which it rests.
    rests_until: AtomicU64,
}

/// The keys that one request has tried, a bit for each.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tried(u64);

impl Keys {
    /// More keys than this are not told apart; configuration refuses them.
    pub(super) const MOST: usize = 64;

    /// Without headers there is one key that is nothing.
    pub(super) fn new(headers: Vec<(HeaderName, HeaderValue)>) -> Self {
        let key = |header: Option<(HeaderName, HeaderValue)>| Key {
            place: PlaceId::of(header.as_ref().map_or(&[][..], |(_, value)| value.as_bytes())),
            header,
            load: Load::default(),
            rests_until: AtomicU64::new(0),
        };
        let mut keys: Vec<Key> = headers.into_iter().take(Self::MOST).map(|header| key(Some(header))).collect();
        if keys.is_empty() {
            keys.push(key(None));
        }
        Self { began: Instant::now(), keys, next: AtomicUsize::new(0) }
    }

    /// A key that this request has not tried and that does not rest: the conversation's own, unless that has too much to
    /// do, or the next in turn. A request that has tried none gets one in any case, the one that will be rested first.
    pub(super) fn take(&self, tried: &mut Tried, affinity: Option<Affinity>) -> Option<usize> {
        let now = self.now();
        let fresh = self.order(affinity, now).into_iter().filter(|at| tried.0 & (1 << at) == 0);
        let rest = |at: &usize| self.keys[*at].rests_until.load(Ordering::Relaxed);
        let found = if tried.0 == 0 {
            fresh.min_by_key(|at| rest(at).saturating_sub(now))
        } else {
            fresh.clone().find(|at| rest(at) <= now)
        }?;
        tried.0 |= 1 << found;
        Some(found)
    }

    fn order(&self, affinity: Option<Affinity>, now: u64) -> Vec<usize> {
        let count = self.keys.len();
        let Some(affinity) = affinity.filter(|_| count > 1) else {
            let start = if count == 1 { 0 } else { self.next.fetch_add(1, Ordering::Relaxed) };
            return (0..count).map(|step| (start + step) % count).collect();
        };
        let seat = |key: &Key| {
            let rests = key.rests_until.load(Ordering::Relaxed) > now;
            Seat { place: key.place, open: key.load.open(), share: if rests { 0 } else { WHOLE } }
        };
        order(affinity, &self.keys.iter().map(seat).collect::<Vec<_>>())
    }

    /// Whether conversations have keys of their own.
    pub(super) const fn are_several(&self) -> bool {
        self.keys.len() > 1
    }

    /// A request goes out with this key.
    pub(super) fn enter(&self, key: usize) -> Option<OpenRequest> {
        self.keys.get(key).filter(|_| self.are_several()).map(|key| key.load.enter())
    }

    pub(super) fn apply(&self, key: usize, headers: &mut HeaderMap) {
        if let Some((name, value)) = self.keys.get(key).and_then(|key| key.header.as_ref()) {
            headers.insert(name.clone(), value.clone());
        }
    }

    /// Lets a key rest if this failure is about the key. Says whether it is. What a client may have said itself is not:
    /// others need that key.
    pub(super) fn refused(&self, key: usize, failure: &Failure) -> bool {
        if failure.basis.is_hearsay() {
            return false;
        }
        let rest = match failure.class {
            FailureClass::Auth | FailureClass::Quota => REFUSED,
            FailureClass::RateLimit => {
                failure.retry_after.map_or(LIMITED, |seconds| Duration::from_secs(u64::from(seconds)))
            }
            _ => return false,
        };
        let until = self.now().saturating_add(u64::try_from(rest.as_millis()).unwrap_or(u64::MAX));
        if let Some(key) = self.keys.get(key) {
            key.rests_until.fetch_max(until, Ordering::Relaxed);
        }
        true
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use http::header::AUTHORIZATION;

    use super::*;

    fn keys(count: usize) -> Keys {
        let header = |at: usize| (AUTHORIZATION, HeaderValue::try_from(format!("k{at}")).unwrap());
        Keys::new((0..count).map(header).collect())
    }

    fn take(keys: &Keys) -> Option<usize> {
        keys.take(&mut Tried::default(), None)
    }

    fn limited(seconds: Option<u32>) -> Failure {
        Failure { retry_after: seconds, ..Failure::new(FailureClass::RateLimit, "slow down") }
    }

    #[tokio::test(start_paused = true)]
    async fn keys_are_taken_in_turn_and_rest_when_refused() {
        let keys = keys(3);
        assert_eq!([take(&keys), take(&keys), take(&keys), take(&keys)], [Some(0), Some(1), Some(2), Some(0)]);
        assert!(keys.refused(1, &limited(Some(20))));
        assert!(keys.refused(2, &Failure::new(FailureClass::Auth, "no")));
        assert!(!keys.refused(0, &Failure::new(FailureClass::Server, "oops")));
        assert!((0..5).all(|_| take(&keys) == Some(0)));
        tokio::time::advance(Duration::from_secs(20)).await;
        let taken: Vec<_> = (0..6).filter_map(|_| take(&keys)).collect();
        assert!(taken.contains(&1) && !taken.contains(&2), "{taken:?}");
        tokio::time::advance(REFUSED).await;
        assert!((0..3).any(|_| take(&keys) == Some(2)));
    }

    #[tokio::test(start_paused = true)]
    async fn one_request_tries_each_key_once_and_only_rested_ones_after_the_first() {
        let keys = keys(3);
        let mut tried = Tried::default();
        assert_eq!([(); 4].map(|()| keys.take(&mut tried, None)), [Some(0), Some(1), Some(2), None]);
        keys.refused(0, &limited(Some(5)));
        keys.refused(1, &limited(Some(9)));
        keys.refused(2, &limited(Some(7)));
        let mut tried = Tried::default();
        assert_eq!(keys.take(&mut tried, None), Some(0), "the first to be rested");
        assert_eq!(keys.take(&mut tried, None), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_conversation_keeps_its_key_while_that_works_and_is_not_crowded() {
        let keys = keys(4);
        let take =
            |number: usize| keys.take(&mut Tried::default(), Some(Affinity::of([&number.to_le_bytes()[..]]))).unwrap();
        let own: Vec<usize> = (0..40).map(take).collect();
        assert_eq!(own, (0..40).map(take).collect::<Vec<_>>());
        assert!((0..4).all(|key| own.contains(&key)), "{own:?}");
        keys.refused(own[0], &limited(Some(20)));
        for (number, before) in own.iter().enumerate() {
            let now = take(number);
            assert!(now != own[0] && (now == *before || *before == own[0]));
        }
        tokio::time::advance(Duration::from_secs(20)).await;
        assert_eq!(own, (0..40).map(take).collect::<Vec<_>>(), "and comes back");
        let busy: Vec<_> = (0..8).map(|_| keys.enter(own[0])).collect();
        assert_ne!(take(0), own[0]);
        drop(busy);
        assert_eq!(take(0), own[0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lone_key_is_always_used() {
        for keys in [keys(1), Keys::new(Vec::new())] {
            keys.refused(0, &limited(None));
            assert_eq!((take(&keys), take(&keys)), (Some(0), Some(0)));
        }
    }
}
