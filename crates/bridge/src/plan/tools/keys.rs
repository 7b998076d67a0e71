//! Names of a tool's properties for providers that refuse a whole request because of an unusual one: letters, digits,
//! `_`, `.` and `-`, at most 64. Others are renamed, the same way in every request, and calls are renamed back.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use wire::chat::Json;
use wire::json::{Kind, ObjectWriter, Raw, write_text};

use crate::context::RenamedKey;
use crate::keys;
use crate::plan::content::clean;
use crate::plan::json;

const LONGEST: usize = 64;

/// The parameters under names that are taken, and which ones changed; none where all are.
pub(super) fn renamed(parameters: &Json<'_>) -> Option<(Json<'static>, Vec<RenamedKey>)> {
    let schema = match parameters {
        Json::Wire(schema) => *schema,
        Json::Ours(text) => Raw::ours(str::from_utf8(text).ok()?),
    };
    let properties = schema.get("properties")?;
    if properties.fields().all(|(name, _)| is_plain(&name.decode())) {
        return None;
    }
    let keys = plain_names(properties);
    let text = json::text(|out| {
        let mut object = ObjectWriter::new(out);
        for (key, value) in schema.fields() {
            match &*key.decode() {
                "properties" => {
                    let mut named = ObjectWriter::new(object.key("properties"));
                    for (name, property) in value.fields() {
                        let own = name.decode();
                        match keys::sent_name(&keys, &own) {
                            Some(sent) => explained(property, &own, named.key(sent)),
                            None => drop(named.raw(&own, property)),
                        }
                    }
                    named.end();
                }
                "required" if value.kind() == Kind::Array => {
                    let out = object.key("required");
                    out.push(b'[');
                    for (index, name) in value.elements().enumerate() {
                        if index > 0 {
                            out.push(b',');
                        }
                        let sent = name.text().and_then(|name| keys::sent_name(&keys, &name.decode()));
                        match sent {
                            Some(sent) => write_text(out, sent),
                            None => out.extend_from_slice(name.as_str().as_bytes()),
                        }
                    }
                    out.push(b']');
                }
                key => drop(object.raw(key, value)),
            }
        }
        object.end();
    });
    Some((Json::Ours(clean(&text).into_owned().into_bytes()), keys))
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.len() <= LONGEST && name.chars().all(is_allowed)
}

const fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')
}

/// Each name that is not taken, and one that is and that nothing else has; in the order of the former.
fn plain_names(properties: Raw<'_>) -> Vec<RenamedKey> {
    let (plain, odd): (Vec<_>, Vec<_>) =
        properties.fields().map(|(name, _)| name.decode()).partition(|name| is_plain(name));
    let mut known: BTreeSet<String> = plain.into_iter().map(Cow::into_owned).collect();
    let (mut renamed, mut numbers) = (BTreeMap::new(), BTreeMap::new());
    for own in odd {
        if renamed.contains_key(&*own) {
            continue;
        }
        let mut readable: String = own.chars().map(|c| if is_allowed(c) { c } else { '_' }).take(LONGEST).collect();
        if readable.is_empty() {
            readable.push('_');
        }
        let mut sent = readable.clone();
        while known.contains(&sent) {
            let number = numbers.entry(readable.clone()).or_insert(1);
            *number += 1;
            let tail = format!("_{number}");
            // All of it is ASCII by now.
            sent = readable.get(..readable.len().min(LONGEST - tail.len())).unwrap_or_default().to_owned() + &tail;
        }
        known.insert(sent.clone());
        renamed.insert(own.into_owned(), sent);
    }
    renamed.into_iter().map(|(own, sent)| RenamedKey { own, sent }).collect()
}

/// A property under another name, which says its own.
fn explained(property: Raw<'_>, own: &str, out: &mut Vec<u8>) {
    if property.as_str() == "false" {
        return out.extend_from_slice(b"false");
    }
    let mut name = format!("The tool itself calls it `{own}`.");
    if let Some(about) = property.get("description").and_then(Raw::text).filter(|about| !about.is_empty()) {
        name = format!("{} ({name})", about.decode());
    }
    let mut object = ObjectWriter::new(out);
    for (key, value) in property.fields().filter(|(key, _)| !key.is("description")) {
        object.raw(&key.decode(), value);
    }
    object.text("description", &name);
    object.end();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusual_names_become_usual_ones() {
        let long = "x".repeat(65);
        let cut = "x".repeat(64);
        for (properties, required, expected, expected_required) in [
            (r#""$top":{},"b":{}"#.to_owned(), r#"["b","$top"]"#, vec!["_top", "b"], r#"["b","_top"]"#),
            // None that another has, in the order in which they are declared.
            (r#""a b":{},"a_b":{},"a[b":{}"#.to_owned(), r#"["a[b"]"#, vec!["a_b_2", "a_b", "a_b_3"], r#"["a_b_3"]"#),
            (r#""é":true,"":{"type":"string"}"#.to_owned(), "[]", vec!["_", "__2"], "[]"),
            (format!(r#""{long}":{{}},"{cut}":{{}}"#), "[1]", vec![&*format!("{}_2", &cut[..62]), &*cut], "[1]"),
        ] {
            let schema = format!(r#"{{"type":"object","properties":{{{properties}}},"required":{required}}}"#);
            let (json, _) = renamed(&Json::Wire(Raw::parse(&schema).unwrap())).unwrap();
            let again = renamed(&json);
            assert!(again.is_none(), "{again:?}");
            let mut out = Vec::new();
            json.write(&mut out);
            let text = String::from_utf8(out).unwrap();
            let written = Raw::parse(&text).unwrap();
            let names: Vec<_> = written.get("properties").unwrap().fields().map(|(name, _)| name.decode()).collect();
            assert_eq!(names, expected, "{schema}");
            assert_eq!(written.get("required").unwrap().as_str(), expected_required, "{schema}");
        }
        let plain = r#"{"properties":{"a.b-C_9":{"properties":{"$x":{}}}},"required":["$x"]}"#;
        assert!(renamed(&Json::Wire(Raw::parse(plain).unwrap())).is_none());
    }

    #[test]
    fn what_is_renamed_says_its_own_name() {
        for (property, expected) in [
            ("{}", r#"{"description":"The tool itself calls it `$x`."}"#),
            ("true", r#"{"description":"The tool itself calls it `$x`."}"#),
            ("false", "false"),
            (
                r#"{"description":"How \"many\".","type": "integer"}"#,
                r#"{"type":"integer","description":"How \"many\". (The tool itself calls it `$x`.)"}"#,
            ),
        ] {
            let mut out = Vec::new();
            explained(Raw::parse(property).unwrap(), "$x", &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
