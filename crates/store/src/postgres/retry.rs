//! Trying again while the database is away. An attempt whose connection was lost may have worked all the same.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::Error;

/// The first wait before another try; each one is twice as long, up to a second.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Retry {
    deadline: Instant,
    pause: Duration,
    unsure: bool,
}

impl Retry {
    /// Tries for that long.
    pub(super) fn new(patience: Duration) -> Self {
        Self { deadline: Instant::now() + patience, pause: PAUSE, unsure: false }
    }

    /// Whether an earlier try may have worked.
    pub(super) const fn is_unsure(&self) -> bool {
        self.unsure
    }

    /// Whether to try once more, now that a pause is over.
    pub(super) async fn again<T>(&mut self, outcome: &Result<T, Error>) -> bool {
        let again = matches!(outcome, Err(Error::Unavailable(_))) && Instant::now() + self.pause < self.deadline;
        if again {
            self.unsure = true;
            sleep(self.pause).await;
            self.pause = (self.pause * 2).min(Duration::from_secs(1));
        }
        again
    }
}
