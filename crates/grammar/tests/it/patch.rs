//! A grammar of patches, in our words, and what is found out about an input of it.

use grammar::{Grammar, Syntax, Verdict};

pub(crate) const PATCH: &str = r#"
start: "*** Begin Patch" NL part+ "*** End Patch" NL?
part: added | deleted | updated
added: "*** Add File: " NAME NL ("+" REST NL)+
deleted: "*** Delete File: " NAME NL
updated: "*** Update File: " NAME NL ("*** Move to: " NAME NL)? (step+ last?)?
step: "@@" (" " NAME)? NL | ("+" | "-" | " ") REST NL
last: "*** End of File" NL

NAME: /.+/
REST: /.*/
NL: /\n/
"#;

pub(crate) fn grammar() -> Grammar {
    Grammar::compile(Syntax::Lark, PATCH).unwrap()
}

/// `fits`; `repaired:` and each thing that was mended, in a word; `misfit LINE:COLUMN`; `undecided`.
pub(crate) fn verdict(grammar: &Grammar, input: &str) -> String {
    match grammar.check(input) {
        Verdict::Fits => "fits".to_owned(),
        Verdict::Undecided(_) => "undecided".to_owned(),
        Verdict::Misfit(misfit) => match grammar.repair(input, "") {
            Some(repaired) => {
                assert_eq!(grammar.check(&repaired.input), Verdict::Fits);
                let how: Vec<&str> = repaired.how.iter().map(|how| word(how)).collect();
                format!("repaired: {}", how.join(", "))
            }
            None => format!("misfit {}:{}", misfit.line, misfit.column),
        },
    }
}

fn word(how: &str) -> &str {
    let words =
        ["fence", "command", "text", "blanks", "begins", "ends the", "usual", "end was added", "end was left out"];
    words.into_iter().find(|word| how.contains(word)).unwrap_or(how)
}
