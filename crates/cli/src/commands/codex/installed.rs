//! The `codex` program of this machine.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::args::variable;

/// How to get it.
pub(crate) const INSTALL: &str =
    "install it with `npm install -g @openai/codex` or `brew install codex`, or name it with --codex PATH";
/// A program that only says its version.
const LONGEST: Duration = Duration::from_secs(30);

/// A version of Codex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub(crate) u32, pub(crate) u32, pub(crate) u32);

impl Version {
    /// From here on a profile is a file of its own, and a table of `config.toml` is refused.
    pub(crate) const PROFILE_FILES: Self = Self(0, 134, 0);
    /// The oldest and the newest that were seen to work.
    pub(crate) const OLDEST: Self = Self(0, 100, 0);
    pub(crate) const NEWEST: Self = Self(0, 166, u32::MAX);
    /// Those that wait for ever for a server that is not there, unless they are told not to.
    pub(crate) const WAITS_FOR_EVER: Self = Self(0, 149, 0);

    /// Out of `codex-cli 0.166.0`.
    fn parse(text: &str) -> Option<Self> {
        let number = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
        let mut parts = number.split(['.', '-', '+']).map(|part| part.parse().ok());
        Some(Self(parts.next()??, parts.next()??, parts.next().flatten().unwrap_or_default()))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// The program that was named, else the first in `PATH`.
pub(crate) fn find(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    match named {
        Some(path) if is_program(path) => Ok(path.to_owned()),
        Some(path) if path.is_file() => bail!("{}: it is no program that may be run", path.display()),
        Some(path) => bail!("{}: there is no such program", path.display()),
        None => {
            let path = variable("PATH").unwrap_or_default();
            let names: &[&str] = if cfg!(windows) { &["codex.exe", "codex.cmd"] } else { &["codex"] };
            let candidates = std::env::split_paths(&path).filter(|folder| !folder.as_os_str().is_empty());
            candidates
                .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
                .find(|path| is_program(path))
                // How to get it is the cause, so that who says that anyway can leave it out.
                .ok_or_else(|| anyhow::Error::msg(INSTALL).context("Codex is not installed (no `codex` in PATH)"))
        }
    }
}

fn is_program(path: &Path) -> bool {
    let Ok(found) = std::fs::metadata(path) else { return false };
    #[cfg(unix)]
    let runs = std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let runs = true;
    found.is_file() && runs
}

/// What it says its version is.
pub(crate) fn version(codex: &Path) -> anyhow::Result<Version> {
    let mut command = Command::new(codex);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("cannot run {}", codex.display()))?;
    let (said, hears) = channel();
    if let Some(mut stdout) = child.stdout.take() {
        thread::spawn(move || {
            let mut text = String::new();
            let _ = stdout.by_ref().take(4096).read_to_string(&mut text);
            let _ = said.send(text);
        });
    }
    let text = hears.recv_timeout(LONGEST);
    if text.is_err() {
        let _ = child.kill();
    }
    let _ = child.wait();
    let text = text.with_context(|| format!("{} --version does not end", codex.display()))?;
    Version::parse(&text).with_context(|| format!("{} --version says no version: {text:?}", codex.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_ordered() {
        for (text, expected) in [
            ("codex-cli 0.166.0\n", Some(Version(0, 166, 0))),
            ("codex 1.2", Some(Version(1, 2, 0))),
            ("codex-cli 0.167.0-alpha.3", Some(Version(0, 167, 0))),
            ("no number", None),
            ("7", None),
        ] {
            assert_eq!(Version::parse(text), expected, "{text}");
        }
        assert!(Version(0, 133, 9) < Version::PROFILE_FILES && Version(0, 134, 0) >= Version::PROFILE_FILES);
    }
}
