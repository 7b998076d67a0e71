//! A schema's text → its keywords. References are followed here, once; what is not a schema is refused.

use std::collections::HashMap;

use crate::Schema;
use crate::decimal::Decimal;
use crate::document::{Document, Node, NodeId};
use crate::keyword::{Bound, Counted, Keyword, Keywords, Properties, SchemaId, Side, Types};
use crate::misfit::clip;
use crate::pattern::Pattern;

/// What the programs of all patterns of a schema may take.
const PATTERNS: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Compiler<'d> {
    document: &'d Document<'d>,
    schemas: Vec<Keywords>,
    by_node: HashMap<NodeId, SchemaId>,
    /// The nodes that `$anchor` and its like name, by the resource that they are in.
    anchors: HashMap<(NodeId, String), NodeId>,
    /// What references say, and the resource that they are in.
    references: Vec<(String, NodeId)>,
    /// What is left for patterns.
    patterns: usize,
    unchecked: Vec<String>,
    uses: Uses,
    resources: usize,
    /// A draft in which nothing counts beside `$ref`.
    lone_ref: bool,
}

/// Whether there are keywords that concern more than their place.
#[derive(Debug, Default)]
struct Uses {
    /// One that holds because another does not.
    negation: bool,
    unevaluated: bool,
    dynamic_references: bool,
}

/// An object with keywords, and the resource that it is in.
#[derive(Debug, Clone, Copy)]
struct SchemaObject {
    node: NodeId,
    resource: NodeId,
}

type Compiled<T> = Result<T, String>;

impl<'d> Compiler<'d> {
    pub(crate) fn new(document: &'d Document<'d>) -> Self {
        let draft = document.member(Document::ROOT, "$schema").and_then(|node| document.string(node));
        Self {
            document,
            schemas: Vec::new(),
            by_node: HashMap::new(),
            anchors: HashMap::new(),
            references: Vec::new(),
            patterns: PATTERNS,
            unchecked: Vec::new(),
            uses: Uses::default(),
            resources: 0,
            lone_ref: draft.is_some_and(|draft| draft.contains("/draft-0")),
        }
    }

    pub(crate) fn compile(mut self) -> Compiled<Schema> {
        self.schema(Document::ROOT, Document::ROOT)?;
        let mut targets = Vec::new();
        // A target that is no schema by its place may bring more references.
        while let Some((reference, resource)) = self.references.get(targets.len()).cloned() {
            let node = self.target(&reference, resource);
            let node = node.ok_or_else(|| format!("there is nothing at '{}'", clip(&reference)))?;
            targets.push(self.schema(node, resource)?);
        }
        if self.uses.dynamic_references && self.resources > 1 {
            return Err("'$dynamicRef' between embedded schemas is not supported".to_owned());
        }
        let mut shared = vec![self.uses.unevaluated; self.schemas.len()];
        for target in &targets {
            shared[*target] = true;
        }
        Ok(Schema { schemas: self.schemas, targets, shared, unchecked: self.unchecked, negates: self.uses.negation })
    }

    fn schema(&mut self, node: NodeId, resource: NodeId) -> Compiled<SchemaId> {
        if let Some(known) = self.by_node.get(&node) {
            return Ok(*known);
        }
        let id = self.schemas.len();
        self.schemas.push(Keywords::default());
        self.by_node.insert(node, id);
        let mut keywords = match self.document.node(node) {
            Node::Bool(true) => Vec::new(),
            Node::Bool(false) => vec![Keyword::Never],
            Node::Object(_) => self.object(node, resource)?,
            _ => return Err(self.wrong(node, "a schema")),
        };
        keywords.sort_by_key(Keyword::rank);
        self.schemas[id] = Keywords(keywords);
        Ok(id)
    }

    fn object(&mut self, node: NodeId, resource: NodeId) -> Compiled<Vec<Keyword>> {
        let mut object = SchemaObject { node, resource };
        let id = self.text(object, "$id").or_else(|| self.text(object, "id").filter(|_| self.lone_ref));
        if node == Document::ROOT || id.is_some_and(|id| !id.is_empty() && !id.starts_with('#')) {
            object.resource = node;
            self.resources += 1;
        }
        let own = id.and_then(|id| id.strip_prefix('#'));
        for name in [own, self.text(object, "$anchor"), self.text(object, "$dynamicAnchor")].into_iter().flatten() {
            self.anchors.insert((object.resource, name.to_owned()), node);
        }
        let mut keywords = Vec::new();
        self.references(object, &mut keywords);
        for holder in ["$defs", "definitions"] {
            self.named(object, holder)?;
        }
        if self.lone_ref && !keywords.is_empty() {
            return Ok(keywords);
        }
        self.of_values(object, &mut keywords)?;
        self.of_counts(object, &mut keywords)?;
        self.of_strings(object, &mut keywords);
        self.of_arrays(object, &mut keywords)?;
        self.of_objects(object, &mut keywords)?;
        self.of_dependencies(object, &mut keywords)?;
        self.of_schemas(object, &mut keywords)?;
        Ok(keywords)
    }

    // === references ===

    fn references(&mut self, object: SchemaObject, keywords: &mut Vec<Keyword>) {
        for name in ["$ref", "$dynamicRef", "$recursiveRef"] {
            if let Some(reference) = self.text(object, name) {
                self.uses.dynamic_references |= name == "$dynamicRef" || name == "$recursiveRef";
                keywords.push(Keyword::Reference(self.references.len()));
                self.references.push((reference.to_owned(), object.resource));
            }
        }
    }

    fn target(&self, reference: &str, resource: NodeId) -> Option<NodeId> {
        let fragment = percent_decoded(reference.strip_prefix('#')?)?;
        if fragment.is_empty() {
            return Some(resource);
        }
        let Some(pointer) = fragment.strip_prefix('/') else {
            return self.anchors.get(&(resource, fragment)).copied();
        };
        pointer.split('/').try_fold(resource, |node, step| {
            let step = step.replace("~1", "/").replace("~0", "~");
            let element = || self.document.elements(node).get(step.parse::<usize>().ok()?).copied();
            self.document.member(node, &step).or_else(element)
        })
    }

    // === reading ===

    fn member(&self, object: SchemaObject, name: &str) -> Option<NodeId> {
        self.document.member(object.node, name)
    }

    fn text(&self, object: SchemaObject, name: &str) -> Option<&'d str> {
        let document = self.document;
        document.string(self.member(object, name)?)
    }

    fn wrong(&self, node: NodeId, wanted: &str) -> String {
        clip(&format!("{wanted} is wanted at '{}'", self.document.pointer(node)))
    }

    fn sub(&mut self, object: SchemaObject, name: &str) -> Compiled<Option<SchemaId>> {
        self.member(object, name).map(|node| self.schema(node, object.resource)).transpose()
    }

    /// The schemas of a list.
    fn list(&mut self, object: SchemaObject, name: &str) -> Compiled<Option<Vec<SchemaId>>> {
        let Some(node) = self.member(object, name) else { return Ok(None) };
        if !matches!(self.document.node(node), Node::Array(_)) {
            return Err(self.wrong(node, "a list"));
        }
        let document = self.document;
        document
            .elements(node)
            .iter()
            .map(|node| self.schema(*node, object.resource))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// The schemas of an object, by name.
    fn named(&mut self, object: SchemaObject, name: &str) -> Compiled<Vec<(&'d str, SchemaId)>> {
        let Some(node) = self.member(object, name) else { return Ok(Vec::new()) };
        if !matches!(self.document.node(node), Node::Object(_)) {
            return Err(self.wrong(node, "an object"));
        }
        let document = self.document;
        let schema = |(key, value): &(NodeId, NodeId)| {
            Ok((document.string(*key).unwrap_or_default(), self.schema(*value, object.resource)?))
        };
        document.members(node).iter().map(schema).collect()
    }

    fn strings(&self, node: NodeId) -> Compiled<Vec<String>> {
        if !matches!(self.document.node(node), Node::Array(_)) {
            return Err(self.wrong(node, "a list"));
        }
        let text = |node: &NodeId| self.document.string(*node).map(str::to_owned);
        self.document
            .elements(node)
            .iter()
            .map(|node| text(node).ok_or_else(|| self.wrong(*node, "a string")))
            .collect()
    }

    fn number(&self, object: SchemaObject, name: &str) -> Compiled<Option<Decimal>> {
        match self.member(object, name) {
            None => Ok(None),
            Some(node) => match self.document.node(node) {
                Node::Number(text) => Ok(Some(Decimal::parse(text))),
                _ => Err(self.wrong(node, "a number")),
            },
        }
    }

    fn count(&self, object: SchemaObject, name: &str) -> Compiled<Option<u64>> {
        let wrong = || format!("'{name}' is no count");
        self.number(object, name)?.map(|number| number.count().ok_or_else(wrong)).transpose()
    }

    fn pattern(&mut self, pattern: &str) -> Option<Pattern> {
        match Pattern::compile(pattern, &mut self.patterns) {
            Ok(pattern) => Some(pattern),
            Err(why) => {
                self.unchecked(&format!("the pattern '{}' {why}", clip(pattern)));
                None
            }
        }
    }

    fn unchecked(&mut self, what: &str) {
        if self.unchecked.len() < 3 {
            self.unchecked.push(clip(what));
        }
    }

    // === keywords ===

    fn of_values(&mut self, object: SchemaObject, keywords: &mut Vec<Keyword>) -> Compiled<()> {
        if let Some(node) = self.member(object, "type") {
            let names =
                self.document.string(node).map_or_else(|| self.strings(node), |name| Ok(vec![name.to_owned()]))?;
            let types = names.iter().try_fold(Types::NONE, |types, name| types.with(name));
            keywords.push(Keyword::Types(types.ok_or_else(|| self.wrong(node, "a type"))?));
        }
        if let Some(node) = self.member(object, "enum") {
            if !matches!(self.document.node(node), Node::Array(_)) {
                return Err(self.wrong(node, "a list"));
            }
            keywords.push(self.values(self.document.elements(node)));
        }
        if let Some(node) = self.member(object, "const") {
            keywords.push(self.values(&[node]));
        }
        for (name, bound, strict) in
            [("minimum", Bound::Minimum, Bound::ExclusiveMinimum), ("maximum", Bound::Maximum, Bound::ExclusiveMaximum)]
        {
            let exclusive = if bound == Bound::Minimum { "exclusiveMinimum" } else { "exclusiveMaximum" };
            // In an old draft it says how the other one is meant.
            let flag = self.member(object, exclusive).map(|node| self.document.node(node));
            let bound = if matches!(flag, Some(Node::Bool(true))) { strict } else { bound };
            keywords.extend(self.number(object, name)?.map(|limit| Keyword::Bound(bound, limit)));
            if !matches!(flag, Some(Node::Bool(_))) {
                keywords.extend(self.number(object, exclusive)?.map(|limit| Keyword::Bound(strict, limit)));
            }
        }
        match self.number(object, "multipleOf")? {
            Some(divisor) if !divisor.is_positive() => return Err("'multipleOf' is not positive".to_owned()),
            Some(divisor) if !divisor.can_divide() => self.unchecked("'multipleOf' has too many digits"),
            Some(divisor) => keywords.push(Keyword::MultipleOf(divisor)),
            None => {}
        }
        Ok(())
    }

    fn values(&self, nodes: &[NodeId]) -> Keyword {
        let canonical = |node: &NodeId| {
            let mut text = String::new();
            self.document.canonical(*node, &mut text);
            text
        };
        let listed: Vec<&str> = nodes.iter().take(10).map(|node| self.document.string(*node).unwrap_or("…")).collect();
        Keyword::Values(nodes.iter().map(canonical).collect(), clip(&listed.join(", ")))
    }

    fn of_counts(&self, object: SchemaObject, keywords: &mut Vec<Keyword>) -> Compiled<()> {
        for (name, what, side) in [
            ("minLength", Counted::Characters, Side::Least),
            ("maxLength", Counted::Characters, Side::Most),
            ("minItems", Counted::Elements, Side::Least),
            ("maxItems", Counted::Elements, Side::Most),
            ("minProperties", Counted::Members, Side::Least),
            ("maxProperties", Counted::Members, Side::Most),
        ] {
            keywords.extend(self.count(object, name)?.map(|limit| Keyword::Count(what, side, limit)));
        }
        Ok(())
    }

    fn of_strings(&mut self, object: SchemaObject, keywords: &mut Vec<Keyword>) {
        if let Some(pattern) = self.text(object, "pattern") {
            keywords.extend(self.pattern(pattern).map(Keyword::Pattern));
        }
    }

    fn of_arrays(&mut self, object: SchemaObject, keywords: &mut Vec<Keyword>) -> Compiled<()> {
        let items = self.member(object, "items");
        let tuple = items.is_some_and(|items| matches!(self.document.node(items), Node::Array(_)));
        let prefix = self.list(object, if tuple { "items" } else { "prefixItems" })?;
        let rest = self.sub(object, if tuple { "additionalItems" } else { "items" })?;
        if prefix.is_some() || rest.is_some() {
            keywords.push(Keyword::Items { prefix: prefix.unwrap_or_default(), rest });
        }
        if let Some(schema) = self.sub(object, "contains")? {
            let min = self.count(object, "minContains")?.unwrap_or(1);
            let max = self.count(object, "maxContains")?.unwrap_or(u64::MAX);
            self.uses.negation |= max != u64::MAX;
            keywords.push(Keyword::Contains { schema, min, max });
        }
        let unique = self.member(object, "uniqueItems").map(|node| self.document.node(node));
        if matches!(unique, Some(Node::Bool(true))) {
            keywords.push(Keyword::UniqueItems);
        }
        if let Some(schema) = self.sub(object, "unevaluatedItems")? {
            self.uses.unevaluated = true;
            keywords.push(Keyword::UnevaluatedItems(schema));
        }
        Ok(())
    }

    fn of_objects(&mut self, object: SchemaObject, keywords: &mut Vec<Keyword>) -> Compiled<()> {
        if let Some(node) = self.member(object, "required") {
            keywords.push(Keyword::Required(self.strings(node)?));
        }
        let mut properties = Properties::default();
        for (name, schema) in self.named(object, "properties")? {
            properties.named.insert(name.to_owned(), schema);
        }
        for (pattern, schema) in self.named(object, "patternProperties")? {
            match self.pattern(pattern) {
                Some(pattern) => properties.patterns.push((pattern, schema)),
                None => properties.open = true,
            }
        }
        properties.rest = self.sub(object, "additionalProperties")?;
        let is_empty = properties.named.is_empty() && properties.patterns.is_empty() && !properties.open;
        if !is_empty || properties.rest.is_some() {
            keywords.push(Keyword::Properties(Box::new(properties)));
        }
        keywords.extend(self.sub(object, "propertyNames")?.map(Keyword::PropertyNames));
        if let Some(schema) = self.sub(object, "unevaluatedProperties")? {
            self.uses.unevaluated = true;
            keywords.push(Keyword::UnevaluatedProperties(schema));
        }
        Ok(())
    }

    fn of_dependencies(&mut self, object: SchemaObject, keywords: &mut Vec<Keyword>) -> Compiled<()> {
        let (mut required, mut schemas) = (Vec::new(), Vec::new());
        let document = self.document;
        for name in ["dependentRequired", "dependencies"] {
            let Some(node) = self.member(object, name) else { continue };
            for (key, value) in document.members(node) {
                let key = document.string(*key).unwrap_or_default().to_owned();
                match document.node(*value) {
                    Node::Array(_) => required.push((key, self.strings(*value)?)),
                    _ => schemas.push((key, self.schema(*value, object.resource)?)),
                }
            }
        }
        let named = self.named(object, "dependentSchemas")?;
        schemas.extend(named.into_iter().map(|(name, schema)| (name.to_owned(), schema)));
        if !required.is_empty() {
            keywords.push(Keyword::DependentRequired(required));
        }
        if !schemas.is_empty() {
            keywords.push(Keyword::DependentSchemas(schemas));
        }
        Ok(())
    }

    fn of_schemas(&mut self, object: SchemaObject, keywords: &mut Vec<Keyword>) -> Compiled<()> {
        keywords.extend(self.list(object, "allOf")?.map(Keyword::AllOf));
        keywords.extend(self.list(object, "anyOf")?.map(Keyword::AnyOf));
        if let Some(schemas) = self.list(object, "oneOf")? {
            self.uses.negation = true;
            keywords.push(Keyword::OneOf(schemas));
        }
        if let Some(schema) = self.sub(object, "not")? {
            self.uses.negation = true;
            keywords.push(Keyword::Not(schema));
        }
        let (then, otherwise) = (self.sub(object, "then")?, self.sub(object, "else")?);
        if let Some(test) = self.sub(object, "if")? {
            self.uses.negation = true;
            keywords.push(Keyword::If { test, then, otherwise });
        }
        Ok(())
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        bytes.push(u8::from_str_radix(after.get(..2)?, 16).ok()?);
        rest = after.get(2..)?;
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok()
}
