//! Counts are those of `bpe-openai`, which is compared with `tiktoken` by its authors.
#![forbid(unsafe_code)]
#![cfg(feature = "tokenizer")]

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tokens::{Count, Encoding};

/// What the form of a chat adds to the text of its only message.
const FORM: u64 = 6;

fn check(text: &str) {
    let body = serde_json::json!({"messages": [{"content": text}]}).to_string();
    for (encoding, theirs) in
        [(Encoding::O200k, bpe_openai::o200k_base()), (Encoding::Cl100k, bpe_openai::cl100k_base())]
    {
        let tokens = FORM + theirs.count(text) as u64;
        let start: String = text.chars().take(200).collect();
        assert_eq!(
            tokens::count(encoding, body.as_bytes()),
            Some(Count { tokens, exact: true }),
            "{encoding:?} {start:?}"
        );
    }
}

/// Anything, and what its parts are told apart by: blanks, line ends, marks, cases, digits, apostrophes.
fn texts() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        "\\PC{0,20}",
        "[ \\t\\r\\n\u{a0}\u{3000}]{1,6}",
        "['’](?i:s|t|re|ve|m|ll|d|x)",
        "[a-zA-Z]{1,30}",
        "[0-9]{1,8}",
        "[/\\\\.,;:=*#_-]{1,90}",
        "[àéßŐЖжἈΩ\u{301}ǅʰ]{1,12}",
        "[一-鿿ぁ-んァ-ヴ가-힣]{1,12}",
        "[\u{1f300}-\u{1f6ff}\u{200d}\u{fe0f}]{1,6}",
        "[ぁ-ん]{0,3}[\\x00-\\x1f\u{e000}\u{10ffff}]{0,3}",
    ];
    prop::collection::vec(pieces, 0..30).prop_map(|pieces| pieces.concat())
}

/// Texts out of tokens that have little to do with each other.
fn tokens_in_any_order() -> impl Strategy<Value = String> {
    prop::collection::vec(0..199_998_u32, 0..60).prop_map(|ranks| {
        let bytes: Vec<u8> =
            ranks.iter().flat_map(|rank| bpe_openai::o200k_base().bpe.token_bytes(*rank)).copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn any_text_has_as_many_tokens(text in texts()) {
        check(&text);
    }

    #[test]
    fn tokens_side_by_side_are_as_many(text in tokens_in_any_order()) {
        check(&text);
        // As one word, without what splits it.
        check(&text.chars().filter(|c| c.is_alphabetic()).collect::<String>());
    }
}

#[test]
fn our_own_texts_have_as_many_tokens() {
    let mut files = Vec::new();
    for folder in ["docs", "specs", "crates/tokens", "crates/bridge/src", "tests/golden"] {
        collect(&testkit::root().join(folder), &mut files);
    }
    assert!(files.len() > 200, "{}", files.len());
    for file in files {
        check(&String::from_utf8_lossy(&fs::read(file).unwrap()));
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}

/// What no blank splits is merged by windows.
#[test]
fn long_words_have_as_many_tokens() {
    for part in
        ["a", " ", "\n", "=", "-=", "\u{301}", "日本語", "ab", "abcabcd", "Ünïcödé", "pneumonoultramicroscopic", "🦀"]
    {
        for bytes in [100, 4097, 20_000] {
            check(&part.repeat(bytes / part.len()));
            check(&format!("x{}y", part.repeat(bytes / part.len())));
        }
    }
    // Letters without an order, as in a hash that has no digits.
    let mut seed: u32 = 1;
    let letters = (0..50_000).map(|_| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b"abcdefghijklmnopqrstuvwxyz"[(seed >> 24) as usize % 26])
    });
    check(&letters.collect::<String>());
}
