//! What is done for background turns besides running them: their claims are extended, those of processes that are gone are
//! taken over or ended, those that wait get the places that became free.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bridge::{Failure, FailureClass};
use bytes::Bytes;
use store::{Abandoned, Beat, ClaimedJob};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{Ending, drive, end, envelope};
use crate::app::App;
use crate::caller::Caller;
use crate::jobs::{Job, Order};
use crate::request::RequestContext;
use crate::session::LEASE;

/// How often claims are extended.
const BEAT: Duration = Duration::from_secs(5);
/// After so long without having been able to, this process gives its turns up: before anybody else may take them.
const GIVE_UP: Duration = Duration::from_secs(20);
/// How often a database that others share is looked through for what they left.
const RECOVER: Duration = Duration::from_secs(5);
/// How often it is looked through for turns that wait.
const LOOK: Duration = Duration::from_secs(1);
/// At once.
const SOME: usize = 16;

/// Runs for as long as the server does.
pub(crate) async fn maintain(app: Arc<App>) {
    let mut hints = app.runtime.sessions.hints();
    let shared = hints.is_some();
    let [mut beat, mut recover, mut look] = [BEAT, RECOVER, LOOK].map(|every| {
        let mut ticks = interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks
    });
    let background = Arc::clone(&app.runtime.jobs);
    let mut pulse = Pulse { last: Instant::now(), strange: HashSet::new() };
    let mut recovered = false;
    loop {
        tokio::select! {
            Some(id) = hint(&mut hints) => {
                app.runtime.live.ring(&id);
                if background.find(&id).is_some() {
                    pulse.beat(&app).await;
                }
            }
            () = background.place.notified() => claim(&app).await,
            () = background.look.notified() => pulse.beat(&app).await,
            _ = beat.tick() => pulse.beat(&app).await,
            // What a file has of others was left by those who had it before.
            _ = recover.tick(), if shared || !recovered => {
                recovered = self::recover(&app).await;
                // What waited before this process began waits still.
                claim(&app).await;
            }
            _ = look.tick(), if shared => claim(&app).await,
        }
    }
}

async fn hint(hints: &mut Option<mpsc::Receiver<String>>) -> Option<String> {
    match hints {
        Some(hints) => hints.recv().await,
        None => std::future::pending().await,
    }
}

/// What is known of this process's claims.
struct Pulse {
    /// When they were extended last.
    last: Instant,
    /// Turns that the store has as this process's, and that did not run here when it was last looked.
    strange: HashSet<String>,
}

impl Pulse {
    async fn beat(&mut self, app: &Arc<App>) {
        let background = &app.runtime.jobs;
        let idle = background.running().is_empty() && !app.runtime.keys.any() && self.strange.is_empty();
        if idle && !background.fell.swap(false, Ordering::Relaxed) && background.secret().is_empty() {
            self.last = Instant::now();
            return;
        }
        // Before the store is asked: what is entered meanwhile is not missing from the answer.
        let mine: Vec<_> = background.running().iter().map(|(id, running)| (id.clone(), Arc::clone(running))).collect();
        match app.runtime.sessions.heartbeat(&background.worker, LEASE).await {
            Ok(beats) => {
                self.last = Instant::now();
                for (id, running) in mine {
                    match beats.iter().find(|beat| beat.response_id == id && beat.attempt == running.attempt) {
                        Some(beat) if beat.cancel => running.tell(Order::Cancel),
                        Some(_) => {}
                        None => running.tell(Order::Leave),
                    }
                }
                self.end_strange(app, beats).await;
            }
            Err(error) => {
                tracing::warn!(%error, "the claims of background responses could not be extended");
                if self.last.elapsed() > GIVE_UP {
                    for (_, running) in mine {
                        running.tell(Order::Leave);
                    }
                }
            }
        }
    }

    /// A turn whose task is gone, as one that panicked, gets an end. What was only just claimed is left alone: it is looked at
    /// twice.
    async fn end_strange(&mut self, app: &Arc<App>, beats: Vec<Beat>) {
        let background = &app.runtime.jobs;
        let waiting = |beat: &Beat| background.secret().contains_key(&beat.response_id);
        let strange: Vec<Beat> =
            beats.into_iter().filter(|beat| background.find(&beat.response_id).is_none() && !waiting(beat)).collect();
        let before = std::mem::take(&mut self.strange);
        for beat in strange {
            if !before.contains(&beat.response_id) {
                self.strange.insert(beat.response_id);
                continue;
            }
            let session = app.runtime.sessions.of(beat.tenant);
            let _ = end(&session, &beat.response_id, None, Ending::Failed(lost())).await;
        }
    }
}

fn lost() -> Failure {
    Failure::new(FailureClass::Lost, "The process that made this response ended before it was whole.")
}

/// Ends or requeues what processes that are gone have left. Whether nothing is left of it.
async fn recover(app: &Arc<App>) -> bool {
    loop {
        let recovered = match app.runtime.sessions.recover(&app.runtime.jobs.worker, SOME, LEASE).await {
            Ok(recovered) => recovered,
            Err(error) => {
                tracing::warn!(%error, "what other processes left could not be looked for");
                return false;
            }
        };
        if recovered.abandoned.is_empty() && recovered.requeued == 0 {
            return true;
        }
        for Abandoned { tenant, claim, cancel, response, .. } in recovered.abandoned {
            let session = app.runtime.sessions.of(tenant);
            let ending = if cancel { Ending::Cancelled } else { Ending::Failed(lost()) };
            match end(&session, &response.id, Some(claim), ending).await {
                Ok(()) => tracing::info!(response_id = response.id, "a response was ended whose process is gone"),
                Err(error) => tracing::warn!(response_id = response.id, %error, "a response has no end yet"),
            }
        }
    }
}

/// Runs what waits and has a place.
async fn claim(app: &Arc<App>) {
    let background = &app.runtime.jobs;
    while !app.is_draining() {
        let claimed = app.runtime.sessions.claim(&background.worker, app.job_limits(), SOME, LEASE).await;
        let Ok(claimed) = claimed else { return };
        let count = claimed.len();
        for job in claimed {
            run(app, job).await;
        }
        if count < SOME {
            return;
        }
    }
}

async fn run(app: &Arc<App>, claimed: ClaimedJob) {
    let ClaimedJob { tenant, claim, request, has_log, next_event, created_at, cancel, .. } = claimed;
    let id = claim.response_id().to_owned();
    let kept: Option<Bytes> = app.runtime.jobs.secret().remove(&id);
    let opened = request.or(kept).as_ref().and_then(envelope::open);
    let (Some(opened), false) = (opened, cancel) else {
        let ending = if cancel { Ending::Cancelled } else { Ending::Failed(lost()) };
        let _ = end(&app.runtime.sessions.of(tenant), &id, Some(claim), ending).await;
        return;
    };
    let caller = Caller::new(tenant, opened.client);
    let context = RequestContext::of_job(app, caller, &opened.request_id);
    drive::spawn(context, opened.body, Job { claim, has_log, next_event, created_at });
}
