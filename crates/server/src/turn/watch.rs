//! Watches a turn's deadlines with one timer: it is compared when it fires, not set anew with every chunk.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::upstream::Deadlines;

/// How long a finished answer is waited for to end: some servers keep the connection open and say no `[DONE]`.
const SETTLE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Watch {
    timer: Pin<Box<Sleep>>,
    deadlines: Deadlines,
    /// Silence after which a client gets a sign of life.
    heartbeat: Duration,
    began: Instant,
    /// When the upstream was last heard; whether it ever was.
    heard: Instant,
    silent_so_far: bool,
    /// When the client was last sent something.
    spoke: Instant,
}

/// What the timer found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Alarm {
    /// The upstream is too late; with what.
    Late(&'static str),
    /// The client has heard nothing for long.
    Heartbeat,
}

impl Watch {
    pub(super) fn new(deadlines: Deadlines, heartbeat: Duration) -> Self {
        let now = Instant::now();
        let first = heartbeat.min(deadlines.first_byte).min(deadlines.idle).min(deadlines.total);
        Self {
            timer: Box::pin(tokio::time::sleep_until(now + first)),
            deadlines,
            heartbeat,
            began: now,
            heard: now,
            silent_so_far: true,
            spoke: now,
        }
    }

    pub(super) fn heard(&mut self) {
        self.heard = Instant::now();
        self.silent_so_far = false;
    }

    pub(super) fn spoke(&mut self) {
        self.spoke = self.heard.max(self.spoke);
    }

    /// The answer is whole; only its usage may still come.
    pub(super) fn settle(&mut self) {
        if self.deadlines.idle > SETTLE {
            self.deadlines.idle = SETTLE;
            self.timer.as_mut().reset(Instant::now() + SETTLE);
        }
    }

    /// Waits until something is due. May be dropped and called again at any time.
    pub(super) async fn alarm(&mut self) -> Alarm {
        loop {
            self.timer.as_mut().await;
            let now = Instant::now();
            let silence = if self.silent_so_far { self.deadlines.first_byte } else { self.deadlines.idle };
            let (quiet, whole) = (self.heard + silence, self.began + self.deadlines.total);
            if now >= quiet {
                return Alarm::Late("it fell silent");
            }
            if now >= whole {
                return Alarm::Late("the whole answer took too long");
            }
            let beat = now >= self.spoke + self.heartbeat;
            if beat {
                self.spoke = now;
            }
            // The upstream may be heard and fall silent again before any of the others is due.
            let idle = now + self.deadlines.idle;
            self.timer.as_mut().reset((self.spoke + self.heartbeat).min(quiet).min(whole).min(idle));
            if beat {
                return Alarm::Heartbeat;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> Watch {
        let seconds = Duration::from_secs;
        Watch::new(Deadlines { first_byte: seconds(40), idle: seconds(20), total: seconds(100) }, seconds(15))
    }

    #[tokio::test(start_paused = true)]
    async fn heartbeats_come_while_the_upstream_is_silent_and_then_it_is_late() {
        let mut watch = watch();
        let began = Instant::now();
        assert_eq!(watch.alarm().await, Alarm::Heartbeat);
        assert_eq!(watch.alarm().await, Alarm::Heartbeat);
        assert_eq!(watch.alarm().await, Alarm::Late("it fell silent"));
        assert_eq!(began.elapsed().as_secs(), 40);
    }

    #[tokio::test(start_paused = true)]
    async fn a_finished_answer_is_not_waited_for_long() {
        let mut watch = watch();
        watch.heard();
        watch.settle();
        let began = Instant::now();
        assert_eq!(watch.alarm().await, Alarm::Late("it fell silent"));
        assert_eq!(began.elapsed().as_secs(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_noticed_when_it_is_due_not_with_the_next_heartbeat() {
        let deadlines = Deadlines { idle: Duration::from_secs(2), ..watch().deadlines };
        let mut watch = Watch::new(deadlines, Duration::from_secs(15));
        let began = Instant::now();
        tokio::select! {
            alarm = watch.alarm() => panic!("{alarm:?}"),
            () = tokio::time::sleep(Duration::from_secs(5)) => watch.heard(),
        }
        assert_eq!(watch.alarm().await, Alarm::Late("it fell silent"));
        // At worst one more deadline later: the timer is not set anew with every chunk.
        assert!((7..=9).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn an_upstream_that_drips_for_ever_is_late_in_the_end() {
        let mut watch = watch();
        let began = Instant::now();
        let late = loop {
            tokio::select! {
                alarm = watch.alarm() => break alarm,
                () = tokio::time::sleep(Duration::from_secs(10)) => {
                    watch.heard();
                    watch.spoke();
                }
            }
        };
        assert_eq!(late, Alarm::Late("the whole answer took too long"));
        assert_eq!(began.elapsed().as_secs(), 100);
    }
}
