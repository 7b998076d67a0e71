//! One connection's life: its first request must come in time, it may not idle for ever, and it ends with the server.

use std::fmt::Display;
use std::pin::Pin;
use std::time::Duration;

use hyper_util::server::graceful::GracefulConnection;
use tokio::sync::watch;

use crate::delivery::Activity;
use crate::stop::Phase;

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
    mut stopping: watch::Receiver<Phase>,
) -> Result<(), String> {
    let (mut seen, mut ending) = (0, false);
    let mut look = Some(Box::pin(tokio::time::sleep(patience.first)));
    loop {
        tokio::select! {
            ended = connection.as_mut() => return ended.map_err(|error| error.to_string()),
            Ok(()) = stopping.changed() => connection.as_mut().graceful_shutdown(),
            () = due(&mut look) => {
                let (requests, running) = activity.seen();
                if requests == 0 || ending {
                    return Err("no request came in time".to_owned());
                }
                if requests == seen && !running {
                    ending = true;
                    connection.as_mut().graceful_shutdown();
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
