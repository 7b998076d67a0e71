//! Text that somebody on the web wrote, as a model may read it: no markup, and no character that hides or acts instead of
//! being read.

use std::borrow::Cow;

/// Without tags, with entities as what they mean, blanks as one, and nothing invisible.
pub fn clean(text: &str) -> String {
    let text = without_tags(text);
    let text = with_entities(&text);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_whitespace() => {
                if !out.is_empty() && !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            c if is_hidden(c) => {}
            c => out.push(c),
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// Controls, marks of direction, tags, and other characters of which nobody sees anything. A joiner of two characters
/// stays: it is part of how emoji and some scripts are written.
const fn is_hidden(c: char) -> bool {
    wire::visible::acts(c)
        || matches!(c, '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}'
            | '\u{fff0}'..='\u{fff8}' | '\u{e0000}'..='\u{e0fff}')
}

/// What is between `<` and `>` where it looks like a tag: `a < b` stays.
fn without_tags(text: &str) -> Cow<'_, str> {
    if !text.contains('<') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let after = &rest[at + 1..];
        let is_tag = after.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!'));
        out.push_str(&rest[..at]);
        match is_tag.then(|| after.find('>')).flatten() {
            Some(end) => {
                // What a line break or a paragraph parts stays parted.
                let name = after.trim_start_matches('/');
                if ["br", "p", "div", "li", "td", "h"].iter().any(|block| name.starts_with(block)) {
                    out.push(' ');
                }
                rest = &after[end + 1..];
            }
            // Without an end there is none later either, so this is not looked for again and again.
            None if is_tag => {
                out.push_str(&rest[at..]);
                return Cow::Owned(out);
            }
            None => {
                out.push('<');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn with_entities(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 10;
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let end = after.bytes().take(LONGEST).position(|byte| byte == b';');
        match end.and_then(|end| Some((entity(&after[..end])?, end))) {
            Some((c, end)) => {
                out.push(c);
                rest = &after[end + 1..];
            }
            None => {
                out.push('&');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn entity(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "rsquo" => '’',
        "lsquo" => '‘',
        "rdquo" => '”',
        "ldquo" => '“',
        name => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_what_hides_are_gone() {
        for (text, expected) in [
            ("plain, é, 漢字, 👩‍💻", "plain, é, 漢字, 👩‍💻"),
            ("the <strong>Rust</strong> book", "the Rust book"),
            ("one<br/>two<p class='x'>three</p>", "one two three"),
            ("a < b && c > d", "a < b && c > d"),
            ("<script>x</script>y<!-- z -->", "xy"),
            ("cut <strong", "cut <strong"),
            ("<<b>>", "<>"),
            ("R&amp;D &lt;b&gt; &#39;&#x27;&quot; &nope; &", "R&D <b> ''\" &nope; &"),
            ("a\u{202e}b\u{2066}c\u{200b}d\u{feff}e\u{7}f\u{ad}", "abcdef"),
            ("hidden\u{e0041}\u{e0042}\u{e007f} text", "hidden text"),
            ("&#x202e;&#917569;x", "x"),
            ("  many \n\n\t blanks\u{2028}here ", "many blanks here"),
            ("&é;&#x110000;&#;", "&é;&#x110000;&#;"),
            ("", ""),
        ] {
            assert_eq!(clean(text), expected, "{text}");
        }
    }

    #[test]
    fn hostile_text_costs_no_more_than_its_length() {
        for text in ["<a".repeat(500_000), "&#".repeat(500_000), "<".repeat(1_000_000), "&amp".repeat(250_000)] {
            assert!(clean(&text).len() <= text.len());
        }
    }
}
