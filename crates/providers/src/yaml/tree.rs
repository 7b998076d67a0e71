//! Parser events to [`Node`]s. Nodes and depth are capped, so that no file, however few its bytes, can grow
//! into something that does not fit.

use std::borrow::Cow;
use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};

use super::{Key, Node, Position, Problem, Scalar, Value};

const MAX_NODES: usize = 20_000;
const MAX_DEPTH: usize = 64;

/// One file as a tree. Its root is always a mapping.
#[derive(Debug, Clone)]
pub struct Document {
    pub file: String,
    pub root: Node,
    /// What is wrong but did not stop the parser: duplicate keys.
    pub(super) problems: Vec<Problem>,
}

impl Document {
    /// Reads one YAML document. An empty file is an empty mapping.
    ///
    /// # Errors
    /// Text that is not YAML, or no single mapping: the rest of it would be guesswork, so that is the one
    /// problem reported.
    pub fn parse(file: &str, text: &str) -> Result<Self, Problem> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut builder = Builder { file: file.to_owned(), ..Builder::default() };
        let mut parser = Parser::new_from_str(text);
        while let Some(next) = parser.next_event() {
            let (event, span) = next.map_err(|error| {
                let position = at(error.marker());
                Problem { help: hint(text, position.line), ..builder.problem(position, error.info()) }
            })?;
            builder.event(event, at(&span.start))?;
        }
        builder.finish()
    }
}

fn at(marker: &Marker) -> Position {
    Position { line: marker.line().max(1), column: marker.col() + 1 }
}

/// What was probably meant by a line that is no YAML.
fn hint(text: &str, line: usize) -> Option<String> {
    let line = text.lines().nth(line - 1)?;
    let hint = match line.trim_start() {
        start if start.starts_with('*') => "quote a key that begins with `*`: \"*\"",
        start if start.contains("${") => "inside { } or [ ], quote a value that holds `${...}`",
        _ if line.starts_with([' ', '\t']) && line.trim_start_matches(' ').starts_with('\t') => {
            "indent with blanks, not tabs"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// A collection that is still open.
struct Open {
    anchor: usize,
    position: Position,
    content: Content,
}

enum Content {
    Seq(Vec<Node>),
    Map { entries: Vec<(Key, Node)>, key: Option<Key> },
}

#[derive(Default)]
struct Builder {
    file: String,
    stack: Vec<Open>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    documents: usize,
    root: Option<Node>,
    problems: Vec<Problem>,
}

impl Builder {
    fn event(&mut self, event: Event<'_>, position: Position) -> Result<(), Problem> {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(self.problem(position, "a second document (`---`) is not allowed"));
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                let quoted = self.tag(tag.as_ref(), position)?;
                let plain = style == ScalarStyle::Plain && !quoted;
                let value = Value::Scalar(Scalar { text: text.into_owned(), plain });
                self.spend(1, position)?;
                self.add(Node { position, value }, anchor)
            }
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor).cloned() else {
                    return Err(self.problem(position, "an alias may not be inside what it refers to"));
                };
                let (nodes, depth) = measure(&node);
                self.spend(nodes, position)?;
                self.depth(depth, position)?;
                self.add(Node { position, ..node }, 0)
            }
            Event::SequenceStart(anchor, tag) => {
                self.tag(tag.as_ref(), position)?;
                self.open(anchor, position, Content::Seq(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                self.tag(tag.as_ref(), position)?;
                self.open(anchor, position, Content::Map { entries: Vec::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    /// Takes nodes out of the budget: each one written, and each copy that an anchor or alias makes.
    fn spend(&mut self, nodes: usize, position: Position) -> Result<(), Problem> {
        self.nodes += nodes;
        if self.nodes > MAX_NODES {
            return Err(self.problem(position, &format!("more than {MAX_NODES} values, aliases included")));
        }
        Ok(())
    }

    fn depth(&self, below: usize, position: Position) -> Result<(), Problem> {
        if self.stack.len() + below > MAX_DEPTH {
            return Err(self.problem(position, &format!("nested more than {MAX_DEPTH} levels deep")));
        }
        Ok(())
    }

    /// Whether the tag says "string". Tags of other schemas ask for types that we do not have.
    fn tag(&self, tag: Option<&Cow<'_, Tag>>, position: Position) -> Result<bool, Problem> {
        match tag {
            None => Ok(false),
            Some(tag) if tag.is_yaml_core_schema() => Ok(tag.suffix == "str"),
            Some(tag) => Err(self.problem(position, &format!("the tag `{tag}` is not supported"))),
        }
    }

    fn open(&mut self, anchor: usize, position: Position, content: Content) -> Result<(), Problem> {
        self.spend(1, position)?;
        self.depth(1, position)?;
        self.stack.push(Open { anchor, position, content });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Problem> {
        let Some(Open { anchor, position, content }) = self.stack.pop() else { return Ok(()) };
        let value = match content {
            Content::Seq(nodes) => Value::Seq(nodes),
            Content::Map { entries, .. } => Value::Map(entries),
        };
        self.add(Node { position, value }, anchor)
    }

    /// Puts a finished node where it belongs: as a key, a value, an element, or the root.
    fn add(&mut self, node: Node, anchor: usize) -> Result<(), Problem> {
        if anchor > 0 {
            self.spend(measure(&node).0, node.position)?;
            self.anchors.insert(anchor, node.clone());
        }
        match self.stack.last_mut().map(|open| &mut open.content) {
            None => self.root = Some(node),
            Some(Content::Seq(nodes)) => nodes.push(node),
            Some(Content::Map { entries, key }) => match key.take() {
                Some(name) => entries.push((name, node)),
                None => return self.key(node),
            },
        }
        Ok(())
    }

    fn key(&mut self, node: Node) -> Result<(), Problem> {
        let position = node.position;
        let Value::Scalar(Scalar { text: name, .. }) = node.value else {
            return Err(self.problem(position, "a key must be plain text"));
        };
        let Some(Open { content: Content::Map { entries, key }, .. }) = self.stack.last_mut() else { return Ok(()) };
        let first = entries.iter().find(|(key, _)| key.name == name).map(|(key, _)| key.position.line);
        *key = Some(Key { position, name: name.clone() });
        if let Some(line) = first {
            let problem = self.problem(position, &format!("the key `{name}` is given twice, first on line {line}"));
            self.problems.push(problem);
        }
        Ok(())
    }

    fn finish(self) -> Result<Document, Problem> {
        let start = Position { line: 1, column: 1 };
        let root = match &self.root {
            None => Node { position: start, value: Value::Map(Vec::new()) },
            Some(node) if node.is_null() => Node { position: start, value: Value::Map(Vec::new()) },
            Some(node) if matches!(node.value, Value::Map(_)) => node.clone(),
            Some(node) => {
                return Err(self.problem(node.position, &format!("expected `key: value` lines, found {}", node.kind())));
            }
        };
        Ok(Document { file: self.file, root, problems: self.problems })
    }

    fn problem(&self, position: Position, message: &str) -> Problem {
        Problem {
            file: self.file.clone(),
            position: Some(position),
            path: String::new(),
            message: message.to_owned(),
            help: None,
        }
    }
}

/// How many nodes, and how many levels.
fn measure(node: &Node) -> (usize, usize) {
    let join = |(nodes, depth): (usize, usize), (n, d): (usize, usize)| (nodes + n, depth.max(d));
    let (nodes, depth) = match &node.value {
        Value::Scalar(_) => (0, 0),
        Value::Seq(children) => children.iter().map(measure).fold((0, 0), join),
        Value::Map(entries) => entries.iter().map(|(_, child)| measure(child)).fold((0, 0), join),
    };
    (nodes + 1, depth + 1)
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
