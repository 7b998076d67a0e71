//! Asks a server as its clients do: for commands that want to know whether a godex is there, and what it answers.
//! Raw answers, refusals included, bounded in time and size. It retries nothing and translates nothing.

use std::time::Duration;

use http::{HeaderMap, Method};
use providers::yaml::Env;
use tokio::time::{Instant, timeout};

use crate::config::{self, Secret};
use crate::upstream::HttpClient;

/// The most of an answer that is read.
const LARGEST: usize = 8 << 20;

/// Whoever answers at an address.
#[derive(Debug)]
pub struct Peer(HttpClient);

/// What was answered.
#[derive(Debug)]
pub struct PeerAnswer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// How long it took until the first of the body was there.
    pub first: Duration,
}

impl Peer {
    /// `url` is what comes before the paths. The headers go with every request.
    ///
    /// # Errors
    /// Why this address or key cannot be used, in a sentence.
    pub fn new(url: &str, key: Option<Secret>, headers: &[(&str, &str)], env: Env<'_>) -> Result<Self, String> {
        let mut config = config::ad_hoc("openai-compatible", Some(url), key, env)?;
        config.headers =
            headers.iter().map(|(name, value)| ((*name).to_owned(), Secret::new((*value).to_owned()))).collect();
        HttpClient::new(&config).map(Self).map_err(|error| error.to_string())
    }

    /// # Errors
    /// Why there is no answer, in a sentence.
    pub async fn get(&self, path: &str, most: Duration) -> Result<PeerAnswer, String> {
        self.ask(Method::GET, path, Vec::new(), most).await
    }

    /// A JSON body; a stream is read to its end.
    ///
    /// # Errors
    /// As [`Peer::get`].
    pub async fn post(&self, path: &str, body: Vec<u8>, most: Duration) -> Result<PeerAnswer, String> {
        self.ask(Method::POST, path, body, most).await
    }

    async fn ask(&self, method: Method, path: &str, body: Vec<u8>, most: Duration) -> Result<PeerAnswer, String> {
        let began = Instant::now();
        let asked = async {
            let (response, _) = self.0.raw(method, path, body).await.map_err(|failure| failure.message)?;
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            let (mut chunks, mut body, mut first) = (response.into_body(), Vec::new(), None);
            while let Some(chunk) = chunks.chunk().await.map_err(|failure| failure.message)? {
                first.get_or_insert_with(|| began.elapsed());
                body.extend_from_slice(&chunk);
                if body.len() > LARGEST {
                    return Err("the answer is too long".to_owned());
                }
            }
            let first = first.unwrap_or_else(|| began.elapsed());
            Ok(PeerAnswer { status, headers, body, first })
        };
        timeout(most, asked).await.unwrap_or_else(|_| Err("no answer in time".to_owned()))
    }
}
