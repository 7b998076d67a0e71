//! Carries a probe's requests: raw answers, refusals included, within a deadline. No retries beyond a busy
//! upstream, no translation: what comes back is what the provider said.

use std::time::Duration;

use bridge::{Failure, FailureClass};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use probe::{Answer, Endpoint, Outcome, Request};
use providers::demo::{self, Step};
use providers::{Provider, Wire};
use tokio::time::{Instant, sleep, timeout_at};

use crate::config::ProviderConfig;
use crate::start::StartError;
use crate::upstream::HttpClient;

/// The most of an answer that is read.
const LARGEST: usize = 8 << 20;
/// How often a busy upstream is asked again, and how long it may make us wait.
const PATIENCE: usize = 2;
const LONGEST_WAIT: Duration = Duration::from_secs(20);
const USUAL_WAIT: Duration = Duration::from_secs(2);

/// A client for one provider.
pub struct Client<'a> {
    target: Target,
    /// When the whole probe must be over.
    until: Instant,
    each: Duration,
    progress: Box<dyn FnMut(&Request) + Send + 'a>,
}

#[derive(Debug)]
enum Target {
    Http(Box<Asked>),
    Demo,
}

/// A provider, and how it is reached.
#[derive(Debug)]
struct Asked {
    client: HttpClient,
    provider: Provider,
}

impl std::fmt::Debug for Client<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("target", &self.target).finish_non_exhaustive()
    }
}

impl<'a> Client<'a> {
    /// Everything together may take `total`, one request `each`. `progress` hears of every request.
    pub fn new(
        config: &ProviderConfig,
        total: Duration,
        each: Duration,
        progress: impl FnMut(&Request) + Send + 'a,
    ) -> Result<Self, StartError> {
        let target = match config.provider.wire {
            Wire::Chat | Wire::Responses | Wire::Messages => {
                Target::Http(Box::new(Asked { client: HttpClient::new(config)?, provider: config.provider.clone() }))
            }
            Wire::Demo => Target::Demo,
        };
        Ok(Self { target, until: Instant::now() + total, each, progress: Box::new(progress) })
    }

    /// The answer to `GET /models`, whatever it is, without secrets.
    ///
    /// # Errors
    /// Why there is no answer, in a sentence.
    pub async fn models(&mut self) -> Result<Answer, String> {
        let (endpoint, model) = (Endpoint::Models, String::new());
        let request = Request { about: "models", endpoint, model, body: Vec::new(), stream: false };
        match probe::ProbeUpstream::send(self, request).await {
            Outcome::Answered(answer) => Ok(answer),
            Outcome::Unreachable(message) => Err(message),
            Outcome::TimedOut | Outcome::OutOfTime => Err("the provider did not answer in time".to_owned()),
        }
    }
}

impl probe::ProbeUpstream for Client<'_> {
    async fn send(&mut self, request: Request) -> Outcome {
        (self.progress)(&request);
        let mut asked = 0;
        loop {
            let now = Instant::now();
            if now >= self.until {
                return Outcome::OutOfTime;
            }
            let until = self.until.min(now + self.each);
            let Ok((outcome, wait)) = timeout_at(until, self.target.ask(&request)).await else {
                return Outcome::TimedOut;
            };
            let busy = matches!(&outcome, Outcome::Answered(answer) if matches!(answer.status, 429 | 503 | 529));
            if !busy || asked == PATIENCE || wait > LONGEST_WAIT || Instant::now() + wait >= self.until {
                return outcome;
            }
            asked += 1;
            sleep(wait).await;
        }
    }
}

impl Target {
    /// One try, and how long to wait before another.
    async fn ask(&self, request: &Request) -> (Outcome, Duration) {
        match self {
            Self::Demo => (Outcome::Answered(demo_answer(request)), USUAL_WAIT),
            Self::Http(target) => match http_answer(target, request).await {
                Ok((answer, wait)) => (Outcome::Answered(answer), wait),
                Err(failure) if failure.class == FailureClass::Timeout => (Outcome::TimedOut, USUAL_WAIT),
                Err(failure) => (Outcome::Unreachable(failure.message), USUAL_WAIT),
            },
        }
    }
}

async fn http_answer(target: &Asked, request: &Request) -> Result<(Answer, Duration), Failure> {
    let began = Instant::now();
    let Asked { client, provider } = target;
    let method = if request.endpoint == Endpoint::Models { Method::GET } else { Method::POST };
    let headers = |headers: &mut HeaderMap| adapt(request.endpoint, headers);
    let body = request.body.clone();
    let (response, redactor) = match request.endpoint.path() {
        None => client.raw_own(&request.model, body, |headers| try_out(provider, &request.model, headers)).await?,
        Some(path) => {
            // Beside chat the list is where all have it; of another API only the spec knows.
            let listed = provider.discovery.path.as_deref().filter(|_| provider.wire == Wire::Messages);
            let path = listed.filter(|_| request.endpoint == Endpoint::Models).unwrap_or(path);
            client.raw_with(method, path, body, headers).await?
        }
    };
    let (head, mut body) = response.into_parts();
    let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
    let mut answer = Answer {
        status: head.status.as_u16(),
        content_type: text(header::CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase(),
        body: Vec::new(),
        whole: false,
        took: Duration::ZERO,
    };
    let seconds = text(header::RETRY_AFTER).and_then(|text| text.trim().parse().ok());
    while answer.body.len() < LARGEST {
        match body.chunk().await {
            Ok(Some(chunk)) => answer.body.extend_from_slice(&chunk),
            Ok(None) => {
                answer.whole = true;
                break;
            }
            Err(_) => break,
        }
    }
    answer.took = began.elapsed();
    // Some servers repeat the key in their errors; the report must not.
    redactor.bytes(&mut answer.body, 0);
    Ok((answer, seconds.map_or(USUAL_WAIT, Duration::from_secs)))
}

/// What the spec tries out with each request to a model; what the configuration sets itself stays as it is.
fn try_out(provider: &Provider, model: &str, headers: &mut HeaderMap) {
    const BETAS: &str = "anthropic-beta";
    let rules = provider.for_model(model).dialect.request.blocks;
    let betas = rules.all_betas().collect::<Vec<_>>().join(",");
    if let Ok(value) = HeaderValue::from_str(&betas)
        && !betas.is_empty()
        && !headers.contains_key(BETAS)
    {
        headers.insert(BETAS, value);
    }
}

/// The headers that an endpoint wants beside those of the provider.
fn adapt(endpoint: Endpoint, headers: &mut HeaderMap) {
    if matches!(endpoint, Endpoint::Messages | Endpoint::MessagesByKey) {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    if endpoint == Endpoint::MessagesByKey {
        let key = [header::AUTHORIZATION, HeaderName::from_static("api-key")].map(|name| headers.remove(name));
        let key = key.into_iter().flatten().next();
        let key = key.as_ref().and_then(|key| key.to_str().ok()).map(|key| key.trim_start_matches("Bearer "));
        if let Some(mut key) = key.and_then(|key| HeaderValue::from_str(key).ok()) {
            key.set_sensitive(true);
            headers.insert("x-api-key", key);
        }
    }
}

/// The offline model, without its pauses.
fn demo_answer(request: &Request) -> Answer {
    if request.endpoint != Endpoint::Chat {
        let body = br#"{"error":{"message":"The demo model only chats.","type":"invalid_request_error"}}"#.to_vec();
        return Answer {
            status: 404,
            content_type: "application/json".to_owned(),
            body,
            whole: true,
            ..Answer::default()
        };
    }
    let demo = demo::answer(&request.body);
    let first = demo.steps.first();
    if !request.stream || matches!(first, Some(Step::Status { .. })) {
        return match demo.fold() {
            Step::Status { status, body, .. } => {
                Answer { status, content_type: "application/json".to_owned(), body, whole: true, ..Answer::default() }
            }
            _ => Answer::default(),
        };
    }
    let mut body = Vec::new();
    for step in &demo.steps {
        match step {
            Step::Chunk(json) => body.extend_from_slice(&[b"data: ".as_slice(), json, b"\n\n"].concat()),
            Step::Done => body.extend_from_slice(wire::sse::DONE),
            _ => {}
        }
    }
    Answer { status: 200, content_type: "text/event-stream".to_owned(), body, whole: true, ..Answer::default() }
}
