//! `godex store check`: whether everything that is stored is whole.

use std::io::IsTerminal;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use wire::visible::visible;

use crate::admin::{self, Look};
use crate::args::Flags;
use crate::output;

/// A backup, or another file that no server has open.
pub(super) fn file(flags: &Flags, path: &Path) -> anyhow::Result<()> {
    ensure!(path.exists(), "there is no database at {}", path.display());
    // Only its keys are wanted: a file can be looked at without.
    let keys = flags.manage().map(|config| config.session.encryption.keys).unwrap_or_default();
    let found = server::check_sqlite(path, &keys)?;
    let unknown = found.unknown().map(|unknown| format!(" ({unknown})")).unwrap_or_default();
    told(&found.lines(), found.count(), &format!("OK: {}{unknown}\n", path.display()))
}

/// What the configuration says; by the server that has it open, if one does.
pub(super) fn store(flags: &Flags) -> anyhow::Result<()> {
    let last = admin::look(flags, Look::Sessions, async |client| {
        let shown = std::io::stderr().is_terminal();
        let (mut waiting, mut last) = (Vec::new(), Value::Null);
        let mut read = |chunk: &[u8]| {
            waiting.extend_from_slice(chunk);
            while let Some(end) = waiting.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = waiting.drain(..=end).collect();
                last = serde_json::from_slice(&line).unwrap_or_default();
                if shown && last["object"] == "progress" {
                    output::tell(&format!("\r{} rows, {} responses and conversations", last["rows"], last["read"]));
                }
            }
            Ok(())
        };
        let status = client.read("GET", "/admin/store/check", None, &mut read).await;
        if shown {
            output::tell("\r\x1b[K");
        }
        if status? >= 400 {
            last = serde_json::from_slice(&waiting).unwrap_or_default();
            bail!("{}", last["error"]["message"].as_str().unwrap_or("refused"));
        }
        Ok(last)
    })?;
    if last["object"] != "end" {
        bail!("the check broke off: {}", last["message"].as_str().unwrap_or("the server has ended"));
    }
    let findings: Vec<String> =
        serde_json::from_value(last["findings"].clone()).context("the answer is not understood")?;
    let count = last["found"].as_u64().unwrap_or(findings.len() as u64);
    told(&findings, count, &format!("OK: {} responses and conversations\n", last["read"]))
}

/// What was found, each in a line.
fn told(findings: &[String], count: u64, good: &str) -> anyhow::Result<()> {
    if findings.is_empty() {
        return output::print(good);
    }
    let lines: Vec<String> = findings.iter().map(|line| format!("{}\n", visible(line))).collect();
    output::print(&lines.concat())?;
    bail!("{count} found; `godex store restore` puts a backup in its place")
}
