//! Every form of `tool_choice`, several times with different words: a refusal is certain, obedience may be chance.

use bridge::{ChoiceKind, ForcedWhileThinking, RequiredWord};
use serde_json::{Value, json};

use super::words;
use crate::ask::ProbeUpstream;
use crate::bodies;
use crate::checks::tools::{self, call_words, called, with_tools};
use crate::finding::{Change, Confidence, Finding};
use crate::reply::{ChatReply, Reply};
use crate::run::{Abort, Run};

const ROOM: u64 = 80;

/// What became of one kind of `tool_choice`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Kept,
    /// Now and then.
    Partly,
    /// Taken, and without effect.
    Ignored,
    Refused,
    Unclear,
}

/// What was seen of one, how sure that is, and why.
#[derive(Debug, Clone)]
struct Judged {
    seen: Choice,
    confidence: Confidence,
    evidence: String,
}

pub(super) async fn run(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    let rules = &run.dialect().request.tools;
    let Required { word, quiet, judged: required } = required(run).await?;
    let named = force(run, "tool_choice named", bodies::named(), quiet).await?;
    let auto = auto(run).await?;
    let none = none(run).await?;
    let mut kinds = rules.choices.clone();
    let mut evidence = Vec::new();
    for (kind, feature, judged) in [
        (ChoiceKind::Auto, "tool_choice auto", auto),
        (ChoiceKind::None, "tool_choice none", none),
        (ChoiceKind::Required, "tool_choice required", required),
        (ChoiceKind::Function, "tool_choice named", named),
    ] {
        let was = rules.choices.contains(&kind);
        let weak = judged.confidence == Confidence::Weak;
        let lacks = matches!(judged.seen, Choice::Refused | Choice::Ignored);
        if lacks && was && !weak {
            kinds.retain(|known| *known != kind);
            evidence.push(format!("{}: {}", kind.name(), judged.evidence));
        } else if judged.seen == Choice::Kept && !was && !weak {
            kinds.push(kind);
            evidence.push(format!("{}: {}", kind.name(), judged.evidence));
        }
        run.findings.push(finding(feature, was, judged));
    }
    kinds.sort_by_key(|kind| ChoiceKind::ALL.iter().position(|known| known == kind));
    let names = |kinds: &[ChoiceKind]| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
    let mut changes = Vec::new();
    if !evidence.is_empty() {
        changes.push(Change::new("request.tools.choices", format!("[{}]", names(&kinds))));
    }
    if word != rules.required_word {
        changes.push(Change::new("request.tools.required_word", word.name()));
    }
    let summary = Finding::seen("tool choices", names(&rules.choices), names(&kinds), evidence.join("; "));
    run.findings.push(summary.sure(Confidence::Likely).changes(changes));
    Ok(())
}

fn finding(feature: &'static str, was: bool, judged: Judged) -> Finding {
    let declared = if was { "yes" } else { "no" };
    let Judged { seen, confidence, evidence } = judged;
    let seen = match seen {
        Choice::Kept => Finding::seen(feature, declared, "yes", evidence),
        Choice::Partly => Finding::seen(feature, declared, "not always", evidence).note("it is not always obeyed"),
        Choice::Ignored => Finding::seen(feature, declared, "ignored", evidence),
        Choice::Refused => Finding::seen(feature, declared, "refused", evidence),
        Choice::Unclear => Finding::unclear(feature, declared, evidence),
    };
    seen.sure(confidence)
}

/// What is known about `required`.
struct Required {
    word: RequiredWord,
    /// Thinking must be off for it.
    quiet: bool,
    judged: Judged,
}

/// `required` as it is declared, then by its other name, then with thinking switched off.
async fn required(run: &mut Run<'_, impl ProbeUpstream>) -> Result<Required, Abort> {
    let rules = &run.dialect().request.tools;
    let word = rules.required_word;
    let off = rules.forced_while_thinking == ForcedWhileThinking::DropThinking;
    let first = force(run, "tool_choice required", json!(word.name()), off).await?;
    if first.seen != Choice::Refused {
        return Ok(Required { word, quiet: off, judged: first });
    }
    // Other APIs have one word for it.
    if run.is_chat() {
        let other = if word == RequiredWord::Required { RequiredWord::Any } else { RequiredWord::Required };
        let again = force(run, "tool_choice required by another name", json!(other.name()), off).await?;
        if again.seen == Choice::Kept {
            return Ok(Required { word: other, quiet: off, judged: again });
        }
    }
    if off || run.dialect().request.reasoning.off.is_none() {
        return Ok(Required { word, quiet: off, judged: first });
    }
    let quiet = force(run, "tool_choice required without thinking", json!(word.name()), true).await?;
    if quiet.seen != Choice::Kept {
        return Ok(Required { word, quiet: off, judged: first });
    }
    let finding = Finding::seen("forced while thinking", rules.forced_while_thinking.name(), "refused", first.evidence);
    let change = Change::new("request.tools.forced_while_thinking", ForcedWhileThinking::DropThinking.name());
    run.findings.push(finding.change(change));
    Ok(Required { word, quiet: true, judged: quiet })
}

/// Forces a call where nothing else asks for one.
async fn force(
    run: &mut Run<'_, impl ProbeUpstream>,
    about: &'static str,
    choice: Value,
    quiet: bool,
) -> Result<Judged, Abort> {
    let mut tries = Tries::default();
    for prompt in bodies::SMALL_TALK {
        let mut body = with_tools(run.body(bodies::user(prompt), ROOM), Some(choice.clone()));
        if quiet {
            body.extend(run.thinking_off());
        }
        let reply = run.ask(about, body).await?;
        if let Reply::Refused(_) = &reply {
            return Ok(Judged { seen: Choice::Refused, confidence: Confidence::Certain, evidence: words(&reply) });
        }
        let kept = called(run, &reply, &choice);
        let evidence = if kept { call_words(&reply) } else { words(&reply) };
        match &reply {
            _ if kept => tries.kept(evidence),
            // It finished without a call; half an answer decides nothing.
            Reply::Answered(said) if !said.is_cut() => tries.broken(evidence),
            Reply::Answered(_) => tries.undecided(evidence),
            _ => {
                tries.undecided(evidence);
                break;
            }
        }
    }
    // Whether it can call at all may have turned out just now.
    Ok(tries.judge(run.known.calling.is_some()))
}

/// Nothing is forced by `auto`: it is enough that it is taken.
async fn auto(run: &mut Run<'_, impl ProbeUpstream>) -> Result<Judged, Abort> {
    let choice = json!("auto");
    let body = tools::body(run, tools::call_prompt(run), Some(choice.clone()));
    let reply = run.ask("tool_choice auto", body).await?;
    called(run, &reply, &choice);
    let seen = match &reply {
        Reply::Refused(_) => Choice::Refused,
        Reply::Answered(_) => Choice::Kept,
        _ => Choice::Unclear,
    };
    Ok(Judged { seen, confidence: Confidence::Certain, evidence: words(&reply) })
}

/// Asks for a call in words, where none may come.
async fn none(run: &mut Run<'_, impl ProbeUpstream>) -> Result<Judged, Abort> {
    let mut tries = Tries::default();
    for prompt in bodies::calls_for(tools::call_prompt(run)) {
        let reply = run.ask("tool_choice none", tools::body(run, &prompt, Some(json!("none")))).await?;
        let evidence = words(&reply);
        match &reply {
            Reply::Refused(_) => {
                return Ok(Judged { seen: Choice::Refused, confidence: Confidence::Certain, evidence });
            }
            Reply::Answered(said) if !said.calls.is_empty() || leaks(said) => {
                // Once is enough.
                return Ok(Judged { seen: Choice::Ignored, confidence: Confidence::Certain, evidence });
            }
            Reply::Answered(_) => tries.kept(evidence),
            _ => {
                tries.undecided(evidence);
                break;
            }
        }
    }
    // Only where calls come without `none` does it mean something that none came.
    if run.known.calling.is_none() {
        return Ok(Judged { seen: Choice::Unclear, ..tries.judge(true) });
    }
    Ok(tries.judge(true))
}

/// A call that was not to be made, as text.
fn leaks(said: &ChatReply) -> bool {
    let text = said.answer();
    ["<tool_call", "<|tool", "\"name\": \"get_weather\"", "\"name\":\"get_weather\""]
        .iter()
        .any(|mark| text.contains(mark))
}

/// How often it did as it was told.
#[derive(Debug, Default)]
struct Tries {
    kept: usize,
    broken: usize,
    undecided: usize,
    /// What it did the last time, and the last time that it did not as told.
    last: String,
    against: Option<String>,
}

impl Tries {
    fn kept(&mut self, evidence: String) {
        self.kept += 1;
        self.last = evidence;
    }

    fn broken(&mut self, evidence: String) {
        self.broken += 1;
        self.against = Some(evidence);
    }

    fn undecided(&mut self, evidence: String) {
        self.undecided += 1;
        self.last = evidence;
    }

    fn judge(self, can_call: bool) -> Judged {
        let Self { kept, broken, undecided, last, against } = self;
        let seen = match (kept, broken) {
            (0, 0) => Choice::Unclear,
            (_, 0) => Choice::Kept,
            // It can call, it was told to, and it did not.
            (0, _) if can_call => Choice::Ignored,
            (0, _) => Choice::Unclear,
            _ => Choice::Partly,
        };
        let tries = kept + broken + undecided;
        let evidence = against.unwrap_or(last);
        let confidence = if kept.max(broken) > 1 { Confidence::Likely } else { Confidence::Weak };
        Judged { seen, confidence, evidence: format!("as told in {kept} of {tries} tries; {evidence}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_are_counted() {
        for (kept, broken, undecided, can_call, expected) in [
            (3, 0, 0, true, (Choice::Kept, Confidence::Likely)),
            (1, 0, 2, true, (Choice::Kept, Confidence::Weak)),
            (0, 3, 0, true, (Choice::Ignored, Confidence::Likely)),
            (0, 1, 2, true, (Choice::Ignored, Confidence::Weak)),
            (0, 3, 0, false, (Choice::Unclear, Confidence::Likely)),
            (2, 1, 0, true, (Choice::Partly, Confidence::Likely)),
            (0, 0, 1, true, (Choice::Unclear, Confidence::Weak)),
        ] {
            let judged = Tries { kept, broken, undecided, ..Tries::default() }.judge(can_call);
            assert_eq!((judged.seen, judged.confidence), expected, "{kept} {broken} {undecided}");
        }
    }
}
