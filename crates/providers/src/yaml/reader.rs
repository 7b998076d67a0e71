//! Typed access to a [`Document`] that goes on after a mistake, so that one run reports them all.
//!
//! A [`Section`] is a mapping with a closed set of keys: whatever nobody asked for by the time of
//! [`Section::finish`] is an unknown key. Messages quote a scalar as it is written in the file, before its
//! variables are filled in: a secret that came in through `${VAR}` never gets into one.

use std::cell::RefCell;
use std::ops::RangeInclusive;

use super::interpolate::{Filled, Unresolved, filled, interpolate};
use super::{Document, Node, Position, Problem, Scalar, Value};

/// Where `${VAR}` is looked up.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Reads one document and keeps the list of its problems.
pub struct Reader<'a> {
    document: &'a Document,
    env: Env<'a>,
    problems: RefCell<Vec<Problem>>,
}

impl std::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("document", &self.document.file).field("problems", &self.problems).finish()
    }
}

impl<'a> Reader<'a> {
    pub fn new(document: &'a Document, env: Env<'a>) -> Self {
        Self { document, env, problems: RefCell::new(document.problems.clone()) }
    }

    /// The top-level mapping.
    pub fn root(&self) -> Section<'_> {
        Section { node: Some(&self.document.root), field: self.root_field(), known: Vec::new() }
    }

    /// The same as a value.
    pub fn root_field(&self) -> Field<'_> {
        let root = &self.document.root;
        Field { reader: self, node: root, path: String::new(), key: root.position }
    }

    /// Adds a problem that was found elsewhere (the environment, a spec in another file).
    pub fn report(&self, problem: Problem) {
        self.problems.borrow_mut().push(problem);
    }

    /// A problem of the whole file.
    pub fn problem(&self, path: &str, message: impl Into<String>, help: Option<String>) {
        let (file, path) = (self.document.file.clone(), path.to_owned());
        self.report(Problem { file, position: None, path, message: message.into(), help });
    }

    /// All problems, in the order of the file; then those of other files, and last those without a place.
    pub fn finish(self) -> Vec<Problem> {
        let own = &self.document.file;
        let mut problems = self.problems.into_inner();
        problems.sort_by_key(|problem| (problem.position.is_none(), problem.file != *own, problem.position));
        problems
    }
}

/// One value, with its path.
#[derive(Debug, Clone)]
pub struct Field<'r> {
    reader: &'r Reader<'r>,
    node: &'r Node,
    path: String,
    /// The position of its key, or else of the value itself.
    key: Position,
}

const MAPPING: &str = "a mapping";

/// Keys whose values, or what is below them, must not be repeated in a message.
const SECRET: &[&str] =
    &["credentials", "api_key", "headers", "postgres", "proxy", "seal_key", "secret", "query", ".env.", "].key"];

impl<'r> Field<'r> {
    /// Reports a mistake in this value.
    pub fn problem(&self, message: impl Into<String>, help: Option<String>) {
        self.problem_at(self.node.position, message.into(), help);
    }

    /// Reports a mistake at its key: something that is missing below it.
    pub fn problem_of_key(&self, message: impl Into<String>, help: Option<String>) {
        self.problem_at(self.key, message.into(), help);
    }

    /// The file that it is in.
    pub fn file(&self) -> &str {
        &self.reader.document.file
    }

    /// The position of its key, or else of the value itself.
    pub fn position(&self) -> Position {
        self.key
    }

    /// Every key below this mapping with its path, such as `request.tools.max`, if it has a value; and every
    /// mapping in a list, such as `answer.errors[0]`.
    pub fn keys(&self) -> Vec<(String, Position)> {
        let mut keys = Vec::new();
        collect(self.node, "", &mut keys);
        keys
    }

    /// Every scalar below this value that holds a variable, with its path, such as `endpoint.query.key`.
    pub fn filled(&self) -> Vec<Filled> {
        let mut found = Vec::new();
        find_filled(self.node, "", self.reader.env, &mut found);
        found
    }

    pub fn is_mapping(&self) -> bool {
        matches!(self.node.value, Value::Map(_))
    }

    pub fn is_list(&self) -> bool {
        matches!(self.node.value, Value::Seq(_))
    }

    /// Text. Numbers pass (a model may be called `4`); a bare `true` is more likely a mistake.
    pub fn string(&self) -> Option<String> {
        if self.node.kind() == "a boolean" {
            return self.expected("a string");
        }
        self.scalar("a string")
    }

    /// Text with something in it; blanks around it are cut off.
    pub fn text(&self) -> Option<String> {
        let text = self.string()?;
        if text.trim().is_empty() {
            self.problem("must not be empty", None);
            return None;
        }
        Some(text.trim().to_owned())
    }

    pub fn boolean(&self) -> Option<bool> {
        match &*self.scalar("true or false")? {
            "true" | "True" | "TRUE" => Some(true),
            "false" | "False" | "FALSE" => Some(false),
            _ => self.expected("true or false"),
        }
    }

    pub fn integer(&self, range: RangeInclusive<u64>) -> Option<u64> {
        let (low, high) = (*range.start(), *range.end());
        let expected = match high {
            u64::MAX if low == 0 => "a whole number".to_owned(),
            u64::MAX => format!("a whole number, at least {low}"),
            _ => format!("a whole number from {low} to {high}"),
        };
        match self.scalar(&expected)?.trim().parse() {
            Ok(number) if range.contains(&number) => Some(number),
            _ => self.expected(&expected),
        }
    }

    /// One of a closed vocabulary.
    pub fn choice<T: Copy>(&self, all: &[T], name: impl Fn(T) -> &'static str) -> Option<T> {
        let names: Vec<&str> = all.iter().map(|value| name(*value)).collect();
        let expected = format!("one of {}", quoted(&names));
        let text = self.scalar(&expected)?;
        let found = all.iter().find(|value| name(**value) == text.trim());
        if found.is_none() {
            let help = nearest(&text, &names).map(|near| format!("did you mean `{near}`?"));
            self.problem(format!("expected {expected}, found {}", self.found()), help);
        }
        found.copied()
    }

    /// The elements of a list.
    pub fn list(&self) -> Option<Vec<Self>> {
        let Value::Seq(nodes) = &self.node.value else { return self.expected("a list") };
        let element = |(index, node): (usize, &'r Node)| {
            let path = format!("{}[{index}]", self.path);
            Field { reader: self.reader, node, path, key: node.position }
        };
        Some(nodes.iter().enumerate().map(element).collect())
    }

    /// A list of non-empty strings.
    pub fn texts(&self) -> Option<Vec<String>> {
        Some(self.list()?.iter().filter_map(Field::text).collect())
    }

    /// A mapping whose keys are names that the user chose.
    pub fn entries(&self) -> Option<Vec<(String, Self)>> {
        let Value::Map(entries) = &self.node.value else { return self.expected(MAPPING) };
        let entry = |(key, node): &'r (super::Key, Node)| {
            let path = join(&self.path, &key.name);
            let field = Field { reader: self.reader, node, path, key: key.position };
            (key.name.clone(), field)
        };
        Some(entries.iter().map(entry).collect())
    }

    /// A mapping whose keys we choose; nothing at all is an empty one.
    pub fn section(self) -> Option<Section<'r>> {
        if !self.is_mapping() && !self.node.is_null() {
            return self.expected(MAPPING);
        }
        Some(Section { node: Some(self.node), field: self, known: Vec::new() })
    }

    fn scalar(&self, expected: &str) -> Option<String> {
        let Value::Scalar(Scalar { text, .. }) = &self.node.value else { return self.expected(expected) };
        match interpolate(text, self.reader.env) {
            Ok(text) => Some(text),
            Err(unresolved) => {
                let (message, help) = match unresolved {
                    Unresolved::Unset(name) => (
                        format!("the environment variable {name} is not set"),
                        format!("set it, or give a default: `${{{name}:-...}}`"),
                    ),
                    Unresolved::Unclosed => ("`${` without a closing `}`".to_owned(), LITERAL.to_owned()),
                    Unresolved::BadName => ("`${...}` does not hold a variable's name".to_owned(), LITERAL.to_owned()),
                };
                self.problem(message, Some(help));
                None
            }
        }
    }

    /// Reports that something else was found, in the file's own words: what a variable holds is never in it.
    pub fn expected<T>(&self, expected: &str) -> Option<T> {
        let found = self.found_for(expected == MAPPING);
        self.problem(format!("expected {expected}, found {found}"), None);
        None
    }

    fn is_secret(&self) -> bool {
        SECRET.iter().any(|word| self.path.contains(word))
    }

    /// What was found, as it is written, unless it may be a secret in the wrong place.
    pub fn found(&self) -> String {
        self.found_for(false)
    }

    fn found_for(&self, mapping: bool) -> String {
        match &self.node.value {
            Value::Scalar(_) if self.is_secret() => "a value".to_owned(),
            // A provider's key is easily written where the provider belongs.
            Value::Scalar(_) if mapping && self.node.kind() == "a string" => "a string".to_owned(),
            Value::Scalar(scalar) if scalar.text.len() <= 80 && !self.node.is_null() => format!("`{}`", scalar.text),
            _ => self.node.kind().to_owned(),
        }
    }

    fn problem_at(&self, position: Position, message: String, help: Option<String>) {
        let (file, path) = (self.reader.document.file.clone(), self.path.clone());
        self.reader.report(Problem { file, position: Some(position), path, message, help });
    }
}

fn collect(node: &Node, path: &str, keys: &mut Vec<(String, Position)>) {
    let Value::Map(entries) = &node.value else { return };
    for (key, child) in entries.iter().filter(|(_, child)| !child.is_null()) {
        let path = join(path, &key.name);
        collect(child, &path, keys);
        if let Value::Seq(elements) = &child.value {
            let mappings = elements.iter().enumerate().filter(|(_, element)| matches!(element.value, Value::Map(_)));
            keys.extend(mappings.map(|(index, element)| (format!("{path}[{index}]"), element.position)));
        }
        keys.push((path, key.position));
    }
}

fn find_filled(node: &Node, path: &str, env: Env<'_>, found: &mut Vec<Filled>) {
    match &node.value {
        Value::Scalar(scalar) => found.extend(filled(path, &scalar.text, env)),
        Value::Map(entries) => {
            for (key, child) in entries {
                find_filled(child, &join(path, &key.name), env, found);
            }
        }
        Value::Seq(elements) => {
            for (index, child) in elements.iter().enumerate() {
                find_filled(child, &format!("{path}[{index}]"), env, found);
            }
        }
    }
}

const LITERAL: &str = "write `$${` for a literal `${`";

/// A mapping with known keys. Absent sections read as empty ones.
#[derive(Debug)]
pub struct Section<'r> {
    field: Field<'r>,
    /// None: the section is not in the file, or no mapping.
    node: Option<&'r Node>,
    known: Vec<&'static str>,
}

impl<'r> Section<'r> {
    pub fn path(&self) -> &str {
        &self.field.path
    }

    /// The mapping as a value.
    pub fn as_field(&self) -> &Field<'r> {
        &self.field
    }

    /// Reports a mistake of the section as a whole.
    pub fn problem(&self, message: impl Into<String>, help: Option<String>) {
        self.field.problem_at(self.field.key, message.into(), help);
    }

    /// The value of a key; null counts as absent.
    pub fn field(&mut self, key: &'static str) -> Option<Field<'r>> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        let Value::Map(entries) = &self.node?.value else { return None };
        let (found, node) = entries.iter().find(|(name, _)| name.name == key)?;
        let path = join(&self.field.path, key);
        (!node.is_null()).then_some(Field { reader: self.field.reader, node, path, key: found.position })
    }

    /// The value of a key, read by `read`; a value that cannot be read is a problem and counts as absent.
    pub fn read<T>(&mut self, key: &'static str, read: impl FnOnce(&Field<'r>) -> Option<T>) -> Option<T> {
        read(&self.field(key)?)
    }

    /// A section below this one.
    #[must_use]
    pub fn section(&mut self, key: &'static str) -> Self {
        let absent = Self {
            field: Field { path: join(&self.field.path, key), ..self.field.clone() },
            node: None,
            known: Vec::new(),
        };
        self.field(key).and_then(Field::section).unwrap_or(absent)
    }

    /// Reports every key that nobody asked for.
    pub fn finish(self) {
        let Some(Value::Map(entries)) = self.node.map(|node| &node.value) else { return };
        for (key, _) in entries.iter().filter(|(key, _)| !self.known.contains(&&*key.name)) {
            let near = nearest(&key.name, &self.known);
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known keys: {}", quoted(&self.known)),
            };
            // `credentials: {sk-…}`: a secret is easily taken for a key.
            let secret = near.is_none() && self.field.is_secret();
            let name = if secret { String::new() } else { format!(" `{}`", key.name) };
            self.field.problem_at(key.position, format!("unknown key{name}"), Some(help));
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The name that was probably meant, if one is near enough.
pub fn nearest<'n>(word: &str, names: &[&'n str]) -> Option<&'n str> {
    if word.parse::<f64>().is_ok() {
        return None; // Numbers are not misspelt.
    }
    let scored = names.iter().map(|name| (strsim::damerau_levenshtein(&word.to_lowercase(), name), *name));
    let (distance, name) = scored.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + name.len() / 4).then_some(name)
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
