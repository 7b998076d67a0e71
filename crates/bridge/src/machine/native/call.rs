//! A function call, or the call of a custom tool.

use wire::id::IdKind;
use wire::json::{Kind, Raw, Text, escape_into, sanitize_into, unescape};
use wire::responses::{Incoming, Status};

use super::super::call::{FUNCTION, Named, Outlet, Streamed};
use super::event::Op;
use super::item::more;
use super::{Way, string};
use crate::note::Action;

#[derive(Debug, Clone)]
pub(super) struct CallItem {
    streamed: &'static Streamed,
    upstream_id: String,
    named: Named,
    /// Escaped.
    call_id: String,
    text: Vec<u8>,
    /// Half a surrogate pair, until its other half comes.
    held: String,
    outlet: Option<Outlet>,
}

impl CallItem {
    pub(super) fn new(streamed: &'static Streamed, upstream_id: String) -> Self {
        let (text, held) = (Vec::new(), String::new());
        Self { streamed, upstream_id, named: Named::default(), call_id: String::new(), text, held, outlet: None }
    }

    pub(super) fn apply(&mut self, op: Op, event: &Incoming<'_>, way: &mut Way<'_>, out: &mut Vec<u8>) {
        match op {
            Op::Added => {
                if let Some(item) = event.item {
                    self.learn(item);
                }
            }
            Op::CallDelta(_) => {
                if let Some(delta) = string(event.delta) {
                    self.push(delta.escaped());
                }
            }
            Op::CallDone(_) => {
                if let Some(name) = string(event.name).filter(|_| self.named.name.is_empty()) {
                    self.named.name = clean(name).into_bytes();
                }
                self.complete(event.arguments.or(event.input), way);
            }
            _ => {}
        }
        self.advance(way, out);
    }

    fn learn(&mut self, item: Raw<'_>) {
        // What a client has seen does not change any more.
        if self.outlet.is_none() {
            if let Some(name) = string(item.get("name")) {
                self.named.name = clean(name).into_bytes();
            }
            if let Some(call_id) = string(item.get("call_id")) {
                self.call_id = clean(call_id);
            }
            self.named.namespace = string(item.get("namespace")).map(|text| text.decode().into_owned());
        }
        let known = ["id", "type", "status", "call_id", "namespace", "name", self.streamed.member];
        self.named.more = more(item, &known);
    }

    fn push(&mut self, escaped: &str) {
        let joined = std::mem::take(&mut self.held) + escaped;
        self.held.push_str(sanitize_into(&mut self.text, &joined));
    }

    /// The whole text, as the far side gives it at the end: what did not come in deltas follows.
    fn complete(&mut self, whole: Option<Raw<'_>>, way: &mut Way<'_>) {
        let Some(whole) = whole else { return };
        let text = match whole.kind() {
            Kind::String => whole.text().map(|text| text.decode().into_owned()).unwrap_or_default(),
            // Arguments that are JSON instead of a string with JSON in it.
            Kind::Object => whole.as_str().to_owned(),
            _ => return,
        };
        // No escape is longer than six bytes: a short text is not held against a long one, however often it comes.
        let may_begin = self.text.len() <= 6 * text.len();
        let sent = may_begin.then(|| unescape(str::from_utf8(&self.text).unwrap_or_default()));
        let Some(rest) = sent.and_then(|sent| text.strip_prefix(&*sent)) else {
            way.sink.note(
                Action::Repaired,
                "tool_calls",
                "what came in pieces counts, not the whole that differs from it",
            );
            return;
        };
        let rest = rest.to_owned();
        self.held.clear();
        escape_into(&mut self.text, &rest);
    }

    /// Announces the call as soon as its name is known, and sends what there is of it.
    fn advance(&mut self, way: &mut Way<'_>, out: &mut Vec<u8>) {
        if self.outlet.is_none() && !self.named.name.is_empty() {
            if self.call_id.is_empty() {
                self.call_id = way.sink.ids.make(IdKind::Call).to_string();
            }
            let id = way.id(&self.upstream_id, self.streamed.id_kind);
            self.outlet = Some(Outlet::open_as(id, self.streamed, &self.named, &self.call_id, way.sink, out));
        }
        if let Some(outlet) = &mut self.outlet {
            outlet.send(&self.text, way.sink, out);
        }
    }

    pub(super) fn close(mut self, last: Option<Raw<'_>>, status: Status, way: &mut Way<'_>, out: &mut Vec<u8>) {
        if let Some(item) = last {
            self.learn(item);
            self.complete(item.get(self.streamed.member), way);
        }
        if !std::mem::take(&mut self.held).is_empty() {
            self.text.extend_from_slice(b"\\ufffd");
        }
        let function = *self.streamed == FUNCTION;
        // A tool without parameters; of a call that was cut nobody knows.
        if function && self.text.trim_ascii().is_empty() && status == Status::Completed {
            self.text = b"{}".to_vec();
        }
        self.advance(way, out);
        let Some(outlet) = self.outlet else {
            return way.sink.note(Action::Repaired, "tool_calls", "a call without a name was left out");
        };
        way.tally.calls += 1;
        way.tally.answered += self.text.len();
        let whole = !function || Raw::parse(&unescape(str::from_utf8(&self.text).unwrap_or_default())).is_ok();
        way.tally.broken_calls += usize::from(!whole);
        outlet.close(&self.text, &self.named, &self.call_id, status, way.sink, out);
    }
}

/// Escaped again, without halves of characters.
fn clean(text: Text<'_>) -> String {
    let mut out = Vec::new();
    escape_into(&mut out, &text.decode());
    String::from_utf8(out).unwrap_or_default()
}
