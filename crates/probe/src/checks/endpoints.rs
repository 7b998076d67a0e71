//! Errors, and an input that cannot fit.

use bridge::{AnswerDialect, Failure, FailureClass};
use serde_json::{Map, Value, json};

use super::{open, words};
use crate::ask::{ProbeUpstream, Request};
use crate::bodies;
use crate::finding::{Change, Finding};
use crate::reply::{Refusal, Reply, clip};
use crate::run::{Abort, Run};

/// What mistakes are answered with.
pub(super) async fn errors(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    let (endpoint, model) = (run.endpoint(), run.settings.model.clone());
    let broken = Request { about: "broken JSON", endpoint, model, body: b"{\"model\": ".to_vec(), stream: false };
    let reply = run.send(broken).await?;
    run.findings.push(error("error: broken JSON", &reply));
    let mut body = run.body(bodies::user(bodies::HELLO), 8);
    body.insert("messages".to_owned(), json!("not a list"));
    let reply = run.ask("wrong type", body).await?;
    run.findings.push(error("error: wrong type", &reply));
    let mut body = run.body(bodies::user(bodies::HELLO), 8);
    body.insert("model".to_owned(), json!("godex-probe-no-such-model"));
    let reply = run.ask("unknown model", body).await?;
    run.findings.push(match &reply {
        Reply::Answered(_) => Finding::seen("error: unknown model", "-", "any name is taken", ""),
        _ => error("error: unknown model", &reply),
    });
    Ok(())
}

fn error(feature: &'static str, reply: &Reply) -> Finding {
    match reply {
        Reply::Refused(refusal) => {
            Finding::seen(feature, "-", format!("{}, {}", refusal.status, shape(&refusal.body)), refusal.words())
        }
        Reply::Answered(_) => {
            Finding::seen(feature, "-", "taken", words(reply)).note("a mistake is answered as if it were none")
        }
        _ => open(feature, "-", reply),
    }
}

/// How an error's body is built.
fn shape(body: &[u8]) -> &'static str {
    match serde_json::from_slice::<Value>(body) {
        Ok(Value::Array(_)) => "a list",
        Ok(value) if value["error"].is_object() => "{error: {…}}",
        Ok(value) if value["error"].is_string() => "{error: text}",
        Ok(value) if !value["detail"].is_null() => "{detail: …}",
        Ok(value) if value["base_resp"].is_object() => "{base_resp: {…}}",
        Ok(_) => "other JSON",
        Err(_) if body.is_empty() => "no body",
        Err(_) => "no JSON",
    }
}

/// An input that is far too long, where the user allows one: what is said about it, and whether we understand.
pub(super) async fn overflow(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    const FEATURE: &str = "context overflow";
    let declared = "recognised";
    if !run.settings.allow_overflow {
        run.findings.push(Finding::skipped(FEATURE, declared, "not allowed (--allow-overflow)"));
        return Ok(());
    }
    let body: Map<String, Value> = run.body(bodies::user(&bodies::endless()), 8);
    let reply = run.ask(FEATURE, body).await?;
    let dialect = &run.dialect().answer;
    run.findings.push(match &reply {
        Reply::Refused(refusal) if refusal.failure.class == FailureClass::ContextOverflow => {
            Finding::seen(FEATURE, declared, "recognised", refusal.words())
        }
        // Its size was the matter, not its tokens.
        Reply::Refused(Refusal { status: 413, .. }) => Finding::unclear(FEATURE, declared, words(&reply)),
        Reply::Refused(refusal) => {
            let finding = Finding::seen(FEATURE, declared, "not recognised", refusal.words());
            match wording(&refusal.failure, dialect) {
                Some(wording) => {
                    let known = dialect.overflow.iter().chain([&wording]).map(|text| json!(text).to_string());
                    let yaml = format!("[{}]", known.collect::<Vec<_>>().join(", "));
                    finding.change(Change::new("answer.overflow", yaml))
                }
                None => finding.note("its words do not tell it from other errors"),
            }
        }
        Reply::Answered(_) => {
            Finding::unclear(FEATURE, declared, "the input was taken: cut silently, or a larger context")
        }
        _ => open(FEATURE, declared, &reply),
    });
    Ok(())
}

/// Words of the message that say what happened, without the numbers in it.
fn wording(failure: &Failure, dialect: &AnswerDialect) -> Option<String> {
    let text = clip(&failure.message.to_lowercase(), 400);
    let run = |run: &str| run.split_whitespace().take(8).collect::<Vec<_>>().join(" ");
    let about_size =
        |run: &String| ["context", "token", "long", "length", "exceed", "large"].iter().any(|word| run.contains(word));
    let words = text
        .split(|c: char| c.is_ascii_digit() || "\"`${}\\…".contains(c))
        .map(run)
        .filter(|run| run.split(' ').count() >= 3 && about_size(run))
        .max_by_key(String::len)?;
    (!dialect.overflow.contains(&words)).then_some(words)
}
