//! Runs an upstream answer through plan and machine, as the server does.

use std::sync::Arc;

use bridge::{
    AnswerDialect, Dialect, End, Flow, Framing, Machine, Note, OfferedTool, PlanTarget, Policy, Reading, Seal, Setup,
    ToolKind, Unsealed,
};
use serde_json::{Value, json};
use wire::id::Ids;
use wire::json::{FromRaw, Raw};
use wire::responses::CreateResponse;

pub(crate) const REQUEST: &str = r#"{"model":"m","input":"Hello"}"#;

pub(crate) fn reading(request: &str) -> Reading {
    let request = CreateResponse::from_raw(Raw::parse(request).unwrap()).unwrap();
    let dialect = Dialect::default();
    bridge::plan(&request, &[], target(&dialect)).unwrap().reading
}

fn target(dialect: &Dialect) -> PlanTarget<'_> {
    PlanTarget { model: "m", dialect, policy: Policy::default(), seal: &Unsealed }
}

pub(crate) fn machine(framing: Framing) -> Machine {
    start(reading(REQUEST), Setup::default(), framing)
}

pub(crate) fn start(reading: Reading, setup: Setup, framing: Framing) -> Machine {
    Machine::new(reading, setup, Ids::new([7; 24]), 1_700_000_000, framing)
}

/// One tool of every kind, under its provider's name.
pub(crate) fn tools() -> Vec<OfferedTool> {
    let tool = |provider_name: &str, kind, name: &str, namespace: Option<&str>| OfferedTool {
        provider_name: provider_name.to_owned(),
        kind,
        name: name.to_owned(),
        namespace: namespace.map(str::to_owned),
    };
    vec![
        tool("f", ToolKind::Function, "f", None),
        tool("g", ToolKind::Function, "g", None),
        tool("get_weather", ToolKind::Function, "get_weather", None),
        tool("ns__look", ToolKind::Function, "look", Some("ns")),
        tool("patch", ToolKind::Custom, "patch", None),
        tool("ns__write", ToolKind::Custom, "write", Some("ns")),
        tool("shell", ToolKind::Shell, "shell", None),
        tool("local_shell", ToolKind::LocalShell, "local_shell", None),
        tool("apply_patch", ToolKind::ApplyPatch, "apply_patch", None),
        tool("tool_search", ToolKind::ToolSearch, "tool_search", None),
    ]
}

/// A seal that tests can look through.
#[derive(Debug)]
pub(crate) struct Glass;

impl Seal for Glass {
    fn seal(&self, plain: &[u8]) -> String {
        format!("glass:{}", String::from_utf8_lossy(plain))
    }

    fn open(&self, sealed: &str) -> Option<Vec<u8>> {
        sealed.strip_prefix("glass:").map(|plain| plain.as_bytes().to_vec())
    }
}

/// How one case is run.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) reading: Reading,
    pub(crate) setup: Setup,
}

impl Default for Run {
    fn default() -> Self {
        let mut reading = reading(REQUEST);
        reading.tools = tools();
        Self { reading, setup: Setup { seal: Arc::new(Glass), prompt_bytes: 40, ..Setup::default() } }
    }
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) stream: testkit::grammar::Stream,
    pub(crate) notes: Vec<Note>,
}

impl Run {
    pub(crate) fn dialect(dialect: AnswerDialect) -> Self {
        let run = Self::default();
        Self { setup: Setup { dialect: Arc::new(dialect), ..run.setup }, ..run }
    }

    pub(crate) fn bytes<T: AsRef<[u8]>>(&self, framing: Framing, chunks: &[T], end: End) -> (Vec<u8>, Vec<Note>) {
        let mut machine = start(self.reading.clone(), self.setup.clone(), framing);
        let mut out = Vec::new();
        machine.open(&mut out);
        let over = chunks.iter().any(|chunk| machine.chunk(chunk.as_ref(), &mut out) == Flow::Over);
        machine.end(if over { End::Done } else { end }, &mut out);
        machine.terminal(1_700_000_001, true, &mut out);
        (out, machine.notes().to_vec())
    }

    /// Both roads: the stream keeps the grammar, and the object is the same without it.
    pub(crate) fn run<T: AsRef<[u8]>>(&self, chunks: &[T], end: End) -> Result<Ran, String> {
        let (sse, notes) = self.bytes(Framing::Sse, chunks, end.clone());
        let stream = testkit::grammar::check(&sse)?;
        let object = object(&self.bytes(Framing::Silent, chunks, end).0);
        if object != stream.response {
            return Err(format!("not streamed: {object}\nstreamed: {}", stream.response));
        }
        Ok(Ran { stream, notes })
    }
}

/// Chunks (the `data` of each event) through a machine; `end` unless the chunks say `[DONE]` first.
pub(crate) fn chunks<T: AsRef<[u8]>>(framing: Framing, chunks: &[T], end: End) -> Vec<u8> {
    let run = Run { reading: reading(REQUEST), setup: Setup::default() };
    run.bytes(framing, chunks, end).0
}

/// The whole completion that a list of chunks amounts to, for the comparison of the two roads.
pub(crate) fn object(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

pub(crate) fn delta(delta: &Value) -> String {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}).to_string()
}

pub(crate) fn finish(reason: &str) -> String {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}).to_string()
}
