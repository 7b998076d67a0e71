//! Real clients against a running godex with the built-in model and a scripted provider: no key, no network, no
//! home.

mod hosted;
mod messages;
mod search;
mod steps;
mod upstream;

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, anyhow};

use super::install::{self, folder};
use super::programs::build_godex;
use crate::process::{self, Running};
use hosted::Hosted;

pub(super) fn run() -> Result<()> {
    build_godex()?;
    let home = folder("home");
    // Empty every time: a test must not find what an earlier run stored.
    fs::remove_dir_all(&home).ok();
    fs::create_dir_all(&home)?;
    let webhooks = Webhooks { python: process::free_address()?, node: process::free_address()? };
    let hosted = Hosted::start()?;
    let configuration = [upstream::configuration()?, webhooks.configuration(), hosted.configuration()?].concat();
    fs::write(home.join("godex.yaml"), configuration)?;
    let log = folder("godex.log");
    let address = process::free_address()?;
    let mut command = Command::new(binary());
    command.args(["serve", "--port", &address.port().to_string()]).current_dir(&home);
    // No provider key of this machine may reach it.
    command.env_clear().env("HOME", &home).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let mut godex = Running::start_logged(&mut command, &log)?;
    let tested = godex.until_healthy(address).and_then(|()| all(&format!("http://{address}"), &webhooks, &hosted));
    tested.with_context(|| format!("godex wrote to {}:\n{}", log.display(), tail(&log)))
}

/// What is tested. Scenarios start it themselves, each with a configuration of its own.
fn binary() -> PathBuf {
    crate::root().join("target/debug/godex")
}

/// Where the clients of each language receive webhooks.
struct Webhooks {
    python: SocketAddr,
    node: SocketAddr,
}

/// One in base64, as OpenAI gives them out, and one as it is.
const PYTHON_SECRET: &str = "whsec_Z29kZXggc2lnbnMgd2ViaG9va3MgZm9yIHB5dGhvbg==";
const NODE_SECRET: &str = "godex signs webhooks for node";

impl Webhooks {
    fn configuration(&self) -> String {
        let entry = |address: SocketAddr, secret: &str| {
            format!("- {{url: 'http://{address}/webhook', secret: '{secret}', allow_private: true}}\n")
        };
        format!("webhooks:\n{}{}", entry(self.python, PYTHON_SECRET), entry(self.node, NODE_SECRET))
    }
}

fn all(url: &str, webhooks: &Webhooks, hosted: &Hosted) -> Result<()> {
    let mut pytest = Command::new(install::python());
    pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/clients/python"]).current_dir(crate::root());
    let mut node = Command::new(install::node()?.node);
    node.args(["--test", "--test-concurrency=4"]).args(node_tests()?).current_dir(folder("node"));
    for (command, port, secret) in
        [(&mut pytest, webhooks.python.port(), PYTHON_SECRET), (&mut node, webhooks.node.port(), NODE_SECRET)]
    {
        command.env("GODEX_WEBHOOK_PORT", port.to_string()).env("GODEX_WEBHOOK_SECRET", secret);
        command.envs(hosted.environment());
    }
    // At the same time: each has tests that wait for a silent provider.
    thread::scope(|scope| {
        let pytest = scope.spawn(|| process::run(client(&mut pytest, url)));
        let node = process::run(client(&mut node, url));
        pytest.join().map_err(|_panic| anyhow!("pytest's thread panicked"))?.and(node)
    })
}

/// The environment of a client: where godex is, no proxy between, and nothing that would send it or its traces
/// elsewhere.
fn client<'a>(command: &'a mut Command, url: &str) -> &'a mut Command {
    for proxy in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        command.env_remove(proxy);
    }
    for (name, _) in std::env::vars_os() {
        let elsewhere = ["OPENAI_", "CODEX_", "LANGSMITH_", "LANGCHAIN_"];
        if elsewhere.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command
        .env("GODEX_URL", url)
        .env("GODEX_BINARY", binary())
        .env("NO_PROXY", "127.0.0.1")
        .env("PYTHONDONTWRITEBYTECODE", "1")
}

/// Copies the tests beside their packages: Node looks for packages above the file that imports them.
fn node_tests() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for below in ["", "codex/"] {
        fs::create_dir_all(folder("node").join(below))?;
        for entry in fs::read_dir(crate::root().join("tests/clients/node").join(below))? {
            let path = entry?.path();
            let name = format!("{below}{}", path.file_name().unwrap_or_default().to_string_lossy());
            if path.extension().is_some_and(|extension| extension == "mjs") {
                fs::copy(&path, folder("node").join(&name))?;
                if name.ends_with(".test.mjs") {
                    names.push(name);
                }
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
