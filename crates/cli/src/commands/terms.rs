//! What keys and tenants may do, as flags; and tables of that.

use clap::Args as ClapArgs;
use serde_json::{Map, Value};
use server::terms::Budget;
use wire::visible::visible;

/// What may be done; what is not said is not limited.
#[derive(Debug, ClapArgs)]
pub(crate) struct TermsArgs {
    /// Only these models and aliases, as clients name them; `deepseek/*` is all that begin so.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    models: Option<Vec<String>>,
    /// Only these hosted tools: `web_search`, `mcp` (every MCP server), `mcp:LABEL`.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tools: Option<Vec<String>>,
    /// Requests per minute.
    #[arg(long, value_name = "N")]
    rpm: Option<u64>,
    /// Tokens per minute, both ways together.
    #[arg(long, value_name = "N")]
    tpm: Option<u64>,
    /// Turns at once.
    #[arg(long, value_name = "N")]
    concurrency: Option<u64>,
    /// Background responses that wait.
    #[arg(long, value_name = "N")]
    queue: Option<u64>,
    /// Bytes of request bodies in flight.
    #[arg(long, value_name = "N")]
    body_bytes: Option<u64>,
    /// What may be spent, such as `50usd/month`; periods are day, week, month, total.
    #[arg(long, value_name = "BUDGET")]
    budget: Option<Budget>,
}

impl TermsArgs {
    /// Those that were given.
    pub(crate) fn given(&self) -> Map<String, Value> {
        let numbers = [
            ("rpm", self.rpm),
            ("tpm", self.tpm),
            ("concurrency", self.concurrency),
            ("queue", self.queue),
            ("body_bytes", self.body_bytes),
        ];
        let mut terms = Map::new();
        for (name, list) in [("models", &self.models), ("tools", &self.tools)] {
            let list = list.iter().map(|list| Value::from(list.clone()));
            terms.extend(list.map(|list| (name.to_owned(), list)));
        }
        let number = |(name, number): (&str, Option<u64>)| Some((name.to_owned(), Value::from(number?)));
        terms.extend(numbers.into_iter().filter_map(number));
        terms.extend(self.budget.map(|budget| ("budget".to_owned(), Value::from(budget.to_string()))));
        terms
    }
}

/// In a few words.
pub(crate) fn summary(terms: &Value) -> String {
    let word = |(name, value): (&String, &Value)| match (name.as_str(), value) {
        ("budget", Value::String(budget)) => budget.clone(),
        (name, Value::Array(list)) => {
            let list: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
            format!("{name} {}", list.join("|"))
        }
        (name, value) => format!("{name} {value}"),
    };
    let words: Vec<String> = terms.as_object().into_iter().flatten().map(word).collect();
    if words.is_empty() { "-".to_owned() } else { words.join(", ") }
}

/// Columns side by side, as wide as they need to be; the last one is left as it is.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let shown: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| visible(cell).into()).collect()).collect();
    let width = |column: usize| {
        let cells = shown.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(head.get(column).map(|name| name.len())).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells.zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("{}\n", padded.join("  ").trim_end())
    };
    let mut out = line(&mut head.iter().copied());
    out.extend(shown.iter().map(|row| line(&mut row.iter().map(String::as_str))));
    out
}

/// The day of a moment in Unix seconds, in UTC.
pub(crate) fn day(seconds: &Value) -> String {
    let Some(seconds) = seconds.as_u64() else { return "-".to_owned() };
    // Years begin in March here, so that a leap day is the last of its year.
    let days = seconds / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The same with the minute.
pub(crate) fn moment(seconds: &Value) -> String {
    let minutes = seconds.as_u64().map(|seconds| seconds % 86_400 / 60);
    minutes.map_or_else(|| day(seconds), |of_day| format!("{} {:02}:{:02} UTC", day(seconds), of_day / 60, of_day % 60))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0_u64, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_709_164_800, "2024-02-29"),
            (1_798_761_599, "2026-12-31"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(day(&json!(seconds)), expected, "{seconds}");
        }
        assert_eq!(day(&Value::Null), "-");
        assert_eq!(moment(&json!(951_782_399)), "2000-02-28 23:59 UTC");
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [
            vec!["a".to_owned(), "long one".to_owned(), "x".to_owned()],
            vec!["bcd".into(), "é".into(), String::new()],
        ];
        assert_eq!(table(&["N", "WHAT", "Z"], &rows), "N    WHAT      Z\na    long one  x\nbcd  é\n");
        assert_eq!(
            summary(&json!({"models": ["a", "b/*"], "rpm": 5, "budget": "1usd/day"})),
            "models a|b/*, rpm 5, 1usd/day"
        );
        assert_eq!(summary(&json!({})), "-");
    }
}
