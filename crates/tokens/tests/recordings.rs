//! How far counts and estimates are from what real providers reported, over the recorded exchanges. The table is printed,
//! and each of its numbers has a bound:
//! `cargo nextest run --workspace --test recordings --no-capture`.
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

/// The median and the 90th percentile of relative errors, in percent.
type Spread = [u64; 2];

fn spread(counts: impl IntoIterator<Item = (u64, u64)>) -> Spread {
    let error = |(tokens, reported): (u64, u64)| (tokens.abs_diff(reported) * 100).div_ceil(reported);
    let mut errors: Vec<u64> = counts.into_iter().map(error).collect();
    errors.sort_unstable();
    [errors[errors.len() / 2], errors[errors.len() * 9 / 10]]
}

/// What the errors may be at most: counted where there is a tokenizer, estimated, learned.
const BOUNDS: &[(&str, &str, Option<Encoding>, [Spread; 3])] = &[
    ("azure", "gpt-4o", Some(Encoding::O200k), [[0, 0], [0, 0], [0, 0]]),
    ("openai", "gpt-4o", Some(Encoding::O200k), [[0, 0], [0, 0], [0, 0]]),
    ("bedrock", "openai.gpt-oss-20b-1:0", Some(Encoding::O200kHarmony), [[0, 0], [0, 0], [0, 0]]),
    ("watsonx", "meta-llama/llama-3-3-70b-instruct", None, [[0, 0], [0, 0], [0, 0]]),
    ("ollama", "llama3.2:3b-instruct-fp16", None, [[0, 0], [0, 0], [0, 0]]),
    ("vllm", "Qwen/Qwen3-0.6B", None, [[0, 0], [0, 0], [0, 0]]),
];

#[test]
fn errors_are_as_documented() {
    let Some(all) = exchanges() else { return };
    println!("| provider, model | requests | counted | estimated | learned |\n|---|---|---|---|---|");
    let mut missed = Vec::new();
    for (provider, model, encoding, bounds) in BOUNDS {
        let exchanges = &all[&((*provider).to_owned(), (*model).to_owned())];
        let counted = encoding.map_or([0, 0], |encoding| {
            spread(exchanges.iter().map(|it| (tokens::count(encoding, &it.body).unwrap().tokens, it.reported)))
        });
        let estimated = spread(exchanges.iter().map(|it| (tokens::estimate(&it.body), it.reported)));
        // Each is predicted from those before it.
        let mut learned = Learned::default();
        let corrected = spread(exchanges.iter().map(|it| {
            let estimated = tokens::estimate(&it.body);
            let corrected = learned.correct(estimated);
            learned.learn(estimated, it.reported);
            (corrected, it.reported)
        }));
        let reached = [counted, estimated, corrected];
        let shown = |[median, most]: Spread| format!("{median} %, {most} %");
        let counted = encoding.map_or("–".to_owned(), |_| shown(counted));
        println!(
            "| {provider}, {model} | {} | {counted} | {} | {} |",
            exchanges.len(),
            shown(estimated),
            shown(corrected)
        );
        if reached.as_flattened().iter().zip(bounds.as_flattened()).any(|(reached, bound)| reached > bound) {
            missed.push(format!("{provider} {model}: {reached:?}, not {bounds:?}"));
        }
        if !model.contains("gpt") {
            for it in exchanges {
                let v: Value = serde_json::from_slice(&it.body).unwrap();
                println!(
                    "  {} est {} {}",
                    it.reported,
                    tokens::estimate(&it.body),
                    &v["messages"].to_string().chars().take(150).collect::<String>()
                );
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}
