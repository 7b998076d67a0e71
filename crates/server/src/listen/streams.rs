//! The tasks of HTTP/2 streams.
//!
//! A client of HTTP/2 may read its connection and yet take nothing of one stream. Then the socket shows no stall,
//! and hyper does not poll the stream's body. Each stream runs in a task of its own: there the body notes that it
//! has handed a frame over, and the task ends the stream when it is not asked for another in time.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;

use crate::delivery::Pace;
use crate::stop::Stop;
use crate::tasks::Tasks;

/// Starts the tasks of HTTP/2 streams.
#[derive(Debug, Clone)]
pub(super) struct Streams {
    pub(super) stop: Arc<Stop>,
    pub(super) tasks: Tasks,
    pub(super) stall: Duration,
}

impl<F> hyper::rt::Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, stream: F) {
        let (mut stopping, stall) = (self.stop.subscribe(), self.stall);
        let pace = Arc::new(Pace::default());
        let watched = Arc::clone(&pace);
        let task = async move {
            let mut stream = std::pin::pin!(stream);
            let mut patience = Patience { pace: watched, stall, seen: 0, timer: None };
            loop {
                tokio::select! {
                    biased;
                    _ = stream.as_mut() => return,
                    () = poll_fn(|cx| patience.poll(cx)) => {
                        tracing::info!("a client took nothing of its stream for too long");
                        return;
                    }
                    // What runs here looks once more whether it must end.
                    Ok(()) = stopping.changed() => {}
                }
            }
        };
        self.tasks.spawn(pace.scope(task));
    }
}

/// Ready when the client has not taken a frame for too long.
struct Patience {
    pace: Arc<Pace>,
    stall: Duration,
    /// The step for which the timer runs.
    seen: u32,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Patience {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(step) = self.pace.waiting() else {
            self.timer = None;
            return Poll::Pending;
        };
        if self.timer.is_none() || self.seen != step {
            self.seen = step;
            self.timer = Some(Box::pin(tokio::time::sleep(self.stall)));
        }
        self.timer.as_mut().map_or(Poll::Pending, |timer| timer.as_mut().poll(cx))
    }
}
