//! The command line's grammar, and the one place that reads the process environment.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::commands::explain::ExplainArgs;
use crate::commands::keys::KeysArgs;
use crate::commands::read_pdf::{self, ReadPdfArgs};
use crate::commands::replay::ReplayArgs;
use crate::commands::tenants::TenantsArgs;
use crate::commands::traces::TracesArgs;
use anyhow::Context;
use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, Parser, Subcommand};
use providers::yaml::Env;
use server::config::{self, Bare, Config, LogLevel, Overrides, Problems, Purpose, Sources, parse_duration};

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
    /// Write a configuration: finds keys and local servers, asks for the rest, and shows it first.
    Init(InitArgs),
    /// Look at the configuration, the store, the providers and this machine, and say what to do.
    Doctor(CheckArgs),
    /// Make a configuration out of another program's.
    Import {
        #[command(subcommand)]
        command: ImportCommand,
    },
    /// Check or print the configuration.
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// List the models that clients can ask for.
    Models,
    /// Find out what a provider really does, with a few dozen small requests.
    Probe(ProbeArgs),
    /// Search the web with the configured services, as a model would.
    Search {
        query: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// List the providers, or show what is known of one.
    Providers {
        #[command(subcommand)]
        command: Option<ProvidersCommand>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Make, list, revoke and rotate the API keys that clients need.
    Keys(KeysArgs),
    /// What tenants have stored and may use: list, export, erase, limit.
    Tenants(TenantsArgs),
    /// See what became of requests: list, follow, show one.
    Traces(TracesArgs),
    /// Have the running godex read its configuration anew.
    Reload,
    /// Have the running godex end, when what it answers is answered.
    Drain,
    /// Run Codex on the configured models; `setup`, `doctor` and `catalog` are for running it by itself.
    Codex(CodexArgs),
    /// Try the MCP servers that the configuration declares.
    Mcp {
        #[command(subcommand)]
        command: McpCommand,
    },
    /// Look after the database of sessions.
    Store {
        #[command(subcommand)]
        command: StoreCommand,
    },
    /// Print the lines that point OpenAI's clients here, for the shell: eval "$(godex env)".
    Env {
        /// The shell that reads them [default: that of $SHELL].
        #[arg(long)]
        shell: Option<ShellKind>,
    },
    /// Show what was used, and what it cost.
    Usage(UsageArgs),
    /// Show what a request became on its way to the provider, and why; with --dry-run, what one would become.
    Explain(ExplainArgs),
    /// Send a request again that was made before, and show what is different.
    Replay(ReplayArgs),
    /// Open the page of the running godex in the browser: what became of each request, charts, a playground.
    Page(PageArgs),
    /// Show what the offline demo model can be told to do.
    #[command(after_help = crate::commands::demo::help())]
    Demo,
    /// Say whether a godex answers; the exit status is 1 if none does. For health checks of containers.
    Health(HealthArgs),
    /// Write the manual pages into a folder.
    #[command(hide = true)]
    Man { folder: PathBuf },
    /// Say what is in the PDF on the standard input; the server starts it, with limits.
    #[command(hide = true)]
    ReadPdf(ReadPdfArgs),
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

/// What the wizard need not ask.
#[derive(Debug, ClapArgs)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    pub(crate) answers: InitAnswers,
    /// A provider, as a built-in spec is called, or NAME=URL for another address; again for more [default: those that are
    /// found].
    #[arg(long = "provider", value_name = "NAME")]
    pub(crate) providers: Vec<String>,
    /// The model of a provider, as PROVIDER/MODEL, or of the first one; again for more.
    #[arg(long = "model", value_name = "MODEL")]
    pub(crate) models: Vec<String>,
    /// Where sessions are kept [default: sqlite].
    #[arg(long)]
    pub(crate) backend: Option<BackendName>,
    /// Check keys by asking their providers for their models; one that is refused is an error.
    #[arg(long)]
    pub(crate) check_keys: bool,
    /// Leave Codex as it is.
    #[arg(long)]
    pub(crate) no_codex: bool,
}

/// What is agreed to in advance.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct InitAnswers {
    /// Ask nothing: what was found, the flags and the defaults decide. Also sets Codex up, if it is installed.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Replace a configuration that is there; a copy of it is kept.
    #[arg(long)]
    pub(crate) force: bool,
}

/// Where sessions can be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum BackendName {
    Sqlite,
    Memory,
    Postgres,
}

/// How a doctor looks.
#[derive(Debug, ClapArgs)]
pub(crate) struct CheckArgs {
    /// Ask no provider.
    #[arg(long)]
    pub(crate) offline: bool,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    /// Of a LiteLLM proxy (its config.yaml). What has no equal is said, and written into the file as comments.
    Litellm(ImportArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ImportArgs {
    pub(crate) file: PathBuf,
    /// Write it to a file instead of stdout.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace a file that is there; a copy of it is kept.
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Encrypt everything anew with the configured key: what is in clear, and what older keys have encrypted. With SQLite
    /// no server may run meanwhile.
    Rekey {
        /// Write everything in clear instead.
        #[arg(long)]
        decrypt: bool,
    },
    /// Write a copy of the SQLite database into a file, also while a server uses it. Who has the file has the sessions.
    Backup {
        /// A new file.
        file: PathBuf,
    },
    /// Put a backup into the place of the SQLite database. No server may run meanwhile.
    Restore {
        file: PathBuf,
        /// Also if there is a database already; it is kept under another name.
        #[arg(long)]
        force: bool,
    },
    /// Look over everything that is stored, also while a server uses it; the exit status is 1 if anything is wrong.
    Check {
        /// A backup instead of the configured store.
        file: Option<PathBuf>,
    },
}

/// Who is asked, and what.
#[derive(Debug, ClapArgs)]
pub(crate) struct HealthArgs {
    /// The address that is asked, without a path [default: what the configuration says].
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// Also whether it takes work: it is not ending, has memory, and its store answers.
    #[arg(long)]
    pub(crate) ready: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// List the servers and their tools.
    List {
        /// This one alone.
        server: Option<String>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Ask every server for its tools, and say what is wrong; the exit status is 1 if anything is.
    Check {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Call a tool and print what it answers; the exit status is 1 if it fails. No approval is asked for.
    Call {
        /// The label of the server.
        server: String,
        tool: String,
        /// The arguments, a JSON object.
        #[arg(default_value = "{}", value_name = "JSON")]
        arguments: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

/// What is probed, and what it may cost.
#[derive(Debug, ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct ProbeArgs {
    /// A configured provider, a built-in spec, or a chat server's base URL [default: the default provider].
    pub(crate) target: Option<String>,
    /// The model to ask [default: the provider's own, or the first of its list].
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Save what was observed as a spec.
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
    /// Print the lines of the spec that should change, with what they say now; the exit status is 1 if there are any.
    #[arg(long)]
    pub(crate) diff: bool,
    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Run only these checks, with commas, and those that they need; an unknown one is answered with the list.
    #[arg(long, value_name = "CHECKS", value_delimiter = ',', value_parser = check)]
    pub(crate) only: Vec<probe::Check>,
    /// Also send the address of a picture, which the provider has to fetch: one that is all red.
    #[arg(long, value_name = "URL")]
    pub(crate) image_url: Option<String>,
    /// Do not ask before the first request.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Also send an input that is far too long (several hundred thousand tokens).
    #[arg(long)]
    pub(crate) allow_overflow: bool,
    /// The most requests to send.
    #[arg(long, value_name = "N", default_value_t = 150, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_requests: u32,
    /// The most tokens to use, both ways together.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: u64,
    /// The longest time to take, such as `90s` or `10m`; a bare number is seconds.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time)]
    pub(crate) timeout: Duration,
    /// The environment variable that holds the key.
    #[arg(long, value_name = "VAR")]
    pub(crate) api_key_env: Option<String>,
}

/// Which usage, and how it is shown.
#[derive(Debug, ClapArgs)]
pub(crate) struct UsageArgs {
    /// What is told apart, with commas: day, tenant, key, model.
    #[arg(long, default_value = "key,model", value_name = "WHAT")]
    pub(crate) by: String,
    /// How far back, in whole days, such as `12h`, `30d` or `4w`.
    #[arg(long, default_value = "30d", value_name = "TIME", value_parser = span)]
    pub(crate) since: u64,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// As CSV, with a line of names.
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
}

/// How the page is opened.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct PageArgs {
    /// Print the link only.
    #[arg(long)]
    pub(crate) no_open: bool,
    /// The port of this machine to use; 0 takes a free one.
    #[arg(long = "page-port", value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,
}

/// Codex, and which one of those that are installed.
#[derive(Debug, ClapArgs)]
pub(crate) struct CodexArgs {
    #[command(subcommand)]
    pub(crate) command: Option<CodexCommand>,
    /// The model, as `godex models` has them [default: the default provider's].
    #[arg(long, short)]
    pub(crate) model: Option<String>,
    /// The codex program [default: the first in PATH].
    #[arg(long, global = true, value_name = "PATH", env = "GODEX_CODEX")]
    pub(crate) codex: Option<PathBuf>,
    /// What Codex is given: godex codex -- exec 'say hello'.
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) args: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CodexCommand {
    /// Write a provider, a profile and a catalogue of models into Codex's own configuration, after showing the changes.
    Setup(SetupArgs),
    /// Check the installed Codex, its configuration and a round trip with a tool call; say what to do.
    Doctor(DoctorArgs),
    /// Print the catalogue of models for Codex's `model_catalog_json`.
    Catalog {
        /// Write it to a file.
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SetupArgs {
    #[command(flatten)]
    pub(crate) consent: Consent,
    /// The model of the profile, as `godex models` has them [default: the default provider's].
    #[arg(long, short)]
    pub(crate) model: Option<String>,
    /// The profile: `codex --profile NAME` uses it.
    #[arg(long, value_name = "NAME", default_value = "godex", value_parser = profile_name)]
    pub(crate) profile: String,
    /// Make it what Codex uses without a profile, too.
    #[arg(long)]
    pub(crate) default: bool,
    /// Take everything out again that an earlier set-up wrote.
    #[arg(long, conflicts_with_all = ["model", "default"])]
    pub(crate) remove: bool,
}

/// Whether what is shown is written.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct Consent {
    /// Do not ask before writing.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Show the changes and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DoctorArgs {
    /// The model that is asked [default: the default provider's].
    #[arg(long, short)]
    pub(crate) model: Option<String>,
    /// Also let the installed Codex do a small task in a temporary folder.
    #[arg(long)]
    pub(crate) run: bool,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Whose quoting a line must follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ShellKind {
    Sh,
    Fish,
    Powershell,
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
    /// Send each configured provider one short turn with a tool call, and show what came of it. It costs a few hundred tokens
    /// each.
    Test(TestArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TestArgs {
    /// These only [default: all that have their key].
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// This model of one provider, instead of the first that it lists.
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// The longest time for each answer, such as `90s` or `10m`; a bare number is seconds.
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = time)]
    pub(crate) timeout: Duration,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
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
        self.load_for(Purpose::Serve)
    }

    /// The same, also without the providers' keys: for looking, not for serving.
    pub(crate) fn look(&self) -> anyhow::Result<Config> {
        self.load_for(Purpose::Look)
    }

    /// The same, for whoever manages a server or its store: what only requests use may lack its variables.
    pub(crate) fn manage(&self) -> anyhow::Result<Config> {
        self.load_for(Purpose::Manage)
    }

    /// The same where no server runs.
    pub(crate) fn manage_alone(&self) -> anyhow::Result<Config> {
        self.load_for(Purpose::ManageAlone)
    }

    fn load_for(&self, purpose: Purpose) -> anyhow::Result<Config> {
        self.read(purpose)?.map_err(|problems| match problems.0.len() {
            1 => anyhow::anyhow!("{problems}"),
            count => anyhow::anyhow!("{count} problems with the configuration\n{problems}"),
        })
    }

    /// The same, with all problems one by one.
    pub(crate) fn read(&self, purpose: Purpose) -> anyhow::Result<Result<Config, Problems>> {
        self.read_in(purpose, &variable)
    }

    /// The same in another environment.
    pub(crate) fn read_in(&self, purpose: Purpose, env: Env<'_>) -> anyhow::Result<Result<Config, Problems>> {
        let cwd = std::env::current_dir().context("cannot tell the current directory")?;
        let home = home();
        let overrides = Overrides {
            host: self.host.clone(),
            port: self.port,
            log_level: self.log_level.as_deref().and_then(LogLevel::from_name),
            purpose,
        };
        let config_path = self.config.as_deref();
        let sources = Sources { config_path, cwd: &cwd, home: home.as_deref(), env, overrides };
        Ok(config::load(&sources).map(|config| Config { pdf_program: read_pdf::program(), ..config }))
    }

    pub(crate) fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    pub(crate) fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    pub(crate) const fn port(&self) -> Option<u16> {
        self.port
    }

    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        LogLevel::from_name(self.log_level.as_deref()?)
    }

    /// Another file, and nothing else.
    pub(crate) fn of_file(config: PathBuf) -> Self {
        Self { config: Some(config), host: None, port: None, log_level: None }
    }
}

/// Whatever something is known by.
pub(crate) fn some_id(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("an id is needed; `godex traces` lists them".to_owned());
    }
    Ok(text.to_owned())
}

fn levels() -> PossibleValuesParser {
    PossibleValuesParser::new(LogLevel::ALL.iter().map(|level| level.name()))
}

#[expect(clippy::disallowed_methods, reason = "this is where the configuration gets its environment from")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The user's own folder.
pub(crate) fn home() -> Option<PathBuf> {
    variable("HOME").or_else(|| variable("USERPROFILE")).filter(|home| !home.is_empty()).map(PathBuf::from)
}

/// What Codex takes as the name of a profile: it becomes part of a file's name.
fn profile_name(text: &str) -> Result<String, String> {
    let good = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if good { Ok(text.to_owned()) } else { Err("expected letters, digits, `-` and `_`".to_owned()) }
}

/// Seconds.
fn span(text: &str) -> Result<u64, String> {
    server::usage::span(text).ok_or_else(|| "expected a time such as `12h`, `30d` or `4w`".to_owned())
}

/// A check of the probe by its name.
fn check(text: &str) -> Result<probe::Check, String> {
    let found = probe::Check::ALL.iter().find(|check| check.name() == text.trim());
    let names = || probe::Check::ALL.iter().map(|check| check.name()).collect::<Vec<_>>().join(", ");
    found.copied().ok_or_else(|| format!("the checks are {}", names()))
}

/// A duration as the configuration has them.
fn time(text: &str) -> Result<Duration, String> {
    let range = Duration::from_secs(1)..=Duration::from_hours(24);
    let time = parse_duration(text, Bare::Seconds).filter(|time| range.contains(time));
    time.ok_or_else(|| "expected a duration from `1s` to `1d`, such as `90s` or `10m`, or seconds".to_owned())
}
