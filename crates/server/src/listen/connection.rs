//! One connection's life: its first request must come in time, it may not idle for ever, and it ends with the server.

use std::fmt::Display;
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use hyper_util::server::graceful::GracefulConnection;

use crate::delivery::{Activity, Protocol};
use crate::stop::Stop;

/// How long a connection may be without a request: at its beginning, and later.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) first: Duration,
    pub(super) idle: Option<Duration>,
}

/// Drives a connection to its end. Hyper's own deadline for a request's head begins only when it knows which
/// protocol the client speaks, and a client that says nothing would hold its slot.
pub(super) async fn drive(
    mut connection: Pin<Box<impl GracefulConnection<Error: Display>>>,
    activity: &Activity,
    patience: Patience,
    stop: &Stop,
) -> Result<(), String> {
    let mut stopping = stop.subscribe();
    let (mut seen, mut ending, mut sent_away) = (0, false, false);
    let mut look = Some(Box::pin(tokio::time::sleep(patience.first)));
    loop {
        let run = poll_fn(|cx| {
            let ended = connection.as_mut().poll(cx);
            let leave = ending || stop.has_begun();
            if ended.is_ready() || !leave {
                return ended;
            }
            match activity.protocol() {
                // HTTP/2 has words for it, so no request is lost.
                Protocol::Http2 if !sent_away => {
                    sent_away = true;
                    connection.as_mut().graceful_shutdown();
                }
                // Its end is a matter of reading, see `pause`, and hyper does not always try to after an answer.
                Protocol::Http1 if !activity.seen().1 => {}
                _ => return ended,
            }
            connection.as_mut().poll(cx)
        });
        tokio::select! {
            ended = run => return ended.map_err(|error| error.to_string()),
            // What runs here looks once more whether it must end.
            Ok(()) = stopping.changed() => {}
            () = due(&mut look) => {
                let (requests, running) = activity.seen();
                let idle = requests == seen && !running;
                if requests == 0 || (idle && ending) {
                    return Err("no request came in time".to_owned());
                }
                ending = idle;
                if idle {
                    activity.end_after(requests);
                }
                seen = requests;
                look = patience.idle.map(|idle| Box::pin(tokio::time::sleep(idle)));
            }
        }
    }
}

async fn due(look: &mut Option<Pin<Box<tokio::time::Sleep>>>) {
    match look {
        Some(timer) => timer.as_mut().await,
        None => std::future::pending().await,
    }
}
