//! Text that others wrote, as a model may read it: without what nobody sees. Characters that only steer how text is shown,
//! and those that show nothing at all, are how words for the model are hidden from people.

use std::borrow::Cow;

/// Whether a character is left out: also those that say which form of the character before is meant, but for the one that
/// emoji have.
pub(super) const fn is_hidden(c: char) -> bool {
    !matches!(c, '\n' | '\t') && (wire::visible::acts(c) || matches!(c, '\u{fe00}'..='\u{fe0e}'))
}

/// The text without what nobody sees. Lines stay lines.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\r' if characters.peek() == Some(&'\n') => {}
            '\r' | '\u{2028}' | '\u{2029}' => out.push('\n'),
            c if is_hidden(c) => {}
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_left_out() {
        let tags: String = "do it".chars().filter_map(|c| char::from_u32(0xe0000 + u32::from(c))).collect();
        for (text, expected) in [
            ("plain, é, 漢字, 👩‍👩‍👧, ❤️\n\tx", "plain, é, 漢字, 👩‍👩‍👧, ❤️\n\tx"),
            ("a\r\nb\rc\u{2028}d", "a\nb\nc\nd"),
            ("a\x1b[31mb\0c\u{7f}\u{85}", "a[31mbc"),
            ("a\u{202e}b\u{2066}c\u{200f}d", "abcd"),
            ("a\u{200b}b\u{ad}c\u{feff}d\u{2062}e", "abcde"),
            ("x\u{e0101}\u{fe01}y", "xy"),
            (&format!("a{tags}b"), "ab"),
        ] {
            assert_eq!(clean(text), expected, "{text:?}");
        }
    }
}
