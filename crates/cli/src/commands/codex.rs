//! `godex codex`: Codex on the configured models, with a godex that is found or started for it; and `setup`, `doctor`,
//! `catalog` for who runs `codex` by itself.
//!
//! Codex's sign-in (`auth.json`), its `openai_base_url` and other providers are never touched, by none of these.

mod catalog;
mod choice;
mod doctor;
mod files;
pub(crate) mod gateway;
mod installed;
mod launch;
mod overrides;
mod setup;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use server::config::Secret;

use crate::args::{CodexArgs, CodexCommand, Flags, home, variable};

/// What the provider is called in Codex's configuration, and what the files are called that are ours there.
const PROVIDER: &str = "godex";
/// Holds the key for a godex, as Codex's `env_key` names it.
const KEY_VARIABLE: &str = "GODEX_API_KEY";

pub(crate) fn run(flags: &Flags, args: &CodexArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        None => launch::run(flags, args),
        Some(CodexCommand::Setup(setup)) => setup::run(flags, args.codex.as_deref(), setup),
        Some(CodexCommand::Doctor(doctor)) => doctor::run(flags, args.codex.as_deref(), doctor),
        Some(CodexCommand::Catalog { output }) => catalog::run(flags, output.as_deref()),
    }
}

/// The user's key for a godex that wants one.
fn own_key() -> Option<Secret> {
    variable(KEY_VARIABLE).filter(|key| !key.is_empty()).map(Secret::new)
}

/// What a client of this godex sends: the user's key, if there is one. Where none is needed, most clients still insist on
/// sending something.
pub(crate) fn client_key() -> Secret {
    own_key().unwrap_or_else(|| Secret::new("unused".to_owned()))
}

/// The folder of Codex's configuration, sign-in and sessions.
fn codex_home() -> anyhow::Result<PathBuf> {
    let named = variable("CODEX_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let home =
        named.or_else(|| Some(home()?.join(".codex"))).context("there is no home folder: set HOME, or CODEX_HOME");
    // It is written into files that are read from anywhere.
    Ok(std::path::absolute(home?)?)
}
