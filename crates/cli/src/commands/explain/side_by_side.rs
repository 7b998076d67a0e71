//! A request that nobody has sent, for several providers: a row for each parameter, item and tool, a column for each
//! provider; below that what the cells mean, each reason once.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::Value;

use super::words::{self, Outcomes};
use crate::screen::{Screen, Tone, brief, wrapped};

const NARROWEST: usize = 10;
const WIDEST: usize = 24;
/// So much of a model's name is worth a wider column.
const MODEL: usize = 16;
const LABEL: usize = 44;

pub(super) fn shown(request: &Value, planned: &Value, screen: Screen) -> String {
    let plans: Vec<Column<'_>> = planned["data"].as_array().into_iter().flatten().map(Column::of).collect();
    let mut rows: Vec<(String, String)> =
        words::parameters(request).into_iter().map(|(name, value)| (name, words::value(value))).collect();
    rows.extend(words::parts(request, &planned["past"]));
    let label = rows.iter().map(|(part, what)| brief(&format!("{part} {what}"), LABEL).chars().count()).max();
    let label = label.unwrap_or(0);
    let label = label.clamp(12, LABEL.min(screen.width / 2));
    let mut out = String::new();
    let names: Vec<[String; 2]> = plans.iter().map(|column| names(column.plan)).collect();
    let width = |[provider, model]: &[String; 2]| {
        provider.chars().count().max(model.chars().count().min(MODEL)).clamp(NARROWEST, WIDEST)
    };
    let widths: Vec<usize> = names.iter().map(width).collect();
    let mut first = 0;
    while first < plans.len() {
        let mut used = label;
        let fits = |width: &&usize| {
            used += **width + 2;
            used <= screen.width
        };
        let count = widths[first..].iter().take_while(fits).count().max(1);
        if first > 0 {
            out.push('\n');
        }
        let columns = first..(first + count).min(plans.len());
        table(&rows, label, &plans[columns.clone()], &names[columns.clone()], &widths[columns], screen, &mut out);
        first += count;
    }
    reasons(&plans, &names, screen, &mut out);
    out
}

/// One provider's plan.
struct Column<'p> {
    plan: &'p Value,
    outcomes: Outcomes<'p>,
}

impl<'p> Column<'p> {
    fn of(plan: &'p Value) -> Self {
        Self { plan, outcomes: Outcomes::of(plan) }
    }
}

/// The provider, and the model there.
fn names(plan: &Value) -> [String; 2] {
    let text = |name: &str| plan[name].as_str().unwrap_or_default().to_owned();
    if plan["provider"].is_null() { [text("model"), String::new()] } else { [text("provider"), text("model")] }
}

fn table(
    rows: &[(String, String)],
    label: usize,
    plans: &[Column<'_>],
    names: &[[String; 2]],
    widths: &[usize],
    screen: Screen,
    out: &mut String,
) {
    for (line, tone) in [(0, Tone::Strong), (1, Tone::Faint)] {
        let mut head = " ".repeat(label);
        for (name, width) in names.iter().zip(widths) {
            // Writing to a String cannot fail.
            let _ = write!(head, "  {:width$}", brief(&name[line], *width));
        }
        out.push_str(&screen.paint(tone, head.trim_end()));
        out.push('\n');
    }
    for (part, what) in rows {
        let said = brief(&format!("{part} {what}"), label);
        let mut line = format!("{said:label$}");
        for (plan, width) in plans.iter().zip(widths) {
            let (word, tone) = cell(plan, part);
            let padding = " ".repeat(width.saturating_sub(word.chars().count()));
            let _ = write!(line, "  {}{padding}", screen.paint(tone, word));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

/// What becomes of a part for one provider.
fn cell(column: &Column<'_>, part: &str) -> (&'static str, Tone) {
    if column.plan.get("error").is_some_and(|error| !error.is_null()) {
        return ("refused", Tone::Bad);
    }
    let notes = column.outcomes.notes(part);
    let has = |action: &str| notes.iter().any(|note| note["action"] == action);
    let link = column.outcomes.link(part);
    if link.is_some_and(|link| link["by_godex"].is_string()) && notes.is_empty() {
        return ("by godex", Tone::Faint);
    }
    if link.is_some_and(|link| link["to"].as_array().is_some_and(Vec::is_empty)) {
        return ("left out", Tone::Bad);
    }
    if has("ignored") {
        return (if link.is_some() { "in part" } else { "ignored" }, Tone::Bad);
    }
    if has("repaired") {
        return ("repaired", Tone::Warn);
    }
    if has("degraded") {
        let all_small = notes.iter().all(|note| note["severity"] == "info");
        return if all_small { ("translated", Tone::Good) } else { ("degraded", Tone::Warn) };
    }
    if words::is_parameter(part) { words::unnoted(column.plan, part) } else { ("sent", Tone::Good) }
}

/// Each reason once, with those whom it is about.
fn reasons(plans: &[Column<'_>], names: &[[String; 2]], screen: Screen, out: &mut String) {
    let whole: Vec<String> = names.iter().map(|name| whole(name, names)).collect();
    let mut found: Vec<(String, Tone, Vec<&str>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut add = |text: String, tone: Tone, name| match places.get(&text).and_then(|at| found.get_mut(*at)) {
        Some((_, _, of)) => of.push(name),
        None => {
            places.insert(text.clone(), found.len());
            found.push((text, tone, vec![name]));
        }
    };
    for (Column { plan, outcomes }, name) in plans.iter().zip(&whole) {
        if let Some(message) = plan["error"]["message"].as_str() {
            add(format!("refused: {message}"), Tone::Bad, name.as_str());
        }
        for note in plan["notes"].as_array().into_iter().flatten() {
            let text = |member: &str| note[member].as_str().unwrap_or_default();
            let tone = if text("severity") == "info" { Tone::Faint } else { Tone::Warn };
            let said = format!("{} {}: {} ({})", text("path"), text("action"), text("detail"), text("code"));
            add(said, tone, name.as_str());
        }
        for link in plan["links"].as_array().into_iter().flatten() {
            let item = link["item"].as_str().unwrap_or_default();
            if let Some(why) = link["left_out"].as_str().filter(|_| outcomes.notes(item).is_empty()) {
                add(format!("{item} left out: {why}"), Tone::Faint, name.as_str());
            }
        }
    }
    if found.is_empty() {
        out.push_str("\neverything is sent as it was asked\n");
        return;
    }
    out.push('\n');
    for (text, tone, of) in found {
        let whom = if of.len() == names.len() && of.len() > 1 { "all".to_owned() } else { of.join(", ") };
        for (nth, line) in wrapped(&format!("{whom}: {text}"), screen.width - 2).iter().enumerate() {
            out.push_str(if nth == 0 { "" } else { "  " });
            out.push_str(&screen.paint(tone, line));
            out.push('\n');
        }
    }
}

/// The provider alone, where that says which one.
fn whole(name: &[String; 2], all: &[[String; 2]]) -> String {
    let [provider, model] = name;
    let is_one = all.iter().filter(|[other, _]| other == provider).count() == 1;
    if is_one || model.is_empty() { provider.clone() } else { format!("{provider}/{model}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_row_for_each_part_and_one_column_for_each_provider() {
        let request = json!({"model": "m", "input": "Hi \u{1b}[2J", "temperature": 0.5, "store": true, "tools": [{"type": "web_search"}]});
        let note = json!({"code": "bridge.tool.ignored", "severity": "warn", "action": "ignored", "path": "tools[0]", "detail": "none"});
        let links = |tools: Value| json!([{"item": "input", "to": ["messages[0]"]}, {"item": "tools[0]", "to": tools}]);
        let planned = json!({"past": [], "data": [
            {"provider": "a", "model": "x", "notes": [note], "links": links(json!([]))},
            {"provider": "b", "model": "y", "notes": [], "links": links(json!(["tools[0]"]))},
            {"provider": "c", "model": "z", "error": {"message": "No."}, "notes": [], "links": []},
        ]});
        let shown = shown(&request, &planned, Screen { width: 100, colours: false });
        let expected = "                      a           b           c
                      x           y           z
temperature 0.5       sent        sent        refused
store true            by godex    by godex    refused
input \"Hi \\u{1b}[2J\"  sent        sent        refused
tools[0] web_search   left out    sent        refused

a: tools[0] ignored: none (bridge.tool.ignored)
c: refused: No.
";
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_does_not_fit_goes_below() {
        let plan = |name: &str| json!({"provider": name, "model": "m", "notes": [], "links": []});
        let planned = json!({"past": [], "data": [plan("one"), plan("two"), plan("three"), plan("four")]});
        let shown = shown(&json!({"input": "Hi"}), &planned, Screen { width: 40, colours: false });
        assert!(shown.lines().all(|line| line.chars().count() <= 40), "{shown}");
        assert!(shown.find("one") < shown.find("four") && shown.matches("input").count() > 1, "{shown}");
    }
}
