//! What the wizard asks, in its order: where, which providers, their addresses, keys and models, the port, the store, the
//! log.

use std::net::TcpListener;
use std::path::PathBuf;

use server::config::{LogLevel, Secret};
use wire::visible::visible;

use super::detect::{Found, Known};
use super::draft::{Chosen, Draft, Key};
use super::{Wizard, is_set, usual_model, usual_place};
use crate::args::{BackendName, home, variable};
use crate::output::tell;
use crate::prompt::{self, Choice};

/// Models that are shown to choose from; others are named.
const SHOWN: usize = 20;

fn choice(name: impl Into<String>, about: impl Into<String>) -> Choice {
    Choice { name: name.into(), about: about.into() }
}

pub(super) fn place() -> anyhow::Result<PathBuf> {
    if home().is_none() {
        tell("\nThere is no HOME, so the configuration is made in this folder: ./godex.yaml\n");
        return Ok(usual_place());
    }
    let home = usual_place();
    let options = [
        choice(home.display().to_string(), "found from every folder"),
        choice("./godex.yaml", "found in this folder only, and comes first there"),
    ];
    let chosen = prompt::one("\nWhere should the configuration be?", &options, 0)?;
    Ok(if chosen == 0 { home } else { PathBuf::from("godex.yaml") })
}

impl Wizard<'_> {
    pub(super) fn ask(&self) -> anyhow::Result<Draft> {
        let mut providers = Vec::new();
        for (known, url) in self.providers()? {
            providers.push(self.provider(known, url)?);
        }
        if providers.len() > 1 {
            let options: Vec<Choice> = providers.iter().map(|chosen| choice(&chosen.spec, "")).collect();
            let first = prompt::one("\nWho answers when a client names no provider?", &options, 0)?;
            providers[..=first].rotate_right(1);
        }
        if !self.args.models.is_empty() {
            self.models(&mut providers)?;
        }
        let frame = self.frame()?;
        let port = match self.flags.port() {
            Some(_) => frame.port,
            None => port(frame.port)?,
        };
        let backend = match self.args.backend {
            Some(backend) => backend,
            None => backend()?,
        };
        let level = match self.flags.log_level() {
            Some(level) => level,
            None => level()?,
        };
        Ok(Draft { port, providers, backend, level, ..frame })
    }

    fn providers(&self) -> anyhow::Result<Vec<(&Known, Option<String>)>> {
        if !self.args.providers.is_empty() {
            return self.args.providers.iter().map(|said| self.named(said)).collect();
        }
        let options: Vec<Choice> = self.known.iter().map(|known| choice(known.spec, known.about())).collect();
        let found: Vec<usize> = (0..self.known.len()).filter(|index| self.known[*index].found.is_some()).collect();
        let chosen = prompt::some("\nWhich providers?", &options, &found, found.len())?;
        Ok(chosen.into_iter().filter_map(|index| Some((self.known.get(index)?, None))).collect())
    }

    fn provider(&self, known: &Known, url: Option<String>) -> anyhow::Result<Chosen> {
        tell(&format!("\n{}\n", known.spec));
        let url = match url {
            Some(url) => url,
            None => address(known)?,
        };
        let mut chosen = Self::chosen(known, Some(url))?;
        loop {
            chosen.key = key(known, &chosen)?;
            let Some(models) = self.checked(&chosen)? else { continue };
            let models = match &known.found {
                Some(Found::Server { models, .. }) => models.clone(),
                _ => models,
            };
            chosen.models = model(known, &models)?.into_iter().collect();
            chosen.listed = self.lists(&chosen.spec, &chosen.models);
            return Ok(chosen);
        }
    }

    /// What it lists, if it was asked; None: another key is to be tried.
    fn checked(&self, chosen: &Chosen) -> anyhow::Result<Option<Vec<String>>> {
        let ready = match &chosen.key {
            Key::Variable(name) => is_set(name),
            Key::Typed(_) => true,
            Key::Unneeded => false,
        };
        let wanted = ready && (self.args.check_keys || prompt::yes("  Check the key by asking for the models?", true)?);
        if !wanted {
            return Ok(Some(Vec::new()));
        }
        match self.check(chosen) {
            Ok(models) => Ok(Some(models)),
            Err(error) => {
                tell(&format!("  {}\n", visible(&format!("{error:#}"))));
                let again = matches!(chosen.key, Key::Typed(_)) && prompt::yes("  Type another key?", true)?;
                Ok(if again { None } else { Some(Vec::new()) })
            }
        }
    }
}

fn address(known: &Known) -> anyhow::Result<String> {
    let usual = match &known.found {
        Some(Found::Server { url, .. }) => url.clone(),
        _ => match known.provider.address(&variable) {
            Ok(url) => url.unwrap_or_default(),
            Err(gaps) => {
                let help: Vec<String> = gaps.iter().map(|gap| format!("{{{}}}", gap.name)).collect();
                tell(&format!("  fill in {}: {}\n", help.join(", "), known.provider.base_url.as_deref().unwrap_or("")));
                String::new()
            }
        },
    };
    loop {
        let url = prompt::text("  address", &usual)?;
        match server::config::ad_hoc("openai-compatible", Some(&url), None, &|_| None) {
            Ok(_) => return Ok(url),
            Err(why) => tell(&format!("  {}\n", visible(&why))),
        }
    }
}

/// A variable that is set is used; else one may be typed.
fn key(known: &Known, chosen: &Chosen) -> anyhow::Result<Key> {
    let variable = known.key_variable(chosen.base_url.as_deref());
    if let Some(name) = variable.as_ref().filter(|name| is_set(name)) {
        tell(&format!("  key: from {name}\n"));
        return Ok(Key::Variable(name.clone()));
    }
    let own = known.provider.base_url.is_none() || chosen.base_url.is_some();
    let (question, otherwise) = match &variable {
        Some(name) => {
            (format!("  key (hidden; Enter: {name} will be set when godex starts)"), Key::Variable(name.clone()))
        }
        None if own => ("  key (hidden; Enter: none is needed)".to_owned(), Key::Unneeded),
        None => return Ok(Key::Unneeded),
    };
    let typed = prompt::hidden(&question)?;
    if typed.is_empty() {
        return Ok(otherwise);
    }
    tell("  It will be written into the file, which only you can read.\n");
    Ok(Key::Typed(Secret::new(typed)))
}

/// Which model clients get that name none of the provider's.
fn model(known: &Known, listed: &[String]) -> anyhow::Result<Option<String>> {
    let usual = usual_model(known);
    let mut shown: Vec<String> = usual.clone().into_iter().chain(known.provider.models.iter().cloned()).collect();
    shown.extend(listed.iter().cloned());
    let mut names: Vec<String> = Vec::new();
    for name in shown {
        if !names.contains(&name) && names.len() < SHOWN {
            names.push(name);
        }
    }
    let default = usual.or_else(|| listed.first().cloned()).unwrap_or_default();
    if names.len() > 1 {
        let list: Vec<String> = names.iter().map(|name| visible(name).into_owned()).collect();
        let more = listed.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        tell(&format!("  models: {}{more}\n", list.join(", ")));
    }
    let question = if default.is_empty() { "  model (Enter: clients name it)" } else { "  model" };
    let name = prompt::text(question, &default)?;
    Ok(Some(name).filter(|name| !name.is_empty()))
}

fn port(usual: u16) -> anyhow::Result<u16> {
    loop {
        let said = prompt::text("\nPort", &usual.to_string())?;
        let Some(port) = said.parse::<u16>().ok().filter(|port| *port > 0) else {
            tell("  a number from 1 to 65535\n");
            continue;
        };
        let is_free = TcpListener::bind(("127.0.0.1", port)).is_ok();
        if is_free || prompt::yes(&format!("  Somebody uses {port} now. Take it all the same?"), false)? {
            return Ok(port);
        }
    }
}

fn backend() -> anyhow::Result<BackendName> {
    let options = [
        choice("sqlite", "a file; outlives restarts"),
        choice("memory", "gone with the process"),
        choice("postgres", "for several instances; address in GODEX_DATABASE_URL"),
    ];
    let chosen = prompt::one("\nWhere are responses and conversations kept?", &options, 0)?;
    Ok([BackendName::Sqlite, BackendName::Memory, BackendName::Postgres][chosen.min(2)])
}

fn level() -> anyhow::Result<LogLevel> {
    let levels = [LogLevel::Debug, LogLevel::Info, LogLevel::Warn];
    let options = levels.map(|level| choice(level.name(), ""));
    let chosen = prompt::one("\nHow much is logged?", &options, 1)?;
    Ok(levels[chosen.min(2)])
}
