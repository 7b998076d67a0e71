//! Tool calls on their way out. They leave one after another, in the order of their index; the first is live and
//! streams, others wait until it has finished. Which call a piece of the upstream's answer belongs to is the business of
//! each wire's reader.

pub(super) mod arguments;
pub(super) mod call;
mod custom;
mod grammar;
mod restore;

use wire::id::IdKind;
use wire::responses::Status;

use super::input::AnswerEnds;
use super::{HeldCall, RejectedCall, RoundEnd, let_go, only_hosted};
use crate::escaped::{Escaped, EscapedBuf, Pieces};
use crate::events::Events;
use crate::note::Action;
use crate::response::ResponseWriter;
use arguments::{Arguments, Took};
use call::{Call, Offered, Showing};

/// More parallel calls than any model makes; beyond it an upstream is up to no good.
const MAX_CALLS: usize = 128;
/// The longest id that may be sent back to us.
const MAX_ID: usize = 64;

#[derive(Debug, Clone, Default)]
pub(super) struct Calls {
    pub(super) offered: Offered,
    /// Open and waiting calls, in order; the first is live.
    pub(super) waiting: Vec<Call>,
    /// What identified each closed call: what comes late for it has no place any more.
    pub(super) closed: Vec<Closed>,
    /// Closed calls from the first one on that godex runs, and how many of all closed ones are the client's.
    held: Vec<HeldCall>,
    client: usize,
    /// The answer is not whole: nothing of it is run.
    is_cut: bool,
    /// How long all names and arguments are, for an estimate of usage.
    pub(super) bytes: usize,
    /// What cannot be made sense of.
    pub(super) nonsense: Option<&'static str>,
}

/// A closed call.
#[derive(Debug, Clone)]
pub(super) struct Closed {
    pub(super) index: Option<i64>,
    pub(super) name: EscapedBuf,
    pub(super) upstream_id: EscapedBuf,
    /// As JSON.
    pub(super) arguments: String,
    /// How much of them came once more.
    pub(super) again: usize,
}

impl Calls {
    pub(super) fn new(offered: Offered) -> Self {
        Self { offered, ..Self::default() }
    }

    /// A call that is not told apart from others by its deltas: all that comes until the next one is its own. Says whether
    /// there is room for it.
    pub(super) fn begin_block(
        &mut self,
        id: Option<Escaped<'_>>,
        name: Escaped<'_>,
        response: &mut ResponseWriter,
    ) -> bool {
        let Some(at) = self.begin(id, None, response) else { return false };
        let call = &mut self.waiting[at];
        call.name = EscapedBuf::clean(name);
        call.arguments = Arguments::in_pieces();
        self.bytes += call.name.get().len();
        true
    }

    /// More arguments of the call that began last.
    pub(super) fn more(&mut self, arguments: Escaped<'_>) {
        let Some(call) = self.waiting.last_mut() else { return };
        self.bytes += arguments.len();
        if let Took::After(rest) = call.arguments.take(arguments) {
            call.arguments.is_spoiled |= !rest.decode().trim().is_empty();
            call.arguments.push(rest);
        }
    }

    /// There is no call that is not closed.
    pub(super) const fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many calls are over: the client's, and those that godex runs.
    pub(super) const fn over(&self) -> usize {
        self.closed.len()
    }

    /// Nothing that a client could be shown.
    pub(super) fn is_empty(&self) -> bool {
        self.closed.is_empty() && self.waiting.iter().all(|call| call.name.is_empty())
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many bytes of calls there are that are in no closed item.
    pub(super) fn held(&self) -> usize {
        let waiting: usize = self.waiting.iter().map(Call::held).sum();
        waiting + self.held.iter().map(HeldCall::held).sum::<usize>()
    }

    /// Whether some call may still get arguments.
    pub(super) fn is_busy(&self) -> bool {
        self.waiting.iter().any(|call| !call.arguments.is_whole())
    }

    /// Whether the live call has been announced.
    pub(super) fn is_live(&self) -> bool {
        self.waiting.first().is_some_and(Call::is_announced)
    }

    /// Whether the arguments of every call can be all there is.
    pub(super) fn are_sound(&self) -> bool {
        self.waiting.iter().all(|call| call.is_sound(&self.offered.tools))
    }

    /// The tool whose input broke off, if one did: its arguments have no end.
    pub(super) fn cut(&self) -> Option<String> {
        let tools = &self.offered.tools;
        self.waiting.iter().find(|call| call.is_cut(tools)).map(|call| call.client_name(tools))
    }

    /// The answer has not said that it is whole.
    pub(super) const fn ends_unsaid(&mut self) {
        self.offered.inputs.ends = AnswerEnds::Unsaid;
    }

    /// A new call, in its place: by index, after what a client has seen already.
    pub(super) fn begin(
        &mut self,
        id: Option<Escaped<'_>>,
        index: Option<i64>,
        response: &mut ResponseWriter,
    ) -> Option<usize> {
        if self.waiting.len() + self.closed.len() >= MAX_CALLS {
            response.remark(Action::Repaired, "tool_calls", "calls beyond the limit were left out");
            return None;
        }
        let call_id = Self::call_id(id, response);
        let mut at = self.waiting.len();
        // An index that is used again tells no order.
        let is_reused = id.is_some() && self.waiting.iter().any(|call| call.index == index);
        let index_of_order = index.filter(|_| !is_reused);
        while let (Some(before), Some(index)) = (at.checked_sub(1).map(|before| &self.waiting[before]), index_of_order)
        {
            if before.is_announced() || before.index.is_none_or(|other| other <= index) {
                break;
            }
            at -= 1;
        }
        self.waiting.insert(at, Call::new(index, id.unwrap_or_default().into(), call_id));
        Some(at)
    }

    /// The upstream's id, if it is one by which a result can come back; else ours.
    fn call_id(id: Option<Escaped<'_>>, response: &mut ResponseWriter) -> EscapedBuf {
        let mut pieces = id.filter(|id| id.len() <= MAX_ID).map(Pieces::of).unwrap_or_default();
        let id = pieces.take();
        let good = pieces.is_empty() && !id.get().as_written().trim().is_empty();
        match Some(id).filter(|id| good && response.adopt_call_id(id.get())) {
            Some(id) => id,
            None => EscapedBuf::of_plain(response.make_id(IdKind::Call).as_str()),
        }
    }

    /// Closes what has finished, so that the next can go out.
    pub(super) fn close_finished(&mut self, response: &mut ResponseWriter, out: &mut Events) {
        while self.waiting.len() > 1 && self.waiting[0].arguments.is_finished() {
            self.close_first(Status::Completed, response, out);
        }
    }

    /// Sends what the live call has and has not sent; after a hosted call nothing is.
    pub(super) fn stream(&mut self, response: &mut ResponseWriter, out: &mut Events) {
        let showing = self.showing();
        if let Some(call) = self.waiting.first_mut() {
            call.advance(&self.offered, showing, response, out);
        }
    }

    const fn showing(&self) -> Showing {
        if self.held.is_empty() { Showing::Now } else { Showing::Later }
    }

    fn close_first(&mut self, status: Status, response: &mut ResponseWriter, out: &mut Events) {
        let call = self.waiting.remove(0);
        if call.name.is_empty() {
            return response.remark(Action::Repaired, "tool_calls", "a call without a name was left out");
        }
        let (index, name, upstream_id) = (call.index, call.name.clone(), call.upstream_id.clone());
        let arguments = call.arguments.text().decode().trim().to_owned();
        self.closed.push(Closed { index, name, upstream_id, arguments, again: 0 });
        let is_hosted = call.kind(&self.offered.tools).is_hosted();
        self.client += usize::from(!is_hosted);
        let held = call.close(status, &self.offered, self.showing(), response, out);
        self.held.extend(held.filter(|_| !self.is_cut));
    }

    /// Takes the call that the whole answer is, if its input does not fit and it may be asked for once more. A client that
    /// has to act on other calls first cannot wait for this one.
    pub(super) fn reject(&mut self, response: &mut ResponseWriter, out: &mut Events) -> Option<RejectedCall> {
        let [call] = &mut *self.waiting else { return None };
        if !self.offered.inputs.asks_again || !self.closed.is_empty() {
            return None;
        }
        let rejected = call.reject(&self.offered, response, out)?;
        self.waiting.clear();
        Some(rejected)
    }

    /// What the end of an answer means where it calls hosted tools: they are run if the answer is whole, and the model
    /// is asked again if there is nothing that it waits for but them.
    pub(super) fn end_round(&mut self, end: RoundEnd) -> RoundEnd {
        if end != RoundEnd::Completed {
            return end;
        }
        only_hosted(&mut self.held, self.client).map_or(end, RoundEnd::Hosted)
    }

    pub(super) fn take_hosted(&mut self) -> Vec<HeldCall> {
        std::mem::take(&mut self.held)
    }

    /// Closes all; where the answer broke off, the last one is the unfinished one.
    pub(super) fn close(&mut self, last: Status, response: &mut ResponseWriter, out: &mut Events) {
        if last != Status::Completed {
            self.is_cut = true;
            let_go(&mut self.held, response, out);
        }
        while let Some(first) = self.waiting.first() {
            let finished = self.waiting.len() > 1 && (first.arguments.is_whole() || !first.has_arguments());
            self.close_first(if finished { Status::Completed } else { last }, response, out);
        }
    }
}
