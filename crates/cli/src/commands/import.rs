//! `godex import`: the configuration of another program becomes one of ours. What has no equal is said on stderr, and in
//! the file as comments: nothing is left out in silence.

mod azure;
mod deployment;
mod litellm;
mod notes;
mod settings;
mod source;
mod times;
mod vendors;
mod write;

use std::path::Path;

use anyhow::{Context, anyhow, ensure};
use providers::yaml::{Document, Problem, Problems};
use server::config::{self, Overrides, Sources};
use wire::visible::{visible, visible_lines};

use crate::args::{ImportArgs, ImportCommand, home, variable};
use crate::{files, output};
use litellm::Imported;

pub(crate) fn run(command: &ImportCommand) -> anyhow::Result<()> {
    let ImportCommand::Litellm(args) = command;
    let name = args.file.display().to_string();
    let text = files::read(&args.file)?.with_context(|| format!("there is no {name}"))?;
    let mut document = Document::parse(&name, &text).map_err(|problem| anyhow!("{problem}"))?;
    source::merge(&mut document.root)
        .map_err(|line| anyhow!("{name}:{line}: `<<` takes a mapping, or a list of mappings"))?;
    let imported = imported(document, &name)?;
    for note in &imported.notes {
        output::tell(&visible_lines(&format!("note: {name}:{note}\n")));
    }
    write(args, &imported)?;
    let unset: Vec<&str> =
        imported.variables.iter().map(|(name, _)| name.as_str()).filter(|name| variable(name).is_none()).collect();
    if !unset.is_empty() {
        output::tell(&visible_lines(&format!("set before it is used: {}\n", unset.join(", "))));
    }
    Ok(())
}

fn write(args: &ImportArgs, imported: &Imported) -> anyhow::Result<()> {
    let Some(path) = &args.output else { return output::print(&visible_lines(&imported.yaml)) };
    let shown = path.display().to_string();
    if let Some(before) = files::read(path)? {
        ensure!(args.force, "{shown} is there already: add --force to replace it (a copy is kept)");
        files::writable(path)?;
        let copy = files::back_up(path, before.as_bytes())?;
        output::tell(&format!("kept {} (as it was)\n", visible(&copy.display().to_string())));
    }
    files::write_private(path, imported.yaml.as_bytes())?;
    output::tell(&format!("wrote {}\nnext: godex --config {} config check\n", visible(&shown), visible(&shown)));
    Ok(())
}

/// What a file becomes. Where that would not load, entries are left out that do not load by themselves.
fn imported(mut document: Document, name: &str) -> anyhow::Result<Imported> {
    let cwd = std::env::current_dir().context("cannot tell the current directory")?;
    let whole = litellm::convert(&document, name, &[])?;
    if check(&whole, &cwd).is_ok() {
        return Ok(whole);
    }
    let mut odd = Vec::new();
    source::keep_entries(&mut document, |entry, alone| {
        let alone = litellm::convert(alone, name, &[])?;
        // Where it is in a file that nobody sees does not matter.
        let problem = check(&alone, &cwd).err().and_then(|problems| problems.0.into_iter().next());
        let why = |problem: &Problem| {
            let (name, Problem { path, message, .. }) = (source::entry_name(entry), problem);
            (entry.position.line, format!("`{name}` is left out, all of it: `{path}`: {message}"))
        };
        odd.extend(problem.as_ref().map(why));
        Ok(problem.is_none())
    })?;
    let rest = litellm::convert(&document, name, &odd)?;
    let checked = check(&rest, &cwd);
    checked.map_err(|problems| anyhow!("what it became would not load, so nothing was written:\n{problems}"))?;
    Ok(rest)
}

/// What is written must load, once its variables are set: to what, and what else is set here, makes no difference.
fn check(imported: &Imported, cwd: &Path) -> Result<(), Problems> {
    let env = |name: &str| {
        let ours = imported.variables.iter().find(|(ours, _)| ours == name);
        let instead = |(_, is_address): &(String, bool)| {
            let text = if *is_address { "https://not-known-yet.example.com" } else { "a-key-that-is-not-known-yet" };
            text.to_owned()
        };
        ours.map(instead)
    };
    let home = home();
    let overrides = Overrides::default();
    let sources = Sources { config_path: None, cwd, home: home.as_deref(), env: &env, overrides };
    config::load_text("godex.yaml", &imported.yaml, &sources).map(drop)
}
