//! `cargo xtask llm --record`: exchanges of godex with real model servers become golden pages that say so. Every server
//! is installed from package registries, below `target/llm`; the model is the same small one everywhere. It is the
//! wire that is recorded, not the wisdom.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{MODEL, folder, godex, model, python, source, unpacked};
use crate::process::{self, Running};
use crate::test::{build_godex, cargo, once, venv};

/// A prompt of a thousand tokens is too long, so that its refusal can be recorded.
const CONTEXT: &str = "1024";
/// A server may have to read its weights first.
const START: Duration = Duration::from_mins(3);

struct Server {
    /// The pages begin with it.
    name: &'static str,
    /// The spec with which godex speaks to it.
    spec: &'static str,
    /// The name of the model there.
    model: &'static str,
    /// For the pages: the server and its version.
    version: &'static str,
    packages: &'static [&'static str],
    /// Cases that it works on for minutes, or answers as it does another.
    left_out: &'static [&'static str],
    command: fn(&str) -> Command,
    /// What is answered once it is up.
    health: &'static str,
}

/// vLLM is missing: its wheel for CPUs wants a build of torch that no package registry has.
const SERVERS: &[Server] = &[
    Server {
        name: "llama-server",
        spec: "llamacpp",
        model: "smollm2",
        version: "llama.cpp (in xllamacpp 2026.10.11549)",
        packages: &[],
        left_out: &[],
        command: |port| {
            let mut command = Command::new(python());
            command.arg(source("serve.py")).arg(model()).arg(source("template.jinja")).args([port, CONTEXT]);
            command
        },
        health: "/health",
    },
    // Built from source: a quarter of an hour on one core.
    Server {
        name: "llama-cpp-python",
        spec: "openai-compatible",
        model: "smollm2",
        version: "llama-cpp-python 0.3.36",
        packages: &["llama-cpp-python[server]==0.3.36"],
        left_out: &["tool-call-stream"],
        command: |port| {
            let mut command = program("llama-cpp-python", "python");
            command.args(["-m", "llama_cpp.server", "--model_alias", "smollm2", "--model"]).arg(model());
            command.args(["--chat_format", "chatml-function-calling", "--logits_all", "true", "--n_threads", "1"]);
            command.args(["--host", "127.0.0.1", "--port", port, "--n_ctx", CONTEXT]);
            command
        },
        health: "/v1/models",
    },
    // With torch as the registry has it: 6 GB.
    Server {
        name: "transformers-serve",
        spec: "openai-compatible",
        model: "smollm2",
        version: "transformers serve 5.22.2",
        packages: TRANSFORMERS,
        left_out: &["overflow"],
        command: |port| {
            let mut command = program("transformers-serve", "transformers");
            command.args(["serve", "smollm2", "--device", "cpu", "--host", "127.0.0.1", "--port", port]);
            command
        },
        health: "/health",
    },
    Server {
        name: "mlx-lm",
        spec: "openai-compatible",
        model: "default_model",
        version: "mlx-lm 0.32.2 (mlx-cpu 0.32.4)",
        packages: &["mlx[cpu]==0.32.4", "mlx-lm==0.32.2"],
        left_out: &["overflow"],
        command: |port| {
            let mut command = program("mlx-lm", "mlx_lm.server");
            command.args(["--model", "smollm2", "--host", "127.0.0.1", "--port", port]);
            command
        },
        health: "/health",
    },
];

const TRANSFORMERS: &[&str] = &["transformers[serving]==5.22.2", "torch==2.15.0", "gguf==0.19.0"];

/// A program of a server's own installation, in the folder in which `smollm2` is the model.
fn program(server: &str, name: &str) -> Command {
    let mut command = Command::new(folder(server).join("bin").join(name));
    // Nothing is to be fetched while it runs; one thread is faster than two on shared cores.
    command.current_dir(folder("")).env("HF_HUB_OFFLINE", "1").env("OMP_NUM_THREADS", "1");
    command
}

/// Records from these servers, or from all.
pub(super) fn run(names: &[String]) -> Result<()> {
    let known = |name: &String| SERVERS.iter().any(|server| server.name == *name);
    let all: Vec<&str> = SERVERS.iter().map(|server| server.name).collect();
    ensure!(names.iter().all(known), "the servers are: {}", all.join(", "));
    super::install()?;
    build_godex()?;
    for server in SERVERS.iter().filter(|server| names.is_empty() || names.iter().any(|name| name == server.name)) {
        println!("── {}", server.name);
        record(server).with_context(|| server.name)?;
    }
    Ok(())
}

fn record(server: &Server) -> Result<()> {
    install(server.name, server.packages)?;
    if server.spec != "llamacpp" && server.name != "llama-cpp-python" {
        converted()?;
    }
    let log = folder(&format!("{}.log", server.name));
    let address = process::free_address()?;
    let mut upstream = Running::start_logged(&mut (server.command)(&address.port().to_string()), &log)?;
    upstream.until_answered(address, server.health, START).with_context(|| format!("see {}", log.display()))?;
    let between = process::free_address()?;
    let (_gateway, gateway) = gateway(server, between)?;
    let mut record = Command::new(python());
    record.arg(source("record.py")).arg(format!("http://{gateway}")).args(["recorded", server.model]);
    record.arg(format!("http://{address}")).arg(between.port().to_string());
    record.arg(crate::root().join("tests/golden").join(server.spec)).arg(server.name);
    record.arg(format!("recorded from {} with SmolLM2-135M-Instruct", server.version)).args(server.left_out);
    process::run(&mut record)?;
    let mut bless = cargo();
    bless.args([
        "test",
        "--quiet",
        "--workspace",
        "--locked",
        "--test",
        "goldens",
        "--",
        &format!("/{}-", server.name),
    ]);
    process::run(bless.env("GODEX_BLESS", "1"))
}

/// godex with the server as its provider, by way of whoever listens between.
fn gateway(server: &Server, between: SocketAddr) -> Result<(Running, SocketAddr)> {
    let home = folder("recording");
    fs::remove_dir_all(&home).ok();
    fs::create_dir_all(&home)?;
    let endpoint = format!("{{base_url: \"http://{between}/v1\"}}");
    let provider = format!("providers: {{recorded: {{spec: {}, endpoint: {endpoint}}}}}\n", server.spec);
    fs::write(home.join("godex.yaml"), provider)?;
    let address = process::free_address()?;
    let (mut serve, log) = (godex(&home), folder("recording.log"));
    let mut gateway = Running::start_logged(serve.args(["serve", "--port", &address.port().to_string()]), &log)?;
    gateway.until_healthy(address).with_context(|| format!("see {}", log.display()))?;
    Ok((gateway, address))
}

fn install(name: &str, packages: &[&str]) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    once(&folder(name), &packages.join(" "), |folder| {
        venv(folder)?;
        let mut pip = Command::new(folder.join("bin/python"));
        process::run(pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages))
    })
}

/// The model as servers that do not read GGUF want it.
fn converted() -> Result<()> {
    install("transformers-serve", TRANSFORMERS)?;
    once(&folder("smollm2"), MODEL, |folder| {
        let mut convert = program("transformers-serve", "python");
        let weights: PathBuf = unpacked();
        convert.arg(source("convert.py")).arg(weights).arg(MODEL.rsplit('/').next().unwrap_or(MODEL));
        process::run(convert.arg(source("template.jinja")).arg(folder))
    })
}
