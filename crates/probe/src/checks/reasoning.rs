//! Where reasoning is in answers, which efforts are taken, and what switches it.

use bridge::{Effort, EffortField, Parameter, ThinkTags};
use serde_json::{Map, Value, json};

use super::{open, parameters, taken, words};
use crate::ask::ProbeUpstream;
use crate::bodies;
use crate::finding::{Change, Finding};
use crate::reply::Reply;
use crate::run::{Abort, Run, members};

/// Room for a thought; it may be cut, for where it comes is all that counts.
const ROOM: u64 = 120;

fn body(run: &Run<'_, impl ProbeUpstream>) -> Map<String, Value> {
    let mut body = run.body(bodies::user(bodies::THINK), ROOM);
    body.extend(run.thinking_on());
    body
}

/// Where reasoning is, in one piece and streamed.
pub(super) async fn places(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "reasoning in answers";
    let whole = run.ask(FEATURE, body(run)).await?;
    let mut streamed = body(run);
    streamed.insert("stream".to_owned(), json!(true));
    let streamed = run.ask("reasoning in a stream", streamed).await?;
    let places = |reply: &Reply| match reply {
        Reply::Answered(said) => said.reasoning_places(),
        _ => Vec::new(),
    };
    let mut seen = places(&whole);
    let in_stream = places(&streamed);
    seen.extend(in_stream.iter().filter(|place| !seen.contains(place)).copied().collect::<Vec<_>>());
    run.known.thinks |= !seen.is_empty();
    let finding = if taken(&whole).is_none() && taken(&streamed).is_none() {
        open(FEATURE, "-", &whole)
    } else if seen.is_empty() {
        Finding::seen(FEATURE, "-", "none", words(&whole))
    } else {
        let evidence = format!("in one piece: {}; streamed: {}", list(&places(&whole)), list(&in_stream));
        Finding::seen(FEATURE, "-", seen.join(", "), evidence)
    };
    run.findings.push(finding);
    run.findings.push(tags(run.dialect().answer.think_tags, &seen));
    Ok(())
}

fn list(places: &[&str]) -> String {
    if places.is_empty() { "none".to_owned() } else { places.join(", ") }
}

/// Reasoning between tags in the text.
fn tags(declared: ThinkTags, seen: &[&str]) -> Finding {
    const FEATURE: &str = "think tags";
    let found = if seen.contains(&"<think>") {
        ThinkTags::Leading
    } else if seen.iter().any(|place| place.starts_with("</think>")) {
        ThinkTags::Opened
    } else if seen.is_empty() {
        // A model that did not reason shows nothing about tags.
        return Finding::unclear(FEATURE, declared.name(), "no reasoning came");
    } else {
        ThinkTags::Off
    };
    let finding = Finding::seen(FEATURE, declared.name(), found.name(), "");
    // Tags that are looked for and do not come do no harm.
    if found == declared || found == ThinkTags::Off {
        finding
    } else {
        finding.change(Change::new("answer.think_tags", found.name()))
    }
}

/// Which efforts are taken.
pub(super) async fn efforts(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "reasoning efforts";
    let dialect = run.dialect();
    let rules = &dialect.request.reasoning;
    if rules.effort == EffortField::Members {
        return effort_members(run).await;
    }
    let dropped = dialect.drops(Parameter::ReasoningEffort);
    let declared = if dropped || rules.effort == EffortField::None { "none".to_owned() } else { sent(&rules.ladder) };
    let (mut good, mut bad, mut evidence) = (Vec::new(), Vec::new(), String::new());
    for &effort in Effort::ALL {
        let reply = run.ask(FEATURE, with_effort(run, effort)).await?;
        match taken(&reply) {
            Some(true) => good.push(effort),
            Some(false) => {
                bad.push(effort);
                evidence = format!("{}: {}", effort.name(), words(&reply));
            }
            None => {
                run.findings.push(open(FEATURE, declared, &reply));
                return Ok(());
            }
        }
    }
    let names = |efforts: &[Effort]| efforts.iter().map(|effort| effort.name()).collect::<Vec<_>>().join(", ");
    let seen = if good.is_empty() { "refused".to_owned() } else { names(&good) };
    let finding = Finding::seen(FEATURE, declared, seen, evidence);
    let silent = dropped || rules.effort == EffortField::None;
    run.findings.push(if good.is_empty() && !silent {
        finding.change(parameters::drop(dialect, &[Parameter::ReasoningEffort]))
    } else if silent || !breaks(&rules.ladder, &bad) {
        finding
    } else {
        let ladder: Vec<String> = good.iter().map(|effort| format!("{0}: {0}", effort.name())).collect();
        finding.change(Change::new("request.reasoning.ladder", format!("{{{}}}", ladder.join(", "))))
    });
    Ok(())
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
fn breaks(ladder: &[(Effort, String)], bad: &[Effort]) -> bool {
    if ladder.is_empty() {
        !bad.is_empty()
    } else {
        ladder.iter().any(|(_, word)| bad.iter().any(|effort| effort.name() == word))
    }
}

fn with_effort(run: &Run<'_, impl ProbeUpstream>, effort: Effort) -> Map<String, Value> {
    let mut body = run.body(bodies::user(bodies::HELLO), 8);
    match run.dialect().request.reasoning.effort {
        EffortField::Object => _ = body.insert("reasoning".to_owned(), json!({"effort": effort.name()})),
        EffortField::Native | EffortField::None | EffortField::Members => {
            body.insert("reasoning_effort".to_owned(), json!(effort.name()));
        }
    }
    body
}

/// Efforts that the spec tells by members of the body: whether what it sends is taken.
async fn effort_members(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "reasoning efforts";
    let (mut refused, mut evidence) = (Vec::new(), String::new());
    for (effort, json) in &run.dialect().request.reasoning.ladder {
        let mut body = run.body(bodies::user(bodies::HELLO), 8);
        body.extend(members(Some(json)));
        let reply = run.ask(FEATURE, body).await?;
        match taken(&reply) {
            Some(true) => {}
            Some(false) => {
                refused.push(effort.name());
                evidence = format!("{}: {}", effort.name(), words(&reply));
            }
            None => {
                run.findings.push(open(FEATURE, "members", &reply));
                return Ok(());
            }
        }
    }
    run.findings.push(if refused.is_empty() {
        Finding::seen(FEATURE, "members", "all taken", evidence)
    } else {
        let note = "the spec sends members that are refused";
        Finding::seen(FEATURE, "members", format!("refused: {}", refused.join(", ")), evidence).note(note)
    });
    Ok(())
}

/// The declared switch: whether it is taken, and whether it does something.
pub(super) async fn switch(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "thinking switch";
    let Some(off) = run.dialect().request.reasoning.off.clone() else { return Ok(()) };
    let mut body = run.body(bodies::user(bodies::THINK), ROOM);
    body.extend(run.thinking_off());
    let reply = run.ask(FEATURE, body).await?;
    run.findings.push(match &reply {
        Reply::Refused(refusal) => {
            Finding::seen(FEATURE, off, "refused", refusal.words()).note("the declared switch is refused")
        }
        Reply::Answered(said) if !said.reasoning_places().is_empty() => {
            Finding::seen(FEATURE, off, "ignored", "it reasons all the same").note("thinking cannot be switched off so")
        }
        Reply::Answered(_) if run.known.thinks => Finding::seen(FEATURE, off, "works", ""),
        _ => open(FEATURE, off, &reply),
    });
    Ok(())
}
