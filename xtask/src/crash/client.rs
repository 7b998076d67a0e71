//! One of sixteen clients: a mix of everything that is stored, and a ledger of what was acknowledged. What it does in the
//! background is in `background`.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::book::{Entry, Ledger};
use super::chance::Chance;
use super::http::{Answer, Http};
use super::socket::Socket;

/// Turns of a chain, so that one page shows all that a turn was given.
const DEEP: usize = 20;

pub(super) struct Client {
    pub(super) ledger: Ledger,
    pub(super) chance: Chance,
    name: String,
    count: usize,
    /// The chain that it continues: its newest response, and the texts up to and including that.
    chain: Option<(String, Vec<String>)>,
    conversation: Option<(String, Vec<String>)>,
    /// Responses that nothing continues.
    pub(super) lone: Vec<(String, Value)>,
}

/// What a cycle is watched by.
#[derive(Default)]
pub(super) struct Cycle {
    /// Set before the process is killed: what fails from then on may fail.
    pub(super) killed: AtomicBool,
    pub(super) acknowledged: AtomicUsize,
}

impl Client {
    pub(super) fn new(number: usize, ledger: &Path, seed: u64) -> Result<Self> {
        Ok(Self {
            ledger: Ledger::open(ledger)?,
            chance: Chance::new(seed ^ (number as u64 + 1) << 32),
            name: format!("c{number}"),
            count: 0,
            chain: None,
            conversation: None,
            lone: Vec::new(),
        })
    }

    /// Goes on until the server is killed. Anything wrong before that is an error.
    pub(super) fn work(&mut self, connect: impl FnOnce() -> Result<Http>, cycle: &Cycle) -> Result<()> {
        let outcome = connect().and_then(|mut http| {
            loop {
                self.step(&mut http)?;
                cycle.acknowledged.fetch_add(1, Ordering::Relaxed);
            }
        });
        let Err::<(), _>(error) = outcome else { return Ok(()) };
        if cycle.killed.load(Ordering::SeqCst) && error.downcast_ref::<Wrong>().is_none() {
            return Ok(());
        }
        Err(error.context(format!("client {}", self.name)))
    }

    fn step(&mut self, http: &mut Http) -> Result<()> {
        match self.chance.below(24) {
            0..3 => self.plain(http),
            3..9 => self.chained(http),
            9..12 => self.conversed(http),
            12 | 13 => self.look(http),
            14 => self.delete(http),
            15 => self.end(http),
            16 | 17 => self.polled(http),
            18 | 19 => self.followed(http),
            20 | 21 => self.cancelled(http),
            _ => self.spoken(http),
        }
    }

    /// A text of its own, so that nothing can pass for something else.
    pub(super) fn text(&mut self) -> String {
        self.count += 1;
        let padding = "lorem ipsum ".repeat(self.chance.below(60));
        format!("{}-{}-{:x} {padding}", self.name, self.count, self.chance.next()).trim().to_owned()
    }

    fn plain(&mut self, http: &mut Http) -> Result<()> {
        let text = self.text();
        let given = vec![format!("echo {text}")];
        let object = self.create(http, json!({}), given, None, &text)?;
        self.lone.push((id(&object)?, object));
        Ok(())
    }

    fn chained(&mut self, http: &mut Http) -> Result<()> {
        let text = self.text();
        // If this one is lost, the next one leaves the chain at the same place.
        let chain = self.chain.clone();
        let (previous, before) = chain.map_or((Value::Null, Vec::new()), |(id, texts)| (json!(id), texts));
        let given = [before, vec![format!("echo {text}")]].concat();
        let object = self.create(http, json!({"previous_response_id": previous}), given.clone(), None, &text)?;
        self.chain = Some((id(&object)?, [given, vec![text]].concat())).filter(|(_, texts)| texts.len() < 2 * DEEP);
        Ok(())
    }

    fn conversed(&mut self, http: &mut Http) -> Result<()> {
        // Not known again until it is acknowledged: what a lost turn left there is for the check to find out.
        let (conversation, before) = match self.conversation.take() {
            Some(known) => known,
            None => {
                let opened = expect(http.post("/v1/conversations", &json!({}))?, 200)?;
                let id = id(&opened)?;
                self.ledger.note(&Entry::Opened(id.clone()))?;
                (id, Vec::new())
            }
        };
        let text = self.text();
        let added = vec![format!("echo {text}"), text.clone()];
        self.ledger.note(&Entry::Saying { conversation: conversation.clone(), added: added.clone() })?;
        let given = [before.clone(), added[..1].to_vec()].concat();
        let within = Some((conversation.clone(), added.clone()));
        self.create(http, json!({"conversation": conversation}), given, within, &text)?;
        self.conversation = Some((conversation, [before, added].concat())).filter(|(_, texts)| texts.len() < 2 * DEEP);
        Ok(())
    }

    /// Turns over one WebSocket, each continuing the last.
    fn spoken(&mut self, http: &mut Http) -> Result<()> {
        let mut socket = Socket::connect(http.address())?;
        for _ in 0..=self.chance.below(3) {
            let text = self.text();
            let (previous, before) =
                self.chain.clone().map_or((Value::Null, Vec::new()), |(id, texts)| (json!(id), texts));
            let given = [before, vec![format!("echo {text}")]].concat();
            let request = json!({"model": "demo", "input": format!("echo {text}"), "previous_response_id": previous});
            let object = socket.create(&request)?;
            if object["status"] != json!("completed") || object["output"][0]["content"][0]["text"] != json!(text) {
                wrong(&object)?;
            }
            let (stored, given) = (object.clone(), given);
            self.ledger.note(&Entry::Stored {
                object: stored,
                given: given.clone(),
                conversation: None,
                added: Vec::new(),
            })?;
            self.chain = Some((id(&object)?, [given, vec![text]].concat())).filter(|(_, texts)| texts.len() < 2 * DEEP);
        }
        Ok(())
    }

    /// A turn, streamed or not; what is acknowledged goes into the ledger.
    fn create(
        &mut self,
        http: &mut Http,
        mut request: Value,
        given: Vec<String>,
        within: Option<(String, Vec<String>)>,
        answer: &str,
    ) -> Result<Value> {
        request["model"] = json!("demo");
        request["input"] = json!(format!("echo {answer}"));
        let object = if self.chance.below(2) == 0 {
            request["stream"] = json!(true);
            let mut terminal = Value::Null;
            let status = http.stream("/v1/responses", &request, |event| {
                match event["type"].as_str() {
                    Some("response.completed") => terminal = event["response"].clone(),
                    Some("response.failed" | "response.incomplete" | "error") => wrong(&event)?,
                    _ => {}
                }
                Ok(!terminal.is_null())
            });
            // What was seen counts, also if the connection broke after it.
            if terminal.is_null() {
                let status = status?;
                return wrong(&json!({"status": status, "request": request}));
            }
            terminal
        } else {
            expect(http.post("/v1/responses", &request)?, 200)?
        };
        if object["store"] != json!(true) || object["output"][0]["content"][0]["text"] != json!(answer) {
            wrong(&object)?;
        }
        let (conversation, added) = within.map_or((None, Vec::new()), |(id, added)| (Some(id), added));
        self.ledger.note(&Entry::Stored { object: object.clone(), given, conversation, added })?;
        Ok(object)
    }

    /// What was acknowledged is there at once.
    fn look(&mut self, http: &mut Http) -> Result<()> {
        let Some((id, object)) = self.chance.any(&self.lone) else { return Ok(()) };
        let found = expect(http.get(&format!("/v1/responses/{id}"))?, 200)?;
        if found == *object { Ok(()) } else { wrong(&json!({"found": found, "instead of": object})) }
    }

    fn delete(&mut self, http: &mut Http) -> Result<()> {
        if self.lone.is_empty() {
            return Ok(());
        }
        let (id, _) = self.lone.swap_remove(self.chance.below(self.lone.len()));
        self.ledger.note(&Entry::Deleting(id.clone()))?;
        expect(http.delete(&format!("/v1/responses/{id}"))?, 200)?;
        self.ledger.note(&Entry::Deleted(id))
    }

    /// Deletes the end of its chain, or its conversation, and so begins another one.
    fn end(&mut self, http: &mut Http) -> Result<()> {
        if self.chance.below(2) == 0 {
            let Some((id, _)) = self.chain.take() else { return Ok(()) };
            self.ledger.note(&Entry::Deleting(id.clone()))?;
            expect(http.delete(&format!("/v1/responses/{id}"))?, 200)?;
            return self.ledger.note(&Entry::Deleted(id));
        }
        let Some((id, _)) = self.conversation.take() else { return Ok(()) };
        self.ledger.note(&Entry::Closing(id.clone()))?;
        expect(http.delete(&format!("/v1/conversations/{id}"))?, 200)?;
        self.ledger.note(&Entry::Closed(id))
    }
}

/// An answer that is wrong whether or not the server was about to be killed.
#[derive(Debug)]
struct Wrong(String);

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a wrong answer: {}", self.0)
    }
}

impl std::error::Error for Wrong {}

pub(super) fn wrong<T>(what: &Value) -> Result<T> {
    bail!(Wrong(what.to_string()))
}

pub(super) fn expect(answer: Answer, status: u16) -> Result<Value> {
    if answer.status == status { Ok(answer.body) } else { wrong(&json!([answer.status, answer.body])) }
}

pub(super) fn id(object: &Value) -> Result<String> {
    let id = object["id"].as_str().context("no id")?;
    ensure!(!id.is_empty(), "an empty id");
    Ok(id.to_owned())
}
