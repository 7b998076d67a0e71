//! Values made from a JSON Schema: the least that it takes, everything it knows, and each alternative once.

use serde_json::{Map, Value, json};

pub(super) struct Examples {
    components: Value,
}

impl Examples {
    /// Of OpenAI's document; none where the schemas are not beside this clone.
    pub(super) fn load() -> Option<Self> {
        let path = testkit::shared_files("schemas", |name| name == "responses-openapi.json")?.pop()?;
        let document: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        Some(Self { components: document["components"]["schemas"].clone() })
    }

    fn resolve<'s>(&'s self, mut schema: &'s Value) -> &'s Value {
        while let Some(reference) = schema["$ref"].as_str() {
            schema = &self.components[reference.rsplit('/').next().unwrap()];
        }
        schema
    }

    /// The names of the components that a union names, those of unions within it included.
    pub(super) fn members(&self, component: &str) -> Vec<String> {
        let union = self.components[component]["anyOf"].as_array().unwrap();
        let names = union.iter().map(|member| member["$ref"].as_str().unwrap().rsplit('/').next().unwrap());
        let nested = |name: &str| self.components[name]["anyOf"].is_array();
        let members = names.map(|name| if nested(name) { self.members(name) } else { vec![name.to_owned()] });
        members.flatten().collect()
    }

    pub(super) fn of(&self, component: &str) -> Vec<Value> {
        self.all(&self.components[component], 3)
    }

    /// The least (`full: false`), or with everything.
    fn one(&self, schema: &Value, full: bool) -> Value {
        let schema = self.resolve(schema);
        if let Some(first) = schema["enum"].get(0) {
            return first.clone();
        }
        if let Some(first) = schema["anyOf"].get(0) {
            // Any tool will do; they are the same in and out.
            let function = |tool: &&Value| tool["$ref"].as_str().is_some_and(|name| name.ends_with("/FunctionTool"));
            let tool = schema["anyOf"].as_array().unwrap().iter().find(function);
            return self.one(tool.unwrap_or(first), full);
        }
        match schema["type"].as_str() {
            Some("object") => self.object(schema, full),
            Some("array") if full => json!([self.one(&schema["items"], full)]),
            Some("array") => json!([]),
            Some("integer") => json!(1),
            Some("number") => json!(0.5),
            Some("boolean") => json!(true),
            Some("null") => Value::Null,
            Some(_) if schema["format"] == "uri" => json!("https://example.com/x"),
            Some(_) => json!("x"),
            None => json!({}),
        }
    }

    fn object(&self, schema: &Value, full: bool) -> Value {
        let mut object = Map::new();
        for name in schema["required"].as_array().into_iter().flatten().map(|name| name.as_str().unwrap()) {
            // Some are required that nothing more is said of.
            let value = schema["properties"].get(name).map_or(json!("x"), |property| self.one(property, full));
            object.insert(name.to_owned(), value);
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten().filter(|_| full) {
            object.entry(name).or_insert_with(|| self.one(property, full));
        }
        Value::Object(object)
    }

    /// The least, everything, and the least with each alternative of each property, so many levels down.
    fn all(&self, schema: &Value, levels: usize) -> Vec<Value> {
        let schema = self.resolve(schema);
        let nested = |schema: &Value| self.all(schema, levels);
        if levels == 0 {
            return vec![self.one(schema, false), self.one(schema, true)];
        }
        if let Some(values) = schema["enum"].as_array() {
            return values.clone();
        }
        if let Some(union) = schema["anyOf"].as_array() {
            // Tools are the same in and out: one of them will do.
            return if union.len() > 10 {
                vec![self.one(schema, false)]
            } else {
                union.iter().flat_map(nested).collect()
            };
        }
        match schema["type"].as_str() {
            Some("array") => {
                nested(&schema["items"]).into_iter().map(|item| json!([item])).chain([json!([])]).collect()
            }
            Some("object") => {
                let least = self.object(schema, false);
                let mut all = vec![least.clone(), self.object(schema, true)];
                for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                    for value in self.all(property, levels - 1) {
                        let mut object = least.clone();
                        object[name] = value;
                        all.push(object);
                    }
                }
                all
            }
            _ => vec![self.one(schema, false)],
        }
    }
}
