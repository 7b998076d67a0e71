//! What `/metrics` answers: what was counted, and what can be seen of the server at this moment. Who may ask for it.

mod format;
mod process;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header};
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;

use crate::account::LOST_LOG_LINES;
use crate::app::{App, Runtime, Snapshot};
use crate::body::Body;
use crate::config::Config;
use crate::error::{ApiError, Code};
use crate::metrics::{live, register};
use crate::token::TokenHash;
use format::Format;

/// How long the store is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// So many queued jobs are counted.
const MOST_JOBS: u32 = 10_000;

/// Whether whoever sent these headers may see it: everybody while there are no keys, then only the operator. No key of a
/// client is as good as that.
pub(crate) fn admit(app: &App, config: &Config, headers: &HeaderMap) -> Result<(), ApiError> {
    if app.runtime.access.lets_everybody_in() {
        return Ok(());
    }
    let message = match &config.admin.token {
        Some(token) if TokenHash::of(token).is_shown_in(headers) => return Ok(()),
        Some(_) => "Metrics are for the operator: send `admin.token` as a bearer token. No API key is taken here.",
        None => {
            "Metrics are for the operator, and there is no `admin.token` to show. The operator sets one, or has metrics \
             answered elsewhere with `metrics.listen`."
        }
    };
    Err(ApiError::new(Code::InvalidAdminToken, message))
}

/// All of it, in the format that is asked for.
pub(crate) async fn answer(app: &App, headers: &HeaderMap) -> Response<Body> {
    let format = Format::wanted(headers);
    // A store that does not answer is no reason to say nothing.
    let queued = tokio::time::timeout(PATIENCE, app.runtime.store.jobs_queued(MOST_JOBS)).await;
    let queued = queued.ok().and_then(Result::ok);
    let mut text = String::new();
    app.runtime.observers.metrics.write(&mut text);
    // A string takes whatever is written.
    let _ = encode_registry(&mut text, &seen(app, queued));
    let mut response = Response::new(Body::full(Bytes::from(format.finish(text))));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// What can be seen of the server at this moment.
fn seen(app: &App, queued: Option<u64>) -> Registry {
    let mut registry = Registry::default();
    let (snapshot, runtime) = (app.snapshot(), &app.runtime);
    let load = runtime.limits.load();
    let now = |registry: &mut Registry, row, value: usize| {
        register(registry, row, ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)));
    };
    now(&mut registry, &live::TURNS, load.turns());
    breakers(&mut registry, &snapshot, runtime);
    replicas(&mut registry, &snapshot);
    let store = runtime.store.counters();
    register(&mut registry, &live::STORE_WRITES, ConstCounter::new(store.writes));
    register(&mut registry, &live::STORE_COMMITS, ConstCounter::new(store.commits));
    let jobs = Family::<[(&str, &str); 1], Gauge>::default();
    jobs.get_or_create(&[("state", "running")]).set(runtime.jobs.running().len().try_into().unwrap_or(i64::MAX));
    if let Some(queued) = queued {
        jobs.get_or_create(&[("state", "queued")]).set(queued.try_into().unwrap_or(i64::MAX));
    }
    register(&mut registry, &live::JOBS, jobs);
    now(&mut registry, &live::BODY_BYTES, runtime.budget.used());
    now(&mut registry, &live::BODY_BYTES_LIMIT, snapshot.config.limits.body_bytes_in_flight);
    now(&mut registry, &live::REMEMBERED_BYTES, runtime.remembered.used());
    now(&mut registry, &live::MEMORY_PRESSURE, load.pressure().into());
    if let Some(limit) = load.memory() {
        now(&mut registry, &live::MEMORY_LIMIT, usize::try_from(limit).unwrap_or(usize::MAX));
    }
    now(&mut registry, &live::DRAINING, app.is_draining().into());
    let lost = LOST_LOG_LINES.load(Ordering::Relaxed);
    register(&mut registry, &live::LOG_LINES_LOST, ConstCounter::new(lost));
    queues(&mut registry, runtime);
    let build = Family::<[(&str, &str); 1], Gauge>::default();
    build.get_or_create(&[("version", env!("CARGO_PKG_VERSION"))]).set(1);
    register(&mut registry, &live::BUILD, build);
    process::register(&mut registry);
    now(&mut registry, &live::STARTED, usize::try_from(runtime.started_at).unwrap_or_default());
    registry
}

/// Which targets are known to fail. Models that have no label of their own are counted together.
fn breakers(registry: &mut Registry, snapshot: &Snapshot, runtime: &Runtime) {
    let names = runtime.observers.metrics.names();
    let mut open: BTreeMap<(Arc<str>, Arc<str>), i64> = BTreeMap::new();
    for provider in &snapshot.config.providers {
        let Some(connections) = snapshot.connections(&provider.name) else { continue };
        for (model, state) in connections.health() {
            let labels = names.target(&format!("{}/{model}", provider.name));
            *open.entry((labels.provider, labels.target)).or_default() += i64::from(state.breaker != "closed");
        }
    }
    let family = Family::<[(&str, Arc<str>); 2], Gauge>::default();
    for ((provider, target), count) in open {
        family.get_or_create(&[("provider", provider), ("target", target)]).set(count);
    }
    register(registry, &live::BREAKER_OPEN, family);
}

/// How the addresses of providers fare that have several; each is one that the configuration has.
fn replicas(registry: &mut Registry, snapshot: &Snapshot) {
    type Labels = [(&'static str, Arc<str>); 2];
    let [up, share, open] = [(); 3].map(|()| Family::<Labels, Gauge>::default());
    let requests = Family::<[(&'static str, Arc<str>); 3], Counter>::default();
    for provider in &snapshot.config.providers {
        let Some(connections) = snapshot.connections(&provider.name) else { continue };
        let name: Arc<str> = Arc::from(&*provider.name);
        for state in connections.replicas() {
            let labels = [("provider", Arc::clone(&name)), ("replica", Arc::clone(&state.url))];
            let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
            up.get_or_create(&labels).set(i64::from(state.share > 0));
            share.get_or_create(&labels).set(count(state.share));
            open.get_or_create(&labels).set(count(state.open));
            for (kind, count) in [("own", state.own), ("guest", state.guests)] {
                let [provider, replica] = labels.clone();
                requests.get_or_create(&[provider, replica, ("kind", kind.into())]).inc_by(count);
            }
        }
    }
    register(registry, &live::REPLICA_UP, up);
    register(registry, &live::REPLICA_SHARE, share);
    register(registry, &live::REPLICA_OPEN, open);
    register(registry, &live::REPLICA_REQUESTS, requests);
}

/// What waits to be written, and what was not kept.
fn queues(registry: &mut Registry, runtime: &Runtime) {
    let (spans, traces) = (&runtime.observers.spans, &runtime.observers.traces);
    let (length, dropped) =
        (Family::<[(&str, &str); 1], Gauge>::default(), Family::<[(&str, &str); 1], Counter>::default());
    for (queue, count) in [("spans", spans.queued()), ("traces", traces.queued())] {
        length.get_or_create(&[("queue", queue)]).set(i64::try_from(count).unwrap_or(i64::MAX));
    }
    for (queue, count) in [("spans", spans.dropped()), ("traces", traces.dropped())] {
        dropped.get_or_create(&[("queue", queue)]).inc_by(count);
    }
    register(registry, &live::QUEUED, length);
    register(registry, &live::DROPPED, dropped);
    register(registry, &live::EXPORTED, ConstCounter::new(spans.exported()));
}
