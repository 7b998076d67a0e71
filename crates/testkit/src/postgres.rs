//! A Postgres of the test's own: made, started, stopped and thrown away by the test.
#![expect(clippy::unwrap_used, clippy::panic, reason = "what it cannot do ends the test, or is said aloud")]

use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// The server; dropping it stops it and takes its data along.
#[derive(Debug)]
pub struct Postgres {
    programs: PathBuf,
    folder: tempfile::TempDir,
    port: u16,
    process: Option<Child>,
    /// Postgres refuses to run as root; then it runs as this one.
    user: Option<(u32, u32)>,
}

impl Postgres {
    /// `None`, and the test is reported as skipped, where Postgres is not installed.
    ///
    /// # Panics
    /// Where it is installed and does not start.
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            crate::skipped("postgresql (no initdb on the path or below /usr/lib/postgresql)");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let user = (number("id", &["-u"]) == Some(0)).then(|| {
            let name = ["postgres", "nobody"].into_iter().find(|name| number("id", &["-u", name]).is_some()).unwrap();
            (number("id", &["-u", name]).unwrap(), number("id", &["-g", name]).unwrap())
        });
        if let Some((uid, gid)) = user {
            chown(folder.path(), Some(uid), Some(gid)).unwrap();
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Self { programs, folder, port, process: None, user };
        let options = ["-U", "godex", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C", "-D"];
        let made = server.command("initdb").args(options).arg(server.data()).stdout(Stdio::null()).status().unwrap();
        assert!(made.success(), "initdb: {made}");
        server.up();
        Some(server)
    }

    pub fn url(&self) -> String {
        format!("postgres://godex@127.0.0.1:{}/postgres?sslmode=disable", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts the server and waits until it takes connections.
    ///
    /// # Panics
    /// When it does not come.
    pub fn up(&mut self) {
        let port = self.port.to_string();
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data()).args(["-p", &port, "-c", "listen_addresses=127.0.0.1"]);
        command.args(["-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "log_min_messages=fatal"]);
        self.process = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        for _ in 0..400 {
            let mut ready = Command::new(self.programs.join("pg_isready"));
            let ready = ready.args(["-q", "-h", "127.0.0.1", "-p", &port]).status();
            if ready.is_ok_and(|status| status.success()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        panic!("Postgres does not listen");
    }

    /// As after a crash: no goodbye to anybody, recovery at the next start.
    pub fn crash(&mut self) {
        self.stop(Signal::QUIT);
    }

    fn stop(&mut self, signal: Signal) {
        if let Some(mut process) = self.process.take() {
            // It may be gone already.
            let _ = kill_process(Pid::from_child(&process), signal);
            let _ = process.wait();
        }
    }

    /// A program of Postgres's as the right user, which dies with the test.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        if let Some((uid, gid)) = self.user {
            command.args(["--reuid", &uid.to_string(), "--regid", &gid.to_string(), "--clear-groups"]);
        }
        command.args(["--pdeathsig", "QUIT", "--"]).arg(self.programs.join(program)).current_dir(self.folder.path());
        command
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop(Signal::INT);
    }
}

fn programs() -> Option<PathBuf> {
    let on_path =
        std::env::var_os("PATH").into_iter().flat_map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let installed = versions.map(|version| version.path().join("bin"));
    let has = |folder: &Path| folder.join("initdb").exists() && folder.join("postgres").exists();
    on_path.chain(installed).find(|folder| has(folder)).map(|folder| {
        // A link to initdb does not find the rest of the installation beside it; where it points to does.
        let real = folder.join("initdb").canonicalize().unwrap();
        real.parent().unwrap().to_owned()
    })
}

fn number(program: &str, arguments: &[&str]) -> Option<u32> {
    let output = Command::new(program).args(arguments).stderr(Stdio::null()).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
