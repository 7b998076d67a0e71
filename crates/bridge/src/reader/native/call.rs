//! A function call, or the call of a custom tool.

use wire::id::IdKind;
use wire::json::{Kind, Raw, Text};
use wire::responses::{Incoming, Status};

use super::super::{HeldCall, HostedCall};
use super::event::Op;
use super::item::more;
use super::{Ctx, string};
use crate::context::OfferedTool;
use crate::escaped::{Escaped, EscapedBuf, Pieces};
use crate::note::Action;
use crate::response::{CallForm, CallItem, CallKind, ClientCall, FUNCTION, Named};

#[derive(Debug, Clone)]
pub(super) struct NativeCall {
    kind: &'static CallKind,
    upstream_id: String,
    named: Named,
    text: Pieces,
    item: Option<CallItem>,
}

impl NativeCall {
    pub(super) fn new(kind: &'static CallKind, upstream_id: String) -> Self {
        Self { kind, upstream_id, named: Named::default(), text: Pieces::default(), item: None }
    }

    pub(super) const fn held(&self) -> usize {
        self.text.len()
    }

    pub(super) fn apply(&mut self, op: Op, event: &Incoming<'_>, ctx: &mut Ctx<'_>) {
        match op {
            Op::Added => {
                if let Some(item) = event.item {
                    self.learn(item);
                }
            }
            Op::CallDelta(_) => {
                if let Some(delta) = string(event.delta) {
                    self.text.push(Escaped::of(delta));
                }
            }
            Op::CallDone(_) => {
                if let Some(name) = string(event.name).filter(|_| self.named.name.is_empty()) {
                    self.named.name = clean(name);
                }
                self.complete(event.arguments.or(event.input), ctx);
            }
            _ => {}
        }
        self.advance(ctx);
    }

    fn learn(&mut self, item: Raw<'_>) {
        // What a client has seen does not change any more.
        if self.item.is_none() {
            if let Some(name) = string(item.get("name")) {
                self.named.name = clean(name);
            }
            if let Some(call_id) = string(item.get("call_id")) {
                self.named.call_id = clean(call_id);
            }
            self.named.namespace = string(item.get("namespace")).map(|text| text.decode().into_owned());
        }
        let known = ["id", "type", "status", "call_id", "namespace", "name", self.kind.member];
        self.named.more = more(item, &known);
    }

    /// The whole text, as the upstream gives it at the end: what did not come in deltas follows.
    fn complete(&mut self, whole: Option<Raw<'_>>, ctx: &mut Ctx<'_>) {
        let Some(whole) = whole else { return };
        let text = match whole.kind() {
            Kind::String => whole.text().map(Text::decode).unwrap_or_default(),
            // Arguments that are JSON instead of a string with JSON in it.
            Kind::Object => whole.as_str().into(),
            _ => return,
        };
        let Some(rest) = self.text.rest_of(&text) else {
            let message = "what came in pieces counts, not the whole that differs from it";
            return ctx.response.remark(Action::Repaired, "tool_calls", message);
        };
        self.text.forget_half();
        self.text.push_plain(rest);
    }

    /// The tool, if godex runs it.
    fn hosted<'t>(&self, tools: &'t [OfferedTool]) -> Option<&'t OfferedTool> {
        if *self.kind != FUNCTION || !tools.iter().any(|tool| tool.kind.is_hosted()) {
            return None;
        }
        let name = self.named.name.get().decode();
        tools.iter().find(|tool| tool.kind.is_hosted() && tool.provider_name == name)
    }

    /// Announces the call as soon as its name is known, and sends what there is of it. Of a hosted call, and of what comes
    /// after one, nothing is.
    fn advance(&mut self, ctx: &mut Ctx<'_>) {
        let waits = self.named.name.is_empty() || ctx.tally.holds();
        if self.item.is_none() && !waits && self.hosted(&ctx.wanted.tools).is_none() {
            self.take_call_id(ctx);
            let id = ctx.id(&self.upstream_id, self.kind.id_kind);
            self.item = Some(CallItem::open(id, self.kind, &self.named, ctx.response, ctx.out));
        }
        if let Some(item) = &mut self.item {
            item.send(self.text.get(), ctx.response, ctx.out);
        }
    }

    /// The upstream's id, unless it has none or another call has it.
    fn take_call_id(&mut self, ctx: &mut Ctx<'_>) {
        let call_id = self.named.call_id.get();
        if call_id.is_empty() || !ctx.response.adopt_call_id(call_id) {
            self.named.call_id = EscapedBuf::of_plain(ctx.response.make_id(IdKind::Call).as_str());
        }
    }

    pub(super) fn close(mut self, last: Option<Raw<'_>>, status: Status, ctx: &mut Ctx<'_>) {
        if let Some(item) = last {
            self.learn(item);
            self.complete(item.get(self.kind.member), ctx);
        }
        self.text.finish();
        let function = *self.kind == FUNCTION;
        // A tool without parameters; of a call that was cut nobody knows.
        if function && self.text.get().as_written().trim_ascii().is_empty() && status == Status::Completed {
            self.text = Pieces::of(Escaped::inside("{}"));
        }
        self.advance(ctx);
        let wanted = ctx.wanted;
        let hosted = self.hosted(&wanted.tools);
        if self.named.name.is_empty() {
            return ctx.response.remark(Action::Repaired, "tool_calls", "a call without a name was left out");
        }
        ctx.tally.calls += 1;
        ctx.tally.volume.answered += self.text.len();
        let whole = !function || Raw::parse(&self.text.get().decode()).is_ok();
        ctx.tally.broken_calls += usize::from(!whole);
        ctx.tally.client += usize::from(hosted.is_none());
        match (self.item.take(), hosted) {
            (Some(item), _) => item.close(self.text.get(), &self.named, status, ctx.response, ctx.out),
            (None, Some(tool)) if status == Status::Completed => {
                self.take_call_id(ctx);
                let call_id = self.named.call_id.get().decode().into_owned();
                let arguments = self.text.get().decode().into_owned();
                ctx.tally.held.push(HeldCall::Hosted(HostedCall { call_id, tool: tool.clone(), arguments }));
            }
            (None, Some(_)) => {}
            (None, None) => {
                self.take_call_id(ctx);
                let id = Some(ctx.id(&self.upstream_id, self.kind.id_kind));
                let Self { kind, named, mut text, .. } = self;
                let form = CallForm::Text { id, kind, named, text: text.take(), status };
                ctx.tally.held.push(HeldCall::Client(ClientCall(form)));
            }
        }
    }
}

/// Escaped again, without halves of characters.
fn clean(text: Text<'_>) -> EscapedBuf {
    EscapedBuf::of_plain(&text.decode())
}
