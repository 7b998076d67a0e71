//! How far a probe is: a bar on a terminal, a line per request elsewhere. On stderr: stdout is the result.

use std::io::IsTerminal;

use crate::output::tell;

const WIDTH: usize = 30;

pub(super) struct Progress {
    total: usize,
    done: usize,
    terminal: bool,
}

impl Progress {
    /// `total` is a guess: the bar is full when it is reached, and the count goes on.
    pub(super) fn new(total: usize) -> Self {
        Self { total: total.max(1), done: 0, terminal: std::io::stderr().is_terminal() }
    }

    pub(super) fn step(&mut self, about: &str) {
        self.done += 1;
        let line = if self.terminal {
            format!("\r\x1b[K{} {about}", bar(self.done, self.total))
        } else {
            format!("{}: {about}\n", self.done)
        };
        tell(&line);
    }

    pub(super) fn finish(&self) {
        if self.terminal {
            tell("\r\x1b[K");
        }
    }
}

fn bar(done: usize, total: usize) -> String {
    let full = (done.min(total) * WIDTH) / total;
    format!("[{}{}] {done}/{}", "#".repeat(full), " ".repeat(WIDTH - full), total.max(done))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_full_at_the_guess_and_stays_so() {
        let dots = |done| bar(done, 10).matches('#').count();
        assert_eq!([dots(0), dots(5), dots(10), dots(25)], [0, 15, 30, 30]);
        assert!(bar(25, 10).ends_with("25/25"));
    }
}
