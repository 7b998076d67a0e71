//! `godex config check` and `godex config print`.

use std::fmt::Write;

use server::config::Config;
use wire::visible::visible_lines;

use crate::args::{ConfigCommand, Flags};
use crate::output;

pub(crate) fn run(flags: &Flags, command: &ConfigCommand) -> anyhow::Result<()> {
    let config = flags.load()?;
    match command {
        ConfigCommand::Print => output::print(&config.print()),
        ConfigCommand::Check => output::print(&visible_lines(&summary(&config))),
    }
}

fn summary(config: &Config) -> String {
    let names: Vec<&str> = config.providers.iter().map(|provider| provider.name.as_str()).collect();
    let mut out = format!(
        "OK: {}\nserver: {}://{}\ndefault provider: {}\nproviders: {}\nsession: {}\n",
        config.origin,
        config.server.scheme(),
        config.server.address(),
        config.default_provider,
        names.join(", "),
        config.session.backend,
    );
    if !config.unused.is_empty() {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "no effect in this version: {}", config.unused.join(", "));
    }
    out
}
