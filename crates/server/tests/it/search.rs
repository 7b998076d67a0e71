//! Searching the web: each service as its documentation has it, every way in which one fails, and clients that search by
//! themselves.

mod services;
mod standalone;

use server::config::Config;
use testkit::{Script, Upstream};

use crate::rig::parse;

/// In every key, so that it can be looked for.
const CANARY: &str = "canary-5e4c";

/// The entry of a service that is here.
fn entry(spec: &str, service: &Upstream, more: &str) -> String {
    let url = service.url();
    format!("{{spec: {spec}, endpoint: {{base_url: '{url}/base'}}, credentials: {{api_key: {CANARY}}}{more}}}")
}

fn config(entries: &[String]) -> Config {
    parse(&format!("session: {{backend: memory}}\ntools: {{web_search: [{}]}}\n", entries.join(", ")))
}

async fn service(script: Script) -> Upstream {
    Upstream::start(script).await.unwrap()
}
