//! The two published schemas, `OpenAI`'s and Open Responses', as validators for what we emit. They live in the
//! shared folder beside the clone. Without it callers skip, which is reported; the types of the official SDKs, which
//! come from package registries, are checked everywhere (`tests/clients/types`).

mod tolerated;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jsonschema::{Registry, Validator};
use serde_json::{Value, json};

use crate::place;
use crate::skip::{skipped, skipped_in_part};
use tolerated::tolerated;

const LACKING: &str = "../shared/schemas";

/// Validators for response objects and stream events, compiled when first used.
#[derive(Debug, Clone, Copy)]
pub struct Schemas {
    openai: &'static Document,
    open_responses: &'static Document,
}

impl Schemas {
    /// For a test that is about the schemas. `None`, and the test is reported as skipped, when they are not beside
    /// this clone.
    pub fn load() -> Option<Self> {
        let schemas = Self::read();
        if schemas.is_none() {
            skipped(LACKING);
        }
        schemas
    }

    /// For a test that has more to check. `None`, and the test is reported as skipped in part, when they are not
    /// beside this clone.
    pub fn if_present() -> Option<Self> {
        let schemas = Self::read();
        if schemas.is_none() {
            skipped_in_part(LACKING);
        }
        schemas
    }

    /// They are read once per process.
    fn read() -> Option<Self> {
        static LOADED: OnceLock<Option<(Document, Document)>> = OnceLock::new();
        let loaded = LOADED.get_or_init(|| {
            let openai = Document::read(&place::shared("schemas/responses-openapi.json")?)?;
            let open_responses = Document::read(&place::shared("schemas/open-responses-openapi.json")?)?;
            Some((openai, open_responses))
        });
        loaded.as_ref().map(|(openai, open_responses)| Self { openai, open_responses })
    }

    /// What is wrong with a response object, by either schema; empty when nothing is.
    pub fn response(&self, response: &Value) -> Vec<String> {
        let by = |name, document: &Document, component| {
            tolerated(name, response).map(|seen| document.validate(component, &seen)).unwrap_or_default()
        };
        let mut problems = by("openai", self.openai, "Response");
        problems.extend(by("open-responses", self.open_responses, "ResponseResource"));
        problems
    }

    /// What is wrong with a stream event, by either schema.
    pub fn event(&self, event: &Value) -> Vec<String> {
        let name = event["type"].as_str().unwrap_or_default();
        let mut problems = Vec::new();
        for (by, document) in [("openai", self.openai), ("open-responses", self.open_responses)] {
            let Some(event) = tolerated(by, event) else { continue };
            match document.event_component(name) {
                Some(component) => problems.extend(document.validate(component, &event)),
                None => problems.push(format!("{} has no event {name:?}", document.title)),
            }
        }
        problems
    }

    /// Any component of `OpenAI`'s document, by its name there.
    pub fn openai(&self, component: &str, value: &Value) -> Vec<String> {
        self.openai.validate(component, value)
    }
}

/// One `OpenAPI` document whose components are JSON Schemas.
#[derive(Debug)]
struct Document {
    title: String,
    registry: Registry<'static>,
    /// Event type to component name.
    events: HashMap<String, String>,
    compiled: Mutex<HashMap<String, Arc<Validator>>>,
}

const ADDRESS: &str = "urn:godex:schema";

impl Document {
    /// `None` when the file is no such document: then it is as good as absent.
    fn read(path: &Path) -> Option<Self> {
        let document: Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        let title = document["info"]["title"].as_str()?.to_owned();
        let events = document["x-stream-events"].as_object()?.iter();
        let events = events.filter_map(|(name, part)| Some((name.clone(), part.as_str()?.to_owned()))).collect();
        let registry = Registry::new().add(ADDRESS, document).ok()?.prepare().ok()?;
        Some(Self { title, registry, events, compiled: Mutex::default() })
    }

    fn event_component(&self, name: &str) -> Option<&str> {
        self.events.get(name).map(String::as_str)
    }

    fn validate(&self, component: &str, value: &Value) -> Vec<String> {
        let validator = match self.validator(component) {
            Ok(validator) => validator,
            Err(problem) => return vec![problem],
        };
        let describe = |error: jsonschema::ValidationError<'_>| {
            let mut text = error.to_string();
            text.truncate(text.floor_char_boundary(600));
            format!("{} {component}{}: {text}", self.title, error.instance_path())
        };
        validator.iter_errors(value).map(describe).collect()
    }

    fn validator(&self, component: &str) -> Result<Arc<Validator>, String> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(validator) = compiled.get(component) {
            return Ok(Arc::clone(validator));
        }
        let schema = json!({"$ref": format!("{ADDRESS}#/components/schemas/{component}")});
        let built = jsonschema::options().with_registry(&self.registry).offline().build(&schema);
        let validator = Arc::new(built.map_err(|error| format!("{component} does not compile: {error}"))?);
        compiled.insert(component.to_owned(), Arc::clone(&validator));
        Ok(validator)
    }
}

#[cfg(test)]
mod tests;
