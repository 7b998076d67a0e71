//! The official SDKs against a running godex with the built-in model: no key, no network, no home.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use super::install::{self, folder};
use super::programs::cargo;
use crate::process::{self, Running};

pub(super) fn run() -> Result<()> {
    process::run(cargo().args(["build", "--locked", "--package", "godex"]))?;
    let home = folder("home");
    // Empty every time: a test must not find what an earlier run stored.
    fs::remove_dir_all(&home).ok();
    fs::create_dir_all(&home)?;
    let log = folder("godex.log");
    let address = process::free_address()?;
    let mut command = Command::new(crate::root().join("target/debug/godex"));
    command.args(["serve", "--port", &address.port().to_string()]).current_dir(&home);
    // No provider key of this machine may reach it.
    command.env_clear().env("HOME", &home).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let mut godex = Running::start_logged(&mut command, &log)?;
    let tested = godex.until_healthy(address).and_then(|()| all(&format!("http://{address}")));
    tested.with_context(|| format!("godex wrote to {}:\n{}", log.display(), tail(&log)))
}

fn all(url: &str) -> Result<()> {
    let mut pytest = Command::new(install::python());
    pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/clients/python"]).current_dir(crate::root());
    process::run(client(&mut pytest, url))?;
    let mut node = Command::new(install::node()?.node);
    node.args(["--test"]).args(node_tests()?).current_dir(folder("node"));
    process::run(client(&mut node, url))
}

/// The environment of a client: where godex is, and no proxy between.
fn client<'a>(command: &'a mut Command, url: &str) -> &'a mut Command {
    for proxy in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        command.env_remove(proxy);
    }
    command.env("GODEX_URL", url).env("NO_PROXY", "127.0.0.1").env("PYTHONDONTWRITEBYTECODE", "1")
}

/// Copies the tests beside their packages: Node looks for packages above the file that imports them.
fn node_tests() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(crate::root().join("tests/clients/node"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_some_and(|extension| extension == "mjs") {
            fs::copy(&path, folder("node").join(&name))?;
            if name.ends_with(".test.mjs") {
                names.push(name);
            }
        }
    }
    Ok(names)
}

fn tail(log: &std::path::Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}
