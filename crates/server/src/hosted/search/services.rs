//! The services that are asked, one after the other until one answers. What is said of a failure names the service, and
//! nothing that was sent to it or that it sent.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use web::search::{Ask, Engine, Found, LARGEST_ANSWER, Unreadable, mocked};

use super::Wishes;
use crate::account::{Account, Charge};
use crate::config::{SearchService, Secret};
use crate::outbound::{Outbound, OutboundError, Reach};
use crate::request::RequestContext;
use crate::shown;

/// Why a service gave no results.
#[derive(Debug, thiserror::Error)]
enum Unanswered {
    #[error("it did not answer in time")]
    TimedOut,
    #[error("it answered with HTTP status {0}")]
    Status(u16),
    #[error("its answer is larger than 2 MiB")]
    TooLarge,
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
    #[error("{0}")]
    Outbound(#[from] OutboundError),
    #[error("its address or its key cannot be sent")]
    Unsendable,
}

#[derive(Debug)]
pub(crate) struct Services {
    services: Vec<SearchService>,
    outbound: Arc<Outbound>,
    /// Who pays; none where it is only tried out.
    account: Option<Account>,
}

impl Services {
    pub(crate) const fn new(services: Vec<SearchService>, outbound: Arc<Outbound>, account: Option<Account>) -> Self {
        Self { services, outbound, account }
    }

    /// The operator's; the request pays.
    pub(super) fn of(context: &RequestContext) -> Self {
        let services = context.snapshot.config.tools.web_search.services.clone();
        Self::new(services, Arc::clone(&context.app.runtime.outbound), Some(context.account.clone()))
    }

    pub(super) fn outbound(&self) -> &Outbound {
        &self.outbound
    }

    /// What the first service that answers has found, as far as it is wanted. Otherwise why none of them did.
    pub(crate) async fn search(&self, query: &str, wishes: &Wishes) -> Result<Vec<Found>, String> {
        let mut failures = Vec::new();
        for service in &self.services {
            let asked = tokio::time::timeout(service.timeout, Box::pin(self.ask(service, query, wishes))).await;
            let answer = asked.unwrap_or(Err(Unanswered::TimedOut));
            let name = &service.spec.name;
            // What was turned away, or never sent, is not paid for.
            let unpaid =
                matches!(answer, Err(Unanswered::Status(_) | Unanswered::Outbound(_) | Unanswered::Unsendable));
            if let Some(account) = self.account.as_ref().filter(|_| !unpaid) {
                account.charged(Charge::of_call(name, "web_search", service.price_per_call));
            }
            match answer {
                Ok(found) => {
                    tracing::debug!(service = %name, results = found.len(), "searched");
                    return Ok(found);
                }
                Err(failure) => {
                    tracing::warn!(service = %name, %failure, "a search service failed");
                    failures.push(format!("{name}: {failure}"));
                }
            }
        }
        Err(failures.join("; "))
    }

    async fn ask(&self, service: &SearchService, query: &str, wishes: &Wishes) -> Result<Vec<Found>, Unanswered> {
        let spec = &service.spec;
        let count = spec.counts.of(wishes.size);
        let ask = Ask {
            query,
            count,
            size: wishes.size,
            country: wishes.country.as_deref().or(service.country.as_deref()),
            language: service.language.as_deref(),
            domains: &wishes.domains,
        };
        let found = match spec.engine {
            Engine::Mock => mocked(&ask),
            Engine::Http => spec.results(&self.fetch(service, &ask).await?)?,
        };
        Ok(found.into_iter().filter(|found| wishes.allows(&found.url)).take(count).collect())
    }

    async fn fetch(&self, service: &SearchService, ask: &Ask<'_>) -> Result<Bytes, Unanswered> {
        let request = request(service, ask).ok_or(Unanswered::Unsendable)?;
        let answer = self.outbound.send(request, Reach::Anywhere).await?;
        if !answer.status().is_success() {
            return Err(Unanswered::Status(answer.status().as_u16()));
        }
        let body = Limited::new(answer.into_body(), LARGEST_ANSWER).collect().await;
        match body {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => Err(Unanswered::TooLarge),
            Err(error) => Err(match error.downcast::<OutboundError>() {
                Ok(error) => Unanswered::Outbound(*error),
                Err(_) => Unanswered::Outbound(OutboundError::Broken("no more of the answer came".to_owned())),
            }),
        }
    }
}

fn request(service: &SearchService, ask: &Ask<'_>) -> Option<Request<Bytes>> {
    let key = service.api_key.as_ref().map(Secret::expose);
    let asked = service.spec.request(&service.base_url, key, ask)?;
    let method = if asked.posts { Method::POST } else { Method::GET };
    let mut request = Request::builder().method(method).uri(asked.url).body(Bytes::from(asked.body)).ok()?;
    let headers = request.headers_mut();
    headers.insert(header::USER_AGENT, HeaderValue::from_static(concat!("godex/", env!("CARGO_PKG_VERSION"))));
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    // What is sent compressed would have to be unpacked within the same limit.
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if asked.posts {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    for (name, value) in asked.headers {
        let mut value = HeaderValue::from_str(&value).ok()?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_bytes(name.as_bytes()).ok()?, value);
    }
    Some(request)
}

/// The results of several queries, the best of each first, each page once.
pub(crate) fn searched(found: Vec<Vec<Found>>) -> Vec<Found> {
    let most = found.iter().map(Vec::len).max().unwrap_or_default();
    let mut lists: Vec<_> = found.into_iter().map(Vec::into_iter).collect();
    let (mut seen, mut all) = (HashSet::new(), Vec::new());
    for _ in 0..most {
        for found in lists.iter_mut().filter_map(Iterator::next) {
            if seen.insert(shown::page(&found.url)) {
                all.push(found);
            }
        }
    }
    all
}
