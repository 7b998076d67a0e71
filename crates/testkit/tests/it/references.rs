//! Nothing in the repository refers to a document that is not in it: links and paths lead somewhere, and no comment
//! cites a list that only some people have.

use std::fs;
use std::path::{Path, PathBuf};

/// A text file of the project.
struct Document {
    /// Relative to the root of the project.
    path: PathBuf,
    text: String,
}

/// Endings of files in which people write sentences.
const ENDINGS: [&str; 9] = ["rs", "md", "yaml", "toml", "py", "mjs", "ts", "sh", "golden"];
/// Folders of other people's files, and of what is made.
const LEFT_OUT: [&str; 4] = ["target", ".git", "node_modules", "__pycache__"];
/// This file has examples of what it looks for.
const THIS: &str = "crates/testkit/tests/it/references.rs";

fn documents() -> Vec<Document> {
    let root = testkit::root();
    let (mut documents, mut folders) = (Vec::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is = |names: &[&str], part: Option<&std::ffi::OsStr>| {
                part.is_some_and(|part| names.iter().any(|name| part == *name))
            };
            if path.is_dir() && !is(&LEFT_OUT, path.file_name()) {
                folders.push(path);
            } else if path.is_file() && is(&ENDINGS, path.extension()) {
                let text = fs::read_to_string(&path).unwrap();
                documents.push(Document { path: path.strip_prefix(&root).unwrap().to_owned(), text });
            }
        }
    }
    documents.retain(|document| document.path != Path::new(THIS));
    documents.sort_by(|a, b| a.path.cmp(&b.path));
    documents
}

/// Everything that the check finds, with file and line.
fn found(check: impl Fn(&Document, &str) -> Vec<String>) -> Vec<String> {
    let mut found = Vec::new();
    for document in documents() {
        for (index, line) in document.text.lines().enumerate() {
            let problems = check(&document, line);
            found
                .extend(problems.iter().map(|problem| format!("{}:{}: {problem}", document.path.display(), index + 1)));
        }
    }
    found
}

#[test]
fn links_lead_somewhere() {
    let broken = found(|document, line| {
        if document.path.extension().is_none_or(|ending| ending != "md") {
            return Vec::new();
        }
        let folder = testkit::root().join(document.path.parent().unwrap_or(Path::new("")));
        let missing = |link: &&str| !link.contains("://") && !link.starts_with('#') && !link.starts_with("mailto:");
        links(line)
            .into_iter()
            .filter(missing)
            .filter(|link| !folder.join(link.split('#').next().unwrap_or_default()).exists())
            .map(|link| format!("the link {link} leads nowhere"))
            .collect()
    });
    assert_eq!(broken, Vec::<String>::new(), "{}", broken.join("\n"));
}

/// The targets of `[text](target)`.
fn links(line: &str) -> Vec<&str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link).collect()
}

#[test]
fn paths_to_documents_lead_somewhere() {
    let broken = found(|document, line| {
        let beside = document.path.parent().unwrap_or(Path::new(""));
        let folders = [Path::new(""), Path::new("docs"), beside].map(|folder| testkit::root().join(folder));
        let there = |path: &str| folders.iter().any(|folder| folder.join(path).exists());
        paths(line).into_iter().filter(|path| !there(path)).map(|path| format!("there is no {path}")).collect()
    });
    assert_eq!(broken, Vec::<String>::new(), "{}", broken.join("\n"));
}

/// Words that are paths of documents: `docs/…` or `reference/…`, and any `….md`.
fn paths(line: &str) -> Vec<&str> {
    let split = |c: char| !(c.is_alphanumeric() || "/._-".contains(c));
    let words = line.split(split).map(|word| word.trim_matches(['.', '-', '/']));
    let is_path = |word: &&str| {
        let document = word.strip_suffix(".md").is_some_and(|stem| !stem.is_empty());
        let below = |folder: &str| word.strip_prefix(folder).is_some_and(|rest| rest.contains('.'));
        document || below("docs/") || below("reference/")
    };
    // An address on the web is not ours.
    words.filter(is_path).filter(|word| !line.contains(&format!("//{word}")) && !on_the_web(line, word)).collect()
}

/// Whether the word is part of an address, as in `https://example.com/docs/a.md`.
fn on_the_web(line: &str, word: &str) -> bool {
    let at = line.find(word).unwrap_or_default();
    let start = line[..at].rfind([' ', '(', '<', '"', '`']).map_or(0, |space| space + 1);
    line[start..at].contains("://")
}

/// Citations of lists that are not here, by their words.
const CITATIONS: [&str; 4] = ["pitfall", "fault list", "the seed", "seed 0"];

#[test]
fn no_list_is_cited_that_is_not_here() {
    let cited = found(|document, line| {
        let lower = line.to_lowercase();
        // A seed of chance is not a document.
        let chance = ["--seed", "seed:", "seeds", "_seed", "seed_", "random", "prng"];
        let is_chance = |word: &str| word.ends_with("seed") && chance.iter().any(|known| lower.contains(known));
        let mut problems: Vec<String> = CITATIONS
            .iter()
            .filter(|word| lower.contains(**word) && !is_chance(word))
            .map(|word| format!("speaks of {word:?}"))
            .collect();
        if document.path.extension().is_some_and(|ending| ending != "golden") {
            problems.extend(
                codes(line).into_iter().map(|code| format!("cites {code}, an entry of a list that is not here")),
            );
        }
        problems
    });
    assert_eq!(cited, Vec::<String>::new(), "{}", cited.join("\n"));
}

/// Codes of entries, `(E5)` or `"F1 …"` or `B4:`, in comments and at the start of strings.
fn codes(line: &str) -> Vec<&str> {
    let comment = line.find("//").filter(|at| !line[..*at].ends_with(':')).map(|at| &line[at..]);
    let quoted = line.split('"').skip(1).step_by(2).filter_map(|text| text.split(' ').next());
    let words = comment.into_iter().flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-'));
    words.chain(quoted).filter(|word| is_code(word)).collect()
}

/// A capital from A to H and a number up to 99. Names of hardware and standards begin otherwise.
fn is_code(word: &str) -> bool {
    let mut characters = word.chars();
    let capital = characters.next().is_some_and(|first| ('A'..='H').contains(&first));
    let number = characters.as_str();
    capital && (1..=2).contains(&number.len()) && number.chars().all(|c| c.is_ascii_digit())
}

#[test]
fn references_are_found() {
    assert_eq!(links("see [a](b.md#c), [d](https://e.f)"), ["b.md#c", "https://e.f"]);
    assert_eq!(
        paths("as `docs/specs.md` and reference/x.md, see ARCHITECTURE.md."),
        ["docs/specs.md", "reference/x.md", "ARCHITECTURE.md"]
    );
    assert_eq!(paths("https://example.com/docs/a.md and docs/"), Vec::<&str>::new());
    assert_eq!(codes(r#"quirk("F1 overflow", x) // as (E5) says"#), ["E5", "F1"]);
    assert_eq!(codes("let A1 = 7; // H264 and UTF-8"), Vec::<&str>::new());
}
