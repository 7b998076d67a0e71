//! `godex completions SHELL`.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Args;

pub(crate) fn run(shell: Shell) -> anyhow::Result<()> {
    // The generator panics when it cannot write, so it gets a buffer.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "godex", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(())
}
