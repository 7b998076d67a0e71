//! What godex sends in the goldens, against the types of the official SDKs: Python's models strictly, Node's by the
//! TypeScript compiler, every kind of event and the response object. It needs nothing but the package registries.

use std::fs;
use std::process::Command;

use anyhow::Result;

use super::install::{self, folder};
use super::programs::cargo;
use crate::process;

/// The compiler checks one file of literals, and leaves the SDK's own declarations alone.
const COMPILER: &[&str] = &["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--target", "es2022"];

pub(super) fn run() -> Result<()> {
    let streams = crate::root().join("target/types");
    // Empty every time: a case that is gone must not be checked.
    fs::remove_dir_all(&streams).ok();
    fs::create_dir_all(&streams)?;
    let mut goldens = cargo();
    goldens.args(["test", "--quiet", "--workspace", "--locked", "--test", "goldens", "--", "--format", "terse"]);
    process::run(goldens.env("GODEX_STREAMS", &streams))?;
    // Beside the packages: the compiler looks for them above the file that imports them.
    let literals = folder("node").join("types.ts");
    let mut python = Command::new(install::python());
    python.current_dir(crate::root()).arg("tests/clients/types/check.py").arg(&streams);
    process::run(python.arg("tests/tolerated.json").arg(&literals).env("PYTHONDONTWRITEBYTECODE", "1"))?;
    let mut compiler = Command::new(install::node()?.node);
    compiler.arg("node_modules/typescript/bin/tsc").args(COMPILER).arg(&literals);
    process::run(compiler.current_dir(folder("node")))
}
