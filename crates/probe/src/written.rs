//! A spec file with what was observed: it extends the nearest built-in spec and says only what differs.

use std::fmt::Write;

use providers::{INLINE, Library, Provider, resolve_named};

use crate::finding::{Change, Difference, Finding};
use crate::reply::clip;

/// Where the observations come from.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// The built-in spec that the new one extends.
    pub extends: String,
    /// None: the address of that spec.
    pub base_url: Option<String>,
    /// The environment variable with the key, where it is not that of the spec.
    pub key_env: Option<String>,
    pub model: String,
    /// What the probed spec says beyond the one it extends, as the lines of its sections.
    pub inherited: Vec<String>,
}

/// The root of all specs.
const ROOT: &str = "openai-compatible";

impl Origin {
    /// For a provider at this address; empty for one without.
    pub fn of(provider: &Provider, base_url: &str, key_env: Option<String>, model: &str) -> Self {
        let inline = provider.spec_name == INLINE;
        let built_in = resolve_named(Library::BUILTIN, &provider.spec_name, &|_| None).ok();
        let own = built_in.is_some_and(|spec| spec.base_url.as_deref() == Some(base_url));
        Self {
            extends: if inline { ROOT.to_owned() } else { provider.spec_name.clone() },
            base_url: (!base_url.is_empty() && !own).then(|| base_url.to_owned()),
            key_env: key_env.or_else(|| provider.key_env.clone().filter(|_| inline)),
            model: model.to_owned(),
            inherited: if inline { declared(provider) } else { Vec::new() },
        }
    }
}

/// Everything that a spec in the user's file says, as lines.
fn declared(provider: &Provider) -> Vec<String> {
    let dialect = &provider.dialect;
    let dropped: Vec<&str> = dialect.drop.iter().map(|parameter| parameter.name()).collect();
    let mut lines = vec![
        format!("auth: {}", provider.auth.name()),
        format!("limit_field: {}", dialect.limit_field.name()),
        format!("developer_role: {}", dialect.developer_role.name()),
        format!("stream_usage: {}", dialect.stream_usage.name()),
        format!("json_schema: {}", dialect.json_schema.name()),
        format!("drop: [{}]", dropped.join(", ")),
    ];
    lines.extend(provider.request_section());
    lines.extend(provider.answer_section());
    lines
}

/// One line of the file: its keys, its value, and why.
struct Line {
    path: String,
    yaml: String,
    why: Option<String>,
}

/// The spec as YAML.
pub fn spec(origin: &Origin, findings: &[Finding]) -> String {
    let mut lines: Vec<Line> = inherited(&origin.inherited);
    for finding in findings {
        let Difference::Spec(changes) = &finding.difference else { continue };
        for change in changes {
            add(&mut lines, change, finding);
        }
    }
    let mut out = head(origin);
    if lines.is_empty() {
        out.push_str("# Nothing was observed to differ.\n");
    }
    for line in lines.iter().filter(|line| !line.path.contains('.')) {
        print(&mut out, 0, &line.path, line);
    }
    for section in ["request", "answer"] {
        print_section(&mut out, section, &lines);
    }
    out
}

fn head(origin: &Origin) -> String {
    let mut out = format!(
        "# What `godex probe` observed with the model {}.\n# It says only what differs from `{}`; each value stands \
         below its evidence.\nextends: {}\n",
        comment(&origin.model),
        origin.extends,
        origin.extends,
    );
    if let Some(url) = &origin.base_url {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "endpoint:\n  base_url: {}", quoted(url));
    }
    if let Some(key_env) = &origin.key_env {
        let _ = writeln!(out, "key_env: {}", quoted(key_env));
    }
    let model = quoted(&origin.model);
    let _ = writeln!(out, "default_model: {model}\nmodels: [{model}]");
    out
}

fn add(lines: &mut Vec<Line>, change: &Change, finding: &Finding) {
    let why = format!("{}: {}. {}", finding.feature, finding.observed.text(), finding.evidence);
    match lines.iter_mut().find(|line| line.path == change.path) {
        None => lines.push(Line { path: change.path.to_owned(), yaml: change.yaml.clone(), why: Some(why) }),
        Some(line) => {
            line.yaml = union(&line.yaml, &change.yaml);
            line.why = Some(line.why.take().map_or(why.clone(), |known| format!("{known}; {why}")));
        }
    }
}

/// Two findings about one list add up; of anything else the later one counts.
fn union(first: &str, second: &str) -> String {
    let items = |text: &str| {
        let inner = text.strip_prefix('[')?.strip_suffix(']')?;
        Some(inner.split(", ").filter(|item| !item.is_empty()).map(str::to_owned).collect::<Vec<_>>())
    };
    let (Some(mut all), Some(more)) = (items(first), items(second)) else { return second.to_owned() };
    for item in more {
        if !all.contains(&item) {
            all.push(item);
        }
    }
    format!("[{}]", all.join(", "))
}

/// The sections of a spec, as `providers` prints them, line by line with their keys.
fn inherited(printed: &[String]) -> Vec<Line> {
    let mut keys: Vec<String> = Vec::new();
    let mut lines = Vec::new();
    for text in printed {
        let depth = (text.len() - text.trim_start().len()) / 2;
        let Some((key, value)) = text.trim().split_once(':') else { continue };
        keys.truncate(depth);
        keys.push(key.to_owned());
        if !value.trim().is_empty() {
            lines.push(Line { path: keys.join("."), yaml: value.trim().to_owned(), why: None });
        }
    }
    lines
}

fn print_section(out: &mut String, section: &str, lines: &[Line]) {
    let inside: Vec<(&str, &Line)> =
        lines.iter().filter_map(|line| Some((line.path.strip_prefix(section)?.strip_prefix('.')?, line))).collect();
    if inside.is_empty() {
        return;
    }
    let _ = writeln!(out, "{section}:");
    for (key, line) in inside.iter().filter(|(key, _)| !key.contains('.')) {
        print(out, 2, key, line);
    }
    let mut groups: Vec<&str> = Vec::new();
    for (group, _) in inside.iter().filter_map(|(key, _)| key.split_once('.')) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    for group in groups {
        let _ = writeln!(out, "  {group}:");
        for (key, line) in &inside {
            if let Some((_, key)) = key.split_once('.').filter(|(of, _)| *of == group) {
                print(out, 4, key, line);
            }
        }
    }
}

fn print(out: &mut String, indent: usize, key: &str, line: &Line) {
    if let Some(why) = &line.why {
        let _ = writeln!(out, "{:indent$}# {}", "", comment(why));
    }
    let _ = writeln!(out, "{:indent$}{key}: {}", "", line.yaml);
}

/// One line that YAML reads over.
fn comment(text: &str) -> String {
    clip(text, 300).chars().filter(|c| !c.is_control() && *c != '\u{feff}').collect()
}

/// A JSON string is a YAML string; `${` would be a variable.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text.replace("${", "$${")).to_string()
}
