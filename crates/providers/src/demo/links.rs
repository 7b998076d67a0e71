//! Addresses in texts, and links to them as the demo model writes them.

/// Of a link's text, in characters.
const LONGEST_TITLE: usize = 100;

/// What each address in the text is, without what ends the sentence around it.
pub(super) fn addresses(text: &str) -> impl Iterator<Item = &str> {
    places(text).map(|(_, address)| address)
}

fn places(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let start = from + text[from..].find("http")?;
            let rest = &text[start..];
            let scheme = ["https://", "http://"].iter().find(|scheme| rest.starts_with(**scheme));
            let Some(scheme) = scheme else {
                from = start + "http".len();
                continue;
            };
            let ends = |c: char| {
                c.is_whitespace() || matches!(c, '<' | '>' | '"' | '\'' | '`' | '(' | ')' | '[' | ']' | '{' | '}')
            };
            let end = rest.find(ends).unwrap_or(rest.len());
            let address = rest[..end].trim_end_matches(['.', ',', ';', ':', '?', '!']);
            from = start + end.max(scheme.len());
            if address.len() > scheme.len() {
                return Some((start, address));
            }
        }
    })
}

/// A Markdown link to each of the first addresses, once: with the title that the text has for it, or its host.
pub(super) fn markdown<'a>(texts: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<String> {
    let mut shown: Vec<&str> = Vec::new();
    let mut links = Vec::new();
    for text in texts {
        for (at, address) in places(text) {
            if links.len() < most && !shown.contains(&address) {
                shown.push(address);
                links.push(format!("[{}]({address})", title(&text[..at]).unwrap_or_else(|| host(address).to_owned())));
            }
        }
    }
    links
}

/// What the text calls the address that begins here: as a link of Markdown does, or in the line above, if the address has
/// its own.
fn title(before: &str) -> Option<String> {
    let found = match before.strip_suffix("](") {
        Some(label) => label[label.rfind(['[', ']', '\n'])?..].strip_prefix('[')?,
        None => {
            let (above, line) = before.rsplit_once('\n')?;
            let alone = line.chars().all(|c| !c.is_alphanumeric()) || line.trim_end().ends_with(':');
            let above = above.rsplit('\n').next().filter(|_| alone)?;
            unnumbered(above.trim())
        }
    };
    let title: String = found.chars().filter(|c| !matches!(c, '[' | ']')).take(LONGEST_TITLE).collect();
    Some(title.trim().to_owned()).filter(|title| !title.is_empty())
}

/// Without its number in a list.
fn unnumbered(line: &str) -> &str {
    let numbered = line.split_once(". ").or_else(|| line.strip_prefix('[')?.split_once("] "));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numbered.filter(|(number, _)| is_number(number)).map_or(line, |(_, rest)| rest)
}

fn host(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_and_linked() {
        let cases: [(&str, &[&str]); 11] = [
            ("\n12. 2026 in pictures\nhttps://a.example/\nDate: today", &["[2026 in pictures](https://a.example/)"]),
            ("1. A [good] title\n   https://a.example/", &["[A good title](https://a.example/)"]),
            ("[1] A title\nURL: https://a.example/", &["[A title](https://a.example/)"]),
            ("text\nand more of it at https://a.example/", &["[a.example](https://a.example/)"]),
            ("none here, http or https:// or http", &[]),
            ("See https://a.example/x?y=1.", &["[a.example](https://a.example/x?y=1)"]),
            (
                "(http://b.example), <https://c.example/#z>",
                &["[b.example](http://b.example)", "[c.example](https://c.example/#z)"],
            ),
            ("1. [A title](https://a.example/) text", &["[A title](https://a.example/)"]),
            ("[](https://a.example/)", &["[a.example](https://a.example/)"]),
            ("https://a.example https://a.example", &["[a.example](https://a.example)"]),
            ("éhttps://a.example/é é", &["[a.example](https://a.example/é)"]),
        ];
        for (text, expected) in cases {
            assert_eq!(markdown([text], 3), expected, "{text}");
        }
        assert_eq!(markdown(["https://a.example https://b.example https://c.example"], 2).len(), 2);
    }
}
