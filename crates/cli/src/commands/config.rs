//! `godex config check` and `godex config print`.

use std::io::Write;

use crate::args::{ConfigCommand, Flags};

pub(crate) fn run(flags: &Flags, command: &ConfigCommand) -> anyhow::Result<()> {
    let config = flags.load()?;
    let mut out = std::io::stdout().lock();
    match command {
        ConfigCommand::Print => out.write_all(config.print().as_bytes())?,
        ConfigCommand::Check => {
            let names: Vec<&str> = config.providers.iter().map(|provider| provider.name.as_str()).collect();
            writeln!(out, "OK: {}", config.origin)?;
            writeln!(out, "server: http://{}", config.server.address())?;
            writeln!(out, "default provider: {}", config.default_provider)?;
            writeln!(out, "providers: {}", names.join(", "))?;
            writeln!(out, "session: {}", config.session.backend)?;
            if !config.unused.is_empty() {
                writeln!(out, "no effect in this version: {}", config.unused.join(", "))?;
            }
        }
    }
    Ok(())
}
