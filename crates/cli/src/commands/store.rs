//! `godex store`: the database of sessions.

mod backup;
mod check;

use std::fmt::Write;

use anyhow::{Context, bail};
use server::{Rekeyed, TraceRekeyed};

use crate::args::{Flags, StoreCommand};
use crate::output;
use crate::progress::Progress;

pub(crate) fn run(flags: &Flags, command: &StoreCommand) -> anyhow::Result<()> {
    match command {
        StoreCommand::Rekey { decrypt } => rekey(flags, *decrypt),
        StoreCommand::Backup { file } => backup::make(flags, file),
        StoreCommand::Restore { file, force } => backup::restore(flags, file, *force),
        StoreCommand::Check { file: None } => check::store(flags),
        StoreCommand::Check { file: Some(file) } => check::file(flags, file),
    }
}

fn rekey(flags: &Flags, decrypt: bool) -> anyhow::Result<()> {
    let config = flags.manage()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let progress = Progress::start("opening the store");
    let mut told = |done: &Rekeyed| progress.say(&format!("{} rows, {} MB", done.rows, done.bytes >> 20));
    let done = runtime.context("cannot start the runtime")?.block_on(server::rekey(&config, decrypt, &mut told));
    drop(progress);
    let (done, traces) = done?;
    output::print(&summary(&done, &traces, decrypt))?;
    if done.damaged > 0 {
        bail!("{} rows do not open and were left as they are; a backup may have them", done.damaged);
    }
    Ok(())
}

fn summary(done: &Rekeyed, traces: &TraceRekeyed, decrypt: bool) -> String {
    let Rekeyed { tenants, data_keys, rows, bytes, kept, .. } = done;
    let how = if decrypt { "decrypted" } else { "encrypted" };
    let mut out =
        format!("{how}: {rows} rows ({} kB) of {tenants} tenants; {data_keys} data keys wrapped\n", bytes >> 10);
    if traces.rewritten > 0 {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{how}: {} parts of traces", traces.rewritten);
    }
    if traces.dropped > 0 {
        let _ = writeln!(out, "{} parts of traces open with no key that is configured, and are gone", traces.dropped);
    }
    if *kept > 0 {
        let _ = writeln!(
            out,
            "{kept} data keys that are not needed any more are kept while other instances may use them; run it again in an \
             hour to forget them"
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_says_what_is_left_to_do() {
        let done = Rekeyed { tenants: 2, data_keys: 3, rows: 40, bytes: 5 << 20, ..Rekeyed::default() };
        let traces = TraceRekeyed::default();
        assert_eq!(summary(&done, &traces, false), "encrypted: 40 rows (5120 kB) of 2 tenants; 3 data keys wrapped\n");
        let kept = summary(&Rekeyed { kept: 1, ..done }, &traces, true);
        assert!(kept.starts_with("decrypted") && kept.contains("run it again in an hour"), "{kept}");
    }
}
