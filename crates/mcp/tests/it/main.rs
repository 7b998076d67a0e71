//! The client against servers of both eras.
#![expect(clippy::disallowed_methods, reason = "tests have their own HTTP client and processes")]

mod calls;
mod faults;
mod lists;
mod streams;

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
            let (head, _) = http::Response::builder().status(response.status()).body(()).unwrap().into_parts();
            let (mut head, headers) = (head, response.headers().clone());
            head.headers = headers;
            let body = response.bytes_stream().map_err(|error| NotSent(error.to_string())).boxed();
            Ok(Response::from_parts(head, body))
        })
    }
}

const BOTH: [McpEra; 2] = [McpEra::Modern, McpEra::Legacy];

async fn connect(url: &str, headers: &[(&'static str, &'static str)]) -> Result<Client, Failure> {
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let header =
        |(name, value): &(&'static str, &'static str)| (HeaderName::from_static(name), HeaderValue::from_static(value));
    let endpoint = Endpoint { url: url.to_owned(), headers: headers.iter().map(header).collect() };
    Client::over_http(&endpoint, Arc::new(Reqwest(client))).await
}

async fn start(era: McpEra) -> (McpServer, Client) {
    let server = McpServer::start(testkit::mcp::McpOptions::new(era)).await.unwrap();
    let client = connect(&server.url(), &[]).await.unwrap();
    (server, client)
}

async fn call(client: &Client, tool: &str, arguments: Value) -> Result<CallResult, Failure> {
    client.call(tool, &arguments.to_string(), CallTimes::default()).await
}

/// A bound for what should take no time.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it hangs")
}
