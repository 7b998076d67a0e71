//! A pgbouncer of the test's own, which lends a connection for one transaction only.
#![expect(clippy::unwrap_used, clippy::panic, reason = "what it cannot do ends the test, or is said aloud")]

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The pooler; dropping it stops it.
#[derive(Debug)]
pub struct Pooler {
    process: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Pooler {
    /// In front of the Postgres on this port. `None`, and the test is reported as skipped, where it is not installed.
    ///
    /// # Panics
    /// Where it is installed and does not start.
    pub fn start(postgres: u16) -> Option<Self> {
        let program = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].into_iter().find(|path| Path::new(path).exists());
        let Some(program) = program else {
            crate::skipped("pgbouncer");
            return None;
        };
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        // Whoever asks is the one user, and what a transaction leaves on its connection is gone after it.
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={postgres} user=godex\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
             pool_mode = transaction\ndefault_pool_size = 3\nserver_reset_query = DISCARD ALL\n\
             server_reset_query_always = 1\n"
        );
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pgbouncer.ini");
        std::fs::write(&file, settings).unwrap();
        let mut command = Command::new("setpriv");
        if Command::new("id").arg("-u").output().unwrap().stdout == b"0\n" {
            // It refuses to run as root.
            std::os::unix::fs::chown(folder.path(), Some(65_534), Some(65_534)).unwrap();
            command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        }
        command.args(["--pdeathsig", "KILL", "--", program]).arg(&file);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let pooler = Self { process, port, _folder: folder };
        for _ in 0..400 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(pooler);
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        panic!("pgbouncer does not listen");
    }

    pub fn url(&self) -> String {
        format!("postgres://godex@127.0.0.1:{}/postgres?sslmode=disable", self.port)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
