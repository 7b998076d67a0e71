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

use crate::ask::Upstream;
use crate::bench::{Abort, Bench, Settings, Spent, Tools};
use crate::finding::Finding;
use crate::reply::Reply;

/// Runs the whole battery.
///
/// # Errors
/// The key, the model or the address is wrong, or the upstream went away: nothing more can be learnt.
pub async fn run(upstream: &mut impl Upstream, settings: &Settings) -> Result<(Vec<Finding>, Spent), Abort> {
    let mut bench = Bench::new(upstream, settings);
    let bench = &mut bench;
    basics::plain(bench).await?;
    parameters::sent(bench).await?;
    basics::stream(bench).await?;
    reasoning::places(bench).await?;
    roles::developer(bench).await?;
    roles::order(bench).await?;
    content::texts(bench).await?;
    tools::calls(bench).await?;
    if bench.known.tools == Tools::Refused {
        tools::skip(bench);
    } else {
        tools::choices(bench).await?;
        tools::parallel(bench).await?;
        tools::stream(bench).await?;
        tools::strict(bench).await?;
        history::calls(bench).await?;
        history::ids(bench).await?;
        history::replay(bench).await?;
    }
    formats::run(bench).await?;
    reasoning::efforts(bench).await?;
    reasoning::switch(bench).await?;
    parameters::stop(bench).await?;
    content::images(bench).await?;
    endpoints::errors(bench).await?;
    endpoints::responses(bench).await?;
    endpoints::overflow(bench).await?;
    Ok((std::mem::take(&mut bench.findings), bench.spent))
}

/// The finding for a reply from which nothing can be learnt.
fn open(feature: &'static str, declared: impl Into<String>, reply: &Reply) -> Finding {
    match reply {
        Reply::Unsent(why) => Finding::skipped(feature, declared, *why),
        Reply::Lost(why) => Finding::unclear(feature, declared, why),
        Reply::Refused(refusal) => Finding::unclear(feature, declared, refusal.words()),
        Reply::Said(_) => Finding::unclear(feature, declared, "the answer does not tell"),
    }
}

/// Whether a request was taken: None when that cannot be told.
fn taken(reply: &Reply) -> Option<bool> {
    match reply {
        Reply::Said(_) => Some(true),
        Reply::Refused(_) => Some(false),
        Reply::Lost(_) | Reply::Unsent(_) => None,
    }
}

/// What the upstream said to it, for the report.
fn words(reply: &Reply) -> String {
    match reply {
        Reply::Said(said) if !said.calls.is_empty() => "it called the tool".to_owned(),
        Reply::Said(said) => format!("it answered \"{}\"", crate::reply::clip(said.answer(), 60)),
        Reply::Refused(refusal) => refusal.words(),
        Reply::Lost(why) => why.clone(),
        Reply::Unsent(why) => (*why).to_owned(),
    }
}
