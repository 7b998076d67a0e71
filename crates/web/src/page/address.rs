//! Addresses of the web: where they are in a text, and which are the same.

use url::Url;

/// The address without what says nothing about the page: the fragment, and parameters that only say where the reader came
/// from. None if it is no address of the web.
pub fn normalised(address: &str) -> Option<String> {
    let mut url = Url::parse(address.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    url.set_fragment(None);
    if let Some(query) = url.query() {
        let told = |pair: &&str| !pair.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("utm_"));
        let kept = query.split('&').filter(told).collect::<Vec<_>>().join("&");
        if kept.len() != query.len() {
            url.set_query(Some(kept.as_str()).filter(|kept| !kept.is_empty()));
        }
    }
    Some(url.into())
}

/// Whether both are addresses of the same page.
pub fn same_address(one: &str, other: &str) -> bool {
    normalised(one).is_some_and(|one| normalised(other).is_some_and(|other| one == other))
}

/// Longer than any that is of use.
const LONGEST: usize = 4096;

/// All addresses with `http://` or `https://` in a text, also where the text is JSON and its strings are escaped. Where one
/// runs into letters that are not ASCII, it is named with and without them: in some languages no space ends it.
pub fn addresses(text: &str) -> impl Iterator<Item = String> + '_ {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let (before, after) = rest.split_at(rest.find(':')?);
            let Some(after) = after.strip_prefix("://").or_else(|| after.strip_prefix(r":\/\/")) else {
                rest = &after[1..];
                continue;
            };
            let scheme = ["https", "http"].into_iter().find(|scheme| ends_with(before, scheme));
            let Some(scheme) = scheme else {
                rest = after;
                continue;
            };
            let (mut found, length) = run(after);
            rest = &after[length..];
            trim(&mut found);
            if !found.is_empty() {
                return Some(format!("{scheme}://{found}"));
            }
        }
    })
    .flat_map(|address| {
        let ascii = address.find(|c: char| !c.is_ascii()).map(|end| {
            let mut ascii = address[..end].to_owned();
            trim(&mut ascii);
            ascii
        });
        [Some(address), ascii].into_iter().flatten()
    })
}

fn ends_with(text: &str, scheme: &str) -> bool {
    let start = text.len().checked_sub(scheme.len());
    start.and_then(|start| text.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(scheme))
}

/// What may belong to an address, unescaped, and how long it is in the text.
fn run(text: &str) -> (String, usize) {
    let (mut found, mut at, mut open) = (String::new(), 0, 0_usize);
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let (c, length) = if c == '\\' { unescaped(&text[at..]) } else { (c, c.len_utf8()) };
        match c {
            '(' | '[' => open += 1,
            // One that closes what was opened before the address ends it.
            ')' | ']' => match open.checked_sub(1) {
                Some(left) => open = left,
                None => break,
            },
            c if c.is_whitespace() || c.is_control() || "<>\"`|\\^{}、。，．！？；：」』】）》〉“”‘’…".contains(c) =>
            {
                break;
            }
            _ => {}
        }
        if found.len() >= LONGEST {
            break;
        }
        found.push(c);
        at += length;
    }
    (found, at)
}

/// The character that an escape in JSON means; `\` if it is none that could be part of an address.
fn unescaped(text: &str) -> (char, usize) {
    if text.starts_with(r"\/") {
        return ('/', 2);
    }
    let code = text.strip_prefix(r"\u").and_then(|rest| rest.get(..4));
    let c = code.and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32);
    c.map_or(('\\', 1), |c| (c, 6))
}

/// Without what ends a sentence rather than an address.
fn trim(address: &mut String) {
    let kept = address.trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', '*', '_', '~']).len();
    address.truncate(kept);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_wherever_they_stand() {
        for (text, expected) in [
            ("", &[][..]),
            ("see https://a.example/x, and http://b.example.", &["https://a.example/x", "http://b.example"]),
            ("[t](https://a.example/x) (https://b.example/y_(z))", &["https://a.example/x", "https://b.example/y_(z)"]),
            ("<https://a.example/?q=1&r=2#f>", &["https://a.example/?q=1&r=2#f"]),
            (r#"{"url":"https:\/\/a.example\/x?a=1\u0026b=2","t":"\n"}"#, &["https://a.example/x?a=1&b=2"]),
            (r#"{"x":"https://a.example/x\nhttps://b.example"}"#, &["https://a.example/x", "https://b.example"]),
            (r#"{"a":"https:\/\/a.example","b":"http://b.example"}"#, &["https://a.example", "http://b.example"]),
            (r#"{"b":"http://b.example","a":"https:\/\/a.example"}"#, &["http://b.example", "https://a.example"]),
            ("HTTPS://A.example", &["https://A.example"]),
            ("ftp://a.example file:///etc http:// https://", &[]),
            ("**https://a.example/x**", &["https://a.example/x"]),
            ("看https://a.example/x。然后", &["https://a.example/x"]),
            ("看https://a.example/x然后", &["https://a.example/x然后", "https://a.example/x"]),
            ("x:https://a.example:8080/", &["https://a.example:8080/"]),
            ("éhttps://a.example", &["https://a.example"]),
            ("https://a.examplehttps://b.example", &["https://a.examplehttps://b.example"]),
        ] {
            assert_eq!(addresses(text).collect::<Vec<_>>(), expected, "{text}");
        }
        assert!(addresses(&format!("https://a.example/{}", "x".repeat(1 << 20))).all(|found| found.len() < 5000));
    }

    /// Escaped or not, what is looked for is found in one go.
    #[test]
    fn many_addresses_take_no_longer_than_their_text() {
        for word in ["https://a.example/x ", r"https:\/\/a.example\/x ", "://", r":\/\/"] {
            let found = addresses(&word.repeat(100_000)).count();
            assert_eq!(found, if word.len() > 10 { 100_000 } else { 0 }, "{word}");
        }
    }

    #[test]
    fn what_says_nothing_about_the_page_is_not_compared() {
        for (one, other, same) in [
            ("https://a.example", "https://A.example:443/", true),
            ("https://a.example/x#y", "https://a.example/x", true),
            ("https://a.example/x?utm_source=openai", "https://a.example/x", true),
            ("https://a.example/x?b=1&utm_source=o&c=2&UTM_x=1", "https://a.example/x?b=1&c=2", true),
            ("https://a.example/x?b=1", "https://a.example/x", false),
            ("https://a.example/x", "http://a.example/x", false),
            ("https://a.example/x", "https://a.example/x/", false),
            ("nonsense", "nonsense", false),
            ("file:///etc/passwd", "file:///etc/passwd", false),
        ] {
            assert_eq!(same_address(one, other), same, "{one} {other}");
        }
        assert_eq!(normalised("https://a.example/?a=%20b&utm_=1#f").as_deref(), Some("https://a.example/?a=%20b"));
    }
}
