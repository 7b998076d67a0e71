//! Lines on their way to one place: a bounded queue, and a thread that writes what waits in it. Whoever logs never waits.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use server::LOST_LOG_LINES;

/// Lines that may wait for whoever reads them. More are lost.
const WAITING: usize = 2048;

/// So much is written in one go, and then nothing for so long.
const TOGETHER: usize = 64 * 1024;
const REST: Duration = Duration::from_millis(2);

/// Lines that were taken, for all places together, and neither written nor lost yet.
static UNWRITTEN: AtomicU64 = AtomicU64::new(0);

pub(super) struct Queue(SyncSender<Box<[u8]>>);

impl Queue {
    /// None where the system gives no thread.
    pub(super) fn start(place: impl Write + Send + 'static) -> Option<Self> {
        let (lines, written) = sync_channel(WAITING);
        thread::Builder::new().name("log".to_owned()).spawn(move || write(&written, place)).ok()?;
        Some(Self(lines))
    }

    pub(super) fn line(&self) -> Line {
        Line(self.0.clone())
    }
}

/// Gives what waits a moment to be written: the process ends.
pub(crate) fn finish() {
    for _ in 0..100 {
        if UNWRITTEN.load(Ordering::Acquire) == 0 {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Writes what is there in one go, and then rests: under load, a thread that is woken for every line, and writes every
/// line by itself, costs more than all else that a line costs.
fn write(lines: &Receiver<Box<[u8]>>, mut place: impl Write) {
    let mut text = Vec::new();
    while let Ok(line) = lines.recv() {
        text.clear();
        text.extend_from_slice(&line);
        let mut count = 1;
        while text.len() < TOGETHER
            && let Ok(line) = lines.try_recv()
        {
            text.extend_from_slice(&line);
            count += 1;
        }
        if place.write_all(&text).is_err() {
            LOST_LOG_LINES.fetch_add(count, Ordering::Relaxed);
        }
        UNWRITTEN.fetch_sub(count, Ordering::Release);
        // With more waiting there is no rest.
        if text.len() < TOGETHER {
            thread::sleep(REST);
        }
    }
}

/// One line of the log: on its way to be written, or counted as lost.
pub(super) struct Line(SyncSender<Box<[u8]>>);

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        UNWRITTEN.fetch_add(1, Ordering::Relaxed);
        if self.0.try_send(line.into()).is_err() {
            UNWRITTEN.fetch_sub(1, Ordering::Relaxed);
            LOST_LOG_LINES.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
