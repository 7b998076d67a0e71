use std::fmt::Write;

use super::*;

fn message(text: &str) -> String {
    Document::parse("f.yaml", text).map_or_else(|problem| problem.to_string(), |_| "ok".to_owned())
}

#[test]
fn accepts_what_is_a_mapping() {
    for text in ["", "# only a comment\n", "---\n", "~", "a: 1", "\u{feff}a: 1\r\nb:\r\n  - x\r\n", "{a: [1, {b: c}]}"]
    {
        assert_eq!(message(text), "ok", "{text:?}");
    }
}

#[test]
fn refuses_with_a_position() {
    let cases = [
        ("- a", "f.yaml:1:1: expected `key: value` lines, found a list"),
        ("just words", "f.yaml:1:1: expected `key: value` lines, found a string"),
        ("a: 1\n---\nb: 2", "f.yaml:2:1: a second document (`---`) is not allowed"),
        ("a: !thing 1", "f.yaml:1:4: the tag `!thing` is not supported"),
        ("? [a, b]\n: 1", "f.yaml:1:3: a key must be plain text"),
        ("a: &x [*x]", "f.yaml:1:8: an alias may not be inside what it refers to"),
    ];
    for (text, expected) in cases {
        assert_eq!(message(text), expected);
    }
    for text in ["a:\n\t- b", "a: [1, 2", "a: b: c", "a: *nowhere", "\"unclosed"] {
        assert!(message(text).starts_with("f.yaml:"), "{text:?}: {}", message(text));
    }
}

#[test]
fn is_bounded() {
    let nested = format!("a: {}{}", "[".repeat(70), "]".repeat(70));
    assert!(message(&nested).contains("nested more than 64"), "{}", message(&nested));
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(laughs, "a{level}: &a{level} [{aliases}]").unwrap();
    }
    assert!(message(&laughs).contains("aliases included"), "{}", message(&laughs));
}

#[test]
fn keeps_positions_styles_and_aliases() {
    let document = Document::parse("f", "base: &b {k: '1'}\nuse: *b\n").unwrap();
    let Value::Map(entries) = &document.root.value else { panic!("{document:?}") };
    let (key, node) = &entries[1];
    assert_eq!((key.name.as_str(), key.position.line, node.position.column), ("use", 2, 6));
    let Value::Map(inner) = &node.value else { panic!("{node:?}") };
    assert_eq!(inner[0].1.value, Value::Scalar(Scalar { text: "1".to_owned(), plain: false }));
}

#[test]
fn a_duplicate_key_is_a_problem_that_does_not_stop() {
    let document = Document::parse("f", "a: 1\nb: 2\na: 3\n").unwrap();
    let problems: Vec<String> = document.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["f:3:1: the key `a` is given twice, first on line 1"]);
}

#[test]
fn hints_at_what_is_behind_a_syntax_error() {
    let cases = [
        ("a:\n  *: b/c", "quote a key that begins with `*`"),
        ("a: {b: ${C}}", "quote a value that holds `${...}`"),
        ("a:\n\tb: 1", "indent with blanks, not tabs"),
    ];
    for (text, expected) in cases {
        assert!(message(text).contains(expected), "{text:?}: {}", message(text));
    }
}

proptest::proptest! {
    #[test]
    fn never_panics(text in "[ab:{}\\[\\],&*!#|>'\"%@ \n\t$?~-]{0,60}") {
        message(&text);
    }

    #[test]
    fn never_panics_on_any_text(text in ".{0,60}") {
        message(&text);
    }
}
