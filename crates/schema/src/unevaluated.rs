//! `unevaluatedItems` and `unevaluatedProperties`: what no other keyword of the schema has looked at.

use std::collections::HashSet;

use crate::document::NodeId;
use crate::evaluate::{At, Evaluation, Found, Stop};
use crate::keyword::{Keyword, Properties, SchemaId};

/// What has been looked at of one node: its elements, or its members, by place.
struct Marks {
    seen: Vec<bool>,
    /// The schemas whose marks are in it: two ways to one schema mark the same.
    schemas: HashSet<SchemaId>,
}

impl<'s> Evaluation<'s, '_> {
    pub(crate) fn unevaluated(&mut self, keyword: &Keyword, schema: SchemaId, at: At) -> Found {
        let children: Vec<NodeId> = match keyword {
            Keyword::UnevaluatedItems(_) => self.document.elements(at.node).to_vec(),
            _ => self.document.members(at.node).iter().map(|(_, value)| *value).collect(),
        };
        if children.is_empty() {
            return Ok(None);
        }
        self.spend(children.len() as u64)?;
        let mut marks = Marks { seen: vec![false; children.len()], schemas: HashSet::new() };
        self.mark(at.misfit().schema, at.node, at.misfit().place, &mut marks)?;
        for (child, _) in children.iter().zip(&marks.seen).filter(|(_, seen)| !**seen) {
            self.spend(1)?;
            let misfit = self.visit(schema, *child)?;
            if misfit.is_some() {
                return Ok(misfit);
            }
        }
        Ok(None)
    }

    /// What the first keywords of a schema that fits at the node have looked at.
    fn mark(&mut self, schema: SchemaId, node: NodeId, keywords: usize, marks: &mut Marks) -> Result<(), Stop> {
        if !marks.schemas.insert(schema) {
            return Ok(());
        }
        for keyword in self.schema.schemas[schema].0.iter().take(keywords) {
            self.spend(1)?;
            self.mark_by(keyword, node, marks)?;
        }
        Ok(())
    }

    fn mark_by(&mut self, keyword: &'s Keyword, node: NodeId, marks: &mut Marks) -> Result<(), Stop> {
        match keyword {
            Keyword::Reference(place) => self.mark_fitting(&[self.schema.targets[*place]], node, marks),
            Keyword::AllOf(schemas) | Keyword::AnyOf(schemas) | Keyword::OneOf(schemas) => {
                self.mark_fitting(schemas, node, marks)
            }
            Keyword::DependentSchemas(schemas) => {
                self.spend(schemas.len() as u64)?;
                let document = self.document;
                let present = schemas.iter().filter(|(name, _)| document.member(node, name).is_some());
                let present: Vec<SchemaId> = present.map(|(_, schema)| *schema).collect();
                self.mark_fitting(&present, node, marks)
            }
            Keyword::If { test, then, otherwise } => {
                let chosen = if self.visit(*test, node)?.is_none() { then } else { otherwise };
                self.mark_fitting(&[*test], node, marks)?;
                self.mark_fitting(chosen.as_slice(), node, marks)
            }
            Keyword::Items { prefix, rest } => {
                self.spend(marks.seen.len() as u64)?;
                let count = if rest.is_some() { usize::MAX } else { prefix.len() };
                if !self.document.elements(node).is_empty() {
                    marks.seen.iter_mut().take(count).for_each(|seen| *seen = true);
                }
                Ok(())
            }
            Keyword::Contains { schema, .. } => {
                for (place, element) in self.document.elements(node).iter().enumerate() {
                    self.spend(1)?;
                    if self.visit(*schema, *element)?.is_none() {
                        marks.seen[place] = true;
                    }
                }
                Ok(())
            }
            Keyword::Properties(properties) => self.mark_properties(properties, node, marks),
            Keyword::UnevaluatedItems(_) if !self.document.elements(node).is_empty() => {
                self.spend(marks.seen.len() as u64)?;
                marks.seen.fill(true);
                Ok(())
            }
            Keyword::UnevaluatedProperties(_) if !self.document.members(node).is_empty() => {
                self.spend(marks.seen.len() as u64)?;
                marks.seen.fill(true);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn mark_fitting(&mut self, schemas: &[SchemaId], node: NodeId, marks: &mut Marks) -> Result<(), Stop> {
        for schema in schemas {
            if self.visit(*schema, node)?.is_none() {
                self.mark(*schema, node, usize::MAX, marks)?;
            }
        }
        Ok(())
    }

    fn mark_properties(&mut self, properties: &Properties, node: NodeId, marks: &mut Marks) -> Result<(), Stop> {
        for (place, (key, _)) in self.document.members(node).iter().enumerate() {
            self.spend(1)?;
            let name = self.document.string(*key).unwrap_or_default();
            let mut seen = properties.rest.is_some() || properties.open || properties.named.contains_key(name);
            for (pattern, _) in &properties.patterns {
                self.spend(pattern.cost(name))?;
                seen = seen || pattern.matches(name);
            }
            marks.seen[place] |= seen;
        }
        Ok(())
    }
}
