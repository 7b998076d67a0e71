//! Which of its provider's addresses a request goes to, and after which others: the conversation's own first; and to whom it
//! is too late to go.

use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use bridge::{Failure, FailureClass};
use tokio::time::Instant;

use super::{Accepted, Affinity, Candidate, Failover, Provider, Refused, Remedy, Replica};
use crate::clock;

/// How many addresses of one provider a request may try.
const ADDRESSES: usize = 4;

impl Candidate {
    pub(super) fn at_each_address(target: usize, provider: &Arc<Provider>, model: &str) -> Vec<Self> {
        let (profile, replicas) = (provider.profile(model), provider.connections.replicas.all());
        let Some(lessons) = replicas.first().map(|replica| replica.models.of(model)) else { return Vec::new() };
        let placed = replicas.len() == 1;
        let candidate = |replica: &Arc<Replica>| Self {
            target,
            provider: Arc::clone(provider),
            model: model.to_owned(),
            profile: Arc::clone(&profile),
            replica: Arc::clone(replica),
            health: if placed { Arc::clone(&lessons) } else { replica.models.of(model) },
            lessons: Arc::clone(&lessons),
            placed,
            out: false,
            not_before: None,
            price: OnceLock::new(),
        };
        replicas.iter().map(candidate).collect()
    }
}

impl Failover {
    /// The conversation that the request belongs to. Asked only if there is a choice that depends on it.
    pub(crate) fn belongs_to(&mut self, affinity: impl FnOnce() -> Affinity) {
        if self.candidates.iter().any(|candidate| candidate.provider.has_choice()) {
            self.affinity = Some(affinity());
        }
    }

    /// Whoever could not answer in time is not asked, and has not failed.
    pub(super) fn leave_out_the_late(&mut self) {
        let (now, began) = (Instant::now(), self.account.began());
        for candidate in &mut self.candidates {
            candidate.out |= now >= candidate.provider.deadlines(true, began).until;
        }
    }

    /// Says in the account that the target is asked, or would be.
    pub(super) fn asked(&self, bytes: usize) {
        let Candidate { provider, replica, .. } = &self.candidates[self.at];
        let replica = provider.connections.replicas.are_several().then(|| Arc::clone(&replica.url));
        self.account.asked(self.name(), replica, self.wire().name(), bytes);
    }

    /// Where all addresses of the target are whose turn it is.
    pub(super) fn addresses(&self) -> Range<usize> {
        let target = self.candidates[self.at].target;
        let is_same = |candidate: &Candidate| candidate.target == target;
        let start = self.candidates.iter().position(is_same).unwrap_or(self.at);
        let count = self.candidates[start..].iter().take_while(|candidate| is_same(candidate)).count();
        start..start + count
    }

    /// Puts the target's addresses into the order in which they are to be asked, at the last moment: when it is known how
    /// each fares and what it has to do. Nobody of them has been asked.
    pub(super) fn place(&mut self) {
        let addresses = self.addresses();
        if self.candidates[self.at].placed {
            return;
        }
        let affinity = self.affinity.unwrap_or_else(|| Affinity::any(clock::random()));
        let group = &self.candidates[addresses.clone()];
        let among: Vec<_> = group.iter().map(|candidate| (&candidate.replica, &*candidate.health)).collect();
        let replicas = &group[0].provider.connections.replicas;
        let (order, chosen) = replicas.choose(affinity, &among, self.stays.as_ref());
        drop(among);
        let mut unplaced: Vec<Option<Candidate>> = self.candidates.drain(addresses.clone()).map(Some).collect();
        let placed: Vec<Candidate> = order.into_iter().filter_map(|at| unplaced.get_mut(at)?.take()).collect();
        for (number, mut candidate) in placed.into_iter().enumerate() {
            (candidate.placed, candidate.out) = (true, candidate.out || number >= ADDRESSES);
            self.candidates.insert(addresses.start + number, candidate);
        }
        (self.at, self.chosen) = (addresses.start, chosen);
    }
}

/// What came of sending; where others can be asked, an address that turns out to be down is not waited for.
pub(super) async fn unless_it_falls(
    replica: &Replica,
    alone: bool,
    sending: Pin<&mut impl Future<Output = Result<Accepted, Refused>>>,
) -> Result<Accepted, Refused> {
    if alone {
        return sending.await;
    }
    let mut falls = replica.falls();
    tokio::select! {
        biased;
        sent = sending => sent,
        Ok(()) = falls.changed() => {
            let message = "The provider's address has stopped answering.";
            Err(Refused::new(Failure::new(FailureClass::Unreachable, message), Remedy::Elsewhere))
        }
    }
}
