//! An HTTP/1.1 connection between two requests: how long the next head may take once it has begun, and when the
//! connection may end instead.
//!
//! A server that closes a connection on which a request is arriving has lost that request, and its client may not
//! send it twice. Hyper's own ways to end a connection do not look: they close one whose next request is already in
//! the kernel, or half read. So the end of an idle connection is ours, and looks at the last moment. What is on its
//! way then is beyond us; who wants none of it lost sets `server.drain_delay`, in which clients are told to leave.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use crate::delivery::{Activity, Protocol};
use crate::stop::{Phase, Stop};

/// How long a connection stays after its last answer while the server drains. That answer may have begun before the
/// end did and promise that the connection stays, and agents ask again as soon as they have read it.
const PARTING: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Pause {
    activity: Arc<Activity>,
    stop: Arc<Stop>,
    /// How long a head may take.
    head: Duration,
    /// When the first part of a head came, and after how many requests.
    head_begun: Option<(u64, Instant)>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Pause {
    pub(super) fn new(activity: Arc<Activity>, stop: Arc<Stop>, head: Duration) -> Self {
        Self { activity, stop, head, head_begun: None, timer: None }
    }

    /// Something was read.
    pub(super) fn heard(&mut self) {
        let (requests, running) = self.activity.seen();
        if !running && self.head_begun.is_none_or(|(after, _)| after != requests) {
            self.head_begun = Some((requests, Instant::now()));
        }
    }

    /// Asked whenever there was nothing to read. Ready without an error when the connection is to end as if the client
    /// had closed it.
    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>, stream: &TcpStream) -> Poll<io::Result<()>> {
        let (requests, running) = self.activity.seen();
        if running || self.activity.protocol() != Protocol::Http1 {
            return Poll::Pending;
        }
        let (idle_since, phase) = (self.activity.idle_since(), self.stop.phase());
        // What came before was the head of a request that has been answered.
        let head_begun = self.head_begun.filter(|(after, _)| *after == requests);
        let end = match head_begun {
            _ if phase == Phase::Now => idle_since,
            Some((_, begun)) => begun + self.head,
            None if self.activity.may_end_after(requests) => idle_since,
            None if phase == Phase::Draining => idle_since + PARTING,
            None => return Poll::Pending,
        };
        ready!(self.poll_timer(cx, end));
        if head_begun.is_some() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "a request's head takes too long")));
        }
        // The runtime's idea of what can be read may be older than what has arrived. It will hear of that.
        if has_arrived(stream) { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>, end: Instant) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        if timer.deadline() != end {
            timer.as_mut().reset(end);
        }
        timer.as_mut().poll(cx)
    }
}

/// Whether there is anything to read, be it the client's own end.
fn has_arrived(stream: &TcpStream) -> bool {
    let peeked = SockRef::from(stream).peek(&mut [MaybeUninit::uninit()]);
    !matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use super::*;
    use crate::delivery::Running;

    /// What an idle connection does, by how far the end has come, and whether the next request has arrived. The runtime
    /// never gets to hear of it here: it would have to turn between the write and the look.
    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_only_if_nothing_has_arrived() {
        for (phase, waited, arrived, ends) in [
            (Phase::Serving, 3600, false, false),
            (Phase::Leaving, 3600, false, false),
            (Phase::Draining, 0, false, false),
            (Phase::Draining, 2, false, true),
            (Phase::Draining, 2, true, false),
            (Phase::Now, 0, false, true),
            (Phase::Now, 0, true, false),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (stream, _) = listener.accept().unwrap();
            stream.set_nonblocking(true).unwrap();
            let stream = TcpStream::from_std(stream).unwrap();
            let (activity, stop) = (Arc::new(Activity::new()), Arc::new(Stop::new()));
            let mut pause = Pause::new(Arc::clone(&activity), Arc::clone(&stop), Duration::from_secs(10));
            drop(Running::new(&activity));
            let look = |pause: &mut Pause| {
                let mut cx = Context::from_waker(std::task::Waker::noop());
                matches!(pause.poll_end(&mut cx, &stream), Poll::Ready(Ok(())))
            };
            tokio::time::advance(Duration::from_secs(waited)).await;
            stop.begin(phase);
            if arrived {
                client.write_all(b"G").unwrap();
            }
            assert_eq!(look(&mut pause), ends, "{phase:?}, {waited} s after the last answer, arrived: {arrived}");
        }
    }
}
