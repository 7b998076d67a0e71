//! A package for Debian and its kin, made by `dpkg-deb`: the binary, its service, a configuration to begin with.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Made, SHELLS, VERSION};
use crate::process;

const UNIT: &str = "usr/lib/systemd/system/godex.service";
const CONFIG: &str = "etc/godex/godex.yaml";
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Debian's name of an architecture; None where there are no such packages, or the binary needs none.
pub(super) fn architecture(target: &str) -> Option<&'static str> {
    match target {
        "x86_64-unknown-linux-gnu" => Some("amd64"),
        "aarch64-unknown-linux-gnu" => Some("arm64"),
        _ => None,
    }
}

pub(super) fn build(made: &Made, architecture: &str, files: &Path) -> Result<()> {
    let root = crate::root().join("target/dist/stage/deb");
    fs::remove_dir_all(&root).ok();
    let put = |source: &Path, name: &str, mode: u32| -> Result<()> {
        let path = root.join(name);
        fs::create_dir_all(path.parent().context("no folder")?)?;
        fs::copy(source, &path).with_context(|| format!("cannot copy {}", source.display()))?;
        chmod(&path, mode)
    };
    let ours = |name: &str| crate::root().join("deploy").join(name);
    put(&made.binary(), "usr/bin/godex", 0o755)?;
    put(&ours("systemd/godex.service"), UNIT, 0o644)?;
    put(&ours("systemd/godex.yaml"), CONFIG, 0o640)?;
    for (_, name, place) in SHELLS {
        put(&made.folder.join("completions").join(name), place, 0o644)?;
    }
    for page in fs::read_dir(made.folder.join("man"))? {
        let page = page?;
        let place = format!("usr/share/man/man1/{}", page.file_name().to_string_lossy());
        put(&page.path(), &place, 0o644)?;
        gzip(&root.join(place))?;
    }
    let docs = "usr/share/doc/godex";
    put(&made.folder.join("CHANGELOG.md"), &format!("{docs}/changelog"), 0o644)?;
    gzip(&root.join(docs).join("changelog"))?;
    put(&made.folder.join("LICENSE"), &format!("{docs}/copyright"), 0o644)?;
    put(&made.folder.join("README.md"), &format!("{docs}/README.md"), 0o644)?;
    for script in SCRIPTS {
        put(&ours("debian").join(script), &format!("DEBIAN/{script}"), 0o755)?;
    }
    fs::write(root.join("DEBIAN/conffiles"), format!("/{CONFIG}\n"))?;
    fs::write(root.join("DEBIAN/control"), control(&fs::read(made.binary())?, architecture, kilobytes(&root)?))?;
    let package = files.join(format!("godex_{VERSION}-1_{architecture}.deb"));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zxz", "--build"]).arg(&root).arg(&package);
    process::run(&mut build)
}

fn control(binary: &[u8], architecture: &str, kilobytes: u64) -> String {
    let mut text = format!("Package: godex\nVersion: {VERSION}-1\nArchitecture: {architecture}\n");
    text.push_str("Maintainer: the authors of godex <godex@localhost>\nSection: net\nPriority: optional\n");
    // Writing to a String cannot fail.
    let _ = writeln!(text, "Installed-Size: {kilobytes}\nDepends: libc6 (>= {}), libgcc-s1, passwd", glibc(binary));
    text.push_str("Recommends: ca-certificates\n");
    text.push_str("Description: OpenAI's Responses API in front of Chat Completions providers\n");
    text.push_str(" A server that answers the Responses API and asks any provider of Chat Completions,\n");
    text.push_str(" with stored sessions, tools that it runs, keys and budgets.\n");
    text
}

/// The newest version of the C library that it asks for.
fn glibc(binary: &[u8]) -> String {
    let mut newest = (2, 17);
    let mark = b"GLIBC_2.";
    for at in 0..binary.len().saturating_sub(mark.len()) {
        if binary[at..].starts_with(mark) {
            let digits = binary[at + mark.len()..].iter().take_while(|byte| byte.is_ascii_digit());
            let minor: String = digits.map(|byte| char::from(*byte)).collect();
            newest = newest.max((2, minor.parse().unwrap_or(0)));
        }
    }
    format!("{}.{}", newest.0, newest.1)
}

fn gzip(path: &Path) -> Result<()> {
    process::run(Command::new("gzip").args(["--best", "--no-name", "--force"]).arg(path))
}

fn kilobytes(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        sum += if metadata.is_dir() { kilobytes(&entry.path())? } else { metadata.len().div_ceil(1024) };
    }
    Ok(sum)
}

fn chmod(path: &Path, mode: u32) -> Result<()> {
    process::run(Command::new("chmod").arg(format!("{mode:o}")).arg(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_that_is_asked_for_counts() {
        assert_eq!(glibc(b"GLIBC_2.9\0GLIBC_2.34\0GLIBC_2.28GLIBC_2."), "2.34");
        assert_eq!(glibc(b"GLIBC_2.2.5"), "2.17");
        assert!(control(b"", "amd64", 7).contains("\nInstalled-Size: 7\nDepends: libc6 (>= 2.17),"));
    }
}
