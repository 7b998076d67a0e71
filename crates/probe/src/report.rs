//! The result of a probe, for a person and for a program.

use std::fmt::Write;

use serde_json::{Value, json};
use wire::visible::visible;

use crate::finding::{Difference, Finding, Observed};
use crate::reply::clip;
use crate::run::Spent;

/// The widest that a cell of the table gets.
const CELL: usize = 38;

/// What was found out.
#[derive(Debug, Clone)]
pub struct Report {
    /// The provider's name or address.
    pub target: String,
    pub model: String,
    /// The spec that it was compared with.
    pub spec: String,
    pub findings: Vec<Finding>,
    pub spent: Spent,
}

impl Report {
    /// A table: feature, declared, observed, difference; below it why.
    pub fn table(&self) -> String {
        let head = ["feature", "declared", "observed", "difference"].map(str::to_owned);
        let rows: Vec<[String; 4]> = std::iter::once(head).chain(self.findings.iter().map(row)).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths = [width(0), width(1), width(2)];
        let mut out = String::new();
        for [feature, declared, observed, difference] in &rows {
            let line =
                format!("{feature:0$}  {declared:1$}  {observed:2$}  {difference}", widths[0], widths[1], widths[2]);
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{}", line.trim_end());
        }
        out.push_str(&self.reasons());
        let Spent { requests, input_tokens, output_tokens } = self.spent;
        let _ = writeln!(out, "\n{requests} requests, {input_tokens} tokens in, {output_tokens} out");
        out
    }

    /// The evidence of what differs or stayed open.
    fn reasons(&self) -> String {
        let mut out = String::new();
        for (title, wanted) in [("differences", true), ("undecided", false)] {
            let differs = |finding: &&Finding| finding.difference != Difference::None;
            let undecided = |finding: &&Finding| !matches!(finding.observed, Observed::Seen(_));
            let rows =
                self.findings.iter().filter(|row| if wanted { differs(row) } else { undecided(row) && !differs(row) });
            let lines: Vec<String> =
                rows.map(|row| format!("  {}: {}\n", row.feature, visible(&clip(&row.evidence, 240)))).collect();
            if !lines.is_empty() {
                let _ = write!(out, "\n{title}:\n{}", lines.concat());
            }
        }
        out
    }

    /// The same as JSON.
    pub fn json(&self) -> String {
        let findings: Vec<Value> = self.findings.iter().map(finding).collect();
        let Spent { requests, input_tokens, output_tokens } = self.spent;
        let spent = json!({"requests": requests, "input_tokens": input_tokens, "output_tokens": output_tokens});
        let report = json!({
            "target": self.target, "model": self.model, "spec": self.spec, "spent": spent, "findings": findings,
        });
        format!("{report:#}\n")
    }
}

fn row(finding: &Finding) -> [String; 4] {
    let cell = |text: &str| visible(&clip(text, CELL)).into_owned();
    let difference = match &finding.difference {
        Difference::None => "-".to_owned(),
        Difference::Spec(changes) => {
            changes.iter().map(|change| format!("{}: {}", change.path, change.yaml)).collect::<Vec<_>>().join("; ")
        }
        Difference::Note(note) => note.clone(),
    };
    let difference = visible(&difference).into_owned();
    [finding.feature.to_owned(), cell(&finding.declared), cell(finding.observed.text()), difference]
}

fn finding(finding: &Finding) -> Value {
    let state = match finding.observed {
        Observed::Seen(_) => "seen",
        Observed::Unclear => "unclear",
        Observed::Skipped => "skipped",
    };
    let (changes, note) = match &finding.difference {
        Difference::None => (Vec::new(), None),
        Difference::Spec(changes) => {
            (changes.iter().map(|change| json!({"path": change.path, "value": change.yaml})).collect(), None)
        }
        Difference::Note(note) => (Vec::new(), Some(note)),
    };
    json!({
        "feature": finding.feature,
        "declared": finding.declared,
        "observed": finding.observed.text(),
        "state": state,
        "differs": finding.difference != Difference::None,
        "changes": changes,
        "note": note,
        "evidence": finding.evidence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_provider_said_cannot_act_on_the_terminal() {
        let theirs = "a\u{1b}[31m\r\nb\u{9b}\u{202e}";
        let open = Finding::unclear("x", theirs, theirs);
        let differs = Finding::seen("y", "-", theirs, theirs).note(theirs);
        let report = Report {
            target: "t".to_owned(),
            model: "m".to_owned(),
            spec: "s".to_owned(),
            findings: vec![open, differs],
            spent: Spent::default(),
        };
        let table = report.table();
        assert!(!table.contains(|c: char| c != '\n' && wire::visible::acts(c)), "{table:?}");
        assert!(table.contains(r"a\u{1b}[31m b\u{9b}\u{202e}"), "{table}");
        let json: Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(json["findings"][0]["evidence"], theirs);
    }
}
