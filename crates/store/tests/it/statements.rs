//! Statements are written where their plans are looked at, and nowhere else.

use std::path::{Path, PathBuf};

/// Where they may: the gathered ones, what makes the schema, and tests.
const HOMES: [&str; 5] = ["sql.rs", "migrate.rs", "indexes.rs", "plans.rs", "bound.rs"];

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let nested = entries.map(|path| if path.is_dir() { files(&path) } else { vec![path] });
    nested.flatten().filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

#[test]
fn no_statement_escapes_the_plans() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut looked_at = 0;
    for path in files(&source) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let tests = ["sqlite/tests", "postgres/tests"];
        if HOMES.contains(&name) || tests.iter().any(|tests| path.to_str().unwrap().contains(tests)) {
            continue;
        }
        looked_at += 1;
        let text = std::fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            let verbs = ["\"SELECT ", "\"INSERT ", "\"UPDATE ", "\"DELETE ", "\"WITH "];
            let found = verbs.iter().any(|verb| line.contains(verb));
            assert!(!found, "{}:{}: a statement outside sql.rs: {line}", path.display(), number + 1);
        }
    }
    assert!(looked_at > 20, "{looked_at}");
}
