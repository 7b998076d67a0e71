//! The load generator: so many keep-alive connections, so many requests, and what they cost the client.

mod call;
mod websocket;

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use clap::{Args, ValueEnum};
use serde_json::json;
use tokio::task::JoinSet;

use crate::{history, mcp};
use call::{Connection, Sample};

#[derive(Args)]
pub(crate) struct Arguments {
    /// http://HOST:PORT/PATH
    url: String,
    /// sync, stream-COUNT-MILLISECONDS, hold, large or tool; see the upstream.
    #[arg(long, default_value = "sync")]
    model: String,
    #[arg(long, default_value_t = 1)]
    connections: usize,
    #[arg(long, default_value_t = 1)]
    requests: usize,
    /// Send an agent's history of about this size instead of one sentence.
    #[arg(long)]
    input_bytes: Option<usize>,
    /// Ask for every response to be stored, each with an input of its own.
    #[arg(long)]
    stored: bool,
    /// Who calls the tool that the model `tool` wants.
    #[arg(long, value_enum)]
    tool: Option<Caller>,
    /// Open one stream per connection, say `held=N`, and keep them open until stdin ends.
    #[arg(long)]
    hold: bool,
    /// The same with idle `WebSocket`s; `held=0` where they are refused.
    #[arg(long)]
    websockets: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Caller {
    /// The gateway, at the MCP server that it knows.
    Gateway,
    /// Nobody: what is measured is two calls of the model, the second with the tool's result.
    ByHand,
}

pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let body = body(&arguments);
    if arguments.hold {
        return hold(&arguments, &body).await;
    }
    if arguments.websockets {
        return websocket::hold(&arguments.url, arguments.connections).await;
    }
    // Connecting is not what is measured.
    let mut connections = Vec::new();
    for _ in 0..arguments.connections {
        connections.push(Connection::open(&arguments.url).await?);
    }
    let started = Instant::now();
    let by_hand = arguments.tool == Some(Caller::ByHand);
    let (first, body) = if by_hand { (Some(body.clone()), with_result(&body)) } else { (None, body) };
    let samples = all_requests(connections, arguments.requests, &body, first.as_ref()).await?;
    let seconds = started.elapsed().as_secs_f64();
    report(&samples, seconds, body.len());
    Ok(())
}

fn body(arguments: &Arguments) -> Bytes {
    let input = match arguments.input_bytes {
        Some(bytes) => history::input(bytes),
        None => json!(format!("Write a short story about a fox, a dog and a very long afternoon. {NUMBER}")),
    };
    // Written by hand so that the model comes first: the upstream looks for it.
    let stream = !matches!(arguments.model.as_str(), "sync" | "tool");
    let stored = arguments.stored;
    let tools = if arguments.tool == Some(Caller::Gateway) {
        format!(r#","tools":{}"#, json!([{"type": "mcp", "server_label": mcp::LABEL, "require_approval": "never"}]))
    } else {
        String::new()
    };
    format!(r#"{{"model":"bench/{}","stream":{stream},"store":{stored}{tools},"input":{input}}}"#, arguments.model)
        .into()
}

/// The same request with the tool's result, as far as the upstream looks at it.
fn with_result(body: &Bytes) -> Bytes {
    let mut with = body.strip_suffix(b"}").unwrap_or(body).to_vec();
    with.extend_from_slice(
        br#","messages":[{"role":"tool","tool_call_id":"call_1","content":"18 degrees, and rain"}]}"#,
    );
    with.into()
}

/// What every request shows; a gateway that has keys knows it.
pub(crate) const BEARER: &str = "Bearer the-key-of-the-load-generator";

/// The mark in place of a request's number: a store keeps equal inputs once, and these are to be each their own.
const NUMBER: &str = "#00000000";

fn own(body: &Bytes, number: usize) -> Bytes {
    let Some(at) = memchr::memmem::find(body, NUMBER.as_bytes()) else { return body.clone() };
    let mut own = body.to_vec();
    own[at..at + NUMBER.len()].copy_from_slice(format!("#{number:08}").as_bytes());
    own.into()
}

/// Every connection takes requests from the common count until it is used up.
/// With a `first` body, that is asked before each, and both count as one.
async fn all_requests(
    connections: Vec<Connection>,
    requests: usize,
    body: &Bytes,
    first: Option<&Bytes>,
) -> Result<Vec<Sample>> {
    // Other than in the run before.
    let start = std::process::id() as usize * 10_007 % 90_000_000;
    let (left, numbered) = (Arc::new(AtomicUsize::new(requests)), Arc::new(AtomicUsize::new(start)));
    let mut tasks = JoinSet::new();
    for mut connection in connections {
        let (left, numbered, body) = (Arc::clone(&left), Arc::clone(&numbered), body.clone());
        let first = first.cloned();
        tasks.spawn(async move {
            let mut samples = Vec::new();
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                let number = numbered.fetch_add(1, Ordering::Relaxed);
                let before = match &first {
                    Some(first) => connection.exchange(own(first, number)).await?,
                    None => Duration::ZERO,
                };
                let mut sample = connection.call(own(&body, number)).await?;
                sample.total += before;
                samples.push(sample);
            }
            anyhow::Ok(samples)
        });
    }
    let mut samples = Vec::with_capacity(requests);
    while let Some(task) = tasks.join_next().await {
        samples.extend(task??);
    }
    ensure!(samples.len() == requests, "{} of {requests} requests", samples.len());
    Ok(samples)
}

async fn hold(arguments: &Arguments, body: &Bytes) -> Result<()> {
    let mut held = Vec::new();
    // One after the other: the listen queue is not what is measured here.
    for number in 0..arguments.connections {
        let mut connection = Connection::open(&arguments.url).await?;
        let stream = connection.first_delta(body.clone()).await.with_context(|| format!("held stream {number}"))?;
        held.push((connection, stream));
    }
    keep(held).await
}

/// Says how many are open, and keeps them so until stdin ends.
async fn keep<T>(held: Vec<T>) -> Result<()> {
    println!("held={}", held.len());
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    drop(held);
    Ok(())
}

fn report(samples: &[Sample], seconds: f64, body_bytes: usize) {
    let count = u32::try_from(samples.len()).map_or(f64::INFINITY, f64::from);
    println!("requests={}", samples.len());
    println!("body_bytes={body_bytes}");
    println!("seconds={seconds:.6}");
    println!("per_second={:.1}", count / seconds);
    let total = sorted(samples.iter().map(|sample| sample.total));
    println!("p50_us={}\np99_us={}", quantile(&total, 50), quantile(&total, 99));
    let first = sorted(samples.iter().filter_map(|sample| sample.first_delta));
    println!("first_p50_us={}\nfirst_p99_us={}", quantile(&first, 50), quantile(&first, 99));
    println!("max_gap_us={}", samples.iter().map(|sample| sample.max_gap.as_micros()).max().unwrap_or(0));
}

fn sorted(durations: impl Iterator<Item = Duration>) -> Vec<u128> {
    let mut micros: Vec<u128> = durations.map(|duration| duration.as_micros()).collect();
    micros.sort_unstable();
    micros
}

fn quantile(sorted: &[u128], percent: usize) -> u128 {
    let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(index).copied().unwrap_or(0)
}
