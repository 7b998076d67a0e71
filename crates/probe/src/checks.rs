//! The battery: what is asked, in which order, and what the answers mean. One file per concern; each check
//! leaves one or more findings.

mod basics;
mod content;
mod endpoints;
mod formats;
mod history;
mod parameters;
mod reasoning;
mod roles;
mod tools;

use crate::ask::ProbeUpstream;
use crate::finding::Finding;
use crate::reply::Reply;
use crate::run::{Abort, Run, Settings, Spent, Tools};

/// Runs the whole battery.
///
/// # Errors
/// The key, the model or the address is wrong, or the upstream went away: nothing more can be learnt.
pub async fn run(upstream: &mut impl ProbeUpstream, settings: &Settings) -> Result<(Vec<Finding>, Spent), Abort> {
    let mut run = Run::new(upstream, settings);
    let run = &mut run;
    basics::plain(run).await?;
    parameters::sent(run).await?;
    basics::stream(run).await?;
    reasoning::places(run).await?;
    roles::developer(run).await?;
    roles::order(run).await?;
    content::texts(run).await?;
    tools::calls(run).await?;
    if run.known.tools == Tools::Refused {
        tools::skip(run);
    } else {
        tools::choices(run).await?;
        tools::parallel(run).await?;
        tools::stream(run).await?;
        tools::strict(run).await?;
        history::calls(run).await?;
        history::ids(run).await?;
        history::replay(run).await?;
    }
    formats::run(run).await?;
    reasoning::efforts(run).await?;
    reasoning::switch(run).await?;
    parameters::stop(run).await?;
    content::images(run).await?;
    endpoints::errors(run).await?;
    endpoints::responses(run).await?;
    endpoints::overflow(run).await?;
    Ok((std::mem::take(&mut run.findings), run.spent))
}

/// The finding for a reply from which nothing can be learnt.
fn open(feature: &'static str, declared: impl Into<String>, reply: &Reply) -> Finding {
    match reply {
        Reply::Unsent(why) => Finding::skipped(feature, declared, *why),
        Reply::Lost(why) => Finding::unclear(feature, declared, why),
        Reply::Refused(refusal) => Finding::unclear(feature, declared, refusal.words()),
        Reply::Answered(_) => Finding::unclear(feature, declared, "the answer does not tell"),
    }
}

/// Whether a request was taken: None when that cannot be told.
fn taken(reply: &Reply) -> Option<bool> {
    match reply {
        Reply::Answered(_) => Some(true),
        Reply::Refused(_) => Some(false),
        Reply::Lost(_) | Reply::Unsent(_) => None,
    }
}

/// What the upstream said to it, for the report.
fn words(reply: &Reply) -> String {
    match reply {
        Reply::Answered(said) if !said.calls.is_empty() => "it called the tool".to_owned(),
        Reply::Answered(said) => format!("it answered \"{}\"", crate::reply::clip(said.answer(), 60)),
        Reply::Refused(refusal) => refusal.words(),
        Reply::Lost(why) => why.clone(),
        Reply::Unsent(why) => (*why).to_owned(),
    }
}
