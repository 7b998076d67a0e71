//! `godex models`: the names that clients can ask for.

use std::fmt::Write;

use wire::visible::visible;

use crate::args::Flags;
use crate::output;

pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    let models = flags.load()?.models();
    let rows: Vec<_> = models.iter().map(|model| (visible(&model.id), visible(&model.owned_by))).collect();
    let width = rows.iter().map(|(id, _)| id.len()).max().unwrap_or_default().max("MODEL".len());
    let mut out = format!("{:width$}  PROVIDER\n", "MODEL");
    for (id, owner) in &rows {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{id:width$}  {owner}");
    }
    output::print(&out)
}
