//! The process that reads one PDF: godex itself, started once more to do nothing else. It sees nothing of our environment,
//! gets the file over its standard input, limits itself before it looks at it, and is killed when it takes too long. What it
//! says is a message of a known form and length, or nothing.

use std::pin::pin;
use std::process::{ExitStatus, Stdio};

use bridge::{PdfText, PdfUnread};
use futures_util::future::{Either, select};
use pdf::{Reading, Unreadable};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use super::Pdf;
use crate::config::{FilesConfig, PdfProgram};

/// What a Rust program ends with that has panicked.
const PANICKED: i32 = 101;
/// The processor's time is limited; the clock, for a machine that has none to give, is at so many times that.
const CLOCK: u32 = 6;

/// What is in the file; None: that may be another time.
pub(super) async fn read(program: &PdfProgram, config: &FilesConfig, file: Vec<u8>) -> Option<Pdf> {
    let clock = config.timeout.saturating_mul(CLOCK);
    let Ok(said) = tokio::time::timeout(clock, run(program, config, file)).await else {
        tracing::warn!(seconds = clock.as_secs(), "a PDF was not read in time");
        return None;
    };
    match said {
        Ok((message, status)) => understood(&message, status, config),
        Err(error) => {
            tracing::warn!(%error, "the process that reads PDFs does not start");
            None
        }
    }
}

/// Runs the process to its end; it is killed when nobody waits for it any more.
async fn run(program: &PdfProgram, config: &FilesConfig, file: Vec<u8>) -> std::io::Result<(Vec<u8>, ExitStatus)> {
    let (program, arguments) = program.parts();
    let mut command = Command::new(program);
    command.args(arguments);
    command.args([
        config.max_pages.to_string(),
        config.max_bytes.to_string(),
        config.timeout.as_secs().max(1).to_string(),
        config.memory.to_string(),
    ]);
    // The allocator reserves a gigabyte at its start, which is more than the process may have.
    command.env_clear().env("MIMALLOC_ARENA_RESERVE", "0").current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let (mut input, output) = (child.stdin.take(), child.stdout.take());
    let longest = longest(config);
    let write = async move {
        if let Some(input) = &mut input {
            // One that has ended does not read to the end; why, its status says.
            let _ = input.write_all(&file).await;
        }
    };
    let read = async {
        let mut message = Vec::new();
        if let Some(output) = output {
            output.take(longest as u64 + 1).read_to_end(&mut message).await?;
        }
        Ok::<_, std::io::Error>(message)
    };
    // One that has said all does not need the rest of the file.
    let message = match select(pin!(read), pin!(write)).await {
        Either::Left((message, _)) => message?,
        Either::Right(((), read)) => read.await?,
    };
    if message.len() > longest {
        child.start_kill()?;
    }
    Ok((message, child.wait().await?))
}

/// How long its message may be.
fn longest(config: &FilesConfig) -> usize {
    Reading::longest_message(config.max_pages, config.max_bytes)
}

fn understood(message: &[u8], status: ExitStatus, config: &FilesConfig) -> Option<Pdf> {
    // How it ended then is a race of the kill with the end of its pipe.
    if message.len() > longest(config) {
        return Some(Err(PdfUnread::Limits));
    }
    let said = if status.success() { Reading::of_message(message) } else { None };
    match said {
        Some(Ok(reading)) if reading.pages.len() <= config.max_pages => {
            let (pages, of, cut) = (reading.pages.len(), reading.of, reading.cut);
            Some(Ok(PdfText { text: reading.text().into(), pages, of, cut }))
        }
        Some(Err(reason)) => Some(Err(match reason {
            Unreadable::Encrypted => PdfUnread::Encrypted,
            Unreadable::Damaged => PdfUnread::Damaged,
            Unreadable::NoText => PdfUnread::NoText,
            Unreadable::Limits => PdfUnread::Limits,
        })),
        _ => {
            tracing::info!(%status, "a PDF was too much for the process that reads it");
            match status.code() {
                // A signal: it has come to its limits.
                None => Some(Err(PdfUnread::Limits)),
                Some(PANICKED) => Some(Err(PdfUnread::Damaged)),
                Some(_) => None,
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::PdfPolicy;

    fn config() -> FilesConfig {
        FilesConfig {
            pdf: PdfPolicy::Text,
            max_pages: 2,
            max_bytes: 10,
            max_request_bytes: 10,
            timeout: Duration::from_secs(1),
            memory: 1 << 20,
        }
    }

    async fn of_shell(script: &str, file: &[u8]) -> Option<Pdf> {
        let program = PdfProgram::new("/bin/sh", ["-c", script, "sh"]);
        read(&program, &config(), file.to_vec()).await
    }

    /// Whatever the process does, it ends, and what it says is believed only in its form.
    #[tokio::test]
    async fn only_a_whole_message_is_taken() {
        let good = r"printf 'godex pdf 1\nr\0\0\0\1\0\0\0\0\1\0\0\0\2hi\nend\n'";
        let large = vec![b'x'; 1 << 20];
        for (script, expected) in [
            (format!("cat >/dev/null; {good}"), Some(Ok("[page 1]\nhi"))),
            (good.to_owned(), Some(Ok("[page 1]\nhi"))),
            (r"printf 'godex pdf 1\nu\0\nend\n'".into(), Some(Err(PdfUnread::Encrypted))),
            ("exit 101".into(), Some(Err(PdfUnread::Damaged))),
            ("kill -9 $$".into(), Some(Err(PdfUnread::Limits))),
            (format!("{good}; kill -6 $$"), Some(Err(PdfUnread::Limits))),
            ("exit 0".into(), None),
            ("exit 3".into(), None),
            ("sleep 60".into(), None),
            ("yes".into(), Some(Err(PdfUnread::Limits))),
            (
                format!("[ -z \"$HOME$USER\" ] && [ \"$1 $2 $3 $4\" = '2 10 1 1048576' ] && {good}"),
                Some(Ok("[page 1]\nhi")),
            ),
        ] {
            let found = of_shell(&script, &large).await;
            let found = found.map(|found| found.map(|pdf| pdf.text));
            assert_eq!(found.as_ref().map(|found| found.as_deref().map_err(|reason| *reason)), expected, "{script}");
        }
        let nobody = PdfProgram::new("/nowhere/godex", ["read-pdf"]);
        assert_eq!(read(&nobody, &config(), Vec::new()).await, None);
    }
}
