//! Traces as lines, each as wide as the terminal at the most: what matters less goes first. Nothing that others wrote moves a
//! cursor.

use serde_json::Value;
use wire::visible::visible;

use crate::terminal;

/// One column: its heading, how wide it is, whether its right side is even, and how soon it goes where there is no room; 0:
/// never.
struct Column {
    name: &'static str,
    width: usize,
    right: bool,
    goes: u8,
    cell: fn(&Value) -> String,
}

const fn column(name: &'static str, width: usize, right: bool, goes: u8, cell: fn(&Value) -> String) -> Column {
    Column { name, width, right, goes, cell }
}

const COLUMNS: &[Column] = &[
    column("NO", 7, true, 0, |trace| trace["number"].to_string()),
    column("UTC", 14, false, 5, |trace| moment(&trace["began_at"])),
    column("RESULT", 16, false, 0, result),
    column("KIND", 10, false, 3, |trace| text(&trace["kind"])),
    column(MODEL, 24, false, 0, model),
    column("IN", 7, true, 6, |trace| number(&trace["input_tokens"])),
    column("CACHED", 6, true, 2, cached),
    column("OUT", 6, true, 6, |trace| number(&trace["output_tokens"])),
    column("FIRST", 7, true, 4, |trace| duration(&trace["first_token_ms"])),
    column("TOOK", 7, true, 0, |trace| duration(&trace["took_ms"])),
    column("COST", 9, true, 1, |trace| cost(&trace["cost_usd"])),
    column("NOTES", 5, true, 4, |trace| notes(&trace["notes"])),
];

/// Takes what room there is.
const MODEL: &str = "MODEL";
const WIDEST_MODEL: usize = 48;
const GAP: &str = "  ";

pub(super) struct Table {
    columns: Vec<(&'static Column, usize)>,
    /// Where nobody counts columns, the id follows.
    has_ids: bool,
    colors: bool,
    has_head: bool,
}

impl Table {
    pub(super) fn new() -> Self {
        Self::of(terminal::width(), terminal::has_colors())
    }

    fn of(width: Option<usize>, colors: bool) -> Self {
        let mut columns: Vec<&'static Column> = COLUMNS.iter().collect();
        let wide = |columns: &[&Column]| {
            columns.iter().map(|column| column.width).sum::<usize>() + GAP.len() * (columns.len() - 1)
        };
        let room = width.unwrap_or(usize::MAX);
        while wide(&columns) > room {
            let first = columns.iter().filter(|column| column.goes > 0).map(|column| column.goes).min();
            let Some(first) = first else { break };
            columns.retain(|column| column.goes != first);
        }
        let spare = room.saturating_sub(wide(&columns));
        let fitted = columns.into_iter().map(|column| match column.name {
            MODEL => (column, (column.width + spare).min(WIDEST_MODEL)),
            _ => (column, column.width),
        });
        Self { columns: fitted.collect(), has_ids: width.is_none(), colors, has_head: false }
    }

    /// A line for each, and before the first what the columns are.
    pub(super) fn lines(&mut self, traces: &[Value]) -> String {
        let mut out = String::new();
        if !std::mem::replace(&mut self.has_head, true) && !traces.is_empty() {
            out.push_str(&self.line(&|column| column.name.to_owned(), "ID"));
        }
        for trace in traces {
            let id = ["response_id", "request_id"].into_iter().find_map(|name| trace[name].as_str());
            let line = self.line(&|column| (column.cell)(trace), id.unwrap_or_default());
            out.push_str(&self.colored(trace, line));
        }
        out
    }

    fn line(&self, cell: &dyn Fn(&Column) -> String, id: &str) -> String {
        let fitted = |(column, width): &(&'static Column, usize)| {
            let text = cell(column);
            let text = visible(&text);
            // A program that looks for a word must find it.
            let width = if self.has_ids { (*width).max(terminal::columns(&text)) } else { *width };
            terminal::fit(&text, width, column.right)
        };
        let mut cells: Vec<String> = self.columns.iter().map(fitted).collect();
        if self.has_ids {
            cells.push(visible(id).into_owned());
        }
        format!("{}\n", cells.join(GAP).trim_end())
    }

    fn colored(&self, trace: &Value, line: String) -> String {
        let color = if !trace["error"].is_null() || trace["status"].as_u64().is_some_and(|status| status >= 400) {
            "\x1b[31m"
        } else if trace["notes"].as_array().is_some_and(|notes| !notes.is_empty()) {
            "\x1b[33m"
        } else {
            return line;
        };
        if self.colors { format!("{color}{}\x1b[0m\n", line.trim_end()) } else { line }
    }
}

pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// `11-16 16:33:12`.
fn moment(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    text.get(5..19).map(|text| text.replace('T', " ")).unwrap_or_default()
}

fn result(trace: &Value) -> String {
    match (&trace["error"], trace["status"].as_u64()) {
        (Value::String(error), Some(status)) if status >= 400 => format!("{status} {error}"),
        (Value::String(error), _) => error.clone(),
        _ => text(&trace["outcome"]),
    }
}

/// What was asked for, and who has answered if that is not the same.
fn model(trace: &Value) -> String {
    let asked = text(&trace["model"]);
    let Value::String(provider) = &trace["provider"] else { return asked };
    let target = format!("{provider}/{}", text(&trace["upstream_model"]));
    if asked == target || asked == text(&trace["upstream_model"]) { target } else { format!("{asked} → {target}") }
}

fn number(value: &Value) -> String {
    value.as_u64().map(|number| number.to_string()).unwrap_or_default()
}

fn cached(trace: &Value) -> String {
    match (trace["cached_tokens"].as_u64(), trace["input_tokens"].as_u64()) {
        (Some(cached), Some(input)) if input > 0 => format!("{}%", cached * 100 / input),
        _ => String::new(),
    }
}

/// Of milliseconds.
pub(super) fn duration(value: &Value) -> String {
    let Some(ms) = value.as_f64() else { return String::new() };
    match ms {
        ms if ms < 10.0 => format!("{ms:.1}ms"),
        ms if ms < 1000.0 => format!("{ms:.0}ms"),
        ms if ms < 100_000.0 => format!("{:.1}s", ms / 1000.0),
        ms => format!("{:.0}m", ms / 60_000.0),
    }
}

fn cost(value: &Value) -> String {
    let Some(text) = value.as_str() else { return String::new() };
    text.parse::<f64>().map(|dollars| format!("${dollars:.5}")).unwrap_or_default()
}

fn notes(value: &Value) -> String {
    match value.as_array().map_or(0, Vec::len) {
        0 => String::new(),
        count => count.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn trace() -> Value {
        json!({
            "number": 12, "began_at": "2026-11-16T16:33:12.345Z", "took_ms": 1234.5, "first_token_ms": 12, "status": 200,
            "outcome": "completed", "error": null, "kind": "stream", "model": "fast", "provider": "up", "upstream_model":
            "m\u{1b}[2J", "input_tokens": 100, "cached_tokens": 50, "output_tokens": 7, "cost_usd": "0.0123", "notes": ["a"],
            "response_id": "resp_1",
        })
    }

    #[test]
    fn a_pipe_gets_everything() {
        let lines = Table::of(None, false).lines(&[trace()]);
        let (head, line) = lines.split_once('\n').unwrap();
        assert_eq!(
            head.split_whitespace().collect::<Vec<_>>().join(" "),
            "NO UTC RESULT KIND MODEL IN CACHED OUT FIRST TOOK COST NOTES ID"
        );
        assert_eq!(
            line.split_whitespace().collect::<Vec<_>>().join(" "),
            "12 11-16 16:33:12 completed stream fast → up/m\\u{1b}[2J 100 50% 7 12ms 1.2s $0.01230 1 resp_1"
        );
        let long = ["provider_unavailable_for_long", &"m".repeat(70)];
        let refused = json!({"number": 1, "status": 503, "error": long[0], "model": long[1]});
        let lines = Table::of(None, false).lines(&[refused]);
        assert!(lines.contains(&format!("503 {}", long[0])) && lines.contains(long[1]), "{lines}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let mut long = trace();
        long["model"] = json!("日".repeat(200));
        long["error"] = json!("provider.rate_limit.of.some.kind");
        for width in [60, 72, 80, 100, 120, 200, 400] {
            let lines = Table::of(Some(width), false).lines(&[trace(), long.clone()]);
            for line in lines.lines() {
                assert!(terminal::columns(line) <= width, "{width}: {line}");
            }
            assert!(lines.contains("completed") && lines.contains("1.2s"), "{width}: {lines}");
            assert!(!lines.contains('\u{1b}'));
        }
        let lines = Table::of(Some(120), true).lines(&[long]);
        assert!(lines.lines().nth(1).unwrap().starts_with("\u{1b}[31m"), "{lines}");
    }

    #[test]
    fn the_head_comes_once() {
        let mut table = Table::of(Some(80), false);
        assert_eq!(table.lines(&[]), "");
        table.has_head = false;
        assert!(table.lines(&[trace()]).starts_with("     NO"));
        assert!(!table.lines(&[trace()]).contains("NO"));
    }
}
