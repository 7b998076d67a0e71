//! Runs a golden case through plan, reader and response, with everything fixed that chance or time would decide.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use bridge::{
    AnswerContext, AnswerDialect, End, Events, Failure, Flow, Note, Plan, PlanTarget, Policy, Reader, ResponseWriter,
    Seal, Setup, Unsealed,
};
use providers::{Library, ModelSpec, Provider, Wire, resolve_named};
use testkit::golden::{Case, Upstream};
use wire::id::Ids;
use wire::json::{FromRaw, Raw};
use wire::responses::{CreateResponse, Tail};
use wire::sse::Decoder;

const CREATED_AT: u64 = 1_700_000_000;
const ENDED_AT: u64 = 1_700_000_001;

/// What came out, and what was noted on the way.
pub(crate) struct Ran {
    pub(crate) out: Vec<u8>,
    pub(crate) notes: Vec<Note>,
}

/// A seal that can be seen through, so that a page shows what is carried in it.
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
    if case.is_page() { Arc::new(TransparentSeal) } else { Arc::new(Unsealed) }
}

/// A spec of the library; each is read once.
pub(crate) fn provider(name: &str) -> Arc<Provider> {
    static KNOWN: LazyLock<Mutex<HashMap<String, Arc<Provider>>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap();
    let resolve = || Arc::new(resolve_named(Library::BUILTIN, name, &|_| None).unwrap_or_else(|p| panic!("{p}")));
    Arc::clone(known.entry(name.to_owned()).or_insert_with(resolve))
}

/// The request of a case, and what its provider's spec comes to for its model.
pub(crate) fn spec(case: &Case) -> ModelSpec {
    provider(&case.provider).for_model(&model(&request(case)))
}

/// The case with the upstream's bytes in one piece.
pub(crate) fn whole(case: &Case, out: Events) -> Ran {
    match &case.upstream {
        Upstream::Sse(bytes) => streamed(case, out, &[bytes]),
        Upstream::Json(bytes) => {
            let mut turn = begin(case, out);
            let _ = turn.chunk(bytes);
            turn.end(End::Done)
        }
    }
}

/// The case with the upstream's stream in these pieces.
pub(crate) fn streamed(case: &Case, out: Events, pieces: &[&[u8]]) -> Ran {
    let mut turn = begin(case, out);
    let mut decoder = Decoder::new(1 << 20);
    for piece in pieces {
        decoder.push(piece);
        while let Some(event) = decoder.next_event().unwrap() {
            if turn.chunk(event.data) == Flow::Over {
                return turn.end(End::Done);
            }
        }
    }
    let last = decoder.rest().map(|event| turn.chunk(event.data));
    let how = if last == Some(Flow::Over) { End::Done } else { End::Eof };
    turn.end(how)
}

/// What an answer that is no success comes to.
pub(crate) fn failure(case: &Case) -> Option<Failure> {
    let (Upstream::Json(body) | Upstream::Sse(body)) = &case.upstream;
    (case.status >= 400).then(|| Failure::from_answer_in(&spec(case).dialect.answer, case.status, body))
}

/// A response of one answer.
struct Turn {
    reader: Reader,
    response: ResponseWriter,
    out: Events,
    notes: Vec<Note>,
}

impl Turn {
    fn chunk(&mut self, data: &[u8]) -> Flow {
        self.reader.chunk(data, &mut self.response, &mut self.out)
    }

    /// The events, or the object where there are none.
    fn end(mut self, how: End) -> Ran {
        let end = self.reader.end(how, &mut self.response, &mut self.out);
        self.response.finish(end);
        let mut object = Vec::new();
        self.response.object(ENDED_AT, true, &mut object);
        self.response.terminal(&object, &mut self.out);
        self.notes.extend_from_slice(self.response.notes());
        let out = if self.out.is_silent() { object } else { self.out.take() };
        Ran { out, notes: self.notes }
    }
}

fn begin(case: &Case, mut out: Events) -> Turn {
    let Plan { context, notes, body } = plan(case);
    let dialect = spec(case).dialect;
    let answer = AnswerDialect { family: dialect.family().to_owned(), ..dialect.answer };
    let (dialect, seal) = (Arc::new(answer), seal(case));
    let setup = Setup { dialect, seal, prompt_bytes: body.len(), ..Setup::default() };
    let request = request(case);
    let (echo, store) = (bridge::echo(&request).unwrap(), request.store.unwrap_or(true));
    let mut response = ResponseWriter::new(Ids::new([7; 24]), CREATED_AT, echo, store);
    response.open(&mut out);
    Turn { reader: Reader::new(context, setup), response, out, notes }
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
    let target = PlanTarget { model: &model, dialect: &spec.dialect, policy: Policy::default(), seal: &*seal };
    match spec.wire {
        Wire::Responses => bridge::forward(&request, document(case), &[], target).unwrap(),
        Wire::Chat | Wire::Demo => bridge::plan(&request, &[], target).unwrap(),
    }
}

/// What an answer in these chunks becomes.
pub(crate) fn read<T: AsRef<[u8]>>(
    context: AnswerContext,
    echo: Tail,
    setup: Setup,
    chunks: &[T],
    mut out: Events,
) -> Vec<u8> {
    let mut response = ResponseWriter::new(Ids::new([7; 24]), 0, echo, true);
    response.open(&mut out);
    let mut turn = Turn { reader: Reader::new(context, setup), response, out, notes: Vec::new() };
    for chunk in chunks {
        let _ = turn.chunk(chunk.as_ref());
    }
    turn.end(End::Done).out
}
