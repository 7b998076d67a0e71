//! What the machine that we are on knows and a bare one must be told: where packages come from, and where Rust is.
//! Read when it is needed: none of it is written down in this repository.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::copy_over;

pub(super) struct Host {
    pub(super) rustup: PathBuf,
    pub(super) cargo: PathBuf,
    pub(super) environment: BTreeMap<OsString, OsString>,
}

/// Files about registries, their certificates and names.
const FILES: &[&str] = &[
    "/etc/apt/sources.list",
    "/etc/apt/sources.list.d",
    "/etc/apt/auth.conf.d",
    "/etc/apt/keyrings",
    "/etc/apt/trusted.gpg.d",
    "/etc/hosts",
    "/etc/npmrc",
    "/etc/pip.conf",
    "/etc/resolv.conf",
    "/etc/ssl/certs",
    "/usr/local/share/ca-certificates",
];

/// The same in the home.
const HOME_FILES: &[&str] = &[".config/pip", ".npmrc", ".pip"];

/// Settings about registries: the beginnings of their names, in capitals.
const SETTINGS: &[&str] = &[
    "CARGO_HTTP_",
    "CARGO_NET_",
    "CARGO_REGISTRIES_",
    "CARGO_SOURCE_",
    "CURL_CA_BUNDLE",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "NPM_CONFIG_",
    "PIP_",
    "REQUESTS_CA_BUNDLE",
    "RUSTUP_TOOLCHAIN",
    "SSL_CERT_",
];

impl Host {
    pub(super) fn look() -> Result<Self> {
        let wanted = |name: &OsString| {
            let name = name.to_string_lossy().to_uppercase();
            SETTINGS.iter().any(|setting| name.starts_with(setting))
        };
        let environment = std::env::vars_os().filter(|(name, _)| wanted(name)).collect();
        Ok(Self { rustup: home("RUSTUP_HOME", ".rustup")?, cargo: home("CARGO_HOME", ".cargo")?, environment })
    }

    /// What the tests know of the published API, where somebody has put it beside the checkout.
    pub(super) fn shared() -> PathBuf {
        crate::root().join("../shared")
    }

    /// Tells the system below this folder.
    pub(super) fn configure(root: &Path) -> Result<()> {
        for path in FILES {
            copy_over(Path::new(path), root)?;
        }
        let home = std::env::home_dir().context("no home")?;
        for path in HOME_FILES {
            let path = home.join(path);
            if path.exists() {
                let target = root.join("root").join(path.strip_prefix(&home)?);
                super::copy_as(&path, &target)?;
            }
        }
        let settings = crate::process::output(std::process::Command::new("apt-config").args(["dump", "Acquire"]))?;
        fs::write(root.join("etc/apt/apt.conf.d/90host"), settings)?;
        Ok(())
    }
}

/// The release's name, such as `bookworm`.
pub(super) fn suite() -> Result<String> {
    let release = fs::read_to_string("/etc/os-release")?;
    let suite = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    Ok(suite.context("this system does not say which release it is")?.trim_matches('"').to_owned())
}

/// Where its packages are: the first place that apt knows.
pub(super) fn mirror() -> Result<String> {
    let folder = fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten().map(|entry| entry.path());
    let is_list =
        |path: &PathBuf| path.extension().is_some_and(|extension| extension == "list" || extension == "sources");
    let mut files: Vec<PathBuf> = folder.filter(is_list).collect();
    files.sort();
    files.insert(0, "/etc/apt/sources.list".into());
    let texts = files.iter().filter_map(|path| fs::read_to_string(path).ok());
    let found = texts.flat_map(|text| text.lines().filter_map(address).collect::<Vec<_>>()).next();
    found.context("apt has no source")
}

/// Of `deb [options] URL suite …` or `URIs: URL`.
fn address(line: &str) -> Option<String> {
    let line = line.trim();
    let rest = line.strip_prefix("URIs:").or_else(|| line.strip_prefix("deb "))?;
    rest.split_whitespace().find(|word| word.contains("://")).map(str::to_owned)
}

fn home(variable: &str, name: &str) -> Result<PathBuf> {
    let folder = std::env::var_os(variable).map(PathBuf::from);
    let folder = folder.or_else(|| Some(std::env::home_dir()?.join(name)));
    folder.filter(|folder| folder.is_dir()).with_context(|| format!("no {variable}: Rust is to be installed by rustup"))
}
