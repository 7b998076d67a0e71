//! Whether it answers at all, what limits an answer, and how it streams.

use bridge::{EofTolerance, LimitField, StreamUsage};
use serde_json::{Map, Value, json};

use super::{open, words};
use crate::ask::ProbeUpstream;
use crate::bodies;
use crate::finding::{Change, Finding};
use crate::reply::{ChatReply, Reply};
use crate::run::{Abort, Run};
use crate::wires;

/// The limit that is tried, and the most that still counts as keeping it.
const LIMIT: u64 = 16;
const SLACK: u64 = 8;

/// What became of a limit.
#[derive(Debug, PartialEq, Eq)]
enum Kept {
    Yes,
    Ignored,
    Refused,
    Unclear,
}

/// The first requests: a plain one, with a limit. Everything else needs this to work.
pub(super) async fn plain(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    let declared = run.dialect().limit_field;
    let mut tried: Vec<(LimitField, Kept, Reply)> = Vec::new();
    for field in [declared, other(declared)] {
        let reply = limited(run, Some(field)).await?;
        let kept = kept(&reply);
        let enough = matches!(kept, Kept::Yes | Kept::Unclear);
        tried.push((field, kept, reply));
        if enough {
            break;
        }
    }
    let mut taken = tried.iter().filter(|(_, kept, _)| *kept != Kept::Refused);
    let works = tried.iter().find(|(_, kept, _)| *kept == Kept::Yes).map(|(field, ..)| *field);
    let limit = works.or_else(|| taken.next().map(|(field, ..)| *field));
    let first = match tried.iter().find(|(_, _, reply)| matches!(reply, Reply::Answered(_))) {
        Some((_, _, reply)) => reply.clone(),
        None => limited(run, None).await?,
    };
    run.known.limit = limit;
    let said = match first {
        Reply::Answered(said) => said,
        Reply::Refused(refusal) => return Err(Abort::Refused(refusal.words(), wires::api(run.settings.wire))),
        Reply::Lost(why) => return Err(Abort::Unreadable(why)),
        Reply::Unsent(why) => return Err(Abort::Unreadable(why.to_owned())),
    };
    run.known.thinks = !said.reasoning_places().is_empty() || said.usage.is_some_and(|u| u.reasoning > Some(0));
    let answer = format!("it answered \"{}\"", crate::reply::clip(&said.text, 60));
    run.findings.push(Finding::seen("plain answer", "-", "yes", answer));
    run.findings.push(Finding::seen("usage", "-", said.usage.map_or("none", |_| "yes"), ""));
    run.findings.push(limit_finding(declared, works, &tried));
    Ok(())
}

async fn limited(run: &mut Run<'_, impl ProbeUpstream>, field: Option<LimitField>) -> Result<Reply, Abort> {
    run.known.limit = None;
    let mut body = run.body(bodies::user(bodies::COUNT), 0);
    if let Some(field) = field {
        body.insert(field.name().to_owned(), json!(LIMIT));
    }
    run.ask("limit", body).await
}

fn kept(reply: &Reply) -> Kept {
    match reply {
        Reply::Answered(said) if said.is_cut() => Kept::Yes,
        Reply::Answered(said) => match said.usage {
            Some(usage) if usage.output > LIMIT + SLACK => Kept::Ignored,
            // It stopped by itself.
            _ => Kept::Unclear,
        },
        Reply::Refused(_) => Kept::Refused,
        Reply::Lost(_) | Reply::Unsent(_) => Kept::Unclear,
    }
}

fn describe(reply: &Reply, kept: &Kept) -> String {
    match (reply, kept) {
        (Reply::Answered(_), Kept::Yes) => "kept".to_owned(),
        (Reply::Answered(said), Kept::Ignored) => {
            format!("{} tokens came instead of {LIMIT}", said.usage.map_or(0, |usage| usage.output))
        }
        (Reply::Answered(_), _) => "taken; the answer ended by itself".to_owned(),
        _ => words(reply),
    }
}

fn other(field: LimitField) -> LimitField {
    match field {
        LimitField::MaxTokens => LimitField::MaxCompletionTokens,
        LimitField::MaxCompletionTokens => LimitField::MaxTokens,
    }
}

fn limit_finding(declared: LimitField, works: Option<LimitField>, tried: &[(LimitField, Kept, Reply)]) -> Finding {
    const FEATURE: &str = "limit field";
    let line =
        |(field, kept, reply): &(LimitField, Kept, Reply)| format!("{}: {}", field.name(), describe(reply, kept));
    let evidence = tried.iter().map(line).collect::<Vec<_>>().join("; ");
    match works {
        Some(field) if field == declared => Finding::seen(FEATURE, declared.name(), field.name(), evidence),
        Some(field) => Finding::seen(FEATURE, declared.name(), field.name(), evidence)
            .change(Change::new("limit_field", field.name())),
        None if tried.iter().any(|(_, kept, _)| *kept == Kept::Unclear) => {
            Finding::unclear(FEATURE, declared.name(), evidence)
        }
        None => Finding::seen(FEATURE, declared.name(), "none", evidence).note("answers cannot be limited"),
    }
}

/// A stream without options, then one that asks for usage.
pub(super) async fn stream(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    let declared = run.dialect().stream_usage;
    let bare = run.ask("stream", streamed(run, None)).await?;
    let asking = run.ask("usage in the stream", streamed(run, Some(true))).await?;
    let seen = [&bare, &asking].into_iter().find_map(|reply| match reply {
        Reply::Answered(said) if said.stream.is_some() => Some(said),
        _ => None,
    });
    match seen {
        Some(said) => shape(run, said),
        None => {
            let finding = match &bare {
                Reply::Answered(_) => Finding::seen("stream", "-", "no", "the answer came in one piece")
                    .note("answers arrive in one piece"),
                Reply::Refused(refusal) => {
                    Finding::seen("stream", "-", "no", refusal.words()).note("streams are refused")
                }
                _ => open("stream", "-", &bare),
            };
            run.findings.push(finding);
        }
    }
    run.findings.push(usage_finding(declared, &bare, &asking));
    Ok(())
}

fn streamed(run: &Run<'_, impl ProbeUpstream>, usage: Option<bool>) -> Map<String, Value> {
    let mut body = run.body(bodies::user(bodies::HELLO), 40);
    body.insert("stream".to_owned(), json!(true));
    if let Some(usage) = usage {
        body.insert("stream_options".to_owned(), json!({"include_usage": usage}));
    }
    body
}

/// How the stream came and how it ended.
fn shape(run: &mut Run<'_, impl ProbeUpstream>, said: &ChatReply) {
    let shape = said.stream.unwrap_or_default();
    let evidence = format!("{} chunks, {} of them with text", shape.chunks, shape.speaking);
    let mut finding = Finding::seen("stream", "-", "yes", evidence.clone());
    if shape.speaking == 1 && said.usage.is_none_or(|usage| usage.output > 4) && said.text.len() > 20 {
        finding = finding.note("the whole answer comes in one chunk");
    }
    run.findings.push(finding);
    run.findings.push(Finding::seen("chunks", "-", shape.chunks.to_string(), evidence));
    let declared = run.dialect().answer.eof;
    let seen = match (&said.finish, shape.done) {
        (Some(_), true) => "finish reason, [DONE]",
        (Some(_), false) => "finish reason, no [DONE]",
        (None, true) => "[DONE], no finish reason",
        (None, false) => "it just ends",
    };
    let finding = Finding::seen("end of stream", format!("eof: {}", declared.name()), seen, "");
    let bare = said.finish.is_none() && !shape.done && shape.whole;
    run.findings.push(match declared {
        EofTolerance::Never | EofTolerance::ToolCalls if bare => {
            finding.change(Change::new("answer.eof", EofTolerance::Any.name()))
        }
        _ => finding,
    });
}

fn usage_finding(declared: StreamUsage, bare: &Reply, asking: &Reply) -> Finding {
    const FEATURE: &str = "usage in stream";
    let has = |reply: &Reply| match reply {
        Reply::Answered(said) => Some(said.usage.is_some()),
        _ => None,
    };
    let change = |to: StreamUsage, finding: Finding| {
        if to == declared { finding } else { finding.change(Change::new("stream_usage", to.name())) }
    };
    match (has(bare), asking) {
        (Some(_), Reply::Refused(refusal)) => change(
            StreamUsage::Omit,
            Finding::seen(FEATURE, declared.name(), "stream_options refused", refusal.words()),
        ),
        (Some(false), Reply::Answered(said)) if said.usage.is_some() => {
            change(StreamUsage::Request, Finding::seen(FEATURE, declared.name(), "request", "only when asked for"))
        }
        // Both ways work.
        (_, Reply::Answered(said)) if said.usage.is_some() => Finding::seen(FEATURE, declared.name(), "always", ""),
        (Some(false), Reply::Answered(_)) => {
            Finding::seen(FEATURE, declared.name(), "none", "not even when asked for").note("streams have no usage")
        }
        _ => open(FEATURE, declared.name(), asking),
    }
}
