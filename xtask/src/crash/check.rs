//! After a restart: what must be there is, as it was; what must not be is not.

use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use super::background::says;
use super::book::{Book, Conversation, Fate, Response};
use super::http::Http;

const THREADS: usize = 8;

/// So soon after a start nothing is queued or in progress that was before.
const SETTLED: Duration = Duration::from_secs(10);

/// What was found wrong, by kind.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) checked: usize,
    pub(super) lost: Vec<String>,
    pub(super) resurrected: Vec<String>,
    pub(super) other: Vec<String>,
}

impl Findings {
    pub(super) fn add(&mut self, other: Self) {
        self.checked += other.checked;
        self.lost.extend(other.lost);
        self.resurrected.extend(other.resurrected);
        self.other.extend(other.other);
    }

    pub(super) fn none(&self) -> bool {
        self.lost.is_empty() && self.resurrected.is_empty() && self.other.is_empty()
    }
}

/// Looks at these responses and conversations. What was not known is known afterwards, and must stay so.
pub(super) fn check(book: &mut Book, ids: &[String], address: SocketAddr) -> Result<Findings> {
    let mut responses: Vec<(&String, &mut Response)> = Vec::new();
    let mut conversations: Vec<(&String, &mut Conversation)> = Vec::new();
    responses.extend(book.responses.iter_mut().filter(|(id, _)| ids.binary_search(id).is_ok()));
    conversations.extend(book.conversations.iter_mut().filter(|(id, _)| ids.binary_search(id).is_ok()));
    let mut findings = in_parallel(responses, address, response)?;
    findings.add(in_parallel(conversations, address, conversation)?);
    Ok(findings)
}

fn in_parallel<T: Send>(
    mut all: Vec<T>,
    address: SocketAddr,
    look: fn(&mut Http, &mut T, &mut Findings) -> Result<()>,
) -> Result<Findings> {
    let share = all.len().div_ceil(THREADS).max(1);
    let found: Result<Vec<Findings>> = thread::scope(|scope| {
        let threads: Vec<_> = all
            .chunks_mut(share)
            .map(|share| {
                scope.spawn(move || {
                    let (mut http, mut findings) = (Http::connect(address)?, Findings::default());
                    share.iter_mut().try_for_each(|one| look(&mut http, one, &mut findings))?;
                    findings.checked = share.len();
                    Ok(findings)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_panic| anyhow!("a check panicked"))?).collect()
    });
    let mut all = Findings::default();
    found?.into_iter().for_each(|findings| all.add(findings));
    Ok(all)
}

fn response(http: &mut Http, (id, known): &mut (&String, &mut Response), findings: &mut Findings) -> Result<()> {
    let found = http.get(&format!("/v1/responses/{id}"))?;
    match (found.status, known.fate) {
        (404, Fate::Live | Fate::UnderWay) => findings.lost.push(format!("{id}, acknowledged, is not found")),
        (404, Fate::Perhaps | Fate::Gone) => {
            known.fate = Fate::Gone;
            let request = json!({"model": "demo", "input": "echo no", "previous_response_id": id});
            let continued = http.post("/v1/responses", &request)?;
            if continued.body["error"]["code"] != json!("previous_response_not_found") {
                findings.resurrected.push(format!("{id}, deleted, is continued: {}", continued.body));
            }
        }
        (200, Fate::Gone) => findings.resurrected.push(format!("{id}, deleted, is back")),
        (200, Fate::Live | Fate::UnderWay | Fate::Perhaps) => {
            if known.fate == Fate::UnderWay {
                findings.other.extend(wrong_end(known, &found.body));
                // From here on it is what it is.
                known.object = found.body.clone();
            }
            known.fate = Fate::Live;
            if found.body != known.object {
                findings.other.push(format!("{id} is {} instead of {}", found.body, known.object));
            }
            let items = http.get(&format!("/v1/responses/{id}/input_items?limit=100&order=asc"))?;
            let texts = texts(&items.body);
            if texts != known.given {
                findings.lost.push(format!("{id} was given {:?}, and shows {texts:?}", known.given));
            }
        }
        (status, _) => findings.other.push(format!("{id}: {status} {}", found.body)),
    }
    Ok(())
}

/// What is wrong with the end of a background response of which nobody saw one.
fn wrong_end(known: &Response, found: &Value) -> Option<String> {
    let right = match found["status"].as_str() {
        Some("completed") => says(found, &known.answer),
        Some("failed") => found["error"]["code"] == json!("server_restarted"),
        Some("cancelled") => known.cancelling,
        _ => false,
    };
    (!right).then(|| format!("in the background, it became {found}"))
}

fn conversation(
    http: &mut Http,
    (id, known): &mut (&String, &mut Conversation),
    findings: &mut Findings,
) -> Result<()> {
    let found = http.get(&format!("/v1/conversations/{id}/items?limit=100&order=asc"))?;
    match (found.status, known.fate) {
        (404, Fate::Live | Fate::UnderWay) => findings.lost.push(format!("{id}, acknowledged, is not found")),
        (404, Fate::Perhaps | Fate::Gone) => known.fate = Fate::Gone,
        (200, Fate::Gone) => findings.resurrected.push(format!("{id}, deleted, is back")),
        (200, Fate::Live | Fate::UnderWay | Fate::Perhaps) => {
            known.fate = Fate::Live;
            let texts = texts(&found.body);
            let perhaps = std::mem::take(&mut known.perhaps);
            if texts != known.texts && texts != [known.texts.clone(), perhaps.concat()].concat() {
                findings.lost.push(format!("{id} has {texts:?} instead of {:?}, perhaps {perhaps:?}", known.texts));
            }
            known.texts = texts;
            // A turn that was cut off locks nobody out.
            if !perhaps.is_empty() {
                let turn =
                    http.post("/v1/responses", &json!({"model": "demo", "input": "echo on", "conversation": id}))?;
                if turn.status == 200 {
                    known.texts.extend(["echo on".to_owned(), "on".to_owned()]);
                } else {
                    findings.other.push(format!("{id} does not go on: {}", turn.body));
                }
            }
        }
        (status, _) => findings.other.push(format!("{id}: {status} {}", found.body)),
    }
    Ok(())
}

/// The texts of a list of messages.
fn texts(list: &Value) -> Vec<String> {
    let mut texts = Vec::new();
    for item in list["data"].as_array().into_iter().flatten() {
        match &item["content"] {
            Value::String(text) => texts.push(text.clone()),
            parts => {
                let parts = parts.as_array().into_iter().flatten();
                texts.extend(parts.filter_map(|part| part["text"].as_str()).map(str::to_owned));
            }
        }
    }
    texts
}

/// Looks over the file that a killed process left, in a copy: opening it would mend it.
pub(super) fn file(database: &Path, scratch: &Path) -> Result<Option<String>> {
    std::fs::create_dir_all(scratch)?;
    let copy = scratch.join("sessions.db");
    for ending in ["", "-wal"] {
        let (from, to) = (with_ending(database, ending), with_ending(&copy, ending));
        if from.exists() {
            std::fs::copy(&from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
        } else {
            std::fs::remove_file(to).ok();
        }
    }
    std::fs::remove_file(with_ending(&copy, "-shm")).ok();
    let connection = Connection::open(&copy)?;
    let finding: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    Ok((finding != "ok").then(|| format!("the file is damaged: {finding}")))
}

/// Waits until everything that an earlier process began has an end: how long that took. What nobody was told of counts, too.
pub(super) fn settled(database: &Path) -> Result<Duration> {
    let began = Instant::now();
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(SETTLED)?;
    loop {
        let unfinished = "SELECT count(*) FROM response WHERE status IN (0, 1)";
        let unfinished: i64 = connection.query_row(unfinished, [], |row| row.get(0))?;
        if unfinished == 0 {
            return Ok(began.elapsed());
        }
        ensure!(began.elapsed() < SETTLED, "{unfinished} responses have no end {SETTLED:?} after the start");
        thread::sleep(Duration::from_millis(20));
    }
}

fn with_ending(path: &Path, ending: &str) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
