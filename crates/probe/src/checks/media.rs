//! Pictures and files: which kinds are taken, by which way, and whether the model sees what is in them. The prompts are
//! such that only somebody who has looked can answer.

use bridge::{ImageInput, ToolImages};
use serde_json::{Value, json};

use super::{open, said_by, taken, words};
use crate::ask::ProbeUpstream;
use crate::bodies::{self, PLAIN_ID, media};
use crate::finding::{Change, Confidence, Finding};
use crate::reply::Reply;
use crate::run::{Abort, Run, Tools};

/// Whether it sees pictures at all.
pub(super) const IMAGES: &str = "images";

/// A picture inside the request, in three formats, at an address, and in the result of a tool.
pub(super) async fn images(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = IMAGES;
    let declared = run.dialect().request.content.images;
    let reply = run.ask(FEATURE, run.body(media::picture(media::PNG), 24)).await?;
    let sees = seen_red(&reply);
    run.findings.push(match &reply {
        Reply::Answered(_) if sees => {
            let finding = Finding::seen(FEATURE, declared.name(), "data", words(&reply)).sure(Confidence::Likely);
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
    if !sees {
        return Ok(());
    }
    kinds(run).await?;
    address(run).await?;
    in_results(run).await
}

/// As a word: much else is rendered, required and covered.
fn seen_red(reply: &Reply) -> bool {
    let Reply::Answered(said) = reply else { return false };
    said.answer().split(|c: char| !c.is_alphanumeric()).any(|word| word.eq_ignore_ascii_case("red"))
}

async fn kinds(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "image kinds";
    let (mut good, mut bad) = (vec!["png"], Vec::new());
    for (kind, picture) in [("jpeg", media::JPEG), ("webp", media::WEBP)] {
        let reply = run.ask(FEATURE, run.body(media::picture(picture), 24)).await?;
        if seen_red(&reply) {
            good.push(kind);
        } else {
            bad.push((kind, words(&reply)));
        }
    }
    let finding =
        Finding::seen(FEATURE, "-", good.join(", "), said_by(bad.iter().map(|(kind, why)| (*kind, why.clone()))));
    let lacks: Vec<&str> = bad.iter().map(|(kind, _)| *kind).collect();
    run.findings.push(if lacks.is_empty() {
        finding.sure(Confidence::Likely)
    } else {
        finding.note(format!("not seen: {}", lacks.join(", ")))
    });
    Ok(())
}

/// An address that the operator has named: the provider has to fetch it.
async fn address(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "image addresses";
    let declared = run.dialect().request.content.images;
    let Some(url) = run.settings.image_url.clone() else {
        run.findings.push(Finding::skipped(FEATURE, declared.name(), "no address was named (--image-url)"));
        return Ok(());
    };
    let reply = run.ask(FEATURE, run.body(media::picture(&url), 24)).await?;
    let change = |input: ImageInput| Change::new("request.content.images", input.name());
    run.findings.push(match &reply {
        _ if seen_red(&reply) => {
            let finding = Finding::seen(FEATURE, declared.name(), "all", words(&reply)).sure(Confidence::Likely);
            if declared == ImageInput::All { finding } else { finding.change(change(ImageInput::All)) }
        }
        Reply::Refused(refusal) => {
            let finding = Finding::seen(FEATURE, declared.name(), "refused", refusal.words());
            if declared == ImageInput::All { finding.change(change(ImageInput::Data)) } else { finding }
        }
        Reply::Answered(_) => Finding::unclear(
            FEATURE,
            declared.name(),
            format!("taken, but {}; a picture that is all red can be judged", words(&reply)),
        ),
        _ => open(FEATURE, declared.name(), &reply),
    });
    Ok(())
}

/// A picture in the result of a tool.
async fn in_results(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "images in tool results";
    let declared = run.dialect().request.content.tool_images;
    let Some(absent) = run.known.history.filter(|_| run.known.tools != Tools::Refused) else {
        run.findings.push(Finding::skipped(FEATURE, declared.name(), "no history with calls is taken"));
        return Ok(());
    };
    let mut messages = bodies::history(super::history::call(run, absent, PLAIN_ID), PLAIN_ID);
    if let Some(result) = messages.last_mut() {
        result["content"] = json!([{"type": "text", "text": bodies::LOOK}, media::image(media::PNG)]);
    }
    let body = super::tools::with_tools(run.body(Value::Array(messages), 24), None);
    let reply = run.ask(FEATURE, body).await?;
    run.findings.push(match &reply {
        _ if seen_red(&reply) => {
            let finding = Finding::seen(FEATURE, declared.name(), "native", words(&reply)).sure(Confidence::Likely);
            match declared {
                ToolImages::Native => finding,
                ToolImages::Hoist => {
                    finding.change(Change::new("request.content.tool_images", ToolImages::Native.name()))
                }
            }
        }
        Reply::Refused(refusal) => {
            let finding = Finding::seen(FEATURE, declared.name(), "refused", refusal.words());
            match declared {
                ToolImages::Hoist => finding,
                ToolImages::Native => {
                    finding.change(Change::new("request.content.tool_images", ToolImages::Hoist.name()))
                }
            }
        }
        Reply::Answered(_) => Finding::unclear(FEATURE, declared.name(), format!("taken, but {}", words(&reply))),
        _ => open(FEATURE, declared.name(), &reply),
    });
    Ok(())
}

/// Files as parts. Text goes inline in any case; it is asked for to tell a server that knows files from one that reads
/// PDF only.
pub(super) async fn files(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "PDF files";
    let declared = run.dialect().request.content.files;
    let name = if declared { "true" } else { "false" };
    let pdf = run.ask(FEATURE, run.body(media::pdf(), 24)).await?;
    let change = |files: &str| Change::new("request.content.files", files);
    run.findings.push(match &pdf {
        _ if is_read(&pdf) => {
            let finding = Finding::seen(FEATURE, name, "read", words(&pdf));
            if declared { finding } else { finding.change(change("true")) }
        }
        Reply::Refused(refusal) => {
            let finding = Finding::seen(FEATURE, name, "refused", refusal.words());
            if declared { finding.change(change("false")) } else { finding }
        }
        Reply::Answered(_) => Finding::unclear(FEATURE, name, format!("taken, but {}", words(&pdf))),
        _ => open(FEATURE, name, &pdf),
    });
    let text = run.ask("text files", run.body(media::text_file(), 24)).await?;
    run.findings.push(match taken(&text) {
        _ if is_read(&text) => Finding::seen("text files", "inline", "read", words(&text)),
        Some(false) => Finding::seen("text files", "inline", "refused", words(&text)),
        Some(true) => Finding::unclear("text files", "inline", format!("taken, but {}", words(&text))),
        None => open("text files", "inline", &text),
    });
    Ok(())
}

fn is_read(reply: &Reply) -> bool {
    matches!(reply, Reply::Answered(said) if said.answer().to_uppercase().contains(media::FILE_WORD))
}
