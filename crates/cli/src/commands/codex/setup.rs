//! `godex codex setup`: a provider, a profile and a catalogue of models in Codex's own configuration, so that
//! `codex --profile godex` works by itself. What will change is shown and asked about first; nothing is written that
//! `--remove` does not take out again.

pub(super) mod edit;
pub(super) mod profile;
mod remove;

use std::fmt::Write;
use std::fs;
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use toml_edit::Value;
use wire::visible::{visible, visible_lines};

use super::choice::{self, Choice};
use super::installed::{self, Version};
use super::{KEY_VARIABLE, PROVIDER, catalog, codex_home, gateway, overrides};
use crate::args::{Flags, SetupArgs, variable};
use crate::files;
use crate::output;
use edit::Settings;

/// Our catalogue in Codex's folder.
pub(super) const CATALOG: &str = "godex-models.json";
/// What `--default` sets at the root.
const ROOT: [&str; 4] = ["model", "model_provider", "model_catalog_json", "web_search"];

pub(super) fn run(flags: &Flags, codex: Option<&Path>, args: &SetupArgs) -> anyhow::Result<ExitCode> {
    let home = codex_home()?;
    let (changes, notes) = if args.remove {
        remove::removal(&home, address(flags).ok().as_deref())?
    } else {
        (set_up(flags, codex, args, &home)?, Vec::new())
    };
    let changes: Vec<Change> = changes.into_iter().filter(Change::is_one).collect();
    let notes: String = notes.into_iter().map(|note| note + "\n").collect();
    if changes.is_empty() {
        let shown = visible(&home.display().to_string()).into_owned();
        output::print(&format!("nothing to change in {shown}\n{}", visible_lines(&notes)))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::print(&visible_lines(&changes.iter().map(Change::shown).collect::<String>()))?;
    if args.consent.dry_run {
        output::print(&visible_lines(&notes))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !args.consent.yes && !agreed()? {
        bail!("nothing was written");
    }
    for change in &changes {
        files::writable(&change.path)?;
    }
    let mut said = String::new();
    for change in &changes {
        said.push_str(&change.make()?);
    }
    said.push_str(&notes);
    if !args.remove {
        let _ =
            writeln!(said, "use it:  codex --profile {}   (while `godex` runs, at {})", args.profile, address(flags)?);
        if args.default {
            said.push_str("         codex   (it is the default now)\n");
        }
        said.push_str("undo it: godex codex setup --remove\n");
    }
    output::print(&visible_lines(&said))?;
    Ok(ExitCode::SUCCESS)
}

/// Asks, where there is somebody to ask.
fn agreed() -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        bail!("there is no terminal to ask on: add --yes to write this");
    }
    output::tell("Write this? [y/N] ");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

fn address(flags: &Flags) -> anyhow::Result<String> {
    Ok(gateway::url(&flags.look()?))
}

/// A file as it is, and as it will be.
struct Change {
    path: PathBuf,
    before: Option<String>,
    after: Option<String>,
    /// Too long to show, or nobody reads it.
    summary: Option<String>,
    /// Whether the user may have written in it: then a copy is kept.
    users: bool,
    /// Whether what is taken out of it is no longer as we wrote it: then a copy stays.
    edited: bool,
}

impl Change {
    fn is_one(&self) -> bool {
        self.before != self.after
    }

    fn shown(&self) -> String {
        match &self.summary {
            Some(summary) => format!("{}: {summary}\n", self.path.display()),
            None => {
                crate::diff::unified(&self.path.display().to_string(), self.before.as_deref(), self.after.as_deref())
            }
        }
    }

    /// Makes it, and says what was done.
    fn make(&self) -> anyhow::Result<String> {
        let path = self.path.display();
        // Somebody may have written in it while we asked.
        if files::read(&self.path)? != self.before {
            bail!("{path} has changed meanwhile; nothing more was written, run it again");
        }
        let restored = self.after.as_deref().map(|after| files::backups_of(&self.path, after.as_bytes()));
        let restored = restored.filter(|copies| !copies.is_empty());
        let mut said = String::new();
        if let Some(before) = &self.before
            && (self.edited || (self.users && restored.is_none()))
        {
            let copy = files::back_up(&self.path, before.as_bytes())?;
            let _ = writeln!(said, "kept     {} (as it was)", copy.display());
        }
        match &self.after {
            Some(after) => {
                files::write(&self.path, after.as_bytes())?;
                let _ = writeln!(said, "wrote    {path}");
            }
            None => {
                fs::remove_file(&self.path).with_context(|| format!("cannot delete {path}"))?;
                let _ = writeln!(said, "deleted  {path}");
            }
        }
        // It is again as it was: the copy has done its work.
        for copy in restored.into_iter().flatten() {
            fs::remove_file(&copy).with_context(|| format!("cannot delete {}", copy.display()))?;
        }
        Ok(said)
    }
}

fn set_up(flags: &Flags, codex: Option<&Path>, args: &SetupArgs, home: &Path) -> anyhow::Result<Vec<Change>> {
    let config = flags.look()?;
    let choice = choice::choose(&config, args.model.as_deref())?;
    let version = version(codex);
    let catalog = home.join(CATALOG);
    let path = home.join("config.toml");
    let before = files::read(&path)?;
    let at = || format!("{}; nothing was changed", path.display());
    let mut text = before.clone().unwrap_or_default();
    let settings = settings(&choice, &catalog, !config.tools.web_search.services.is_empty());
    let provider = provider(&gateway::url(&config));
    // What is wrong is told by the lines of the file as it is.
    edit::set_table(&text, "model_providers", PROVIDER, &provider).with_context(at)?;
    if args.default {
        for (key, value) in &settings {
            text = edit::set_root(&text, key, value).with_context(at)?;
        }
    }
    text = edit::set_table(&text, "model_providers", PROVIDER, &provider).with_context(at)?;
    let in_file = version.is_none_or(|version| version >= Version::PROFILE_FILES);
    // Of an earlier set-up, for a Codex that wanted it so.
    for name in edit::own_tables(&text, "profiles")?.iter().filter(|name| in_file || **name != args.profile) {
        text = edit::unset_table(&text, "profiles", name).with_context(at)?;
    }
    let mut changes = Vec::new();
    if in_file {
        profile::no_table(&text, &args.profile).with_context(at)?;
        let patient = version.is_none_or(|version| version >= Version::WAITS_FOR_EVER);
        let path = profile::path(home, &args.profile);
        let before = files::read(&path)?;
        let after = profile::text(before.as_deref(), &settings, patient)
            .with_context(|| format!("{}; nothing was changed", path.display()))?;
        changes.push(Change { path, before, after: Some(after), summary: None, users: true, edited: false });
    } else {
        text = edit::set_table(&text, "profiles", &args.profile, &settings).with_context(at)?;
    }
    changes.push(Change { path, before, after: Some(text), summary: None, users: true, edited: false });
    changes.insert(0, catalogue(catalog, catalog::here(&config)?)?);
    Ok(changes)
}

/// The installed Codex's; what is not known is taken for a new one.
fn version(codex: Option<&Path>) -> Option<Version> {
    match installed::find(codex).and_then(|codex| installed::version(&codex)) {
        Ok(version) => Some(version),
        Err(error) => {
            output::tell(&visible_lines(&format!("note: {error:#}\n")));
            None
        }
    }
}

/// What a profile says.
fn settings(choice: &Choice, catalog: &Path, searches: bool) -> Settings {
    let catalog = catalog.to_string_lossy();
    let values = [choice.model.as_str(), PROVIDER, catalog.as_ref(), overrides::web_search(searches)].map(Value::from);
    ROOT.into_iter().zip(values).collect()
}

fn provider(url: &str) -> Settings {
    let mut settings: Settings = vec![
        ("name", Value::from(PROVIDER)),
        ("base_url", Value::from(format!("{url}/v1"))),
        ("wire_api", Value::from("responses")),
        ("supports_websockets", Value::from(true)),
    ];
    // A variable that is not set stops Codex, and a godex without keys asks for none.
    if variable(KEY_VARIABLE).is_some_and(|key| !key.is_empty()) {
        settings.push(("env_key", Value::from(KEY_VARIABLE)));
    }
    settings
}

fn catalogue(path: PathBuf, bytes: Vec<u8>) -> anyhow::Result<Change> {
    let after = String::from_utf8(bytes).context("the catalogue is not UTF-8")?;
    let before = files::read(&path)?;
    if before.as_deref().is_some_and(|before| !catalog::is_ours(before)) {
        bail!("there is a {} that godex did not write; move it away. Nothing was changed", path.display());
    }
    let models = catalog::counted(catalog::models(after.as_bytes()).len());
    let summary = Some(format!("the catalogue of {models} ({} KB)", after.len().div_ceil(1000)));
    Ok(Change { path, before, after: Some(after), summary, users: false, edited: false })
}
