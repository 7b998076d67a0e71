//! `godex codex` and `godex env` on a fresh home folder: in a pseudo-terminal, with a program that says how it was
//! called in the place of Codex, and with the real Codex where the clients' tests have installed it.

mod doctor;
mod launch;
mod real;
mod setup;
pub(crate) mod terminal;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::cli;

/// Says its version, its arguments and its surroundings; waits for a line, where it is told to; ends as it is told to.
const FAKE: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then echo "codex-cli VERSION"; exit 0; fi
for argument in "$@"; do printf 'arg:%s\n' "$argument"; done
printf 'key:%s\n' "$GODEX_API_KEY"
if [ -t 0 ]; then echo terminal:yes; else echo terminal:no; fi
if [ -n "$FAKE_WAIT" ]; then
  trap 'echo "signal:$?"; exit 9' INT TERM
  echo ready:
  read -r line
  printf 'line:%s\n' "$line"
fi
exit "${FAKE_EXIT:-0}"
"#;

/// A home folder with a `codex` in its path.
struct Home {
    folder: TempDir,
}

impl Home {
    /// With this configuration of godex; none if it is empty.
    fn new(config: &str) -> Self {
        let home = Self { folder: cli::home(config) };
        home.install("0.166.0");
        home
    }

    /// Puts another version of the program in its place.
    fn install(&self, version: &str) {
        let path = self.codex();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, FAKE.replace("VERSION", version)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn codex(&self) -> PathBuf {
        self.path().join("bin/codex")
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Codex's own folder.
    fn codex_home(&self) -> PathBuf {
        self.path().join(".codex")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = cli::command(self.path(), args);
        command.env("PATH", format!("{}:/usr/bin:/bin", self.path().join("bin").display()));
        command
    }

    fn godex(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let output = self.command(args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    /// Every file of Codex's folder, with what it holds.
    fn codex_files(&self) -> Vec<(String, Vec<u8>)> {
        let Ok(entries) = fs::read_dir(self.codex_home()) else { return Vec::new() };
        let file = |entry: fs::DirEntry| {
            (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).unwrap_or_default())
        };
        let mut files: Vec<_> = entries.map(|entry| file(entry.unwrap())).collect();
        files.sort();
        files
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.codex_home()).unwrap();
        fs::write(self.codex_home().join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.codex_home().join(name)).unwrap()
    }
}

/// What the program was given, from what it printed.
fn given<'t>(printed: &'t str, what: &str) -> Vec<&'t str> {
    printed.lines().filter_map(|line| line.trim_end_matches('\r').strip_prefix(what)).collect()
}

/// Where the program was told to find godex.
fn base_url(printed: &str) -> String {
    let (_, rest) = printed.split_once("base_url = \"").unwrap_or_else(|| panic!("no address in {printed}"));
    rest.split('"').next().unwrap().to_owned()
}

#[test]
fn the_lines_for_a_shell_are_read_by_it() {
    let home = Home::new("server: {host: 0.0.0.0, port: 1234, allow_unauthenticated: true}\n");
    let (code, out, err) = home.godex(&["env", "--shell", "sh"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let script = format!("{out}printf '%s %s' \"$OPENAI_BASE_URL\" \"$OPENAI_API_KEY\"");
    let read = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&read.stdout), "http://127.0.0.1:1234/v1 unused");
    let (_, out, _) = home.godex(&["env", "--shell", "fish", "--port", "9"]);
    assert_eq!(out, "set -gx OPENAI_BASE_URL 'http://127.0.0.1:9/v1'\nset -gx OPENAI_API_KEY 'unused'\n");
}

#[test]
fn the_catalogue_has_every_model_and_goes_to_a_file() {
    let home =
        Home::new("providers: {groq: {credentials: {api_key: k}, models: [llama]}}\nsession: {backend: memory}\n");
    let (code, out, err) = home.godex(&["codex", "catalog", "--port", "1"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let catalog: serde_json::Value = serde_json::from_str(&out).unwrap();
    let slugs: Vec<&str> = catalog["models"].as_array().unwrap().iter().map(|m| m["slug"].as_str().unwrap()).collect();
    assert_eq!(slugs, ["llama", "demo"]);
    let (code, out_again, err) = home.godex(&["codex", "catalog", "--port", "1", "-o", "models.json"]);
    assert_eq!((code, out_again.as_str(), err.as_str()), (Some(0), "", "wrote models.json\n"));
    assert_eq!(fs::read_to_string(home.path().join("models.json")).unwrap(), out);
}
