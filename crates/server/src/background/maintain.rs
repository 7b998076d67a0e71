//! What is done for background turns besides running them: their claims are extended, those of processes that are gone are
//! taken over or ended, those that wait get the places that became free.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bridge::{Failure, FailureClass};
use bytes::Bytes;
use http::HeaderMap;
use store::{Abandoned, Beat, Claim, ClaimedJob, StoredResponse, Tenant};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};
use wire::id::Id;
use wire::json::{Raw, Text};

use super::{Ending, drive, end, envelope};
use crate::access::{Earlier, Grant};
use crate::account::Outcome;
use crate::app::App;
use crate::caller::Caller;
use crate::client::Client;
use crate::error::ApiError;
use crate::jobs::{Job, Order, Running};
use crate::request::RequestContext;
use crate::session::{LEASE, Session};

/// How long keys that cannot be looked at are waited for.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(500);

/// How often claims are extended.
const BEAT: Duration = Duration::from_secs(5);
/// After so long without having been able to, this process gives its turns up: before anybody else may take them.
const GIVE_UP: Duration = Duration::from_secs(20);
/// How often a database that others share is looked through for what they left.
const RECOVER: Duration = Duration::from_secs(5);
/// How often it is looked through for turns that wait.
const LOOK: Duration = Duration::from_secs(1);
/// After this long, what was claimed runs.
const JUST_CLAIMED: Duration = Duration::from_secs(2);
/// At once.
const BATCH: usize = 16;

/// Runs for as long as the server does. Claims are extended beside all else: what others left may be much, and whoever is
/// busy with it must not lose what it has.
pub(crate) async fn maintain(app: Arc<App>) {
    let hints = app.runtime.sessions.hints();
    let (shared, extended) = (hints.is_some(), watch::Sender::new(false));
    tokio::join!(extend(&app, hints, &extended), take(&app, shared, extended.subscribe()));
}

/// Extends the claims of this process, and hears what others did to its turns. Says each time whether the store took it.
async fn extend(app: &Arc<App>, mut hints: Option<mpsc::Receiver<String>>, extended: &watch::Sender<bool>) {
    let mut claims = Claims { extended: Instant::now(), unattended: HashMap::new() };
    let mut beat = ticks(BEAT);
    loop {
        tokio::select! {
            Some(id) = hint(&mut hints) => {
                app.runtime.live.ring(&id);
                if app.runtime.jobs.find(&id).is_none() {
                    continue;
                }
            }
            () = app.runtime.jobs.check_claims.notified() => {}
            _ = beat.tick() => {}
        }
        extended.send_replace(claims.beat(app).await);
    }
}

/// Takes what waits, and what processes that are gone have left; again and again, where others share the database.
async fn take(app: &Arc<App>, shared: bool, mut extended: watch::Receiver<bool>) {
    let [mut recover, mut look] = [RECOVER, LOOK].map(ticks);
    let mut recovered = false;
    loop {
        tokio::select! {
            () = app.runtime.jobs.place_free.notified() => {}
            // What a file has of others was left by those who had it before.
            _ = recover.tick(), if shared || !recovered => {
                recovered = self::recover(app, &mut extended).await;
            }
            _ = look.tick(), if shared => {}
        }
        claim(app).await;
    }
}

fn ticks(every: Duration) -> Interval {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

async fn hint(hints: &mut Option<mpsc::Receiver<String>>) -> Option<String> {
    match hints {
        Some(hints) => hints.recv().await,
        None => std::future::pending().await,
    }
}

/// What is known of this process's claims.
struct Claims {
    /// When they were extended last.
    extended: Instant,
    /// Turns that the store has as this process's, and that do not run here: since when that is known.
    unattended: HashMap<String, Instant>,
}

impl Claims {
    /// Extends them. Whether the store took it: if not, they may be anybody's.
    async fn beat(&mut self, app: &Arc<App>) -> bool {
        let jobs = &app.runtime.jobs;
        let without_end = jobs.without_end.swap(false, Ordering::Relaxed);
        let idle = jobs.running().is_empty() && !app.runtime.keys.any() && self.unattended.is_empty();
        if idle && !without_end && jobs.secret().is_empty() {
            self.extended = Instant::now();
            return true;
        }
        // Before the store is asked: what is entered meanwhile is not missing from the answer.
        let mine: Vec<_> = jobs.running().iter().map(|(id, running)| (id.clone(), Arc::clone(running))).collect();
        let waiting: Vec<String> = jobs.secret().stored();
        match app.runtime.sessions.heartbeat(&jobs.worker, LEASE).await {
            Ok(beats) => {
                self.extended = Instant::now();
                tell(&mine, &beats);
                // Another process has ended them.
                let claimed: HashSet<&str> = beats.iter().map(|beat| &*beat.response_id).collect();
                for id in waiting.iter().filter(|id| !claimed.contains(&***id)) {
                    jobs.secret().remove(id);
                }
                self.end_unattended(app, beats).await;
                true
            }
            Err(error) => {
                tracing::warn!(%error, "the claims of background responses could not be extended");
                jobs.without_end.fetch_or(without_end, Ordering::Relaxed);
                if self.extended.elapsed() > GIVE_UP {
                    for (_, running) in mine {
                        running.tell(Order::Leave);
                    }
                }
                false
            }
        }
    }

    /// A turn whose task is gone, as one that panicked, gets an end. What was only just claimed is left alone.
    async fn end_unattended(&mut self, app: &Arc<App>, beats: Vec<Beat>) {
        let jobs = &app.runtime.jobs;
        let attended = |id: &str| jobs.find(id).is_some() || jobs.secret().has(id);
        let before = std::mem::take(&mut self.unattended);
        for beat in beats.into_iter().filter(|beat| !attended(&beat.response_id)) {
            let since = before.get(&beat.response_id).copied().unwrap_or_else(Instant::now);
            if since.elapsed() > JUST_CLAIMED {
                let session = app.runtime.sessions.of(beat.tenant);
                if end(&session, &beat.response_id, None, ending(beat.cancel)).await.is_ok() {
                    continue;
                }
            }
            self.unattended.insert(beat.response_id, since);
        }
    }
}

/// Tells the turns that run here what became of them in the store.
fn tell(mine: &[(String, Arc<Running>)], beats: &[Beat]) {
    let beats: HashMap<&str, &Beat> = beats.iter().map(|beat| (&*beat.response_id, beat)).collect();
    for (id, running) in mine {
        match beats.get(&**id).filter(|beat| beat.attempt == running.attempt) {
            Some(beat) if beat.cancel => running.tell(Order::Cancel),
            Some(_) => {}
            None => running.tell(Order::Leave),
        }
    }
}

/// The end of a turn that nobody runs any more.
fn ending(cancel: bool) -> Ending {
    if cancel {
        return Ending::Cancelled;
    }
    let message = "The process that made this response ended before it was whole.";
    Ending::Failed(Failure::new(FailureClass::Lost, message))
}

/// Ends or requeues what processes that are gone have left. Whether nothing is left of it.
async fn recover(app: &Arc<App>, extended: &mut watch::Receiver<bool>) -> bool {
    loop {
        // A process that slept may itself be late: it takes nothing before it has what is its own.
        extended.mark_unchanged();
        app.runtime.jobs.check_claims.notify_one();
        if extended.changed().await.is_err() || !*extended.borrow_and_update() {
            return false;
        }
        let recovered = match app.runtime.sessions.recover(&app.runtime.jobs.worker, BATCH, LEASE).await {
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
            let session = app.runtime.sessions.of(tenant.clone());
            let ending = ending(cancel);
            match end(&session, &response.id, Some(claim), ending.clone()).await {
                Ok(()) => {
                    tracing::info!(response_id = response.id, "a response was ended whose process is gone");
                    enter(app, tenant, &response, &ending);
                }
                Err(error) => {
                    tracing::warn!(response_id = response.id, %error, "a response has no end yet");
                    app.runtime.jobs.without_end.store(true, Ordering::Relaxed);
                }
            }
        }
    }
}

/// Runs what waits and has a place.
async fn claim(app: &Arc<App>) {
    let background = &app.runtime.jobs;
    while !app.is_draining() {
        let claimed = app.runtime.sessions.claim(&background.worker, app.job_limits(), BATCH, LEASE).await;
        let Ok(claimed) = claimed else { return };
        let count = claimed.len();
        for job in claimed {
            run(app, job).await;
        }
        if count < BATCH {
            return;
        }
    }
}

/// Its end is entered into an account, for whoever looks at requests: that of who ran it, if anybody did, is gone.
fn enter(app: &Arc<App>, tenant: Tenant, response: &StoredResponse, ending: &Ending) {
    let object = Session::object(response).unwrap_or_default();
    let object = str::from_utf8(&object).ok().and_then(|text| Raw::parse(text).ok());
    let model = object.and_then(|object| object.get("model")?.text()).map(Text::decode);
    let nobody = Caller::earlier(tenant, None, Client::of(&HeaderMap::new()));
    let context = RequestContext::of_job(app, nobody, &response.id);
    if let Some(id) = Id::given(&response.id) {
        context.account.opened(&id, &model.unwrap_or_default());
    }
    context.account.ended(match ending {
        Ending::Failed(failure) => Outcome::Failed(failure.class),
        Ending::Cancelled => Outcome::Cancelled,
    });
}

/// Ends a turn that nobody will run.
async fn end_unrun(app: &Arc<App>, tenant: Tenant, claim: Claim, ending: Ending) {
    let id = claim.response_id().to_owned();
    let session = app.runtime.sessions.of(tenant.clone());
    match end(&session, &id, Some(claim), ending.clone()).await {
        Ok(()) => {
            if let Ok(Some(response)) = session.stored(&id).await {
                enter(app, tenant, &response, &ending);
            }
        }
        Err(error) => {
            tracing::warn!(response_id = id, %error, "a response has no end yet");
            app.runtime.jobs.without_end.store(true, Ordering::Relaxed);
        }
    }
    // Its place is another's.
    app.runtime.jobs.place_free.notify_one();
}

/// What whoever asked may do now, as soon as that can be said: a store that is away for a moment is no reason to refuse.
pub(super) async fn granted(
    app: &App,
    caller: &Caller,
    earlier: Option<&Earlier>,
) -> Result<Option<Arc<Grant>>, ApiError> {
    let began = Instant::now();
    loop {
        match still_granted(app, caller, earlier).await {
            Err(error) if error.status.is_server_error() && began.elapsed() < PATIENCE => {
                tokio::time::sleep(PAUSE).await;
            }
            granted => return granted,
        }
    }
}

/// What whoever asked may do now. What was asked for while nothing had to be shown is done as long as that is so, and what
/// the operator asked for is done; a key that was revoked or has expired meanwhile asks for nothing any more.
async fn still_granted(app: &App, caller: &Caller, earlier: Option<&Earlier>) -> Result<Option<Arc<Grant>>, ApiError> {
    let (access, tenant) = (&app.runtime.access, caller.tenant());
    let Some(earlier) = earlier else {
        return if caller.operates() { Ok(None) } else { access.still_open().map(|()| None) };
    };
    if let Ok(granted) = access.still(earlier, tenant) {
        return Ok(Some(granted));
    }
    // Another process may know the key for longer than this one.
    access.refresh().await.map_err(|error| ApiError::store(&error))?;
    access.still(earlier, tenant).map(Some)
}

async fn run(app: &Arc<App>, claimed: ClaimedJob) {
    let ClaimedJob { tenant, claim, request, has_log, next_event, created_at, cancel, .. } = claimed;
    let id = claim.response_id().to_owned();
    let kept: Option<Bytes> = app.runtime.jobs.secret().remove(&id);
    let opened = request.or(kept).as_ref().and_then(envelope::open);
    let (Some(opened), false) = (opened, cancel) else {
        return end_unrun(app, tenant, claim, ending(cancel)).await;
    };
    let asked = if opened.operates {
        Caller::operator(opened.client)
    } else {
        Caller::earlier(tenant.clone(), None, opened.client)
    };
    let grant = match granted(app, &asked, opened.grant.as_ref()).await {
        Ok(grant) => grant,
        Err(error) => {
            return end_unrun(app, tenant, claim, Ending::Failed(drive::failure(error))).await;
        }
    };
    let context = RequestContext::of_job(app, asked.with(grant), &opened.request_id);
    match app.runtime.presence.enter(context.caller.tenant()) {
        Ok(present) => context.account.works_for(present),
        // It is being erased; if that does not come about, whoever looks for jobs without an end finds it.
        Err(_) => return app.runtime.jobs.without_end.store(true, Ordering::Relaxed),
    }
    let limited = context.caller.grant().filter(|grant| grant.waits_in_line());
    let line = limited.map(|grant| Arc::new(app.runtime.jobs.lines.join(grant.limited_as(), created_at)));
    drive::spawn(context, opened.body, Job { claim, has_log, next_event, created_at, line });
}
