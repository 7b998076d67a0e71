//! The meter of one upstream answer: when the answer is over, or nobody reads it any more, it enters into the account what
//! was taken, once, at the price of whoever has answered.
//!
//! An upstream that has the request works, and is paid, whatever becomes of its answer: also where the client is gone before
//! it begins, the answer fails, or it is only godex that has asked. Who refuses is not, unless it has counted something all the
//! same. What the provider does not say is estimated.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use bridge::Reader;
use providers::Price;
use wire::responses::Usage;

use crate::account::{Account, Body, Charge};
use crate::request::RequestContext;
use crate::trace::Tape;
use crate::upstream::{Failover, Redactor};

/// A reader whose answer is paid for.
#[derive(Debug)]
pub(crate) struct Metered {
    reader: Box<Reader>,
    bill: Option<Bill>,
    accepted: bool,
    /// What its provider has counted, of an answer that came to nothing.
    wasted: Option<Usage>,
    /// Events so far.
    heard: u64,
    /// What was read, where bodies are kept.
    tape: Option<Box<(Tape, Redactor)>>,
}

#[derive(Debug)]
struct Bill {
    account: Account,
    provider: String,
    model: String,
    price: Option<Arc<Price>>,
}

impl Metered {
    /// The target whose turn it is will be asked.
    pub(super) fn new(reader: Box<Reader>, context: &RequestContext, failover: &Failover) -> Self {
        context.account.counted_by(&context.app.runtime.spending);
        let bill = Bill {
            account: context.account.clone(),
            provider: failover.provider().name.clone(),
            model: failover.model().to_owned(),
            price: failover.price(),
        };
        Self { reader, bill: Some(bill), accepted: false, wasted: None, heard: 0, tape: None }
    }

    /// It has accepted.
    #[must_use]
    pub(super) fn accepted(mut self, redactor: &Redactor) -> Self {
        let tape = self.bill.as_ref().and_then(|bill| bill.account.tape());
        self.tape = tape.map(|tape| Box::new((tape, redactor.clone())));
        self.accepted = true;
        self
    }

    /// Its answer has come to nothing, and its provider has counted so much.
    pub(super) const fn wasted(&mut self, usage: Option<Usage>) {
        self.wasted = usage;
    }

    /// This was read.
    pub(super) fn read(&mut self, bytes: &[u8]) {
        if let Some(tape) = &mut self.tape {
            tape.0.push(bytes);
        }
    }

    /// It was another event, or the whole answer.
    pub(super) const fn heard(&mut self) {
        self.heard += 1;
    }

    /// The answer is over.
    pub(super) fn settle(&mut self) {
        let Some(Bill { account, provider, model, price }) = self.bill.take() else { return };
        if !self.accepted && self.wasted.is_none() && !account.is_with_upstream() {
            return;
        }
        let (usage, estimated) = self.wasted.map_or_else(|| self.reader.taken(), |usage| (usage, false));
        let nanodollars = price.map(|price| price.cost(&usage));
        account.heard(self.heard);
        if let Some((tape, redactor)) = self.tape.take().map(|tape| *tape) {
            account.capture(Body::ChatResponse, Some(tape), |bytes| redactor.bytes(bytes, 0));
        }
        // What it has run itself is in no usage, and costs what nobody here knows.
        for (tool, calls) in self.reader.ran() {
            account.charged(Charge { tool_calls: *calls, ..Charge::of_call(&provider, tool, None) });
        }
        account.charged(Charge { provider, model, usage, estimated, nanodollars, tool_calls: 0 });
    }
}

impl Drop for Metered {
    fn drop(&mut self) {
        self.settle();
    }
}

impl Deref for Metered {
    type Target = Reader;

    fn deref(&self) -> &Reader {
        &self.reader
    }
}

impl DerefMut for Metered {
    fn deref_mut(&mut self) -> &mut Reader {
        &mut self.reader
    }
}
