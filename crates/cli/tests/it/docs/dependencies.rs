//! `docs/dependencies.md` is written by hand; what ships must be in its table, and nothing else.

use std::collections::BTreeSet;

use super::root;

/// The crates that the binary is made of.
const SHIPPED: &[&str] = &[
    "bridge",
    "cli",
    "grammar",
    "mcp",
    "pdf",
    "probe",
    "providers",
    "schema",
    "server",
    "store",
    "tokens",
    "web",
    "wire",
];

/// The names below `[dependencies]` and `[target.….dependencies]` of a manifest.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut within = false;
    let mut names = Vec::new();
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            within = section.trim_end_matches(']').rsplit('.').next() == Some("dependencies");
        } else if let Some((name, _)) = line.split_once(['.', '=', ' ']).filter(|_| within) {
            names.push(name.trim().to_owned());
        }
    }
    names
}

#[test]
fn what_ships_is_explained_and_what_does_not_is_not_in_the_table() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let shipped: BTreeSet<String> = SHIPPED
        .iter()
        .flat_map(|name| dependencies(&read(&format!("crates/{name}/Cargo.toml"))))
        .filter(|name| !name.is_empty() && !SHIPPED.contains(&name.as_str()) && !name.starts_with('#'))
        .collect();
    assert!(shipped.len() > 20 && !shipped.contains("jsonschema"), "{shipped:?}");
    let page = read("docs/dependencies.md");
    let first_cells = page.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split('|').nth(1));
    let explained: BTreeSet<String> =
        first_cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect();
    assert_eq!(explained, shipped);
}
