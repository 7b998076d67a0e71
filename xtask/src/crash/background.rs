//! What a client does in the background: it is told of a response before there is one, and comes back for it.

use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::book::Entry;
use super::client::{Client, expect, id, wrong};
use super::http::Http;

impl Client {
    /// Submits, and polls until it is made.
    pub(super) fn polled(&mut self, http: &mut Http) -> Result<()> {
        let asked = self.background(2);
        let queued = expect(http.post("/v1/responses", &asked.request)?, 200)?;
        self.begun(&queued, &asked)?;
        let id = id(&queued)?;
        loop {
            let object = expect(http.get(&format!("/v1/responses/{id}"))?, 200)?;
            if object["status"] != json!("queued") && object["status"] != json!("in_progress") {
                return self.made(object, asked);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Follows a stream that breaks off somewhere, and goes on from there.
    pub(super) fn followed(&mut self, http: &mut Http) -> Result<()> {
        let mut asked = self.background(3);
        asked.request["stream"] = json!(true);
        let mut stream = Stream { next: 0, enough: 1 + self.chance.below(10), id: None, terminal: None };
        http.stream("/v1/responses", &asked.request, |event| {
            if stream.next == 0 {
                self.begun(&event["response"], &asked)?;
            }
            stream.see(&event)
        })?;
        let (Some(id), after) = (stream.id.clone(), stream.next - 1) else { bail!("a stream without events") };
        if stream.terminal.is_none() {
            stream.enough = usize::MAX;
            let path = format!("/v1/responses/{id}?stream=true&starting_after={after}");
            http.follow(&path, |event| stream.see(&event))?;
        }
        match stream.terminal {
            Some(object) => self.made(object, asked),
            None => wrong(&json!({"a stream without end": id})),
        }
    }

    /// Submits, and cancels: in time, or too late.
    pub(super) fn cancelled(&mut self, http: &mut Http) -> Result<()> {
        let asked = self.background(4);
        let queued = expect(http.post("/v1/responses", &asked.request)?, 200)?;
        self.begun(&queued, &asked)?;
        thread::sleep(Duration::from_millis(self.chance.next() % 100));
        let id = id(&queued)?;
        self.ledger.note(&Entry::Cancelling(id.clone()))?;
        let path = format!("/v1/responses/{id}/cancel");
        let answer = http.call("POST", &path, "")?;
        if answer.status == 400 {
            let object = expect(http.get(&format!("/v1/responses/{id}"))?, 200)?;
            return self.made(object, asked);
        }
        let object = expect(answer, 200)?;
        if object["status"] != json!("cancelled") {
            wrong(&object)?;
        }
        self.acknowledged(object.clone(), asked.given)?;
        let again = expect(http.call("POST", &path, "")?, 200)?;
        if again == object { Ok(()) } else { wrong(&json!([object, again])) }
    }

    /// A request for an answer in up to so many chunks, a fifth of a second apart.
    fn background(&mut self, chunks: usize) -> Asked {
        let (chunks, answer) = (1 + self.chance.below(chunks), self.text());
        let input = format!("slow {chunks}\necho {answer}");
        let request = json!({"model": "demo", "input": input, "background": true});
        Asked { request, given: vec![input], answer }
    }

    fn begun(&mut self, queued: &Value, asked: &Asked) -> Result<()> {
        let (given, answer) = (asked.given.clone(), asked.answer.clone());
        self.ledger.note(&Entry::Begun { id: id(queued)?, given, answer })
    }

    /// It has ended by itself.
    fn made(&mut self, object: Value, asked: Asked) -> Result<()> {
        if object["status"] != json!("completed") || !says(&object, &asked.answer) {
            wrong(&object)?;
        }
        self.acknowledged(object.clone(), asked.given)?;
        self.lone.push((id(&object)?, object));
        Ok(())
    }

    fn acknowledged(&mut self, object: Value, given: Vec<String>) -> Result<()> {
        self.ledger.note(&Entry::Stored { object, given, conversation: None, added: Vec::new() })
    }
}

/// Whether a response is this answer. The model fills its chunks with dots when there are more of them than words.
pub(super) fn says(object: &Value, answer: &str) -> bool {
    let said = object["output"][0]["content"][0]["text"].as_str().unwrap_or_default();
    said.strip_prefix(answer).is_some_and(|rest| rest.chars().all(|filler| " .".contains(filler)))
}

/// What is asked for, and what must come of it.
struct Asked {
    request: Value,
    given: Vec<String>,
    answer: String,
}

/// What was seen of a stream.
struct Stream {
    /// The number of the event that comes next.
    next: usize,
    /// So many are read in one go.
    enough: usize,
    id: Option<String>,
    terminal: Option<Value>,
}

impl Stream {
    /// Each event comes once, and none is left out. Whether that was enough.
    fn see(&mut self, event: &Value) -> Result<bool> {
        if event["sequence_number"] != json!(self.next) {
            wrong(event)?;
        }
        self.next += 1;
        if self.id.is_none() {
            self.id = Some(id(&event["response"])?);
        }
        match event["type"].as_str() {
            Some("response.completed") => self.terminal = Some(event["response"].clone()),
            Some("response.failed" | "response.incomplete" | "error") => wrong(event)?,
            _ => {}
        }
        Ok(self.terminal.is_some() || self.next >= self.enough)
    }
}
