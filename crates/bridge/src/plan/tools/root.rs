//! Parameters whose root is a choice between schemas, or several schemas at once, as one object: for providers that take
//! no such root. What any of them has may be given; what each of them demands is demanded.

use std::collections::{BTreeMap, BTreeSet};

use wire::json::{Kind, Raw};

/// How deep such schemas may be in each other.
const DEPTH: usize = 8;

/// The properties of several schemas together.
#[derive(Debug, Default)]
pub(super) struct Flat<'s> {
    /// In the order in which they came, each with all that it may be.
    properties: Vec<(String, Vec<Raw<'s>>)>,
    places: BTreeMap<String, usize>,
    required: Vec<String>,
}

impl<'s> Flat<'s> {
    /// Of a schema whose root is such a one; none where it is an object already.
    pub(super) fn of(schema: Raw<'s>) -> Option<Self> {
        if !schema.fields().any(|(key, _)| is_joint(&key.decode())) {
            return None;
        }
        let definitions = ["$defs", "definitions"].into_iter().flat_map(|list| {
            let members = schema.get(list).into_iter().flat_map(Raw::fields);
            members.map(move |(name, schema)| (format!("#/{list}/{}", name.decode()), schema))
        });
        let room = 16 * schema.as_str().len() + (64 << 10);
        let mut reading = Reading { definitions: definitions.collect(), room, is_cut: false };
        let mut flat = reading.schema(schema, 0);
        if reading.is_cut {
            flat.open_but(&Self::own(schema));
        }
        Some(flat)
    }

    /// Not all was read: what is known forbids and demands nothing any more, but for what the root says itself.
    fn open_but(&mut self, root: &Self) {
        for (name, schemas) in &mut self.properties {
            if !root.places.contains_key(name) {
                *schemas = vec![Raw::ours("{}")];
            }
        }
        self.required.clone_from(&root.required);
    }

    /// Each property, and all that it may be, once.
    pub(super) fn properties(&self) -> impl Iterator<Item = (&str, Vec<Raw<'s>>)> {
        self.properties.iter().map(|(name, schemas)| {
            let mut known = BTreeSet::new();
            let schemas = schemas.iter().filter(|schema| known.insert(schema.as_str())).copied().collect();
            (name.as_str(), schemas)
        })
    }

    /// What has to be there.
    pub(super) fn required(&self) -> Vec<&str> {
        let mut known = BTreeSet::new();
        self.required.iter().map(String::as_str).filter(|name| known.insert(*name)).collect()
    }

    /// What a schema says itself.
    fn own(schema: Raw<'s>) -> Self {
        let mut flat = Self::default();
        for (name, property) in schema.get("properties").into_iter().flat_map(Raw::fields) {
            flat.property(name.decode().into_owned(), vec![property]);
        }
        let names = schema.get("required").into_iter().flat_map(Raw::elements).filter_map(Raw::text);
        flat.required = names.map(|name| name.decode().into_owned()).collect();
        flat
    }

    fn property(&mut self, name: String, schemas: Vec<Raw<'s>>) {
        self.places.insert(name.clone(), self.properties.len());
        self.properties.push((name, schemas));
    }

    /// Both have to fit: of a property that both have, the first one counts.
    fn and(&mut self, other: Self) {
        for (name, schemas) in other.properties {
            if !self.places.contains_key(&name) {
                self.property(name, schemas);
            }
        }
        self.required.extend(other.required);
    }

    /// One of both has to fit.
    fn or(&mut self, other: Self) {
        for (name, schemas) in other.properties {
            let known = self.places.get(&name).and_then(|place| self.properties.get_mut(*place));
            match known {
                Some((_, known)) => known.extend(schemas),
                None => self.property(name, schemas),
            }
        }
        let required: BTreeSet<String> = other.required.into_iter().collect();
        self.required.retain(|name| required.contains(name));
    }
}

struct Reading<'s> {
    /// By how they are referred to.
    definitions: BTreeMap<String, Raw<'s>>,
    /// So many bytes of schemas may still be read: what is referred to may be read often.
    room: usize,
    /// It was not enough, or they were too deep in each other.
    is_cut: bool,
}

impl<'s> Reading<'s> {
    fn schema(&mut self, schema: Raw<'s>, depth: usize) -> Flat<'s> {
        let Some(room) = self.room.checked_sub(schema.as_str().len()).filter(|_| depth < DEPTH) else {
            self.is_cut = true;
            return Flat::default();
        };
        self.room = room;
        let mut flat = Flat::own(schema);
        // A root that refers to another schema stays what it is.
        let reference = schema.get("$ref").and_then(Raw::text).filter(|_| depth > 0);
        if let Some(target) = reference.and_then(|name| self.definitions.get(&*name.decode()).copied()) {
            flat.and(self.schema(target, depth + 1));
        }
        for (key, schemas) in schema.fields() {
            match &*key.decode() {
                "allOf" => schemas.elements().for_each(|schema| flat.and(self.schema(schema, depth + 1))),
                "anyOf" | "oneOf" => flat.and(self.either(schemas, depth + 1)),
                _ => {}
            }
        }
        flat
    }

    /// What one of these has to fit.
    fn either(&mut self, schemas: Raw<'s>, depth: usize) -> Flat<'s> {
        let mut all: Option<Flat<'s>> = None;
        for schema in schemas.elements().filter(|schema| may_be_object(*schema)) {
            let flat = self.schema(schema, depth);
            match &mut all {
                Some(all) => all.or(flat),
                None => all = Some(flat),
            }
        }
        all.unwrap_or_default()
    }
}

/// Whether it is made of schemas that have to fit together, or of which one has to.
pub(super) fn is_joint(key: &str) -> bool {
    matches!(key, "anyOf" | "oneOf" | "allOf")
}

/// Whether an object can fit it: arguments are always one.
fn may_be_object(schema: Raw<'_>) -> bool {
    let is_object = |kind: Raw<'_>| kind.as_str() == "\"object\"";
    match schema.get("type") {
        Some(kind) if kind.kind() == Kind::Array => kind.elements().any(is_object),
        Some(kind) => is_object(kind),
        None => schema.as_str() != "false",
    }
}
