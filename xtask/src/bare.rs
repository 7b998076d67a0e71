//! `cargo xtask bare`: both commands of the README on a minimal Debian with Rust, a C compiler and nothing else.
//!
//! The system is made by debootstrap below `target/bare` and kept, with its own `target`. What is run in it has its own
//! mounts and processes, which are gone with it, however it ends. Only the network is this machine's.

mod host;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::process::{self, Running};
use crate::test::system_package;
use host::Host;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Only this part: make (the system and the copy), run (the first command) or test (the second).
    #[arg(long, value_name = "PART")]
    only: Option<String>,
    /// For the second command: `cargo xtask test --only STEP`.
    #[arg(long, value_name = "STEP")]
    step: Option<String>,
    /// Makes the system anew.
    #[arg(long)]
    fresh: bool,
}

/// Where the first command listens unless it is told otherwise.
const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 5678);
/// The README's first request.
const REQUEST: &str = r#"{"model": "demo", "input": "Hello"}"#;
/// The checkout in there.
const CHECKOUT: &str = "/home/godex";

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let only = arguments.only.as_deref();
    ensure!(only.is_none_or(|only| ["make", "run", "test"].contains(&only)), "no such part");
    let wanted = |part: &str| only.is_none_or(|only| only == part);
    let system = System { root: crate::root().join("target/bare/root"), host: Host::look()? };
    system.make(arguments.fresh)?;
    system.copy()?;
    if wanted("run") {
        println!("── cargo run --release");
        system.first()?;
    }
    if wanted("test") {
        println!("── cargo xtask test");
        let mut command = system.command(&["cargo", "xtask", "test"]);
        if let Some(step) = &arguments.step {
            command.args(["--only", step]);
        }
        process::run(&mut command)?;
    }
    Ok(())
}

/// Makes a minimal Debian in this folder, of the release that this machine has.
pub(crate) fn debootstrap(root: &Path) -> Result<()> {
    system_package(Command::new("debootstrap").arg("--version"), &["debootstrap"])?;
    fs::remove_dir_all(root).ok();
    fs::create_dir_all(root)?;
    let (suite, mirror) = (host::suite()?, host::mirror()?);
    println!("── debootstrap {suite}");
    let mut command = Command::new("debootstrap");
    command.args(["--variant=minbase", &suite]).arg(root).arg(mirror);
    process::run(command.stdout(Stdio::null()))?;
    // As in images of containers: packages do not start their services.
    let policy = root.join("usr/sbin/policy-rc.d");
    fs::write(&policy, "#!/bin/sh\nexit 101\n")?;
    process::run(Command::new("chmod").arg("+x").arg(&policy))?;
    Host::configure(root)
}

/// A minimal Debian in a folder.
struct System {
    root: PathBuf,
    host: Host,
}

impl System {
    fn make(&self, fresh: bool) -> Result<()> {
        let made = self.root.join("made.txt");
        if made.exists() && !fresh {
            return Ok(());
        }
        debootstrap(&self.root)?;
        process::run(&mut self.command(&["apt-get", "-qq", "update"]))?;
        let install = ["apt-get", "-qq", "install", "--yes", "--no-install-recommends", "gcc", "libc6-dev"];
        process::run(&mut self.command(&install))?;
        fs::write(made, "")?;
        Ok(())
    }

    /// The committed files, and what is beside the clone; what was built from earlier ones stays.
    fn copy(&self) -> Result<()> {
        Host::configure(&self.root)?;
        let checkout = self.root.join(CHECKOUT.trim_start_matches('/'));
        fs::create_dir_all(&checkout)?;
        for entry in fs::read_dir(&checkout)? {
            let path = entry?.path();
            if path.ends_with("target") {
                continue;
            }
            if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
        }
        // With today's times: cargo looks at them to see what has changed.
        let copy = "git archive HEAD | tar --extract --touch --no-same-owner --directory \"$0\"";
        process::run(Command::new("sh").args(["-c", copy]).arg(&checkout).current_dir(crate::root()))
    }

    /// Starts godex as the README says, asks it what the README asks, and presses Ctrl-C.
    fn first(&self) -> Result<()> {
        ensure!(TcpStream::connect(ADDRESS).is_err(), "something listens on {ADDRESS} already");
        let mut command = self.command(&["cargo", "run", "--release"]);
        let mut godex = Running::start(command.process_group(0))?;
        let url = godex.line_after("address:")?;
        println!("godex listens on {url}");
        let answer = ask().context("the README's request")?;
        ensure!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"output_text\""), "it answered {answer}");
        godex.interrupt().context("Ctrl-C")?;
        println!("it answered, and ended when it was told to");
        Ok(())
    }

    /// A command in there, with processes and mounts of its own that end with it, and nothing of our environment but
    /// what says where packages come from.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "sh", "-ec", MOUNT]);
        command.arg(&self.root).arg(&self.host.rustup).arg(&self.host.cargo).arg(Host::shared()).arg(CHECKOUT);
        command.args(arguments).env_clear().envs(&self.host.environment);
        command.env("PATH", "/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        command.env("HOME", "/root").env("DEBIAN_FRONTEND", "noninteractive").env("LANG", "C.UTF-8");
        command.stdin(Stdio::null());
        command
    }
}

/// `$0` is the system's folder; then come Rust's two, what is beside the clone, the clone, and the command.
const MOUNT: &str = r#"
    rustup=$1 cargo=$2 shared=$3 checkout=$4
    shift 4
    mkdir -p "$0/root/.rustup" "$0/root/.cargo" "$0$checkout"
    mount -t proc proc "$0/proc"
    mount --rbind /dev "$0/dev"
    mount --bind "$rustup" "$0/root/.rustup"
    mount --bind "$cargo" "$0/root/.cargo"
    if [ -d "$shared" ]; then
        mkdir -p "$0$checkout/../shared"
        mount --bind -o ro "$shared" "$0$checkout/../shared"
    fi
    exec chroot "$0" sh -c 'cd "$0" && exec "$@"' "$checkout" "$@"
"#;

fn ask() -> Result<String> {
    let mut stream = TcpStream::connect(ADDRESS)?;
    write!(
        stream,
        "POST /v1/responses HTTP/1.1\r\nhost: {ADDRESS}\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{REQUEST}",
        REQUEST.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Copies a file or folder to the same place below `root`; one that is not there is left out.
fn copy_over(path: &Path, root: &Path) -> Result<()> {
    if path.exists() { copy_as(path, &root.join(path.strip_prefix("/").unwrap_or(path))) } else { Ok(()) }
}

fn copy_as(path: &Path, target: &Path) -> Result<()> {
    fs::create_dir_all(if path.is_dir() { target } else { target.parent().unwrap_or(target) })?;
    let source = if path.is_dir() { path.join(".") } else { path.to_owned() };
    process::run(Command::new("cp").args(["--recursive", "--dereference", "--force"]).arg(source).arg(target))
}
