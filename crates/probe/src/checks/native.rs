//! What is asked in another way where the provider is asked by its own Messages or Responses API: whether it answers, how
//! it streams, a turn with a tool, what of a prompt it caches.

use bridge::BlockCache;
use providers::Wire;
use serde_json::{Map, Value, json};

use super::messages::{Native, verdict};
use super::{open, tools, words};
use crate::ask::ProbeUpstream;
use crate::bodies;
use crate::finding::{Change, Confidence, Finding};
use crate::reply::{Reply, Usage, clip};
use crate::run::{Abort, Run};
use crate::wires;

/// The least limit that all of them take, and the most that still counts as keeping it.
const LIMIT: u64 = 16;
const SLACK: u64 = 8;

/// The first request, with a limit. Everything else needs this to work.
pub(super) async fn plain(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    let wire = run.settings.wire;
    let said = match run.ask("limit", run.body(bodies::user(bodies::COUNT), LIMIT)).await? {
        Reply::Answered(said) => said,
        Reply::Refused(refusal) => return Err(Abort::Refused(refusal.words(), wires::api(wire))),
        Reply::Lost(why) => return Err(Abort::Unreadable(why)),
        Reply::Unsent(why) => return Err(Abort::Unreadable(why.to_owned())),
    };
    run.known.thinks = !said.reasoning_places().is_empty() || said.usage.is_some_and(|u| u.reasoning > Some(0));
    let answer = format!("it answered \"{}\"", clip(&said.text, 60));
    run.findings.push(Finding::seen("plain answer", "-", "yes", answer));
    run.findings.push(Finding::seen("usage", "-", said.usage.map_or("none", |_| "yes"), ""));
    let name = if wire == Wire::Responses { "max_output_tokens" } else { "max_tokens" };
    let output = said.usage.map_or(0, |usage| usage.output);
    run.findings.push(if said.is_cut() {
        Finding::seen("limit field", name, name, "kept")
    } else if output > LIMIT + SLACK {
        let evidence = format!("{output} tokens came instead of {LIMIT}");
        Finding::seen("limit field", name, "none", evidence).note("answers cannot be limited")
    } else {
        Finding::unclear("limit field", name, "taken; the answer ended by itself")
    });
    Ok(())
}

/// How it streams and ends, and whether usage comes along.
pub(super) async fn stream(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "stream";
    let mut body = run.body(bodies::user(bodies::HELLO), 40);
    body.insert("stream".to_owned(), json!(true));
    let reply = run.ask(FEATURE, body).await?;
    let (said, shape) = match &reply {
        Reply::Answered(said) => match said.stream {
            Some(shape) => (said, shape),
            None => {
                let finding = Finding::seen(FEATURE, "-", "no", "the answer came in one piece");
                run.findings.push(finding.note("answers arrive in one piece"));
                return Ok(());
            }
        },
        Reply::Refused(refusal) => {
            run.findings.push(Finding::seen(FEATURE, "-", "no", refusal.words()).note("streams are refused"));
            return Ok(());
        }
        _ => {
            run.findings.push(open(FEATURE, "-", &reply));
            return Ok(());
        }
    };
    let evidence = format!("{} events, {} of them with content", shape.chunks, shape.speaking);
    run.findings.push(Finding::seen(FEATURE, "-", "yes", evidence));
    let end = Finding::seen("end of stream", "-", if shape.done { "as the API says" } else { "it just ends" }, "");
    run.findings.push(if shape.done { end } else { end.note("streams do not end as they should") });
    run.findings.push(Finding::seen("usage in stream", "-", said.usage.map_or("none", |_| "yes"), ""));
    Ok(())
}

/// A call, then its result, with all that came with the call as it came, and the answer to that as a stream.
pub(super) async fn turn(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "native /messages";
    let mut body = tools::body(run, tools::call_prompt(run), None);
    body.extend(run.thinking_on());
    let first = run.ask(FEATURE, body.clone()).await?;
    let Reply::Answered(said) = &first else {
        run.findings.push(verdict(FEATURE, &first, "", None));
        return Ok(());
    };
    let mut seen = Native { calls: !said.calls.is_empty(), ..Native::default() };
    if let (Some(call), Some(Value::Array(messages))) = (said.calls.first(), body.get_mut("messages")) {
        messages.push(said.message.clone());
        let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "18 degrees and sunny"});
        messages.extend(said.calls.iter().map(|call| result(&call.id)));
        seen.remarks.push(format!("it called {}", call.name));
        body.insert("stream".to_owned(), json!(true));
        let second = run.ask(FEATURE, body).await?;
        seen.took_result = matches!(second, Reply::Answered(_));
        match &second {
            Reply::Answered(said) => seen.streams = said.stream.is_some_and(|shape| shape.done),
            _ => seen.remarks.push(format!("the result of the call: {}", words(&second))),
        }
    } else {
        seen.remarks.push(words(&first));
    }
    run.findings.push(verdict(FEATURE, &first, "", Some(&seen)));
    Ok(())
}

/// The same long instructions each time: as the spec has it, and with marks where it has none and nothing is cached.
pub(super) async fn caching(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "cached prefix";
    let declared = run.dialect().request.blocks.cache;
    let first = repeated(run, FEATURE, declared).await?;
    let (Reply::Answered(_), None) = (&first.last, first.usage) else {
        let finding = match (first.usage, &first.last) {
            (Some(usage), _) => Finding::seen(FEATURE, declared.name(), "reported", share(usage)),
            (None, last) => open(FEATURE, declared.name(), last),
        };
        run.findings.push(finding);
        return Ok(());
    };
    let unseen = "0 tokens, each time";
    if declared != BlockCache::Off {
        run.findings.push(Finding::seen(FEATURE, declared.name(), "not reported", unseen).sure(Confidence::Weak));
        return Ok(());
    }
    let marked = repeated(run, "cached prefix with marks", BlockCache::Marks).await?;
    run.findings.push(match (marked.usage, &marked.last) {
        (Some(usage), _) => {
            let change = Change::new("request.blocks.cache", BlockCache::Marks.name());
            let evidence = format!("with cache_control: {}", share(usage));
            Finding::seen(FEATURE, declared.name(), BlockCache::Marks.name(), evidence).change(change)
        }
        (None, Reply::Refused(refusal)) => {
            let evidence = format!("{unseen}; cache_control: {}", refusal.words());
            Finding::seen(FEATURE, declared.name(), "not reported", evidence).sure(Confidence::Weak)
        }
        (None, Reply::Answered(_)) => {
            let evidence = format!("{unseen}, also with cache_control");
            Finding::seen(FEATURE, declared.name(), "not reported", evidence).sure(Confidence::Weak)
        }
        (None, last) => open(FEATURE, declared.name(), last),
    });
    Ok(())
}

fn share(usage: Usage) -> String {
    format!("{} of {} tokens", usage.cached.unwrap_or(0), usage.input)
}

/// What came of a prompt that was sent again.
struct Repeated {
    /// Where some of it was read from a cache.
    usage: Option<Usage>,
    last: Reply,
}

async fn repeated(
    run: &mut Run<'_, impl ProbeUpstream>,
    about: &'static str,
    cache: BlockCache,
) -> Result<Repeated, Abort> {
    let mut last = run.ask(about, body(run, bodies::HELLO, cache)).await?;
    // Some caches need a moment, and some are one of several machines'.
    for _ in 0..2 {
        if !matches!(last, Reply::Answered(_)) {
            break;
        }
        last = run.ask(about, body(run, bodies::HELLO, cache)).await?;
        if let Some(usage) = cached(&last) {
            return Ok(Repeated { usage: Some(usage), last });
        }
    }
    Ok(Repeated { usage: None, last })
}

fn cached(reply: &Reply) -> Option<Usage> {
    let Reply::Answered(said) = reply else { return None };
    said.usage.filter(|usage| usage.cached > Some(0))
}

fn body(run: &Run<'_, impl ProbeUpstream>, question: &str, cache: BlockCache) -> Map<String, Value> {
    let mark = json!({"type": "ephemeral"});
    let mut prefix = json!({"type": "text", "text": bodies::longer_prefix()});
    if cache == BlockCache::Marks {
        prefix["cache_control"] = mark.clone();
    }
    let messages = json!([{"role": "system", "content": [prefix]}, {"role": "user", "content": question}]);
    let mut body = run.body(messages, 8);
    if cache == BlockCache::Automatic {
        body.insert("cache_control".to_owned(), mark);
    }
    body
}
