//! Tenants: what they may use, what they have, all of it given out, all of it erased.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{Response, Uri, header};
use serde_json::{Value, json};
use store::{Erased, Holding, Status, Store, Tenant, Tenanted, TraceStore};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::keys::refresh;
use super::routes::{self, Place};
use crate::access::manage;
use crate::app::App;
use crate::body::Body;
use crate::error::{ApiError, Code};
use crate::session;
use crate::terms::Terms;

/// The most sessions of one page, and how many it has where nobody says.
const MOST: usize = 1000;
const USUAL: usize = 100;

/// What there is of each kind.
const RESPONSE: &str = "response";
const CONVERSATION: &str = "conversation";

/// How many are looked up at once for an export.
const BATCH: usize = 100;

/// How long requests that run may take to end before they are cut off, and how long they may take then.
const PATIENCE: Duration = Duration::from_secs(10);
const CUT: Duration = Duration::from_secs(10);

pub(super) async fn list(place: Place<'_>) -> Result<Response<Body>, ApiError> {
    let holdings = place.store.holdings().await.map_err(|error| ApiError::store(&error))?;
    let said = said_of(place).await?;
    let mut names: Vec<&str> = holdings.iter().map(|held| held.tenant.name()).collect();
    names.extend(said.iter().map(|(tenant, _)| tenant.name()));
    names.sort_unstable();
    names.dedup();
    let entry = |name: &&str| {
        let held = holdings.iter().find(|held| held.tenant.name() == *name);
        let terms = said.iter().find(|(tenant, _)| tenant.name() == *name);
        let terms = terms.and_then(|(_, terms)| serde_json::from_str::<Value>(terms).ok()).unwrap_or_else(|| json!({}));
        json!({
            "name": name,
            "responses": held.map_or(0, |held| held.responses),
            "conversations": held.map_or(0, |held| held.conversations),
            "terms": terms,
        })
    };
    let data: Vec<Value> = names.iter().map(entry).collect();
    Ok(routes::json(&json!({"object": "list", "data": data})))
}

/// What is said of tenants.
async fn said_of(place: Place<'_>) -> Result<Vec<(Tenant, String)>, ApiError> {
    let list = place.store.access_list(None).await.map_err(|error| ApiError::store(&error))?;
    Ok(list.map(|list| list.tenants).unwrap_or_default())
}

pub(super) async fn terms(place: Place<'_>, tenant: &Tenant) -> Result<Response<Body>, ApiError> {
    let said = said_of(place).await?.into_iter().find(|(other, _)| other == tenant);
    let terms = said.and_then(|(_, terms)| serde_json::from_str::<Value>(&terms).ok());
    Ok(routes::json(&terms.unwrap_or_else(|| json!({}))))
}

pub(super) async fn set_terms(place: Place<'_>, tenant: &Tenant, terms: &Terms) -> Result<Response<Body>, ApiError> {
    manage::check(terms)?;
    let said = (*terms != Terms::default()).then(|| terms.to_json());
    place.store.set_tenant_terms(tenant, said).await.map_err(|error| ApiError::store(&error))?;
    refresh(place).await?;
    Ok(routes::json(terms))
}

pub(super) async fn sessions(place: Place<'_>, tenant: &Tenant, uri: &Uri) -> Result<Response<Body>, ApiError> {
    let wrong = |name: &str, what: &str| ApiError::new(Code::InvalidRequest, what).with_param(name);
    let limit = match routes::query(uri, "limit") {
        None => USUAL,
        Some(text) => text
            .parse()
            .ok()
            .filter(|limit| (1..=MOST).contains(limit))
            .ok_or_else(|| wrong("limit", "`limit` is a number from 1 to 1000."))?,
    };
    let after = match routes::query(uri, "after") {
        None => None,
        Some(text) => Some(cursor(&text).ok_or_else(|| wrong("after", "`after` is what `next` of a page was."))?),
    };
    let tenanted = place.store.for_tenant(tenant.clone());
    let mut held = tenanted.held(after, limit + 1).await.map_err(|error| ApiError::store(&error))?;
    let has_more = held.len() > limit;
    held.truncate(limit);
    let next = held.last().filter(|_| has_more).map(|last| format!("{}.{}", kind(last), last.id));
    let data: Vec<Value> = held.iter().map(shown).collect();
    Ok(routes::json(&json!({"object": "list", "data": data, "has_more": has_more, "next": next})))
}

/// Where a page ended: what its last was, and its id.
fn cursor(text: &str) -> Option<Holding> {
    let (kind, id) = text.split_once('.')?;
    let status = match kind {
        RESPONSE => Some(Status::Completed),
        CONVERSATION => None,
        _ => return None,
    };
    let (id, created_at) = (id.to_owned(), 0);
    Some(Holding { id, created_at, expires_at: None, status, previous_response: None, conversation: None })
}

const fn kind(held: &Holding) -> &'static str {
    if held.status.is_some() { RESPONSE } else { CONVERSATION }
}

fn shown(held: &Holding) -> Value {
    let mut shown = json!({"id": held.id, "object": kind(held), "created_at": held.created_at / 1000});
    if let Some(at) = held.expires_at {
        shown["expires_at"] = Value::from(at / 1000);
    }
    if let Some(status) = held.status {
        shown["status"] = Value::from(status.to_string());
    }
    for (name, value) in [("previous_response_id", &held.previous_response), ("conversation_id", &held.conversation)] {
        if let Some(value) = value {
            shown[name] = Value::from(value.as_str());
        }
    }
    shown
}

/// Everything that a tenant has, one thing per line. The last line says how many there were, or why there are no more: a
/// stream that ends without it was cut off.
pub(super) fn export(place: Place<'_>, tenant: Tenant) -> Response<Body> {
    let lines = Lines {
        store: place.store.for_tenant(tenant),
        after: None,
        waiting: Vec::new(),
        count: 0,
        damaged: 0,
        over: false,
    };
    let lines = stream::unfold(lines, |mut lines| async move { Some((lines.next().await?, lines)) });
    let mut response = Response::new(Body::stream(lines));
    let jsonl = http::HeaderValue::from_static("application/jsonl");
    response.headers_mut().insert(header::CONTENT_TYPE, jsonl);
    response
}

struct Lines {
    store: Tenanted,
    after: Option<Holding>,
    /// The next one is the last here.
    waiting: Vec<Holding>,
    count: u64,
    /// What is there and cannot be read.
    damaged: u64,
    over: bool,
}

impl Lines {
    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        let line = match self.found().await {
            Ok(Some(line)) => return Some(line),
            Ok(None) => json!({"object": "end", "count": self.count, "damaged": self.damaged}),
            Err(error) => json!({"object": "error", "message": error.to_string()}),
        };
        self.over = true;
        Some(format!("{line}\n").into())
    }

    async fn found(&mut self) -> Result<Option<Bytes>, store::Error> {
        loop {
            if self.waiting.is_empty() {
                let mut page = self.store.held(self.after.take(), BATCH).await?;
                let Some(last) = page.last() else { return Ok(None) };
                self.after = Some(last.clone());
                page.reverse();
                self.waiting = page;
            }
            let Some(next) = self.waiting.pop() else { return Ok(None) };
            let id = next.id.clone();
            let line = match self.store.export(next).await {
                Ok(Some(found)) => session::exported(&found),
                Ok(None) => continue,
                Err(error) => Err(error),
            };
            match line {
                Ok(mut line) => {
                    line.push(b'\n');
                    self.count += 1;
                    return Ok(Some(line.into()));
                }
                // The rest is worth having.
                Err(error @ store::Error::Corrupt(_)) => {
                    tracing::warn!(id, %error, "not exported");
                    self.damaged += 1;
                    let line = json!({"object": "error", "id": id, "message": error.to_string()});
                    return Ok(Some(format!("{line}\n").into()));
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Erases what a tenant has. In a server nothing of the tenant begins meanwhile, and what runs ends first: whatever began
/// before is over when the store is told.
pub(super) async fn erase(place: Place<'_>, tenant: Tenant, now: bool) -> Result<Response<Body>, ApiError> {
    let Some(desk) = place.desk else {
        let traces = place.opened_traces()?;
        let traces = erase_traces(traces.as_ref(), &tenant).await?;
        return erase_stored(place.store, &tenant).await.map(|erased| answer(&tenant, erased, traces));
    };
    // In a task: half of it must not stay undone because the operator's terminal is gone.
    let (app, (done, is_done)) = (Arc::clone(&desk.app), oneshot::channel());
    desk.app.runtime.tasks.spawn(async move {
        let erased = erase_here(&app, &tenant, now).await.map(|(erased, traces)| answer(&tenant, erased, traces));
        let _ = done.send(erased);
    });
    let lost = |_| Err(ApiError::new(Code::StorageError, "The tenant could not be erased."));
    is_done.await.unwrap_or_else(lost)
}

async fn erase_here(app: &App, tenant: &Tenant, now: bool) -> Result<(Erased, u64), ApiError> {
    let runtime = &app.runtime;
    let Some(closed) = runtime.presence.close(tenant) else {
        return Err(ApiError::new(Code::TenantBusy, "The tenant is being erased already."));
    };
    let patience = if now { Duration::ZERO } else { PATIENCE };
    if timeout(patience, closed.idle()).await.is_err() {
        closed.cut();
        if timeout(CUT, closed.idle()).await.is_err() {
            let message = "Requests of the tenant did not end in time; nothing was erased.";
            return Err(ApiError::new(Code::TenantBusy, message));
        }
    }
    closed.forget();
    // What it has used is written down first, or it would be afterwards.
    runtime.spending.flush().await;
    runtime.forget(tenant);
    // What is traced of it is written down first, too; what cannot be written is not kept at all.
    runtime.observers.traces.flush(CUT).await;
    let traces = erase_traces(runtime.observers.traces.store(), tenant).await?;
    let erased = erase_stored(&runtime.store, tenant).await?;
    runtime.spending.forget().await;
    tracing::info!(tenant = tenant.name(), responses = erased.responses, traces, "a tenant was erased");
    Ok((erased, traces))
}

async fn erase_traces(traces: Option<&TraceStore>, tenant: &Tenant) -> Result<u64, ApiError> {
    let Some(traces) = traces else { return Ok(0) };
    traces.erase(tenant.clone()).await.map_err(|error| ApiError::store(&error))
}

async fn erase_stored(store: &Store, tenant: &Tenant) -> Result<Erased, ApiError> {
    store.erase_tenant(tenant).await.map_err(|error| ApiError::store(&error))
}

fn answer(tenant: &Tenant, erased: Erased, traces: u64) -> Response<Body> {
    let Erased { responses, conversations, items, others } = erased;
    routes::json(&json!({
        "tenant": tenant.name(),
        "erased": {
            "responses": responses, "conversations": conversations, "items": items, "others": others, "traces": traces,
        },
    }))
}
