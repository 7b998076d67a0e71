//! Whether a document fits: one keyword at one node is one step, and steps are counted.

use std::collections::{HashMap, HashSet};

use crate::Schema;
use crate::decimal::Decimal;
use crate::document::{Document, Node, NodeId};
use crate::keyword::{Bound, Counted, Keyword, Properties, SchemaId, Side};
use crate::misfit::Misfit;

/// How deep schemas may lead from one to the next: documents of 128 levels, four schemas each. It must fit into the
/// two mebibytes of stack that a worker of the runtime has, unoptimized, too.
pub const MAX_DEPTH: usize = 512;

/// What a remembered result costs, or a text that is made: it is memory.
const MEMORY: u64 = 8;

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Spent,
    TooDeep,
    Endless,
}

/// `None`: it fits.
pub(crate) type Found = Result<Option<Misfit>, Stop>;

#[derive(Debug)]
pub(crate) struct Evaluation<'s, 'd> {
    pub(crate) schema: &'s Schema,
    pub(crate) document: &'d Document<'d>,
    steps: u64,
    depth: usize,
    known: HashMap<(SchemaId, NodeId), Known>,
}

/// What is known of a shared schema at a node.
#[derive(Debug, Clone, Copy)]
enum Known {
    /// It is being looked at.
    Begun,
    Found(Option<Misfit>),
}

/// A keyword at a node.
#[derive(Clone, Copy)]
pub(crate) struct At {
    schema: SchemaId,
    place: usize,
    pub(crate) node: NodeId,
}

impl At {
    pub(crate) const fn misfit(self) -> Misfit {
        Misfit { node: self.node, schema: self.schema, place: self.place }
    }

    const fn unless(self, holds: bool) -> Option<Misfit> {
        if holds { None } else { Some(self.misfit()) }
    }
}

impl<'s, 'd> Evaluation<'s, 'd> {
    pub(crate) fn new(schema: &'s Schema, document: &'d Document<'d>, steps: u64) -> Self {
        Self { schema, document, steps, depth: 0, known: HashMap::new() }
    }

    pub(crate) fn root(&mut self) -> Found {
        self.visit(0, Document::ROOT)
    }

    pub(crate) fn spend(&mut self, steps: u64) -> Result<(), Stop> {
        self.steps = self.steps.checked_sub(steps).ok_or(Stop::Spent)?;
        Ok(())
    }

    fn spend_text(&mut self, length: usize) -> Result<(), Stop> {
        self.spend(length as u64 / 16)
    }

    /// A schema at a node. One that more than one way leads to is looked at once.
    pub(crate) fn visit(&mut self, schema: SchemaId, node: NodeId) -> Found {
        if !self.schema.shared[schema] {
            return self.look(schema, node);
        }
        match self.known.get(&(schema, node)) {
            Some(Known::Found(found)) => return Ok(*found),
            Some(Known::Begun) => return Err(Stop::Endless),
            None => {}
        }
        self.spend(MEMORY)?;
        self.known.insert((schema, node), Known::Begun);
        let found = self.look(schema, node)?;
        self.known.insert((schema, node), Known::Found(found));
        Ok(found)
    }

    fn look(&mut self, schema: SchemaId, node: NodeId) -> Found {
        if self.depth >= MAX_DEPTH {
            return Err(Stop::TooDeep);
        }
        self.depth += 1;
        let schemas = &self.schema.schemas;
        for (place, keyword) in schemas[schema].0.iter().enumerate() {
            self.spend(1)?;
            let misfit = self.keyword(keyword, At { schema, place, node })?;
            if misfit.is_some() {
                self.depth -= 1;
                return Ok(misfit);
            }
        }
        self.depth -= 1;
        Ok(None)
    }

    fn keyword(&mut self, keyword: &'s Keyword, at: At) -> Found {
        match keyword {
            Keyword::AllOf(schemas) => self.all(schemas.iter().map(|schema| (*schema, at.node))),
            Keyword::AnyOf(schemas) => self.any_of(schemas, at),
            Keyword::OneOf(schemas) => self.one_of(schemas, at),
            Keyword::Not(schema) => Ok(at.unless(self.visit(*schema, at.node)?.is_some())),
            Keyword::If { test, then, otherwise } => {
                let chosen = if self.visit(*test, at.node)?.is_none() { then } else { otherwise };
                chosen.map_or(Ok(None), |schema| self.visit(schema, at.node))
            }
            Keyword::Reference(place) => self.visit(self.schema.targets[*place], at.node),
            Keyword::UnevaluatedItems(schema) | Keyword::UnevaluatedProperties(schema) => {
                self.unevaluated(keyword, *schema, at)
            }
            _ => match self.document.node(at.node) {
                Node::Object(_) => self.of_object(keyword, at),
                Node::Array(_) => self.of_array(keyword, at),
                _ => self.of_any(keyword, at),
            },
        }
    }

    fn all(&mut self, pairs: impl Iterator<Item = (SchemaId, NodeId)>) -> Found {
        for (schema, node) in pairs {
            self.spend(1)?;
            let misfit = self.visit(schema, node)?;
            if misfit.is_some() {
                return Ok(misfit);
            }
        }
        Ok(None)
    }

    fn any_of(&mut self, schemas: &[SchemaId], at: At) -> Found {
        let mut deepest = None;
        for schema in schemas {
            self.spend(1)?;
            match self.visit(*schema, at.node)? {
                None => return Ok(None),
                Some(misfit) => self.deeper(&mut deepest, misfit),
            }
        }
        Ok(Some(self.told(deepest, at)))
    }

    fn one_of(&mut self, schemas: &[SchemaId], at: At) -> Found {
        let (mut deepest, mut fitting) = (None, 0);
        for schema in schemas {
            self.spend(1)?;
            match self.visit(*schema, at.node)? {
                None => fitting += 1,
                Some(misfit) => self.deeper(&mut deepest, misfit),
            }
        }
        Ok(match fitting {
            0 => Some(self.told(deepest, at)),
            1 => None,
            _ => Some(at.misfit()),
        })
    }

    fn deeper(&self, deepest: &mut Option<Misfit>, misfit: Misfit) {
        let depth = |misfit: &Misfit| self.document.depth(misfit.node);
        if deepest.as_ref().is_none_or(|known| depth(known) < depth(&misfit)) {
            *deepest = Some(misfit);
        }
    }

    /// The branch that came furthest tells most; if none got beyond this node, that none fits does.
    fn told(&self, deepest: Option<Misfit>, at: At) -> Misfit {
        let here = self.document.depth(at.node);
        deepest.filter(|misfit| self.document.depth(misfit.node) > here).unwrap_or_else(|| at.misfit())
    }

    /// What any value can be asked.
    fn of_any(&mut self, keyword: &'s Keyword, at: At) -> Found {
        let holds = match (keyword, self.document.node(at.node)) {
            (Keyword::Never, _) => false,
            (Keyword::Types(types), node) => types.hold(node),
            (Keyword::Values(values, _), _) => values.contains(&self.canonical(at.node)?),
            (Keyword::Bound(bound, limit), Node::Number(text)) => {
                self.spend_text(text.len())?;
                let order = Decimal::parse(text).compare(limit);
                match bound {
                    Bound::Minimum => order.is_ge(),
                    Bound::Maximum => order.is_le(),
                    Bound::ExclusiveMinimum => order.is_gt(),
                    Bound::ExclusiveMaximum => order.is_lt(),
                }
            }
            (Keyword::MultipleOf(divisor), Node::Number(text)) => {
                self.spend_text(text.len())?;
                Decimal::parse(text).is_multiple_of(divisor)
            }
            (Keyword::Count(Counted::Characters, side, limit), Node::String(text)) => {
                self.spend_text(text.len())?;
                within(text.chars().count(), *side, *limit)
            }
            (Keyword::Pattern(pattern), Node::String(text)) => {
                self.spend(pattern.cost(text))?;
                pattern.matches(text)
            }
            _ => true,
        };
        Ok(at.unless(holds))
    }

    fn canonical(&mut self, node: NodeId) -> Result<String, Stop> {
        let mut text = String::new();
        self.document.canonical(node, &mut text);
        self.spend(MEMORY)?;
        self.spend_text(text.len())?;
        Ok(text)
    }

    fn of_array(&mut self, keyword: &'s Keyword, at: At) -> Found {
        let elements = self.document.elements(at.node);
        match keyword {
            Keyword::Count(Counted::Elements, side, limit) => Ok(at.unless(within(elements.len(), *side, *limit))),
            Keyword::UniqueItems => {
                let mut seen = HashSet::with_capacity(elements.len());
                for element in elements {
                    self.spend(1)?;
                    if !seen.insert(self.canonical(*element)?) {
                        return Ok(Some(at.misfit()));
                    }
                }
                Ok(None)
            }
            Keyword::Items { prefix, rest } => {
                let schemas = prefix.iter().copied().map(Some).chain(std::iter::repeat(*rest));
                self.all(elements.iter().zip(schemas).map_while(|(element, schema)| Some((schema?, *element))))
            }
            Keyword::Contains { schema, min, max } => {
                let mut fitting = 0;
                for element in elements {
                    self.spend(1)?;
                    fitting += u64::from(self.visit(*schema, *element)?.is_none());
                }
                Ok(at.unless((*min..=*max).contains(&fitting)))
            }
            _ => self.of_any(keyword, at),
        }
    }

    fn of_object(&mut self, keyword: &'s Keyword, at: At) -> Found {
        let (document, node) = (self.document, at.node);
        let has = |name: &String| document.member(node, name).is_some();
        match keyword {
            Keyword::Count(Counted::Members, side, limit) => {
                Ok(at.unless(within(document.members(node).len(), *side, *limit)))
            }
            Keyword::Required(names) => {
                self.spend(names.len() as u64)?;
                Ok(at.unless(names.iter().all(has)))
            }
            Keyword::DependentRequired(names) => {
                for (name, required) in names {
                    self.spend(1 + required.len() as u64)?;
                    if has(name) && !required.iter().all(has) {
                        return Ok(Some(at.misfit()));
                    }
                }
                Ok(None)
            }
            Keyword::DependentSchemas(schemas) => {
                self.spend(schemas.len() as u64)?;
                let present = schemas.iter().filter(|(name, _)| has(name));
                self.all(present.map(|(_, schema)| (*schema, node)))
            }
            Keyword::PropertyNames(schema) => self.all(document.members(node).iter().map(|(key, _)| (*schema, *key))),
            Keyword::Properties(properties) => {
                for (key, value) in document.members(node) {
                    let misfit = self.property(properties, *key, *value)?;
                    if misfit.is_some() {
                        return Ok(misfit);
                    }
                }
                Ok(None)
            }
            _ => self.of_any(keyword, at),
        }
    }

    fn property(&mut self, properties: &'s Properties, key: NodeId, value: NodeId) -> Found {
        let name = self.document.string(key).unwrap_or_default();
        self.spend_text(name.len())?;
        self.spend(1)?;
        let mut is_known = false;
        if let Some(schema) = properties.named.get(name) {
            is_known = true;
            let misfit = self.visit(*schema, value)?;
            if misfit.is_some() {
                return Ok(misfit);
            }
        }
        for (pattern, schema) in &properties.patterns {
            self.spend(pattern.cost(name))?;
            if pattern.matches(name) {
                is_known = true;
                let misfit = self.visit(*schema, value)?;
                if misfit.is_some() {
                    return Ok(misfit);
                }
            }
        }
        match properties.rest {
            Some(rest) if !is_known && !properties.open => self.visit(rest, value),
            _ => Ok(None),
        }
    }
}

const fn within(count: usize, side: Side, limit: u64) -> bool {
    match side {
        Side::Least => count as u64 >= limit,
        Side::Most => count as u64 <= limit,
    }
}
