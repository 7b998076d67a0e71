//! What the tests share.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use http::{HeaderName, HeaderValue, Request, Response};
use mcp::{CallResult, CallTimes, Client, Endpoint, Failure, HttpClient, NotSent, Sending};
use serde_json::Value;
use testkit::McpServer;
use testkit::mcp::McpEra;

/// Requests through another HTTP client.
struct Reqwest(reqwest::Client);

impl HttpClient for Reqwest {
    fn send(&self, request: Request<Bytes>) -> Sending {
        let client = self.0.clone();
        Box::pin(async move {
            let request = request.map(reqwest::Body::from);
            let request = reqwest::Request::try_from(request).map_err(|error| NotSent(error.to_string()))?;
            let response = client.execute(request).await.map_err(|error| NotSent(error.to_string()))?;
            let (status, headers) = (response.status(), response.headers().clone());
            let body = response.bytes_stream().map_err(|error| NotSent(error.to_string())).boxed();
            let mut response = Response::new(body);
            (*response.status_mut(), *response.headers_mut()) = (status, headers);
            Ok(response)
        })
    }
}

pub(crate) const BOTH: [McpEra; 2] = [McpEra::Modern, McpEra::Legacy];

pub(crate) async fn connect(url: &str, headers: &[(&'static str, &'static str)]) -> Result<Client, Failure> {
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let header =
        |(name, value): &(&'static str, &'static str)| (HeaderName::from_static(name), HeaderValue::from_static(value));
    let endpoint = Endpoint { url: url.to_owned(), headers: headers.iter().map(header).collect() };
    Client::over_http(&endpoint, Arc::new(Reqwest(client))).await
}

pub(crate) async fn start(era: McpEra) -> (McpServer, Client) {
    let server = McpServer::start(testkit::mcp::McpOptions::new(era)).await.unwrap();
    let client = connect(&server.url(), &[]).await.unwrap();
    (server, client)
}

pub(crate) async fn call(client: &Client, tool: &str, arguments: Value) -> Result<CallResult, Failure> {
    client.call(tool, &arguments.to_string(), CallTimes::default()).await
}

/// A bound for what should take no time.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it hangs")
}
