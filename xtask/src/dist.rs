//! `cargo xtask dist`: what is given to others, below `target/dist/files`: for each target an archive with the binary, its
//! completions and manual pages, a list of what it is made of, on Debian's kind of system a package, and the checksums of
//! all of it.

mod deb;
mod sbom;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::process;
use crate::test::cargo;

#[derive(Args)]
pub(crate) struct Arguments {
    /// For this target [default: this machine's, and static musl where that is installed].
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// Packs this binary instead of building one; how large it is does not count then.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

impl Arguments {
    /// Packs this binary for this machine.
    pub(crate) fn packing(binary: &Path) -> Self {
        Self { target: None, binary: Some(binary.to_owned()) }
    }
}

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// No binary is larger.
const LARGEST: u64 = 30_000_000;
/// Shells, the names of their scripts, and where Debian keeps them.
const SHELLS: [(&str, &str, &str); 3] = [
    ("bash", "godex.bash", "usr/share/bash-completion/completions/godex"),
    ("zsh", "_godex", "usr/share/zsh/vendor-completions/_godex"),
    ("fish", "godex.fish", "usr/share/fish/vendor_completions.d/godex.fish"),
];
/// What else comes along.
const PAPERS: [&str; 4] = ["LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md"];

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let files = crate::root().join("target/dist/files");
    fs::remove_dir_all(&files).ok();
    fs::create_dir_all(&files)?;
    for target in targets(arguments)? {
        println!("── {target}");
        let binary = match &arguments.binary {
            Some(binary) => binary.clone(),
            None => build(&target)?,
        };
        let made = Made::new(&binary, &target, is_alike(&target, &host()?))?;
        if arguments.binary.is_none() {
            made.is_small()?;
        }
        made.archive(&files)?;
        sbom::write(&target, &files.join(format!("godex-{VERSION}-{target}.cdx.json")))?;
        if let Some(architecture) = deb::architecture(&target) {
            deb::build(&made, architecture, &files)?;
        }
    }
    sums(&files)
}

fn targets(arguments: &Arguments) -> Result<Vec<String>> {
    if let Some(target) = &arguments.target {
        return Ok(vec![target.clone()]);
    }
    let host = host()?;
    let mut targets = vec![host.clone()];
    let musl = host.replace("-gnu", "-musl");
    if arguments.binary.is_none() && musl != host {
        let folder = process::output(Command::new("rustc").args(["--print", "target-libdir", "--target", &musl]))?;
        if Path::new(folder.trim()).exists() {
            targets.push(musl);
        } else {
            println!("without {musl}, which is not installed (rustup target add {musl})");
        }
    }
    Ok(targets)
}

/// The target that this machine is.
fn host() -> Result<String> {
    let version = process::output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not say what it is for")?.to_owned())
}

/// Whether this machine's tools know what is built for that target.
fn is_alike(target: &str, host: &str) -> bool {
    let architecture = |triple: &str| triple.split('-').next().map(str::to_owned);
    architecture(target) == architecture(host) && target.contains("linux") == host.contains("linux")
}

fn build(target: &str) -> Result<PathBuf> {
    let mut command = cargo();
    command.args(["build", "--locked", "--profile", "dist", "--package", "godex", "--target", target]);
    process::run(&mut command)?;
    Ok(crate::root().join("target").join(target).join("dist/godex"))
}

/// A binary, with what it says of itself.
struct Made {
    /// The folder that the archive is made of.
    folder: PathBuf,
    target: String,
}

impl Made {
    fn is_small(&self) -> Result<()> {
        let bytes = fs::metadata(self.binary())?.len();
        ensure!(bytes <= LARGEST, "{} has {bytes} bytes, more than {LARGEST}", self.binary().display());
        println!("{bytes} bytes, at most {LARGEST}");
        Ok(())
    }

    fn new(binary: &Path, target: &str, strip: bool) -> Result<Self> {
        let folder = crate::root().join("target/dist/stage").join(format!("godex-{VERSION}-{target}"));
        fs::remove_dir_all(&folder).ok();
        fs::create_dir_all(folder.join("completions"))?;
        let made = Self { folder, target: target.to_owned() };
        fs::copy(binary, made.binary()).with_context(|| format!("cannot copy {}", binary.display()))?;
        if strip {
            process::run(Command::new("strip").arg(made.binary()))?;
        }
        let version = process::output(Command::new(made.binary()).arg("--version"))?;
        ensure!(version.trim() == format!("godex {VERSION}"), "it is {version}");
        process::run(Command::new(made.binary()).arg("man").arg(made.folder.join("man")))?;
        for (shell, name, _) in SHELLS {
            let script = process::output(Command::new(made.binary()).args(["completions", shell]))?;
            fs::write(made.folder.join("completions").join(name), script)?;
        }
        for paper in PAPERS {
            fs::copy(crate::root().join(paper), made.folder.join(paper)).with_context(|| paper.to_owned())?;
        }
        Ok(made)
    }

    fn binary(&self) -> PathBuf {
        self.folder.join("godex")
    }

    fn archive(&self, files: &Path) -> Result<()> {
        let name = format!("godex-{VERSION}-{}", self.target);
        let mut tar = Command::new("tar");
        tar.args(["--create", "--gzip", "--file"]).arg(files.join(format!("{name}.tar.gz")));
        process::run(tar.arg("--directory").arg(self.folder.parent().context("no folder")?).arg(name))
    }
}

/// As `sha256sum --check` reads them.
fn sums(files: &Path) -> Result<()> {
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(files)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    // macOS has another program for it.
    let program = if cfg!(target_os = "macos") { ["shasum", "-a", "256"].as_slice() } else { &["sha256sum"] };
    let (program, options) = program.split_first().context("no program")?;
    let sums = process::output(Command::new(program).args(options).args(&names).current_dir(files))?;
    fs::write(files.join("SHA256SUMS"), &sums)?;
    for name in names {
        println!("{:>10} {name}", fs::metadata(files.join(&name))?.len());
    }
    Ok(())
}
