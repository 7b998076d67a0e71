//! A profile as a file of its own, `NAME.config.toml` beside Codex's `config.toml`. Codex writes into it when it runs
//! with it: what is not ours stays.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::bail;
use toml_edit::{DocumentMut, Item, value};

use super::edit::{self, Settings, UNDO};

/// Our keys at the root and below `features`.
const FEATURE: &str = "unbounded_connection_retries";
const END: &str = ".config.toml";

pub(super) fn path(home: &Path, name: &str) -> PathBuf {
    home.join(format!("{name}{END}"))
}

/// The profile with these settings, in the file that is there or in a new one. `impatient`: it is said when nobody
/// answers, where Codex would wait for ever.
pub(super) fn text(before: Option<&str>, settings: &Settings, impatient: bool) -> anyhow::Result<String> {
    let Some(before) = before.filter(|text| !text.trim().is_empty()) else {
        let mut out = format!("{UNDO}\n");
        for (key, value) in settings {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{key} = {value}");
        }
        if impatient {
            let note = "# Say so when godex does not run, instead of waiting for it.";
            let _ = write!(out, "\n[features]\n{note}\n{FEATURE} = false\n");
        }
        return Ok(out);
    };
    edit::parse(before)?;
    if !before.starts_with(UNDO) {
        bail!("there is such a profile that `godex codex setup` did not write; choose another name with --profile");
    }
    let mut document: DocumentMut = before.parse()?;
    for (key, wanted) in settings {
        let same = document.get(key).and_then(Item::as_str) == wanted.as_str();
        if !same {
            document[*key] = value(wanted.clone());
        }
    }
    if impatient && document.get("features").and_then(|features| features.get(FEATURE)).is_none() {
        document["features"][FEATURE] = value(false);
    }
    Ok(document.to_string())
}

/// Every profile here that is ours.
pub(in super::super) fn all(home: &Path) -> Vec<PathBuf> {
    let ours = |path: &PathBuf| std::fs::read(path).is_ok_and(|bytes| bytes.starts_with(UNDO.as_bytes()));
    every(home).into_iter().filter(ours).collect()
}

/// Every profile here, whoever wrote it.
pub(super) fn every(home: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(home) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_profile = |path: &PathBuf| {
        // Whoever reads a pipe waits for ever.
        path.is_file() && path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(END))
    };
    let mut found: Vec<PathBuf> = paths.filter(is_profile).collect();
    found.sort();
    found
}

/// Whether somebody else has written in a profile of ours.
pub(super) fn has_more(text: &str) -> bool {
    let Ok(document) = edit::parse(text) else { return true };
    let ours = |(key, item): (&str, &Item)| match item.as_table_like() {
        Some(features) => key == "features" && features.iter().all(|(key, _)| key == FEATURE),
        None => super::ROOT.contains(&key),
    };
    !document.iter().all(ours)
}

/// A Codex that reads profiles from files refuses one whose name is also a table of `config.toml`.
pub(super) fn no_table(config: &str, name: &str) -> anyhow::Result<()> {
    let document = edit::parse(config)?;
    let table = document.get("profiles").and_then(|profiles| profiles.get(name)).is_some();
    let chosen = document.get("profile").and_then(Item::as_str) == Some(name);
    if table || chosen {
        bail!(
            "there is an old profile `{name}` in it, which this Codex refuses; take it out, or choose --profile NAME"
        );
    }
    Ok(())
}
