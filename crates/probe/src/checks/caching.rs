//! Prompt caching: whether a long prefix that comes again is read from a cache, and which members about it are taken.

use bridge::Parameter;
use serde_json::{Map, Value, json};

use super::{open, words};
use crate::ask::ProbeUpstream;
use crate::bodies;
use crate::finding::{Confidence, Finding};
use crate::reply::{Reply, Usage};
use crate::run::{Abort, Run};

pub(super) async fn run(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    prefix(run).await?;
    key(run).await?;
    marks(run).await
}

/// The same long instructions, and another question each time.
fn body(run: &Run<'_, impl ProbeUpstream>, question: &str) -> Map<String, Value> {
    let instructions = json!({"role": "system", "content": bodies::long_prefix()});
    run.body(json!([instructions, {"role": "user", "content": question}]), 8)
}

async fn prefix(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "cached prefix";
    let first = run.ask(FEATURE, body(run, bodies::HELLO)).await?;
    if !matches!(first, Reply::Answered(_)) {
        run.findings.push(open(FEATURE, "-", &first));
        return Ok(());
    }
    let mut best = None;
    let mut last = first;
    // Some caches need a moment, and some are one of several machines'.
    for question in bodies::SMALL_TALK.into_iter().skip(1) {
        last = run.ask(FEATURE, body(run, question)).await?;
        best = usage(&last).filter(|usage| usage.cached > Some(0));
        if best.is_some() || !matches!(last, Reply::Answered(_)) {
            break;
        }
    }
    run.findings.push(match (best, usage(&last)) {
        (Some(usage), _) => {
            let evidence = format!("{} of {} tokens", usage.cached.unwrap_or(0), usage.input);
            Finding::seen(FEATURE, "-", "reported", evidence)
        }
        (None, Some(usage)) => {
            let said = if usage.cached.is_some() { "0 tokens, each time" } else { "answers do not speak of it" };
            Finding::seen(FEATURE, "-", "not reported", said).sure(Confidence::Weak)
        }
        _ => open(FEATURE, "-", &last),
    });
    Ok(())
}

fn usage(reply: &Reply) -> Option<Usage> {
    if let Reply::Answered(said) = reply { said.usage } else { None }
}

/// The member that keeps requests with one prefix together.
async fn key(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    let dialect = run.dialect();
    let field = dialect.request.options.cache_key_field.name();
    let dropped = dialect.drops(Parameter::PromptCacheKey);
    let declared = if dropped { "dropped" } else { "sent" };
    let mut body = run.body(bodies::user(bodies::HELLO), 8);
    body.insert(field.to_owned(), json!("godex-probe"));
    let reply = run.ask("prompt_cache_key", body).await?;
    run.findings.push(match &reply {
        // Most servers leave out what they do not know, so this never changes a spec that drops it.
        Reply::Answered(_) => Finding::seen("prompt_cache_key", declared, "taken or ignored", field),
        Reply::Refused(refusal) => {
            let finding = Finding::seen("prompt_cache_key", declared, "refused", refusal.words());
            if dropped {
                finding
            } else {
                finding.change(super::parameters::drop(dialect, &[Parameter::PromptCacheKey]))
            }
        }
        _ => open("prompt_cache_key", declared, &reply),
    });
    Ok(())
}

/// Marks at the end of what is to be cached, as some gateways want them.
async fn marks(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "cache_control marks";
    let part = json!({"type": "text", "text": bodies::HELLO, "cache_control": {"type": "ephemeral"}});
    let reply = run.ask(FEATURE, run.body(json!([{"role": "user", "content": [part]}]), 8)).await?;
    run.findings.push(match &reply {
        Reply::Answered(_) => Finding::seen(FEATURE, "-", "taken or ignored", ""),
        Reply::Refused(_) => Finding::seen(FEATURE, "-", "refused", words(&reply)),
        _ => open(FEATURE, "-", &reply),
    });
    Ok(())
}
