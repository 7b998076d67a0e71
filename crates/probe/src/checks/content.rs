//! Text in a message: as a list of parts, and none at all.

use bridge::EmptyText;
use serde_json::json;

use super::{open, taken, takes_histories};
use crate::ask::ProbeUpstream;
use crate::bodies;
use crate::finding::{Change, Finding};
use crate::reply::Reply;
use crate::run::{Abort, Run};

pub(super) async fn texts(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    let rules = &run.dialect().request.messages;
    let reply = run.ask("content as a list", run.body(bodies::parts(bodies::HELLO), 24)).await?;
    let declared = if rules.text_as_parts { "list" } else { "string" };
    run.findings.push(match &reply {
        Reply::Answered(_) => Finding::seen("content as a list", declared, "taken", ""),
        Reply::Refused(refusal) => {
            let finding = Finding::seen("content as a list", declared, "refused", refusal.words());
            // The plain request was a string, and it was taken.
            if rules.text_as_parts {
                finding.change(Change::new("request.messages.text_as_parts", "false"))
            } else {
                finding
            }
        }
        _ => open("content as a list", declared, &reply),
    });

    let silent = json!([
        {"role": "user", "content": "Hi."}, {"role": "assistant", "content": ""}, {"role": "user", "content": bodies::HELLO},
    ]);
    let reply = run.ask("empty content", run.body(silent, 24)).await?;
    let declared = rules.empty_text;
    if taken(&reply) == Some(false) && !takes_histories(run).await? {
        run.findings.push(open("empty content", declared.name(), &reply));
        return Ok(());
    }
    run.findings.push(match &reply {
        Reply::Answered(_) => Finding::seen("empty content", declared.name(), "taken", ""),
        Reply::Refused(refusal) => {
            let finding = Finding::seen("empty content", declared.name(), "refused", refusal.words());
            match declared {
                EmptyText::Keep => finding.change(Change::new("request.messages.empty_text", EmptyText::Fill.name())),
                EmptyText::Fill => finding,
            }
        }
        _ => open("empty content", declared.name(), &reply),
    });
    Ok(())
}
