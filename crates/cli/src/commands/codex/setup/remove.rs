//! The way back: everything that was ever set up is taken out, whatever the profiles were called. What somebody changed
//! since, and what Codex still needs, stays.

use std::path::{Path, PathBuf};

use anyhow::Context;
use toml_edit::{Item, Value};

use super::super::{KEY_VARIABLE, PROVIDER, catalog};
use super::{CATALOG, Change, ROOT, edit, profile};
use crate::files;

/// What there is to change, and what people should know of what stays.
pub(super) fn removal(home: &Path, url: Option<&str>) -> anyhow::Result<(Vec<Change>, Vec<String>)> {
    let (mut changes, mut notes) = (Vec::new(), Vec::new());
    let path = home.join("config.toml");
    if let Some(old) = files::read(&path)? {
        changes.push(configuration(path, old, url, &mut notes)?);
    }
    for path in profile::all(home) {
        let before = files::read(&path)?;
        let users = profile::has_more(before.as_deref().unwrap_or_default());
        changes.push(Change { path, before, after: None, summary: None, users, edited: users });
    }
    let path = home.join(CATALOG);
    let before = files::read(&path)?;
    let shown = path.display();
    if before.as_deref().is_some_and(|text| !catalog::is_ours(text)) {
        notes.push(format!("left     {shown}: godex did not write it"));
    } else if let Some(file) = before.is_some().then(|| who_names(&path, home, &changes)).flatten() {
        let advice = "take its `model_catalog_json` out, then run this again";
        notes.push(format!(
            "left     {shown}: {} names it, and Codex does not start without it; {advice}",
            file.display()
        ));
    } else {
        let summary = Some("deleted".to_owned());
        changes.push(Change { path, before, after: None, summary, users: false, edited: false });
    }
    Ok((changes, notes))
}

fn configuration(path: PathBuf, before: String, url: Option<&str>, notes: &mut Vec<String>) -> anyhow::Result<Change> {
    let shown = path.display().to_string();
    let at = || format!("{shown}; nothing was changed");
    let provider = |key: &str, value: &Value| is_provider_setting(key, value, url);
    let in_profile = |key: &str, _: &Value| ROOT.contains(&key);
    let profiles = edit::own_tables(&before, "profiles").with_context(at)?;
    let edited = edit::is_edited(&before, "model_providers", PROVIDER, &provider)
        || profiles.iter().any(|name| edit::is_edited(&before, "profiles", name, &in_profile));
    let mut text = before.clone();
    for name in profiles.iter().rev() {
        text = edit::unset_table(&text, "profiles", name).with_context(at)?;
    }
    text = edit::unset_table(&text, "model_providers", PROVIDER).with_context(at)?;
    for key in ROOT.iter().rev() {
        if edit::is_root_changed(&text, key) {
            notes.push(format!("left     `{key}` of {shown}: it was changed since"));
        }
        text = edit::unset_root(&text, key).with_context(at)?;
    }
    let document = edit::parse(&text).with_context(at)?;
    if document.get("model_providers").and_then(|providers| providers.get(PROVIDER)).is_some() {
        notes.push(format!("left     `model_providers.{PROVIDER}` of {shown}: no comment says that it is godex's"));
    }
    drop(document);
    // There was no file, if there is no copy of an empty one.
    let was_there = !text.is_empty() || before.is_empty() || !files::backups_of(&path, b"").is_empty();
    let after = was_there.then_some(text);
    Ok(Change { path, before: Some(before), after, summary: None, users: was_there || edited, edited })
}

/// Whether this is what we write into the provider's table.
fn is_provider_setting(key: &str, value: &Value, url: Option<&str>) -> bool {
    match key {
        "name" => value.as_str() == Some(PROVIDER),
        "wire_api" => value.as_str() == Some("responses"),
        "env_key" => value.as_str() == Some(KEY_VARIABLE),
        "supports_websockets" => value.as_bool() == Some(true),
        "base_url" => value.as_str().and_then(|value| value.strip_suffix("/v1")).is_some_and(|value| {
            // Another port may have been on the command line.
            let local = ["http://127.0.0.1:", "http://[::1]:", "http://localhost:"];
            Some(value) == url || local.iter().any(|local| value.starts_with(local))
        }),
        _ => false,
    }
}

/// A configuration of Codex's that names this catalogue after these changes.
fn who_names(catalog: &Path, home: &Path, changes: &[Change]) -> Option<PathBuf> {
    let mut paths = profile::every(home);
    paths.insert(0, home.join("config.toml"));
    let names = |path: &PathBuf| {
        let text = match changes.iter().find(|change| change.path == *path) {
            Some(change) => change.after.clone(),
            None => files::read(path).ok().flatten(),
        };
        text.is_some_and(|text| text_names(&text, catalog, home))
    };
    paths.into_iter().find(names)
}

fn text_names(text: &str, catalog: &Path, home: &Path) -> bool {
    let Ok(document) = edit::parse(text) else { return text.contains(CATALOG) };
    let same = |item: &Item| {
        let named = item.get("model_catalog_json").and_then(Item::as_str).map(Path::new);
        named.is_some_and(|named| {
            let (named, real) = (home.join(named), |path: &Path| path.canonicalize().ok());
            // A relative one may be meant from somewhere else.
            named == catalog || real(&named) == real(catalog) || named.file_name() == catalog.file_name()
        })
    };
    let profiles = document.get("profiles").and_then(Item::as_table_like);
    same(document.as_item()) || profiles.is_some_and(|profiles| profiles.iter().any(|(_, profile)| same(profile)))
}
