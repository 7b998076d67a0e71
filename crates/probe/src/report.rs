//! The result of a probe, for a person and for a program.

use std::fmt::Write;

use serde_json::{Value, json};
use wire::visible::visible;

use crate::checks::Check;
use crate::finding::{Difference, Finding, Observed};
use crate::reply::clip;
use crate::run::{Abort, Cost, Probed, Spent};

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
    /// Checks that were wanted, and that the provider's API has no words for.
    pub not_asked: Vec<Check>,
    pub spent: Spent,
    /// What each check has cost.
    pub costs: Vec<Cost>,
    /// Why it ended before its end, if it did.
    pub ended: Option<Abort>,
}

impl Report {
    /// Of a probe of this model, compared with this spec.
    pub fn new(target: &str, model: &str, spec: &str, probed: Probed) -> Self {
        let Probed { findings, not_asked, spent, costs, ended } = probed;
        let [target, model, spec] = [target, model, spec].map(str::to_owned);
        Self { target, model, spec, findings, not_asked, spent, costs, ended }
    }

    /// A table: feature, declared, observed, how sure, difference; below it why.
    pub fn table(&self) -> String {
        let head = ["feature", "declared", "observed", "sure", "difference"].map(str::to_owned);
        let rows: Vec<[String; 5]> = std::iter::once(head).chain(self.findings.iter().map(row)).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let [first, second, third, fourth] = [0, 1, 2, 3].map(width);
        let mut out = String::new();
        for [feature, declared, observed, sure, difference] in &rows {
            let line = format!("{feature:first$}  {declared:second$}  {observed:third$}  {sure:fourth$}  {difference}");
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{}", line.trim_end());
        }
        out.push_str(&self.reasons());
        out.push_str(&self.footer());
        out
    }

    /// Why it ended early, and what it cost.
    fn footer(&self) -> String {
        let mut out = String::new();
        if let Some(abort) = &self.ended {
            let _ = writeln!(out, "\nended early: {}", visible(&abort.to_string()));
        }
        if let Some(sentence) = self.only_chat() {
            let _ = writeln!(out, "\n{sentence}");
        }
        let Spent { requests, input_tokens, output_tokens } = self.spent;
        let _ = writeln!(out, "\nrequests by check: {}", costs(&self.costs));
        let _ = writeln!(out, "{requests} requests, {input_tokens} tokens in, {output_tokens} out");
        out
    }

    /// What was not asked because only chat servers can be asked it.
    pub(crate) fn only_chat(&self) -> Option<String> {
        let names: Vec<&str> = self.not_asked.iter().map(|check| check.name()).collect();
        (!names.is_empty()).then(|| format!("not asked, for they are for chat servers only: {}", names.join(", ")))
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
        let cost = |cost: &Cost| json!({"check": cost.check.name(), "requests": cost.requests, "tokens": cost.tokens});
        let report = json!({
            "target": self.target, "model": self.model, "spec": self.spec, "spent": spent, "findings": findings,
            "checks": self.costs.iter().map(cost).collect::<Vec<_>>(),
            "not_asked": self.not_asked.iter().map(|check| check.name()).collect::<Vec<_>>(),
            "ended_early": self.ended.as_ref().map(ToString::to_string),
        });
        format!("{report:#}\n")
    }
}

/// The number of requests of each check: `plain 1, parameters 2`.
pub fn costs(costs: &[Cost]) -> String {
    costs.iter().map(|cost| format!("{} {}", cost.check.name(), cost.requests)).collect::<Vec<_>>().join(", ")
}

fn row(finding: &Finding) -> [String; 5] {
    let cell = |text: &str| visible(&clip(text, CELL)).into_owned();
    let difference = match &finding.difference {
        Difference::None => "-".to_owned(),
        Difference::Spec(changes) => {
            changes.iter().map(|change| format!("{}: {}", change.path, change.yaml)).collect::<Vec<_>>().join("; ")
        }
        Difference::Note(note) => note.clone(),
    };
    let difference = visible(&difference).into_owned();
    let sure = if matches!(finding.observed, Observed::Seen(_)) { finding.confidence.name() } else { "-" };
    let (feature, sure) = (finding.feature.to_owned(), sure.to_owned());
    [feature, cell(&finding.declared), cell(finding.observed.text()), sure, difference]
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
        "check": finding.check.name(),
        "feature": finding.feature,
        "declared": finding.declared,
        "observed": finding.observed.text(),
        "state": state,
        "confidence": finding.confidence.name(),
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
        let ended = Some(Abort::Unreachable(theirs.to_owned()));
        let probed = Probed { findings: vec![open, differs], ended, ..Probed::default() };
        let report = Report::new("t", "m", "s", probed);
        let table = report.table();
        assert!(!table.contains(|c: char| c != '\n' && wire::visible::acts(c)), "{table:?}");
        assert!(table.contains(r"a\u{1b}[31m b\u{9b}\u{202e}"), "{table}");
        let json: Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(json["findings"][0]["evidence"], theirs);
    }
}
