//! Structured output: what is refused, what is ignored, what is kept.

use bridge::{Exclusion, JsonSchema};
use serde_json::{Map, Value, json};

use super::{open, tools, words};
use crate::ask::ProbeUpstream;
use crate::bodies;
use crate::finding::{Change, Finding};
use crate::reply::{ChatReply, Reply};
use crate::run::{Abort, Run, Tools};

/// What an answer is, measured by the format that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormatVerdict {
    /// As asked.
    Kept,
    /// As asked, in a code fence.
    Fenced,
    /// JSON, but not in the schema.
    OtherJson,
    /// No JSON.
    Text,
    Refused,
    Unclear,
}

impl FormatVerdict {
    const fn name(self) -> &'static str {
        match self {
            Self::Kept => "yes",
            Self::Fenced => "in a code fence",
            Self::OtherJson => "JSON of another shape",
            Self::Text => "ignored",
            Self::Refused => "refused",
            Self::Unclear => "unclear",
        }
    }

    const fn is_good(self) -> bool {
        matches!(self, Self::Kept | Self::Fenced)
    }
}

pub(super) async fn run(run: &mut Run<'_, impl ProbeUpstream>) -> Result<(), Abort> {
    let declared = run.dialect().json_schema;
    // Other APIs have no word for it.
    let mut object = FormatVerdict::Refused;
    if run.is_chat() {
        let reply = run.ask("json_object", body(run, bodies::json_object())).await?;
        object = form(&reply, |_| true);
        run.findings.push(finding("json_object", "-", object, &reply));
    }
    let reply = run.ask("json_schema", body(run, bodies::json_schema())).await?;
    let schema = form(&reply, fits);
    run.findings.push(ladder(declared, object, schema, &reply));
    fences(run, object, schema);
    exclusions(run, schema).await
}

fn body(run: &Run<'_, impl ProbeUpstream>, format: Value) -> Map<String, Value> {
    let mut body = run.body(bodies::user(bodies::JSON), 80);
    body.insert("response_format".to_owned(), format);
    body
}

fn fits(value: &Value) -> bool {
    *value == json!({"fruit": bodies::SCHEMA_WORD})
}

fn form(reply: &Reply, fits: impl Fn(&Value) -> bool) -> FormatVerdict {
    match reply {
        Reply::Answered(said) => form_of(said, fits),
        Reply::Refused(_) => FormatVerdict::Refused,
        Reply::Lost(_) | Reply::Unsent(_) => FormatVerdict::Unclear,
    }
}

fn form_of(said: &ChatReply, fits: impl Fn(&Value) -> bool) -> FormatVerdict {
    let text = said.answer();
    let object = |text: &str| serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
    let fenced = text.strip_prefix("```").and_then(|rest| Some(rest.trim_start_matches("json").rsplit_once("```")?.0));
    match (object(text), fenced.and_then(object)) {
        (Some(value), _) if fits(&value) => FormatVerdict::Kept,
        (_, Some(value)) if fits(&value) => FormatVerdict::Fenced,
        (Some(_), _) | (_, Some(_)) => FormatVerdict::OtherJson,
        // Half a document, or a call instead of an answer, decides nothing.
        _ if said.is_cut() || text.is_empty() => FormatVerdict::Unclear,
        _ => FormatVerdict::Text,
    }
}

fn finding(feature: &'static str, declared: &'static str, form: FormatVerdict, reply: &Reply) -> Finding {
    match form {
        FormatVerdict::Unclear => match reply {
            Reply::Answered(_) => Finding::unclear(feature, declared, words(reply)),
            _ => open(feature, declared, reply),
        },
        form => Finding::seen(feature, declared, form.name(), words(reply)),
    }
}

/// The best way to get an answer in a schema.
fn ladder(declared: JsonSchema, object: FormatVerdict, schema: FormatVerdict, reply: &Reply) -> Finding {
    const FEATURE: &str = "json_schema";
    let rung = match (schema, object) {
        (FormatVerdict::Kept | FormatVerdict::Fenced, _) => Some(JsonSchema::Native),
        (FormatVerdict::Unclear, _) => None,
        (_, FormatVerdict::Kept | FormatVerdict::Fenced) => Some(JsonSchema::JsonObject),
        (_, FormatVerdict::Refused | FormatVerdict::Text) => Some(JsonSchema::Prompt),
        _ => None,
    };
    match rung {
        None => finding(FEATURE, declared.name(), FormatVerdict::Unclear, reply),
        Some(rung) if rung == declared => Finding::seen(FEATURE, declared.name(), rung.name(), words(reply)),
        Some(rung) => {
            Finding::seen(FEATURE, declared.name(), rung.name(), format!("{}: {}", schema.name(), words(reply)))
                .change(Change::new("json_schema", rung.name()))
        }
    }
}

fn fences(run: &mut Run<'_, impl ProbeUpstream>, object: FormatVerdict, schema: FormatVerdict) {
    let declared = run.dialect().answer.fenced_json;
    let fenced = object == FormatVerdict::Fenced || schema == FormatVerdict::Fenced;
    if !fenced && !object.is_good() && !schema.is_good() {
        return;
    }
    let finding = Finding::seen("JSON in a code fence", declared.to_string(), fenced.to_string(), "");
    let change = fenced && !declared;
    run.findings.push(if change { finding.change(Change::new("answer.fenced_json", "true")) } else { finding });
}

/// Whether a schema works beside tools and in a stream.
async fn exclusions(run: &mut Run<'_, impl ProbeUpstream>, alone: FormatVerdict) -> Result<(), Abort> {
    let rules = &run.dialect().request.tools.format_excludes;
    let mut excluded = rules.clone();
    let mut evidence = Vec::new();
    for (exclusion, feature) in
        [(Exclusion::Tools, "json_schema with tools"), (Exclusion::Stream, "json_schema with stream")]
    {
        let declared = if rules.contains(&exclusion) { "excluded" } else { "together" };
        if !alone.is_good() {
            run.findings.push(Finding::skipped(feature, declared, "a schema does not work by itself"));
            continue;
        }
        if exclusion == Exclusion::Tools && run.known.tools == Tools::Refused {
            run.findings.push(Finding::skipped(feature, declared, "tools are refused"));
            continue;
        }
        let mut body = body(run, bodies::json_schema());
        match exclusion {
            Exclusion::Tools => body = tools::with_tools(body, None),
            Exclusion::Stream => _ = body.insert("stream".to_owned(), json!(true)),
        }
        let reply = run.ask(feature, body).await?;
        let seen = form(&reply, fits);
        let finding = finding(feature, declared, seen, &reply);
        match seen {
            FormatVerdict::Refused | FormatVerdict::Text | FormatVerdict::OtherJson
                if !excluded.contains(&exclusion) =>
            {
                excluded.push(exclusion);
                evidence.push(format!("{}: {}", exclusion.name(), words(&reply)));
            }
            FormatVerdict::Kept | FormatVerdict::Fenced => excluded.retain(|known| *known != exclusion),
            _ => {}
        }
        run.findings.push(finding);
    }
    if excluded != *rules {
        let names =
            |list: &[Exclusion]| format!("[{}]", list.iter().map(|one| one.name()).collect::<Vec<_>>().join(", "));
        let finding = Finding::seen("schema exclusions", names(rules), names(&excluded), evidence.join("; "));
        run.findings.push(finding.change(Change::new("request.tools.format_excludes", names(&excluded))));
    }
    Ok(())
}
