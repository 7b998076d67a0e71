//! The request side against the clock: a long agent's history, planned. Prints KEY=VALUE lines:
//! how long parsing takes (validation and reading into types), how long planning does, and how both grow; and how much of
//! what a provider may have cached the requests of a long session do not repeat.
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "a bench: it measures real time")]
#![expect(clippy::print_stdout, reason = "what it prints is its interface")]
#![expect(clippy::unwrap_used, reason = "a bench: what it makes itself is well formed")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use bridge::{Dialect, PlanTarget, Policy, Unsealed};
use providers::{Library, resolve_named};
use serde_json::{Value, json};
use testkit::{Offer, codex_session};
use wire::json::{FromRaw, Raw};
use wire::responses::CreateResponse;

const RUNS: usize = 15;

fn main() {
    let (small, large) = (request(375), request(750));
    let (parse, plan) = (best(|| parse(&small)), plan_time(&small));
    let (large_parse, large_plan) = (best(|| self::parse(&large)), plan_time(&large));
    println!("bytes={}", small.len());
    println!("parse_us={}", parse.as_micros());
    println!("plan_us={}", plan.as_micros());
    println!("plan_per_parse={:.2}", plan.as_secs_f64() / parse.as_secs_f64());
    println!("large_bytes={}", large.len());
    println!("large_parse_us={}", large_parse.as_micros());
    println!("large_plan_us={}", large_plan.as_micros());
    println!("prefix_lost={:.2}", Offer::ALL.map(prefix_lost).into_iter().fold(0.0, f64::max));
    println!("growth={:.2}", large_plan.as_secs_f64() / plan.as_secs_f64());
}

/// What a server does before it can plan: one validation, then types over the same text.
fn parse(text: &str) {
    black_box(CreateResponse::from_raw(Raw::parse(text).unwrap()).unwrap());
}

fn plan_time(text: &str) -> Duration {
    let request = CreateResponse::from_raw(Raw::parse(text).unwrap()).unwrap();
    let dialect = Dialect::default();
    let target = PlanTarget {
        model: "m",
        dialect: &dialect,
        policy: Policy::default(),
        seal: &Unsealed,
        images: None,
        files: None,
        cache_key: None,
        hosting: bridge::Hosting::default(),
    };
    best(|| {
        black_box(bridge::plan(black_box(&request), &[], target).unwrap());
    })
}

/// How much of a request's bytes the next one of a session does not begin with, in percent, on the worst of all built-in
/// dialects: what its provider cannot have cached.
fn prefix_lost(offer: Offer) -> f64 {
    let requests: Vec<String> = codex_session(60, offer, &str::to_owned).iter().map(Value::to_string).collect();
    let lost = |name: &str| {
        let dialect = resolve_named(Library::BUILTIN, name, &|_| None).unwrap().dialect;
        let policy = Policy { repair_history: true, ..Policy::default() };
        let target = PlanTarget {
            model: "m",
            dialect: &dialect,
            policy,
            images: None,
            files: None,
            cache_key: None,
            seal: &Unsealed,
            hosting: bridge::Hosting::default(),
        };
        let body = |text: &String| {
            let request = CreateResponse::from_raw(Raw::parse(text).unwrap()).unwrap();
            bridge::plan(&request, &[], target).unwrap().body
        };
        let bodies: Vec<Vec<u8>> = requests.iter().map(body).collect();
        let common = |pair: &[Vec<u8>]| pair[0].iter().zip(&pair[1]).take_while(|(one, other)| one == other).count();
        let (shared, all) =
            bodies.windows(2).fold((0, 0), |(shared, all), pair| (shared + common(pair), all + pair[0].len()));
        100.0 - percent(shared, all)
    };
    Library::BUILTIN.names().map(lost).fold(0.0, f64::max)
}

#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
fn percent(part: usize, whole: usize) -> f64 {
    part as f64 * 100.0 / whole as f64
}

/// The shortest of many runs: what the work costs when nothing else happens.
fn best(mut run: impl FnMut()) -> Duration {
    let once = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..RUNS).map(|_| once(&mut run)).min().unwrap_or_default()
}

/// A Codex-like request: four items a round, 120 tools; 375 rounds are about 2 MB and 1,500 items.
fn request(rounds: usize) -> String {
    let tool = |i: usize| {
        json!({"type": "function", "name": format!("tool_{i}"), "strict": false, "description": "Does one thing well. ".repeat(8),
            "parameters": {"type": "object", "properties": {"cmd": {"type": "string", "description": "What to run."},
                "yield_time_ms": {"type": "number"}}, "required": ["cmd"], "additionalProperties": false}})
    };
    let items: Vec<Value> = (0..rounds).flat_map(round).collect();
    json!({"model": "m", "stream": true, "input": items, "tools": (0..120).map(tool).collect::<Vec<_>>()}).to_string()
}

fn round(number: usize) -> [Value; 4] {
    let id = format!("call_{number:08}");
    let command =
        json!({"cmd": format!("sed -n '{},+80p' \"src/part_{number}.rs\"", number * 80), "workdir": "/home/dev"});
    let line = "    let path = format!(\"{}\\\\{name}\", self.root); // caf\u{e9}: see #42\n";
    [
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": format!("Step {number}: go on.")}]}),
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I'll look at \"that\".", "annotations": []}]}),
        json!({"type": "function_call", "id": format!("fc_{number}"), "call_id": id, "name": "tool_7", "arguments": command.to_string(), "status": "completed"}),
        json!({"type": "function_call_output", "call_id": id, "output": line.repeat(65)}),
    ]
}
