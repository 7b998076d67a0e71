//! What providers really send, and what becomes of it: one line per quirk. The result is written in short:
//! status, then the items.

mod calls;
mod endings;
mod output;
mod reasoning;
mod stream;

use bridge::End;
use serde_json::{Value, json};

use crate::run::Run;
use crate::schemas::problems;

/// One quirk.
#[derive(Clone)]
pub(crate) struct Quirk {
    /// What is odd.
    pub(crate) name: &'static str,
    pub(crate) run: Run,
    pub(crate) chunks: Vec<String>,
    pub(crate) end: End,
    /// The response in short.
    pub(crate) expected: &'static str,
    /// The paths of the notes, in order.
    pub(crate) notes: &'static [&'static str],
}

pub(crate) fn quirk(name: &'static str, chunks: Vec<String>, expected: &'static str) -> Quirk {
    Quirk { name, run: Run::default(), chunks, end: End::Eof, expected, notes: &[] }
}

impl Quirk {
    pub(crate) fn with(self, run: Run) -> Self {
        Self { run, ..self }
    }

    pub(crate) fn noted(self, notes: &'static [&'static str]) -> Self {
        Self { notes, ..self }
    }

    pub(crate) fn ended(self, end: End) -> Self {
        Self { end, ..self }
    }
}

/// Usage, so that no note says that it was estimated.
pub(crate) fn usage() -> String {
    json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}}).to_string()
}

pub(crate) fn text(text: &str) -> String {
    crate::run::delta(&json!({"content": text}))
}

pub(crate) fn stop() -> String {
    crate::run::finish("stop")
}

/// The chunks, a finish reason, usage and `[DONE]`.
pub(crate) fn done(mut chunks: Vec<String>, reason: &str) -> Vec<String> {
    chunks.extend([crate::run::finish(reason), usage(), "[DONE]".to_owned()]);
    chunks
}

/// The response in short.
pub(crate) fn short(response: &Value) -> String {
    let items: Vec<String> = response["output"].as_array().into_iter().flatten().map(item).collect();
    let reason = response["incomplete_details"]["reason"].as_str().or(response["error"]["code"].as_str());
    let reason = reason.map(|reason| format!("({reason})")).unwrap_or_default();
    format!("{}{reason}: {}", response["status"].as_str().unwrap(), items.join(" | "))
}

fn item(item: &Value) -> String {
    let cut = if item["status"] == "incomplete" { "~" } else { "" };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = match item["namespace"].as_str() {
        Some(namespace) => format!("{namespace}/{}", text(&item["name"])),
        None => text(&item["name"]),
    };
    let parts = |member: &str| -> Vec<String> { item[member].as_array().into_iter().flatten().map(part).collect() };
    let rest = match item["type"].as_str().unwrap() {
        "message" => parts("content").join(" + "),
        "reasoning" => format!("think {}", [parts("summary"), parts("content")].concat().join(" + ")),
        "function_call" => format!("call {name} {}", text(&item["arguments"])),
        "custom_tool_call" => format!("custom {name} {}", text(&item["input"])),
        "shell_call" | "local_shell_call" => format!("{} {}", text(&item["type"]), item["action"]),
        "apply_patch_call" => format!("apply_patch_call {}", item["operation"]),
        other => format!("{other} {}", item["arguments"]),
    };
    format!("{cut}{rest}")
}

fn part(part: &Value) -> String {
    let text = part["text"].as_str().or(part["refusal"].as_str()).unwrap_or_default();
    let cited = part["annotations"].as_array().map_or(0, Vec::len);
    let cited = if cited > 0 { format!(" [{cited} cited]") } else { String::new() };
    match part["type"].as_str().unwrap() {
        "output_text" => format!("{text:?}{cited}"),
        kind => format!("{} {text:?}", kind.trim_end_matches("_text")),
    }
}

#[test]
fn quirks_come_out_right() {
    let all = [stream::quirks(), calls::quirks(), reasoning::quirks(), endings::quirks(), output::quirks()].concat();
    assert!(all.len() >= 60, "{} quirks", all.len());
    let schemas = testkit::Schemas::if_present();
    let (mut wrong, mut names) = (Vec::new(), std::collections::BTreeSet::new());
    for quirk in &all {
        let name = quirk.name;
        assert!(names.insert(name), "two quirks are called '{name}'");
        let ran = match quirk.run.run(&quirk.chunks, quirk.end.clone()) {
            Ok(ran) => ran,
            Err(problem) => {
                wrong.push(format!("{name}\n  {problem}"));
                continue;
            }
        };
        let found = short(&ran.stream.response);
        let notes: Vec<&str> = ran.notes.iter().map(|note| &*note.path).collect();
        if found != quirk.expected || notes != quirk.notes {
            wrong
                .push(format!("{name}\n  found    {found} {notes:?}\n  expected {} {:?}", quirk.expected, quirk.notes));
        }
        let strict = ran.stream.events.iter().filter_map(|(_, event)| crate::strict_types::problem(event));
        wrong.extend(strict.map(|problem| format!("{name}: {problem}")));
        if let Some(schemas) = &schemas {
            let problems = ran.stream.events.iter().flat_map(|(_, event)| problems(schemas, event));
            wrong.extend(problems.map(|problem| format!("{name}: {problem}")));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
