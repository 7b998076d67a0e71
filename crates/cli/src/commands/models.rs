//! `godex models`: the names that clients can ask for.

use std::fmt::Write;
use std::time::Duration;

use anyhow::Context;
use server::CatalogModel;
use wire::visible::visible;

use crate::args::Flags;
use crate::output;
use crate::progress::Progress;

/// How long providers' own lists are waited for.
const PATIENCE: Duration = Duration::from_secs(3);

pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    let config = flags.load()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let progress = Progress::start("asking providers for their models");
    let discovered = runtime.context("cannot start the runtime")?.block_on(server::discover(&config, PATIENCE));
    drop(progress);
    let models = server::catalog_models(&config, &discovered);
    let row = |model: &CatalogModel| {
        let owner = visible(&model.owned_by).into_owned();
        let owner = if model.discovered { format!("{owner} (its own list)") } else { owner };
        let window = model.context_window.map_or_else(|| "-".to_owned(), |tokens| tokens.to_string());
        (visible(&model.id).into_owned(), window, owner)
    };
    let rows: Vec<_> = models.iter().map(row).collect();
    let width = rows.iter().map(|(id, ..)| id.chars().count()).max().unwrap_or_default().max("MODEL".len());
    let mut out = format!("{:width$}  {:>9}  PROVIDER\n", "MODEL", "CONTEXT");
    for (id, window, owner) in &rows {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{id:width$}  {window:>9}  {owner}");
    }
    output::print(&out)
}
