//! A real Chromium: pages of other origins try everything a page can on a running godex.

use std::process::Command;

use anyhow::{Context, Result};

use super::install;
use super::programs::{cargo, works};
use crate::process;

/// The browser, by its names on various systems.
const NAMES: &[&str] = &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// The first that works.
pub(super) fn program() -> Option<&'static str> {
    NAMES.iter().copied().find(|name| works(Command::new(name).arg("--version")))
}

pub(super) fn run() -> Result<()> {
    process::run(cargo().args(["build", "--locked", "--package", "godex"]))?;
    let browser = program().context("missing: chromium. Install it and run again")?;
    let mut node = Command::new(install::node()?.node);
    node.args(["--test", "--test-reporter=spec", "tests/browser/pages.test.mjs"]).current_dir(crate::root());
    process::run(node.env("GODEX", crate::root().join("target/debug/godex")).env("CHROMIUM", browser))
}
