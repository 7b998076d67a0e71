//! Crates alone: what their own benches print, and what of it we promise.

use anyhow::Result;

use super::cargo;
use crate::process;

/// No promise: it is there to be compared with.
const BESIDE: f64 = f64::INFINITY;

/// The bench, its line, what it means, and the most that we allow.
const PROMISES: &[(&str, &str, &str, f64)] = &[
    ("plan", "plan_per_parse", "planning a 2 MB history, × parsing it", 1.5),
    ("plan", "growth", "planning 4 MB, × planning 2 MB", 2.2),
    ("plan", "prefix_lost", "60 turns of Codex: not repeated, % of bytes", 5.0),
    ("answer", "parse_ns", "parsing a chunk and nothing else, ns", BESIDE),
    ("answer", "text_ns", "a text delta, parsing included, ns", 1000.0),
    ("answer", "sse_ns", "  the same as server-sent events, ns", BESIDE),
    ("answer", "frames_ns", "  as frames, ns", BESIDE),
    ("answer", "both_ns", "  as both, ns", BESIDE),
    ("answer", "silent_ns", "  as nothing, ns", BESIDE),
    ("answer", "call_ns", "a tool-argument delta, ns", 1200.0),
    ("answer", "custom_ns", "a delta of a custom tool's input, ns", 1200.0),
    ("answer", "messages_ns", "a text delta of a Messages answer, ns", 1000.0),
    ("answer", "messages_per_chat", "  the same, × one of a chat answer", 1.2),
    ("answer", "growth", "1 MB of arguments byte by byte, × linear", 1.5),
    ("session", "resent", "400 turns resent whole, bytes × payload", 1.5),
    ("session", "respelled", "the same, our items spelled anew", 1.5),
    ("session", "seed_resent", "  the original's way", BESIDE),
    ("session", "history_200_cold_us", "history of turn 200, cold, µs", BESIDE),
    ("session", "history_200_warm_us", "history of turn 200, warm, µs", BESIDE),
    ("session", "seed_history_200_cold_us", "  the original's way, cold", BESIDE),
    ("session", "seed_history_200_warm_us", "  the original's way, warm", BESIDE),
    ("session", "history_2000_cold_us", "history of turn 2,000, cold, µs", BESIDE),
    ("session", "history_2000_warm_us", "history of turn 2,000, warm, µs", BESIDE),
    ("session", "seed_history_2000_cold_us", "  the original's way, cold", BESIDE),
    ("session", "seed_history_2000_warm_us", "  the original's way, warm", BESIDE),
    ("session", "durable_1", "durable responses/s, one writer", BESIDE),
    ("session", "durable_64", "durable responses/s, 64 writers", BESIDE),
    ("session", "seed_durable", "  the original's way, any number", BESIDE),
    ("session", "commit_1_p50_us", "commit at the end of a turn, p50, µs", BESIDE),
    ("session", "encrypted_put", "a turn stored encrypted, × in clear", BESIDE),
    ("session", "encrypted_history_200", "history of turn 200 encrypted, × in clear", BESIDE),
];

/// The crate of a bench.
fn package(bench: &str) -> &'static str {
    if bench == "session" { "store" } else { "bridge" }
}

pub(super) fn run() -> Result<()> {
    let mut benches: Vec<&str> = PROMISES.iter().map(|(bench, ..)| *bench).collect();
    benches.dedup();
    for bench in benches {
        let package = package(bench);
        let printed = process::output(cargo().args(["bench", "--locked", "--package", package, "--bench", bench]))?;
        println!("\n{:<44} {:>9} {:>9}", format!("{package}: {bench}"), "promised", "reached");
        for (_, key, meaning, limit) in PROMISES.iter().filter(|(name, ..)| *name == bench) {
            let reached =
                printed.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')?.parse::<f64>().ok());
            let kept = match reached {
                Some(_) if limit.is_infinite() => "",
                Some(reached) if reached <= *limit => "kept",
                _ => "MISSED",
            };
            let promised = if limit.is_finite() { format!("≤ {limit}") } else { String::new() };
            println!("{meaning:<44} {promised:>9} {:>9} {kept}", reached.unwrap_or(f64::NAN));
        }
    }
    Ok(())
}
