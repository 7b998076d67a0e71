//! A real Chromium: pages of other origins try everything a page can on a running godex; the operator's own page shows all that
//! it can, and whatever others wrote stays text in it.

use std::process::Command;

use anyhow::{Context, Result};

use super::install;
use super::programs::{build_godex, works};
use crate::process;

/// The browser, by its names on various systems.
const NAMES: &[&str] = &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

const TESTS: [&str; 3] = ["pages", "page", "page-real"];

/// The first that works.
pub(super) fn program() -> Option<&'static str> {
    NAMES.iter().copied().find(|name| works(Command::new(name).arg("--version")))
}

pub(super) fn run() -> Result<()> {
    build_godex()?;
    let browser = program().context("missing: chromium. Install it and run again")?;
    let mut node = Command::new(install::node()?.node);
    node.args(["--test", "--test-concurrency=1", "--test-timeout=600000", "--test-reporter=spec"]);
    node.args(TESTS.map(|name| format!("tests/browser/{name}.test.mjs"))).current_dir(crate::root());
    let axe = install::folder("browser").join("node_modules/axe-core/axe.min.js");
    process::run(node.env("GODEX", crate::root().join("target/debug/godex")).env("CHROMIUM", browser).env("AXE", axe))
}
