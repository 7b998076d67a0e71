//! Child processes: run to the end, or kept running and ended with us, also when we fail.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Runs to the end with our stdout and stderr; an exit code other than 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot start {}", name(command)))?;
    ensure!(status.success(), "{} failed ({status})", name(command));
    Ok(())
}

/// Runs to the end and gives stdout.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot start {}", name(command)))?;
    ensure!(output.status.success(), "{} failed ({})", name(command), output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn name(command: &Command) -> String {
    let arguments = command.get_args().map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ");
    format!("`{} {arguments}`", command.get_program().to_string_lossy())
}

/// A child that runs until this value is dropped.
pub(crate) struct Running {
    child: Child,
    stdout: Option<BufReader<ChildStdout>>,
}

impl Running {
    /// Its stdout is ours to read.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let started = command.stdout(Stdio::piped()).spawn();
        let mut child = started.with_context(|| format!("cannot start {}", name(command)))?;
        let stdout = child.stdout.take().map(BufReader::new);
        Ok(Self { child, stdout })
    }

    /// Its stdout and stderr go to this file.
    pub(crate) fn start_logged(command: &mut Command, log: &Path) -> Result<Self> {
        let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let command = command.stdin(Stdio::null()).stderr(file.try_clone()?).stdout(file);
        let child = command.spawn().with_context(|| format!("cannot start {}", name(command)))?;
        Ok(Self { child, stdout: None })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The rest of the first line that begins with `prefix`.
    pub(crate) fn line_after(&mut self, prefix: &str) -> Result<String> {
        let stdout = self.stdout.as_mut().context("no stdout")?;
        let mut line = String::new();
        while stdout.read_line(&mut line)? > 0 {
            if let Some(rest) = line.trim().strip_prefix(prefix) {
                return Ok(rest.trim().to_owned());
            }
            line.clear();
        }
        bail!("the process ended without saying {prefix:?}")
    }

    /// Closes its stdin and waits for it to end.
    pub(crate) fn finish(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        ensure!(status.success(), "a child ended with {status}");
        Ok(())
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }

    /// Waits for it to end by itself.
    pub(crate) fn ended_within(mut self, patience: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(Duration::from_millis(10));
        }
        bail!("process {} does not end", self.pid())
    }

    /// Ctrl-C: what was started as a process group of its own is to end well.
    pub(crate) fn interrupt(mut self) -> Result<()> {
        kill_process_group(Pid::from_child(&self.child), Signal::INT)?;
        // It may have something to say while it ends.
        if let Some(stdout) = self.stdout.as_mut() {
            std::io::copy(stdout, &mut std::io::sink())?;
        }
        let status = self.child.wait()?;
        ensure!(status.success(), "a child ended with {status}");
        Ok(())
    }

    /// Waits until `GET /health` is answered with 200.
    pub(crate) fn until_healthy(&mut self, address: SocketAddr) -> Result<()> {
        self.until_answered(address, "/health", Duration::from_secs(20))
    }

    /// Waits until a GET of the path is answered with 200.
    pub(crate) fn until_answered(&mut self, address: SocketAddr, path: &str, patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended at once ({status})");
            }
            if answers(address, path).unwrap_or(false) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(25));
        }
        bail!("http://{address}{path} does not answer")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Whether a GET of the path is answered with 200.
pub(crate) fn answers(address: SocketAddr, path: &str) -> Result<bool> {
    Ok(get(address, path)?.starts_with("HTTP/1.1 200"))
}

/// The whole answer, as it comes.
pub(crate) fn get(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// A loopback address that was free a moment ago.
pub(crate) fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
