//! Fifty patches: half of them as they should be, half broken in the ways in which models break them.

use grammar::{Grammar, Syntax};
use serde_json::Value;

use super::patch::{grammar, verdict};

/// A patch with these lines between its marks.
fn patch(lines: &str) -> String {
    format!("*** Begin Patch\n{lines}\n*** End Patch\n")
}

const UPDATE: &str = "*** Update File: src/a.rs\n@@ fn main() {\n-    old();\n+    new();\n }";

fn sound() -> Vec<(&'static str, String)> {
    vec![
        ("an update", patch(UPDATE)),
        ("no line end after the last mark", patch(UPDATE).trim_end().to_owned()),
        ("a new file", patch("*** Add File: a.txt\n+hello")),
        ("a new file of many lines", patch("*** Add File: a.txt\n+hello\n+\n+world")),
        ("a new file of empty lines", patch("*** Add File: a.txt\n+\n+")),
        ("a deletion", patch("*** Delete File: a.txt")),
        ("a move", patch("*** Update File: a.txt\n*** Move to: b.txt")),
        ("a move with changes", patch("*** Update File: a.txt\n*** Move to: b.txt\n@@\n-a\n+b")),
        ("an update of nothing", patch("*** Update File: a.txt")),
        ("two places of a file", patch("*** Update File: a\n@@ one\n-a\n+b\n@@ two\n-c\n+d")),
        ("a place without a name", patch("*** Update File: a\n@@\n-a\n+b")),
        ("no place", patch("*** Update File: a\n-a\n+b")),
        ("places in places", patch("*** Update File: a\n@@ class A\n@@ fn b\n-a\n+b")),
        ("the end of a file", patch("*** Update File: a\n@@\n-a\n+b\n*** End of File")),
        ("three parts", patch("*** Add File: a\n+x\n*** Delete File: b\n*** Update File: c\n@@\n-a\n+b")),
        ("two deletions", patch("*** Delete File: a\n*** Delete File: b")),
        ("text that is no ASCII", patch("*** Update File: é.txt\n@@ größe\n-ä\n+日本語 🙂")),
        ("a name with blanks", patch("*** Add File: my file (1).txt\n+x")),
        ("a mark in the text", patch("*** Add File: a\n+*** Begin Patch\n+*** End Patch")),
        ("a fence in the text", patch("*** Add File: a.txt\n+```rust\n+fn a() {}\n+```")),
        ("a diff in the text", patch("*** Update File: a.patch\n@@\n +++ b/a\n --- a/a\n+@@ -1 +1 @@")),
        ("text with carriage returns", patch("*** Update File: a.bat\n@@\n-old\r\n+new\r")),
        ("context only", patch("*** Update File: a\n@@\n same\n same")),
        ("an empty line of context", patch("*** Update File: a\n@@\n \n+x")),
        ("a long line", patch(&format!("*** Add File: a\n+{}", "x".repeat(20_000)))),
    ]
}

fn broken() -> Vec<(&'static str, String, &'static str)> {
    let open = patch(UPDATE).replace("*** End Patch\n", "");
    let inside = UPDATE.to_owned();
    vec![
        ("no end mark", open.clone(), "repaired: ends the"),
        ("no end mark, no line end", open.trim_end().to_owned(), "repaired: ends the"),
        ("no begin mark", format!("{inside}\n*** End Patch\n"), "repaired: begins"),
        ("no marks", format!("{inside}\n"), "repaired: begins, ends the"),
        ("a fence of diff", format!("```diff\n{}```\n", patch(UPDATE)), "repaired: fence"),
        ("a fence of patch", format!("```patch\n{}```", patch(UPDATE)), "repaired: fence"),
        ("a plain fence", format!("```\n{}```\n", patch(UPDATE)), "repaired: fence"),
        ("a fence of tildes", format!("~~~\n{}~~~\n", patch(UPDATE)), "repaired: fence"),
        ("a fence that is not closed", format!("```diff\n{}", patch(UPDATE)), "repaired: fence"),
        ("a fence and no end mark", format!("```diff\n{open}```\n"), "repaired: fence, ends the"),
        ("a command", format!("apply_patch <<'EOF'\n{}EOF\n", patch(UPDATE)), "repaired: command"),
        ("a command, other word", format!("apply_patch << \"PATCH\"\n{}PATCH", patch(UPDATE)), "repaired: command"),
        ("a command and no end mark", format!("apply_patch <<EOF\n{open}EOF\n"), "repaired: command, ends the"),
        (
            "a command in a fence",
            format!("```sh\napply_patch <<'EOF'\n{}EOF\n```\n", patch(UPDATE)),
            "repaired: fence, command",
        ),
        ("words before it", format!("Here is the patch:\n\n{}", patch(UPDATE)), "repaired: text, blanks"),
        ("words after it", format!("{}\nThis renames the call.", patch(UPDATE)), "repaired: blanks, text"),
        ("line ends of another system", patch(UPDATE).replace('\n', "\r\n"), "repaired: usual"),
        (
            "those, in a fence",
            format!("```diff\n{}```\n", patch(UPDATE)).replace('\n', "\r\n"),
            "repaired: usual, fence",
        ),
        ("blanks around a mark", patch(UPDATE).replace("*** Begin Patch", " *** Begin Patch "), "repaired: blanks"),
        ("empty lines around it", format!("\n\n{}\n\n", patch(UPDATE)), "repaired: blanks"),
        ("a line without a sign", patch("*** Update File: a\n@@\n-a\nb"), "misfit 5:1"),
        ("a new file without signs", patch("*** Add File: a.txt\nhello"), "misfit 3:1"),
        ("a unified diff", "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n".to_owned(), "misfit 1:1"),
        ("nothing between the marks", "*** Begin Patch\n*** End Patch\n".to_owned(), "misfit 2:5"),
        ("a part of an unknown kind", patch("*** Change File: a\n@@\n-a\n+b"), "misfit 2:5"),
    ]
}

/// Every patch of the corpus, with the verdict that it has to get.
fn all() -> Vec<(&'static str, String, &'static str)> {
    let sound = sound().into_iter().map(|(name, input)| (name, input, "fits"));
    sound.chain(broken()).collect()
}

#[test]
fn fifty_patches_have_their_verdicts() {
    let grammar = grammar();
    assert_eq!(all().len(), 50);
    let table: Vec<String> = all()
        .iter()
        .map(|(name, input, expected)| (name, expected, verdict(&grammar, input)))
        .filter(|(_, expected, found)| found != *expected)
        .map(|(name, expected, found)| format!("{name}: {found}, not {expected}"))
        .collect();
    assert!(table.is_empty(), "{table:#?}");
}

/// The grammar that Codex declares says the same of each.
#[test]
fn the_grammar_of_codex_gives_the_same_verdicts() {
    let Some(files) = testkit::shared_files("fixtures/codex", |name| name.starts_with("request-")) else { return };
    let definition = files.iter().find_map(|file| {
        let request: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).ok()?;
        let tools = request["tools"].as_array()?.iter().find(|tool| tool["name"] == "apply_patch")?.clone();
        tools["format"]["definition"].as_str().map(str::to_owned)
    });
    let theirs = Grammar::compile(Syntax::Lark, &definition.unwrap()).unwrap();
    for (name, input, expected) in all() {
        assert_eq!(verdict(&theirs, &input), expected, "{name}");
    }
}

/// As long as anything that a model writes in one go.
#[test]
fn a_long_patch_is_checked() {
    for lines in [1_000, 10_000] {
        let long =
            patch(&format!("*** Update File: a\n@@\n{}+end", "-some old line\n+some new line\n".repeat(lines / 2)));
        assert_eq!(verdict(&grammar(), &long), "fits", "{lines} lines");
        assert_eq!(verdict(&grammar(), &long.replace("*** End Patch\n", "")), "repaired: ends the", "{lines} lines");
    }
}

/// What is around a patch is left out only if it is words: a part of it, or a command, is not.
#[test]
fn what_is_around_a_patch_and_means_something_stays() {
    let grammar = grammar();
    let sound = patch(UPDATE);
    let command = |before: &str, after: &str| format!("{before}apply_patch <<'EOF'\n{sound}EOF{after}\n");
    for input in [
        command("cd sub && ", ""),
        command("cd sub\n", ""),
        command("", "\nrm -rf build && make test"),
        command("", "\nMake it so."),
        command("", " | tee log"),
        command("export A=1; ", ""),
        command("FOO=1 ", ""),
        command("apply_patch <<'EOF'\n", ""),
        format!("cat <<'EOF'\n{sound}EOF\n"),
        format!("{sound}*** Delete File: b\n"),
        format!("{sound}*** Begin Patch\n*** Delete File: b\n"),
        format!("*** Delete File: b\n{sound}"),
        format!("{sound}+y\n"),
        format!("{sound}- Y.\n"),
        format!("{sound} Same.\n"),
        format!("@@ There:\n{sound}"),
        format!("cd sub\n{sound}"),
        format!("{sound}rm -rf build\n"),
        format!("First:\n{sound}\nSecond:\n{sound}"),
    ] {
        assert_eq!(grammar.repair(&input, ""), None, "{input}");
    }
    for input in [command("", ""), command("```sh\n", "\n```"), format!("Here it is:\n{sound}\nThat is all.\n")] {
        assert_eq!(grammar.repair(&input, "").unwrap().input, sound, "{input}");
    }
}

/// What is mended is what was meant: nothing between the marks is another.
#[test]
fn repairs_keep_what_is_between_the_marks() {
    let grammar = grammar();
    for (name, input, expected) in broken().iter().filter(|(_, _, expected)| expected.starts_with("repaired")) {
        let repaired = grammar.repair(input, "").unwrap();
        assert_eq!(repaired.input.trim_end(), patch(UPDATE).trim_end(), "{name} ({expected})");
    }
}

#[test]
fn a_repair_begins_with_what_was_sent() {
    let grammar = grammar();
    let open = patch(UPDATE).replace("*** End Patch\n", "");
    assert!(grammar.repair(&open, &open).is_some());
    let fenced = format!("```\n{open}");
    assert!(grammar.repair(&fenced, "").is_some());
    assert!(grammar.repair(&fenced, "`").is_none());
}

/// The verdict is the same however the input comes, and nothing that fits is held up.
#[test]
fn the_pieces_of_an_input_do_not_matter() {
    let grammar = grammar();
    for (name, input, _) in all().iter().filter(|(_, input, _)| input.len() < 1_000) {
        let whole = grammar.check(input);
        for size in [1, 2, 7, 64] {
            let mut reading = grammar.read();
            let characters: Vec<char> = input.chars().collect();
            for piece in characters.chunks(size) {
                reading.push(&piece.iter().collect::<String>());
            }
            assert_eq!(reading.finish(), whole, "{name} by {size}");
        }
    }
}
