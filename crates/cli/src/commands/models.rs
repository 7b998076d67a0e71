//! `godex models`: the names that clients can ask for.

use std::io::Write;

use crate::args::Flags;

pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    let models = flags.load()?.models();
    let width = models.iter().map(|model| model.id.len()).max().unwrap_or_default().max("MODEL".len());
    let mut out = std::io::stdout().lock();
    writeln!(out, "{:width$}  PROVIDER", "MODEL")?;
    for model in models {
        writeln!(out, "{:width$}  {}", model.id, model.owned_by)?;
    }
    Ok(())
}
