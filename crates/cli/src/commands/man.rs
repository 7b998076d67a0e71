//! `godex man FOLDER`: the manual pages, for whoever makes packages.

use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;

use crate::args::Args;

pub(crate) fn run(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    clap_mangen::generate_to(Args::command(), folder).with_context(|| format!("cannot write to {}", folder.display()))
}
