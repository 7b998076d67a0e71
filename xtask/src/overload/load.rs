//! Clients that ask again and again, each on a connection that it keeps, and what they saw.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail, ensure};

use super::percentile;
use crate::drain::client::{Connection, start};

pub(super) struct Load {
    pub(super) address: SocketAddr,
    pub(super) clients: usize,
    /// After a refusal.
    pub(super) pause: Duration,
    /// Each client asks once in any case.
    pub(super) time: Duration,
}

/// How long answers and refusals took. Anything else is an error.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) answered: Vec<Duration>,
    pub(super) refused: Vec<Duration>,
    /// Of the answers.
    pub(super) ids: Vec<String>,
}

impl Seen {
    /// Of the answers.
    pub(super) fn percentile(&self, percent: usize) -> Result<Duration> {
        percentile(&self.answered, percent)
    }
}

impl Load {
    pub(super) fn run(&self) -> Result<Seen> {
        let until = Instant::now() + self.time;
        let mut clients = Vec::new();
        for number in 0..self.clients {
            let (address, pause) = (self.address, self.pause);
            // Not all in the same moment.
            let offset = pause * u32::try_from(number)? / u32::try_from(self.clients)?;
            clients.push(start(move || {
                thread::sleep(offset);
                ask_until(address, pause, until)
            })?);
        }
        let mut all = Seen::default();
        for client in clients {
            let Seen { answered, refused, ids } = client.join().map_err(|_panic| anyhow!("a client panicked"))??;
            all.answered.extend(answered);
            all.refused.extend(refused);
            all.ids.extend(ids);
        }
        Ok(all)
    }
}

fn ask_until(address: SocketAddr, pause: Duration, until: Instant) -> Result<Seen> {
    let (mut seen, mut connection) = (Seen::default(), Connection::new(address));
    loop {
        let began = Instant::now();
        let (head, body) = connection.send("POST", "/v1/responses", r#"{"model":"steady","input":"slow 3"}"#)?;
        match head.split(' ').nth(1) {
            Some("200") => {
                ensure!(body.contains(r#""status":"completed""#), "{body}");
                seen.answered.push(began.elapsed());
                let id = body.split(r#""id":""#).nth(1).and_then(|rest| rest.split('"').next());
                seen.ids.extend(id.map(str::to_owned));
            }
            Some("429" | "503") => {
                let wait = head.lines().find_map(|line| line.strip_prefix("retry-after: "));
                ensure!(wait.is_some_and(|wait| wait.parse::<u32>().is_ok_and(|wait| wait > 0)), "{head}{body}");
                ensure!(body.contains(r#""code":"overloaded""#), "{head}{body}");
                seen.refused.push(began.elapsed());
                thread::sleep(pause);
            }
            _ => bail!("{head}{body}"),
        }
        if Instant::now() >= until {
            return Ok(seen);
        }
    }
}

/// Whether each of these responses is there, and whole; how many.
pub(super) fn stored<'a>(address: SocketAddr, ids: impl Iterator<Item = &'a String>) -> Result<usize> {
    let (mut connection, mut count) = (Connection::new(address), 0);
    for id in ids {
        let (head, body) = connection.send("GET", &format!("/v1/responses/{id}"), "")?;
        ensure!(head.starts_with("http/1.1 200 ") && body.contains(r#""status":"completed""#), "{id}: {head}{body}");
        count += 1;
    }
    Ok(count)
}
