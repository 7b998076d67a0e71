//! Logging: one subscriber, to stderr, so that stdout stays for what a command was asked for.

use std::io::IsTerminal;

use server::config::{LogFormat, LoggingConfig};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

pub(crate) fn start(config: LoggingConfig) {
    if !config.console {
        return;
    }
    let level = config.level.name();
    // Our own crates at the level asked for; the libraries below only when something is wrong.
    let filter = EnvFilter::new(format!("warn,godex={level},server={level},store={level}"));
    let terminal = std::io::stderr().is_terminal();
    let builder = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let human = match config.format {
        LogFormat::Auto => terminal,
        LogFormat::Human => true,
        LogFormat::Json => false,
    };
    if human {
        builder.with_ansi(terminal).init();
    } else {
        builder.json().flatten_event(true).init();
    }
}
