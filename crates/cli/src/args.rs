//! The command line's grammar, and the one place that reads the process environment.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, Parser, Subcommand};
use server::config::{self, Bare, Config, LogLevel, Overrides, Sources, parse_duration};

/// The Responses API in front of any Chat Completions model.
#[derive(Debug, Parser)]
#[command(name = "godex", version, about, after_help = "Without a command, godex serves.")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) flags: Flags,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the server (the default).
    Serve,
    /// Check or print the configuration.
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// List the models that clients can ask for.
    Models,
    /// Find out what a provider really does, with a few dozen small requests.
    Probe(ProbeArgs),
    /// List the providers, or show what is known of one.
    Providers {
        #[command(subcommand)]
        command: Option<ProvidersCommand>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what the offline demo model can be told to do.
    #[command(after_help = crate::commands::demo::help())]
    Demo,
    /// Print the completion script for a shell.
    Completions { shell: clap_complete::Shell },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Report every problem of the configuration, or a summary when there is none.
    Check,
    /// Print the configuration that is in force, without its secrets.
    Print,
}

/// What is probed, and what it may cost.
#[derive(Debug, ClapArgs)]
pub(crate) struct ProbeArgs {
    /// A configured provider, a built-in spec, or a chat server's base URL [default: the default provider].
    pub(crate) target: Option<String>,
    /// The model to ask [default: the provider's own, or the first of its list].
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Save what was observed as a spec.
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not ask before the first request.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Also send an input that is far too long (several hundred thousand tokens).
    #[arg(long)]
    pub(crate) allow_overflow: bool,
    /// The most requests to send.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_requests: u32,
    /// The most tokens to use, both ways together.
    #[arg(long, value_name = "N", default_value_t = 60_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: u64,
    /// The longest time to take, such as `90s` or `10m`; a bare number is seconds.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time)]
    pub(crate) timeout: Duration,
    /// The environment variable that holds the key.
    #[arg(long, value_name = "VAR")]
    pub(crate) api_key_env: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProvidersCommand {
    /// Print the whole spec of a provider as YAML, each value with the file and line that it is from.
    Show {
        /// A configured provider, or a built-in spec.
        name: String,
        /// As it is for this model.
        #[arg(long)]
        model: Option<String>,
    },
}

/// What can be set on the command line.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Flags {
    /// The configuration file [default: ./godex.yaml, then ~/.godex/config.yaml].
    #[arg(long, global = true, value_name = "PATH")]
    config: Option<PathBuf>,
    /// The address to listen on [default: 127.0.0.1].
    #[arg(long, global = true)]
    host: Option<String>,
    /// The port to listen on; 0 takes a free one [default: 5678].
    #[arg(long, global = true)]
    port: Option<u16>,
    /// How much to log [default: info].
    #[arg(long, global = true, value_name = "LEVEL", value_parser = levels())]
    log_level: Option<String>,
}

impl Flags {
    /// The configuration that these flags, the environment and the file make together.
    pub(crate) fn load(&self) -> anyhow::Result<Config> {
        self.load_with(false)
    }

    /// The same, also without the providers' keys: for looking, not for serving.
    pub(crate) fn look(&self) -> anyhow::Result<Config> {
        self.load_with(true)
    }

    fn load_with(&self, without_keys: bool) -> anyhow::Result<Config> {
        let cwd = std::env::current_dir().context("cannot tell the current directory")?;
        let home =
            variable("HOME").or_else(|| variable("USERPROFILE")).filter(|home| !home.is_empty()).map(PathBuf::from);
        let overrides = Overrides {
            host: self.host.clone(),
            port: self.port,
            log_level: self.log_level.as_deref().and_then(LogLevel::from_name),
            without_keys,
        };
        let config_path = self.config.as_deref();
        let sources = Sources { config_path, cwd: &cwd, home: home.as_deref(), env: &variable, overrides };
        config::load(&sources).map_err(|problems| match problems.0.len() {
            1 => anyhow::anyhow!("{problems}"),
            count => anyhow::anyhow!("{count} problems with the configuration\n{problems}"),
        })
    }
}

fn levels() -> PossibleValuesParser {
    PossibleValuesParser::new(LogLevel::ALL.iter().map(|level| level.name()))
}

#[expect(clippy::disallowed_methods, reason = "this is where the configuration gets its environment from")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A duration as the configuration has them.
fn time(text: &str) -> Result<Duration, String> {
    let range = Duration::from_secs(1)..=Duration::from_hours(24);
    let time = parse_duration(text, Bare::Seconds).filter(|time| range.contains(time));
    time.ok_or_else(|| "expected a duration from `1s` to `1d`, such as `90s` or `10m`, or seconds".to_owned())
}
