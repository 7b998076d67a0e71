//! Runs a golden case through plan and machine, with everything fixed that chance or time would decide.

use std::sync::Arc;

use bridge::{End, Flow, Framing, Machine, Note, Plan, Policy, Setup, Target, Unsealed};
use providers::{Library, Wire, resolve_named};
use testkit::golden::{Case, Upstream};
use wire::id::Ids;
use wire::json::{FromRaw, Raw};
use wire::responses::CreateResponse;
use wire::sse::Decoder;

const CREATED_AT: u64 = 1_700_000_000;
const ENDED_AT: u64 = 1_700_000_001;

/// What came out, and what was noted on the way.
pub(crate) struct Ran {
    pub(crate) out: Vec<u8>,
    pub(crate) notes: Vec<Note>,
}

/// The case with the upstream's bytes in one piece.
pub(crate) fn whole(case: &Case, framing: Framing) -> Ran {
    match &case.upstream {
        Upstream::Sse(bytes) => streamed(case, framing, &[bytes]),
        Upstream::Json(bytes) => {
            let (mut machine, notes, mut out) = begin(case, framing);
            let _ = machine.chunk(bytes, &mut out);
            end(machine, notes, out, End::Done)
        }
    }
}

/// The case with the upstream's stream in these pieces.
pub(crate) fn streamed(case: &Case, framing: Framing, pieces: &[&[u8]]) -> Ran {
    let (mut machine, notes, mut out) = begin(case, framing);
    let mut decoder = Decoder::new(1 << 20);
    for piece in pieces {
        decoder.push(piece);
        while let Some(event) = decoder.next_event().unwrap() {
            if machine.chunk(event.data, &mut out) == Flow::Over {
                return end(machine, notes, out, End::Done);
            }
        }
    }
    let last = decoder.rest().map(|event| machine.chunk(event.data, &mut out));
    let how = if last == Some(Flow::Over) { End::Done } else { End::Eof };
    end(machine, notes, out, how)
}

fn begin(case: &Case, framing: Framing) -> (Machine, Vec<Note>, Vec<u8>) {
    let Plan { reading, notes, body, .. } = plan(case);
    let dialect = resolve_named(Library::BUILTIN, &case.provider, &|_| None).unwrap().dialect.answer;
    let setup = Setup { dialect: Arc::new(dialect), prompt_bytes: body.len(), ..Setup::default() };
    let mut machine = Machine::new(reading, setup, Ids::new([7; 24]), CREATED_AT, framing);
    let mut out = Vec::new();
    machine.open(&mut out);
    (machine, notes, out)
}

fn plan(case: &Case) -> Plan {
    let provider = resolve_named(Library::BUILTIN, &case.provider, &|_| None).unwrap_or_else(|p| panic!("{p}"));
    let document = Raw::parse(str::from_utf8(&case.request).unwrap()).unwrap();
    let request = CreateResponse::from_raw(document).unwrap();
    let model = request.model.unwrap().decode().into_owned();
    let target = Target { model: &model, dialect: &provider.dialect, policy: Policy::default(), seal: &Unsealed };
    match provider.wire {
        Wire::Responses => bridge::forward(&request, document, &[], target).unwrap(),
        Wire::Chat | Wire::Demo => bridge::plan(&request, &[], target).unwrap(),
    }
}

fn end(mut machine: Machine, mut notes: Vec<Note>, mut out: Vec<u8>, how: End) -> Ran {
    machine.end(how, &mut out);
    machine.terminal(ENDED_AT, true, &mut out);
    notes.extend_from_slice(machine.notes());
    Ran { out, notes }
}
