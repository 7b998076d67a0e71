//! A JSON document as a flat list of nodes: what schemas are compiled from and answers are checked in.
//!
//! A node has a number, so "this schema, at this node" is a small key; members are sorted, so a name is found by
//! halving. The number of nodes is capped before the memory is taken.

use std::borrow::Cow;
use std::fmt::Write;

use wire::json::{Cursor, Kind, Raw};

use crate::decimal::Decimal;

#[derive(Debug)]
pub(crate) enum Node<'a> {
    Null,
    Bool(bool),
    /// As it is written.
    Number(&'a str),
    String(Cow<'a, str>),
    Array(Span),
    Object(Span),
}

/// A part of `elements`, or of `members`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    from: u32,
    to: u32,
}

/// The number of a node; the first is the root.
pub(crate) type NodeId = u32;

#[derive(Debug, Default)]
pub(crate) struct Document<'a> {
    nodes: Vec<Node<'a>>,
    parents: Vec<NodeId>,
    elements: Vec<NodeId>,
    /// Key and value; the keys of one object in order, each once.
    members: Vec<(NodeId, NodeId)>,
}

/// The document has more nodes than it may.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

impl<'a> Document<'a> {
    pub(crate) const ROOT: NodeId = 0;

    /// `json` is valid, and so at most 128 levels deep.
    pub(crate) fn read(json: Raw<'a>, max_nodes: usize) -> Result<Self, TooLarge> {
        let mut document = Self::default();
        document.value(&mut Cursor::new(json), Self::ROOT, max_nodes.min(u32::MAX as usize))?;
        Ok(document)
    }

    fn value(&mut self, cursor: &mut Cursor<'a>, parent: NodeId, max: usize) -> Result<NodeId, TooLarge> {
        let id = self.push(Node::Null, parent, max)?;
        let node = match cursor.kind() {
            Kind::Null => {
                cursor.raw();
                Node::Null
            }
            Kind::Bool => Node::Bool(cursor.raw().as_str() == "true"),
            Kind::Number => Node::Number(cursor.raw().as_str()),
            Kind::String => Node::String(cursor.raw().text().map(wire::json::Text::decode).unwrap_or_default()),
            Kind::Array => {
                let mut elements = Vec::new();
                cursor.enter();
                while cursor.more() {
                    elements.push(self.value(cursor, id, max)?);
                }
                let from = self.elements.len();
                self.elements.append(&mut elements);
                Node::Array(span(from, self.elements.len()))
            }
            Kind::Object => self.object(cursor, id, max)?,
        };
        self.nodes[id as usize] = node;
        Ok(id)
    }

    fn object(&mut self, cursor: &mut Cursor<'a>, id: NodeId, max: usize) -> Result<Node<'a>, TooLarge> {
        let mut members = Vec::new();
        cursor.enter();
        while let Some(key) = cursor.key() {
            let key = self.push(Node::String(key.decode()), id, max)?;
            members.push((key, self.value(cursor, id, max)?));
        }
        members.sort_by(|(a, _), (b, _)| self.string(*a).cmp(&self.string(*b)));
        let from = self.members.len();
        for (place, member) in members.iter().enumerate() {
            // Of a name that is repeated the last one counts, as everywhere.
            let next = members.get(place + 1);
            if next.is_none_or(|next| self.string(next.0) != self.string(member.0)) {
                self.members.push(*member);
            }
        }
        Ok(Node::Object(span(from, self.members.len())))
    }

    fn push(&mut self, node: Node<'a>, parent: NodeId, max: usize) -> Result<NodeId, TooLarge> {
        if self.nodes.len() >= max {
            return Err(TooLarge);
        }
        let id = u32::try_from(self.nodes.len()).map_err(|_| TooLarge)?;
        self.nodes.push(node);
        self.parents.push(parent);
        Ok(id)
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node<'a> {
        &self.nodes[id as usize]
    }

    pub(crate) fn string(&self, id: NodeId) -> Option<&str> {
        match self.node(id) {
            Node::String(text) => Some(text),
            _ => None,
        }
    }

    /// The elements of an array; of anything else, none.
    pub(crate) fn elements(&self, id: NodeId) -> &[NodeId] {
        match self.node(id) {
            Node::Array(span) => &self.elements[span.from as usize..span.to as usize],
            _ => &[],
        }
    }

    /// The members of an object, by key; of anything else, none.
    pub(crate) fn members(&self, id: NodeId) -> &[(NodeId, NodeId)] {
        match self.node(id) {
            Node::Object(span) => &self.members[span.from as usize..span.to as usize],
            _ => &[],
        }
    }

    pub(crate) fn member(&self, id: NodeId, name: &str) -> Option<NodeId> {
        let members = self.members(id);
        let at = members.binary_search_by(|(key, _)| self.string(*key).unwrap_or_default().cmp(name)).ok()?;
        members.get(at).map(|(_, value)| *value)
    }

    pub(crate) fn parent(&self, id: NodeId) -> Option<NodeId> {
        (id != Self::ROOT).then(|| self.parents[id as usize])
    }

    pub(crate) fn depth(&self, id: NodeId) -> usize {
        std::iter::successors(self.parent(id), |id| self.parent(*id)).count()
    }

    /// Where the node is, as a JSON pointer; of a key, where its object is.
    pub(crate) fn pointer(&self, id: NodeId) -> String {
        let mut steps = Vec::new();
        let mut at = id;
        while let Some(parent) = self.parent(at) {
            if let Some(index) = self.elements(parent).iter().position(|element| *element == at) {
                steps.push(index.to_string());
            } else if let Some((key, _)) = self.members(parent).iter().find(|(_, value)| *value == at) {
                steps.push(self.string(*key).unwrap_or_default().replace('~', "~0").replace('/', "~1"));
            }
            at = parent;
        }
        steps.iter().rev().fold(String::new(), |pointer, step| pointer + "/" + step)
    }

    /// Writes the value so that equal values are equal texts, whatever their numbers, escapes and order are.
    pub(crate) fn canonical(&self, id: NodeId, out: &mut String) {
        match self.node(id) {
            Node::Null => out.push('n'),
            Node::Bool(value) => out.push(if *value { 't' } else { 'f' }),
            Node::Number(text) => Decimal::parse(text).canonical(out),
            Node::String(text) => quoted(text, out),
            Node::Array(_) => {
                out.push('[');
                for element in self.elements(id) {
                    self.canonical(*element, out);
                }
                out.push(']');
            }
            Node::Object(_) => {
                out.push('{');
                for (key, value) in self.members(id) {
                    quoted(self.string(*key).unwrap_or_default(), out);
                    self.canonical(*value, out);
                }
                out.push('}');
            }
        }
    }
}

/// The length goes first, so that no text can look like the end of another.
fn quoted(text: &str, out: &mut String) {
    let _ = write!(out, "\"{}:{text}", text.len());
}

fn span(from: usize, to: usize) -> Span {
    // Fewer than there are nodes, whose numbers fit.
    let fit = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
    Span { from: fit(from), to: fit(to) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Document<'_> {
        Document::read(Raw::parse(json).unwrap(), 1000).unwrap()
    }

    #[test]
    fn members_are_found_and_places_are_named() {
        let document = read(r#"{"b":[1,{"a/b~":2}],"a":3,"b":[true,{"a/b~":null}]}"#);
        let list = document.member(Document::ROOT, "b").unwrap();
        let deep = document.member(document.elements(list)[1], "a/b~").unwrap();
        assert_eq!(document.pointer(deep), "/b/1/a~1b~0");
        assert_eq!(document.depth(deep), 3);
        assert!(matches!(document.node(deep), Node::Null), "the last of two counts");
        assert_eq!(document.member(Document::ROOT, "c"), None);
    }

    #[test]
    fn equal_values_are_equal_texts() {
        let canonical = |json: &str| {
            let mut out = String::new();
            read(json).canonical(Document::ROOT, &mut out);
            out
        };
        for (a, b, equal) in [
            ("1", "1.0", true),
            ("0", "-0.0e7", true),
            ("100", "1e2", true),
            ("1", "true", false),
            (r#""\u0061""#, r#""a""#, true),
            (r#"{"a":1,"b":[]}"#, r#"{"b":[],"a":10e-1}"#, true),
            (r#"["a","b"]"#, r#"["a\"1:b"]"#, false),
            ("[[],[]]", "[[[]]]", false),
        ] {
            assert_eq!(canonical(a) == canonical(b), equal, "{a} {b}");
        }
    }

    #[test]
    fn a_large_document_is_not_read() {
        assert_eq!(Document::read(Raw::parse("[1,2,3]").unwrap(), 3).unwrap_err(), TooLarge);
    }
}
