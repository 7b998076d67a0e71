//! Which efforts are taken, which are refused and in what words, and whether they change the thinking.

use bridge::{Dialect, Effort, EffortField, Parameter};
use serde_json::{Map, Value, json};

use super::{open, parameters, said_by, taken, words};
use crate::ask::ProbeUpstream;
use crate::bodies;
use crate::finding::{Change, Confidence, Finding};
use crate::reply::Reply;
use crate::run::{Abort, Run, members};

pub(super) const FEATURE: &str = "reasoning efforts";
/// Beside the room for thoughts.
const ROOM: u64 = 120;
/// Differences below this are noise, whatever their ratio.
const NOISE: u64 = 24;

/// An effort that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rung {
    effort: Effort,
    /// About how many tokens it thought.
    thought: u64,
    /// A limit ended it: it would have thought longer.
    cut: bool,
    tenths: u128,
}

/// What became of all of them.
#[derive(Debug, Default)]
struct Ladder {
    good: Vec<Rung>,
    bad: Vec<(Effort, String)>,
    /// Something that is no effort was taken, too.
    nonsense: bool,
}

pub(super) async fn run(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    let dialect = run.dialect();
    let rules = &dialect.request.reasoning;
    let (declared, silent) = (declared(dialect), is_silent(dialect));
    let ladder = match climb(run).await? {
        Ok(ladder) => ladder,
        Err(reply) => {
            run.findings.push(open(FEATURE, declared, &reply));
            return Ok(());
        }
    };
    let finding = match rules.effort {
        EffortField::Members => by_members(&ladder, declared),
        _ => by_words(run, &ladder, declared, silent),
    };
    run.findings.push(finding);
    let thinks = run.known.thinks;
    run.known.quiet_effort = thinks.then(|| quiet(&ladder)).flatten();
    run.findings.push(effect(&ladder, thinks));
    Ok(())
}

/// Whether the spec sends none.
pub(super) fn is_silent(dialect: &Dialect) -> bool {
    dialect.drops(Parameter::ReasoningEffort) || dialect.request.reasoning.effort == EffortField::None
}

/// What the spec says of them.
pub(super) fn declared(dialect: &Dialect) -> String {
    let rules = &dialect.request.reasoning;
    match rules.effort {
        _ if is_silent(dialect) => "none".to_owned(),
        EffortField::Members => "members".to_owned(),
        _ => sent(&rules.ladder),
    }
}

/// Asks with every effort; the reply that tells nothing, where one did.
async fn climb(run: &mut Run<'_, impl ProbeUpstream>) -> Result<Result<Ladder, Box<Reply>>, Abort> {
    let mut ladder = Ladder::default();
    let by_members = run.dialect().request.reasoning.effort == EffortField::Members;
    for &effort in Effort::ALL {
        let Some(members) = told(run, effort) else { continue };
        let mut body = body(run, effort);
        body.extend(members);
        let reply = run.ask(FEATURE, body).await?;
        match &reply {
            Reply::Answered(said) => ladder.good.push(Rung {
                effort,
                thought: said.thought(),
                cut: said.is_cut(),
                tenths: said.took.as_millis() / 100,
            }),
            Reply::Refused(_) => ladder.bad.push((effort, words(&reply))),
            _ => return Ok(Err(Box::new(reply))),
        }
    }
    if !by_members && !ladder.good.is_empty() {
        let mut body = run.body(bodies::user(bodies::HELLO), 8);
        body.extend(word(run, bodies::NO_EFFORT));
        let reply = run.ask("an effort that does not exist", body).await?;
        ladder.nonsense = taken(&reply) == Some(true);
    }
    Ok(Ok(ladder))
}

/// A question that can be thought about, for a model that thinks; else the cheapest one.
fn body(run: &Run<'_, impl ProbeUpstream>, effort: Effort) -> Map<String, Value> {
    if !run.known.thinks {
        return run.body(bodies::user(bodies::HELLO), 8);
    }
    let mut body = run.body(bodies::user(bodies::THINK), ROOM);
    if effort != Effort::None {
        body.extend(run.thinking_on());
    }
    body
}

/// The members that tell this effort; None where the spec has none for it.
fn told(run: &Run<'_, impl ProbeUpstream>, effort: Effort) -> Option<Map<String, Value>> {
    let rules = &run.dialect().request.reasoning;
    if rules.effort != EffortField::Members {
        return Some(word(run, effort.name()));
    }
    let (_, object) = rules.ladder.iter().find(|(known, _)| *known == effort)?;
    Some(members(Some(object)))
}

fn word(run: &Run<'_, impl ProbeUpstream>, effort: &str) -> Map<String, Value> {
    let (name, value) = match run.dialect().request.reasoning.effort {
        EffortField::Object => ("reasoning", json!({"effort": effort})),
        EffortField::Native | EffortField::None | EffortField::Members => ("reasoning_effort", json!(effort)),
    };
    Map::from_iter([(name.to_owned(), value)])
}

/// What is seen of efforts that go by their names.
fn by_words(run: &Run<'_, impl ProbeUpstream>, ladder: &Ladder, declared: String, silent: bool) -> Finding {
    let dialect = run.dialect();
    let rules = &dialect.request.reasoning;
    let names: Vec<&str> = ladder.good.iter().map(|rung| rung.effort.name()).collect();
    let mut evidence = said_by(ladder.bad.iter().map(|(effort, words)| (effort.name(), words.clone())));
    if ladder.nonsense {
        evidence = format!("{evidence}{}any word is taken", if evidence.is_empty() { "" } else { "; " });
    }
    let seen = if names.is_empty() { "refused".to_owned() } else { names.join(", ") };
    // Where any word is taken, that these are says little; what is refused is refused.
    let confidence = if ladder.nonsense { Confidence::Weak } else { Confidence::Certain };
    let finding = Finding::seen(FEATURE, declared, seen, evidence).sure(confidence);
    if names.is_empty() {
        let drop = || parameters::drop(dialect, &[Parameter::ReasoningEffort]);
        return if silent { finding } else { finding.change(drop()) };
    }
    let yaml = names.iter().map(|name| format!("{name}: {name}")).collect::<Vec<_>>().join(", ");
    let steps = Change::new("request.reasoning.ladder", format!("{{{yaml}}}"));
    if !silent && breaks(&rules.ladder, &ladder.bad) {
        // The refusals are certain, also where another word was taken.
        return finding.sure(Confidence::Certain).change(steps);
    }
    // It knows what an effort is: it refuses what is none.
    let unused = silent && !ladder.nonsense && names.len() > 1;
    if unused && rules.effort == EffortField::None && !dialect.drops(Parameter::ReasoningEffort) {
        let field = Change::new("request.reasoning.effort", EffortField::Native.name());
        return finding.changes(vec![field, steps]);
    }
    if unused { finding.note("efforts are taken, and the spec drops them") } else { finding }
}

/// The same where the spec tells efforts by members of the body: whether what it sends is taken.
fn by_members(ladder: &Ladder, declared: String) -> Finding {
    let evidence = said_by(ladder.bad.iter().map(|(effort, words)| (effort.name(), words.clone())));
    if ladder.bad.is_empty() {
        return Finding::seen(FEATURE, declared, "all taken", evidence);
    }
    let refused: Vec<&str> = ladder.bad.iter().map(|(effort, _)| effort.name()).collect();
    Finding::seen(FEATURE, declared, format!("refused: {}", refused.join(", ")), evidence)
        .note("the spec sends members that are refused")
}

/// The words that the declared ladder sends.
fn sent(ladder: &[(Effort, String)]) -> String {
    if ladder.is_empty() {
        return "all".to_owned();
    }
    let mut words: Vec<&str> = Vec::new();
    for (_, word) in ladder {
        if !words.contains(&word.as_str()) {
            words.push(word);
        }
    }
    words.join(", ")
}

/// Whether the declared ladder sends a word that is refused.
fn breaks(ladder: &[(Effort, String)], bad: &[(Effort, String)]) -> bool {
    if ladder.is_empty() {
        !bad.is_empty()
    } else {
        ladder.iter().any(|(_, word)| bad.iter().any(|(effort, _)| effort.name() == word))
    }
}

/// Whether `none` is taken, and ends the thinking.
fn quiet(ladder: &Ladder) -> Option<bool> {
    let none = ladder.good.iter().find(|rung| rung.effort == Effort::None)?;
    Some(none.thought == 0)
}

/// Whether more effort is more thinking. Tokens and time are weak signs: a model thinks as long as it likes.
fn effect(ladder: &Ladder, thinks: bool) -> Finding {
    const FEATURE: &str = "effort changes thinking";
    let rungs: Vec<Rung> = ladder.good.iter().filter(|rung| rung.effort != Effort::None).copied().collect();
    let (Some(first), Some(last), true) = (rungs.first(), rungs.last(), rungs.len() > 1) else {
        return Finding::skipped(FEATURE, "-", "fewer than two efforts are taken");
    };
    if !thinks {
        return Finding::skipped(FEATURE, "-", "the model showed no reasoning");
    }
    let number = |rung: &Rung| {
        let more = if rung.cut { "at least " } else { "" };
        let Rung { thought, tenths, .. } = rung;
        format!("{} {more}{thought} tokens in {}.{} s", rung.effort.name(), tenths / 10, tenths % 10)
    };
    let evidence = rungs.iter().map(number).collect::<Vec<_>>().join(", ");
    let least = rungs.iter().map(|rung| rung.thought).min().unwrap_or(0);
    let most = rungs.iter().map(|rung| rung.thought).max().unwrap_or(0);
    let grows = rungs.windows(2).all(|pair| pair[0].thought <= pair[1].thought + NOISE);
    if last.thought > 2 * first.thought + NOISE {
        let confidence = if grows && rungs.len() > 2 { Confidence::Likely } else { Confidence::Weak };
        return Finding::seen(FEATURE, "-", "more with effort", evidence).sure(confidence);
    }
    if rungs.iter().any(|rung| rung.cut) {
        return Finding::unclear(FEATURE, "-", format!("a limit ended it; {evidence}")).sure(Confidence::Weak);
    }
    if most <= least + least / 2 + NOISE {
        return Finding::seen(FEATURE, "-", "no difference", evidence)
            .sure(Confidence::Weak)
            .note("efforts seem to change nothing");
    }
    Finding::unclear(FEATURE, "-", evidence).sure(Confidence::Weak)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_is_seen_in_numbers_that_chance_does_not_give() {
        let rung = |effort, thought, cut| Rung { effort, thought, cut, tenths: 12 };
        let of = |thoughts: [(u64, bool); 3]| {
            let efforts = [Effort::Low, Effort::Medium, Effort::High];
            let good = efforts.into_iter().zip(thoughts).map(|(effort, (thought, cut))| rung(effort, thought, cut));
            let finding = effect(&Ladder { good: good.collect(), ..Ladder::default() }, true);
            (finding.observed.text().to_owned(), finding.confidence)
        };
        let seen = |text: &str, confidence| (text.to_owned(), confidence);
        assert_eq!(of([(10, false), (90, false), (400, true)]), seen("more with effort", Confidence::Likely));
        assert_eq!(of([(10, false), (500, false), (400, true)]), seen("more with effort", Confidence::Weak));
        assert_eq!(of([(100, false), (110, false), (90, false)]), seen("no difference", Confidence::Weak));
        assert_eq!(of([(600, true), (600, true), (600, true)]), seen("unclear", Confidence::Weak));
        assert_eq!(of([(100, false), (400, false), (90, false)]), seen("unclear", Confidence::Weak));
    }
}
