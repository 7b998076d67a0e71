//! Items made shorter for a summary: long texts lose their middle, media their bytes. What is left is an item of the same
//! kind, so that the model reads the conversation as it was.

use wire::json::{Kind, ObjectWriter, Raw, write_text};

use super::size::is_media;

/// What is never cut: it is what other items, or the API, know the item by.
const NAMES: &[&str] = &["type", "role", "id", "call_id", "name", "namespace", "status", "encrypted_content"];

/// A text without its middle, if it has more bytes than `most`.
pub(super) fn text(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let half = most / 2;
    let head = text.floor_char_boundary(half);
    let tail = text.ceil_char_boundary(text.len() - half);
    let left_out = tail.saturating_sub(head);
    format!("{}\n[… {left_out} bytes left out …]\n{}", &text[..head], text.get(tail..).unwrap_or_default())
}

/// An item whose texts have at most so many bytes each; without the bytes of images and files, if it is to be `bare`.
pub(super) fn item(raw: Raw<'_>, most: usize, bare: bool) -> String {
    let mut out = Vec::with_capacity(raw.as_str().len().min(most * 4 + 256));
    value("", raw, most, bare, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

fn value(key: &str, raw: Raw<'_>, most: usize, bare: bool, out: &mut Vec<u8>) {
    if raw.as_str().len() <= most.min(256) {
        return out.extend_from_slice(raw.as_str().as_bytes());
    }
    match raw.kind() {
        Kind::Object if bare && raw.fields().any(|(key, value)| is_media(key.escaped(), value)) => {
            out.extend_from_slice(br#"{"type":"input_text","text":"[an image or a file, left out here]"}"#);
        }
        Kind::Object => {
            let mut object = ObjectWriter::new(out);
            for (key, member) in raw.fields() {
                let name = key.decode();
                value(&name, member, most, bare, object.key(&name));
            }
            object.end();
        }
        Kind::Array => {
            out.push(b'[');
            for (index, element) in raw.elements().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                value(key, element, most, bare, out);
            }
            out.push(b']');
        }
        Kind::String if !NAMES.contains(&key) && !is_media(key, raw) => match raw.text() {
            Some(words) if words.escaped().len() > most => write_text(out, &text(&words.decode(), most)),
            _ => out.extend_from_slice(raw.as_str().as_bytes()),
        },
        _ => out.extend_from_slice(raw.as_str().as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_lose_their_middle_and_nothing_else() {
        let long = "é".repeat(400);
        let json = format!(
            r#"{{"type":"function_call_output","call_id":"{long}","output":[{{"type":"input_text","text":"{long}"}},{{"type":"input_text","text":"short"}}],"n":1}}"#
        );
        let short = item(Raw::parse(&json).unwrap(), 100, false);
        let raw = Raw::parse(&short).unwrap();
        assert_eq!(raw.get("call_id").unwrap().text().unwrap().decode(), long);
        let texts: Vec<String> = raw
            .get("output")
            .unwrap()
            .elements()
            .map(|part| part.get("text").unwrap().text().unwrap().decode().into_owned())
            .collect();
        let half = "é".repeat(25);
        assert_eq!(texts, [format!("{half}\n[… 700 bytes left out …]\n{half}"), "short".to_owned()]);
    }

    #[test]
    fn media_go_as_a_whole_or_stay_as_a_whole() {
        let data = "A".repeat(9000);
        let json = format!(
            r#"{{"role":"user","content":[{{"type":"input_image","image_url":"data:image/png;base64,{data}"}},{{"type":"input_text","text":"look"}}]}}"#
        );
        let raw = Raw::parse(&json).unwrap();
        assert_eq!(item(raw, 1000, false), json);
        assert_eq!(
            item(raw, 1000, true),
            r#"{"role":"user","content":[{"type":"input_text","text":"[an image or a file, left out here]"},{"type":"input_text","text":"look"}]}"#
        );
    }
}
