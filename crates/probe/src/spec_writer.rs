//! A spec file with what was observed: it extends the nearest built-in spec and says only what differs.

use std::fmt::Write;

use providers::{Library, Provider, resolve_named};
use wire::visible::visible;

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
    /// What the probed spec says beyond the one it extends, as its lines.
    pub inherited: Vec<String>,
}

/// The root of all specs.
const ROOT: &str = "openai-compatible";

impl Origin {
    /// For a provider at this address; empty for one without.
    pub fn of(provider: &Provider, base_url: &str, key_env: Option<String>, model: &str) -> Self {
        let built_in = resolve_named(Library::BUILTIN, &provider.spec_name, &|_| None).ok();
        let users = provider.user_spec_as_written().filter(|_| built_in.is_none());
        let own = built_in.as_ref().is_some_and(|spec| spec.base_url.as_deref() == Some(base_url));
        let extends = match &users {
            None => provider.spec_name.clone(),
            Some(lines) => extended(lines).unwrap_or_else(|| ROOT.to_owned()),
        };
        Self {
            extends,
            base_url: (!base_url.is_empty() && !own).then(|| base_url.to_owned()),
            key_env: key_env.or_else(|| provider.key_env.first().cloned().filter(|_| users.is_some())),
            model: model.to_owned(),
            inherited: users.unwrap_or_default(),
        }
    }
}

/// The spec that a user's spec extends.
fn extended(lines: &[String]) -> Option<String> {
    let value = lines.iter().find_map(|line| line.strip_prefix("extends: "))?;
    Some(value.trim_matches('\'').to_owned())
}

/// Keys that the head of the file says, or that speak of other models.
const SAID: &[&str] = &["extends", "key_env", "default_model", "models"];
const ADDRESS: &str = "endpoint.base_url";

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
    if lines.iter().all(|line| line.why.is_none()) {
        out.push_str("# Nothing was observed to differ.\n");
    }
    let address = origin.base_url.as_deref().map(|url| Line { path: ADDRESS.to_owned(), yaml: quoted(url), why: None });
    lines.retain(|line| line.path != ADDRESS);
    lines.extend(address);
    for line in lines.iter().filter(|line| !line.path.contains('.')) {
        print(&mut out, 0, &line.path, line);
    }
    for section in ["endpoint", "request", "answer"] {
        print_section(&mut out, section, &lines);
    }
    out
}

fn head(origin: &Origin) -> String {
    let mut out = format!(
        "# What `godex probe` observed with the model {}.\n# It says only what differs from `{}`; each value comes \
         after its evidence.\nextends: {}\n",
        comment(&origin.model),
        comment(&origin.extends),
        origin.extends,
    );
    if let Some(key_env) = &origin.key_env {
        // Writing to a String cannot fail.
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

/// The values of a spec, as `providers` prints them, with their keys.
fn inherited(printed: &[String]) -> Vec<Line> {
    let mut keys: Vec<String> = Vec::new();
    let mut lines = Vec::new();
    for text in printed {
        let depth = (text.len() - text.trim_start().len()) / 2;
        let Some((key, value)) = text.trim().split_once(':') else { continue };
        keys.truncate(depth);
        keys.push(key.to_owned());
        if !value.trim().is_empty() && !SAID.contains(&keys[0].as_str()) {
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
    visible(&clip(text, 300)).into_owned()
}

/// A JSON string is a YAML string; `${` would be a variable.
fn quoted(text: &str) -> String {
    wire::visible::quoted(&text.replace("${", "$${"))
}

#[cfg(test)]
mod tests {
    use providers::resolve_inline;
    use providers::yaml::{Document, Problems, Reader};

    use super::*;

    fn read(spec: &str) -> Provider {
        let document = Document::parse("spec.yaml", spec).unwrap_or_else(|problem| panic!("{problem}\n{spec}"));
        let reader = Reader::new(&document, &|_| None);
        let provider = resolve_inline(Library::BUILTIN, &reader.root_field(), &|_| None).unwrap();
        assert_eq!(Problems(reader.finish()).to_string(), "", "{spec}");
        provider
    }

    /// A user's spec that is probed keeps what it says, with what was seen over it.
    #[test]
    fn a_users_spec_is_carried_on() {
        let users = "extends: groq\nendpoint: {base_url: 'https://example.com', path: '/x/{model}', query: {v: 1}}\n\
                     key_env: MINE\nmodels: [a, {match: b, drop: []}]\ndrop: [metadata]\n\
                     request:\n  options: {temperature: {min: 0, max: 1}}\n  tools: {max: 5}\nanswer: {eof: any}\n";
        let before = read(users);
        let origin = Origin::of(&before, "https://example.com", None, "a");
        let finding =
            |change| Finding::seen("x", "-", "seen", "because: of `this` # and \"that\"\n${HOME}").change(change);
        let changes = [
            Change::new("request.tools.max", "7"),
            Change::new("drop", "[metadata, user]"),
            Change::new("answer.overflow", "[\"too long: ${x}\"]".replace("${", "$${")),
        ];
        let text = spec(&origin, &changes.map(finding));
        let mut after = read(&text);
        assert_eq!(
            (after.path.as_str(), after.query.len(), &*after.key_env),
            ("/x/{model}", 1, &["MINE".to_owned()][..])
        );
        assert_eq!((after.default_model.as_deref(), after.models.join(" ")), (Some("a"), "a".to_owned()), "{text}");
        assert_eq!(after.base_url.as_deref(), Some("https://example.com"));
        assert_eq!(after.dialect.request.tools.max, Some(7));
        assert_eq!(after.dialect.drop.len(), 2);
        assert_eq!(after.dialect.answer.overflow, ["too long: ${x}"]);
        after.dialect.request.tools.max = Some(5);
        after.dialect.drop.pop();
        after.dialect.answer.overflow.clear();
        assert_eq!(after.dialect, before.dialect, "{text}");
    }

    #[test]
    fn names_and_addresses_cannot_break_the_file() {
        let model = "a: b # \"c\"\n- ${HOME} \u{7}";
        let origin = Origin { extends: ROOT.to_owned(), model: model.to_owned(), ..Origin::default() };
        assert_eq!(read(&spec(&origin, &[])).default_model.as_deref(), Some(model));
    }
}
