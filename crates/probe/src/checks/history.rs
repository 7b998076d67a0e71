//! Histories with calls: how a call without text is written, which ids are taken.

use bridge::{AbsentContent, CallIds, Replay, ReplayField};
use serde_json::{Map, Value, json};

use super::{open, roles, taken, tools, words};
use crate::ask::ProbeUpstream;
use crate::bodies::{self, Absent, PLAIN_ID};
use crate::finding::{Change, Finding};
use crate::run::{Abort, Run};

/// Ids with other characters, and long ones.
const ODD_ID: &str = "functions.get_weather:0/0123456789012345678901234567890123456789012345678901234567890123";
const LONG_ID: &str = "call_0123456789abcdef0123456789";

/// A request that ends with the result of this call, or goes on with a message.
pub(super) fn after(
    run: &Run<'_, impl ProbeUpstream>,
    call: Value,
    id: &str,
    then: Option<Value>,
) -> Map<String, Value> {
    let mut messages = bodies::history(call, id);
    messages.extend(then);
    tools::with_tools(run.body(Value::Array(messages), 40), None)
}

/// A call as the spec has it: with a blank for its reasoning where it would send one.
pub(super) fn call(run: &Run<'_, impl ProbeUpstream>, absent: Absent, id: &str) -> Value {
    let rules = &run.dialect().request.reasoning;
    let mut message = bodies::called(absent, id);
    if rules.replay != Replay::Never && rules.placeholder && rules.field != ReplayField::Bag {
        message[rules.field.name()] = json!(" ");
    }
    message
}

/// The three ways to write no content, the declared one first.
fn ways(declared: AbsentContent) -> [(AbsentContent, Absent); 3] {
    let null = (AbsentContent::Null, Absent::Null);
    let empty = (AbsentContent::Empty, Absent::Empty);
    let omit = (AbsentContent::Omit, Absent::Omitted);
    match declared {
        AbsentContent::Null => [null, empty, omit],
        AbsentContent::Empty => [empty, null, omit],
        AbsentContent::Omit => [omit, null, empty],
    }
}

pub(super) async fn run(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    if run.is_chat() {
        calls(run).await?;
    } else {
        blocks(run).await?;
    }
    ids(run).await
}

/// A call and its result where both are blocks: there is one way to write them.
async fn blocks(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "history with a call";
    let reply = run.ask(FEATURE, after(run, bodies::called(Absent::Omitted, PLAIN_ID), PLAIN_ID, None)).await?;
    run.findings.push(match taken(&reply) {
        Some(true) => {
            run.known.history = Some(Absent::Omitted);
            Finding::seen(FEATURE, "-", "taken", words(&reply))
        }
        Some(false) => Finding::seen(FEATURE, "-", "refused", words(&reply)).note("a call of another model is refused"),
        None => open(FEATURE, "-", &reply),
    });
    Ok(())
}

/// A call, its result, and what may follow it.
async fn calls(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "content beside calls";
    let declared = run.dialect().request.messages.absent_content;
    let mut evidence = Vec::new();
    let mut found = None;
    let mut last = None;
    for (way, absent) in ways(declared) {
        let reply = run.ask(FEATURE, after(run, call(run, absent, PLAIN_ID), PLAIN_ID, None)).await?;
        evidence.push(format!("{}: {}", way.name(), words(&reply)));
        match taken(&reply) {
            Some(true) => {
                run.known.history = Some(absent);
                found = Some(way);
            }
            Some(false) => {
                last = Some(reply);
                continue;
            }
            None => last = Some(reply),
        }
        break;
    }
    let evidence = evidence.join("; ");
    run.findings.push(match (found, last) {
        (Some(way), _) if way == declared => Finding::seen(FEATURE, declared.name(), way.name(), evidence),
        (Some(way), _) => Finding::seen(FEATURE, declared.name(), way.name(), evidence)
            .change(Change::new("request.messages.absent_content", way.name())),
        (None, Some(reply)) if taken(&reply).is_none() => open(FEATURE, declared.name(), &reply),
        // Refused in every form: it may want reasoning beside the call, which is tried later.
        _ => Finding::unclear(FEATURE, declared.name(), evidence),
    });
    let declared = run.dialect().request.messages.after_tool;
    let Some(absent) = run.known.history else {
        run.findings.push(Finding::unclear("user after tool", declared.name(), "no history with calls is taken"));
        return Ok(());
    };
    let question = json!({"role": "user", "content": "Thank you. Say goodbye."});
    let body = after(run, call(run, absent, PLAIN_ID), PLAIN_ID, Some(question));
    let reply = run.ask("user after tool", body).await?;
    run.findings.push(roles::after_tool(declared, &reply));
    Ok(())
}

/// Which call ids are taken.
async fn ids(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "call ids";
    let declared = run.dialect().request.messages.call_ids;
    let Some(absent) = run.known.history else {
        run.findings.push(Finding::unclear(FEATURE, declared.name(), "no history with calls is taken"));
        return Ok(());
    };
    let mut evidence = String::new();
    let mut found = CallIds::Alnum9;
    for (kind, id) in [(CallIds::Any, ODD_ID), (CallIds::Safe, LONG_ID)] {
        let reply = run.ask(FEATURE, after(run, call(run, absent, id), id, None)).await?;
        match taken(&reply) {
            None => {
                run.findings.push(open(FEATURE, declared.name(), &reply));
                return Ok(());
            }
            Some(true) => {
                found = kind;
                break;
            }
            Some(false) => evidence = words(&reply),
        }
    }
    let rank = |ids: CallIds| CallIds::ALL.iter().position(|known| *known == ids);
    let finding = Finding::seen(FEATURE, declared.name(), found.name(), evidence);
    // A stricter rule than needed does no harm.
    let holds = rank(declared) >= rank(found);
    run.findings.push(if holds {
        finding
    } else {
        finding.change(Change::new("request.messages.call_ids", found.name()))
    });
    Ok(())
}
