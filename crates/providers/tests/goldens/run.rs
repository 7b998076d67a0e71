//! Runs a golden case through plan, reader and response, with everything fixed that chance or time would decide.

use std::sync::Arc;

use bridge::{
    AnswerDialect, End, Events, Failure, Flow, Note, Plan, PlanTarget, Policy, Reader, ResponseWriter, Seal, Setup,
    Unsealed,
};
use providers::{ModelSpec, Wire};
use testkit::golden::{Case, Shows, UpstreamAnswer};
use wire::id::Ids;
use wire::json::{FromRaw, Raw};
use wire::responses::CreateResponse;
use wire::sse::Decoder;

use crate::specs::provider;
use crate::transparent_seal::TransparentSeal;
use crate::turn::Turn;

const CREATED_AT: u64 = 1_700_000_000;

/// What came out, and what was noted, of the plan and of the answer.
pub(crate) struct Ran {
    pub(crate) out: Vec<u8>,
    pub(crate) notes: Vec<Note>,
}

/// A page shows what is carried in a seal. Those that show bytes have none: they are about streams.
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
pub(crate) fn whole(case: &Case, out: Events) -> Ran {
    match &case.upstream {
        UpstreamAnswer::Sse(bytes) => streamed(case, out, &[bytes]),
        UpstreamAnswer::Json(bytes) => {
            let (mut turn, notes) = begin(case, out);
            let _ = turn.chunk(bytes);
            ran(turn, notes, End::Done)
        }
    }
}

/// The case with the upstream's stream in these pieces.
pub(crate) fn streamed(case: &Case, out: Events, pieces: &[&[u8]]) -> Ran {
    let (mut turn, notes) = begin(case, out);
    let mut decoder = Decoder::new(1 << 20);
    for piece in pieces {
        decoder.push(piece);
        while let Some(event) = decoder.next_event().unwrap() {
            if turn.chunk(event.data) == Flow::Over {
                return ran(turn, notes, End::Done);
            }
        }
    }
    let last = decoder.rest().map(|event| turn.chunk(event.data));
    let how = if last == Some(Flow::Over) { End::Done } else { End::Eof };
    ran(turn, notes, how)
}

fn ran(turn: Turn, mut notes: Vec<Note>, how: End) -> Ran {
    let (out, more) = turn.end(how);
    notes.extend(more);
    Ran { out, notes }
}

/// What an answer that is no success comes to.
pub(crate) fn failure(case: &Case) -> Option<Failure> {
    let (UpstreamAnswer::Json(body) | UpstreamAnswer::Sse(body)) = &case.upstream;
    (case.status >= 400).then(|| Failure::from_answer_in(&spec(case).dialect.answer, case.status, body))
}

/// The turn, and what the plan noted.
fn begin(case: &Case, out: Events) -> (Turn, Vec<Note>) {
    let Plan { context, notes, body } = plan(case);
    let dialect = spec(case).dialect;
    let answer = AnswerDialect { family: dialect.family().to_owned(), ..dialect.answer };
    let (dialect, seal) = (Arc::new(answer), seal(case));
    let setup = Setup { dialect, seal, prompt_bytes: body.len(), ..Setup::default() };
    let request = request(case);
    let (echo, store) = (bridge::echo(&request).unwrap(), request.store.unwrap_or(true));
    let response = ResponseWriter::new(Ids::new([7; 24]), CREATED_AT, echo, store);
    (Turn::new(Reader::new(context, setup), response, out), notes)
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
    let target = PlanTarget {
        model: &model,
        dialect: &spec.dialect,
        policy: Policy::default(),
        seal: &*seal,
        images: None,
        files: None,
        cache_key: None,
        hosting: bridge::Hosting::default(),
    };
    match spec.wire {
        Wire::Responses => bridge::forward(&request, document(case), &[], target).unwrap(),
        Wire::Messages => bridge::plan_messages(&request, &[], target).unwrap(),
        Wire::Chat | Wire::Demo => bridge::plan(&request, &[], target).unwrap(),
    }
}
