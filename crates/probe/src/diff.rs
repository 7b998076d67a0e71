//! What to change in the spec, as lines to paste: each value with what stood there before, where that was said, and why
//! it is wrong.

use std::fmt::Write;

use serde_json::{Value, json};
use wire::visible::visible;

use crate::finding::{Difference, Finding, Observed};
use crate::report::Report;
use crate::spec_writer::{Line, add_changes, comment, print_lines};

/// A value of the spec as it is: how it is written, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Was {
    pub value: String,
    pub origin: String,
}

/// What differs from the spec.
#[derive(Debug)]
pub struct Diff<'a> {
    report: &'a Report,
    changes: Vec<Changed>,
}

#[derive(Debug)]
struct Changed {
    path: String,
    yaml: String,
    was: Option<Was>,
}

impl Report {
    /// Compares with the spec, whose values `was` knows by their paths.
    pub fn diff(&self, was: impl Fn(&str) -> Option<Was>) -> Diff<'_> {
        let mut lines = Vec::new();
        add_changes(&mut lines, &self.findings);
        let changed = |line: Line| Changed { was: was(&line.path), path: line.path, yaml: line.yaml };
        Diff { report: self, changes: lines.into_iter().map(changed).collect() }
    }
}

impl Diff<'_> {
    /// Whether there is a line to change. Remarks for which specs have no word do not count.
    pub fn differs(&self) -> bool {
        !self.changes.is_empty()
    }

    /// The lines, ready to paste; everything else is a comment.
    pub fn yaml(&self) -> String {
        let Report { target, model, spec, ended, .. } = self.report;
        let mut out = String::new();
        let told = [target, model, spec].map(|text| comment(text));
        // Writing to a String cannot fail.
        let _ = writeln!(out, "# {}, model {}, against the spec `{}`", told[0], told[1], told[2]);
        if let Some(abort) = ended {
            let _ = writeln!(out, "# The probe ended early: {}", comment(&abort.to_string()));
        }
        if self.changes.is_empty() {
            out.push_str("# Nothing that was observed differs from it.\n");
        }
        let lines: Vec<Line> = self.changes.iter().map(|changed| self.line(changed)).collect();
        print_lines(&mut out, &lines);
        for finding in &self.report.findings {
            if let Difference::Note(note) = &finding.difference {
                let _ = writeln!(out, "# no word for it: {}: {}", finding.feature, comment(note));
            }
        }
        if let Some(sentence) = self.report.only_chat() {
            let _ = writeln!(out, "# {sentence}");
        }
        let open = self.undecided();
        if !open.is_empty() {
            let _ = writeln!(out, "# undecided: {}", comment(&open.join(", ")));
        }
        out
    }

    fn line(&self, changed: &Changed) -> Line {
        let was = match &changed.was {
            Some(Was { value, origin }) => format!("was {value} ({origin})"),
            None => "was not said".to_owned(),
        };
        let because = self.because(&changed.path).map(|finding| {
            let Finding { feature, evidence, confidence, .. } = finding;
            let colon = if evidence.is_empty() { "" } else { ": " };
            format!("{feature} is {} ({}){colon}{evidence}", finding.observed.text(), confidence.name())
        });
        let why = std::iter::once(was).chain(because).collect();
        Line { path: changed.path.clone(), yaml: changed.yaml.clone(), why }
    }

    /// The findings that ask for a value of this path.
    fn because<'f>(&'f self, path: &'f str) -> impl Iterator<Item = &'f Finding> {
        self.report.findings.iter().filter(move |finding| match &finding.difference {
            Difference::Spec(changes) => changes.iter().any(|change| change.path == path),
            _ => false,
        })
    }

    fn undecided(&self) -> Vec<&str> {
        let open = self.report.findings.iter().filter(|finding| finding.observed == Observed::Unclear);
        open.map(|finding| finding.feature).collect()
    }

    /// The same for programs.
    pub fn json(&self) -> String {
        let Report { target, model, spec, ended, findings, spent, .. } = self.report;
        let because = |finding: &Finding| {
            json!({
                "feature": finding.feature, "observed": finding.observed.text(),
                "confidence": finding.confidence.name(), "evidence": finding.evidence,
            })
        };
        let change = |changed: &Changed| {
            json!({
                "path": changed.path, "value": changed.yaml,
                "was": changed.was.as_ref().map(|was| &was.value),
                "origin": changed.was.as_ref().map(|was| &was.origin),
                "because": self.because(&changed.path).map(because).collect::<Vec<_>>(),
            })
        };
        let note = |finding: &Finding| match &finding.difference {
            Difference::Note(note) => {
                Some(json!({"feature": finding.feature, "note": note, "confidence": finding.confidence.name()}))
            }
            _ => None,
        };
        let diff: Value = json!({
            "target": target, "model": model, "spec": spec, "differs": self.differs(),
            "changes": self.changes.iter().map(change).collect::<Vec<_>>(),
            "notes": findings.iter().filter_map(note).collect::<Vec<_>>(),
            "undecided": self.undecided(),
            "ended_early": ended.as_ref().map(|abort| visible(&abort.to_string()).into_owned()),
            "requests": spent.requests,
        });
        format!("{diff:#}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Change, Confidence};
    use crate::run::{Abort, Probed};

    fn report(findings: Vec<Finding>, ended: Option<Abort>) -> Report {
        Report::new("mine", "m", "groq", Probed { findings, ended, ..Probed::default() })
    }

    fn was(path: &str) -> Option<Was> {
        (path == "drop").then(|| Was { value: "[user]".to_owned(), origin: "specs/groq.yaml:7".to_owned() })
    }

    #[test]
    fn lines_say_what_was_where_and_why() {
        let seen = |evidence: &str| Finding::seen("parameters sent", "-", "refused", evidence);
        let findings = vec![
            seen("400: no stop").change(Change::new("drop", "[user, stop]")),
            seen("").sure(Confidence::Likely).change(Change::new("drop", "[user, top_p]")),
            seen("x\n\u{1b}[31m").change(Change::new("request.tools.max", "5")),
            Finding::seen("stop", "-", "ignored", "").note("no effect"),
            Finding::unclear("images", "-", ""),
        ];
        let report = report(findings, None);
        let diff = report.diff(was);
        assert_eq!(
            diff.yaml(),
            "# mine, model m, against the spec `groq`\n\
             # was [user] (specs/groq.yaml:7)\n\
             # parameters sent is refused (certain): 400: no stop\n\
             # parameters sent is refused (likely)\n\
             drop: [user, stop, top_p]\n\
             request:\n  tools:\n    # was not said\n    # parameters sent is refused (certain): x \\u{1b}[31m\n    \
             max: 5\n\
             # no word for it: stop: no effect\n# undecided: images\n"
        );
        let json: Value = serde_json::from_str(&diff.json()).unwrap();
        assert_eq!(json["changes"][0]["origin"], "specs/groq.yaml:7");
        assert_eq!(
            (&json["changes"][0]["because"][1]["confidence"], &json["differs"]),
            (&json!("likely"), &json!(true))
        );
        assert_eq!((&json["changes"][1]["was"], &json["undecided"]), (&Value::Null, &json!(["images"])));
    }

    #[test]
    fn nothing_that_differs_is_said_too() {
        let ended = Some(Abort::Unreachable("it went away".to_owned()));
        let report = report(vec![Finding::seen("stop", "-", "yes", "")], ended);
        let diff = report.diff(was);
        assert!(!diff.differs());
        assert_eq!(
            diff.yaml(),
            "# mine, model m, against the spec `groq`\n# The probe ended early: it went away\n\
             # Nothing that was observed differs from it.\n"
        );
    }
}
