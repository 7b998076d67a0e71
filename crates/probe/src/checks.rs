//! The battery: what is asked, in which order, and what the answers mean. One file per concern; each check
//! leaves one or more findings.

mod basics;
mod caching;
mod choices;
mod content;
mod efforts;
mod endpoints;
mod formats;
mod history;
mod listed;
mod media;
mod messages;
mod native;
mod parameters;
mod reasoning;
mod replay;
mod responses;
mod roles;
mod thinking;
mod tools;

use providers::Wire;
use serde_json::json;

use crate::ask::ProbeUpstream;
use crate::finding::Finding;
use crate::reply::Reply;
use crate::run::{Abort, Cost, Probed, Run, Settings, Tools};
use crate::wires;

bridge::vocabulary! {
    /// One concern of the battery, with requests of its own.
    pub enum Check {
        /// Whether it answers, and what limits an answer; always run.
        Plain = "plain",
        /// Parameters that are sent, and those that are dropped.
        Parameters = "parameters",
        /// How it streams, and whether usage comes along.
        Stream = "stream",
        /// Where reasoning is in answers.
        Reasoning = "reasoning",
        /// Roles, and in which order messages may come.
        Roles = "roles",
        /// Text as a list of parts, and no text at all.
        Texts = "texts",
        /// Whether it calls.
        Tools = "tools",
        /// Every form of `tool_choice`, several times.
        Choices = "choices",
        /// Several calls in one answer, and whether that can be switched off.
        Parallel = "parallel",
        /// In which pieces calls stream, and `strict`.
        Calls = "calls",
        /// How a call is written into the history, with which ids.
        History = "history",
        /// Which reasoning must, may and must not come back.
        Replay = "replay",
        /// `json_object`, `json_schema`, and beside what they work.
        Formats = "formats",
        /// Which efforts are taken, and what they change.
        Efforts = "efforts",
        /// Whether thinking can be switched off.
        Thinking = "thinking",
        /// Strings that end an answer.
        Stop = "stop",
        /// Kinds of pictures, also in results of tools.
        Images = "images",
        /// PDF and text as files.
        Files = "files",
        /// Whether a repeated prefix is cached, `prompt_cache_key`, `cache_control`.
        Caching = "caching",
        /// What mistakes are answered with.
        Errors = "errors",
        /// The provider's own `POST /responses`: a turn with a tool.
        Responses = "responses",
        /// Its own `POST /messages`: the same.
        Messages = "messages",
        /// What its own list of models says of this one.
        Listed = "listed",
        /// An input that is far too long, where that is allowed.
        Overflow = "overflow",
    }
}

impl Check {
    /// What must have run before: what it learnt is used.
    pub(crate) const fn needs(self) -> &'static [Self] {
        match self {
            Self::Choices | Self::Parallel => &[Self::Parameters, Self::Tools],
            Self::Calls => &[Self::Tools, Self::Choices],
            Self::Replay | Self::Images => &[Self::Reasoning, Self::Tools, Self::History],
            Self::Efforts | Self::Thinking => &[Self::Reasoning],
            Self::Formats | Self::History | Self::Responses | Self::Messages => &[Self::Tools],
            _ => &[],
        }
    }

    /// Whether there is nothing to ask where tools are refused.
    const fn is_about_tools(self) -> bool {
        matches!(self, Self::Choices | Self::Parallel | Self::Calls | Self::History | Self::Replay)
    }
}

/// Runs the battery, or those checks of it that the settings name. One that ends early has what was found until then,
/// and says of the rest that it was not tried.
///
/// # Errors
/// The key, the model or the address is wrong: nothing can be learnt.
pub async fn run(upstream: &mut impl ProbeUpstream, settings: &Settings) -> Result<Probed, Abort> {
    run_in(upstream, settings, settings.wire).await
}

/// The same with all questions in another API's words.
pub(crate) async fn run_in(
    upstream: &mut impl ProbeUpstream,
    settings: &Settings,
    speaks: Wire,
) -> Result<Probed, Abort> {
    let mut run = Run::new(upstream, settings, speaks);
    let wanted = Check::ALL.iter().copied().filter(|check| settings.wants(*check));
    let (asked, not_asked): (Vec<Check>, Vec<Check>) = wanted.partition(|check| wires::asks(settings.wire, *check));
    let mut probed = Probed { not_asked, ..Probed::default() };
    for check in asked {
        if probed.ended.is_some() {
            run.findings.push(Finding { check, ..Finding::skipped(check.name(), "-", "the probe ended before") });
            continue;
        }
        let (before, first) = (run.spent, run.findings.len());
        let result = one(&mut run, check).await;
        let (spent, used) = (run.spent, |spent: crate::run::Spent| spent.input_tokens + spent.output_tokens);
        let (requests, tokens) = (spent.requests - before.requests, used(spent) - used(before));
        probed.costs.push(Cost { check, requests, tokens });
        for finding in run.findings.iter_mut().skip(first) {
            finding.check = check;
        }
        match result {
            Err(abort) if check == Check::Plain => return Err(abort),
            Err(abort) => {
                run.findings.push(Finding { check, ..Finding::unclear(check.name(), "-", abort.to_string()) });
                probed.ended = Some(abort);
            }
            Ok(()) => {}
        }
    }
    Ok(Probed { findings: std::mem::take(&mut run.findings), spent: run.spent, ..probed })
}

async fn one(run: &mut Run<'_, impl ProbeUpstream>, check: Check) -> Result<(), Abort> {
    if check.is_about_tools() && run.known.tools == Tools::Refused {
        run.findings.push(Finding::skipped(check.name(), "-", "tools are refused"));
        return Ok(());
    }
    match check {
        Check::Plain if !run.is_chat() => native::plain(run).await,
        Check::Plain => basics::plain(run).await,
        Check::Parameters => parameters::sent(run).await,
        Check::Stream if !run.is_chat() => native::stream(run).await,
        Check::Stream => basics::stream(run).await,
        Check::Reasoning => reasoning::places(run).await,
        Check::Roles => roles::run(run).await,
        Check::Texts => content::texts(run).await,
        Check::Tools => tools::calls(run).await,
        Check::Choices => choices::run(run).await,
        Check::Parallel => tools::parallel(run).await,
        Check::Calls => tools::form(run).await,
        Check::History => history::run(run).await,
        Check::Replay => replay::run(run).await,
        Check::Formats => formats::run(run).await,
        Check::Efforts => efforts::run(run).await,
        Check::Thinking => thinking::run(run).await,
        Check::Stop => parameters::stop(run).await,
        Check::Images => media::images(run).await,
        Check::Files => media::files(run).await,
        Check::Caching if !run.is_chat() => native::caching(run).await,
        Check::Caching => caching::run(run).await,
        Check::Errors => endpoints::errors(run).await,
        Check::Responses => responses::run(run).await,
        Check::Messages if !run.is_chat() => native::turn(run).await,
        Check::Messages => messages::run(run).await,
        Check::Listed => listed::run(run).await,
        Check::Overflow => endpoints::overflow(run).await,
    }
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

/// Whether a history with a plain turn is taken: where even that is refused, it says nothing about what else is in one.
async fn takes_histories(run: &mut Run<'_, impl ProbeUpstream>) -> Result<bool, Abort> {
    if run.known.histories.is_none() {
        let history = json!([
            {"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello!"},
            {"role": "user", "content": crate::bodies::HELLO},
        ]);
        let reply = run.ask("a plain history", run.body(history, 24)).await?;
        run.known.histories = taken(&reply);
    }
    Ok(run.known.histories == Some(true))
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

/// Who said the same: `none, minimal: 400: bad effort; max: 400: too much`.
fn said_by<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let mut groups: Vec<(Vec<&str>, String)> = Vec::new();
    for (name, words) in pairs {
        match groups.iter_mut().find(|(_, known)| *known == words) {
            Some((names, _)) => names.push(name),
            None => groups.push((vec![name], words)),
        }
    }
    groups.iter().map(|(names, words)| format!("{}: {words}", names.join(", "))).collect::<Vec<_>>().join("; ")
}
