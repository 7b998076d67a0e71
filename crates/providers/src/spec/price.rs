//! What models cost: `prices` of a spec, and of the user's entry for a provider. Amounts are decimals and stay exact: they
//! are whole picodollars for a token. What is not known is None, and never nothing.
//!
//! No price is ever guessed from another model's, and none is used for an address that is not the spec's own.

use wire::responses::Usage;

use super::glob;
use super::layer::{Layer, Source};
use super::values::Yaml;
use crate::yaml::{Field, Section};

/// Picodollars for a token, in a dollar for a million of them.
const PICO: u64 = 1_000_000;
/// Digits after the point that this takes.
const DIGITS: usize = 6;
/// Picodollars in a nanodollar.
const PICO_OF_NANO: u64 = 1000;
/// More than anybody asks.
const MOST: u64 = 1_000_000;

/// What a model costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    rates: Rates,
    /// What holds above so many tokens of input, the fewest first.
    tiers: Vec<(u64, Rates)>,
    /// When it was looked up, `2026-11-01`.
    pub as_of: Option<String>,
    /// Where.
    pub source: Option<String>,
}

/// In picodollars for a token. What is not said of a part costs what the whole does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rates {
    input: u64,
    cached_input: Option<u64>,
    cache_write: Option<u64>,
    output: u64,
    reasoning: Option<u64>,
}

/// Prices by the names of models, or patterns.
pub(crate) type Prices = Vec<(String, Price)>;

impl Price {
    /// What an answer with this usage costs, in nanodollars; a part of one counts as a whole.
    pub fn cost(&self, usage: &Usage) -> u64 {
        let rates = self.tiers.iter().rev().find(|(above, _)| usage.input_tokens > *above);
        let Rates { input, cached_input, cache_write, output, reasoning } =
            rates.map_or(self.rates, |(_, rates)| *rates);
        let fresh = usage.input_tokens.saturating_sub(usage.cached_tokens).saturating_sub(usage.cache_write_tokens);
        let said = usage.output_tokens.saturating_sub(usage.reasoning_tokens);
        let parts = [
            (fresh, input),
            (usage.cached_tokens, cached_input.unwrap_or(input)),
            (usage.cache_write_tokens, cache_write.unwrap_or(input)),
            (said, output),
            (usage.reasoning_tokens, reasoning.unwrap_or(output)),
        ];
        // Neither factor is near 2^64: a price is below 10^12.
        let used = parts.iter().filter(|(tokens, _)| *tokens > 0);
        let pico: u128 = used.map(|(tokens, rate)| u128::from(*tokens) * u128::from(*rate)).sum();
        // To divide wide numbers takes long, and few are.
        match u64::try_from(pico) {
            Ok(pico) => pico.div_ceil(PICO_OF_NANO),
            Err(_) => u64::try_from(pico.div_ceil(u128::from(PICO_OF_NANO))).unwrap_or(u64::MAX),
        }
    }
}

/// The price of a model among those that one file says: its own name first, then the longest pattern.
fn find<'a>(prices: &'a Prices, model: &str) -> Option<&'a Price> {
    let fitting = prices.iter().filter(|(pattern, _)| glob::matches(pattern, model));
    fitting.max_by_key(|(pattern, _)| (glob::is_exact(pattern), pattern.len())).map(|(_, price)| price)
}

/// The layers whose prices count, the last word first. Where another address is said, what was said of the one before
/// does not.
fn counting(layers: &[Layer]) -> impl Iterator<Item = &Prices> {
    let said = super::address::said(layers);
    let first = (0..said.len()).rev().find(|index| {
        let own = said.get(*index).filter(|own| own.is_some());
        own.is_some_and(|own| !said.iter().take(*index).any(|below| below == own))
    });
    layers.iter().skip(first.unwrap_or(0)).rev().map(|layer| &layer.spec.prices)
}

/// What the layers come to for a model.
pub(super) fn of_model<'a>(layers: &'a [Layer], model: &str) -> Option<&'a Price> {
    counting(layers).find_map(|prices| find(prices, model))
}

/// All that may be found.
pub(super) fn whole(layers: &[Layer]) -> Prices {
    let mut all = Prices::new();
    for (pattern, price) in counting(layers).flatten() {
        if !all.iter().any(|(known, _)| known == pattern) {
            all.push((pattern.clone(), price.clone()));
        }
    }
    all
}

/// A mapping of names and patterns to prices.
pub(crate) fn read(field: &Field<'_>) -> Option<Prices> {
    let price = |(pattern, field): (String, Field<'_>)| Some((pattern, price(field)?));
    Some(field.entries()?.into_iter().filter_map(price).collect())
}

fn price(field: Field<'_>) -> Option<Price> {
    let mut section = field.section()?;
    let rates = rates(&mut section);
    let tiers = section.field("tiers").and_then(|field| tiers(&field));
    let price = Price {
        rates: rates.unwrap_or(Rates { input: 0, cached_input: None, cache_write: None, output: 0, reasoning: None }),
        tiers: tiers.unwrap_or_default(),
        as_of: section.read("as_of", date),
        source: section.read("source", Field::text),
    };
    section.finish();
    rates.map(|_| price)
}

fn rates(section: &mut Section<'_>) -> Option<Rates> {
    let [input, cached_input, cache_write, output, reasoning] =
        ["input", "cached_input", "cache_write", "output", "reasoning"].map(|name| section.read(name, rate));
    if input.is_none() || output.is_none() {
        section.problem("a price needs `input` and `output`, in US dollars for a million tokens", None);
    }
    Some(Rates { input: input?, cached_input, cache_write, output: output?, reasoning })
}

fn tiers(field: &Field<'_>) -> Option<Vec<(u64, Rates)>> {
    let tier = |field: Field<'_>| {
        let mut section = field.section()?;
        let above = section.read("above", |field| field.integer(1..=1_000_000_000));
        if above.is_none() {
            section.problem("a tier needs `above`, a number of input tokens", None);
        }
        let rates = rates(&mut section);
        section.finish();
        Some((above?, rates?))
    };
    let mut tiers: Vec<_> = field.list()?.into_iter().filter_map(tier).collect();
    tiers.sort_by_key(|(above, _)| *above);
    Some(tiers)
}

/// Dollars for a million tokens.
fn rate(field: &Field<'_>) -> Option<u64> {
    let text = field.string()?;
    decimal(text.trim(), DIGITS).map_or_else(
        || field.expected("a number of US dollars such as `0.28`, with at most six digits after the point"),
        Some,
    )
}

/// A price for each call, in dollars; gives nanodollars.
pub fn price_per_call(field: &Field<'_>) -> Option<u64> {
    let text = field.string()?;
    decimal(text.trim(), 9).map_or_else(|| field.expected("a number of US dollars such as `0.005`"), Some)
}

/// A decimal as a whole number of its last digit.
fn decimal(text: &str, digits: usize) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !plain(whole) || !plain(part) || part.len() > digits {
        return None;
    }
    let (whole, part): (u64, u64) = (whole.parse().ok()?, format!("{part:0<digits$}").parse().ok()?);
    let scale = 10_u64.checked_pow(u32::try_from(digits).ok()?)?;
    (whole <= MOST).then(|| whole * scale + part)
}

fn date(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    let parts: Vec<&str> = text.split('-').collect();
    let number = |index: usize, length: usize| {
        let part: &&str = parts.get(index).filter(|part| part.len() == length)?;
        part.parse::<u32>().ok()
    };
    match (parts.len(), number(0, 4), number(1, 2), number(2, 2)) {
        (3, Some(2000..), Some(1..=12), Some(1..=31)) => Some(text),
        _ => field.expected("a date such as `2026-11-01`"),
    }
}

/// As it is written in a file.
fn dollars(rate: u64) -> String {
    let (whole, part) = (rate / PICO, rate % PICO);
    if part == 0 { whole.to_string() } else { format!("{whole}.{part:06}").trim_end_matches('0').to_owned() }
}

impl Rates {
    fn members(&self) -> Vec<String> {
        let Self { input, cached_input, cache_write, output, reasoning } = self;
        let parts = [
            ("input", Some(*input)),
            ("cached_input", *cached_input),
            ("cache_write", *cache_write),
            ("output", Some(*output)),
            ("reasoning", *reasoning),
        ];
        parts.iter().filter_map(|(name, rate)| Some(format!("{name}: {}", dollars((*rate)?)))).collect()
    }
}

impl Yaml for Price {
    fn yaml(&self) -> String {
        self.shown("", Source::UNKNOWN)
    }

    fn shown(&self, path: &str, from: Source<'_>) -> String {
        let mut members = self.rates.members();
        if !self.tiers.is_empty() {
            let tier = |(above, rates): &(u64, Rates)| format!("{{above: {above}, {}}}", rates.members().join(", "));
            members.push(format!("tiers: [{}]", self.tiers.iter().map(tier).collect::<Vec<_>>().join(", ")));
        }
        members.extend(self.as_of.as_ref().map(|date| format!("as_of: {date}")));
        let source = self.source.as_ref().map(|source| source.shown(&format!("{path}.source"), from));
        members.extend(source.map(|source| format!("source: {source}")));
        format!("{{{}}}", members.join(", "))
    }
}

#[cfg(test)]
#[path = "price_tests.rs"]
mod tests;
