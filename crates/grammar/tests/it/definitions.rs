//! What definitions mean: whole matches, places, what could have been there.

use grammar::{Grammar, Syntax, Verdict};

fn verdict(syntax: Syntax, definition: &str, input: &str) -> String {
    match Grammar::compile(syntax, definition) {
        Err(undecided) => format!("unusable: {undecided}"),
        Ok(grammar) => match grammar.check(input) {
            Verdict::Fits => "fits".to_owned(),
            Verdict::Misfit(misfit) => misfit.to_string(),
            Verdict::Undecided(undecided) => format!("undecided: {undecided}"),
        },
    }
}

#[test]
fn inputs_fit_as_a_whole() {
    use Syntax::{Lark, Regex};
    for (syntax, definition, input, expected) in [
        (Regex, "[a-z]+", "abc", "fits"),
        (Regex, "[a-z]+", "abc1", "line 1, column 4: '1' does not fit"),
        (Regex, "[a-z]+", "", "line 1, column 1: the input ends too early"),
        (Regex, "a|b", "b", "fits"),
        (Regex, "a|b", "c", "line 1, column 1: 'c' does not fit; expected \"a\" or \"b\""),
        (Regex, "(?s).*", "a\nb", "fits"),
        (Regex, ".*", "a\nb", "line 1, column 2: '\\n' does not fit"),
        (Regex, "a/b", "a/b", "fits"),
        (Regex, r"\d{4}-\d{2}", "2025-07", "fits"),
        (Regex, "é+", "éa", "line 1, column 2: 'a' does not fit"),
        (Regex, "ab", "é", "line 1, column 1: 'é' does not fit; expected \"ab\""),
        (Lark, "start: \"a\" b\nb: \"b\" | \"c\"", "ac", "fits"),
        (Lark, "start: \"let\" NAME \";\"\nNAME: /[a-z]+/\n%ignore / +/", "let x ;", "fits"),
        (Lark, "start: \"one\\n\" \"two\"", "one\ntw", "line 2, column 3: the input ends too early; expected \"o\""),
        (Lark, "start: \"select \" (\"a\" | \"b\"){1,2}", "select ab", "fits"),
        (Lark, "start: WORD (\" \" WORD)*\n%import common.WORD", "two words", "fits"),
    ] {
        assert_eq!(verdict(syntax, definition, input), expected, "{definition} on {input:?}");
    }
}

#[test]
fn what_cannot_be_compiled_says_why() {
    use Syntax::{Lark, Regex};
    for (syntax, definition, why) in [
        (Regex, "(", "unclosed group"),
        (Regex, "a(?=b)", "look-around"),
        (Lark, "start: missing", "missing"),
        (Lark, "start \"a\"", "Expected"),
        (Lark, "begin: \"a\"", "start"),
        (Lark, "start: %json {}", "%json"),
        (Lark, "", "empty"),
    ] {
        let found = verdict(syntax, definition, "");
        assert!(found.starts_with("unusable: ") && found.contains(why), "{definition}: {found}");
        assert!(found.len() < 400 && !found.contains('\n'), "{definition}: {found}");
    }
}

/// Whatever one input does to the lexer, the next finds the grammar as it was.
#[test]
fn one_input_is_no_burden_to_the_next() {
    let grammar = Grammar::compile(Syntax::Regex, "(a|b)*a(a|b){14}").unwrap();
    let long = crate::noise(200_000);
    assert!(matches!(grammar.check(&long), Verdict::Undecided(_)), "{:?}", grammar.check(&long));
    assert_eq!(grammar.check(&format!("a{}", "b".repeat(14))), Verdict::Fits);
}
