//! What a request says, as a spec writes it: text in which `$NAME` stands for what is asked, and JSON whose strings do.
//! An object with the one key `"$context_size"` takes what it has for that, or for `default`. What is not asked leaves its
//! member out.

use wire::json::{Kind, ObjectWriter, Raw, Text, write_text};

use super::request::{Ask, ContextSize};

const NAMES: &[&str] = &["query", "count", "country", "country_lower", "language", "domains", "domain", "context_size"];

/// The value of a variable.
enum Value {
    Text(String),
    Number(usize),
    List(Vec<String>),
}

/// Whether a text of a query is plain, or a variable that there is.
pub(super) fn check_text(text: &str) -> Result<(), String> {
    match text.strip_prefix('$') {
        Some(name) => known(name),
        None => Ok(()),
    }
}

/// Whether the body is an object with variables that there are.
pub(super) fn check_body(text: &str) -> Result<(), String> {
    match Raw::parse(text) {
        Ok(body) if body.kind() == Kind::Object && table(body).is_none() => check(body),
        _ => Err("expected a JSON object in quotes".to_owned()),
    }
}

fn check(value: Raw<'_>) -> Result<(), String> {
    match value.kind() {
        Kind::String => check_text(&value.text().map(Text::decode).unwrap_or_default()),
        Kind::Array => value.elements().try_for_each(check),
        Kind::Object => match table(value) {
            Some((name, _)) if name != "context_size" => Err("only `$context_size` chooses from a table".to_owned()),
            _ => value.fields().try_for_each(|(_, value)| check(value)),
        },
        _ => Ok(()),
    }
}

fn known(name: &str) -> Result<(), String> {
    if NAMES.contains(&name) {
        return Ok(());
    }
    let names: Vec<_> = NAMES.iter().map(|name| format!("`${name}`")).collect();
    Err(format!("there is no variable `${name}`; variables: {}", names.join(", ")))
}

/// What a text says; none where it is a variable without a value.
pub(super) fn text(template: &str, ask: &Ask<'_>) -> Option<String> {
    let Some(name) = template.strip_prefix('$') else { return Some(template.to_owned()) };
    Some(match value(name, ask)? {
        Value::Text(text) => text,
        Value::Number(number) => number.to_string(),
        Value::List(list) => list.join(","),
    })
}

/// The body, with one more member for domains.
pub(super) fn body(template: &str, domains_field: Option<&str>, ask: &Ask<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut object = ObjectWriter::new(&mut out);
    members(Raw::parse(template).unwrap_or(Raw::NULL), ask, &mut object);
    if let (Some(name), Some(Value::List(list))) = (domains_field, value("domains", ask)) {
        write_list(&list, object.key(name));
    }
    object.end();
    out
}

fn members(value: Raw<'_>, ask: &Ask<'_>, object: &mut ObjectWriter<'_>) {
    for (key, value) in value.fields() {
        let mut inner = Vec::new();
        if write(value, ask, &mut inner) {
            object.json(&key.decode(), &inner);
        }
    }
}

/// Whether there was something to write.
fn write(template: Raw<'_>, ask: &Ask<'_>, out: &mut Vec<u8>) -> bool {
    match template.kind() {
        Kind::Object => {
            if let Some((_, table)) = table(template) {
                let chosen = table.get(ask.size.name()).or_else(|| table.get("default"));
                out.extend_from_slice(chosen.map(Raw::as_str).unwrap_or_default().as_bytes());
                return chosen.is_some();
            }
            let mut object = ObjectWriter::new(out);
            members(template, ask, &mut object);
            object.end();
        }
        Kind::Array => {
            out.push(b'[');
            let start = out.len();
            for element in template.elements() {
                let mut inner = Vec::new();
                if write(element, ask, &mut inner) {
                    if out.len() > start {
                        out.push(b',');
                    }
                    out.extend_from_slice(&inner);
                }
            }
            out.push(b']');
        }
        Kind::String => {
            let text = template.text().map(Text::decode).unwrap_or_default();
            let Some(name) = text.strip_prefix('$') else {
                out.extend_from_slice(template.as_str().as_bytes());
                return true;
            };
            match value(name, ask) {
                None => return false,
                Some(Value::Text(text)) => write_text(out, &text),
                Some(Value::Number(number)) => out.extend_from_slice(number.to_string().as_bytes()),
                Some(Value::List(list)) => write_list(&list, out),
            }
        }
        _ => out.extend_from_slice(template.as_str().as_bytes()),
    }
    true
}

fn write_list(list: &[String], out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, text) in list.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_text(out, text);
    }
    out.push(b']');
}

fn table(value: Raw<'_>) -> Option<(String, Raw<'_>)> {
    let mut fields = value.fields();
    let (key, table) = fields.next().filter(|_| fields.next().is_none())?;
    Some((key.decode().strip_prefix('$')?.to_owned(), table))
}

fn value(name: &str, ask: &Ask<'_>) -> Option<Value> {
    let text = |text: Option<&str>| text.map(|text| Value::Text(text.to_owned()));
    match name {
        "query" => text(Some(ask.query)),
        "count" => Some(Value::Number(ask.count)),
        "country" => ask.country.map(|country| Value::Text(country.to_ascii_uppercase())),
        "country_lower" => ask.country.map(|country| Value::Text(country.to_ascii_lowercase())),
        "language" => text(ask.language),
        "domains" => (!ask.domains.is_empty()).then(|| Value::List(ask.domains.to_vec())),
        "domain" => text(ask.domains.first().map(String::as_str)),
        "context_size" => text(Some(ask.size.name())),
        _ => None,
    }
}

impl ContextSize {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}
