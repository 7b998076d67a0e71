//! Whether thinking can be switched off: as the spec says, by an effort, or in one of the ways that servers have.

use serde_json::{Map, Value};

use super::{open, words};
use crate::ask::ProbeUpstream;
use crate::bodies;
use crate::finding::{Change, Confidence, Finding};
use crate::reply::Reply;
use crate::run::{Abort, Run, members};

const FEATURE: &str = "thinking switch";
const ROOM: u64 = 120;

/// The members by which servers switch thinking off.
const SWITCHES: [&str; 4] = [
    r#"{"thinking":{"type":"disabled"}}"#,
    r#"{"enable_thinking":false}"#,
    r#"{"chat_template_kwargs":{"enable_thinking":false}}"#,
    r#"{"reasoning":{"enabled":false}}"#,
];

/// The declared switch: whether it is taken, and whether it does something. Others, where it does not.
pub(super) async fn run(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    let declared = run.dialect().request.reasoning.off.clone();
    // Some models always think, and the spec says how they do it least.
    let is_least = declared.as_deref().is_some_and(|off| off.contains("adaptive"));
    let name = declared.clone().unwrap_or_else(|| "-".to_owned());
    let mut evidence = Vec::new();
    let mut seen = None;
    if let Some(off) = &declared {
        let reply = run.ask(FEATURE, body(run, bodies::THINK, members(Some(off)))).await?;
        match &reply {
            Reply::Refused(refusal) => seen = Some(("refused", refusal.words())),
            Reply::Answered(said) if is_least => {
                run.known.thinks |= said.thought() > 0;
                run.findings.push(Finding::seen(FEATURE, name, "taken; it thinks as little as it can", ""));
                return Ok(());
            }
            Reply::Answered(said) if said.thought() > 0 => {
                run.known.thinks = true;
                seen = Some(("ignored", "it reasons all the same".to_owned()));
            }
            Reply::Answered(_) if run.known.thinks => {
                run.findings.push(Finding::seen(FEATURE, name, "works", "").sure(Confidence::Likely));
                return Ok(());
            }
            _ => {
                run.findings.push(open(FEATURE, name, &reply));
                return Ok(());
            }
        }
    }
    if !run.known.thinks {
        let finding = match seen {
            Some((seen, why)) => Finding::seen(FEATURE, name, seen, why).note("the declared switch is refused"),
            None => Finding::skipped(FEATURE, name, "the model showed no reasoning"),
        };
        run.findings.push(finding);
        return Ok(());
    }
    evidence.extend(seen.iter().map(|(_, why)| format!("declared: {why}")));
    if declared.is_none() && run.known.quiet_effort == Some(true) {
        run.findings.push(
            Finding::seen(FEATURE, name, "by the effort none", "no thought came with it").sure(Confidence::Likely),
        );
        return Ok(());
    }
    let found = other(run, declared.as_deref(), &mut evidence).await?;
    let evidence = evidence.join("; ");
    run.findings.push(match (found, seen) {
        (Some(switch), _) => {
            let change = Change::new("request.reasoning.off", format!("'{switch}'"));
            Finding::seen(FEATURE, name, switch, evidence).sure(Confidence::Likely).change(change)
        }
        (None, Some((seen, _))) => {
            let note =
                if seen == "refused" { "the declared switch is refused" } else { "thinking cannot be switched off so" };
            Finding::seen(FEATURE, name, seen, evidence).note(note)
        }
        (None, None) => {
            Finding::seen(FEATURE, name, "none found", evidence).note("thinking cannot be switched off in a known way")
        }
    });
    Ok(())
}

fn body(run: &Run<'_, impl ProbeUpstream>, prompt: &str, switch: Map<String, Value>) -> Map<String, Value> {
    let mut body = run.body(bodies::user(prompt), ROOM);
    body.extend(switch);
    body
}

/// A switch that ends the thinking, twice: once may be chance.
async fn other(
    run: &mut Run<'_, impl ProbeUpstream>,
    declared: Option<&str>,
    evidence: &mut Vec<String>,
) -> Result<Option<&'static str>, Abort> {
    let known = declared.map(|declared| members(Some(declared)));
    let is_chat = run.is_chat();
    for switch in SWITCHES.into_iter().filter(|switch| is_chat || switch.starts_with("{\"thinking\"")) {
        let members = members(Some(switch));
        if known.as_ref() == Some(&members) {
            continue;
        }
        let mut quiet = true;
        for prompt in [bodies::THINK, bodies::THINK_MORE] {
            let reply = run.ask("another thinking switch", body(run, prompt, members.clone())).await?;
            quiet = matches!(&reply, Reply::Answered(said) if said.thought() == 0);
            if !quiet {
                let why = if matches!(reply, Reply::Answered(_)) { "it reasons".to_owned() } else { words(&reply) };
                evidence.push(format!("{switch}: {why}"));
                break;
            }
        }
        if quiet {
            evidence.push(format!("{switch}: no thought in 2 of 2 tries"));
            return Ok(Some(switch));
        }
    }
    Ok(None)
}
