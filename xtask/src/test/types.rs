//! What godex sends, against the types of the official SDKs: Python's strictly, Node's by the TypeScript compiler. By
//! OpenAI's what goes to clients: every kind of event and the response object, as they are in the goldens. By Anthropic's
//! what goes to providers that speak the Messages API: the requests of the goldens, and many that a test of the kernel
//! makes up; and what the goldens say that such providers answer. It needs nothing but the package registries.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::install::{self, folder};
use super::programs::cargo;
use crate::process;

/// The compiler checks files of literals, and leaves the SDKs' own declarations alone.
const COMPILER: &[&str] = &["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--target", "es2022"];

pub(super) fn run() -> Result<()> {
    let streams = crate::root().join("target/types");
    // Empty every time: a case that is gone must not be checked.
    fs::remove_dir_all(&streams).ok();
    fs::create_dir_all(&streams)?;
    tests("goldens", &["--format", "terse"], &streams)?;
    tests("plan", &["messages::laws::sent"], &streams)?;
    // Beside the packages: the compiler looks for them above the file that imports them.
    let (responses, messages) = (folder("node").join("types.ts"), folder("node").join("messages.ts"));
    check("check.py", &[&streams, Path::new("tests/tolerated.json"), &responses])?;
    check("messages.py", &[&streams, Path::new("tests/golden"), &messages])?;
    let mut compiler = Command::new(install::node()?.node);
    compiler.arg("node_modules/typescript/bin/tsc").args(COMPILER).args([&responses, &messages]);
    process::run(compiler.current_dir(folder("node")))
}

/// Tests that write what is sent to a folder.
fn tests(target: &str, arguments: &[&str], streams: &Path) -> Result<()> {
    let mut tests = cargo();
    tests.args(["test", "--quiet", "--workspace", "--locked", "--test", target, "--"]).args(arguments);
    process::run(tests.env("GODEX_STREAMS", streams))
}

fn check(program: &str, arguments: &[&Path]) -> Result<()> {
    let mut python = Command::new(install::python());
    python.current_dir(crate::root()).arg(Path::new("tests/clients/types").join(program)).args(arguments);
    process::run(python.env("PYTHONDONTWRITEBYTECODE", "1"))
}
