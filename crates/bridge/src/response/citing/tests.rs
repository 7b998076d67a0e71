use super::*;
use crate::reader::Source;

fn citing() -> Citing {
    let mut sources = Sources::default();
    for (url, title) in [
        ("https://a.b/c", "Title"),
        ("https://a.b/x_(y)", ""),
        ("https://dots.org/e.g.", ""),
        ("https://ü.de/ä?a[]=1", "Ä"),
    ] {
        sources.add(&Source { url: url.to_owned(), title: title.to_owned() });
    }
    Citing::new(Arc::new(sources))
}

/// The whole text, and each citation with the characters that it is said to be.
fn read(pieces: &[&str]) -> (String, Vec<(String, String)>) {
    let mut citing = citing();
    let (mut text, mut citations) = (String::new(), Vec::new());
    let mut take = |cited: Vec<Cited>| {
        for Cited { text: piece, citation } in cited {
            text.push_str(&piece);
            if let Some(Citation { start, end, url, .. }) = citation {
                assert_eq!(text.chars().count(), end, "said when its last character is");
                citations.push((text.chars().skip(start).take(end - start).collect(), url));
            }
        }
    };
    for piece in pieces {
        take(citing.push(piece));
        assert!(citing.held().len() <= MOST_HELD + 4, "{}", citing.held().len());
    }
    take(citing.finish());
    assert_eq!(citing.held(), "");
    (text, citations)
}

const TABLE: &[(&str, &[&str])] = &[
    ("See [T](https://a.b/c).", &["[T](https://a.b/c)"]),
    ("😀 é ([T](https://a.b/c?utm_source=openai)) z", &["([T](https://a.b/c?utm_source=openai))"]),
    ("([T](https://a.b/c), [U](https://a.b/c/))", &["[T](https://a.b/c)", "[U](https://a.b/c/)"]),
    ("([T](https://a.b/c)", &["[T](https://a.b/c)"]),
    ("( [T](https://a.b/c))", &["[T](https://a.b/c)"]),
    ("[T](https://unknown.org/) [T](https://a.b/c)", &["[T](https://a.b/c)"]),
    ("[a [b] c](https://a.b/c)", &["[a [b] c](https://a.b/c)"]),
    ("[[1]](https://a.b/c)", &["[[1]](https://a.b/c)"]),
    ("[a [b](https://a.b/c) c](https://a.b/c)", &["[b](https://a.b/c)", "https://a.b/c"]),
    ("[a ![b](https://a.b/c) c](https://a.b/c)", &["[a ![b](https://a.b/c) c](https://a.b/c)"]),
    ("![b](https://a.b/c)", &[]),
    (r"\[a](https://a.b/c) [a\](https://a.b/c)", &["https://a.b/c"]),
    (r"\\[a](https://a.b/c)", &["[a](https://a.b/c)"]),
    ("[T](<https://a.b/c> \"x ) y\")", &["[T](<https://a.b/c> \"x ) y\")"]),
    ("[T]( https://a.b/c 'it\\'s' )", &["[T]( https://a.b/c 'it\\'s' )"]),
    ("[T](https://a.b/c (t))", &["[T](https://a.b/c (t))"]),
    ("[T](https://a.b/c oops) [U](https://a.b/c)", &["https://a.b/c", "[U](https://a.b/c)"]),
    ("[T](https://a.b/x_(y))", &["[T](https://a.b/x_(y))"]),
    (r"[T](https://a.b/x\_\(y\))", &[r"[T](https://a.b/x\_\(y\))"]),
    ("[T](see [U](https://a.b/c))", &["[U](https://a.b/c)"]),
    ("[T] (https://a.b/c)", &["https://a.b/c"]),
    ("[T\n\nU](https://a.b/c)", &["https://a.b/c"]),
    ("[T\nU](https://a.b/c)", &["[T\nU](https://a.b/c)"]),
    ("[T](https://ü.de/ä?a[]=1)", &["[T](https://ü.de/ä?a[]=1)"]),
    ("[T](/c) [T]() [T](#c) [T](mailto:x)", &[]),
    ("<https://a.b/c> <b> <https://a.b/c x>", &["<https://a.b/c>", "https://a.b/c"]),
    ("https://a.b/c.", &["https://a.b/c"]),
    ("**https://a.b/c**, (https://a.b/c)!", &["https://a.b/c", "https://a.b/c"]),
    ("https://a.b/x_(y) https://a.b/x_(y).", &["https://a.b/x_(y)", "https://a.b/x_(y)"]),
    ("https://dots.org/e.g.", &["https://dots.org/e.g."]),
    ("来源：https://a.b/c。然后", &["https://a.b/c"]),
    ("xhttps://a.b/c https://a.b/cd httpx https:/ h", &[]),
    ("HTTPS://A.B/c", &["HTTPS://A.B/c"]),
    ("a[0] = b[1](c); [x", &[]),
    ("[", &[]),
    ("(", &[]),
    ("[a](", &[]),
    ("[a](https://a.b/c", &["https://a.b/c"]),
    ("<https://a.b/c", &["https://a.b/c"]),
];

#[test]
fn links_to_known_addresses_are_cited() {
    for (text, expected) in TABLE {
        let (read, citations) = read(&[text]);
        assert_eq!(read, *text);
        let found: Vec<&str> = citations.iter().map(|(found, _)| found.as_str()).collect();
        assert_eq!(found, *expected, "{text}");
    }
}

/// However the text is cut: at every place, and into single characters.
#[test]
fn pieces_make_no_difference() {
    let all = TABLE.iter().map(|(text, _)| *text).collect::<Vec<_>>().join("\n\n") + "\n\n";
    for text in TABLE.iter().map(|(text, _)| *text).chain([all.as_str()]) {
        let whole = read(&[text]);
        let boundaries: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
        for cut in &boundaries {
            assert_eq!(read(&[&text[..*cut], &text[*cut..]]), whole, "{text} cut at {cut}");
        }
        let single: Vec<&str> = boundaries.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
        assert_eq!(read(&single), whole, "{text}");
    }
}

/// What never becomes a link is let go, and costs in proportion to its length, not to its square.
#[test]
fn hostile_texts_are_not_held() {
    let known = "[T](https://a.b/c)";
    for unit in [
        "[",
        "![",
        "([",
        "[[](http://x",
        "](http://x](",
        "[](https://a.b/c \"",
        "[](<https://",
        "<https://",
        "https://a.b/c....",
        "[](http://((((((",
        "[a]",
        "\\",
        "https://a.b/c)(",
        "[ [](http://x '](http://x \"",
    ] {
        let hostile = unit.repeat(20_000 / unit.len());
        let text = format!("{hostile}\n\n {known}");
        let (read_text, citations) = read(&[&text]);
        assert_eq!(read_text, text);
        assert_eq!(citations.last().map(|(found, _)| found.as_str()), Some(known), "{unit}");
        let characters: Vec<String> = text.chars().map(String::from).collect();
        let characters: Vec<&str> = characters.iter().map(String::as_str).collect();
        assert_eq!(read(&characters).1, citations, "{unit}");
    }
}

/// A link is whole within the limit, or none.
#[test]
fn a_link_that_is_too_long_is_none() {
    for (length, is_cited) in [(100, true), (2000, true), (2100, false)] {
        let text = format!("[{}](https://a.b/c)", "x".repeat(length));
        let found = read(&[&text]).1;
        assert_eq!(found.first().is_some_and(|(found, _)| *found == text), is_cited, "{length}");
    }
}
