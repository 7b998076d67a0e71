//! What the provider's own list says of the model: nothing is tried for it, so what another check has seen counts more.

use bridge::{Effort, EffortField, ImageInput};

use super::{efforts, media, open, tools};
use crate::ask::{Endpoint, ProbeUpstream, Request};
use crate::finding::{Change, Confidence, Finding, Observed};
use crate::listing::{self, ListedModel, Said};
use crate::reply::Reply;
use crate::run::{Abort, Run};

const FEATURE: &str = "list of models";

pub(super) async fn run(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    let model = run.settings.model.clone();
    let request = Request { about: FEATURE, endpoint: Endpoint::Models, model, body: Vec::new(), stream: false };
    let reply = run.send(request).await?;
    let said = match &reply {
        Reply::Answered(said) => listing::find(&said.message, &run.settings.discovery, &run.settings.model),
        Reply::Refused(refusal) => {
            run.findings.push(Finding::seen(FEATURE, "-", "none", refusal.words()));
            return Ok(());
        }
        Reply::Lost(_) | Reply::Unsent(_) => {
            run.findings.push(open(FEATURE, "-", &reply));
            return Ok(());
        }
    };
    let Some(said) = said else {
        run.findings.push(Finding::seen(FEATURE, "-", "does not name the model", ""));
        return Ok(());
    };
    run.findings.push(Finding::seen(FEATURE, "-", "names the model", ""));
    let ListedModel { context_window, images, efforts, tools } = said;
    let found = [
        context_window.map(|said| window(run, &said)),
        images.map(|said| sees(run, &said)),
        efforts.map(|said| takes(run, &said)),
        tools.map(|said| calls(run, &said)),
    ];
    run.findings.extend(found.into_iter().flatten().map(|finding| finding.sure(Confidence::Listed)));
    Ok(())
}

fn window(run: &Run<'_, impl ProbeUpstream>, said: &Said<u64>) -> Finding {
    let declared = run.settings.context_window;
    let text = said.value.to_string();
    let shown = declared.map_or_else(|| "-".to_owned(), |tokens| tokens.to_string());
    let finding = Finding::seen("listed context window", shown, &text, evidence(said, &text));
    if declared == Some(said.value) { finding } else { finding.change(Change::new("context_window", text)) }
}

fn sees(run: &Run<'_, impl ProbeUpstream>, said: &Said<bool>) -> Finding {
    let declared = run.dialect().request.content.images;
    let (text, instead) = if said.value { ("yes", ImageInput::Data) } else { ("no", ImageInput::None) };
    let finding = Finding::seen("listed images", declared.name(), text, evidence(said, text));
    let agrees = said.value == (declared != ImageInput::None);
    if agrees || is_decided(run, media::IMAGES) {
        return finding;
    }
    finding.change(Change::new("request.content.images", instead.name()))
}

fn takes(run: &Run<'_, impl ProbeUpstream>, said: &Said<Vec<Effort>>) -> Finding {
    let dialect = run.dialect();
    let rules = &dialect.request.reasoning;
    let names: Vec<&str> = said.value.iter().map(|effort| effort.name()).collect();
    let text = names.join(", ");
    let finding = Finding::seen("listed efforts", efforts::declared(dialect), &text, evidence(said, &text));
    let by_words = match rules.effort {
        EffortField::Native | EffortField::Object => !efforts::is_silent(dialect),
        EffortField::None | EffortField::Members => false,
    };
    let is_sent = |name: &str| rules.ladder.is_empty() || rules.ladder.iter().any(|(_, word)| word == name);
    let agrees = Effort::ALL.iter().all(|effort| is_sent(effort.name()) == said.value.contains(effort));
    if agrees || !by_words || is_decided(run, efforts::FEATURE) {
        return finding;
    }
    let steps = names.iter().map(|name| format!("{name}: {name}")).collect::<Vec<_>>().join(", ");
    finding.change(Change::new("request.reasoning.ladder", format!("{{{steps}}}")))
}

fn calls(run: &Run<'_, impl ProbeUpstream>, said: &Said<bool>) -> Finding {
    let text = if said.value { "yes" } else { "no" };
    let finding = Finding::seen("listed tools", "-", text, evidence(said, text));
    let is_note = !said.value && !is_decided(run, tools::TOOLS);
    if is_note { finding.note("the list names no tools among what it takes; agents need them") } else { finding }
}

fn evidence<T>(said: &Said<T>, text: &str) -> String {
    format!("{} in its list: {text}", said.at)
}

/// Whether another check has seen it.
fn is_decided(run: &Run<'_, impl ProbeUpstream>, feature: &str) -> bool {
    run.findings.iter().any(|finding| finding.feature == feature && matches!(finding.observed, Observed::Seen(_)))
}
