//! Where reasoning is in answers.

use bridge::ThinkTags;
use serde_json::{Map, Value, json};

use super::{open, taken, words};
use crate::ask::ProbeUpstream;
use crate::bodies;
use crate::finding::{Change, Finding};
use crate::reply::Reply;
use crate::run::{Abort, Run};

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
    // Other APIs have a place for it.
    if run.is_chat() {
        run.findings.push(tags(run.dialect().answer.think_tags, &seen));
    }
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
