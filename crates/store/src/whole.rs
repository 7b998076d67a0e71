//! Whether bodies are what the store can give out: each is opened, and read as what it has to be. Nothing is changed, and no
//! more than a few rows are held at once.

use bytes::Bytes;
use wire::json::{Kind, Raw};

use crate::encryption::{BodyTable, Cipher, Cursor};
use crate::event::next_event;
use crate::packed::SEALED;
use crate::{Error, Tenant};

/// Findings that are named; whoever has more has enough.
const NAMED: usize = 100;

/// What is wrong with what is stored.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    lines: Vec<String>,
    count: u64,
    is_torn: bool,
    unopened: u64,
    is_older: bool,
}

impl Findings {
    /// A file, or rows, that do not hold together.
    pub(crate) fn torn(lines: Vec<String>) -> Self {
        Self { count: lines.len() as u64, is_torn: !lines.is_empty(), lines, ..Self::default() }
    }

    /// What is in it was not read: an earlier version has other tables.
    pub(crate) const fn older(mut self) -> Self {
        self.is_older = true;
        self
    }

    pub(crate) fn add(&mut self, line: String) {
        self.count += 1;
        if self.lines.len() < NAMED {
            self.lines.push(line);
        }
    }

    pub(crate) fn add_all(&mut self, looked: Looked) {
        looked.damaged.into_iter().for_each(|line| self.add(line));
        self.unopened += looked.unopened;
    }

    /// How many there are, also of those that are not named.
    pub const fn count(&self) -> u64 {
        self.count
    }

    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether it is the file or its rows that do not hold together, and not only something that is in them.
    pub const fn is_torn(&self) -> bool {
        self.is_torn
    }

    /// Each in a line; the last says how many more there are.
    pub fn lines(&self) -> Vec<String> {
        let more = self.count.saturating_sub(self.lines.len() as u64);
        let more = (more > 0).then(|| format!("and {more} more"));
        self.lines.iter().cloned().chain(more).collect()
    }

    /// What could not be found out, if anything.
    pub fn unknown(&self) -> Option<String> {
        if self.is_older {
            return Some("it is of an earlier version, and what is in it was not read".to_owned());
        }
        let count = self.unopened;
        (count > 0).then(|| format!("{count} rows are encrypted and were not read: there is no key for them"))
    }
}

/// How the bodies of one tenant are looked at.
#[derive(Debug, Clone)]
pub(crate) struct Looker {
    tenant: Tenant,
    cipher: Cipher,
    /// Whether what is sealed can be opened at all.
    opens: bool,
}

/// What one step has found, and where the next one begins; None at the end of the table.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    pub(crate) next: Option<Cursor>,
    pub(crate) read: u64,
    unopened: u64,
    damaged: Vec<String>,
}

impl Looker {
    pub(crate) const fn new(tenant: Tenant, cipher: Cipher) -> Self {
        Self { tenant, cipher, opens: true }
    }

    /// For whoever does not have the keys.
    pub(crate) fn without_keys(tenant: Tenant) -> Self {
        Self { tenant, cipher: Cipher::default(), opens: false }
    }

    pub(crate) const fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// Looks at some rows of a table.
    pub(crate) fn look(&self, table: BodyTable, rows: Vec<(Cursor, Vec<u8>)>) -> Looked {
        let mut looked = Looked { next: rows.last().map(|(last, _)| last.clone()), ..Looked::default() };
        for (row, body) in rows {
            looked.read += 1;
            if !self.opens && body.first() == Some(&SEALED) {
                looked.unopened += 1;
            } else if let Err(what) = self.problem(table, &row, body) {
                let (name, tenant) = (table.named(&row), self.tenant.name());
                looked.damaged.push(format!("{name} of tenant {tenant} cannot be read: {what}"));
            }
        }
        looked
    }

    fn problem(&self, table: BodyTable, row: &Cursor, body: Vec<u8>) -> Result<(), Box<str>> {
        let body = table.place(row).and_then(|place| self.cipher.unpack(place, body)).map_err(told)?;
        match table {
            BodyTable::Item | BodyTable::Response | BodyTable::Settings | BodyTable::Conversation => object(&body),
            BodyTable::Event => events(body),
            // What they hold is not the store's to know.
            BodyTable::Job | BodyTable::Notice => Ok(()),
        }
    }
}

fn told(error: Error) -> Box<str> {
    match error {
        Error::Corrupt(what) => what,
        other => other.to_string().into(),
    }
}

fn object(body: &[u8]) -> Result<(), Box<str>> {
    let text = str::from_utf8(body).map_err(|_| "it is not UTF-8")?;
    match Raw::parse(text) {
        Ok(raw) if raw.kind() == Kind::Object => Ok(()),
        Ok(_) => Err("it is no JSON object".into()),
        // What the text is, is nobody's business here.
        Err(_) => Err("it is not JSON".into()),
    }
}

fn events(mut batch: Bytes) -> Result<(), Box<str>> {
    while !batch.is_empty() {
        object(&next_event(&mut batch).map_err(told)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::pack;

    #[test]
    fn what_nobody_can_be_given_is_found() {
        let looker = Looker::new(Tenant::new("t"), Cipher::default());
        let row = |name: &str| Cursor { name: name.as_bytes().to_vec(), ..Cursor::default() };
        let event = |json: &[u8]| [&u32::try_from(json.len()).unwrap().to_le_bytes()[..], json].concat();
        let two = [event(b"{}"), event(b"{\"a\":1}")].concat();
        for (table, body, expected) in [
            (BodyTable::Item, pack(b"{\"a\":\"b\"}"), None),
            (BodyTable::Item, pack(b"{\"a\":\"\0\0\"}"), Some("it is not JSON")),
            (BodyTable::Item, vec![0, 0xff, 0, 0xff], Some("it is not UTF-8")),
            (BodyTable::Item, vec![9], Some("a stored body is of no known form")),
            (BodyTable::Item, vec![SEALED, 1], Some("a stored body is encrypted, and there is no key")),
            (BodyTable::Response, pack(b"7"), Some("it is no JSON object")),
            (BodyTable::Response, pack(b""), Some("it is not JSON")),
            (BodyTable::Settings, pack(b"{"), Some("it is not JSON")),
            (BodyTable::Conversation, pack(b"{}{}"), Some("it is not JSON")),
            (BodyTable::Event, pack(&two), None),
            (BodyTable::Event, pack(&two[..two.len() - 1]), Some("a batch of events is cut off")),
            (BodyTable::Event, pack(&event(b"no")), Some("it is not JSON")),
            (BodyTable::Job, pack(b"{}\n{}"), None),
            (BodyTable::Job, vec![1, 2], Some("a stored body cannot be decompressed")),
        ] {
            let looked = looker.look(table, vec![(row("a\u{e9}"), body.clone())]);
            let expected: Vec<String> = expected
                .map(|what| format!("{} of tenant t cannot be read: {what}", table.named(&row("a\u{e9}"))))
                .into_iter()
                .collect();
            assert_eq!(looked.damaged, expected, "{table:?} {body:?}");
        }
        let closed = Looker::without_keys(Tenant::new("t")).look(BodyTable::Item, vec![(row("a"), vec![SEALED, 1])]);
        assert!(closed.damaged.is_empty() && closed.unopened == 1);
    }

    #[test]
    fn many_are_counted_and_some_are_named() {
        let mut findings = Findings::default();
        (0..NAMED + 7).for_each(|number| findings.add(number.to_string()));
        assert_eq!((findings.count(), findings.lines().len()), (107, 101));
        assert_eq!(findings.lines().last().unwrap(), "and 7 more");
    }
}
