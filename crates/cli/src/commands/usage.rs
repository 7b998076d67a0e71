//! `godex usage`: what was used and what it cost, as a table, JSON or CSV. A cost that is not known is `—`, and no number.

use std::fmt::Write;

use serde_json::{Value, json};
use wire::visible::{acts, visible};

use crate::admin::{self, Look, ask, pretty};
use crate::args::{Flags, UsageArgs};
use crate::output;

/// The columns that may tell rows apart, and those with numbers, each with its heading.
const NAMES: &[&str] = &["day", "tenant", "key", "provider", "model"];
const NUMBERS: &[(&str, &str)] = &[
    ("requests", "requests"),
    ("input_tokens", "input"),
    ("cached_tokens", "cached"),
    ("output_tokens", "output"),
    ("reasoning_tokens", "reasoning"),
    ("tool_calls", "tool calls"),
];
const UNKNOWN: &str = "—";

pub(crate) fn run(flags: &Flags, args: &UsageArgs) -> anyhow::Result<()> {
    let path = format!("/admin/usage?{}", server::usage::plain_query(&args.by, args.since));
    let report = admin::look(flags, Look::Sessions, async |client| ask(client, "GET", &path, None).await);
    let report = admin::or_empty(report, || Ok(json!({"rows": []})))?;
    if args.json {
        return output::print(&pretty(&report));
    }
    let rows = report["rows"].as_array().map_or(&[][..], Vec::as_slice);
    output::print(&if args.csv { csv(rows, &args.by) } else { table(rows, &args.by) })
}

/// The columns that the rows have, in their order.
fn names(by: &str) -> Vec<&'static str> {
    NAMES.iter().copied().filter(|name| by.split(',').any(|told| told == *name)).collect()
}

fn text(row: &Value, name: &str) -> String {
    match &row[name] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// RFC 4180. An unknown cost is an empty field.
fn csv(rows: &[Value], by: &str) -> String {
    let names = names(by);
    let known = names.contains(&"key").then_some("key_name");
    let columns: Vec<&str> =
        names.iter().copied().chain(known).chain(NUMBERS.iter().map(|(name, _)| *name)).chain(["cost_usd"]).collect();
    let mut out = columns.join(",") + "\r\n";
    for row in rows {
        let fields: Vec<String> = columns.iter().map(|name| csv_field(&text(row, name))).collect();
        out.push_str(&fields.join(","));
        out.push_str("\r\n");
    }
    out
}

fn csv_field(text: &str) -> String {
    // What begins so is a formula to those who open the file in a spreadsheet.
    let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text.to_owned() };
    // A terminal shows it, too.
    let acts = |c: char| acts(c) && c != '\n';
    let text = if text.contains(acts) { visible(&text).into_owned() } else { text };
    if text.contains(['"', ',', '\r', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// Names on the left, numbers on the right, and their sum.
fn table(rows: &[Value], by: &str) -> String {
    if rows.is_empty() {
        return "nothing was used\n".to_owned();
    }
    let names = names(by);
    let headings = names.iter().copied().chain(NUMBERS.iter().map(|(_, heading)| *heading)).chain(["cost (USD)"]);
    let mut lines: Vec<Vec<String>> = vec![headings.map(str::to_owned).collect()];
    for row in rows {
        // People know a key by its name; one that was deleted has none any more.
        let shown = |name: &str| match &row["key_name"] {
            Value::String(known) if name == "key" => known.clone(),
            _ => text(row, name),
        };
        let named = names.iter().map(|name| match shown(name) {
            text if text.is_empty() => "-".to_owned(),
            text => visible(&text).into_owned(),
        });
        let numbers = NUMBERS.iter().map(|(name, _)| text(row, name));
        lines.push(named.chain(numbers).chain([cost_of(row)]).collect());
    }
    let sum = |name: &str| rows.iter().filter_map(|row| row[name].as_u64()).fold(0, u64::saturating_add);
    let mut total: Vec<String> = names.iter().map(|_| String::new()).collect();
    if let Some(first) = total.first_mut() {
        "total".clone_into(first);
    }
    total.extend(NUMBERS.iter().map(|(name, _)| sum(name).to_string()));
    total.push(total_cost(rows));
    lines.push(total);
    let unpriced = sum("unpriced");
    let mut out = aligned(&lines, names.len());
    if unpriced > 0 {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "\nThe price of {unpriced} of them is not known: their cost is in no sum.");
    }
    out
}

fn cost_of(row: &Value) -> String {
    row["cost_usd"].as_str().map_or_else(|| UNKNOWN.to_owned(), rounded)
}

/// In billionths of a dollar.
fn nanodollars(text: &str) -> Option<u128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    Some(whole.parse::<u128>().ok()? * 1_000_000_000 + format!("{part:0<9}").parse::<u128>().ok()?)
}

/// With six digits after the point; what is less than the last is not nothing, and is rounded up.
fn rounded(text: &str) -> String {
    let Some(nanodollars) = nanodollars(text) else { return text.to_owned() };
    let micro = nanodollars.div_ceil(1000);
    format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000)
}

fn total_cost(rows: &[Value]) -> String {
    let known: Vec<u128> = rows.iter().filter_map(|row| nanodollars(row["cost_usd"].as_str()?)).collect();
    if known.is_empty() {
        return UNKNOWN.to_owned();
    }
    let sum: u128 = known.iter().sum();
    rounded(&format!("{}.{:09}", sum / 1_000_000_000, sum % 1_000_000_000))
}

fn aligned(lines: &[Vec<String>], names: usize) -> String {
    let width = |column: usize| {
        let of_line = |line: &Vec<String>| line.get(column).map_or(0, |text| text.chars().count());
        lines.iter().map(of_line).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..lines.first().map_or(0, Vec::len)).map(width).collect();
    let mut out = String::new();
    for line in lines {
        let cell = |(column, text): (usize, &String)| {
            let width = widths.get(column).copied().unwrap_or(0);
            if column < names { format!("{text:<width$}") } else { format!("{text:>width$}") }
        };
        let cells: Vec<String> = line.iter().enumerate().map(cell).collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Value> {
        let row = |key: &str, model: &str, requests: u64, cost: Option<&str>| {
            json!({"key": key, "model": model, "requests": requests, "input_tokens": 1200 * requests, "cached_tokens": 0,
                "output_tokens": 30, "reasoning_tokens": 4, "tool_calls": 0, "unpriced": u64::from(cost.is_none()), "cost_usd": cost})
        };
        vec![
            row("key_1", "deepseek/deepseek-v4-pro", 12, Some("1.5")),
            row("", "up/m", 1, None),
            row("key_2", "a\"b,c", 1, Some("0.0000001")),
        ]
    }

    #[test]
    fn a_table_is_aligned_and_has_a_sum() {
        let expected = "\
key    model                     requests  input  cached  output  reasoning  tool calls  cost (USD)
key_1  deepseek/deepseek-v4-pro        12  14400       0      30          4           0    1.500000
-      up/m                             1   1200       0      30          4           0           —
key_2  a\"b,c                            1   1200       0      30          4           0    0.000001
total                                  14  16800       0      90         12           0    1.500001

The price of 1 of them is not known: their cost is in no sum.
";
        assert_eq!(table(&rows(), "model,key"), expected);
        assert_eq!(table(&[], "key"), "nothing was used\n");
    }

    #[test]
    fn csv_can_be_read_by_others() {
        let expected = "key,model,key_name,requests,input_tokens,cached_tokens,output_tokens,reasoning_tokens,tool_calls,cost_usd\r\n\
                        key_1,deepseek/deepseek-v4-pro,,12,14400,0,30,4,0,1.5\r\n,up/m,,1,1200,0,30,4,0,\r\n\
                        key_2,\"a\"\"b,c\",,1,1200,0,30,4,0,0.0000001\r\n";
        assert_eq!(csv(&rows(), "key,model"), expected);
        for (text, field) in [
            ("plain", "plain"),
            ("=1+1", "'=1+1"),
            ("a\nb", "\"a\nb\""),
            ("a\x1b\u{9b}b", "a\\u{1b}\\u{9b}b"),
            ("a\rb", "a\\rb"),
        ] {
            assert_eq!(csv_field(text), field);
        }
    }

    #[test]
    fn a_cost_that_nobody_knows_is_no_number() {
        assert_eq!(total_cost(&[json!({"cost_usd": null})]), UNKNOWN);
        assert_eq!(total_cost(&[json!({"cost_usd": null}), json!({"cost_usd": "0"})]), "0.000000");
    }
}
