//! Items as JSON text: the few that are written here, and what is read of those that a response shows.

use wire::json::{ObjectWriter, Raw, Text};

/// A message of one text.
pub(crate) fn message(role: &str, part: &str, text: &str) -> String {
    item(|message| {
        message.text("type", "message").text("role", role);
        let content = message.key("content");
        content.push(b'[');
        let mut one = ObjectWriter::new(content);
        one.text("type", part).text("text", text);
        one.end();
        content.push(b']');
    })
}

pub(crate) fn item(write: impl FnOnce(&mut ObjectWriter<'_>)) -> String {
    let mut out = Vec::new();
    let mut object = ObjectWriter::new(&mut out);
    write(&mut object);
    object.end();
    String::from_utf8(out).unwrap_or_default()
}

/// The items of a response object.
pub(crate) fn of_object(object: &[u8]) -> Vec<String> {
    let object = str::from_utf8(object).ok().and_then(|text| Raw::parse(text).ok());
    let output = object.and_then(|object| object.get("output"));
    output.into_iter().flat_map(Raw::elements).map(|item| item.as_str().to_owned()).collect()
}

/// The text of a response object.
pub(crate) fn answer_text(object: &[u8]) -> String {
    let Some(object) = str::from_utf8(object).ok().and_then(|text| Raw::parse(text).ok()) else { return String::new() };
    let items = object.get("output").into_iter().flat_map(Raw::elements);
    let parts = items.filter_map(|item| item.get("content")).flat_map(Raw::elements);
    let texts = parts.filter(|part| part.get("type").and_then(Raw::text).is_some_and(|kind| kind.is("output_text")));
    texts.filter_map(|part| part.get("text")?.text().map(Text::decode)).collect()
}

/// The item, with what is kept beside it: pairs of an item's id and the member for it.
pub(crate) fn with_kept(item: &str, kept: &[(String, String)]) -> String {
    let id = Raw::ours(item).get("id").and_then(Raw::text).map(Text::decode).unwrap_or_default();
    match (kept.iter().find(|(kept, _)| *kept == id), item.strip_suffix('}')) {
        (Some((_, member)), Some(open)) => format!("{open},\"{KEPT}\":{member}}}"),
        _ => item.to_owned(),
    }
}

/// The member that holds it.
pub(crate) const KEPT: &str = "godex_output";
