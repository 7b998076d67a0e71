use super::*;
use crate::yaml::{Document, Problems, Reader};
use crate::{Library, resolve_inline, resolve_named};

fn none(_: &str) -> Option<String> {
    None
}

fn usage(input: u64, cached: u64, written: u64, output: u64, reasoning: u64) -> Usage {
    Usage {
        input_tokens: input,
        cached_tokens: cached,
        cache_write_tokens: written,
        output_tokens: output,
        reasoning_tokens: reasoning,
        total_tokens: input.saturating_add(output),
    }
}

fn read_prices(text: &str) -> Result<Prices, String> {
    let document = Document::parse("godex.yaml", text).unwrap();
    let reader = Reader::new(&document, &none);
    let mut root = reader.root();
    let prices = root.read("prices", read);
    root.finish();
    let problems = reader.finish();
    if problems.is_empty() { Ok(prices.unwrap()) } else { Err(Problems(problems).to_string()) }
}

fn one(text: &str) -> Price {
    read_prices(&format!("prices: {{m: {text}}}")).unwrap().remove(0).1
}

#[test]
fn costs_are_exact() {
    let full = "{input: 0.28, cached_input: 0.028, cache_write: 0.35, output: 0.42, reasoning: 0.5}";
    let tiered = "{input: 1.25, cached_input: 0.125, output: 10, tiers: [{above: 200000, input: 2.5, output: 15}]}";
    for (price, used, nanodollars) in [
        ("{input: 0, output: 0}", usage(10, 0, 0, 10, 0), 0),
        ("{input: 1, output: 2}", usage(1_000_000, 0, 0, 1_000_000, 0), 3_000_000_000),
        // Reasoning is part of the output, and is not counted twice.
        ("{input: 1, output: 2}", usage(0, 0, 0, 10, 7), 20_000),
        ("{input: 1, output: 2, reasoning: 3}", usage(0, 0, 0, 10, 7), 27_000),
        // Without a price of its own, what was cached costs what the rest does.
        ("{input: 1, output: 2}", usage(10, 4, 0, 0, 0), 10_000),
        (full, usage(1000, 400, 100, 50, 20), 500 * 280 + 400 * 28 + 100 * 350 + 30 * 420 + 20 * 500),
        // What was written to a cache beside the input is paid all the same.
        (full, usage(100, 50, 100, 0, 0), 50 * 28 + 100 * 350),
        // A third of a nanodollar is one.
        ("{input: 0.000001, output: 0}", usage(1, 0, 0, 0, 0), 1),
        ("{input: 0.0006, output: 0}", usage(3, 0, 0, 0, 0), 2),
        ("{input: 0.28, output: 0.42}", usage(3, 0, 0, 7, 0), 3 * 280 + 7 * 420),
        (tiered, usage(200_000, 0, 0, 10, 0), 200_000 * 1250 + 10 * 10_000),
        (tiered, usage(200_001, 0, 0, 10, 0), 200_001 * 2500 + 10 * 15_000),
        (tiered, usage(200_001, 1, 0, 0, 0), 200_001 * 2500),
        ("{input: 1000000, output: 1000000}", usage(u64::MAX, 0, 0, u64::MAX, 0), u64::MAX),
    ] {
        assert_eq!(one(price).cost(&used), nanodollars, "{price} {used:?}");
    }
}

#[test]
fn the_closest_name_and_the_last_word_count() {
    let text = "extends: deepseek\nprices: {'deepseek-*': {input: 1, output: 1}, 'deepseek-v4*': {input: 2, output: 2}, \
                deepseek-v4-pro: {input: 3, output: 3}, '*': {input: 4, output: 4}}\n";
    let document = Document::parse("mine.yaml", text).unwrap();
    let reader = Reader::new(&document, &none);
    let provider = resolve_inline(Library::BUILTIN, &reader.root_field(), &none).unwrap();
    assert!(reader.finish().is_empty());
    let input =
        |model: &str| provider.price(model).map(|price| price.cost(&usage(1_000_000, 0, 0, 0, 0)) / 1_000_000_000);
    for (model, dollars) in
        [("deepseek-v4-pro", 3), ("DeepSeek-V4-pro", 3), ("deepseek-v4-flash", 2), ("deepseek-flash", 1), ("other", 4)]
    {
        assert_eq!(input(model), Some(dollars), "{model}");
    }
}

#[test]
fn another_address_has_other_prices() {
    let resolve = |text: &str| {
        let document = Document::parse("mine.yaml", text).unwrap();
        let reader = Reader::new(&document, &none);
        let provider = resolve_inline(Library::BUILTIN, &reader.root_field(), &none).unwrap();
        assert!(reader.finish().is_empty(), "{text}");
        provider.price("deepseek-v4-pro").cloned()
    };
    let own = resolve_named(Library::BUILTIN, "deepseek", &none).unwrap().price("deepseek-v4-pro").cloned();
    assert!(own.is_some());
    assert_eq!(resolve("extends: deepseek"), own);
    assert_eq!(resolve("extends: deepseek\nendpoint: {base_url: https://api.deepseek.com}"), own);
    assert_eq!(resolve("extends: deepseek\nendpoint: {base_url: https://proxy.example.com}"), None);
    let mine =
        "extends: deepseek\nendpoint: {base_url: https://proxy.example.com}\nprices: {'*': {input: 1, output: 2}}";
    assert_eq!(resolve(mine), Some(one("{input: 1, output: 2}")));
}

#[test]
fn mistakes_in_prices_are_found() {
    let needs = "a price needs `input` and `output`, in US dollars for a million tokens";
    for (price, expected) in [
        ("{input: 1}", needs),
        ("{output: 1}", needs),
        ("1.5", "expected a mapping"),
        ("{input: -1, output: 1}", "prices.m.input: expected a number of US dollars such as `0.28`"),
        ("{input: 1e-3, output: 1}", "expected a number of US dollars"),
        ("{input: 0.0000001, output: 1}", "expected a number of US dollars"),
        ("{input: .5, output: 1}", "expected a number of US dollars"),
        ("{input: 99999999, output: 1}", "expected a number of US dollars"),
        ("{input: 1, output: 1, as_of: soon}", "prices.m.as_of: expected a date such as `2026-11-01`"),
        ("{input: 1, output: 1, ouput: 1}", "unknown key `ouput`; did you mean `output`?"),
        ("{input: 1, output: 1, tiers: [{input: 1, output: 1}]}", "a tier needs `above`"),
        ("{input: 1, output: 1, tiers: [{above: 5, output: 1}]}", needs),
    ] {
        let problems = read_prices(&format!("prices: {{m: {price}}}")).unwrap_err();
        assert!(problems.contains(expected), "{price}: {problems}");
    }
}

#[test]
fn prices_are_written_as_they_read() {
    for price in [
        "{input: 0.28, output: 0.42}",
        "{input: 10, cached_input: 0.0028, cache_write: 12.5, output: 0, reasoning: 0.000001}",
        "{input: 1, output: 2, tiers: [{above: 1000, input: 2, output: 4}, {above: 5000, input: 3, output: 6}], as_of: 2026-11-01, \
         source: 'https://example.com/prices'}",
    ] {
        assert_eq!(one(price).yaml(), price);
    }
}

/// A price without its date and its page would be a rumour.
#[test]
fn every_built_in_price_has_its_date_and_source() {
    let mut count = 0;
    for name in Library::BUILTIN.names() {
        let provider = resolve_named(Library::BUILTIN, name, &none).unwrap();
        for (pattern, price) in whole(&provider.layers) {
            count += 1;
            assert!(price.as_of.is_some(), "{name} {pattern}");
            let source = price.source.unwrap_or_default();
            assert!(
                source.starts_with("https://") || name == "demo" && source == "built in",
                "{name} {pattern}: {source}"
            );
        }
    }
    assert!(count > 20, "{count}");
    let price = |name: &str, model: &str| {
        resolve_named(Library::BUILTIN, name, &none)
            .unwrap()
            .price(model)
            .map(|price| price.cost(&usage(1000, 0, 0, 1000, 0)))
    };
    // Dated snapshots and families; what is not known is not guessed from a shorter name.
    assert_eq!(price("openai", "gpt-5-2025-08-07"), price("openai", "gpt-5"));
    assert_eq!(price("openai", "gpt-5-mini"), Some(1000 * 250 + 1000 * 2000));
    for (name, model) in
        [("openai", "gpt-5-unheard-of"), ("openai", "gpt-7"), ("ollama", "llama3"), ("vllm", "m"), ("zhipu", "glm-5.2")]
    {
        assert_eq!(price(name, model), None, "{name}/{model}");
    }
    assert_eq!(price("demo", "demo"), Some(0));
}
