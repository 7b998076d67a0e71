//! Random jobs of two workers, beside a model that says what must become of each.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use store::{
    Begun, Claim, Error, EventLimits, JobKind, JobLimits, NewJob, NewTurn, Runs, Status, Store, Tenanted, TurnEnd,
    Worker,
};

use crate::chance::Chance;
use crate::jobs::{by, worker};
use crate::make::tenant;
use crate::turns::{begun, ended, events};

const LEASE: Duration = Duration::from_mins(1);
const LIMITS: JobLimits = JobLimits { running: 3, queued: 4 };

/// Who has a job, as the model sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Claimed(usize),
    Dispatched(usize),
    Ended(Status),
}

#[derive(Debug)]
struct Job {
    state: State,
    background: bool,
    anybody: bool,
    /// The worker to whom it belongs while it waits, if only that one can run it.
    owner: usize,
    attempt: i64,
    cancel: bool,
    events: u64,
    /// Every claim that was ever given out; only the last may be good.
    claims: Vec<Claim>,
}

struct World {
    store: Store,
    t: Tenanted,
    workers: [Worker; 2],
    chance: Chance,
    jobs: BTreeMap<String, Job>,
    order: Vec<String>,
}

impl Job {
    /// Whether this claim is the newest, and somebody runs it by that.
    fn is_good(&self, claim: &Claim) -> bool {
        matches!(self.state, State::Claimed(_) | State::Dispatched(_)) && self.claims.last() == Some(claim)
    }
}

pub(crate) async fn random_jobs(store: &Store, seed: u64, steps: usize) {
    let t = tenant(store, &format!("random jobs {seed}"));
    let workers = [worker(), worker()];
    let (jobs, order) = (BTreeMap::new(), Vec::new());
    let mut world = World { store: store.clone(), t, workers, chance: Chance::new(seed), jobs, order };
    for step in 0..steps {
        match world.chance.below(10) {
            0..3 => world.begin(step).await,
            3 => world.claim().await,
            4 | 5 => world.dispatch_or_append().await,
            6 | 7 => world.finish().await,
            8 => world.cancel().await,
            _ => world.lose_a_worker().await,
        }
    }
    world.check().await;
}

impl World {
    fn running(&self) -> usize {
        let runs = |job: &&Job| job.background && matches!(job.state, State::Claimed(_) | State::Dispatched(_));
        self.jobs.values().filter(runs).count()
    }

    /// Those that have waited, and have reached nobody.
    fn claimed_later(&self) -> usize {
        let later = |job: &&Job| job.background && job.attempt > 1 && matches!(job.state, State::Claimed(_));
        self.jobs.values().filter(later).count()
    }

    fn waiting(&self) -> Vec<String> {
        self.order.iter().filter(|id| self.jobs[*id].state == State::Waiting).cloned().collect()
    }

    async fn begin(&mut self, step: usize) {
        let id = format!("r{step}");
        let (background, anybody) = (self.chance.below(4) > 0, self.chance.below(3) > 0);
        let owner = self.chance.below(2);
        let kind = if background { JobKind::Background } else { JobKind::Foreground };
        let status = if background { Status::Queued } else { Status::InProgress };
        let job = NewJob { kind, request: anybody.then(|| Bytes::from(id.clone())) };
        let turn = NewTurn { status, ..begun(&id, "u") };
        let begun = self.t.begin_job(turn, job, &self.workers[owner], LIMITS, LEASE).await;
        let (running, waiting) = (self.running(), self.waiting().len());
        let all = waiting + self.claimed_later();
        let mut new = Job {
            state: State::Waiting,
            background,
            anybody,
            owner,
            attempt: 1,
            cancel: false,
            events: 0,
            claims: Vec::new(),
        };
        match begun {
            Ok(Begun::Claimed(claim)) => {
                assert!(!background || (running < 3 && waiting == 0));
                new.state = if background { State::Claimed(owner) } else { State::Dispatched(owner) };
                new.claims = vec![claim];
            }
            Ok(Begun::Queued) => assert!(background && (running >= 3 || waiting > 0) && all < 4),
            Err(Error::QueueFull) => {
                assert!(background && all >= 4);
                assert!(matches!(self.t.response(&id).await, Err(Error::NotFound)));
                return;
            }
            Err(error) => panic!("{error:?}"),
        }
        self.jobs.insert(id.clone(), new);
        self.order.push(id);
    }

    async fn claim(&mut self) {
        let (me, most) = (self.chance.below(2), 1 + self.chance.below(3));
        let free = 3_usize.saturating_sub(self.running()).min(most);
        let mine = |id: &String| self.jobs[id].anybody || self.jobs[id].owner == me;
        let expected: Vec<String> = self.waiting().into_iter().filter(mine).take(free).collect();
        let claimed = self.store.claim(&self.workers[me], LIMITS, most, LEASE).await.unwrap();
        let found: Vec<&str> = claimed.iter().map(|job| job.claim.response_id()).collect();
        assert_eq!(found, expected);
        for found in claimed {
            let job = self.jobs.get_mut(found.claim.response_id()).unwrap();
            job.attempt += 1;
            assert_eq!((found.claim.attempt(), found.next_event), (job.attempt, job.events));
            assert_eq!((found.cancel, found.request.is_some()), (job.cancel, job.anybody));
            job.state = State::Claimed(me);
            job.claims.push(found.claim);
        }
    }

    /// A job that is there or has been, and one of the claims that were ever given out for it.
    fn pick(&mut self) -> Option<(String, Claim)> {
        let recent = &self.order[self.order.len().saturating_sub(12)..];
        let id = recent.get(self.chance.below(recent.len().max(1)))?.clone();
        let claims = &self.jobs[&id].claims;
        let back = if self.chance.below(4) == 0 { self.chance.below(claims.len().max(1)) } else { 0 };
        let claim = claims.iter().rev().nth(back)?.clone();
        Some((id, claim))
    }

    async fn dispatch_or_append(&mut self) {
        let Some((id, claim)) = self.pick() else { return };
        let append = self.chance.below(2) == 0;
        let job = self.jobs.get_mut(&id).unwrap();
        let outcome = if append {
            self.t.append_events(&id, &events(job.events, &["x"]), Some(&claim)).await
        } else {
            self.t.dispatch(&claim).await
        };
        match job.state {
            State::Ended(status) => assert!(matches!(outcome, Err(Error::Ended { status: found }) if found == status)),
            _ if !job.is_good(&claim) => assert!(matches!(outcome, Err(Error::Lost)), "{outcome:?}"),
            State::Claimed(who) | State::Dispatched(who) => {
                outcome.unwrap();
                job.events += u64::from(append);
                job.state = if append { job.state } else { State::Dispatched(who) };
            }
            State::Waiting => panic!("a claim of what waits is not good"),
        }
    }

    async fn finish(&mut self) {
        let Some((id, claim)) = self.pick() else { return };
        let forced = self.chance.below(4) == 0;
        let job = self.jobs.get_mut(&id).unwrap();
        let end = if forced { TurnEnd { status: Status::Cancelled, ..ended(&id, "") } } else { by(&claim) };
        let status = end.status;
        let outcome = self.t.finish(end).await;
        match job.state {
            State::Ended(status) => assert!(matches!(outcome, Err(Error::Ended { status: found }) if found == status)),
            _ if forced || job.is_good(&claim) => {
                outcome.unwrap();
                job.state = State::Ended(status);
            }
            _ => assert!(matches!(outcome, Err(Error::Lost)), "{outcome:?}"),
        }
    }

    async fn cancel(&mut self) {
        let Some((id, _)) = self.pick() else { return };
        let outcome = self.t.ask_to_cancel(&id).await;
        let job = self.jobs.get_mut(&id).unwrap();
        match job.state {
            State::Ended(_) => assert!(matches!(outcome, Err(Error::Ended { .. }))),
            State::Waiting => assert_eq!(outcome.unwrap(), Runs::Nobody),
            State::Claimed(who) | State::Dispatched(who) => {
                assert_eq!(outcome.unwrap(), Runs::By(self.workers[who]));
            }
        }
        job.cancel |= !matches!(job.state, State::Ended(_));
    }

    /// All leases of one worker run out, and the other one looks.
    async fn lose_a_worker(&mut self) {
        let (gone, me) = if self.chance.below(2) == 0 { (0, 1) } else { (1, 0) };
        let beats = self.store.heartbeat(&self.workers[gone], Duration::ZERO).await.unwrap();
        let belongs = |job: &Job| match job.state {
            State::Waiting => !job.anybody && job.owner == gone,
            State::Claimed(who) | State::Dispatched(who) => who == gone,
            State::Ended(_) => false,
        };
        let mut expected: Vec<(String, i64, bool)> = self
            .jobs
            .iter()
            .filter(|(_, job)| belongs(job))
            .map(|(id, job)| (id.clone(), job.attempt, job.cancel))
            .collect();
        let mut found: Vec<(String, i64, bool)> =
            beats.into_iter().map(|beat| (beat.response_id, beat.attempt, beat.cancel)).collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected);
        let recovered = self.store.recover(&self.workers[me], 1_000, LEASE).await.unwrap();
        let mut requeued = 0;
        let mut taken: Vec<&str> = Vec::new();
        for (id, job) in &mut self.jobs {
            if !belongs(job) {
                continue;
            }
            if job.anybody && !job.cancel && matches!(job.state, State::Claimed(_)) {
                requeued += 1;
                job.state = State::Waiting;
            } else {
                job.attempt += 1;
                job.state = State::Dispatched(me);
                let mine = recovered.abandoned.iter().find(|found| found.claim.response_id() == id).unwrap();
                assert_eq!((mine.claim.attempt(), mine.next_event, mine.cancel), (job.attempt, job.events, job.cancel));
                job.claims.push(mine.claim.clone());
                taken.push(id);
            }
        }
        assert_eq!((recovered.requeued, recovered.abandoned.len()), (requeued, taken.len()));
    }

    async fn check(&mut self) {
        for (id, job) in &self.jobs {
            let page = self.t.events_after(id, None, EventLimits { events: 10_000, bytes: usize::MAX }).await.unwrap();
            assert_eq!(page.events.len() as u64, job.events, "{id}");
            match job.state {
                State::Ended(status) => assert_eq!(page.status, status, "{id}"),
                _ => self.t.finish(ended(id, "")).await.unwrap(),
            }
        }
        for worker in &self.workers {
            assert!(self.store.heartbeat(worker, LEASE).await.unwrap().is_empty());
        }
        let ended = self.jobs.values().filter(|job| matches!(job.state, State::Ended(_))).count();
        assert!(ended > 20, "only {ended} of {} ended", self.jobs.len());
    }
}
