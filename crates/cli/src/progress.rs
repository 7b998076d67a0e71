//! How far something is that a person waits for: one line on stderr, where that is a terminal, gone when it is over.
//! Elsewhere nothing at all. What takes less than a moment shows nothing either.
//!
//! There is one line, and whoever writes something else to the terminal (`output`) has it taken away first.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use wire::visible::visible;

const TICK: Duration = Duration::from_millis(100);
/// Ticks before anything is shown.
const MOMENT: u32 = 5;
const TICKS_PER_SECOND: u32 = 10;
const WIDTH: usize = 30;
const ERASE: &str = "\r\x1b[K";

static LINE: Mutex<Line> = Mutex::new(Line { work: None, drawn: false });

struct Line {
    work: Option<Work>,
    /// Whether it is on the screen.
    drawn: bool,
}

struct Work {
    text: String,
    /// How many of how many, where that is known.
    done: Option<(usize, usize)>,
    ticks: u32,
    /// Something else was written: a question may stand where the line was. It comes back with the next news.
    aside: bool,
}

/// Shown until it is dropped.
pub(crate) struct Progress {
    /// Dropped, it ends the thread that draws. None: nobody looks.
    end: Option<Sender<()>>,
}

impl Progress {
    pub(crate) fn start(text: &str) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self { end: None };
        }
        line().work = Some(Work { text: text.to_owned(), done: None, ticks: 0, aside: false });
        let (end, ended) = channel();
        let drawing = move || {
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                line().tick();
            }
        };
        // Without a thread it is only less lively.
        let _ = thread::Builder::new().name("progress".to_owned()).spawn(drawing);
        Self { end: Some(end) }
    }

    /// What is done now.
    pub(crate) fn say(&self, text: &str) {
        if self.end.is_some() {
            line().change(text, None);
        }
    }

    /// What is done now, and which one of how many it is. `total` may be a guess: then the count goes on.
    pub(crate) fn step(&self, done: usize, total: usize, text: &str) {
        if self.end.is_some() {
            line().change(text, Some((done, total)));
        }
    }

    /// Something that is done, in a line that stays.
    pub(crate) fn done(&self, text: &str) {
        if self.end.is_some() {
            aside(|| write(&format!("{}\n", visible(text))));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.end.take().is_some() {
            let mut line = line();
            line.erase();
            line.work = None;
        }
    }
}

/// Writes something else to the terminal.
pub(crate) fn aside<T>(write: impl FnOnce() -> T) -> T {
    let mut line = line();
    line.erase();
    if let Some(work) = &mut line.work {
        work.aside = true;
    }
    write()
}

fn line() -> MutexGuard<'static, Line> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Line {
    fn tick(&mut self) {
        if let Some(work) = &mut self.work {
            work.ticks = work.ticks.saturating_add(1);
        }
        self.draw();
    }

    fn change(&mut self, text: &str, done: Option<(usize, usize)>) {
        if let Some(work) = &mut self.work {
            text.clone_into(&mut work.text);
            work.done = done;
            work.aside = false;
        }
        self.draw();
    }

    fn draw(&mut self) {
        let Some(work) = self.work.as_ref().filter(|work| work.ticks >= MOMENT && !work.aside) else { return };
        let text = work.shown(columns());
        self.drawn = true;
        write(&format!("{ERASE}{text}"));
    }

    fn erase(&mut self) {
        if std::mem::take(&mut self.drawn) {
            write(ERASE);
        }
    }
}

impl Work {
    /// In so many columns: a line that wraps cannot be taken away.
    fn shown(&self, columns: usize) -> String {
        let sign = ["|", "/", "-", "\\"][self.ticks as usize % 4];
        let bar = self.done.map(|(done, total)| bar(done, total) + " ").unwrap_or_default();
        let seconds = self.ticks / TICKS_PER_SECOND;
        let line = format!("{sign} {bar}{} {seconds}s", visible(&self.text));
        line.chars().take(columns.saturating_sub(1)).collect()
    }
}

fn bar(done: usize, total: usize) -> String {
    let total = total.max(1);
    let full = (done.min(total) * WIDTH) / total;
    format!("[{}{}] {done}/{}", "#".repeat(full), " ".repeat(WIDTH - full), total.max(done))
}

fn columns() -> usize {
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(std::io::stderr())
        && size.ws_col > 0
    {
        return size.ws_col.into();
    }
    80
}

fn write(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_full_at_the_guess_and_stays_so() {
        let dots = |done| bar(done, 10).matches('#').count();
        assert_eq!([dots(0), dots(5), dots(10), dots(25)], [0, 15, 30, 30]);
        assert!(bar(25, 10).ends_with("25/25") && bar(0, 0).ends_with("0/1"));
    }

    #[test]
    fn a_line_never_wraps_and_nothing_in_it_acts() {
        let work = Work { text: "a\x1b[2J\nb".repeat(50), done: Some((3, 4)), ticks: 31, aside: false };
        let line = work.shown(40);
        assert_eq!(line.chars().count(), 39);
        assert!(!line.contains(wire::visible::acts) && line.starts_with("\\ ["), "{line:?}");
        let short = Work { text: "asking".to_owned(), done: None, ticks: 21, aside: false };
        assert_eq!(short.shown(80), "/ asking 2s");
    }
}
