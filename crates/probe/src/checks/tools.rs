//! Whether and how it calls tools.

use bridge::{ChoiceKind, ForcedWhileThinking, Parallel, Parameter, RequiredWord, SchemaRule};
use serde_json::{Map, Value, json};

use super::{open, words};
use crate::ask::Upstream;
use crate::bench::{Abort, Bench, Tools};
use crate::bodies;
use crate::finding::{Change, Finding};
use crate::reply::{Reply, Said};

const ROOM: u64 = 80;

/// A request for a call, behind an example where the model needs one.
fn body(bench: &Bench<'_, impl Upstream>, prompt: &str, choice: Option<Value>) -> Map<String, Value> {
    let messages = if bench.known.tools == Tools::ByExample { bodies::example(prompt) } else { bodies::user(prompt) };
    with_tools(bench.body(messages, 2 * ROOM), choice)
}

pub(super) fn with_tools(mut body: Map<String, Value>, choice: Option<Value>) -> Map<String, Value> {
    body.insert("tools".to_owned(), bodies::tools(false));
    if let Some(choice) = choice {
        body.insert("tool_choice".to_owned(), choice);
    }
    body
}

/// Remembers how it was made to call; whether it called.
fn called(bench: &mut Bench<'_, impl Upstream>, reply: &Reply, choice: &Value) -> bool {
    let Reply::Said(said) = reply else { return false };
    if said.calls.is_empty() {
        return false;
    }
    if bench.known.calling.is_none() {
        bench.known.calling = Some(choice.clone());
    }
    if bench.known.call.is_none() && said.stream.is_none() {
        bench.known.call = Some(said.message.clone());
    }
    true
}

/// Tools offered, the choice left to the model. A model that does not take the hint gets an example.
pub(super) async fn calls(bench: &mut Bench<'_, impl Upstream>) -> Result<(), Abort> {
    const FEATURE: &str = "tools";
    let reply = bench.ask(FEATURE, body(bench, bodies::CALL, None)).await?;
    let finding = match &reply {
        Reply::Refused(refusal) => {
            bench.known.tools = Tools::Refused;
            Finding::seen(FEATURE, "-", "refused", refusal.words()).note("tools are not supported")
        }
        Reply::Said(_) if called(bench, &reply, &Value::Null) => {
            Finding::seen(FEATURE, "-", "called", call_words(&reply))
        }
        Reply::Said(_) => {
            let again = with_tools(bench.body(bodies::example(bodies::ASK), ROOM), None);
            let again = bench.ask("tools, with an example", again).await?;
            if called(bench, &again, &Value::Null) {
                bench.known.tools = Tools::ByExample;
                Finding::seen(FEATURE, "-", "called", format!("after an example; {}", call_words(&again)))
            } else {
                Finding::unclear(FEATURE, "-", format!("taken, but {}", words(&reply)))
            }
        }
        _ => open(FEATURE, "-", &reply),
    };
    bench.findings.push(finding);
    Ok(())
}

/// What cannot be tried where tools are refused.
pub(super) fn skip(bench: &mut Bench<'_, impl Upstream>) {
    for feature in
        ["tool choices", "parallel calls", "calls in a stream", "strict tools", "content beside calls", "call ids"]
    {
        bench.findings.push(Finding::skipped(feature, "-", "tools are refused"));
    }
}

/// The prompt that made it call.
fn call_prompt(bench: &Bench<'_, impl Upstream>) -> &'static str {
    if bench.known.tools == Tools::ByExample { bodies::ASK } else { bodies::CALL }
}

fn call_words(reply: &Reply) -> String {
    let Reply::Said(said) = reply else { return String::new() };
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

pub(super) async fn choices(bench: &mut Bench<'_, impl Upstream>) -> Result<(), Abort> {
    let rules = &bench.dialect().request.tools;
    let Required { word, quiet, seen: required } = required(bench).await?;
    let named = force(bench, "tool_choice named", bodies::named(), quiet).await?;
    let auto = ask_for_call(bench, "tool_choice auto", json!("auto"), true).await?;
    let none = ask_for_call(bench, "tool_choice none", json!("none"), false).await?;
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
        bench.findings.push(match seen {
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
    bench.findings.push(summary.changes(changes));
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
async fn required(bench: &mut Bench<'_, impl Upstream>) -> Result<Required, Abort> {
    let rules = &bench.dialect().request.tools;
    let word = rules.required_word;
    let off = rules.forced_while_thinking == ForcedWhileThinking::DropThinking;
    let first = force(bench, "tool_choice required", json!(word.name()), off).await?;
    if first.0 != Choice::Refused {
        return Ok(Required { word, quiet: off, seen: first });
    }
    let other = if word == RequiredWord::Required { RequiredWord::Any } else { RequiredWord::Required };
    let again = force(bench, "tool_choice required by another name", json!(other.name()), off).await?;
    if again.0 == Choice::Kept {
        return Ok(Required { word: other, quiet: off, seen: again });
    }
    if off || bench.dialect().request.reasoning.off.is_none() {
        return Ok(Required { word, quiet: off, seen: first });
    }
    let quiet = force(bench, "tool_choice required without thinking", json!(word.name()), true).await?;
    if quiet.0 != Choice::Kept {
        return Ok(Required { word, quiet: off, seen: first });
    }
    let finding = Finding::seen("forced while thinking", rules.forced_while_thinking.name(), "refused", first.1);
    let change = Change::new("request.tools.forced_while_thinking", ForcedWhileThinking::DropThinking.name());
    bench.findings.push(finding.change(change));
    Ok(Required { word, quiet: true, seen: quiet })
}

/// Forces a call where nothing else asks for one.
async fn force(
    bench: &mut Bench<'_, impl Upstream>,
    about: &'static str,
    choice: Value,
    quiet: bool,
) -> Result<(Choice, String), Abort> {
    let mut body = with_tools(bench.body(bodies::user(bodies::HELLO), ROOM), Some(choice.clone()));
    if quiet {
        body.extend(bench.thinking_off());
    }
    let reply = bench.ask(about, body).await?;
    let can_call = bench.known.calling.is_some();
    let seen = match &reply {
        Reply::Said(_) if called(bench, &reply, &choice) => Choice::Kept,
        // It can call, it was told to, and it finished without.
        Reply::Said(said) if can_call && !said.is_cut() => Choice::Ignored,
        Reply::Refused(_) => Choice::Refused,
        _ => Choice::Unclear,
    };
    let evidence = if seen == Choice::Kept { call_words(&reply) } else { words(&reply) };
    Ok((seen, evidence))
}

/// Asks for a call in words, and says whether one should come.
async fn ask_for_call(
    bench: &mut Bench<'_, impl Upstream>,
    about: &'static str,
    choice: Value,
    wanted: bool,
) -> Result<(Choice, String), Abort> {
    let reply = bench.ask(about, body(bench, call_prompt(bench), Some(choice.clone()))).await?;
    let seen = match &reply {
        Reply::Refused(_) => Choice::Refused,
        Reply::Said(said) if !wanted && (!said.calls.is_empty() || leaks(said)) => Choice::Ignored,
        // Nothing is forced by `auto`: it is enough that it is taken.
        Reply::Said(_) if wanted => {
            called(bench, &reply, &choice);
            Choice::Kept
        }
        // No call came where one would have come without `none`.
        Reply::Said(_) if bench.known.calling.is_some() => Choice::Kept,
        _ => Choice::Unclear,
    };
    Ok((seen, words(&reply)))
}

/// A call that was not to be made, as text.
fn leaks(said: &Said) -> bool {
    let text = said.answer();
    ["<tool_call", "<|tool", "\"name\": \"get_weather\"", "\"name\":\"get_weather\""]
        .iter()
        .any(|mark| text.contains(mark))
}

/// Two calls in one answer, and whether that can be switched.
pub(super) async fn parallel(bench: &mut Bench<'_, impl Upstream>) -> Result<(), Abort> {
    const FEATURE: &str = "parallel calls";
    let declared = bench.dialect().request.tools.parallel;
    let bare = bench.ask(FEATURE, two(bench, None)).await?;
    let count = |reply: &Reply| match reply {
        Reply::Said(said) => Some(said.calls.len()),
        _ => None,
    };
    let finding = match count(&bare) {
        Some(2..) => Finding::seen(FEATURE, declared.name(), "yes", "two calls in one answer"),
        Some(1) => {
            let asked = bench.ask("parallel_tool_calls: true", two(bench, Some(true))).await?;
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
    bench.findings.push(finding);
    single(bench, count(&bare).is_some_and(|calls| calls > 1)).await
}

fn two(bench: &Bench<'_, impl Upstream>, parallel: Option<bool>) -> Map<String, Value> {
    let mut body = body(bench, bodies::CALL_TWICE, None);
    if let Some(parallel) = parallel {
        body.insert("parallel_tool_calls".to_owned(), json!(parallel));
    }
    body
}

async fn single(bench: &mut Bench<'_, impl Upstream>, two_came: bool) -> Result<(), Abort> {
    const FEATURE: &str = "parallel_tool_calls: false";
    let dropped = bench.dialect().drops(Parameter::ParallelToolCalls);
    let declared = if dropped { "dropped" } else { "sent" };
    let reply = bench.ask(FEATURE, two(bench, Some(false))).await?;
    bench.findings.push(match &reply {
        Reply::Refused(refusal) => {
            let finding = Finding::seen(FEATURE, declared, "refused", refusal.words());
            if dropped {
                finding
            } else {
                finding.change(super::parameters::drop(bench.dialect(), &[Parameter::ParallelToolCalls]))
            }
        }
        Reply::Said(said) if two_came && said.calls.len() > 1 => {
            Finding::seen(FEATURE, declared, "ignored", "two calls came").note("calls cannot be kept apart")
        }
        Reply::Said(said) if two_came && said.calls.len() == 1 => Finding::seen(FEATURE, declared, "yes", ""),
        _ => open(FEATURE, declared, &reply),
    });
    Ok(())
}

/// In what pieces a call streams.
pub(super) async fn stream(bench: &mut Bench<'_, impl Upstream>) -> Result<(), Abort> {
    const FEATURE: &str = "calls in a stream";
    let Some(choice) = bench.known.calling.clone() else {
        bench.findings.push(Finding::unclear(FEATURE, "-", "the model could not be made to call"));
        return Ok(());
    };
    let mut body = body(bench, call_prompt(bench), Some(choice).filter(|choice| !choice.is_null()));
    body.insert("stream".to_owned(), json!(true));
    let reply = bench.ask(FEATURE, body).await?;
    bench.findings.push(match &reply {
        Reply::Said(said) if !said.calls.is_empty() => Finding::seen(FEATURE, "-", pieces(said), call_words(&reply)),
        Reply::Refused(refusal) => Finding::seen(FEATURE, "-", "refused", refusal.words()).note("calls do not stream"),
        _ => open(FEATURE, "-", &reply),
    });
    Ok(())
}

fn pieces(said: &Said) -> String {
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

pub(super) async fn strict(bench: &mut Bench<'_, impl Upstream>) -> Result<(), Abort> {
    const FEATURE: &str = "strict tools";
    let rules = &bench.dialect().request.tools.schema;
    let stripped = rules.contains(&SchemaRule::NoStrict);
    let declared = if stripped { "no_strict" } else { "sent" };
    let mut body = body(bench, call_prompt(bench), None);
    body.insert("tools".to_owned(), bodies::tools(true));
    let reply = bench.ask(FEATURE, body).await?;
    bench.findings.push(match &reply {
        Reply::Said(_) => Finding::seen(FEATURE, declared, "taken", ""),
        Reply::Refused(refusal) => {
            let finding = Finding::seen(FEATURE, declared, "refused", refusal.words());
            let names = rules.iter().map(|rule| rule.name()).chain([SchemaRule::NoStrict.name()]);
            if stripped { finding } else { finding.change(Change::list("request.tools.schema", names)) }
        }
        _ => open(FEATURE, declared, &reply),
    });
    Ok(())
}
