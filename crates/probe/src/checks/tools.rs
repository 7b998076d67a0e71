//! Whether and how it calls tools.

use bridge::{ChoiceKind, ForcedWhileThinking, Parallel, Parameter, RequiredWord, SchemaRule};
use serde_json::{Map, Value, json};

use super::{open, words};
use crate::ask::ProbeUpstream;
use crate::bodies;
use crate::finding::{Change, Finding};
use crate::reply::{ChatReply, Reply};
use crate::run::{Abort, Run, Tools};

const ROOM: u64 = 80;

/// A request for a call, after an example where the model needs one.
fn body(run: &Run<'_, impl ProbeUpstream>, prompt: &str, choice: Option<Value>) -> Map<String, Value> {
    let messages = if run.known.tools == Tools::ByExample { bodies::example(prompt) } else { bodies::user(prompt) };
    with_tools(run.body(messages, 2 * ROOM), choice)
}

pub(super) fn with_tools(mut body: Map<String, Value>, choice: Option<Value>) -> Map<String, Value> {
    body.insert("tools".to_owned(), bodies::tools(false));
    if let Some(choice) = choice {
        body.insert("tool_choice".to_owned(), choice);
    }
    body
}

/// Remembers how it was made to call; whether it called.
fn called(run: &mut Run<'_, impl ProbeUpstream>, reply: &Reply, choice: &Value) -> bool {
    let Reply::Answered(said) = reply else { return false };
    if said.calls.is_empty() {
        return false;
    }
    if run.known.calling.is_none() {
        run.known.calling = Some(choice.clone());
    }
    if run.known.call.is_none() && said.stream.is_none() {
        run.known.call = Some(said.message.clone());
    }
    true
}

/// Tools offered, the choice left to the model. A model that does not take the hint gets an example.
pub(super) async fn calls(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "tools";
    let reply = run.ask(FEATURE, body(run, bodies::CALL, None)).await?;
    let finding = match &reply {
        Reply::Refused(refusal) => {
            run.known.tools = Tools::Refused;
            Finding::seen(FEATURE, "-", "refused", refusal.words()).note("tools are not supported")
        }
        Reply::Answered(_) if called(run, &reply, &Value::Null) => {
            Finding::seen(FEATURE, "-", "called", call_words(&reply))
        }
        Reply::Answered(_) => {
            let again = with_tools(run.body(bodies::example(bodies::ASK), ROOM), None);
            let again = run.ask("tools, with an example", again).await?;
            if called(run, &again, &Value::Null) {
                run.known.tools = Tools::ByExample;
                Finding::seen(FEATURE, "-", "called", format!("after an example; {}", call_words(&again)))
            } else {
                Finding::unclear(FEATURE, "-", format!("taken, but {}", words(&reply)))
            }
        }
        _ => open(FEATURE, "-", &reply),
    };
    run.findings.push(finding);
    Ok(())
}

/// What cannot be tried where tools are refused.
pub(super) fn skip(run: &mut Run<'_, impl ProbeUpstream>) {
    for feature in
        ["tool choices", "parallel calls", "calls in a stream", "strict tools", "content beside calls", "call ids"]
    {
        run.findings.push(Finding::skipped(feature, "-", "tools are refused"));
    }
}

/// The prompt that made it call.
fn call_prompt(run: &Run<'_, impl ProbeUpstream>) -> &'static str {
    if run.known.tools == Tools::ByExample { bodies::ASK } else { bodies::CALL }
}

fn call_words(reply: &Reply) -> String {
    let Reply::Answered(said) = reply else { return String::new() };
    let calls: Vec<String> = said.calls.iter().map(|call| format!("{}({})", call.name, call.arguments)).collect();
    crate::reply::clip(&calls.join(", "), 80)
}

/// What became of one kind of `tool_choice`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Kept,
    /// Taken, and without effect.
    Ignored,
    Refused,
    Unclear,
}

pub(super) async fn choices(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    let rules = &run.dialect().request.tools;
    let Required { word, quiet, seen: required } = required(run).await?;
    let named = force(run, "tool_choice named", bodies::named(), quiet).await?;
    let auto = ask_for_call(run, "tool_choice auto", json!("auto"), true).await?;
    let none = ask_for_call(run, "tool_choice none", json!("none"), false).await?;
    let mut kinds = rules.choices.clone();
    let mut evidence = Vec::new();
    for (kind, feature, (seen, said)) in [
        (ChoiceKind::Auto, "tool_choice auto", auto),
        (ChoiceKind::None, "tool_choice none", none),
        (ChoiceKind::Required, "tool_choice required", required),
        (ChoiceKind::Function, "tool_choice named", named),
    ] {
        let was = rules.choices.contains(&kind);
        let declared = if was { "yes" } else { "no" };
        let lacks = matches!(seen, Choice::Refused | Choice::Ignored);
        if lacks && was {
            kinds.retain(|known| *known != kind);
            evidence.push(format!("{}: {said}", kind.name()));
        } else if seen == Choice::Kept && !was {
            kinds.push(kind);
            evidence.push(format!("{}: {said}", kind.name()));
        }
        run.findings.push(match seen {
            Choice::Kept => Finding::seen(feature, declared, "yes", said),
            Choice::Ignored => Finding::seen(feature, declared, "ignored", said),
            Choice::Refused => Finding::seen(feature, declared, "refused", said),
            Choice::Unclear => Finding::unclear(feature, declared, said),
        });
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
    run.findings.push(summary.changes(changes));
    Ok(())
}

/// What is known about `required`.
struct Required {
    word: RequiredWord,
    /// Thinking must be off for it.
    quiet: bool,
    seen: (Choice, String),
}

/// `required` as it is declared, then by its other name, then with thinking switched off.
async fn required(run: &mut Run<'_, impl ProbeUpstream>) -> Result<Required, Abort> {
    let rules = &run.dialect().request.tools;
    let word = rules.required_word;
    let off = rules.forced_while_thinking == ForcedWhileThinking::DropThinking;
    let first = force(run, "tool_choice required", json!(word.name()), off).await?;
    if first.0 != Choice::Refused {
        return Ok(Required { word, quiet: off, seen: first });
    }
    let other = if word == RequiredWord::Required { RequiredWord::Any } else { RequiredWord::Required };
    let again = force(run, "tool_choice required by another name", json!(other.name()), off).await?;
    if again.0 == Choice::Kept {
        return Ok(Required { word: other, quiet: off, seen: again });
    }
    if off || run.dialect().request.reasoning.off.is_none() {
        return Ok(Required { word, quiet: off, seen: first });
    }
    let quiet = force(run, "tool_choice required without thinking", json!(word.name()), true).await?;
    if quiet.0 != Choice::Kept {
        return Ok(Required { word, quiet: off, seen: first });
    }
    let finding = Finding::seen("forced while thinking", rules.forced_while_thinking.name(), "refused", first.1);
    let change = Change::new("request.tools.forced_while_thinking", ForcedWhileThinking::DropThinking.name());
    run.findings.push(finding.change(change));
    Ok(Required { word, quiet: true, seen: quiet })
}

/// Forces a call where nothing else asks for one.
async fn force(
    run: &mut Run<'_, impl ProbeUpstream>,
    about: &'static str,
    choice: Value,
    quiet: bool,
) -> Result<(Choice, String), Abort> {
    let mut body = with_tools(run.body(bodies::user(bodies::HELLO), ROOM), Some(choice.clone()));
    if quiet {
        body.extend(run.thinking_off());
    }
    let reply = run.ask(about, body).await?;
    let can_call = run.known.calling.is_some();
    let seen = match &reply {
        Reply::Answered(_) if called(run, &reply, &choice) => Choice::Kept,
        // It can call, it was told to, and it finished without.
        Reply::Answered(said) if can_call && !said.is_cut() => Choice::Ignored,
        Reply::Refused(_) => Choice::Refused,
        _ => Choice::Unclear,
    };
    let evidence = if seen == Choice::Kept { call_words(&reply) } else { words(&reply) };
    Ok((seen, evidence))
}

/// Asks for a call in words, and says whether one should come.
async fn ask_for_call(
    run: &mut Run<'_, impl ProbeUpstream>,
    about: &'static str,
    choice: Value,
    wanted: bool,
) -> Result<(Choice, String), Abort> {
    let reply = run.ask(about, body(run, call_prompt(run), Some(choice.clone()))).await?;
    let seen = match &reply {
        Reply::Refused(_) => Choice::Refused,
        Reply::Answered(said) if !wanted && (!said.calls.is_empty() || leaks(said)) => Choice::Ignored,
        // Nothing is forced by `auto`: it is enough that it is taken.
        Reply::Answered(_) if wanted => {
            called(run, &reply, &choice);
            Choice::Kept
        }
        // No call came where one would have come without `none`.
        Reply::Answered(_) if run.known.calling.is_some() => Choice::Kept,
        _ => Choice::Unclear,
    };
    Ok((seen, words(&reply)))
}

/// A call that was not to be made, as text.
fn leaks(said: &ChatReply) -> bool {
    let text = said.answer();
    ["<tool_call", "<|tool", "\"name\": \"get_weather\"", "\"name\":\"get_weather\""]
        .iter()
        .any(|mark| text.contains(mark))
}

/// Two calls in one answer, and whether that can be switched.
pub(super) async fn parallel(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "parallel calls";
    let declared = run.dialect().request.tools.parallel;
    let bare = run.ask(FEATURE, two(run, None)).await?;
    let count = |reply: &Reply| match reply {
        Reply::Answered(said) => Some(said.calls.len()),
        _ => None,
    };
    let finding = match count(&bare) {
        Some(2..) => Finding::seen(FEATURE, declared.name(), "yes", "two calls in one answer"),
        Some(1) => {
            let asked = run.ask("parallel_tool_calls: true", two(run, Some(true))).await?;
            match count(&asked) {
                Some(2..) => {
                    let finding = Finding::seen(FEATURE, declared.name(), "always", "two calls only when asked for");
                    match declared {
                        Parallel::Always => finding,
                        Parallel::WhenFalse => {
                            finding.change(Change::new("request.tools.parallel", Parallel::Always.name()))
                        }
                    }
                }
                _ => Finding::unclear(FEATURE, declared.name(), "one call came where two were asked for"),
            }
        }
        Some(0) => Finding::unclear(FEATURE, declared.name(), "no call came"),
        _ => open(FEATURE, declared.name(), &bare),
    };
    run.findings.push(finding);
    single(run, count(&bare).is_some_and(|calls| calls > 1)).await
}

fn two(run: &Run<'_, impl ProbeUpstream>, parallel: Option<bool>) -> Map<String, Value> {
    let mut body = body(run, bodies::CALL_TWICE, None);
    if let Some(parallel) = parallel {
        body.insert("parallel_tool_calls".to_owned(), json!(parallel));
    }
    body
}

async fn single(run: &mut Run<'_, impl ProbeUpstream>, two_came: bool) -> Result<(), Abort> {
    const FEATURE: &str = "parallel_tool_calls: false";
    let dropped = run.dialect().drops(Parameter::ParallelToolCalls);
    let declared = if dropped { "dropped" } else { "sent" };
    let reply = run.ask(FEATURE, two(run, Some(false))).await?;
    run.findings.push(match &reply {
        Reply::Refused(refusal) => {
            let finding = Finding::seen(FEATURE, declared, "refused", refusal.words());
            if dropped {
                finding
            } else {
                finding.change(super::parameters::drop(run.dialect(), &[Parameter::ParallelToolCalls]))
            }
        }
        Reply::Answered(said) if two_came && said.calls.len() > 1 => {
            Finding::seen(FEATURE, declared, "ignored", "two calls came").note("calls cannot be kept apart")
        }
        Reply::Answered(said) if two_came && said.calls.len() == 1 => Finding::seen(FEATURE, declared, "yes", ""),
        _ => open(FEATURE, declared, &reply),
    });
    Ok(())
}

/// In what pieces a call streams.
pub(super) async fn stream(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "calls in a stream";
    let Some(choice) = run.known.calling.clone() else {
        run.findings.push(Finding::unclear(FEATURE, "-", "the model could not be made to call"));
        return Ok(());
    };
    let mut body = body(run, call_prompt(run), Some(choice).filter(|choice| !choice.is_null()));
    body.insert("stream".to_owned(), json!(true));
    let reply = run.ask(FEATURE, body).await?;
    run.findings.push(match &reply {
        Reply::Answered(said) if !said.calls.is_empty() => {
            Finding::seen(FEATURE, "-", pieces(said), call_words(&reply))
        }
        Reply::Refused(refusal) => Finding::seen(FEATURE, "-", "refused", refusal.words()).note("calls do not stream"),
        _ => open(FEATURE, "-", &reply),
    });
    Ok(())
}

fn pieces(said: &ChatReply) -> String {
    let whole = said.calls.iter().all(|call| call.deltas == 1);
    let mut seen = if whole { "whole calls".to_owned() } else { "in pieces".to_owned() };
    if said.calls.iter().any(|call| call.id.is_empty()) {
        seen.push_str(", without ids");
    }
    if said.calls.len() > 1 && said.calls.iter().all(|call| call.index == said.calls[0].index) {
        seen.push_str(", all under one index");
    }
    seen
}

pub(super) async fn strict(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "strict tools";
    let rules = &run.dialect().request.tools.schema;
    let stripped = rules.contains(&SchemaRule::NoStrict);
    let declared = if stripped { "no_strict" } else { "sent" };
    let mut body = body(run, call_prompt(run), None);
    body.insert("tools".to_owned(), bodies::tools(true));
    let reply = run.ask(FEATURE, body).await?;
    run.findings.push(match &reply {
        Reply::Answered(_) => Finding::seen(FEATURE, declared, "taken", ""),
        Reply::Refused(refusal) => {
            let finding = Finding::seen(FEATURE, declared, "refused", refusal.words());
            let names = rules.iter().map(|rule| rule.name()).chain([SchemaRule::NoStrict.name()]);
            if stripped { finding } else { finding.change(Change::list("request.tools.schema", names)) }
        }
        _ => open(FEATURE, declared, &reply),
    });
    Ok(())
}
