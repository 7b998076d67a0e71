//! Options: stop strings, and parameters that some servers refuse.

use bridge::{Dialect, Parameter};
use serde_json::{Map, Value, json};

use super::{open, words};
use crate::ask::ProbeUpstream;
use crate::bodies;
use crate::finding::{Change, Finding};
use crate::reply::Reply;
use crate::run::{Abort, Run};

/// The spec's list with these parameters more.
pub(super) fn drop(dialect: &Dialect, more: &[Parameter]) -> Change {
    let new = more.iter().filter(|parameter| !dialect.drops(**parameter));
    Change::list("drop", dialect.drop.iter().chain(new).map(|parameter| parameter.name()))
}

/// A string that ends the answer: a letter without which no sentence is said.
const STOP: &str = "e";

pub(super) async fn stop(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "stop";
    let dropped = run.dialect().drops(Parameter::Stop);
    let declared = if dropped { "dropped" } else { "sent" };
    let mut body = run.body(bodies::user(bodies::HELLO), 24);
    body.insert("stop".to_owned(), json!([STOP]));
    let reply = run.ask(FEATURE, body).await?;
    run.findings.push(match &reply {
        Reply::Refused(refusal) => {
            let finding = Finding::seen(FEATURE, declared, "refused", refusal.words());
            if dropped { finding } else { finding.change(drop(run.dialect(), &[Parameter::Stop])) }
        }
        // What was stopped there was a thought.
        Reply::Answered(said) if said.answer().is_empty() && run.known.thinks => open(FEATURE, declared, &reply),
        Reply::Answered(said) => match said.answer().split_once(STOP) {
            // A whole sentence that had no such letter.
            None if said.answer().ends_with(['.', '!', '?']) => Finding::unclear(FEATURE, declared, words(&reply)),
            None => Finding::seen(FEATURE, declared, "yes", words(&reply)),
            Some((_, "")) => Finding::seen(FEATURE, declared, "left in the text", words(&reply))
                .note("the stop string stays in the text"),
            Some(_) => Finding::seen(FEATURE, declared, "ignored", words(&reply)).note("stop strings have no effect"),
        },
        _ => open(FEATURE, declared, &reply),
    });
    Ok(())
}

/// Those of which a Messages API knows.
const OF_MESSAGES: [Parameter; 4] = [Parameter::Temperature, Parameter::TopP, Parameter::ServiceTier, Parameter::User];

/// A harmless value of each parameter, as godex would send it; null for those that have checks of their own.
fn sample(parameter: Parameter) -> Value {
    match parameter {
        Parameter::Temperature => json!({"temperature": 0.7}),
        Parameter::TopP => json!({"top_p": 0.9}),
        Parameter::PresencePenalty => json!({"presence_penalty": 0.1}),
        Parameter::FrequencyPenalty => json!({"frequency_penalty": 0.1}),
        Parameter::TopLogprobs => json!({"logprobs": true, "top_logprobs": 1}),
        Parameter::Verbosity => json!({"verbosity": "low"}),
        Parameter::ServiceTier => json!({"service_tier": "auto"}),
        Parameter::Metadata => json!({"metadata": {"purpose": "probe"}}),
        Parameter::SafetyIdentifier => json!({"safety_identifier": "probe"}),
        Parameter::PromptCacheKey => json!({"prompt_cache_key": "probe"}),
        Parameter::User => json!({"user": "probe"}),
        _ => Value::Null,
    }
}

fn with(run: &Run<'_, impl ProbeUpstream>, parameters: &[Parameter]) -> Map<String, Value> {
    let mut body = run.body(bodies::user(bodies::HELLO), 8);
    for parameter in parameters {
        if let Value::Object(members) = sample(*parameter) {
            body.extend(members);
        }
    }
    body
}

/// All parameters that the spec sends, at once; one by one when that is refused.
pub(super) async fn sent(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    let dialect = run.dialect();
    let is_chat = run.is_chat();
    let known = |parameter: &&Parameter| !sample(**parameter).is_null() && (is_chat || OF_MESSAGES.contains(parameter));
    let (kept, declared): (Vec<Parameter>, Vec<Parameter>) =
        Parameter::ALL.iter().filter(known).copied().partition(|parameter| !dialect.drops(*parameter));
    let names = |list: &[Parameter]| list.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ");
    let (refused, evidence) = match refused(run, "parameters that are sent", &kept).await? {
        Ok(found) => found,
        Err(finding) => {
            run.findings.push(*finding);
            return Ok(());
        }
    };
    run.known.temperature = kept.contains(&Parameter::Temperature) && !refused.contains(&Parameter::Temperature);
    let finding = match refused.as_slice() {
        [] => Finding::seen("parameters sent", format!("{} kinds", kept.len()), "all taken", ""),
        refused => Finding::seen(
            "parameters sent",
            format!("{} kinds", kept.len()),
            format!("refused: {}", names(refused)),
            evidence,
        )
        .change(drop(dialect, refused)),
    };
    run.findings.push(finding);
    if declared.is_empty() {
        return Ok(());
    }
    let reply = run.ask("parameters that are dropped", with(run, &declared)).await?;
    // Taken is not obeyed: most servers leave out what they do not know. So this never changes the spec.
    run.findings.push(match &reply {
        Reply::Answered(_) => Finding::seen("parameters dropped", names(&declared), "taken or ignored", ""),
        Reply::Refused(refusal) => Finding::seen("parameters dropped", names(&declared), "refused", refusal.words()),
        _ => open("parameters dropped", names(&declared), &reply),
    });
    Ok(())
}

/// Which of these are refused, and in what words; a finding when that cannot be told.
async fn refused(
    run: &mut Run<'_, impl ProbeUpstream>,
    about: &'static str,
    all: &[Parameter],
) -> Result<Result<(Vec<Parameter>, String), Box<Finding>>, Abort> {
    let together = run.ask(about, with(run, all)).await?;
    match &together {
        Reply::Answered(_) => return Ok(Ok((Vec::new(), String::new()))),
        Reply::Refused(_) => {}
        _ => return Ok(Err(Box::new(open("parameters sent", "-", &together)))),
    }
    let (mut found, mut evidence) = (Vec::new(), Vec::new());
    for parameter in all {
        let reply = run.ask(about, with(run, &[*parameter])).await?;
        if let Reply::Refused(refusal) = &reply {
            found.push(*parameter);
            evidence.push(format!("{}: {}", parameter.name(), refusal.words()));
        }
    }
    Ok(Ok((found, evidence.join("; "))))
}
