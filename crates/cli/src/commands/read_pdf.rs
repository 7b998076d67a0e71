//! `godex read-pdf`: what the server starts to read one PDF, which may be anybody's. It limits itself before it reads the
//! file from its standard input, says what is in it on its output, and does nothing else. Whoever sends a hostile file ends
//! this process, and nothing more.

use std::io::{Read, Write};

use anyhow::Context;
use clap::Args as ClapArgs;
use pdf::{Limits, Reading};
use server::config::PdfProgram;

/// Slower than any machine: a file that draws without end comes to this limit, and keeps what was read of it, before it
/// comes to that of the processor's time, which leaves nothing.
const STEPS_PER_SECOND: u64 = 1_000_000;

/// What it may take.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct ReadPdfArgs {
    /// Pages that are read.
    pages: usize,
    /// Bytes of text.
    bytes: usize,
    /// Of the processor's time.
    seconds: u64,
    /// Bytes of memory.
    memory: u64,
}

/// This very program, if it can: also after another version has taken its place on the disk.
pub(crate) fn program() -> Option<PdfProgram> {
    let own = std::path::Path::new("/proc/self/exe");
    let program = if own.exists() { own.to_owned() } else { std::env::current_exe().ok()? };
    pdf::CAN_READ.then(|| PdfProgram::new(program, ["read-pdf"]))
}

pub(crate) fn run(args: ReadPdfArgs) -> anyhow::Result<()> {
    limit(args)?;
    let mut file = Vec::new();
    std::io::stdin().lock().read_to_end(&mut file).context("the file cannot be read")?;
    let steps = args.seconds.saturating_mul(STEPS_PER_SECOND);
    let read = read(file, Limits { pages: args.pages, bytes: args.bytes, steps })?;
    let mut output = std::io::stdout().lock();
    output.write_all(&read).and_then(|()| output.flush()).context("nobody wants to know")
}

#[cfg(feature = "pdf")]
#[expect(clippy::unnecessary_wraps, reason = "a build without the feature has nothing to give")]
fn read(file: Vec<u8>, limits: Limits) -> anyhow::Result<Vec<u8>> {
    let read = pdf::read(file, limits);
    Ok(Reading::message(read.as_ref().map_err(|reason| *reason)))
}

#[cfg(not(feature = "pdf"))]
fn read(_: Vec<u8>, _: Limits) -> anyhow::Result<Vec<u8>> {
    anyhow::bail!("this godex was built without the feature `pdf`")
}

/// Takes away from this process what it does not need to read a file that it has.
#[cfg(unix)]
fn limit(args: ReadPdfArgs) -> anyhow::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};

    let set = |what, most: u64| setrlimit(what, Rlimit { current: Some(most), maximum: Some(most) });
    set(Resource::Cpu, args.seconds).context("the processor's time cannot be limited")?;
    let memory = set(Resource::As, args.memory);
    // Elsewhere the system may know no such limit.
    if cfg!(target_os = "linux") {
        memory.context("the memory cannot be limited")?;
    }
    // No traces on the disk, no other files, no other processes: as far as the system and the user let themselves be limited.
    for what in [Resource::Core, Resource::Fsize, Resource::Nproc] {
        let _ = set(what, 0);
    }
    let _ = set(Resource::Nofile, 3);
    Ok(())
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere there is something to fail")]
fn limit(_: ReadPdfArgs) -> anyhow::Result<()> {
    Ok(())
}
