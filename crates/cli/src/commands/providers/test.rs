//! `godex providers test`: one short turn with a tool call for each provider, there and back, through a godex of its own with
//! this configuration. What an operator runs after an upgrade, or after a provider has changed.

use std::fmt::Write;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use futures_util::StreamExt;
use futures_util::stream::iter;
use probe::no_list;
use providers::Wire;
use serde_json::{Value, json};
use server::checkup;
use server::config::{Config, Discover, KeyFrom, ProviderConfig, SessionConfig};
use server::peer::Peer;
use server::probe::Client;
use tokio::time::Instant;
use wire::visible::visible;

use crate::args::{TestArgs, variable};
use crate::commands::codex::gateway::Gateway;
use crate::commands::streamed;
use crate::output;
use crate::progress::Progress;

/// How many are asked at once.
const AT_ONCE: usize = 4;
/// How long a provider may take to list its models.
const LIST: Duration = Duration::from_secs(10);

/// What came of one provider.
#[derive(Debug)]
struct Tried {
    provider: String,
    /// Of a provider with several addresses, which one was asked.
    base_url: Option<String>,
    model: Option<String>,
    result: Result<Turn, String>,
}

/// Two answers: the call, and what was said to its result.
#[derive(Debug, Default)]
struct Turn {
    called: bool,
    first: Duration,
    took: Duration,
    input: u64,
    cached: u64,
    output: u64,
    /// What was not done as asked, as clients are told.
    notes: Vec<String>,
}

impl Tried {
    /// In a line, for whoever waits for the others.
    fn summary(&self) -> String {
        let result = match &self.result {
            Ok(turn) => format!("{} in {}", turn.verdict(), milliseconds(turn.took)),
            Err(why) => format!("failed: {why}"),
        };
        format!("{}: {result}", self.shown())
    }

    fn shown(&self) -> String {
        match &self.base_url {
            Some(url) => format!("{} ({url})", self.provider),
            None => self.provider.clone(),
        }
    }
}

impl Turn {
    const fn verdict(&self) -> &'static str {
        if self.called { "ok" } else { "no tool call" }
    }
}

pub(super) fn run(config: &Config, args: &TestArgs) -> anyhow::Result<()> {
    let places: Vec<Place> = chosen(config, args)?.into_iter().flat_map(Place::each).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let progress = Progress::start("asking the providers");
    let tried = runtime.block_on(async {
        let gateway = Gateway::own(&passing(config, &places)).await?;
        let peer = Peer::new(
            &format!("{}/v1", gateway.url),
            Some(gateway.key.clone()),
            &[("accept", "text/event-stream")],
            &variable,
        );
        let peer = &peer.map_err(anyhow::Error::msg)?;
        let all = async {
            let numbered = |(number, place)| async move { (number, ask(place, args, peer).await) };
            let turns: Vec<_> = places.iter().enumerate().map(numbered).collect();
            let mut asked = iter(turns).buffer_unordered(AT_ONCE);
            let mut tried = Vec::new();
            while let Some((number, one)) = asked.next().await {
                progress.done(&one.summary());
                tried.push((number, one));
                progress.step(tried.len(), places.len(), "asking the providers");
            }
            tried.sort_unstable_by_key(|(number, _)| *number);
            tried.into_iter().map(|(_, one)| one).collect::<Vec<_>>()
        };
        gateway.during(all).await
    });
    drop(progress);
    let tried = tried?;
    output::print(&if args.json { as_json(&tried) } else { table(&tried) })?;
    let failed = tried.iter().filter(|one| one.result.is_err()).count();
    if failed > 0 {
        bail!("{failed} of {} did not answer as they should", tried.len());
    }
    Ok(())
}

/// A provider, or one of its addresses, as a provider of its own.
struct Place {
    config: ProviderConfig,
    provider: String,
    base_url: Option<String>,
}

impl Place {
    fn each(provider: &ProviderConfig) -> Vec<Self> {
        let several = provider.base_urls.len() > 1;
        let place = |(number, mut config): (usize, ProviderConfig)| {
            let base_url = several.then(|| config.base_url.clone());
            if several {
                config.name = format!("{}@{}", provider.name, number + 1);
            }
            Self { config, provider: provider.name.clone(), base_url }
        };
        provider.each_address().enumerate().map(place).collect()
    }
}

/// Nothing of it stays, and nobody is asked for more than the test.
fn passing(config: &Config, places: &[Place]) -> Config {
    let mut passing = config.clone();
    passing.providers.extend(places.iter().filter(|place| place.base_url.is_some()).map(|place| place.config.clone()));
    passing.session = SessionConfig { beside: None, ..passing.session.beside() };
    passing.trace.enabled = false;
    passing.discover = Discover::Off;
    (passing.otel, passing.webhooks) = (None, Vec::new());
    passing
}

/// Those that were named, else all that can be asked.
fn chosen<'c>(config: &'c Config, args: &TestArgs) -> anyhow::Result<Vec<&'c ProviderConfig>> {
    ensure!(args.model.is_none() || args.names.len() == 1, "--model is for one provider: name it");
    let known = || config.providers.iter().map(|provider| provider.name.as_str()).collect::<Vec<_>>().join(", ");
    if args.names.is_empty() {
        let has_key = |provider: &&ProviderConfig| !matches!(provider.key_from, KeyFrom::Missing(_));
        return Ok(config.providers.iter().filter(has_key).collect());
    }
    let named = |name: &String| {
        config.provider(name).with_context(|| format!("there is no provider `{name}`; configured: {}", known()))
    };
    args.names.iter().map(named).collect()
}

async fn ask(place: &Place, args: &TestArgs, peer: &Peer) -> Tried {
    let provider = &place.config;
    let model = match &args.model {
        Some(model) => Ok(model.clone()),
        None => first_model(provider).await,
    };
    let result = match &model {
        Ok(model) => turn(provider, model, args.timeout, peer).await,
        Err(why) => Err(why.clone()),
    };
    Tried { provider: place.provider.clone(), base_url: place.base_url.clone(), model: model.ok(), result }
}

/// What its spec or the file names; else what it lists itself.
async fn first_model(provider: &ProviderConfig) -> Result<String, String> {
    let named = provider.models.first().or(provider.provider.default_model.as_ref());
    if let Some(model) = named {
        return Ok(model.clone());
    }
    let listed = checkup::check(provider, LIST).await?;
    if let Some(model) = listed.models.first() {
        return Ok(model.clone());
    }
    let why = why_no_list(provider, listed.status).await;
    Err(if listed.refuses_key() {
        format!("the key was refused ({why})")
    } else {
        format!("its models cannot be listed ({why}): name one with --model, or in `models`")
    })
}

/// What it says instead of a list. It is asked once more, by a client that takes the key out of what comes back.
async fn why_no_list(provider: &ProviderConfig, status: u16) -> String {
    let answer = match Client::new(provider, LIST, LIST, |_| {}) {
        Ok(mut client) => client.models().await.ok(),
        Err(_) => None,
    };
    let Some(answer) = answer.filter(|answer| answer.status == status) else { return format!("it answered {status}") };
    no_list(&answer).unwrap_or_else(|| "its list names no model to chat with".to_owned())
}

/// The call, and the answer to its result.
async fn turn(provider: &ProviderConfig, model: &str, timeout: Duration, peer: &Peer) -> Result<Turn, String> {
    let prompt = if provider.provider.wire == Wire::Demo {
        format!("call get_weather {}", json!({"city": "Paris"}))
    } else {
        "Call the tool get_weather for Paris, then tell me in one short sentence what it said.".to_owned()
    };
    let model = format!("{}/{model}", provider.name);
    let mut input = vec![json!({"role": "user", "content": prompt})];
    let (began, mut done) = (Instant::now(), Turn::default());
    for answer in 0..2 {
        let reply = peer.post("/responses", body(&model, &input), timeout).await?;
        if answer == 0 {
            done.first = reply.first;
        }
        let compat = reply.headers.get("x-godex-compat").and_then(|value| value.to_str().ok()).unwrap_or_default();
        for note in compat.split(", ").filter(|note| !note.is_empty()) {
            if !done.notes.iter().any(|known| known == note) {
                done.notes.push(note.to_owned());
            }
        }
        let completed = streamed::read(&reply)?;
        let usage = &completed.response["usage"];
        let count = |value: &Value| value.as_u64().unwrap_or_default();
        done.input += count(&usage["input_tokens"]);
        done.cached += count(&usage["input_tokens_details"]["cached_tokens"]);
        done.output += count(&usage["output_tokens"]);
        done.took = began.elapsed();
        let call = completed.items.iter().find(|item| item["type"] == "function_call").cloned();
        match call {
            Some(call) if answer == 0 => {
                is_as_asked(&call)?;
                done.called = true;
                input.extend(completed.items);
                let result = "18 degrees, light rain";
                input.push(json!({"type": "function_call_output", "call_id": call["call_id"], "output": result}));
            }
            // It said something instead, or calls once more: no more is asked.
            _ => break,
        }
    }
    Ok(done)
}

/// The name and the arguments must be what was offered.
fn is_as_asked(call: &Value) -> Result<(), String> {
    let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap_or_default()).unwrap_or_default();
    let fits = call["name"] == "get_weather" && arguments["city"].is_string();
    let has_id = call["call_id"].as_str().is_some_and(|id| !id.is_empty());
    if fits && has_id { Ok(()) } else { Err(format!("the call came back wrong: {call}")) }
}

fn body(model: &str, input: &[Value]) -> Vec<u8> {
    let parameters = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": false
    });
    let tool = json!({"type": "function", "name": "get_weather", "description": "The weather in a city, now.",
        "parameters": parameters, "strict": true});
    // As agents begin: some templates take no second system message.
    let developer = json!({"role": "developer", "content": "Use the tools that you have where they help."});
    let input: Vec<&Value> = std::iter::once(&developer).chain(input).collect();
    let body = json!({"model": model, "instructions": "You are an assistant that is tried out.", "input": input,
        "tools": [tool], "stream": true, "store": false,
        "include": ["reasoning.encrypted_content"]});
    body.to_string().into_bytes()
}

fn milliseconds(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}

fn table(tried: &[Tried]) -> String {
    let head = ["PROVIDER", "MODEL", "RESULT", "FIRST", "TOOK", "IN", "CACHED", "OUT", "NOTES"].map(str::to_owned);
    let row = |one: &Tried| {
        let model = one.model.clone().unwrap_or_default();
        let [result, first, took, input, cached, output, notes] = match &one.result {
            Ok(turn) => [
                turn.verdict().to_owned(),
                milliseconds(turn.first),
                milliseconds(turn.took),
                turn.input.to_string(),
                turn.cached.to_string(),
                turn.output.to_string(),
                turn.notes.len().to_string(),
            ],
            Err(_) => ["failed", "", "", "", "", "", ""].map(str::to_owned),
        };
        [one.shown(), model, result, first, took, input, cached, output, notes].map(|cell| visible(&cell).into_owned())
    };
    let rows: Vec<[String; 9]> = std::iter::once(head).chain(tried.iter().map(row)).collect();
    let widths: Vec<usize> =
        (0..9).map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or_default()).collect();
    let mut out = String::new();
    for row in &rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}", width = *width)).collect();
        let _ = writeln!(out, "{}", cells.join("  ").trim_end());
    }
    for one in tried {
        match &one.result {
            Err(why) => {
                let _ = write!(out, "\n{}: {}\n", visible(&one.shown()), visible(why));
            }
            Ok(turn) => {
                if !turn.called {
                    let said = "it answered in words and called no tool; agents do nothing without calls";
                    let _ = write!(out, "\n{}: {said}\n", visible(&one.shown()));
                }
                if !turn.notes.is_empty() {
                    let _ = write!(out, "\n{}: {}\n", visible(&one.shown()), visible(&turn.notes.join(", ")));
                }
            }
        }
    }
    out
}

fn as_json(tried: &[Tried]) -> String {
    let one = |one: &Tried| {
        let Tried { provider, base_url, model, result } = one;
        let number = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        match result {
            Ok(turn) => {
                json!({"provider": provider, "base_url": base_url, "model": model, "ok": true, "called_tool": turn.called,
                "first_ms": number(turn.first), "took_ms": number(turn.took), "input_tokens": turn.input,
                "cached_tokens": turn.cached, "output_tokens": turn.output, "notes": turn.notes})
            }
            Err(why) => json!({"provider": provider, "base_url": base_url, "model": model, "ok": false, "error": why}),
        }
    };
    format!("{:#}\n", Value::Array(tried.iter().map(one).collect()))
}
