use super::*;

#[test]
fn scanner_sees_what_serde_sees() {
    for document in [
        r"{}",
        r#"{"a":1,"b":[1,2,{"c":"}]\"\\"}],"d":null,"e":{"f":[]}}"#,
        " { \"a\" : -1.5e3 , \"b\" : \"\\u00e9 \\\\\" , \"c\" : [ ] } ",
        r#"{"a":[[[]]],"":"","x":true}"#,
    ] {
        let raw = Raw::parse(document).unwrap();
        let expected: serde_json::Map<String, serde_json::Value> = serde_json::from_str(document).unwrap();
        let seen: serde_json::Map<String, serde_json::Value> = raw
            .fields()
            .map(|(key, value)| (key.decode().into_owned(), serde_json::from_str(value.as_str()).unwrap()))
            .collect();
        assert_eq!(seen, expected);
    }
    let array = Raw::parse(r#"[1, "a,b]", {"x": [1]}, [] , null]"#).unwrap();
    let elements: Vec<_> = array.elements().map(Raw::as_str).collect();
    assert_eq!(elements, ["1", "\"a,b]\"", "{\"x\": [1]}", "[]", "null"]);
}

#[test]
fn broken_documents_are_refused_with_a_place() {
    for (document, expected) in [
        ("", "EOF while parsing a value at line 1 column 0"),
        ("{", "EOF while parsing an object at line 1 column 1"),
        ("{\"a\":1,}", "key must be a string at line 1 column 8"),
        ("{} x", "trailing characters at line 1 column 4"),
        ("[\"\u{1}\"]", "control character (\\u0000-\\u001F) found while parsing a string at line 1 column 2"),
    ] {
        assert_eq!(Raw::parse(document).unwrap_err().to_string(), expected, "{document:?}");
    }
    let deep = "[".repeat(MAX_DEPTH + 1) + &"]".repeat(MAX_DEPTH + 1);
    assert_eq!(Raw::parse(&deep), Err(NotJson::TooDeep));
}

#[test]
fn strings_decode_and_lone_surrogates_do_not_break_them() {
    for (escaped, expected) in [
        ("plain", "plain"),
        (r#"a\n\t\"\\\/b"#, "a\n\t\"\\/b"),
        (r"\u00e9\ud83d\ude00", "é😀"),
        (r"\ud83d", "\u{fffd}"),
        (r"\ude00x", "\u{fffd}x"),
        (r"\ud83d\n", "\u{fffd}\n"),
        (r"\ud83d\u0041", "\u{fffd}A"),
    ] {
        assert_eq!(unescape(escaped), expected, "{escaped}");
    }
}

#[test]
fn escaping_is_what_serde_json_decodes() {
    let text = "quote \" back \\ line\n tab\t bell\u{7} nul\0 é 😀 \u{2028}";
    let mut out = Vec::new();
    write_text(&mut out, text);
    assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
}

#[test]
fn sanitising_holds_back_half_a_pair() {
    for (escaped, expected, held) in [
        ("plain", "plain", ""),
        (r"\ud83d\ude00", r"\ud83d\ude00", ""),
        (r"a\ud83d", "a", r"\ud83d"),
        (r"a\uD83Db", r"a\ufffdb", ""),
        (r"\ude00", r"\ufffd", ""),
        (r"\\ud83d", r"\\ud83d", ""),
        (r"\u0041\n\ud83d\ud83d\ude00", r"\u0041\n\ufffd\ud83d\ude00", ""),
    ] {
        let mut out = Vec::new();
        let rest = sanitize_into(&mut out, escaped);
        assert_eq!((String::from_utf8(out).unwrap().as_str(), rest), (expected, held), "{escaped}");
    }
}

/// Rebuilds a document by walking it with the scanner.
fn walk(raw: Raw<'_>) -> serde_json::Value {
    match raw.kind() {
        Kind::Array => raw.elements().map(walk).collect(),
        Kind::Object => {
            let fields = raw.fields().map(|(key, value)| (key.decode().into_owned(), walk(value)));
            serde_json::Value::Object(fields.collect())
        }
        Kind::String => raw.text().unwrap().decode().into(),
        _ => serde_json::from_str(raw.as_str()).unwrap(),
    }
}

fn document() -> impl proptest::strategy::Strategy<Value = serde_json::Value> {
    use proptest::prelude::*;
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        "[a-z\"\\\\{}\\[\\],:\n é😀]{0,12}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::btree_map("[a-z\"\\\\]{0,4}", inner, 0..6)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

#[test]
fn what_is_expected_is_not_what_was_got() {
    let long = "9".repeat(200);
    for (text, expected) in [
        ("5", "5"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("\"5\"", "Invalid type for '': expected an integer, but got a string instead."),
        ("5.0", "Invalid type for '': expected an integer, but got a decimal instead."),
        ("1e3", "Invalid type for '': expected an integer, but got a decimal instead."),
        (
            "9223372036854775808",
            "Invalid '': integer above maximum value. Expected a value <= 9223372036854775807, but got 9223372036854775808 instead.",
        ),
        (
            "-9223372036854775809",
            "Invalid '': integer below minimum value. Expected a value >= -9223372036854775808, but got ",
        ),
        (&long, "Invalid '': integer above maximum value. Expected a value <= 9223372036854775807, but got 9999"),
    ] {
        let read = i64::from_raw(Raw::parse(text).unwrap());
        let said = read.map_or_else(|invalid| invalid.to_string(), |number| number.to_string());
        assert!(said.starts_with(expected) && said.len() < 200, "{text}: {said}");
    }
}

proptest::proptest! {
    #[test]
    fn the_scanner_walks_any_document(value in document(), pretty in proptest::bool::ANY) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        proptest::prop_assert_eq!(walk(Raw::parse(&text).unwrap()), value);
    }

    #[test]
    fn the_scanner_stops_on_anything_else(text in "[\\[\\]{}\",:\\\\a1 ]{0,24}") {
        // Not valid, perhaps: it must end, and it must not panic.
        let raw = Raw(&text);
        let _ = (raw.fields().count(), raw.elements().count(), Cursor::new(raw).raw());
    }
}

#[test]
fn what_must_be_escaped_is_found_at_every_place() {
    for special in ["\"", "\\", "\0", "\n", "\u{1f}", "\u{7f}", "é", "\u{80}", " ", "!", "#", "[", "]", "😀"] {
        for before in 0..20 {
            for after in 0..10 {
                let text = "x".repeat(before) + special + &"~".repeat(after) + special;
                let mut escaped = Vec::new();
                escape_into(&mut escaped, &text);
                let quoted = format!("\"{}\"", String::from_utf8(escaped).unwrap());
                assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), text);
            }
        }
    }
}

#[test]
fn json_keeps_its_bytes_but_for_halves_of_pairs() {
    let long = "x".repeat(300);
    for (json, expected) in [
        (r#"{"a":"b"}"#, r#"{"a":"b"}"#),
        (r#"{"a\ud800":"\uDC00\uD800"}"#, r#"{"a\ufffd":"\ufffd\ufffd"}"#),
        (
            r#"["\ud83d\ude00","\uD83D\uDE00 \u0041\n\\ud800 \"\ud800"]"#,
            r#"["\ud83d\ude00","\uD83D\uDE00 \u0041\n\\ud800 \"\ufffd"]"#,
        ),
        (r#"["\ud800\ud83d\ude00é"]"#, r#"["\ufffd\ud83d\ude00é"]"#),
    ] {
        for (json, expected) in
            [(json.to_owned(), expected.to_owned()), (json.replace('b', &long), expected.replace('b', &long))]
        {
            let mut bytes = json.clone().into_bytes();
            pair_surrogates(&mut bytes);
            assert_eq!(String::from_utf8(bytes).unwrap(), expected, "{json}");
            assert!(serde_json::from_str::<serde_json::Value>(&expected).is_ok());
        }
    }
}
