//! Watches a turn's deadlines with one timer: it is compared when it fires, not set anew with every chunk.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::account::Deadline;
use crate::pace::Pace;
use crate::upstream::{Deadlines, SETTLE};

#[derive(Debug)]
pub(crate) struct Watch {
    timer: Pin<Box<Sleep>>,
    deadlines: Deadlines,
    /// Silence after which a client gets a sign of life.
    heartbeat: Duration,
    /// How long the upstream may be silent now.
    silence: Duration,
    /// When the upstream was last heard.
    heard: Instant,
    /// Whether that was a piece of the answer that it gives now.
    speaks: bool,
    /// When the client was last sent something.
    spoke: Instant,
}

/// What the timer found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Alarm {
    /// The upstream is too late.
    Late(Deadline),
    /// The client has heard nothing for long.
    Heartbeat,
}

impl Watch {
    pub(crate) fn new(deadlines: Deadlines, heartbeat: Duration) -> Self {
        let now = Instant::now();
        let first = (now + heartbeat.min(deadlines.first_byte).min(deadlines.idle)).min(deadlines.until);
        let timer = Box::pin(tokio::time::sleep_until(first));
        Self { timer, deadlines, heartbeat, silence: deadlines.first_byte, heard: now, speaks: false, spoke: now }
    }

    /// An upstream answers that has these deadlines.
    pub(crate) fn answers(&mut self, deadlines: Deadlines) {
        (self.deadlines, self.silence, self.heard) = (deadlines, deadlines.first_byte, Instant::now());
        self.speaks = false;
        self.timer.as_mut().reset(self.heard);
    }

    /// Nobody is asked at the moment: only the end of the whole is a deadline.
    pub(crate) fn waits(&mut self) {
        self.silence = Duration::MAX;
    }

    /// The upstream is heard. Says when.
    pub(crate) fn heard(&mut self, pace: &Pace) -> Instant {
        let now = Instant::now();
        if std::mem::replace(&mut self.speaks, true) {
            pace.gap(now - self.heard);
        }
        self.heard = now;
        self.silence = self.deadlines.idle;
        now
    }

    pub(crate) fn spoke(&mut self) {
        self.spoke = self.heard.max(self.spoke);
    }

    /// The answer is whole; only its usage may still come.
    pub(crate) fn expect_end(&mut self) {
        if self.deadlines.idle > SETTLE {
            (self.deadlines.idle, self.silence) = (SETTLE, SETTLE);
            self.timer.as_mut().reset(Instant::now() + SETTLE);
        }
    }

    /// Waits until something is due. May be dropped and called again at any time.
    pub(crate) async fn alarm(&mut self) -> Alarm {
        loop {
            self.timer.as_mut().await;
            let (now, until) = (Instant::now(), self.deadlines.until);
            let quiet = self.heard.checked_add(self.silence).unwrap_or(until);
            if now >= quiet && quiet < until {
                return Alarm::Late(Deadline::Idle);
            }
            if now >= until {
                return Alarm::Late(Deadline::Total);
            }
            let beat = now >= self.spoke + self.heartbeat;
            if beat {
                self.spoke = now;
            }
            // The upstream may be heard and fall silent again before any of the others is due.
            let idle = now + self.deadlines.idle;
            self.timer.as_mut().reset((self.spoke + self.heartbeat).min(quiet).min(until).min(idle));
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
        Watch::new(
            Deadlines { first_byte: seconds(40), idle: seconds(20), until: Instant::now() + seconds(100) },
            seconds(15),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn heartbeats_come_while_the_upstream_is_silent_and_then_it_is_late() {
        let mut watch = watch();
        let began = Instant::now();
        assert_eq!(watch.alarm().await, Alarm::Heartbeat);
        assert_eq!(watch.alarm().await, Alarm::Heartbeat);
        assert_eq!(watch.alarm().await, Alarm::Late(Deadline::Idle));
        assert_eq!(began.elapsed().as_secs(), 40);
    }

    #[tokio::test(start_paused = true)]
    async fn a_finished_answer_is_not_waited_for_long() {
        let mut watch = watch();
        watch.heard(&Pace::default());
        watch.expect_end();
        let began = Instant::now();
        assert_eq!(watch.alarm().await, Alarm::Late(Deadline::Idle));
        assert_eq!(began.elapsed().as_secs(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_noticed_when_it_is_due_not_with_the_next_heartbeat() {
        let deadlines = Deadlines { idle: Duration::from_secs(2), ..watch().deadlines };
        let mut watch = Watch::new(deadlines, Duration::from_secs(15));
        let began = Instant::now();
        tokio::select! {
            alarm = watch.alarm() => panic!("{alarm:?}"),
            () = tokio::time::sleep(Duration::from_secs(5)) => drop(watch.heard(&Pace::default())),
        }
        assert_eq!(watch.alarm().await, Alarm::Late(Deadline::Idle));
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
                    watch.heard(&Pace::default());
                    watch.spoke();
                }
            }
        };
        assert_eq!(late, Alarm::Late(Deadline::Total));
        assert_eq!(began.elapsed().as_secs(), 100);
    }
}
