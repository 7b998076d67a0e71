//! The protocol's requests over HTTP: each is one POST, its answer JSON or a stream of events. Sends through somebody
//! else's connections, reads no more than it may, and follows a redirect only within the same origin.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse};
use sse_stream::SseStream;

use crate::LARGEST;
use crate::failure::{Carried, Failure, Secrets};

/// The most of an error's body that is read.
const LARGEST_ERROR: usize = 64 << 10;
const MOST_REDIRECTS: usize = 3;
const SESSION: &str = "mcp-session-id";

/// The body of an answer. Dropping it closes the connection.
pub type ByteStream = BoxStream<'static, Result<Bytes, NotSent>>;
/// A request under way. Dropping it closes the connection.
pub type Sending = Pin<Box<dyn Future<Output = Result<Response<ByteStream>, NotSent>> + Send>>;

/// Why there is no answer, or no more of it, in words that hold nothing secret.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct NotSent(pub String);

/// Sends requests. Redirects are not followed by it.
pub trait HttpClient: Send + Sync + 'static {
    fn send(&self, request: Request<Bytes>) -> Sending;
}

type Error = StreamableHttpError<Carried>;

/// The protocol's transport over an [`HttpClient`].
#[derive(Clone)]
pub(crate) struct Carrier {
    pub(crate) http: Arc<dyn HttpClient>,
    pub(crate) secrets: Secrets,
}

impl StreamableHttpClient for Carrier {
    type Error = Carried;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        self.post(&uri, &message, session_id.as_deref(), &headers).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Error> {
        // Nobody waits for it, and nothing is to be done if it fails.
        let request = Self::request(Method::DELETE, &uri, Bytes::new(), Some(&session_id), &headers)?;
        let _ = self.http.send(request).await;
        Ok(())
    }

    /// What a server wants to say of its own accord, nobody here wants to hear.
    async fn get_stream(
        &self,
        _: Arc<str>,
        _: Option<Arc<str>>,
        _: Option<String>,
        _: Option<String>,
        _: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxedSseResponse, Error> {
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    }
}

impl Carrier {
    fn request(
        method: Method,
        uri: &str,
        body: Bytes,
        session: Option<&str>,
        headers: &HashMap<HeaderName, HeaderValue>,
    ) -> Result<Request<Bytes>, Error> {
        let mut request = Request::builder().method(method).uri(uri);
        if let Some(all) = request.headers_mut() {
            all.extend(headers.iter().map(|(name, value)| (name.clone(), value.clone())));
            all.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
            if !body.is_empty() {
                all.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            }
        }
        if let Some(session) = session {
            request = request.header(SESSION, session);
        }
        request.body(body).map_err(|_| failed(Failure::broken("The server's address or session cannot be used.")))
    }

    /// Sends, and goes where the same origin says that it has moved.
    async fn send(
        &self,
        uri: &str,
        body: &Bytes,
        session: Option<&str>,
        headers: &HashMap<HeaderName, HeaderValue>,
    ) -> Result<Response<ByteStream>, Error> {
        let mut uri = uri.to_owned();
        for _ in 0..=MOST_REDIRECTS {
            let request = Self::request(Method::POST, &uri, body.clone(), session, headers)?;
            let response = self.http.send(request).await.map_err(|NotSent(why)| failed(Failure::broken(why)))?;
            let code = response.status();
            if !matches!(code, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
                return Ok(response);
            }
            let location = response.headers().get(header::LOCATION).and_then(|location| location.to_str().ok());
            uri = location.and_then(|location| moved(&uri, location)).ok_or_else(|| {
                let message = "It sends requests on to another place, and they are not for anybody else.".to_owned();
                failed(Failure::Http { code: code.as_u16(), message })
            })?;
        }
        Err(failed(Failure::broken("The server sends requests from one place to the next without end.")))
    }

    async fn post(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        headers: &HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let body = Bytes::from(serde_json::to_vec(message)?);
        let asked = match message {
            JsonRpcMessage::Request(request) => Some(&request.id),
            _ => None,
        };
        let response = self.send(uri, &body, session, headers).await?;
        let (head, answer) = response.into_parts();
        let status = head.status;
        let text = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
        let kind = text("content-type").unwrap_or_default().trim_start().to_ascii_lowercase();
        let session = text(SESSION).map(str::to_owned);
        if !status.is_success() {
            return self.refused(message, asked, status, answer).await;
        }
        let Some(asked) = asked else { return Ok(StreamableHttpPostResponse::Accepted) };
        if kind.starts_with("text/event-stream") {
            let events = SseStream::from_bytes_stream(bounded(answer));
            return Ok(StreamableHttpPostResponse::Sse(events.boxed(), session));
        }
        if !kind.starts_with("application/json") {
            return Err(failed(Failure::broken("The server's answer is neither JSON nor a stream of events.")));
        }
        let body = Self::read(answer, LARGEST).await?;
        let message: ServerJsonRpcMessage = serde_json::from_slice(&body)
            .map_err(|_| failed(Failure::broken("The server's answer is no JSON that the protocol knows.")))?;
        match message {
            JsonRpcMessage::Error(error) => Ok(about(error.error, asked, session)),
            JsonRpcMessage::Response(response) if response.id == *asked => {
                Ok(StreamableHttpPostResponse::Json(JsonRpcMessage::Response(response), session))
            }
            _ => Err(failed(Failure::broken("The server answered another request than it was sent."))),
        }
    }

    async fn refused(
        &self,
        message: &ClientJsonRpcMessage,
        asked: Option<&RequestId>,
        status: StatusCode,
        body: ByteStream,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let body = Self::read(body, LARGEST_ERROR).await.unwrap_or_default();
        let denied = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if let (Some(asked), false) = (asked, denied) {
            if let Ok(JsonRpcMessage::Error(error)) = serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
                return Ok(about(error.error, asked, None));
            }
            // A server of the older era, which wants another beginning.
            let discovers = matches!(message, JsonRpcMessage::Request(request)
                if matches!(request.request, ClientRequest::DiscoverRequest(_)));
            if discovers && status.is_client_error() {
                let error = ErrorData::invalid_request(format!("status {}", status.as_u16()), None);
                return Ok(about(error, asked, None));
            }
        }
        let said = self.secrets.scrub(&String::from_utf8_lossy(&body));
        let reason = status.canonical_reason().unwrap_or("no reason");
        let message = if said.trim().is_empty() { reason.to_owned() } else { format!("{reason}: {said}") };
        Err(failed(Failure::Http { code: status.as_u16(), message }))
    }

    async fn read(mut body: ByteStream, most: usize) -> Result<Vec<u8>, Error> {
        let mut read = Vec::new();
        while let Some(chunk) = body.next().await {
            let chunk = chunk.map_err(|NotSent(why)| failed(Failure::broken(why)))?;
            if read.len() + chunk.len() > most {
                return Err(failed(too_large()));
            }
            read.extend_from_slice(&chunk);
        }
        Ok(read)
    }
}

fn failed(failure: Failure) -> Error {
    StreamableHttpError::Client(Carried(failure))
}

fn too_large() -> Failure {
    Failure::broken(format!("The server's answer is larger than {LARGEST} bytes."))
}

/// A refusal of the request that was sent: some servers do not say of which.
fn about(error: ErrorData, asked: &RequestId, session: Option<String>) -> StreamableHttpPostResponse {
    StreamableHttpPostResponse::Json(ServerJsonRpcMessage::error(error, Some(asked.clone())), session)
}

/// Where a redirect leads, if that is the same origin.
fn moved(from: &str, location: &str) -> Option<String> {
    let from: Uri = from.parse().ok()?;
    let (scheme, authority) = (from.scheme_str()?, from.authority()?.as_str());
    if location.starts_with('/') && !location.starts_with("//") {
        return Some(format!("{scheme}://{authority}{location}"));
    }
    let to: Uri = location.parse().ok()?;
    let same = to.scheme_str() == Some(scheme) && to.authority()?.as_str().eq_ignore_ascii_case(authority);
    same.then(|| location.to_owned())
}

/// The same bytes, until one event is larger than may be.
fn bounded(body: ByteStream) -> impl futures_util::Stream<Item = Result<Bytes, NotSent>> + Send + 'static {
    let (mut event, mut line) = (0_usize, 0_usize);
    body.and_then(move |chunk| {
        for &byte in &chunk {
            match byte {
                b'\n' if line == 0 => event = 0,
                b'\n' => line = 0,
                b'\r' => {}
                _ => (event, line) = (event + 1, line + 1),
            }
        }
        let fits = event <= LARGEST;
        async move { if fits { Ok(chunk) } else { Err(NotSent(too_large().to_string())) } }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_within_the_origin() {
        let from = "https://mcp.example.com/a";
        for (location, to) in [
            ("/b?c", Some("https://mcp.example.com/b?c")),
            ("https://MCP.example.com/b", Some("https://MCP.example.com/b")),
            ("https://mcp.example.com:8443/b", None),
            ("http://mcp.example.com/b", None),
            ("https://mcp.example.com.evil.org/b", None),
            ("//evil.org/b", None),
            ("b", None),
            ("", None),
        ] {
            assert_eq!(moved(from, location).as_deref(), to, "{location}");
        }
    }
}
