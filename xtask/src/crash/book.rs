//! What the clients were told, and so what must be there afterwards.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// Something that a client did or is about to do.
pub(super) enum Entry {
    /// A response was acknowledged: the object, and the texts of everything that it was given.
    Stored {
        object: Value,
        given: Vec<String>,
        conversation: Option<String>,
        added: Vec<String>,
    },
    /// A background response was acknowledged, with what it was given and what it is to answer.
    Begun {
        id: String,
        given: Vec<String>,
        answer: String,
    },
    Cancelling(String),
    Deleting(String),
    Deleted(String),
    Opened(String),
    /// A turn of this conversation is asked for, which would add these texts.
    Saying {
        conversation: String,
        added: Vec<String>,
    },
    Closing(String),
    Closed(String),
}

/// One client's record. An entry is on the disk before anything else happens.
pub(super) struct Ledger(File);

impl Ledger {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        Ok(Self(file.with_context(|| format!("cannot write {}", path.display()))?))
    }

    pub(super) fn note(&mut self, entry: &Entry) -> Result<()> {
        let line = match entry {
            Entry::Stored { object, given, conversation, added } => {
                json!({"stored": object, "given": given, "conversation": conversation, "added": added})
            }
            Entry::Begun { id, given, answer } => json!({"begun": id, "given": given, "answer": answer}),
            Entry::Cancelling(id) => json!({"cancelling": id}),
            Entry::Deleting(id) => json!({"deleting": id}),
            Entry::Deleted(id) => json!({"deleted": id}),
            Entry::Opened(id) => json!({"opened": id}),
            Entry::Saying { conversation, added } => json!({"saying": added, "conversation": conversation}),
            Entry::Closing(id) => json!({"closing": id}),
            Entry::Closed(id) => json!({"closed": id}),
        };
        self.0.write_all(format!("{line}\n").as_bytes())?;
        Ok(self.0.sync_data()?)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Live,
    /// In the background, and nobody knows how it ended.
    UnderWay,
    /// It was asked for and nobody knows.
    Perhaps,
    Gone,
}

pub(super) struct Response {
    pub(super) object: Value,
    pub(super) given: Vec<String>,
    /// What it is to say, while it is under way.
    pub(super) answer: String,
    /// It was asked to end before that.
    pub(super) cancelling: bool,
    pub(super) fate: Fate,
}

pub(super) struct Conversation {
    pub(super) texts: Vec<String>,
    /// Turns that nobody knows of, in order; each was added as a whole or not at all.
    pub(super) perhaps: Vec<Vec<String>>,
    pub(super) fate: Fate,
}

/// All ledgers together.
#[derive(Default)]
pub(super) struct Book {
    pub(super) responses: BTreeMap<String, Response>,
    pub(super) conversations: BTreeMap<String, Conversation>,
    pub(super) deletions: usize,
    /// By path: how far it was read.
    read: BTreeMap<std::path::PathBuf, usize>,
}

impl Book {
    /// Reads what is new in this ledger, and gives the ids that it speaks of.
    pub(super) fn read(&mut self, path: &Path) -> Result<Vec<String>> {
        let (seen, mut ids) = (self.read.get(path).copied().unwrap_or(0), Vec::new());
        let mut lines = 0;
        for line in BufReader::new(File::open(path)?).lines() {
            let line = line?;
            lines += 1;
            if lines > seen {
                ids.push(self.enter(&serde_json::from_str(&line)?)?);
            }
        }
        self.read.insert(path.to_owned(), lines);
        Ok(ids)
    }

    fn enter(&mut self, line: &Value) -> Result<String> {
        let name = |key: &str| line[key].as_str().map(str::to_owned);
        if let Some(object) = line.get("stored") {
            let id = object["id"].as_str().context("a response without id")?.to_owned();
            if let Some(conversation) = name("conversation").and_then(|id| self.conversations.get_mut(&id)) {
                conversation.perhaps.pop();
                conversation.texts.extend(texts_of(&line["added"]));
            }
            self.respond(&id, object.clone(), line, Fate::Live);
            return Ok(id);
        }
        if let Some(id) = name("begun") {
            self.respond(&id, Value::Null, line, Fate::UnderWay);
            return Ok(id);
        }
        if let Some(id) = name("cancelling") {
            self.responses.get_mut(&id).context("an unknown response")?.cancelling = true;
            return Ok(id);
        }
        if let Some(id) = name("opened") {
            let conversation = Conversation { texts: Vec::new(), perhaps: Vec::new(), fate: Fate::Live };
            self.conversations.insert(id.clone(), conversation);
            return Ok(id);
        }
        if line.get("saying").is_some() {
            let id = name("conversation").context("a turn without a conversation")?;
            let conversation = self.conversations.get_mut(&id).context("an unknown conversation")?;
            conversation.perhaps.push(texts_of(&line["saying"]));
            return Ok(id);
        }
        for (key, fate) in [("deleting", Fate::Perhaps), ("deleted", Fate::Gone)] {
            if let Some(id) = name(key) {
                self.responses.get_mut(&id).context("an unknown response")?.fate = fate;
                self.deletions += usize::from(fate == Fate::Gone);
                return Ok(id);
            }
        }
        for (key, fate) in [("closing", Fate::Perhaps), ("closed", Fate::Gone)] {
            if let Some(id) = name(key) {
                self.conversations.get_mut(&id).context("an unknown conversation")?.fate = fate;
                self.deletions += usize::from(fate == Fate::Gone);
                return Ok(id);
            }
        }
        bail!("not a line of a ledger: {line}")
    }

    fn respond(&mut self, id: &str, object: Value, line: &Value, fate: Fate) {
        let answer = line["answer"].as_str().unwrap_or_default().to_owned();
        let response = Response { object, given: texts_of(&line["given"]), answer, cancelling: false, fate };
        self.responses.insert(id.to_owned(), response);
    }
}

fn texts_of(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
