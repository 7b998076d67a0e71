//! What every backend promises of jobs.

use std::time::Duration;

use bytes::Bytes;
use store::{
    Abandoned, Begun, Claim, ClaimedJob, Error, EventLimits, JobKind, JobLimits, Log, NewConversation, NewEvents,
    NewJob, NewNotice, NewTurn, Parent, Runs, Status, Store, Tenanted, TurnEnd, Worker,
};
use tokio::task::JoinSet;

use crate::make::{history, items, names, tenant, turn};
use crate::turns::{begun, ended, events};

const LEASE: Duration = Duration::from_mins(1);
/// A lease that has run out when it begins: its worker is gone.
const OVER: Duration = Duration::ZERO;
pub(crate) const MANY: JobLimits = JobLimits { running: 1_000, queued: 1_000 };
const ALL: EventLimits = EventLimits { events: 1_000, bytes: usize::MAX };

pub(crate) fn worker() -> Worker {
    Worker::random().unwrap()
}

pub(crate) fn background() -> NewJob {
    NewJob { kind: JobKind::Background, request: Some(Bytes::from_static(b"request")) }
}

/// One whose request is written nowhere.
fn secret() -> NewJob {
    NewJob { request: None, ..background() }
}

pub(crate) fn foreground() -> NewJob {
    NewJob { kind: JobKind::Foreground, ..background() }
}

pub(crate) fn claimed(begun: Begun) -> Claim {
    match begun {
        Begun::Claimed(claim) => claim,
        Begun::Queued => panic!("it waits"),
    }
}

/// A background job that is claimed at once.
pub(crate) async fn begin(t: &Tenanted, id: &str, worker: &Worker, lease: Duration) -> Claim {
    claimed(t.begin_job(begun(id, "u"), background(), worker, MANY, lease).await.unwrap())
}

/// Everything of these tenants that waits. Cases share a store, so others' jobs may be among them: there are none, since
/// every case ends what it begins.
async fn claim_all(store: &Store, worker: &Worker, limits: JobLimits) -> Vec<ClaimedJob> {
    store.claim(worker, limits, 1_000, LEASE).await.unwrap()
}

fn ids(jobs: &[ClaimedJob]) -> String {
    let ids: Vec<&str> = jobs.iter().map(|job| job.claim.response_id()).collect();
    ids.join(" ")
}

/// An end by whoever has this claim.
pub(crate) fn by(claim: &Claim) -> TurnEnd {
    TurnEnd { claim: Some(claim.clone()), ..ended(claim.response_id(), "a") }
}

async fn status(t: &Tenanted, id: &str) -> Status {
    t.response(id).await.unwrap().status
}

fn is_lost(outcome: &Result<(), Error>) {
    assert!(matches!(outcome, Err(Error::Lost)), "{outcome:?}");
}

/// What is to be said last, after all that was said before; nothing without a log.
pub(crate) async fn terminal(t: &Tenanted, id: &str) -> Option<NewEvents> {
    let page = t.events_after(id, None, ALL).await.unwrap();
    let first = page.events.len() as u64;
    (page.log == Log::Kept).then(|| events(first, &[&format!("last{first}"), "end"]))
}

async fn log(t: &Tenanted, id: &str) -> String {
    let page = t.events_after(id, None, ALL).await.unwrap();
    let text = |event: &store::Event| format!("{}:{}", event.sequence, String::from_utf8_lossy(&event.json));
    page.events.iter().map(text).collect::<Vec<_>>().join(" ")
}

async fn recover(store: &Store, worker: &Worker) -> Vec<Abandoned> {
    store.recover(worker, 1_000, LEASE).await.unwrap().abandoned
}

pub(crate) async fn a_job_is_begun_dispatched_and_finished(store: Store) {
    let (t, me) = (tenant(&store, "job"), worker());
    let claim = begin(&t, "r", &me, LEASE).await;
    assert_eq!((claim.response_id(), claim.attempt(), claim.worker()), ("r", 1, me));
    assert_eq!(status(&t, "r").await, Status::Queued);
    assert!(claim_all(&store, &me, MANY).await.is_empty(), "it does not wait");
    t.append_events("r", &events(0, &["a"]), Some(&claim)).await.unwrap();
    for _ in 0..2 {
        t.dispatch(&claim).await.unwrap();
        assert_eq!(status(&t, "r").await, Status::InProgress);
    }
    t.append_events("r", &events(1, &["b"]), Some(&claim)).await.unwrap();
    t.finish(TurnEnd { events: Some(events(2, &["c"])), ..by(&claim) }).await.unwrap();
    assert_eq!((log(&t, "r").await.as_str(), status(&t, "r").await), ("0:a 1:b 2:c", Status::Completed));
    assert_eq!(history(&t, "r").await.unwrap(), "u a");
    assert!(store.heartbeat(&me, LEASE).await.unwrap().is_empty(), "the job is over");
    for refused in [
        t.finish(by(&claim)).await,
        t.dispatch(&claim).await,
        t.append_events("r", &events(3, &["d"]), Some(&claim)).await,
        t.ask_to_cancel("r").await.map(drop),
    ] {
        assert!(matches!(refused, Err(Error::Ended { status: Status::Completed })), "{refused:?}");
    }
    for (kind, status) in [(background(), Status::InProgress), (foreground(), Status::Queued)] {
        let refused = t.begin_job(NewTurn { status, ..begun("w", "u") }, kind, &me, MANY, LEASE).await;
        assert!(matches!(refused, Err(Error::WrongStatus { .. })), "{refused:?}");
    }
    let taken = t.begin_job(begun("r", "u"), background(), &me, MANY, LEASE).await;
    assert!(matches!(taken, Err(Error::Conflict)), "{taken:?}");
    let (other, unknown) = (tenant(&store, "job of another"), Claim::clone(&claim));
    for refused in [other.dispatch(&unknown).await, other.finish(by(&claim)).await] {
        assert!(matches!(refused, Err(Error::NotFound)), "{refused:?}");
    }
}

/// The exact number runs, whoever begins them and however many at once; the others wait in order, and no more than may.
pub(crate) async fn a_tenant_runs_and_queues_no_more_than_it_may(store: Store) {
    let (t, me) = (tenant(&store, "caps"), worker());
    let limits = JobLimits { running: 3, queued: 4 };
    let mut tasks = JoinSet::new();
    for n in 0..20 {
        let t = t.clone();
        tasks
            .spawn(async move { t.begin_job(begun(&format!("r{n:02}"), "u"), background(), &me, limits, LEASE).await });
    }
    let outcomes = tasks.join_all().await;
    let running: Vec<Claim> =
        outcomes.iter().flatten().filter(|begun| **begun != Begun::Queued).cloned().map(claimed).collect();
    let refused = outcomes.iter().filter(|outcome| matches!(outcome, Err(Error::QueueFull))).count();
    assert_eq!((running.len(), refused), (3, 13));
    let (queued, two) = (store.jobs_queued(1000).await.unwrap(), store.jobs_queued(2).await.unwrap());
    assert!(queued >= 4 && two == 2, "{queued} wait, and of those {two} are counted");
    // Those that were refused left nothing behind.
    let mut found = 0;
    for n in 0..20 {
        found += usize::from(t.response(&format!("r{n:02}")).await.is_ok());
    }
    assert_eq!(found, 7);
    // A tenant of its own has places of its own, and what runs in the foreground needs none.
    let other = tenant(&store, "caps of another");
    let claim = claimed(other.begin_job(begun("r00", "u"), background(), &me, limits, LEASE).await.unwrap());
    other.finish(by(&claim)).await.unwrap();
    let turn = NewTurn { status: Status::InProgress, ..begun("now", "u") };
    let now = claimed(t.begin_job(turn, foreground(), &me, limits, LEASE).await.unwrap());
    assert!(claim_all(&store, &me, limits).await.is_empty(), "no place is free");
    t.finish(by(&now)).await.unwrap();
    assert!(claim_all(&store, &me, limits).await.is_empty(), "it had no place to give back");
    t.finish(by(&running[0])).await.unwrap();
    // Whoever comes now goes behind those that wait.
    assert!(matches!(t.begin_job(begun("late", "u"), background(), &me, limits, LEASE).await, Err(Error::QueueFull)));
    let mut next = claim_all(&store, &me, limits).await;
    assert_eq!(next.len(), 1);
    // What has a place and has reached nobody may wait for something else, and counts until then.
    assert!(matches!(t.begin_job(begun("late", "u"), background(), &me, limits, LEASE).await, Err(Error::QueueFull)));
    t.dispatch(&next[0].claim).await.unwrap();
    let late = t.begin_job(begun("late", "u"), background(), &me, limits, LEASE).await.unwrap();
    assert_eq!(late, Begun::Queued);
    let mut order = vec![next.remove(0).claim];
    for claim in &running[1..] {
        t.finish(by(claim)).await.unwrap();
    }
    while let Some(claim) = order.last().cloned() {
        t.finish(by(&claim)).await.unwrap();
        order.extend(claim_all(&store, &me, JobLimits { running: 1, ..limits }).await.into_iter().map(|job| job.claim));
        if order.last() == Some(&claim) {
            break;
        }
    }
    assert_eq!((order.len(), order.last().unwrap().response_id()), (5, "late"));
}

pub(crate) async fn jobs_that_wait_are_claimed_oldest_first(store: Store) {
    let (me, other) = (worker(), worker());
    let none = JobLimits { running: 0, queued: 100 };
    let (a, b) = (tenant(&store, "queue a"), tenant(&store, "queue b"));
    for (t, id, job) in
        [(&a, "a0", background()), (&b, "b0", secret()), (&a, "a1", background()), (&b, "b1", background())]
    {
        assert_eq!(t.begin_job(begun(id, "u"), job, &me, none, LEASE).await.unwrap(), Begun::Queued);
    }
    a.append_events("a1", &events(0, &["queued", "more"]), None).await.unwrap();
    assert_eq!(a.ask_to_cancel("a1").await.unwrap(), Runs::Nobody);
    assert!(claim_all(&store, &other, none).await.is_empty());
    let limits = JobLimits { running: 2, queued: 100 };
    let first = store.claim(&other, limits, 1, LEASE).await.unwrap();
    assert_eq!(ids(&first), "a0");
    assert_eq!((first[0].tenant.name(), first[0].request.as_deref()), ("queue a", Some(&b"request"[..])));
    assert_eq!((first[0].has_log, first[0].next_event, first[0].cancel), (true, 0, false));
    assert_eq!(first[0].created_at, 1_700_000_000_000);
    // What only its worker can run is not for others; what stands after it is.
    let rest = claim_all(&store, &other, limits).await;
    assert_eq!(ids(&rest), "a1 b1");
    assert_eq!((rest[0].next_event, rest[0].cancel, rest[1].cancel), (2, true, false));
    let own = claim_all(&store, &me, limits).await;
    assert_eq!((ids(&own).as_str(), own[0].request.is_none()), ("b0", true));
    assert_eq!(a.ask_to_cancel("a0").await.unwrap(), Runs::By(other));
    for job in first.iter().chain(&rest).chain(&own) {
        store.for_tenant(job.tenant.clone()).finish(by(&job.claim)).await.unwrap();
    }
}

pub(crate) async fn a_heartbeat_lists_what_is_still_its_own(store: Store) {
    let (t, me) = (tenant(&store, "beats"), worker());
    let (one, two) = (begin(&t, "one", &me, LEASE).await, begin(&t, "two", &me, LEASE).await);
    let turn = NewTurn { status: Status::InProgress, ..begun("three", "u") };
    let three = claimed(t.begin_job(turn, foreground(), &me, MANY, LEASE).await.unwrap());
    let waits = JobLimits { running: 0, queued: 9 };
    assert_eq!(t.begin_job(begun("waits", "u"), secret(), &me, waits, LEASE).await.unwrap(), Begun::Queued);
    t.ask_to_cancel("two").await.unwrap();
    let mut beats = store.heartbeat(&me, LEASE).await.unwrap();
    beats.sort_by(|a, b| a.response_id.cmp(&b.response_id));
    let shown: Vec<(&str, i64, bool)> =
        beats.iter().map(|beat| (beat.response_id.as_str(), beat.attempt, beat.cancel)).collect();
    assert_eq!(shown, [("one", 1, false), ("three", 1, false), ("two", 1, true), ("waits", 1, false)]);
    assert!(beats.iter().all(|beat| beat.tenant.name() == "beats"));
    assert!(store.heartbeat(&worker(), LEASE).await.unwrap().is_empty());
    // A lease that ran out is extended as long as nobody took the job.
    store.heartbeat(&me, OVER).await.unwrap();
    store.heartbeat(&me, LEASE).await.unwrap();
    assert!(recover(&store, &worker()).await.is_empty());
    for claim in [one, two, three] {
        t.finish(by(&claim)).await.unwrap();
    }
    t.finish(ended("waits", "")).await.unwrap();
    assert!(store.heartbeat(&me, LEASE).await.unwrap().is_empty());
}

/// A worker that froze and comes back can do nothing for a turn that somebody else took over.
pub(crate) async fn jobs_of_lost_workers_are_taken_over(store: Store) {
    let (t, gone, me) = (tenant(&store, "lost"), worker(), worker());
    let claim = begin(&t, "undispatched", &gone, OVER).await;
    let found = store.recover(&me, 1_000, LEASE).await.unwrap();
    assert_eq!((found.abandoned.len(), found.requeued), (0, 1));
    // While it waits, and when another runs it.
    for refused in [
        t.dispatch(&claim).await,
        t.append_events("undispatched", &events(0, &["x"]), Some(&claim)).await,
        t.finish(by(&claim)).await,
    ] {
        is_lost(&refused);
    }
    assert_eq!(t.ask_to_cancel("undispatched").await.unwrap(), Runs::Nobody);
    let again = claim_all(&store, &me, MANY).await;
    assert_eq!((ids(&again).as_str(), again[0].claim.attempt(), again[0].cancel), ("undispatched", 2, true));
    is_lost(&t.dispatch(&claim).await);
    is_lost(&t.finish(by(&claim)).await);
    assert!(store.heartbeat(&gone, LEASE).await.unwrap().is_empty());
    t.dispatch(&again[0].claim).await.unwrap();
    t.finish(by(&again[0].claim)).await.unwrap();

    let dispatched = begin(&t, "dispatched", &gone, LEASE).await;
    t.dispatch(&dispatched).await.unwrap();
    t.append_events("dispatched", &events(0, &["a", "b"]), Some(&dispatched)).await.unwrap();
    let turn = NewTurn { status: Status::InProgress, ..begun("foreground", "u") };
    let fore = claimed(t.begin_job(NewTurn { events: None, ..turn }, foreground(), &gone, MANY, LEASE).await.unwrap());
    let hidden = claimed(t.begin_job(begun("secret", "u"), secret(), &gone, MANY, LEASE).await.unwrap());
    let asked = begin(&t, "asked", &gone, LEASE).await;
    t.ask_to_cancel("asked").await.unwrap();
    let waits = JobLimits { running: 0, queued: 9 };
    assert_eq!(t.begin_job(begun("waits", "u"), secret(), &gone, waits, LEASE).await.unwrap(), Begun::Queued);
    assert!(recover(&store, &me).await.is_empty(), "their worker lives");
    store.heartbeat(&gone, OVER).await.unwrap();
    let mut found = recover(&store, &me).await;
    found.sort_by(|a, b| a.claim.response_id().cmp(b.claim.response_id()));
    let shown: Vec<_> = found
        .iter()
        .map(|job| {
            (job.claim.response_id(), job.claim.attempt(), job.dispatched, job.cancel, job.has_log, job.next_event)
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("asked", 2, false, true, true, 0),
            ("dispatched", 2, true, false, true, 2),
            ("foreground", 2, true, false, false, 0),
            ("secret", 2, false, false, true, 0),
            ("waits", 2, false, false, true, 0),
        ]
    );
    assert_eq!(found[1].response.status, Status::InProgress);
    assert!(recover(&store, &worker()).await.is_empty(), "each is one worker's to end");
    for claim in [&dispatched, &fore, &hidden, &asked] {
        is_lost(&t.finish(by(claim)).await);
    }
    for job in &found {
        let id = job.claim.response_id();
        let events = terminal(&t, id).await;
        let end = TurnEnd { status: Status::Failed, events, output: Vec::new(), ..by(&job.claim) };
        t.finish(end).await.unwrap();
        assert_eq!(status(&t, id).await, Status::Failed);
    }
    assert_eq!(log(&t, "dispatched").await, "0:a 1:b 2:last2 3:end");
    assert_eq!(log(&t, "asked").await, "0:last0 1:end");
    assert_eq!(log(&t, "foreground").await, "");
    assert!(matches!(t.finish(by(&dispatched)).await, Err(Error::Ended { .. })));
}

/// Who ends what others run: they lose it, and only one of all ends counts.
pub(crate) async fn an_end_without_a_claim_is_an_end(store: Store) {
    let (t, me) = (tenant(&store, "forced"), worker());
    let claim = begin(&t, "r", &me, LEASE).await;
    t.dispatch(&claim).await.unwrap();
    t.append_events("r", &events(0, &["a"]), Some(&claim)).await.unwrap();
    let last = terminal(&t, "r").await;
    let stale = TurnEnd { status: Status::Cancelled, events: Some(events(0, &["x"])), ..ended("r", "half") };
    assert!(matches!(t.finish(stale).await, Err(Error::OutOfOrder { expected: 1 })));
    t.finish(TurnEnd { status: Status::Cancelled, events: last, ..ended("r", "half") }).await.unwrap();
    assert_eq!(log(&t, "r").await, "0:a 1:last1 2:end");
    for refused in [t.append_events("r", &events(1, &["b"]), Some(&claim)).await, t.finish(by(&claim)).await] {
        assert!(matches!(refused, Err(Error::Ended { status: Status::Cancelled })), "{refused:?}");
    }
    assert!(store.heartbeat(&me, LEASE).await.unwrap().is_empty());
    // Without a log there is nothing to append to, and one who believes that there is is told.
    t.begin(NewTurn { events: None, ..begun("silent", "u") }).await.unwrap();
    let refused = t.append_events("silent", &events(0, &["a"]), None).await;
    assert!(matches!(refused, Err(Error::NoLog)), "{refused:?}");
    let refused = t.finish(TurnEnd { events: Some(events(0, &["a"])), ..ended("silent", "a") }).await;
    assert!(matches!(refused, Err(Error::NoLog)), "{refused:?}");
    is_lost(&t.finish(TurnEnd { claim: Some(claim.clone()), ..ended("silent", "a") }).await);
    t.finish(ended("silent", "a")).await.unwrap();
    // Many at once, with claims and without.
    for round in 0..4 {
        let id = format!("race{round}");
        let claim = begin(&t, &id, &me, LEASE).await;
        t.dispatch(&claim).await.unwrap();
        let mut tasks = JoinSet::new();
        for n in 0..8 {
            let (t, id, claim) = (t.clone(), id.clone(), (n % 2 == 0).then(|| claim.clone()));
            let end = TurnEnd { claim, events: terminal(&t, &id).await, ..ended(&id, &format!("a{n}")) };
            tasks.spawn(async move { (n, t.finish(end).await) });
            if n == 4 {
                let t = tenant(&store, "forced");
                tasks.spawn(async move { (99, t.ask_to_cancel(&format!("race{round}")).await.and(Err(Error::Lost))) });
            }
        }
        let won: Vec<i32> =
            tasks.join_all().await.into_iter().filter(|(_, outcome)| outcome.is_ok()).map(|(n, _)| n).collect();
        assert_eq!(won.len(), 1);
        assert_eq!(history(&t, &id).await.unwrap(), format!("u a{}", won[0]));
        assert_eq!(log(&t, &id).await, "0:last0 1:end");
    }
}

pub(crate) async fn a_conversation_is_held_as_long_as_its_job(store: Store) {
    let (t, me) = (tenant(&store, "held"), worker());
    let metadata = Bytes::from_static(b"{}");
    let new = NewConversation { id: "c".into(), created_at: 1, metadata, items: items("c0") };
    t.create_conversation(new).await.unwrap();
    let none = JobLimits { running: 0, queued: 9 };
    for (n, status) in [Status::Completed, Status::Failed, Status::Cancelled].into_iter().enumerate() {
        let lease = t.begin_turn("c", OVER).await.unwrap();
        let id = format!("r{n}");
        let within = NewTurn { parent: Parent::Conversation(lease), ..begun(&id, "u") };
        assert_eq!(t.begin_job(within, background(), &me, none, LEASE).await.unwrap(), Begun::Queued);
        // Long after the lease itself ran out.
        assert!(matches!(t.begin_turn("c", LEASE).await, Err(Error::Locked)));
        assert!(matches!(t.append_items("c", items("x")).await, Err(Error::Locked)));
        let jobs = claim_all(&store, &me, MANY).await;
        assert_eq!(jobs[0].lease.as_ref().unwrap().conversation(), "c");
        t.dispatch(&jobs[0].claim).await.unwrap();
        // Whoever ends the turn need not know the lease.
        t.finish(TurnEnd { status, ..ended(&id, "a") }).await.unwrap();
    }
    assert_eq!(names(&t.conversation_history("c").await.unwrap()), "c0 u a", "what failed is not in it");
    let lease = t.begin_turn("c", LEASE).await.unwrap();
    t.end_turn(&lease).await.unwrap();
}

pub(crate) async fn a_background_job_is_not_deleted_while_it_is_there(store: Store) {
    let (t, me) = (tenant(&store, "undeletable"), worker());
    let none = JobLimits { running: 0, queued: 9 };
    let claim = begin(&t, "runs", &me, LEASE).await;
    t.begin_job(begun("waits", "u"), background(), &me, none, LEASE).await.unwrap();
    for id in ["waits", "runs"] {
        assert!(matches!(t.delete_response(id).await, Err(Error::Running)), "{id}");
        assert_eq!(history(&t, id).await.unwrap(), "u");
    }
    t.finish(by(&claim)).await.unwrap();
    t.finish(ended("waits", "")).await.unwrap();
    for id in ["waits", "runs"] {
        t.delete_response(id).await.unwrap();
    }
    let turn = NewTurn { status: Status::InProgress, ..begun("fore", "u") };
    let fore = claimed(t.begin_job(turn, foreground(), &me, MANY, LEASE).await.unwrap());
    t.delete_response("fore").await.unwrap();
    assert!(matches!(t.finish(by(&fore)).await, Err(Error::NotFound)));
    assert!(store.heartbeat(&me, LEASE).await.unwrap().is_empty(), "the job went with it");
    // A sweep takes it along, too.
    let turn = NewTurn { expires_at: Some(1_000), ..begun("swept", "u") };
    t.begin_job(turn, background(), &me, MANY, LEASE).await.unwrap();
    while store.sweep(1_000, 100).await.unwrap() > 0 {}
    assert!(store.heartbeat(&me, LEASE).await.unwrap().is_empty());
}

pub(crate) async fn a_log_is_dropped_and_its_last_number_kept(store: Store) {
    let at = |now: i64| tenant(&store.clone().with_clock(store::Clock::new(move || now)), "drop");
    let t = at(0);
    // Those of other cases.
    while store.sweep_logs(i64::MAX, 1_000).await.unwrap() > 0 {}
    let page = async |id: &str| {
        let page = t.events_after(id, None, ALL).await.unwrap();
        (page.log, page.events.len())
    };
    t.begin(begun("runs", "u")).await.unwrap();
    t.append_events("runs", &events(0, &["a"]), None).await.unwrap();
    for (id, ends, last) in [("early", 100, "a b c"), ("late", 200, "a b"), ("empty", 100, "")] {
        t.begin(begun(id, "u")).await.unwrap();
        let last: Vec<&str> = last.split_whitespace().collect();
        at(ends).finish(TurnEnd { events: Some(events(0, &last)), ..ended(id, "x") }).await.unwrap();
    }
    t.put(NewTurn { events: Some(events(0, &["a"])), ..turn("whole", "u", "a") }).await.unwrap();
    t.put(turn("none", "u", "a")).await.unwrap();
    assert_eq!(page("none").await, (Log::None, 0));
    assert_eq!(page("whole").await, (Log::Kept, 1));
    assert_eq!(store.sweep_logs(101, 1).await.unwrap(), 1);
    assert_eq!(store.sweep_logs(101, 1_000).await.unwrap(), 2);
    assert_eq!(store.sweep_logs(101, 1_000).await.unwrap(), 0);
    for (id, expected) in [
        ("runs", (Log::Kept, 1)),
        ("early", (Log::Dropped { last: 2 }, 0)),
        ("late", (Log::Kept, 2)),
        ("empty", (Log::None, 0)),
        ("whole", (Log::Dropped { last: 0 }, 0)),
    ] {
        assert_eq!(page(id).await, expected, "{id}");
    }
    assert_eq!(history(&t, "early").await.unwrap(), "u x");
    t.append_events("runs", &events(1, &["b"]), None).await.unwrap();
    t.finish(ended("runs", "")).await.unwrap();
    while store.sweep_logs(1_000, 1).await.unwrap() > 0 {}
    assert_eq!(page("runs").await, (Log::Dropped { last: 1 }, 0));
    let refused = t.put(NewTurn { events: Some(events(1, &["a"])), ..turn("gap", "u", "a") }).await;
    assert!(matches!(refused, Err(Error::OutOfOrder { expected: 0 })), "{refused:?}");
}

pub(crate) async fn notices_are_given_out_until_they_are_done(store: Store) {
    let t = tenant(&store, "notices");
    let notice = |id: &str| NewNotice { id: id.into(), endpoint: "https://x".into(), body: Bytes::from_static(b"{}") };
    t.begin(begun("r", "u")).await.unwrap();
    let end = TurnEnd { notices: vec![notice("n1"), notice("n2")], ..ended("r", "a") };
    t.finish(end.clone()).await.unwrap();
    assert!(matches!(t.finish(end).await, Err(Error::Ended { .. })));
    let due = async |most, lease| {
        let mut found = store.due_notices(most, lease).await.unwrap();
        found.sort_by(|a, b| a.id.cmp(&b.id));
        found
    };
    let first = due(1, LEASE).await;
    let second = due(9, LEASE).await;
    assert_eq!((first.len(), second.len()), (1, 1), "each is one sender's");
    assert!(due(9, LEASE).await.is_empty());
    let all: Vec<&store::Notice> = first.iter().chain(&second).collect();
    for notice in &all {
        assert_eq!(
            (notice.tenant.name(), notice.endpoint.as_str(), &notice.body[..]),
            ("notices", "https://x", &b"{}"[..])
        );
        assert_eq!(notice.tries, 1);
        store.notice_retry(notice, Duration::ZERO).await.unwrap();
    }
    let again = due(9, OVER).await;
    assert_eq!(
        again.iter().map(|notice| (notice.id.as_str(), notice.tries)).collect::<Vec<_>>(),
        [("n1", 2), ("n2", 2)]
    );
    store.notice_done(&again[0]).await.unwrap();
    store.notice_retry(&again[0], Duration::ZERO).await.unwrap();
    let left = due(9, LEASE).await;
    assert_eq!(left.iter().map(|notice| (notice.id.as_str(), notice.tries)).collect::<Vec<_>>(), [("n2", 3)]);
    store.notice_done(&left[0]).await.unwrap();
    store.notice_done(&left[0]).await.unwrap();
    assert!(due(9, LEASE).await.is_empty());
}
