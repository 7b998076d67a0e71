//! Questions on the terminal. What is typed is edited by the terminal itself; Ctrl-C and the end of the input are an
//! answer, too ([`Cancelled`]), so that whoever asks can end in order.

use std::fmt;
use std::io::{ErrorKind, IsTerminal, Read};

use anyhow::Context;
use wire::visible::{visible, visible_lines};

use crate::output::tell;

const CTRL_C: u8 = 3;
/// Nobody types more.
const LONGEST: usize = 64 * 1024;

/// The user does not want to go on.
#[derive(Debug)]
pub(crate) struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cancelled; nothing was written")
    }
}

impl std::error::Error for Cancelled {}

/// Whether there is somebody to ask.
pub(crate) fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// A line of text; nothing typed is the default.
pub(crate) fn text(question: &str, default: &str) -> anyhow::Result<String> {
    let shown = if default.is_empty() { String::new() } else { format!(" [{}]", visible(default)) };
    let line = read(&format!("{}{shown}: ", visible_lines(question)), false)?;
    Ok(if line.is_empty() { default.to_owned() } else { line })
}

/// A line that is not shown while it is typed.
pub(crate) fn hidden(question: &str) -> anyhow::Result<String> {
    read(&format!("{}: ", visible_lines(question)), true)
}

pub(crate) fn yes(question: &str, default: bool) -> anyhow::Result<bool> {
    let shown = if default { "[Y/n]" } else { "[y/N]" };
    loop {
        let line = read(&format!("{} {shown} ", visible_lines(question)), false)?;
        match line.to_lowercase().as_str() {
            "" => return Ok(default),
            "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            _ => tell("  yes or no?\n"),
        }
    }
}

/// What can be chosen: a name, and what is said of it.
pub(crate) struct Choice {
    pub(crate) name: String,
    pub(crate) about: String,
}

/// One of several, by its number or name.
pub(crate) fn one(question: &str, options: &[Choice], default: usize) -> anyhow::Result<usize> {
    show(question, options);
    loop {
        let line = read(&format!("  number or name [{}]: ", default + 1), false)?;
        if line.is_empty() {
            return Ok(default);
        }
        match find(options, &line) {
            Some(found) => return Ok(found),
            None => tell(&format!("  there is no {}\n", visible(&line))),
        }
    }
}

/// Some of several, at least one, in the order in which they were named. So many are shown with what is said of them,
/// the rest by their names only.
pub(crate) fn some(
    question: &str,
    options: &[Choice],
    default: &[usize],
    detailed: usize,
) -> anyhow::Result<Vec<usize>> {
    let (first, rest) = options.split_at(detailed.min(options.len()));
    show(question, first);
    tell(&columns(rest, first.len() + 1));
    let numbers: Vec<String> = default.iter().map(|index| (index + 1).to_string()).collect();
    let shown = if numbers.is_empty() { String::new() } else { format!(" [{}]", numbers.join(",")) };
    loop {
        let line = read(&format!("  numbers or names, with commas{shown}: "), false)?;
        if line.is_empty() && !default.is_empty() {
            return Ok(default.to_vec());
        }
        let parts: Vec<&str> = line.split([',', ' ']).filter(|part| !part.is_empty()).collect();
        if let Some(part) = parts.iter().find(|part| find(options, part).is_none()) {
            tell(&format!("  there is no {}\n", visible(part)));
            continue;
        }
        let mut chosen: Vec<usize> = Vec::new();
        for found in parts.iter().filter_map(|part| find(options, part)) {
            if !chosen.contains(&found) {
                chosen.push(found);
            }
        }
        if !chosen.is_empty() {
            return Ok(chosen);
        }
        tell("  at least one\n");
    }
}

fn show(question: &str, options: &[Choice]) {
    let width = options.iter().map(|option| option.name.chars().count()).max().unwrap_or_default();
    let mut out = format!("{}\n", visible_lines(question));
    for (number, option) in (1..).zip(options) {
        let line = format!("{number:>4}) {:width$}  {}", visible(&option.name), visible(&option.about));
        out.push_str(line.trim_end());
        out.push('\n');
    }
    tell(&out);
}

/// Names with their numbers, from this one on, side by side.
fn columns(options: &[Choice], from: usize) -> String {
    const WIDTH: usize = 100;
    let cells: Vec<String> =
        (from..).zip(options).map(|(number, option)| format!("{number:>4}) {}", visible(&option.name))).collect();
    let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or_default() + 1;
    let line = |row: &[String]| {
        let row = row.iter().map(|cell| format!("{cell:width$}")).collect::<Vec<_>>().concat();
        format!("{}\n", row.trim_end())
    };
    cells.chunks((WIDTH / width).max(1)).map(line).collect()
}

/// By its number, its name, or the beginning of its name if no other has the same.
fn find(options: &[Choice], said: &str) -> Option<usize> {
    let said = said.trim();
    if let Ok(number) = said.parse::<usize>() {
        return number.checked_sub(1).filter(|index| *index < options.len());
    }
    let exact = options.iter().position(|option| option.name == said);
    let mut begin = (0..options.len()).filter(|index| options.get(*index).is_some_and(|o| o.name.starts_with(said)));
    exact.or_else(|| begin.next().filter(|_| begin.next().is_none()))
}

/// A line without blanks around it.
fn read(question: &str, hidden: bool) -> anyhow::Result<String> {
    // First, so that nothing that is typed at once is shown, or is a signal.
    let mode = Mode::of_questions(hidden);
    tell(question);
    let (mut line, mut buffer) = (Vec::new(), [0; 4096]);
    let cancelled = loop {
        let count = match std::io::stdin().lock().read(&mut buffer) {
            // A terminal whose size changes is no answer.
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            read => read.context("cannot read from the terminal")?,
        };
        line.extend_from_slice(buffer.get(..count).unwrap_or_default());
        if count == 0 || line.contains(&CTRL_C) || line.len() > LONGEST {
            break true;
        }
        if line.ends_with(b"\n") {
            break false;
        }
    };
    drop(mode);
    if cancelled {
        tell("\n");
        return Err(Cancelled.into());
    }
    Ok(String::from_utf8_lossy(&line).trim().to_owned())
}

/// How the terminal was before.
#[cfg(unix)]
struct Mode(Option<rustix::termios::Termios>);

#[cfg(unix)]
impl Mode {
    /// Ctrl-C ends a line instead of the process, and is in it.
    fn of_questions(hidden: bool) -> Self {
        use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};
        let Ok(before) = tcgetattr(std::io::stdin()) else { return Self(None) };
        let mut mode = before.clone();
        mode.local_modes.remove(LocalModes::ISIG);
        mode.special_codes[SpecialCodeIndex::VEOL] = CTRL_C;
        if hidden {
            mode.local_modes.remove(LocalModes::ECHO);
            mode.local_modes.insert(LocalModes::ECHONL);
        }
        let set = tcsetattr(std::io::stdin(), OptionalActions::Now, &mode);
        Self(set.is_ok().then_some(before))
    }
}

#[cfg(unix)]
impl Drop for Mode {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = rustix::termios::tcsetattr(std::io::stdin(), rustix::termios::OptionalActions::Now, before);
        }
    }
}

/// Elsewhere Ctrl-C ends the process, and what is hidden is shown.
#[cfg(not(unix))]
struct Mode;

#[cfg(not(unix))]
impl Mode {
    fn of_questions(_: bool) -> Self {
        Self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_options_share_lines() {
        let options: Vec<Choice> =
            (1..=12).map(|n| Choice { name: format!("provider-{n}"), about: String::new() }).collect();
        let shown = columns(&options, 3);
        assert!(shown.starts_with("   3) provider-1     4) provider-2"), "{shown}");
        assert_eq!((shown.lines().count(), columns(&[], 1).as_str()), (3, ""), "{shown}");
        assert!(shown.lines().all(|line| line.len() <= 100) && shown.ends_with("14) provider-12\n"), "{shown}");
    }

    #[test]
    fn options_are_found_by_number_name_and_beginning() {
        let names = ["openai", "openai-compatible", "ollama", "vllm"];
        let options = names.map(|name| Choice { name: name.to_owned(), about: String::new() });
        for (said, expected) in [
            ("1", Some(0)),
            ("4", Some(3)),
            ("0", None),
            ("5", None),
            ("openai", Some(0)),
            ("openai-", Some(1)),
            ("o", None),
            (" v ", Some(3)),
            ("x", None),
        ] {
            assert_eq!(find(&options, said), expected, "{said}");
        }
    }
}
