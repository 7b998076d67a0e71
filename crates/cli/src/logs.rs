//! Logging: to stderr, so that stdout stays for what a command was asked for; to a log file beside or instead of it; or to
//! a file alone, where the terminal is somebody else's. Each place has its own level.
//!
//! A log that cannot be written is no reason to answer nobody: each place has a thread of its own that writes there, so
//! that a pipe that nobody reads, or a disk that hangs, holds up nothing; a lost line is counted, and `/health` shows the
//! count. What others wrote (a model's name, a finish reason) cannot act on the terminal of whoever reads the log.

mod queue;
mod rotate;

use std::fmt::{self, Debug, Write as _};
use std::fs::File;
use std::io::{self, IsTerminal};

use server::config::{LogFormat, LogLevel, LoggingConfig};
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
use tracing_subscriber::{Layer, Registry};
use wire::visible::{Visible, visible_json};

use queue::Queue;
pub(crate) use queue::finish;
use rotate::LogFile;

/// What the targets of our own events begin with.
const OWN: &[&str] = &["godex", "server", "store"];

/// Where the log goes.
pub(crate) enum Destination {
    /// Where the configuration says.
    Configured,
    /// Here alone: the terminal is somebody else's.
    File(File),
}

type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

pub(crate) fn start(config: &LoggingConfig, destination: Destination) {
    let mut places = Vec::new();
    match destination {
        // For people who look for what went wrong.
        Destination::File(file) => {
            let form = if config.format == LogFormat::Json { Form::Json } else { Form::Human { ansi: false } };
            places.extend(layer(form, config.level, Queue::start(file)));
        }
        Destination::Configured => {
            if config.console {
                let terminal = io::stderr().is_terminal();
                let human = config.format == LogFormat::Human || (config.format == LogFormat::Auto && terminal);
                let form = if human { Form::Human { ansi: terminal } } else { Form::Json };
                places.extend(layer(form, config.level, Queue::start(Stderr)));
            }
            if let Some(file) = &config.file {
                let human = config.format == LogFormat::Human;
                let form = if human { Form::Human { ansi: false } } else { Form::Json };
                places.extend(layer(form, file.level, Queue::start(LogFile::new(file))));
            }
        }
    }
    if !places.is_empty() {
        tracing_subscriber::registry().with(places).init();
    }
}

/// How a line looks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Human { ansi: bool },
    Json,
}

/// None where the system gives no thread to write.
fn layer(form: Form, level: LogLevel, queue: Option<Queue>) -> Option<BoxedLayer> {
    let queue = queue?;
    // The layer would tell stderr that stderr cannot be written to, and panic.
    let layer = tracing_subscriber::fmt::layer().log_internal_errors(false);
    let filter = filter(level);
    Some(match form {
        Form::Human { ansi } => {
            let fields = format::debug_fn(field).delimited(" ");
            let layer = layer.with_writer(move || queue.line());
            layer.with_ansi(ansi).fmt_fields(fields).event_format(Human).with_filter(filter).boxed()
        }
        Form::Json => {
            let layer = layer.with_writer(move || Escaped(queue.line()));
            layer.json().flatten_event(true).with_filter(filter).boxed()
        }
    })
}

/// Lines of JSON, in which nothing that others wrote acts on a terminal either.
struct Escaped<W>(W);

impl<W: io::Write> io::Write for Escaped<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match str::from_utf8(line) {
            Ok(text) => self.0.write_all(visible_json(text).as_bytes())?,
            Err(_) => self.0.write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Our own crates at the level asked for; the libraries below only when something is wrong.
fn filter(level: LogLevel) -> Targets {
    let level: LevelFilter = level.name().parse().unwrap_or(LevelFilter::INFO);
    Targets::new()
        .with_default(LevelFilter::WARN)
        .with_targets(OWN.iter().map(|target| (*target, level)))
        // It repeats what servers say; what matters of that is in our own events.
        .with_target("rmcp", LevelFilter::OFF)
}

/// Locked for each batch only.
struct Stderr;

impl io::Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stderr().lock().write(bytes)
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
    use std::io::Write;
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
        let builder = tracing_subscriber::fmt().with_ansi(false);
        match format {
            LogFormat::Json => {
                let builder = builder.with_writer(move || Escaped(writer.clone()));
                let subscriber = builder.json().flatten_event(true).finish();
                tracing::subscriber::with_default(subscriber, events);
            }
            _ => {
                let fields = format::debug_fn(field).delimited(" ");
                let builder = builder.with_writer(move || writer.clone());
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
        // Programs read the same text, and nobody's terminal obeys it.
        let log = logged(LogFormat::Json, || tracing::info!(model = theirs, "planned"));
        assert!(log.lines().count() == 1 && !log.lines().any(acts), "{log:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&log).unwrap()["model"], theirs);
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
