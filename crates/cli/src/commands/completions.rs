//! `godex completions SHELL`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Args;
use crate::output;

pub(crate) fn run(shell: Shell) -> anyhow::Result<()> {
    // The generator panics when it cannot write, so it gets a buffer.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "godex", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
