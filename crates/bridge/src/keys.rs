//! Names of a call's arguments that the provider knows by others: all else of the arguments stays, byte for byte, since
//! thoughts are signed after what the model wrote.

use std::collections::BTreeMap;

use wire::json::{Cursor, Kind, Raw, write_text};

use crate::context::RenamedKey;

/// Arguments of the client's as the provider knows them; none where they are the same.
pub(crate) fn sent(arguments: &str, keys: &[RenamedKey]) -> Option<String> {
    renamed(arguments, |name| sent_name(keys, name))
}

/// What the provider knows a parameter by, where that is another name.
pub(crate) fn sent_name<'k>(keys: &'k [RenamedKey], own: &str) -> Option<&'k str> {
    let at = keys.binary_search_by(|key| key.own.as_str().cmp(own)).ok()?;
    keys.get(at).map(|key| key.sent.as_str())
}

/// Arguments of the provider's as the client knows them; none where they are the same.
pub(crate) fn own(arguments: &str, keys: &[RenamedKey]) -> Option<String> {
    let names: BTreeMap<&str, &str> = keys.iter().map(|key| (key.sent.as_str(), key.own.as_str())).collect();
    renamed(arguments, |name| names.get(name).copied())
}

/// The object under other names; none where it keeps its own, or is no object.
fn renamed<'k>(arguments: &str, name_of: impl Fn(&str) -> Option<&'k str>) -> Option<String> {
    let object = Raw::parse(arguments).ok().filter(|raw| raw.kind() == Kind::Object)?;
    let text = object.as_str();
    let (mut out, mut copied) = (Vec::with_capacity(text.len() + 64), 0);
    let mut cursor = Cursor::new(object);
    cursor.enter();
    while cursor.more() {
        let start = cursor.start();
        let key = cursor.raw();
        if let Some(name) = key.text().and_then(|key| name_of(&key.decode())) {
            out.extend_from_slice(text.get(copied..start)?.as_bytes());
            write_text(&mut out, name);
            copied = start + key.as_str().len();
        }
        cursor.raw();
    }
    if copied == 0 {
        return None;
    }
    out.extend_from_slice(text.get(copied..)?.as_bytes());
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_outermost_object_change() {
        let key = |own: &str, sent: &str| RenamedKey { own: own.to_owned(), sent: sent.to_owned() };
        let keys = [key("\"", "_"), key("$top", "_top"), key("filter[id]", "filter_id_")];
        for (theirs, ours) in [
            (r#"{ "filter_id_" : {"_top": 1.50}, "_top":[2] }"#, r#"{ "filter[id]" : {"_top": 1.50}, "$top":[2] }"#),
            (r#"{"a":"_top","_":"\u00e9"}"#, r#"{"a":"_top","\"":"\u00e9"}"#),
        ] {
            assert_eq!(own(theirs, &keys).as_deref(), Some(ours));
            assert_eq!(sent(ours, &keys).as_deref(), Some(theirs));
        }
        for same in [r#"{"a":1}"#, "{}", r#"["_top"]"#, r#""_top""#, r#"{"_top":"#, ""] {
            assert_eq!(own(same, &keys), None, "{same}");
        }
    }
}
