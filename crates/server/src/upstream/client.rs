//! The HTTP client of one target.

use std::time::Duration;

use bridge::{AnswerDialect, Failure, FailureClass};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use providers::Auth;
use reqwest::Url;
use reqwest::redirect::Policy;

use super::{Accepted, AnswerBody, Deadlines, Format, failure, timeout};
use crate::StartError;
use crate::config::{ProviderConfig, Secret};

/// How much of an error's body is read.
const ERROR_BODY: usize = 64 * 1024;

/// A chat endpoint, the headers that go to it, and the pool of connections.
pub(crate) struct HttpTarget {
    client: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    key: Option<Secret>,
    /// How its answers read, errors among them.
    dialect: AnswerDialect,
}

impl std::fmt::Debug for HttpTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpTarget").field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}

impl HttpTarget {
    pub(crate) fn new(config: &ProviderConfig) -> Result<Self, StartError> {
        let problem = |what: &str, error: &dyn std::fmt::Display| StartError::Provider {
            name: config.name.clone(),
            message: format!("{what}: {error}"),
        };
        let url = format!("{}/chat/completions", config.base_url.trim_end_matches('/'));
        let url = Url::parse(&url).map_err(|error| problem("base_url", &error))?;
        let client = reqwest::Client::builder()
            .http1_only()
            .no_proxy()
            .redirect(Policy::none())
            .referer(false)
            .connect_timeout(config.timeouts.connect)
            .pool_idle_timeout(Duration::from_secs(55))
            .tcp_keepalive(Duration::from_secs(30))
            .build()
            .map_err(|error| problem("HTTP client", &error))?;
        let headers = headers(config).map_err(|error| problem("header", &error))?;
        let dialect = config.provider.dialect.answer.clone();
        Ok(Self { client, url, headers, key: config.api_key.clone(), dialect })
    }

    pub(super) async fn send(&self, body: Vec<u8>, deadlines: Deadlines) -> Result<Accepted, Failure> {
        let request = self.client.post(self.url.clone()).headers(self.headers.clone()).body(body);
        let response = tokio::time::timeout(deadlines.first_byte, request.send())
            .await
            .map_err(|_| timeout("no answer began"))?
            .map_err(|error| failure::connect(&error))?;
        if !response.status().is_success() {
            return Err(self.refused(response, deadlines).await);
        }
        let content_type = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let format = match content_type.map(str::to_ascii_lowercase) {
            Some(name) if name.contains("event-stream") => Format::Sse,
            Some(name) if name.contains("json") => Format::Json,
            Some(name) if name.contains("html") => {
                let message = "The provider answered with an HTML page instead of a chat completion.";
                return Err(Failure::new(FailureClass::Protocol, message));
            }
            _ => Format::Unknown,
        };
        Ok(Accepted { format, body: AnswerBody::Http(response) })
    }

    /// A status that is no success: what the body says, without our key in it.
    async fn refused(&self, mut response: reqwest::Response, deadlines: Deadlines) -> Failure {
        let status = response.status().as_u16();
        let retry_after = failure::retry_after(response.headers());
        let mut body = Vec::new();
        let read = async {
            while let Ok(Some(chunk)) = response.chunk().await {
                body.extend_from_slice(&chunk[..chunk.len().min(ERROR_BODY - body.len())]);
                if body.len() >= ERROR_BODY {
                    break;
                }
            }
        };
        // What arrived in time is enough.
        let _ = tokio::time::timeout(deadlines.idle.min(Duration::from_secs(10)), read).await;
        let mut failure = Failure::from_answer_in(&self.dialect, status, &body);
        failure.retry_after = retry_after;
        if let Some(key) = self.key.as_ref().map(Secret::expose).filter(|key| key.len() >= 8) {
            failure.message = failure.message.replace(key, "[redacted]");
        }
        failure
    }
}

fn headers(config: &ProviderConfig) -> Result<HeaderMap, Box<dyn std::error::Error>> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static(concat!("godex/", env!("CARGO_PKG_VERSION"))));
    if let Some(key) = &config.api_key {
        let (name, text) = match config.provider.auth {
            Auth::Bearer => (header::AUTHORIZATION, format!("Bearer {}", key.expose())),
            Auth::ApiKeyHeader => (HeaderName::from_static("api-key"), key.expose().to_owned()),
            Auth::None => return Ok(with_extra(headers, config)?),
        };
        let mut value =
            HeaderValue::try_from(text).map_err(|_| "the API key has characters that no header may carry")?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(with_extra(headers, config)?)
}

fn with_extra(mut headers: HeaderMap, config: &ProviderConfig) -> Result<HeaderMap, http::Error> {
    for (name, value) in &config.headers {
        headers.insert(HeaderName::try_from(name.as_str())?, HeaderValue::try_from(value.expose())?);
    }
    Ok(headers)
}
