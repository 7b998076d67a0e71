//! What a command says, and to whom. That nobody listens is no reason to panic: a reader that is gone has what it
//! wanted, and with stderr gone there is nobody left to tell.

use std::io::{ErrorKind, Write};

use anyhow::Context;

use crate::progress;

/// Writes what the command was asked for to stdout.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let write = || {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    };
    match progress::aside(write) {
        // `godex models | head -1`
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done.context("cannot write to stdout"),
    }
}

/// The same for one who says more and more. False: nobody listens.
pub(crate) fn print_more(text: &str) -> anyhow::Result<bool> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        done => done.map(|()| true).context("cannot write to stdout"),
    }
}

/// Writes to stderr what else there is to say.
pub(crate) fn tell(text: &str) {
    progress::aside(|| {
        let mut err = std::io::stderr().lock();
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    });
}

/// Names with commas between them, in lines of a terminal's width; those after the first are indented.
pub(crate) fn filled(label: &str, names: &[&str]) -> String {
    const WIDTH: usize = 100;
    let (mut out, mut line) = (String::new(), label.to_owned());
    for (index, name) in names.iter().enumerate() {
        let comma = if index + 1 < names.len() { ", " } else { "" };
        if line.len() + name.len() + comma.trim_end().len() > WIDTH {
            out.push_str(line.trim_end());
            out.push('\n');
            "  ".clone_into(&mut line);
        }
        line.push_str(name);
        line.push_str(comma);
    }
    out + line.trim_end() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_broken_between_names() {
        assert_eq!(filled("all: ", &["a", "b"]), "all: a, b\n");
        let names = vec!["0123456789"; 20];
        let text = filled("all: ", &names);
        assert!(text.lines().count() == 3 && text.lines().all(|line| line.len() <= 100), "{text}");
        assert_eq!(text.replace("\n  ", " "), format!("all: {}\n", names.join(", ")));
    }
}
