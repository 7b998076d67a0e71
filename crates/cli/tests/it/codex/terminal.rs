//! A program in a pseudo-terminal, and somebody who types.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, unlockpt};

/// No program has more of a terminal than it is given.
const FLAGS: OpenptFlags = OpenptFlags::RDWR.union(OpenptFlags::NOCTTY).union(OpenptFlags::CLOEXEC);

/// A program that says nothing for so long hangs.
const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) struct Terminal {
    keys: File,
    screen: Receiver<Vec<u8>>,
    seen: String,
    program: Child,
}

/// Whether a program can be given a terminal whose keys make signals.
pub(crate) fn can_control() -> bool {
    Path::new("/usr/bin/setsid").exists()
}

impl Terminal {
    pub(crate) fn start(command: &Command) -> Self {
        let ours = openpt(FLAGS).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let theirs = other_side(&ours);
        let mut wrapped = controlled(command);
        let clone = || theirs.try_clone().unwrap();
        let program = wrapped.stdin(clone()).stdout(clone()).stderr(clone()).spawn().unwrap();
        drop((theirs, wrapped));
        let keys = File::from(ours);
        let mut output = keys.try_clone().unwrap();
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                match output.read(&mut buffer) {
                    Ok(count @ 1..) if sender.send(buffer[..count].to_vec()).is_ok() => {}
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    // An error: nobody has the other side open any more.
                    _ => break,
                }
            }
        });
        Self { keys, screen, seen: String::new(), program }
    }

    /// Everything on the screen up to this.
    pub(crate) fn until(&mut self, expected: &str) -> String {
        while !self.seen.contains(expected) {
            match self.screen.recv_timeout(PATIENCE) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(reason) => panic!("no {expected:?} ({reason}):\n{}", self.seen),
            }
        }
        let end = self.seen.find(expected).unwrap() + expected.len();
        self.seen.drain(..end).collect()
    }

    pub(crate) fn keys(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.program), signal).unwrap();
    }

    /// The rest of the screen, and how it ended.
    pub(crate) fn end(mut self) -> (String, ExitStatus) {
        loop {
            match self.screen.recv_timeout(PATIENCE) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end:\n{}", self.seen),
            }
        }
        let status = self.program.wait().unwrap();
        (std::mem::take(&mut self.seen), status)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// The same command, with its terminal as the controlling one where that can be had: then Ctrl-C is a signal.
fn controlled(command: &Command) -> Command {
    let mut wrapped = if can_control() {
        let mut wrapped = Command::new("/usr/bin/setsid");
        wrapped.arg("--ctty").arg(command.get_program());
        wrapped
    } else {
        Command::new(command.get_program())
    };
    wrapped.args(command.get_args()).env_clear();
    wrapped.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        wrapped.current_dir(folder);
    }
    wrapped
}

#[cfg(target_os = "linux")]
fn other_side(ours: &OwnedFd) -> OwnedFd {
    rustix::pty::ioctl_tiocgptpeer(ours, FLAGS).unwrap()
}

#[cfg(not(target_os = "linux"))]
fn other_side(ours: &OwnedFd) -> OwnedFd {
    let name = rustix::pty::ptsname(ours, Vec::new()).unwrap().into_string().unwrap();
    std::fs::OpenOptions::new().read(true).write(true).open(name).unwrap().into()
}
