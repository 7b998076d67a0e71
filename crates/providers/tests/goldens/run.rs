//! Runs a golden case through plan and machine, with everything fixed that chance or time would decide.

use std::sync::Arc;

use bridge::{AnswerDialect, End, Failure, Flow, Framing, Machine, Note, Plan, Policy, Seal, Setup, Target, Unsealed};
use providers::{ModelSpec, Wire};
use testkit::golden::{Case, Shows, Upstream};
use wire::id::Ids;
use wire::json::{FromRaw, Raw};
use wire::responses::CreateResponse;
use wire::sse::Decoder;

use crate::specs::provider;

const CREATED_AT: u64 = 1_700_000_000;
const ENDED_AT: u64 = 1_700_000_001;

/// What came out, and what was noted on the way.
pub(crate) struct Ran {
    pub(crate) out: Vec<u8>,
    pub(crate) notes: Vec<Note>,
}

/// A seal that can be seen through, so that a page shows what is carried in it. Pages that show bytes have none: they
/// are about streams.
#[derive(Debug)]
struct TransparentSeal;

impl Seal for TransparentSeal {
    fn seal(&self, plain: &[u8]) -> String {
        format!("glass:{}", String::from_utf8_lossy(plain))
    }

    fn open(&self, sealed: &str) -> Option<Vec<u8>> {
        Some(sealed.strip_prefix("glass:")?.into())
    }
}

fn seal(case: &Case) -> Arc<dyn Seal> {
    match case.shows {
        Shows::Gist => Arc::new(TransparentSeal),
        Shows::Bytes => Arc::new(Unsealed),
    }
}

/// The request of a case, and what its provider's spec comes to for its model.
pub(crate) fn spec(case: &Case) -> ModelSpec {
    provider(&case.page.provider).for_model(&model(&request(case)))
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

/// What an answer that is no success comes to.
pub(crate) fn failure(case: &Case) -> Option<Failure> {
    let (Upstream::Json(body) | Upstream::Sse(body)) = &case.upstream;
    (case.status >= 400).then(|| Failure::from_answer_in(&spec(case).dialect.answer, case.status, body))
}

fn begin(case: &Case, framing: Framing) -> (Machine, Vec<Note>, Vec<u8>) {
    let Plan { reading, notes, body, .. } = plan(case);
    let dialect = spec(case).dialect;
    let answer = AnswerDialect { family: dialect.family().to_owned(), ..dialect.answer };
    let (dialect, seal) = (Arc::new(answer), seal(case));
    let setup = Setup { dialect, seal, prompt_bytes: body.len(), ..Setup::default() };
    let mut machine = Machine::new(reading, setup, Ids::new([7; 24]), CREATED_AT, framing);
    let mut out = Vec::new();
    machine.open(&mut out);
    (machine, notes, out)
}

pub(crate) fn request(case: &Case) -> CreateResponse<'_> {
    CreateResponse::from_raw(document(case)).unwrap()
}

fn document(case: &Case) -> Raw<'_> {
    Raw::parse(str::from_utf8(&case.request).unwrap().trim()).unwrap()
}

fn model(request: &CreateResponse<'_>) -> String {
    request.model.unwrap().decode().into_owned()
}

pub(crate) fn plan(case: &Case) -> Plan {
    let request = request(case);
    let (model, spec) = (model(&request), spec(case));
    let seal = seal(case);
    let target = Target { model: &model, dialect: &spec.dialect, policy: Policy::default(), seal: &*seal };
    match spec.wire {
        Wire::Responses => bridge::forward(&request, document(case), &[], target).unwrap(),
        Wire::Chat | Wire::Demo => bridge::plan(&request, &[], target).unwrap(),
    }
}

fn end(mut machine: Machine, mut notes: Vec<Note>, mut out: Vec<u8>, how: End) -> Ran {
    machine.end(how, &mut out);
    machine.terminal(ENDED_AT, true, &mut out);
    notes.extend_from_slice(machine.notes());
    Ran { out, notes }
}
