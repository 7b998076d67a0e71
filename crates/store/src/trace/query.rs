//! Which traces are wanted: what the summary of a block can say to that, and what only a row can.

use std::ops::ControlFlow;

use super::block::{
    Entry, KEY, MODEL, NOTES, OF_ERRORS, OF_ID, OF_KEY, OF_MODEL, OF_NOTE, OF_OUTCOME, OF_PROVIDER, OF_TENANT, OUTCOME,
    PROVIDER, TENANT, UPSTREAM_MODEL,
};
use super::coding::{fingerprint, has};
use super::parts::short;
use super::{Block, Header, TraceFilter, TraceNumber, TracePage, TraceRow, Visit, Walk};
use crate::Error;

/// A page has no more, whatever is asked for.
const MOST: u32 = 10_000;

#[derive(Debug)]
pub(super) struct Query {
    filter: TraceFilter,
    terms: Vec<u32>,
    model: Option<Model>,
    id: Option<u32>,
}

/// A model by one of its names, or as `provider/model`, by what may be in a block of it.
#[derive(Debug)]
struct Model {
    name: u32,
    /// The provider's name and the model's there, and their fingerprints.
    target: Option<([String; 2], [u32; 2])>,
}

impl Model {
    fn new(wanted: &str) -> Self {
        // As they were cut when they were written.
        let parts = wanted.split_once('/').map(|(provider, model)| [short(provider), short(model)]);
        let target = parts.map(|[provider, model]| {
            let prints = [fingerprint(OF_PROVIDER, provider), fingerprint(OF_MODEL, model)];
            ([provider.to_owned(), model.to_owned()], prints)
        });
        Self { name: fingerprint(OF_MODEL, short(wanted)), target }
    }

    fn may_be_in(&self, terms: &[u8]) -> bool {
        let has_all = |prints: &[u32; 2]| prints.iter().all(|print| has(terms, *print));
        has(terms, self.name) || self.target.as_ref().is_some_and(|(_, prints)| has_all(prints))
    }

    fn is_target(&self, entry: &Entry<'_>) -> bool {
        let is = |wanted: &String, index: usize| entry.texts.get(index).copied().flatten() == Some(wanted);
        self.target.as_ref().is_some_and(|([provider, model], _)| is(provider, PROVIDER) && is(model, UPSTREAM_MODEL))
    }
}

impl Query {
    pub(super) fn new(mut filter: TraceFilter) -> Self {
        let model = filter.model.as_deref().map(Model::new);
        if let Some(model) = &mut filter.model {
            model.truncate(short(model).len());
        }
        let texts = [
            (OF_TENANT, &mut filter.tenant),
            (OF_KEY, &mut filter.key),
            (OF_PROVIDER, &mut filter.provider),
            (OF_OUTCOME, &mut filter.outcome),
            (OF_NOTE, &mut filter.note),
        ];
        let mut terms = Vec::new();
        for (kind, text) in texts {
            if let Some(text) = text {
                // As it was cut when it was written.
                text.truncate(short(text).len());
                terms.push(fingerprint(kind, text));
            }
        }
        if filter.errors {
            terms.push(fingerprint(OF_ERRORS, ""));
        }
        if let Some(id) = &mut filter.id {
            id.truncate(short(id).len());
        }
        let id = filter.id.as_deref().map(|id| fingerprint(OF_ID, id));
        Self { filter, terms, model, id }
    }

    pub(super) const fn by_ids(&self) -> bool {
        self.id.is_some()
    }

    /// Whether a block may have one of them.
    pub(super) fn wants(&self, header: &Header) -> bool {
        let filter = &self.filter;
        filter.since.is_none_or(|since| header.began_max >= since)
            && filter.until.is_none_or(|until| header.began_min < until)
            && filter.slower_than_micros.is_none_or(|than| header.slowest > than)
            && self.terms.iter().all(|term| has(&header.terms, *term))
            && self.model.as_ref().is_none_or(|model| model.may_be_in(&header.terms))
    }

    pub(super) fn wants_ids(&self, ids: &[u8]) -> bool {
        self.id.is_none_or(|id| has(ids, id))
    }

    pub(super) fn matches(&self, entry: &Entry<'_>) -> Result<bool, Error> {
        let filter = &self.filter;
        let is = |wanted: &Option<String>, index: usize| {
            wanted.is_none() || wanted.as_deref() == entry.texts.get(index).copied().flatten()
        };
        let quick = (!filter.errors || entry.is_error)
            && filter.since.is_none_or(|since| entry.began_at >= since)
            && filter.until.is_none_or(|until| entry.began_at < until)
            && filter.slower_than_micros.is_none_or(|than| entry.took > than)
            && is(&filter.tenant, TENANT)
            && is(&filter.key, KEY)
            && (is(&filter.model, MODEL)
                || is(&filter.model, UPSTREAM_MODEL)
                || self.model.as_ref().is_some_and(|model| model.is_target(entry)))
            && is(&filter.provider, PROVIDER)
            && is(&filter.outcome, OUTCOME)
            && filter.note.as_deref().is_none_or(|note| has_note(entry, note));
        match &filter.id {
            Some(id) if quick => {
                let ids = entry.ids()?;
                let id = id.as_str();
                Ok(ids.request == id || ids.response.as_deref() == Some(id) || ids.conversation == Some(id))
            }
            _ => Ok(quick),
        }
    }
}

fn has_note(entry: &Entry<'_>, note: &str) -> bool {
    let notes = entry.texts[NOTES].unwrap_or_default();
    if note.is_empty() { !notes.is_empty() } else { notes.split_whitespace().any(|code| code == note) }
}

/// Gathers a page.
#[derive(Debug)]
pub(super) struct List {
    query: Query,
    page: TracePage,
    limit: usize,
    pub(super) found: Vec<(TraceNumber, TraceRow<'static>)>,
}

impl List {
    pub(super) fn new(filter: TraceFilter, page: TracePage) -> Self {
        let limit = usize::try_from(page.limit.min(MOST)).unwrap_or(0);
        Self { query: Query::new(filter), page, limit, found: Vec::new() }
    }

    pub(super) fn walk(&self) -> Walk {
        match self.page {
            TracePage { after: Some(after), .. } => Walk::OldestFirst { from: after.saturating_add(1) },
            TracePage { before: Some(before), .. } => Walk::NewestFirst { before },
            _ => Walk::NewestFirst { before: TraceNumber::MAX },
        }
    }

    fn take(&mut self, entry: &Entry<'_>) -> Result<(), Error> {
        let inside = self.page.before.is_none_or(|before| entry.number < before)
            && self.page.after.is_none_or(|after| entry.number > after);
        if inside && self.found.len() < self.limit && self.query.matches(entry)? {
            self.found.push((entry.number, entry.row()?));
        }
        Ok(())
    }
}

impl Visit for List {
    fn by_ids(&self) -> bool {
        self.query.by_ids()
    }

    fn wants(&self, header: &Header) -> bool {
        self.query.wants(header)
    }

    fn wants_ids(&self, ids: &[u8]) -> bool {
        self.query.wants_ids(ids)
    }

    fn see(&mut self, block: &Block) -> Result<ControlFlow<()>, Error> {
        if self.page.after.is_some() {
            for entry in block.entries()? {
                self.take(&entry?)?;
            }
        } else {
            let entries: Vec<_> = block.entries()?.collect::<Result<_, _>>()?;
            for entry in entries.iter().rev() {
                self.take(entry)?;
            }
        }
        Ok(if self.found.len() < self.limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    }
}

/// The newest one of a response; of a request only where no response has that id, for clients choose those of requests. Where
/// a tenant is named, only its own are looked at: others may have chosen the same.
#[derive(Debug)]
pub(super) struct Find {
    id: String,
    print: u32,
    tenant: Option<(String, u32)>,
    of_response: Option<TraceNumber>,
    of_request: Option<TraceNumber>,
}

impl Find {
    pub(super) fn new(mut id: String, tenant: Option<&str>) -> Self {
        id.truncate(short(&id).len());
        let tenant = tenant.map(short).map(|name| (name.to_owned(), fingerprint(OF_TENANT, name)));
        Self { print: fingerprint(OF_ID, &id), id, tenant, of_response: None, of_request: None }
    }

    pub(super) fn found(&self) -> Option<TraceNumber> {
        self.of_response.or(self.of_request)
    }
}

impl Visit for Find {
    fn by_ids(&self) -> bool {
        true
    }

    fn wants(&self, header: &Header) -> bool {
        !self.id.is_empty() && self.tenant.as_ref().is_none_or(|(_, print)| has(&header.terms, *print))
    }

    fn wants_ids(&self, ids: &[u8]) -> bool {
        has(ids, self.print)
    }

    fn see(&mut self, block: &Block) -> Result<ControlFlow<()>, Error> {
        let mut of_request = None;
        for entry in block.entries()? {
            let entry = entry?;
            if self.tenant.as_ref().is_some_and(|(name, _)| entry.texts[TENANT] != Some(name)) {
                continue;
            }
            let ids = entry.ids()?;
            if ids.response.as_deref() == Some(&*self.id) {
                self.of_response = Some(entry.number);
            } else if ids.request == self.id {
                of_request = Some(entry.number);
            }
        }
        // Blocks come newest first.
        self.of_request = self.of_request.or(of_request);
        Ok(if self.of_response.is_none() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    }
}
