//! Reasoning that comes back: whether turns with calls, or all turns, must bring it, under which name it is taken, and
//! whether it is read.

use bridge::{Replay, ReplayField};
use serde_json::{Map, Value, json};

use super::history::after;
use super::{open, taken, words};
use crate::ask::ProbeUpstream;
use crate::bodies::{self, Absent, PLAIN_ID};
use crate::finding::{Change, Confidence, Finding};
use crate::reply::Reply;
use crate::run::{Abort, Run};

const FEATURE: &str = "reasoning replay";
/// The members that carry text, in the order in which they are looked for.
const TEXTS: [&str; 2] = ["reasoning_content", "reasoning"];
const DETAILS: &str = "reasoning_details";

pub(super) async fn run(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    let declared = run.dialect().request.reasoning.replay.name();
    let absent = run.known.history.unwrap_or(Absent::Null);
    let call = run.known.call.clone().filter(|call| field_of(call).is_some());
    let (bare, field) = match (&call, call.as_ref().and_then(field_of)) {
        (Some(call), Some(field)) => (without_reasoning(call, absent), field),
        // No history with calls was taken: it may be for want of reasoning.
        _ if run.known.history.is_none() => (bodies::called(absent, PLAIN_ID), TEXTS[0]),
        _ => {
            run.findings.push(if run.known.thinks {
                Finding::unclear(FEATURE, declared, "no answer had both reasoning and a call")
            } else {
                Finding::skipped(FEATURE, declared, "the model showed no reasoning")
            });
            return Ok(());
        }
    };
    let seen = Seen::ask(run, call, bare.clone(), field).await?;
    let needed = seen.needed(run);
    run.findings.push(needed);
    if !run.known.thinks || seen.is_open() {
        return Ok(());
    }
    names(run, &bare, field).await?;
    read(run, &bare, field).await?;
    plain(run, field, &seen).await
}

/// What became of a history with a call, three times.
struct Seen {
    field: &'static str,
    without: Reply,
    blank: Reply,
    /// With the reasoning that it gave; None where it gave none.
    full: Option<Reply>,
}

impl Seen {
    async fn ask(
        run: &mut Run<'_, impl ProbeUpstream>,
        call: Option<Value>,
        bare: Value,
        field: &'static str,
    ) -> Result<Self, Abort> {
        let id = id_of(&bare);
        let without = run.ask("history without reasoning", after(run, bare.clone(), &id, None)).await?;
        let full = match call {
            Some(call) => {
                let message = with(&bare, field, call[field].clone());
                Some(run.ask("history with reasoning", after(run, message, &id, None)).await?)
            }
            None => None,
        };
        // A blank where a list belongs would say nothing.
        let blank = with(&bare, if field == DETAILS { TEXTS[0] } else { field }, json!(" "));
        let blank = run.ask("history with blank reasoning", after(run, blank, &id, None)).await?;
        Ok(Self { field, without, blank, full })
    }

    fn is_open(&self) -> bool {
        taken(&self.without).is_none()
    }

    /// Whether turns with calls must bring it.
    fn needed(&self, run: &Run<'_, impl ProbeUpstream>) -> Finding {
        let rules = &run.dialect().request.reasoning;
        let declared = rules.replay.name();
        let evidence = format!("without: {}; blank: {}", words(&self.without), words(&self.blank));
        let full = self.full.as_ref().and_then(taken);
        match (taken(&self.without), taken(&self.blank), full) {
            (None, ..) => open(FEATURE, declared, &self.without),
            (Some(true), _, Some(false)) => {
                let why = self.full.as_ref().map(words).unwrap_or_default();
                let finding = Finding::seen(FEATURE, declared, "never", format!("what comes back is refused: {why}"));
                if rules.replay == Replay::Never {
                    finding
                } else {
                    finding.change(Change::new("request.reasoning.replay", Replay::Never.name()))
                }
            }
            (Some(true), ..) => Finding::seen(FEATURE, declared, "optional", evidence),
            (Some(false), blank, full) if blank == Some(true) || full == Some(true) => {
                Finding::seen(FEATURE, declared, "needed on calls", evidence)
                    .changes(self.changes(run, blank == Some(true)))
            }
            _ => Finding::unclear(FEATURE, declared, evidence),
        }
    }

    /// The changes for an upstream that wants reasoning back.
    fn changes(&self, run: &Run<'_, impl ProbeUpstream>, blank: bool) -> Vec<Change> {
        let rules = &run.dialect().request.reasoning;
        let mut changes = Vec::new();
        if rules.replay == Replay::Never {
            changes.push(Change::new("request.reasoning.replay", Replay::Tools.name()));
        }
        let wanted = match self.field {
            DETAILS => ReplayField::Bag,
            "reasoning" => ReplayField::Reasoning,
            _ => ReplayField::ReasoningContent,
        };
        if rules.field != wanted && rules.field != ReplayField::Bag {
            changes.push(Change::new("request.reasoning.field", wanted.name()));
        }
        if blank && !rules.placeholder && wanted != ReplayField::Bag {
            changes.push(Change::new("request.reasoning.placeholder", "true"));
        }
        changes
    }
}

/// The other names under which it may come back. Taken is not read: most servers leave out what they do not know.
async fn names(run: &mut Run<'_, impl ProbeUpstream>, bare: &Value, field: &'static str) -> Result<(), Abort> {
    const FEATURE: &str = "reasoning comes back as";
    let declared = run.dialect().request.reasoning.field.name();
    let id = id_of(bare);
    let mut good = vec![field];
    let mut evidence = Vec::new();
    for name in TEXTS.into_iter().filter(|name| *name != field) {
        let message = with(bare, name, json!("Let me think about that."));
        let reply = run.ask("reasoning under another name", after(run, message, &id, None)).await?;
        match taken(&reply) {
            Some(true) => good.push(name),
            Some(false) => evidence.push(format!("{name}: {}", words(&reply))),
            None => {}
        }
    }
    let evidence = if evidence.is_empty() { "taken or left out".to_owned() } else { evidence.join("; ") };
    run.findings.push(Finding::seen(FEATURE, declared, good.join(", "), evidence));
    Ok(())
}

/// Whether the model sees it again: it is asked for a word that is in there and nowhere else.
async fn read(run: &mut Run<'_, impl ProbeUpstream>, bare: &Value, field: &'static str) -> Result<(), Abort> {
    const FEATURE: &str = "reasoning is read again";
    if field == DETAILS {
        // What is signed cannot be written by us.
        run.findings.push(Finding::skipped(FEATURE, "-", "it comes as a list of the provider's own"));
        return Ok(());
    }
    let message = with(bare, field, json!(bodies::THOUGHT_WITH_WORD));
    let mut messages = bodies::history(message, &id_of(bare));
    if let Some(result) = messages.last_mut() {
        result["content"] = json!(bodies::ASK_FOR_WORD);
    }
    let body = super::tools::with_tools(run.body(Value::Array(messages), 60), None);
    let reply = run.ask(FEATURE, body).await?;
    run.findings.push(match &reply {
        Reply::Answered(said) if said.answer().contains(bodies::THOUGHT_WORD) => {
            Finding::seen(FEATURE, "-", "yes", "it knew a word that was in its reasoning alone")
        }
        Reply::Answered(_) => Finding::seen(FEATURE, "-", "no sign", words(&reply)).sure(Confidence::Weak),
        _ => open(FEATURE, "-", &reply),
    });
    Ok(())
}

/// The same for turns without calls: a spec that says `always` sends it there, too.
async fn plain(run: &mut Run<'_, impl ProbeUpstream>, field: &'static str, seen: &Seen) -> Result<(), Abort> {
    const FEATURE: &str = "replay without calls";
    let declared = run.dialect().request.reasoning.replay;
    let without = run.ask(FEATURE, said_before(run, None)).await?;
    let member = (field, if field == DETAILS { json!([]) } else { json!("Let me think about that.") });
    let with = run.ask(FEATURE, said_before(run, Some(member))).await?;
    let evidence = format!("without: {}; with: {}", words(&without), words(&with));
    run.findings.push(match (taken(&without), taken(&with)) {
        (Some(false), Some(true)) => {
            let finding = Finding::seen(FEATURE, declared.name(), "needed", evidence);
            if declared == Replay::Always {
                finding
            } else {
                finding.change(Change::new("request.reasoning.replay", Replay::Always.name()))
            }
        }
        (Some(true), Some(false)) => {
            let finding = Finding::seen(FEATURE, declared.name(), "refused", evidence);
            let on_calls = seen.full.as_ref().and_then(taken) != Some(false);
            if declared == Replay::Always && on_calls {
                finding.change(Change::new("request.reasoning.replay", Replay::Tools.name()))
            } else {
                finding
            }
        }
        (Some(true), Some(true)) => Finding::seen(FEATURE, declared.name(), "optional", evidence),
        _ => Finding::unclear(FEATURE, declared.name(), evidence),
    });
    Ok(())
}

/// A turn without calls in the past, with or without its reasoning.
fn said_before(run: &Run<'_, impl ProbeUpstream>, reasoning: Option<(&str, Value)>) -> Map<String, Value> {
    let mut answer = json!({"role": "assistant", "content": "Hello!"});
    if let Some((field, value)) = reasoning {
        answer[field] = value;
    }
    let question = json!({"role": "user", "content": bodies::HELLO});
    run.body(json!([{"role": "user", "content": "Hi."}, answer, question]), 24)
}

fn id_of(message: &Value) -> String {
    message["tool_calls"][0]["id"].as_str().unwrap_or(PLAIN_ID).to_owned()
}

fn with(message: &Value, field: &str, reasoning: Value) -> Value {
    let mut message = message.clone();
    message[field] = reasoning;
    message
}

/// The member with the reasoning of an answer: text before lists, which often repeat it.
fn field_of(message: &Value) -> Option<&'static str> {
    let text = TEXTS.into_iter().find(|field| message[*field].as_str().is_some_and(|text| !text.is_empty()));
    text.or_else(|| message[DETAILS].as_array().is_some_and(|details| !details.is_empty()).then_some(DETAILS))
}

/// An answer as a message of the history, with its first call and nothing else.
fn without_reasoning(call: &Value, absent: Absent) -> Value {
    let mut message = json!({"role": "assistant", "tool_calls": [call["tool_calls"][0]]});
    match absent {
        Absent::Null => message["content"] = Value::Null,
        Absent::Empty => message["content"] = json!(""),
        Absent::Omitted => {}
    }
    message
}
