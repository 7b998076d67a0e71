//! What a call came to, as a model can be told: one text within bounds, and images.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

use crate::failure::clip;

/// The most of a result's text that a model is told.
const LONGEST: usize = 64 << 10;
/// Images beyond these are only mentioned.
const MOST_IMAGES: usize = 8;

/// A result.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallResult {
    pub text: String,
    /// As data URLs; the text has a mark for each.
    pub images: Vec<String>,
}

impl CallResult {
    pub(crate) fn of(result: CallToolResult) -> Self {
        let mut images = Vec::new();
        let mut parts: Vec<String> = Vec::new();
        let mut said = false;
        for block in result.content {
            let part = match block {
                ContentBlock::Text(text) => text.text,
                ContentBlock::Resource(embedded) => match embedded.resource {
                    ResourceContents::TextResourceContents { text, .. } => text,
                    ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                        let kind = mime_type.unwrap_or_else(|| "data".to_owned());
                        format!("{uri}: {}", mark(&kind, &blob))
                    }
                    _ => continue,
                },
                ContentBlock::ResourceLink(link) => format!("{}: {}", link.name, link.uri),
                ContentBlock::Image(image) => {
                    parts.push(mark(&image.mime_type, &image.data));
                    if images.len() < MOST_IMAGES && is_image(&image.mime_type, &image.data) {
                        images.push(format!("data:{};base64,{}", image.mime_type, image.data));
                    }
                    continue;
                }
                ContentBlock::Audio(audio) => {
                    parts.push(mark(&audio.mime_type, &audio.data));
                    continue;
                }
                _ => "[content of a kind that is not known]".to_owned(),
            };
            said = true;
            parts.push(part);
        }
        // It repeats the text, for programs.
        if let (false, Some(structured)) = (said, result.structured_content) {
            parts.push(structured.to_string());
        }
        Self { text: bounded(&visible(&parts.join("\n"))), images }
    }
}

/// In place of what is no text: `[image/png, 34 kB]`.
fn mark(kind: &str, base64: &str) -> String {
    let bytes = base64.len() / 4 * 3;
    let size = if bytes < 1000 { format!("{bytes} bytes") } else { format!("{} kB", bytes.div_ceil(1000)) };
    format!("[{}, {size}]", clip(kind, 64))
}

/// Whether it can be a part of a URL as it is.
fn is_image(kind: &str, base64: &str) -> bool {
    let subtype = kind.strip_prefix("image/").unwrap_or_default();
    let in_type = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let in_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    !subtype.is_empty() && subtype.bytes().all(in_type) && base64.bytes().all(in_base64)
}

/// Without what nobody sees and a model reads: control characters, changes of direction, tags.
fn visible(text: &str) -> String {
    let hidden = |c: char| match c {
        '\n' | '\r' | '\t' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    };
    text.chars().filter(|c| !hidden(*c)).collect()
}

fn bounded(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let kept = clip(text, LONGEST);
    format!("{kept}\n[cut: {} of {} bytes]", kept.len(), text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> CallResult {
        CallResult::of(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn every_kind_of_content_becomes_text_or_an_image() {
        let image = format!(r#"{{"type":"image","data":"{}","mimeType":"image/png"}}"#, "AAAA".repeat(10_000));
        let cases = [
            (r#"{"type":"text","text":"a"},{"type":"text","text":"b"}"#, "", "a\nb", 0),
            (r#"{"type":"text","text":"a"}"#, r#","structuredContent":{"z":1,"a":2}"#, "a", 0),
            ("", r#","structuredContent":{"z":1,"a":2}"#, r#"{"z":1,"a":2}"#, 0),
            (r#"{"type":"resource","resource":{"uri":"file:///a","text":"in it"}}"#, "", "in it", 0),
            (
                r#"{"type":"resource","resource":{"uri":"file:///a","mimeType":"application/pdf","blob":"AAAA"}}"#,
                "",
                "file:///a: [application/pdf, 3 bytes]",
                0,
            ),
            (r#"{"type":"resource_link","uri":"file:///a","name":"notes"}"#, "", "notes: file:///a", 0),
            (r#"{"type":"audio","data":"AAAA","mimeType":"audio/wav"}"#, "", "[audio/wav, 3 bytes]", 0),
            (&image, "", "[image/png, 30 kB]", 1),
            (
                r#"{"type":"image","data":"AAAA","mimeType":"text/html"},{"type":"image","data":"\"><","mimeType":"image/png"}"#,
                "",
                "[text/html, 3 bytes]\n[image/png, 0 bytes]",
                0,
            ),
            (r#"{"type":"text","text":"a\u0007\u202eb\u2066\tc\nd"}"#, "", "ab\tc\nd", 0),
            ("", "", "", 0),
        ];
        for (content, more, text, images) in cases {
            let result = of(&format!(r#"{{"content":[{content}]{more}}}"#));
            assert_eq!((result.text.as_str(), result.images.len()), (text, images), "{content}");
        }
        assert!(of(&format!(r#"{{"content":[{image}]}}"#)).images[0].starts_with("data:image/png;base64,AAAA"));
        let many = of(&format!(r#"{{"content":[{}]}}"#, vec![image.as_str(); 20].join(",")));
        assert_eq!((many.images.len(), many.text.lines().count()), (8, 20));
    }

    #[test]
    fn a_long_text_is_cut_between_characters_and_says_so() {
        let text = format!("a{}", "ä".repeat(40_000));
        let result = of(&serde_json::json!({"content": [{"type": "text", "text": text}]}).to_string());
        assert!(result.text.ends_with("ä\n[cut: 65535 of 80001 bytes]"), "{}", &result.text[65_500..]);
        let whole = "a".repeat(65_536);
        assert_eq!(of(&serde_json::json!({"content": [{"type": "text", "text": whole}]}).to_string()).text, whole);
    }
}
