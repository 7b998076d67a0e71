//! The kernel alone: what its own benches print, and what of it we promise.

use anyhow::Result;

use super::cargo;
use crate::process;

/// The bench, its line, what it means, and the most that we allow.
const PROMISES: &[(&str, &str, &str, f64)] = &[
    ("plan", "plan_per_parse", "planning a 2 MB history, × parsing it", 1.5),
    ("plan", "growth", "planning 4 MB, × planning 2 MB", 2.2),
    ("machine", "parse_ns", "parsing a chunk and nothing else, ns", f64::INFINITY),
    ("machine", "text_ns", "a text delta, parsing included, ns", 1000.0),
    ("machine", "call_ns", "a tool-argument delta, ns", 1200.0),
    ("machine", "custom_ns", "a delta of a custom tool's input, ns", 1200.0),
    ("machine", "growth", "1 MB of arguments byte by byte, × linear", 1.5),
];

pub(super) fn run() -> Result<()> {
    let mut benches: Vec<&str> = PROMISES.iter().map(|(bench, ..)| *bench).collect();
    benches.dedup();
    for bench in benches {
        let printed = process::output(cargo().args(["bench", "--locked", "--package", "bridge", "--bench", bench]))?;
        println!("\n{:<44} {:>9} {:>9}", format!("kernel: {bench}"), "promised", "reached");
        for (_, key, meaning, limit) in PROMISES.iter().filter(|(name, ..)| *name == bench) {
            let reached =
                printed.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')?.parse::<f64>().ok());
            let kept = if reached.is_some_and(|reached| reached <= *limit) { "kept" } else { "MISSED" };
            let promised = if limit.is_finite() { format!("≤ {limit}") } else { String::new() };
            println!("{meaning:<44} {promised:>9} {:>9} {kept}", reached.unwrap_or(f64::NAN));
        }
    }
    Ok(())
}
