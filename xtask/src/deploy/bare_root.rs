//! The package on a minimal Debian, made by debootstrap below `target/deploy` and kept: installed, its service's command
//! started as its user and ended, removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;

use super::package;
use crate::bare;
use crate::process::{self, Running, free_address, get};

/// `metrics.listen` of the package's configuration.
const METRICS: &str = "127.0.0.1:9464";

/// False: this machine cannot.
pub(super) fn run() -> Result<bool> {
    let root_user = process::output(Command::new("id").arg("-u"))?.trim() == "0";
    if !root_user || !super::works("debootstrap", &["--version"]) {
        return Ok(false);
    }
    let root = crate::root().join("target/deploy/root");
    let made = root.join("made.txt");
    if !made.exists() {
        bare::debootstrap(&root)?;
        fs::write(made, "")?;
    }
    let system = System { root };
    let package = package()?;
    let name = package.file_name().context("no name")?.to_string_lossy().into_owned();
    fs::copy(&package, system.root.join("tmp").join(&name))?;
    // What an earlier run has left.
    system.run(&["dpkg", "--purge", "godex"]).ok();
    fs::remove_dir_all(system.root.join("var/lib/godex")).ok();
    system.run(&["dpkg", "--install", &format!("/tmp/{name}")])?;
    system.installed()?;
    system.serve()?;
    system.run(&["dpkg", "--purge", "godex"])?;
    ensure!(!system.root.join("usr/bin/godex").exists(), "the binary is still there");
    ensure!(system.root.join("var/lib/godex/sessions.db").exists(), "what was stored is gone");
    println!("{name}: installed on a bare system, started and ended there as its unit says, and removed");
    Ok(true)
}

struct System {
    root: PathBuf,
}

impl System {
    /// A command in there, with mounts of its own. It is this process's child itself: what is signalled is it.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        let mount = "mount -t proc proc \"$0/proc\"; mount --rbind /dev \"$0/dev\"; exec chroot \"$0\" \"$@\"";
        command.args(["--mount", "--propagation", "private", "sh", "-ec", mount]).arg(&self.root).args(arguments);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("DEBIAN_FRONTEND", "noninteractive");
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Result<()> {
        process::run(self.command(arguments).stdout(Stdio::null()))
    }

    /// What the package has put where, and for whom.
    fn installed(&self) -> Result<()> {
        for (path, expected) in [
            ("/usr/bin/godex", "755 root root"),
            ("/usr/lib/systemd/system/godex.service", "644 root root"),
            ("/etc/godex/godex.yaml", "640 root godex"),
            ("/etc/godex", "750 root godex"),
            ("/var/lib/godex", "700 godex godex"),
            ("/usr/share/man/man1/godex.1.gz", "644 root root"),
            ("/usr/share/bash-completion/completions/godex", "644 root root"),
            ("/usr/share/doc/godex/copyright", "644 root root"),
        ] {
            let found = process::output(&mut self.command(&["stat", "--format", "%a %U %G", path]))?;
            ensure!(found.trim() == expected, "{path} is {}, not {expected}", found.trim());
        }
        let status = process::output(&mut self.command(&["dpkg-query", "--show", "--showformat=${Status}", "godex"]))?;
        ensure!(status == "install ok installed", "{status}");
        self.run(&["dpkg", "--verify", "godex"])
    }

    /// A word of a file by another; its owner and rights stay.
    fn replace(&self, path: &str, word: &str, other: &str) -> Result<()> {
        let path = self.root.join(path.trim_start_matches('/'));
        let text = fs::read_to_string(&path)?;
        ensure!(text.contains(word), "{} has no {word}", path.display());
        Ok(fs::write(&path, text.replace(word, other))?)
    }

    /// The very command of the unit, as its user, with the folder that systemd would have made.
    fn serve(&self) -> Result<()> {
        let unit = fs::read_to_string(self.root.join("usr/lib/systemd/system/godex.service"))?;
        let value = |key: &str| unit.lines().find_map(|line| line.strip_prefix(key)).map(str::to_owned);
        let line = value("ExecStart=").context("no ExecStart")?;
        let home = value("Environment=").context("no Environment")?;
        let user = value("User=").context("no User")?;
        self.run(&["install", "--directory", "--owner", &user, "--group", &user, "--mode", "0700", "/run/godex"])?;
        let (address, metrics) = (free_address()?, free_address()?);
        // Ports are this machine's, and may be taken.
        self.replace("/etc/godex/godex.yaml", METRICS, &metrics.to_string())?;
        let port = format!("GODEX_PORT={}", address.port());
        let as_user = |words: &[&str]| {
            let mut all =
                vec!["setpriv", "--reuid", &user, "--regid", &user, "--clear-groups", "--no-new-privs", "env", "-i"];
            all.extend([home.as_str(), port.as_str()]);
            all.extend(words);
            self.command(&all)
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        let log = crate::root().join("target/deploy/godex.log");
        let mut godex = Running::start_logged(&mut as_user(&words), &log)?;
        godex.until_healthy(address).with_context(|| format!("see {}", log.display()))?;
        let config = ["/usr/bin/godex", "--config", "/etc/godex/godex.yaml"];
        for more in [&["health", "--ready"][..], &["keys", "list"], &["store", "check"]] {
            process::run(as_user(&[&config[..], more].concat()).stdout(Stdio::null()))?;
        }
        ensure!(get(address, "/v1/models")?.contains("demo"), "it has no models");
        ensure!(get(metrics, "/metrics")?.contains("godex_build_info"), "nobody can scrape it");
        godex.signal(Signal::TERM)?;
        let status = godex.ended_within(Duration::from_secs(40))?;
        ensure!(status.success(), "it ended with {status}; see {}", log.display());
        no_socket(&self.root)
    }
}

fn no_socket(root: &Path) -> Result<()> {
    ensure!(!root.join("run/godex/admin.sock").exists(), "its socket is still there");
    Ok(())
}
