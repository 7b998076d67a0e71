//! `godex codex`: Codex on the configured models, with a godex that is found or started for it; and `setup`, `doctor`,
//! `catalog` for who runs `codex` by itself.
//!
//! Codex's sign-in (`auth.json`), its `openai_base_url` and other providers are never touched, by none of these.

mod catalog;
mod choice;
pub(crate) mod doctor;
pub(crate) mod gateway;
pub(crate) mod installed;
mod launch;
mod overrides;
mod setup;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use server::config::{self, Secret};

use crate::args::{CodexArgs, CodexCommand, Consent, Flags, SetupArgs, home, variable};
use crate::prompt;

/// What the provider is called in Codex's configuration, and what the files are called that are ours there.
const PROVIDER: &str = "godex";
/// Holds the key for a godex, as Codex's `env_key` names it.
const KEY_VARIABLE: &str = config::OWN_VARIABLE;

pub(crate) fn run(flags: &Flags, args: &CodexArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        None => launch::run(flags, args),
        Some(CodexCommand::Setup(setup)) => setup::run(flags, args.codex.as_deref(), setup),
        Some(CodexCommand::Doctor(doctor)) => doctor::run(flags, args.codex.as_deref(), doctor),
        Some(CodexCommand::Catalog { output }) => catalog::run(flags, output.as_deref()),
    }
}

/// Sets an installed Codex up for the configuration of these flags; says nothing where there is none.
pub(crate) fn set_up(flags: &Flags, asks: bool) -> anyhow::Result<()> {
    let Ok(codex) = installed::find(None) else { return Ok(()) };
    let version = installed::version(&codex)?;
    if asks && !prompt::yes(&format!("\nCodex {version} is installed. Set it up to use this godex?"), true)? {
        return Ok(());
    }
    let args = SetupArgs {
        consent: Consent { yes: !asks, dry_run: false },
        model: None,
        profile: PROVIDER.to_owned(),
        default: false,
        remove: false,
    };
    setup::run(flags, None, &args).map(drop)
}

/// The user's key for a godex that wants one.
fn own_key() -> Option<Secret> {
    variable(KEY_VARIABLE).filter(|key| !key.is_empty()).map(Secret::new)
}

/// What a client of this godex sends: the user's key, if there is one. Where none is needed, most clients still insist on
/// sending something.
pub(crate) fn client_key() -> Secret {
    own_key().unwrap_or_else(|| Secret::new(config::UNWANTED.to_owned()))
}

/// The folder of Codex's configuration, sign-in and sessions.
fn codex_home() -> anyhow::Result<PathBuf> {
    let named = variable("CODEX_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let home =
        named.or_else(|| Some(home()?.join(".codex"))).context("there is no home folder: set HOME, or CODEX_HOME");
    // It is written into files that are read from anywhere.
    Ok(std::path::absolute(home?)?)
}
