//! Roles, and in which order messages may come.

use bridge::{AfterTool, DeveloperRole, LateSystem, Turns};
use serde_json::json;

use super::{open, taken, takes_histories, words};
use crate::ask::ProbeUpstream;
use crate::bodies;
use crate::finding::{Change, Finding};
use crate::reply::Reply;
use crate::run::{Abort, Run};

const LATE: &str = "late system message";

/// What becomes of an instruction under a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Obeyed,
    /// Taken, and not followed: small models do that, too.
    Taken,
    Refused,
    Unknown,
}

pub(super) async fn run(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    if !run.is_chat() {
        return late(run).await;
    }
    developer(run).await?;
    order(run).await
}

/// A Messages API has no role but the system's, and merges users; the system may speak late, before the assistant.
async fn late(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    let declared = run.dialect().request.messages.late_system;
    let messages = json!([
        {"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": bodies::HELLO}, {"role": "system", "content": "Be brief."},
    ]);
    let reply = run.ask(LATE, run.body(messages, 24)).await?;
    if taken(&reply) == Some(false) && !takes_histories(run).await? {
        run.findings.push(open(LATE, declared.name(), &reply));
        return Ok(());
    }
    let change = Change::new("request.messages.late_system", LateSystem::User.name());
    run.findings.push(order_finding(LATE, declared.name(), &reply, declared == LateSystem::Keep, change));
    Ok(())
}

async fn developer(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "developer role";
    let declared = run.dialect().developer_role;
    let reply = run.ask("system role", run.body(bodies::instructed("system"), 24)).await?;
    let system = role(&reply);
    let mut evidence = format!("system: {}", words(&reply));
    let reply = run.ask("developer role", run.body(bodies::instructed("developer"), 24)).await?;
    let developer = role(&reply);
    evidence = format!("{evidence}; developer: {}", words(&reply));
    let seen = format!("developer {}, system {}", name(developer), name(system));
    let finding = Finding::seen(FEATURE, declared.name(), seen, evidence.clone());
    run.findings.push(match (developer, system) {
        (Role::Unknown, _) | (_, Role::Unknown) => open(FEATURE, declared.name(), &reply),
        _ if holds(declared, developer, system) => finding,
        _ => match best(developer, system) {
            Some(better) => finding.change(Change::new("developer_role", better.name())),
            None => Finding::unclear(FEATURE, declared.name(), evidence),
        },
    });
    Ok(())
}

fn role(reply: &Reply) -> Role {
    match reply {
        Reply::Answered(said) if said.answer().to_uppercase().contains(bodies::MARKER) => Role::Obeyed,
        Reply::Answered(_) => Role::Taken,
        Reply::Refused(_) => Role::Refused,
        Reply::Lost(_) | Reply::Unsent(_) => Role::Unknown,
    }
}

fn name(role: Role) -> &'static str {
    match role {
        Role::Obeyed => "obeyed",
        Role::Taken => "taken",
        Role::Refused => "refused",
        Role::Unknown => "unclear",
    }
}

/// Whether nothing speaks against what is declared.
fn holds(declared: DeveloperRole, developer: Role, system: Role) -> bool {
    match declared {
        DeveloperRole::Developer => developer == Role::Obeyed || (developer == Role::Taken && system != Role::Obeyed),
        DeveloperRole::System => system == Role::Obeyed || (system == Role::Taken && developer != Role::Obeyed),
        DeveloperRole::User => true,
    }
}

fn best(developer: Role, system: Role) -> Option<DeveloperRole> {
    match (developer, system) {
        (_, Role::Obeyed) => Some(DeveloperRole::System),
        (Role::Obeyed, _) => Some(DeveloperRole::Developer),
        (_, Role::Taken) => Some(DeveloperRole::System),
        (Role::Taken, _) => Some(DeveloperRole::Developer),
        (Role::Refused, Role::Refused) => Some(DeveloperRole::User),
        _ => None,
    }
}

/// A system message after the start, two users in a row.
async fn order(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    let rules = &run.dialect().request.messages;
    let (user, assistant) =
        (json!({"role": "user", "content": "Hi."}), json!({"role": "assistant", "content": "Hello!"}));
    let question = json!({"role": "user", "content": bodies::HELLO});
    let late = json!([user, assistant, {"role": "system", "content": "Be brief."}, question]);
    let reply = run.ask(LATE, run.body(late, 24)).await?;
    let change = Change::new("request.messages.late_system", LateSystem::User.name());
    let weak = rules.late_system == LateSystem::Keep;
    if taken(&reply) == Some(false) && !takes_histories(run).await? {
        run.findings.push(open(LATE, rules.late_system.name(), &reply));
    } else {
        run.findings.push(order_finding(LATE, rules.late_system.name(), &reply, weak, change));
    }

    let reply = run.ask("two users in a row", run.body(json!([user, question]), 24)).await?;
    let change = Change::new("request.messages.turns", Turns::Merged.name());
    let weak = rules.turns == Turns::Free;
    run.findings.push(order_finding("two users in a row", rules.turns.name(), &reply, weak, change));
    Ok(())
}

/// `weak`: what is declared relies on it.
fn order_finding(feature: &'static str, declared: &'static str, reply: &Reply, weak: bool, change: Change) -> Finding {
    match taken(reply) {
        None => open(feature, declared, reply),
        Some(true) => Finding::seen(feature, declared, "taken", ""),
        Some(false) => {
            let finding = Finding::seen(feature, declared, "refused", words(reply));
            if weak { finding.change(change) } else { finding }
        }
    }
}

/// What may follow a tool's result; asked by the check of histories, which knows how a call is written.
pub(super) fn after_tool(declared: AfterTool, reply: &Reply) -> Finding {
    let change = Change::new("request.messages.after_tool", AfterTool::Assistant.name());
    order_finding("user after tool", declared.name(), reply, declared == AfterTool::Any, change)
}
