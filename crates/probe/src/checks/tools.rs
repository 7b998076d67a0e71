//! Whether and how it calls tools.

use bridge::{Parallel, Parameter, SchemaRule};
use serde_json::{Map, Value, json};

use super::{open, words};
use crate::ask::ProbeUpstream;
use crate::bodies;
use crate::finding::{Change, Confidence, Finding};
use crate::reply::{ChatReply, Reply};
use crate::run::{Abort, Run, Tools};

/// Whether it calls tools at all.
pub(super) const TOOLS: &str = "tools";
const ROOM: u64 = 80;

/// A request for a call, after an example where the model needs one.
pub(super) fn body(run: &Run<'_, impl ProbeUpstream>, prompt: &str, choice: Option<Value>) -> Map<String, Value> {
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
pub(super) fn called(run: &mut Run<'_, impl ProbeUpstream>, reply: &Reply, choice: &Value) -> bool {
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
    const FEATURE: &str = TOOLS;
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

/// The prompt that made it call.
pub(super) fn call_prompt(run: &Run<'_, impl ProbeUpstream>) -> &'static str {
    if run.known.tools == Tools::ByExample { bodies::ASK } else { bodies::CALL }
}

pub(super) fn call_words(reply: &Reply) -> String {
    let Reply::Answered(said) = reply else { return String::new() };
    let calls: Vec<String> = said.calls.iter().map(|call| format!("{}({})", call.name, call.arguments)).collect();
    crate::reply::clip(&calls.join(", "), 80)
}

/// Two calls in one answer, and whether that can be switched.
pub(super) async fn parallel(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "parallel calls";
    let declared = run.dialect().request.tools.parallel;
    let bare = run.ask(FEATURE, two(run, bodies::CALL_TWICE, None)).await?;
    let count = |reply: &Reply| match reply {
        Reply::Answered(said) => Some(said.calls.len()),
        _ => None,
    };
    let finding = match count(&bare) {
        Some(2..) => Finding::seen(FEATURE, declared.name(), "yes", "two calls in one answer"),
        // Only chat servers can be asked for several.
        Some(1) if run.is_chat() => {
            let asked = run.ask("parallel_tool_calls: true", two(run, bodies::CALL_TWICE, Some(true))).await?;
            match count(&asked) {
                Some(2..) => {
                    let finding = Finding::seen(FEATURE, declared.name(), "always", "two calls only when asked for")
                        .sure(Confidence::Likely);
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
        Some(1) => Finding::unclear(FEATURE, declared.name(), "one call came where two were asked for"),
        Some(0) => Finding::unclear(FEATURE, declared.name(), "no call came"),
        _ => open(FEATURE, declared.name(), &bare),
    };
    run.findings.push(finding);
    single(run, count(&bare).is_some_and(|calls| calls > 1)).await
}

fn two(run: &Run<'_, impl ProbeUpstream>, prompt: &str, parallel: Option<bool>) -> Map<String, Value> {
    let mut body = body(run, prompt, None);
    if let Some(parallel) = parallel {
        body.insert("parallel_tool_calls".to_owned(), json!(parallel));
    }
    body
}

async fn single(run: &mut Run<'_, impl ProbeUpstream>, two_came: bool) -> Result<(), Abort> {
    const FEATURE: &str = "parallel_tool_calls: false";
    let dropped = run.dialect().drops(Parameter::ParallelToolCalls);
    let declared = if dropped { "dropped" } else { "sent" };
    let mut reply = run.ask(FEATURE, two(run, bodies::CALL_TWICE, Some(false))).await?;
    let one = |reply: &Reply| matches!(reply, Reply::Answered(said) if said.calls.len() == 1);
    if two_came && one(&reply) {
        // Once may be chance.
        reply = run.ask(FEATURE, two(run, bodies::CALL_TWICE_MORE, Some(false))).await?;
    }
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
        Reply::Answered(_) if two_came && one(&reply) => {
            Finding::seen(FEATURE, declared, "yes", "one call in 2 of 2 tries").sure(Confidence::Likely)
        }
        _ => open(FEATURE, declared, &reply),
    });
    Ok(())
}

/// How calls come, and how tools may be declared.
pub(super) async fn form(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    stream(run).await?;
    strict(run).await
}

/// In what pieces a call streams.
async fn stream(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
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

async fn strict(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
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
