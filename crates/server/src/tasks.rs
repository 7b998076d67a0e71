//! The one place that starts tasks. Whatever somebody waits for is counted, and the end of the server waits until the
//! count is zero; a task that only serves others ends with them.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The tasks of one server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks(Arc<Running>);

#[derive(Debug, Default)]
struct Running {
    count: AtomicUsize,
    none_left: Notify,
}

impl Tasks {
    /// Starts a task that the end of the server waits for.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let counted = Counted::new(&self.0);
        start(async move {
            task.await;
            drop(counted);
        });
    }

    /// Ready when none of them runs.
    pub(crate) async fn ended(&self) {
        loop {
            // Made before the look: what ends in between is not missed.
            let none_left = self.0.none_left.notified();
            if self.0.count.load(Ordering::Acquire) == 0 {
                return;
            }
            none_left.await;
        }
    }
}

/// Starts a task that serves others (a connection that many requests share) and ends when they are gone.
pub(crate) fn spawn_service(task: impl Future<Output = ()> + Send + 'static) {
    start(task);
}

#[expect(clippy::disallowed_methods, reason = "this is the one place")]
fn start(task: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(task);
}

/// One task, until it has ended, has panicked, or was dropped.
struct Counted(Arc<Running>);

impl Counted {
    fn new(running: &Arc<Running>) -> Self {
        running.count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(running))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::Release) == 1 {
            self.0.none_left.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_end_waits_for_every_task_and_for_one_that_panics() {
        let tasks = Tasks::default();
        tasks.ended().await;
        for seconds in 1..=3 {
            tasks.spawn(tokio::time::sleep(Duration::from_secs(seconds)));
        }
        tasks.spawn(async { panic!("on purpose") });
        let began = tokio::time::Instant::now();
        tasks.ended().await;
        assert_eq!(began.elapsed().as_secs(), 3);
    }
}
