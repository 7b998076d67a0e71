//! How far counts and estimates are from what real providers reported, over the recorded exchanges. The table is printed,
//! and each of its numbers has a bound: `cargo nextest run --workspace -E 'package(tokens)' --no-capture errors`.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use serde_json::Value;
use testkit::Recorded;
use tokens::{Encoding, Learned};

/// A request, and the tokens that its provider reported for it.
struct Exchange {
    body: Vec<u8>,
    reported: u64,
}

/// The exchanges with a report, by provider and model.
fn exchanges() -> Option<BTreeMap<(String, String), Vec<Exchange>>> {
    let mut all: BTreeMap<(String, String), Vec<Exchange>> = BTreeMap::new();
    for recording in testkit::recordings()? {
        let usage = match &recording.answer {
            Recorded::Sync(answer) => answer["usage"].clone(),
            Recorded::Chunks(chunks) => {
                let usages = chunks.iter().map(|chunk| &chunk["usage"]).filter(|usage| !usage.is_null());
                usages.last().cloned().unwrap_or(Value::Null)
            }
        };
        let Some(reported) = usage["prompt_tokens"].as_u64().filter(|tokens| *tokens > 0) else { continue };
        let model = recording.request["model"].as_str().unwrap_or_default().to_owned();
        let body = recording.request.to_string().into_bytes();
        all.entry((recording.provider, model)).or_default().push(Exchange { body, reported });
    }
    Some(all)
}

fn encoding(model: &str) -> Option<Encoding> {
    let is = |name: &str| model.contains(name);
    match model {
        _ if is("gpt-oss") => Some(Encoding::O200kHarmony),
        _ if is("gpt-4o") || is("o4-") => Some(Encoding::O200k),
        _ => None,
    }
}

/// The median and the 90th percentile of relative errors, in percent.
fn spread(errors: impl IntoIterator<Item = (u64, u64)>) -> [u64; 2] {
    let of = |(tokens, reported): (u64, u64)| (tokens.abs_diff(reported) * 1000).div_ceil(reported * 10);
    let mut errors: Vec<u64> = errors.into_iter().map(of).collect();
    errors.sort_unstable();
    [errors[errors.len() / 2], errors[errors.len() * 9 / 10]]
}

#[test]
fn errors_are_as_documented() {
    let Some(all) = exchanges() else { return };
    println!("| provider, model | requests | counted | estimated | learned |");
    for ((provider, model), exchanges) in &all {
        let counted = encoding(model).map(|encoding| {
            spread(exchanges.iter().map(|it| (tokens::count(encoding, &it.body).unwrap().tokens, it.reported)))
        });
        let estimated = spread(exchanges.iter().map(|it| (tokens::estimate(&it.body), it.reported)));
        let mut learned = Learned::default();
        let corrected = spread(exchanges.iter().map(|it| {
            let estimated = tokens::estimate(&it.body);
            let corrected = learned.correct(estimated);
            learned.learn(estimated, it.reported);
            (corrected, it.reported)
        }));
        println!("| {provider} {model} | {} | {counted:?} | {estimated:?} | {corrected:?} |", exchanges.len());
        if std::env::args().any(|a| a == "x") || model.contains("gpt") {
            for it in exchanges.iter().take(40) {
                let c = encoding(model).map(|e| tokens::count(e, &it.body).unwrap().tokens as i64 - it.reported as i64);
                let v: Value = serde_json::from_slice(&it.body).unwrap();
                let m = v["messages"].as_array().unwrap();
                println!(
                    "   rep {} diff {c:?} est {} msgs {} roles {:?} calls {} parts {} tools {} fmt {} strict {}",
                    it.reported,
                    tokens::estimate(&it.body),
                    m.len(),
                    m.iter().map(|m| m["role"].as_str().unwrap().chars().next().unwrap()).collect::<String>(),
                    m.iter().map(|m| m["tool_calls"].as_array().map_or(0, Vec::len)).sum::<usize>(),
                    m.iter().map(|m| m["content"].as_array().map_or(0, Vec::len)).sum::<usize>(),
                    v["tools"].as_array().map_or(0, Vec::len),
                    !v["response_format"].is_null(),
                    v["tools"][0]["function"]["strict"]
                );
            }
        }
    }
}
