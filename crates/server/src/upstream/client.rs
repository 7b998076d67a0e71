//! The HTTP client of one target.

use std::error::Error;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use bridge::{AnswerDialect, Failure, FailureClass};
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, Uri};
use http_body_util::Full;
use providers::Auth;
use wire::json::{Raw, Text};

use super::connect::Connector;
use super::pool::{HttpBody, Pool};
use super::{Accepted, AnswerBody, Deadlines, Format, Redactor, failure, timeout};
use crate::StartError;
use crate::config::ProviderConfig;

/// How much of an error's body is read.
const ERROR_BODY: usize = 64 * 1024;

/// A chat endpoint, the headers that go to it, and the pool of connections.
#[derive(Debug)]
pub(crate) struct HttpTarget {
    pool: Arc<Pool>,
    path: Place,
    headers: HeaderMap,
    redactor: Redactor,
    /// How its answers read, errors among them.
    dialect: AnswerDialect,
}

/// The request's path and query.
#[derive(Debug)]
enum Place {
    Fixed(Uri),
    /// With the model's name in it.
    ByModel(String),
}

impl Place {
    fn of(&self, body: &[u8]) -> Result<Uri, Failure> {
        match self {
            Self::Fixed(path) => Ok(path.clone()),
            Self::ByModel(template) => {
                let body = str::from_utf8(body).ok().and_then(|text| Raw::parse(text).ok());
                let model = body.and_then(|body| body.get("model")).and_then(Raw::text).map(Text::decode);
                template.replace(MODEL, &percent_encode(&model.unwrap_or_default())).parse().map_err(|_| {
                    Failure::new(
                        FailureClass::InvalidRequest,
                        "The model's name does not fit into the provider's path.",
                    )
                })
            }
        }
    }
}

/// Where a spec's path wants the model's name.
const MODEL: &str = "{model}";

/// The whole URL, as a template. A base URL that is the whole endpoint already is as good as its base.
fn endpoint(config: &ProviderConfig) -> String {
    let (base, path) = (config.base_url.trim_end_matches('/'), config.provider.path.as_str());
    let query: Vec<String> = config.provider.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{}{path}{mark}{}", base.trim_end_matches(path), query.join("&"))
}

/// One segment of a path.
fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

impl HttpTarget {
    pub(crate) fn new(config: &ProviderConfig) -> Result<Self, StartError> {
        Self::build(config)
            .map_err(|error| StartError::Provider { name: config.name.clone(), message: error.to_string() })
    }

    fn build(config: &ProviderConfig) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let endpoint = endpoint(config);
        // Checked now, with any model's name in it.
        let url: Uri = endpoint.replace(MODEL, "model").parse()?;
        let authority = url.authority().ok_or("base_url has no host")?.as_str().to_owned();
        let path = if endpoint.contains(MODEL) {
            Place::ByModel(endpoint.split_once(&authority).map(|(_, path)| path.to_owned()).unwrap_or_default())
        } else {
            Place::Fixed(url.path_and_query().ok_or("base_url has no path")?.as_str().parse()?)
        };
        let mut headers = headers(config)?;
        headers.insert(header::HOST, HeaderValue::try_from(authority)?);
        let connector = Connector::new(url, config.timeouts.connect)?;
        let secrets = config.api_key.iter().chain(config.headers.iter().map(|(_, value)| value));
        let redactor = Redactor::new(secrets);
        let dialect = config.provider.dialect.answer.clone();
        Ok(Self { pool: Pool::new(connector), path, headers, redactor, dialect })
    }

    pub(super) async fn send(&self, body: Vec<u8>, deadlines: Deadlines) -> Result<Accepted, Failure> {
        let path = self.path.of(&body)?;
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = path;
        *request.headers_mut() = self.headers.clone();
        let response = tokio::time::timeout(deadlines.first_byte.min(deadlines.total), self.pool.send(request))
            .await
            .map_err(|_| timeout("no answer began"))?
            .map_err(|error| failure::unsent(&error))?;
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
        let body = AnswerBody::Http(Box::new(response.into_body()));
        Ok(Accepted { format, body, redactor: self.redactor.clone() })
    }

    /// A status that is no success: what the body says, without our key in it.
    async fn refused(&self, response: Response<HttpBody>, deadlines: Deadlines) -> Failure {
        let status = response.status().as_u16();
        let retry_after = failure::retry_after(response.headers());
        let mut response = response.into_body();
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
        self.redactor.failure(&mut failure);
        failure
    }
}

fn headers(config: &ProviderConfig) -> Result<HeaderMap, Box<dyn Error + Send + Sync>> {
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
        let mut value = HeaderValue::try_from(value.expose())?;
        value.set_sensitive(true);
        headers.insert(HeaderName::try_from(name.as_str())?, value);
    }
    Ok(headers)
}
