//! The right to run a turn, and what becomes of what was taken for it.

use std::sync::Arc;

use tokio::time::Instant;

use super::Limits;
use super::load::Place;
use super::rate::{Rate, Rates, Which};
use super::subject::Subject;

/// A turn that may run. Dropped, it gives its place back, and what was held back for it and not used.
#[derive(Debug)]
pub(crate) struct Permit {
    limits: Arc<Limits>,
    _place: Option<Place>,
    taken: [Option<Taken>; 2],
}

#[derive(Debug)]
pub(super) struct Taken {
    pub(super) subject: Arc<Subject>,
    pub(super) place: bool,
    /// How many, in which minute, and of how many that may be used.
    pub(super) request: Option<((u64, u64), u64)>,
    pub(super) tokens: Option<((u64, u64), u64)>,
    pub(super) at: Instant,
}

impl Permit {
    pub(super) fn of(limits: &Arc<Limits>, place: Option<Place>, taken: [Option<Taken>; 2]) -> Self {
        Self { limits: Arc::clone(limits), _place: place, taken }
    }

    /// Whether tokens are held back for it.
    pub(crate) fn has_tokens(&self) -> bool {
        self.taken.iter().flatten().any(|taken| taken.tokens.is_some())
    }

    /// What was held back is not any more.
    pub(super) fn give_back_tokens(&mut self, now: Instant) {
        let mode = self.limits.mode(now);
        for taken in self.taken.iter_mut().flatten() {
            let Some(((amount, number), _)) = taken.tokens.take() else { continue };
            taken.subject.state().tokens.settle((amount, 0), (taken.at, number), mode, now);
        }
    }

    /// Others are held back instead, of the same two.
    pub(super) fn takes_tokens(&mut self, more: [Option<Taken>; 2]) {
        for (taken, more) in self.taken.iter_mut().zip(more) {
            if let (Some(taken), Some(more)) = (taken, more) {
                taken.tokens = more.tokens;
            }
        }
    }

    /// What it has really used; None: nobody was asked.
    pub(crate) fn settle(mut self, tokens: Option<u64>, now: Instant) {
        self.end(Used { requests: 1, tokens: tokens.unwrap_or(0) }, now, |_, _| {});
    }

    /// Nobody was asked, and nobody will be: it was no request. Says what is left then.
    pub(crate) fn undo(mut self) -> Rates {
        let mut rates = Rates::default();
        self.end(Used { requests: 0, tokens: 0 }, Instant::now(), |which, rate| rates.add(which, rate()));
        rates
    }

    /// Shows what is left, to whom it matters.
    fn end(&mut self, used: Used, now: Instant, mut left: impl FnMut(Which, &mut dyn FnMut() -> Rate)) {
        if self.taken.iter().all(Option::is_none) {
            return;
        }
        let taken = std::mem::take(&mut self.taken);
        let mode = self.limits.mode(now);
        for Taken { subject, place, request, tokens, at } in taken.into_iter().flatten() {
            let mut state = subject.state();
            state.used_at = now;
            for (which, taken, used) in
                [(Which::Requests, request, used.requests), (Which::Tokens, tokens, used.tokens)]
            {
                let (Some(((amount, number), limit)), Some(meter)) = (taken, state.meter(which)) else { continue };
                meter.settle((amount, used), (at, number), mode, now);
                left(which, &mut || meter.rate(limit, mode, now));
            }
            if place {
                state.places.running = state.places.running.saturating_sub(1);
            }
        }
    }
}

/// What a turn came to.
#[derive(Clone, Copy)]
struct Used {
    requests: u64,
    tokens: u64,
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.taken.iter().any(Option::is_some) {
            self.end(Used { requests: 1, tokens: 0 }, Instant::now(), |_, _| {});
        }
    }
}
