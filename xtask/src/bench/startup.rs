//! How long a command takes, and a server until it answers: the median of several starts. What the disk adds on the first
//! of them is another machine's business.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, net, thread};

use anyhow::{Context, Result, ensure};

use super::cases::Row;
use crate::process;

const STARTS: usize = 15;

pub(super) fn measure(binary: &Path) -> Result<Vec<Row>> {
    let folder = crate::root().join("target/bench/start");
    fs::create_dir_all(&folder)?;
    let mut rows = Vec::new();
    for (label, start) in [("godex --version", version as Start), ("ready to serve", ready)] {
        let mut times = (0..STARTS).map(|_| start(binary, &folder)).collect::<Result<Vec<Duration>>>()?;
        times.sort();
        let milliseconds = times[times.len() / 2].as_secs_f64() * 1000.0;
        rows.push(Row { label: label.to_owned(), unit: "ms", values: [None, None, Some(milliseconds)] });
    }
    Ok(rows)
}

type Start = fn(&Path, &Path) -> Result<Duration>;

fn version(binary: &Path, folder: &Path) -> Result<Duration> {
    let started = Instant::now();
    let status = Command::new(binary).arg("--version").env("HOME", folder).stdout(Stdio::null()).status()?;
    ensure!(status.success(), "godex --version failed");
    Ok(started.elapsed())
}

/// On a fresh folder, with the built-in model and a database of its own.
fn ready(binary: &Path, folder: &Path) -> Result<Duration> {
    let _ = fs::remove_dir_all(folder.join(".godex"));
    let address = process::free_address()?;
    let started = Instant::now();
    let mut server = Command::new(binary)
        .args(["serve", "--port", &address.port().to_string()])
        .env_clear()
        .env("HOME", folder)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    while net::TcpStream::connect(address).is_err() {
        let waited = started.elapsed();
        if waited > Duration::from_secs(10) || server.try_wait()?.is_some() {
            server.kill().ok();
            server.wait().ok();
            return Err(anyhow::anyhow!("it does not listen")).context("godex serve");
        }
        thread::sleep(Duration::from_micros(200));
    }
    let ready = started.elapsed();
    server.kill()?;
    server.wait()?;
    Ok(ready)
}
