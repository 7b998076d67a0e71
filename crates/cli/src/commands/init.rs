//! `godex init`: a configuration out of what is there and what is answered. Everything is shown before it is written, and
//! whoever stops in between has written nothing.

mod detect;
mod draft;
mod questions;

use std::fmt::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail, ensure};
use providers::yaml::nearest;
use server::checkup::KeyTrial;
use server::config::{self, LogLevel, Overrides, Secret, Sources};
use wire::visible::{visible, visible_lines};

use super::codex;
use crate::args::{BackendName, Flags, InitArgs, home, variable};
use crate::progress::Progress;
use crate::{files, output, prompt};
use detect::{Found, Known, is_set};
use draft::{Chosen, Draft, Key, Keys};

const PORT: u16 = 5678;

pub(crate) fn run(flags: &Flags, args: &InitArgs) -> anyhow::Result<()> {
    let asks = !args.answers.yes;
    ensure!(!asks || prompt::is_possible(), "there is no terminal to ask on: add --yes, and say the rest with flags");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let progress = Progress::start("looking for keys and model servers");
    let known = runtime.block_on(detect::all());
    drop(progress);
    output::tell(&visible_lines(&seen(&known)));
    let path = match flags.config() {
        Some(path) => path.to_owned(),
        None if asks => questions::place()?,
        None => usual_place(),
    };
    let before = files::read(&path)?;
    if before.is_some() {
        may_replace(&path, args, asks)?;
    }
    files::writable(&path)?;
    let wizard = Wizard { flags, args, known, runtime };
    let draft = if asks { wizard.ask()? } else { wizard.decide()? };
    check(&path, &draft)?;
    output::tell(&format!("\n{}\n", visible_lines(&draft.yaml(Keys::Masked))));
    if asks && !prompt::yes(&format!("Write this to {}?", path.display()), true)? {
        return Err(prompt::Cancelled.into());
    }
    let mut said = String::new();
    if let Some(before) = &before {
        let copy = files::back_up(&path, before.as_bytes())?;
        // Writing to a String cannot fail.
        let _ = writeln!(said, "kept   {} (as it was)", copy.display());
    }
    files::write_private(&path, draft.yaml(Keys::Whole).as_bytes())?;
    let _ = writeln!(said, "wrote  {}", path.display());
    output::print(&visible_lines(&said))?;
    if !args.no_codex {
        set_codex_up(&path, asks);
    }
    output::print(&visible_lines(&next(flags, &path, &draft)))
}

/// What was found, for who is about to choose.
fn seen(known: &[Known]) -> String {
    let mut out = format!("godex {}: a configuration for this machine\n", env!("CARGO_PKG_VERSION"));
    let found: Vec<&Known> = known.iter().filter(|known| known.found.is_some()).collect();
    if found.is_empty() {
        out.push_str("found: no key in the environment, no model server on this machine\n");
    }
    for known in found {
        let _ = writeln!(out, "found: {:<10} {}", known.spec, known.about());
    }
    out
}

/// Found from everywhere, unless there is no home.
fn usual_place() -> PathBuf {
    home().map_or_else(|| PathBuf::from("godex.yaml"), |home| home.join(".godex").join("config.yaml"))
}

fn may_replace(path: &Path, args: &InitArgs, asks: bool) -> anyhow::Result<()> {
    if args.answers.force {
        return Ok(());
    }
    let there = format!("{} is there already", path.display());
    ensure!(asks, "{there}: add --force to replace it (a copy is kept)");
    if prompt::yes(&format!("{there}. Replace it? A copy is kept."), false)? {
        return Ok(());
    }
    Err(prompt::Cancelled.into())
}

/// What is written must load, once its variables are set.
fn check(path: &Path, draft: &Draft) -> anyhow::Result<()> {
    let cwd = std::env::current_dir().context("cannot tell the current directory")?;
    let variables = draft.variables();
    let env = |name: &str| match variable(name) {
        // What it says does not matter here.
        None if name == draft::DATABASE_VARIABLE => Some("postgres://localhost/godex".to_owned()),
        None if variables.contains(&name) => Some("a-key-that-is-not-known-yet".to_owned()),
        value => value,
    };
    let home = home();
    let overrides = Overrides::default();
    let sources = Sources { config_path: None, cwd: &cwd, home: home.as_deref(), env: &env, overrides };
    let name = path.display().to_string();
    let loaded = config::load_text(&name, &draft.yaml(Keys::Whole), &sources);
    loaded.map(drop).map_err(|problems| anyhow!("this would not load, so nothing was written:\n{problems}"))
}

struct Wizard<'a> {
    flags: &'a Flags,
    args: &'a InitArgs,
    known: Vec<Known>,
    runtime: tokio::runtime::Runtime,
}

impl Wizard<'_> {
    /// Without questions.
    fn decide(&self) -> anyhow::Result<Draft> {
        let wanted: Vec<(&Known, Option<String>)> = if self.args.providers.is_empty() {
            self.known.iter().filter(|known| known.found.is_some()).map(|known| (known, None)).collect()
        } else {
            self.args.providers.iter().map(|said| self.named(said)).collect::<anyhow::Result<_>>()?
        };
        let mut providers = Vec::new();
        for (known, url) in wanted {
            let chosen = Self::chosen(known, url)?;
            if self.args.check_keys {
                self.check(&chosen)?;
            }
            providers.push(chosen);
        }
        self.models(&mut providers)?;
        Ok(Draft { providers, ..self.frame()? })
    }

    /// What is said with flags, and else usual.
    fn frame(&self) -> anyhow::Result<Draft> {
        Ok(Draft {
            host: self.flags.host().map(str::to_owned),
            port: self.port()?,
            providers: Vec::new(),
            backend: self.args.backend.unwrap_or(BackendName::Sqlite),
            level: self.flags.log_level().unwrap_or(LogLevel::Info),
        })
    }

    /// Clients need one that stays: for 0 one that is free now is written down.
    fn port(&self) -> anyhow::Result<u16> {
        match self.flags.port() {
            Some(0) => {
                let host = self.flags.host().unwrap_or("127.0.0.1");
                let free = TcpListener::bind((host, 0)).and_then(|listener| listener.local_addr());
                Ok(free.with_context(|| format!("{host} has no free port"))?.port())
            }
            said => Ok(said.unwrap_or(PORT)),
        }
    }

    /// `NAME`, or `NAME=URL`.
    fn named(&self, said: &str) -> anyhow::Result<(&Known, Option<String>)> {
        let (name, url) = said.split_once('=').map_or((said, None), |(name, url)| (name, Some(url.to_owned())));
        let names: Vec<&str> = self.known.iter().map(|known| known.spec).collect();
        let known = self.known.iter().find(|known| known.spec == name).with_context(|| {
            let near = nearest(name, &names).map(|near| format!("; did you mean `{near}`?"));
            let near = near.unwrap_or_else(|| ".".to_owned());
            format!("--provider {name}: there is none{near} They are: {}", names.join(", "))
        })?;
        Ok((known, url))
    }

    /// A provider with the key that the environment has, or will have.
    fn chosen(known: &Known, url: Option<String>) -> anyhow::Result<Chosen> {
        let found = match &known.found {
            Some(Found::Server { url, .. }) => Some(url.clone()),
            _ => None,
        };
        let whole = known.provider.address(&variable).ok().flatten();
        let is_own = |url: &String| known.provider.base_url.as_ref() == Some(url) || whole.as_ref() == Some(url);
        let base_url = url.or(found).filter(|url| !is_own(url));
        if base_url.is_none() && known.provider.base_url.is_none() {
            bail!("--provider {0}: it has no address of its own; say {0}=https://…/v1", known.spec);
        }
        let key = known.key_variable(base_url.as_deref()).map_or(Key::Unneeded, Key::Variable);
        let spec = known.spec.to_owned();
        Ok(Chosen { spec, base_url, key, models: usual_model(known).into_iter().collect(), listed: true })
    }

    /// The models that were asked for, each for its provider.
    fn models(&self, providers: &mut [Chosen]) -> anyhow::Result<()> {
        let mut named: Vec<(usize, String)> = Vec::new();
        for said in &self.args.models {
            let of = |(index, chosen): (usize, &Chosen)| {
                let model = said.strip_prefix(chosen.spec.as_str())?.strip_prefix('/')?;
                Some((index, model.to_owned()))
            };
            let found = providers.iter().enumerate().find_map(of);
            ensure!(!providers.is_empty(), "--model {said}: there is no provider for it");
            named.push(found.unwrap_or_else(|| (0, said.clone())));
        }
        for (index, chosen) in providers.iter_mut().enumerate() {
            let mut own = named.iter().filter(|(of, _)| *of == index).map(|(_, model)| model.clone()).peekable();
            if own.peek().is_some() {
                chosen.models = own.collect();
                chosen.listed = self.lists(&chosen.spec, &chosen.models);
            }
        }
        Ok(())
    }

    /// Whether these models are listed without being written down.
    fn lists(&self, spec: &str, models: &[String]) -> bool {
        let Some(known) = self.known.iter().find(|known| known.spec == spec) else { return false };
        match &known.found {
            Some(Found::Server { models: listed, .. }) => models.iter().all(|model| listed.contains(model)),
            _ => models.iter().all(|model| known.provider.models.contains(model)),
        }
    }

    /// Whether the provider takes the key; what it lists.
    fn check(&self, chosen: &Chosen) -> anyhow::Result<Vec<String>> {
        let key = match &chosen.key {
            Key::Unneeded => None,
            Key::Typed(key) => Some(key.clone()),
            Key::Variable(name) => {
                match variable(name).map(|key| key.trim().to_owned()).filter(|key| !key.is_empty()) {
                    Some(key) => Some(Secret::new(key)),
                    None => bail!("{}: {name} is not set", chosen.spec),
                }
            }
        };
        let progress = Progress::start(&format!("asking {}", chosen.spec));
        let asked = self.runtime.block_on(detect::check(&chosen.spec, chosen.base_url.as_deref(), key));
        drop(progress);
        let (answer, key) = asked.map_err(|why| anyhow!("{}: {why}", chosen.spec))?;
        if answer.refuses_key() {
            let what = if key == KeyTrial::Unsent { "it wants a key" } else { "the key was refused" };
            bail!("{}: {what} ({})", chosen.spec, answer.status);
        }
        if let Some(why) = &answer.stranger {
            let advice = "its address is another one, or a proxy or a login page answers in its place: look at the URL, with all of its path";
            bail!("{}: {why}; {advice}", chosen.spec);
        }
        let said = match (answer.status, key, answer.models.len()) {
            (200, KeyTrial::Untried, count) => {
                format!("reached; its list needs no key, so the key was not tried; {count} models")
            }
            (200, _, 0) => "it answers, and lists no models".to_owned(),
            (200, KeyTrial::Tried, count) => format!("the key is good; {count} models"),
            (200, KeyTrial::Unsent, count) => format!("it answers; {count} models"),
            (status, KeyTrial::Unsent, _) => format!("it answered {status}"),
            (status, ..) => format!("it answered {status}; whether the key is good is not known"),
        };
        output::tell(&format!("  {}: {said}\n", visible(&chosen.spec)));
        Ok(answer.models)
    }
}

/// What goes wrong with it is said, and leaves the configuration as it is.
fn set_codex_up(path: &Path, asks: bool) {
    if let Err(error) = codex::set_up(&Flags::of_file(path.to_owned()), asks) {
        output::tell(&visible_lines(&format!("note: Codex is left as it is: {error:#}\n")));
    }
}

/// What the spec prefers, else the only one that a local server has.
fn usual_model(known: &Known) -> Option<String> {
    match &known.found {
        Some(Found::Server { models, .. }) => models.first().cloned(),
        _ => known.provider.default_model.clone().or_else(|| known.provider.models.first().cloned()),
    }
}

/// What to do now.
fn next(flags: &Flags, path: &Path, draft: &Draft) -> String {
    let mut out = String::from("\nnext:\n");
    for name in draft.variables().into_iter().filter(|name| !is_set(name)) {
        let _ = writeln!(out, "  export {name}=…");
    }
    let named = flags.config().is_some() || !is_found(path);
    let config = if named { format!(" --config {}", pasted(path)) } else { String::new() };
    let _ = writeln!(out, "  godex{config} doctor    # whether everything is in place");
    if !draft.host.as_deref().is_none_or(is_local) {
        let _ = writeln!(
            out,
            "  godex{config} keys create NAME    # a key for clients: without one it serves this machine only"
        );
    }
    let _ = writeln!(out, "  godex{config}           # serve");
    out
}

/// As a shell takes it for one word.
fn pasted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@%,=".contains(c);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Whether only this machine reaches it.
fn is_local(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether `godex` alone would read this file.
fn is_found(path: &Path) -> bool {
    let local = Path::new("godex.yaml");
    path == local || (!local.exists() && path == usual_place())
}
