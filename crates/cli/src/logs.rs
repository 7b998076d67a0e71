//! Logging: one subscriber, to stderr, so that stdout stays for what a command was asked for; or to a file, where the
//! terminal is somebody else's.
//!
//! A log that cannot be written is no reason to answer nobody: a thread of its own writes it, so that a pipe that nobody
//! reads holds up nothing; a lost line is counted, and `/health` shows the count.
//! What others wrote (a model's name, a finish reason) cannot act on the terminal of whoever reads the log.

use std::fmt::{self, Debug, Write as _};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use server::LOST_LOG_LINES;
use server::config::{LogFormat, LoggingConfig};
use tracing::field::Field;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{self, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use wire::visible::Visible;

/// Lines that may wait for whoever reads them. More are lost.
const WAITING: usize = 2048;

/// So much is written in one go, and then nothing for so long.
const TOGETHER: usize = 64 * 1024;
const REST: Duration = Duration::from_millis(2);

/// What the targets of our own events begin with.
const OWN: &[&str] = &["godex", "server", "store"];

/// Lines that were taken and neither written nor lost yet.
static UNWRITTEN: AtomicU64 = AtomicU64::new(0);

/// Where the log goes.
pub(crate) enum Destination {
    Stderr,
    File(File),
}

pub(crate) fn start(config: LoggingConfig, destination: Destination) {
    if !config.console && matches!(destination, Destination::Stderr) {
        return;
    }
    // Our own crates at the level asked for; the libraries below only when something is wrong.
    let level: LevelFilter = config.level.name().parse().unwrap_or(LevelFilter::INFO);
    let filter = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_targets(OWN.iter().map(|target| (*target, level)))
        // It repeats what servers say; what matters of that is in our own events.
        .with_target("rmcp", LevelFilter::OFF);
    let terminal = matches!(destination, Destination::Stderr) && io::stderr().is_terminal();
    // A file is for people who look for what went wrong.
    let human_file = matches!(destination, Destination::File(_));
    let (lines, written) = sync_channel(WAITING);
    if thread::Builder::new().name("log".to_owned()).spawn(move || write(&written, destination)).is_err() {
        return;
    }
    let line = move || Line(lines.clone());
    // The subscriber would tell stderr that stderr cannot be written to, and panic.
    let builder = tracing_subscriber::fmt().log_internal_errors(false).with_max_level(Level::TRACE).with_writer(line);
    let human = match config.format {
        LogFormat::Auto => terminal || human_file,
        LogFormat::Human => true,
        LogFormat::Json => false,
    };
    if human {
        let fields = format::debug_fn(field).delimited(" ");
        builder.with_ansi(terminal).fmt_fields(fields).event_format(Human).finish().with(filter).init();
    } else {
        builder.json().flatten_event(true).finish().with(filter).init();
    }
}

/// Gives what waits a moment to be written: the process ends.
pub(crate) fn finish() {
    for _ in 0..100 {
        if UNWRITTEN.load(Ordering::Acquire) == 0 {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Writes what is there in one go, and then rests: under load, a thread that is woken for every line, and writes every
/// line by itself, costs more than all else that a line costs.
fn write(lines: &Receiver<Box<[u8]>>, mut destination: Destination) {
    let mut text = Vec::new();
    while let Ok(line) = lines.recv() {
        text.clear();
        text.extend_from_slice(&line);
        let mut count = 1;
        while text.len() < TOGETHER
            && let Ok(line) = lines.try_recv()
        {
            text.extend_from_slice(&line);
            count += 1;
        }
        let written = match &mut destination {
            Destination::Stderr => io::stderr().lock().write_all(&text),
            Destination::File(file) => file.write_all(&text),
        };
        if written.is_err() {
            LOST_LOG_LINES.fetch_add(count, Ordering::Relaxed);
        }
        UNWRITTEN.fetch_sub(count, Ordering::Release);
        // With more waiting there is no rest.
        if text.len() < TOGETHER {
            thread::sleep(REST);
        }
    }
}

/// One line of the log: on its way to be written, or counted as lost.
struct Line(SyncSender<Box<[u8]>>);

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        UNWRITTEN.fetch_add(1, Ordering::Relaxed);
        if self.0.try_send(line.into()).is_err() {
            UNWRITTEN.fetch_sub(1, Ordering::Relaxed);
            LOST_LOG_LINES.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A line for people: when, how bad, what, and what is known about it.
struct Human;

impl<S, N> FormatEvent<S, N> for Human
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let (level, target) = (*event.metadata().level(), event.metadata().target());
        let own = OWN.iter().any(|own| target.split("::").next() == Some(own));
        let (dim, color, plain) =
            if writer.has_ansi_escapes() { ("\x1b[2m", color(level), "\x1b[0m") } else { ("", "", "") };
        write!(writer, "{dim}")?;
        SystemTime.format_time(&mut writer)?;
        write!(writer, "{plain} {color}{level:>5}{plain} ")?;
        if !own {
            write!(writer, "{dim}{target}:{plain} ")?;
        }
        context.format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

const fn color(level: Level) -> &'static str {
    match level {
        Level::ERROR => "\x1b[31m",
        Level::WARN => "\x1b[33m",
        Level::INFO => "\x1b[32m",
        Level::DEBUG => "\x1b[34m",
        Level::TRACE => "\x1b[35m",
    }
}

/// A field for people: the message as it is, others with their names.
fn field(writer: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> fmt::Result {
    match field.name() {
        "message" => {}
        name if writer.has_ansi_escapes() => write!(writer, "\x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m")?,
        name => write!(writer, "{name}=")?,
    }
    write!(Visible(writer), "{value:?}")
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(line);
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: LogFormat, events: impl FnOnce()) -> String {
        let kept = Kept::default();
        let writer = kept.clone();
        let builder = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
        match format {
            LogFormat::Json => {
                let subscriber = builder.json().flatten_event(true).finish();
                tracing::subscriber::with_default(subscriber, events);
            }
            _ => {
                let fields = format::debug_fn(field).delimited(" ");
                let subscriber = builder.fmt_fields(fields).event_format(Human).finish();
                tracing::subscriber::with_default(subscriber, events);
            }
        }
        String::from_utf8(kept.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn what_others_wrote_cannot_act_in_a_log_for_people() {
        let theirs = "m\n2026 ERROR forged\r\x1b[2J\u{9b}1m\u{202e}\u{2028}";
        let log = logged(LogFormat::Human, || {
            tracing::info!(model = theirs, path = %theirs, detail = ?Some(theirs), count = 3, "planned {theirs}");
        });
        let acts = |line: &str| line.contains(wire::visible::acts);
        assert!(log.ends_with('\n') && log.lines().count() == 1 && !log.lines().any(acts), "{log:?}");
        let escaped = r"m\n2026 ERROR forged\r\u{1b}[2J\u{9b}1m\u{202e}\u{2028}";
        for part in [format!("planned {escaped} "), format!("path={escaped} "), "count=3".to_owned()] {
            assert!(log.contains(&part), "{part}\n{log}");
        }
    }

    /// People read a sentence and then what is known about it, programs one flat object; both skip what is not known.
    #[test]
    fn each_form_has_what_its_readers_want() {
        let events = || {
            let absent: Option<u64> = None;
            tracing::info!(target: "server::request", status = 200, model = "m", absent, "request");
            tracing::warn!(target: "hyper", reason = "odd", "a library speaks");
            tracing::info!(target: "server::listen", port = 1, "listening");
        };
        let log = logged(LogFormat::Human, events);
        let lines: Vec<&str> = log.lines().map(|line| line.split_once(' ').unwrap().1.trim_start()).collect();
        assert_eq!(
            lines,
            [
                "INFO request status=200 model=\"m\"",
                "WARN hyper: a library speaks reason=\"odd\"",
                "INFO listening port=1"
            ]
        );
        let log = logged(LogFormat::Json, events);
        let first: serde_json::Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
        for (name, value) in [
            ("level", "INFO".into()),
            ("target", "server::request".into()),
            ("message", "request".into()),
            ("status", 200.into()),
            ("model", serde_json::Value::from("m")),
        ] {
            assert_eq!(first[name], value, "{log}");
        }
        assert!(
            first["timestamp"].is_string()
                && first.get("fields").is_none()
                && first.get("absent").is_none()
                && log.lines().count() == 3,
            "{log}"
        );
    }
}
