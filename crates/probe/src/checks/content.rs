//! What a message may hold: lists of parts, nothing, pictures.

use bridge::{EmptyText, ImageInput};
use serde_json::json;

use super::{open, words};
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

/// A picture inside the request. Addresses are not tried: the provider would have to fetch one.
pub(super) async fn images(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "images";
    let declared = run.dialect().request.content.images;
    let reply = run.ask(FEATURE, run.body(bodies::picture(), 24)).await?;
    run.findings.push(match &reply {
        Reply::Answered(said) if names_the_colour(said.answer()) => {
            let finding = Finding::seen(FEATURE, declared.name(), "data", words(&reply));
            match declared {
                ImageInput::None => finding.change(Change::new("request.content.images", ImageInput::Data.name())),
                ImageInput::Data | ImageInput::All => finding,
            }
        }
        // Some servers leave out what they do not know.
        Reply::Answered(_) => Finding::unclear(FEATURE, declared.name(), format!("taken, but {}", words(&reply))),
        Reply::Refused(refusal) => {
            let finding = Finding::seen(FEATURE, declared.name(), "none", refusal.words());
            match declared {
                ImageInput::None => finding,
                ImageInput::Data | ImageInput::All => {
                    finding.change(Change::new("request.content.images", ImageInput::None.name()))
                }
            }
        }
        _ => open(FEATURE, declared.name(), &reply),
    });
    Ok(())
}

/// As a word: much else is rendered, required and covered.
fn names_the_colour(answer: &str) -> bool {
    answer.split(|c: char| !c.is_alphanumeric()).any(|word| word.eq_ignore_ascii_case("red"))
}
