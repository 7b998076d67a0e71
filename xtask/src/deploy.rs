//! `cargo xtask deploy`: what is in `deploy/`, and the package that is made of it, as far as this machine can try them. What it
//! cannot is said at the end; nothing is left out silently.

mod bare_root;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::test::{build_godex, once, venv};
use crate::{dist, process};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Packs this binary [default: a build for debugging].
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Builds the image, if a container engine runs here: with optimisation, which takes long.
    #[arg(long)]
    image: bool,
}

impl Arguments {
    /// What the gate tries.
    pub(crate) const CI: Self = Self { binary: None, image: false };
}

/// How much the service may do, by `systemd-analyze security`, in tenths: less is better.
const EXPOSURE: &str = "--threshold=15";
const UNIT: &str = "deploy/systemd/godex.service";

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut skipped = Vec::new();
    let binary = match &arguments.binary {
        Some(binary) => binary.clone(),
        None => {
            build_godex()?;
            crate::root().join("target/debug/godex")
        }
    };
    files(&binary)?;
    if !unit(&binary)? {
        skipped.push("the unit was not verified: there is no systemd-analyze");
    }
    if cfg!(target_os = "linux") && works("dpkg-deb", &["--version"]) {
        dist::run(&dist::Arguments::packing(&binary))?;
        sboms()?;
        if !bare_root::run()? {
            skipped.push("the package was not installed: that needs root and debootstrap");
        }
    } else {
        skipped.push("no package was made: there is no dpkg-deb");
    }
    match (works("docker", &["info"]), arguments.image) {
        (true, true) => image()?,
        (true, false) => skipped.push("the image was not built: --image does"),
        (false, _) => skipped.push("the image was not built: no container engine runs here"),
    }
    for what in skipped {
        println!("{what}");
    }
    Ok(())
}

fn works(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A Python with what validates.
fn python() -> Result<PathBuf> {
    let folder = crate::root().join("target/deploy/python");
    let requirements = crate::root().join("deploy/check/requirements.txt");
    once(&folder, &fs::read_to_string(&requirements)?, |folder| {
        venv(folder)?;
        let mut pip = Command::new(folder.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]).arg(&requirements);
        process::run(&mut pip)
    })?;
    Ok(folder.join("bin/python"))
}

fn files(binary: &Path) -> Result<()> {
    let python = python()?;
    let root = crate::root();
    let mut check = Command::new(&python);
    process::run(check.arg(root.join("deploy/check/files.py")).arg(&root).arg(binary))?;
    let folder = root.join("deploy/kubernetes");
    let mut validate = Command::new(python.with_file_name("kubernetes-validate"));
    validate.args(["--strict", "--quiet"]);
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // It is no resource: it lists them.
        if !path.ends_with("kustomization.yaml") {
            validate.arg(path);
        }
    }
    process::run(&mut validate)?;
    println!("the manifests are valid");
    Ok(())
}

fn unit(binary: &Path) -> Result<bool> {
    if !works("systemd-analyze", &["--version"]) {
        return Ok(false);
    }
    let text = fs::read_to_string(crate::root().join(UNIT))?;
    let folder = crate::root().join("target/deploy/unit");
    fs::create_dir_all(&folder)?;
    let copy = folder.join("godex.service");
    // What it starts has to be there.
    let binary = fs::canonicalize(binary)?;
    fs::write(&copy, text.replace("/usr/bin/godex", &binary.display().to_string()))?;
    // It complains on stderr, also where it then succeeds.
    let done = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&copy).output()?;
    let said = String::from_utf8_lossy(&done.stderr);
    let about_it = said.lines().any(|line| line.contains("godex.service"));
    ensure!(done.status.success() && !about_it, "the unit does not verify:\n{said}");
    let mut security = Command::new("systemd-analyze");
    security.args(["security", "--offline=true", "--no-pager", EXPOSURE]).arg(&copy);
    let done = security.output()?;
    let said = String::from_utf8_lossy(&done.stdout);
    ensure!(done.status.success(), "the service may do too much:\n{said}");
    println!("the unit verifies; {}", said.lines().last().unwrap_or_default().trim_start_matches('→').trim());
    Ok(true)
}

fn sboms() -> Result<()> {
    let mut check = Command::new(python()?);
    check.arg(crate::root().join("deploy/check/sbom.py"));
    for entry in fs::read_dir(crate::root().join("target/dist/files"))? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(".cdx.json") {
            check.arg(path);
        }
    }
    process::run(&mut check)
}

/// Builds it, starts it with a key, asks it by its own health check, and stops it.
fn image() -> Result<()> {
    let docker = |arguments: &[&str]| {
        let mut command = Command::new("docker");
        command.args(arguments).current_dir(crate::root());
        command
    };
    process::run(&mut docker(&["build", "--file", "deploy/docker/Dockerfile", "--tag", "godex:check", "."]))?;
    let user = process::output(&mut docker(&["run", "--rm", "--entrypoint", "id", "godex:check", "-u"]))?;
    ensure!(user.trim() == "10001", "the image runs as {user}");
    let volume = process::output(&mut docker(&["volume", "create"]))?;
    let mount = format!("{}:/data", volume.trim());
    process::run(&mut docker(&["run", "--rm", "--volume", &mount, "godex:check", "keys", "create", "first"]))?;
    let id = process::output(&mut docker(&["run", "--detach", "--volume", &mount, "godex:check"]))?;
    let id = id.trim();
    let asked = (0..20).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(500));
        works("docker", &["exec", id, "godex", "--config", "/etc/godex/godex.yaml", "health", "--ready"])
    });
    process::run(&mut docker(&["stop", "--time", "40", id]))?;
    let code = process::output(&mut docker(&["inspect", "--format", "{{.State.ExitCode}}", id]))?;
    process::run(&mut docker(&["rm", "--volumes", id]))?;
    process::run(&mut docker(&["volume", "rm", volume.trim()]))?;
    ensure!(asked, "the container does not answer");
    ensure!(code.trim() == "0", "the container ended with {code}");
    Ok(())
}

/// The package that was made.
fn package() -> Result<PathBuf> {
    let files = fs::read_dir(crate::root().join("target/dist/files"))?;
    let mut paths = files.filter_map(Result::ok).map(|entry| entry.path());
    paths.find(|path| path.extension().is_some_and(|extension| extension == "deb")).context("no package was made")
}
