//! Runs an upstream answer through plan, reader and response, as the server does.

use std::sync::Arc;

use bridge::{
    AnswerContext, AnswerDialect, ClientForms, Dialect, End, Events, FailureClass, Flow, Heartbeat, Note, OfferedTool,
    PlanTarget, Policy, Reader, ReasoningChannel, RefusalForm, ResponseWriter, Seal, Setup, ToolKind, Unsealed,
};
use serde_json::{Value, json};
use wire::id::Ids;
use wire::json::{FromRaw, Raw};
use wire::responses::{CreateResponse, Tail};

pub(crate) const REQUEST: &str = r#"{"model":"m","input":"Hello"}"#;

fn request() -> CreateResponse<'static> {
    CreateResponse::from_raw(Raw::parse(REQUEST).unwrap()).unwrap()
}

fn context() -> AnswerContext {
    let dialect = Dialect::default();
    let target = PlanTarget {
        model: "m",
        dialect: &dialect,
        policy: Policy::default(),
        seal: &Unsealed,
        images: None,
        files: None,
        cache_key: None,
        hosting: bridge::Hosting::default(),
    };
    bridge::plan(&request(), &[], target).unwrap().context
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
pub(crate) struct TransparentSeal;

impl Seal for TransparentSeal {
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
    pub(crate) context: AnswerContext,
    pub(crate) echo: Tail,
    pub(crate) setup: Setup,
    pub(crate) forms: ClientForms,
}

impl Default for Run {
    fn default() -> Self {
        let setup = Setup { seal: Arc::new(TransparentSeal), prompt_bytes: 40, ..Setup::default() };
        Self { context: AnswerContext { tools: tools(), ..context() }, setup, ..Self::plain() }
    }
}

/// A client that reads everything otherwise.
pub(crate) const OTHER_FORMS: ClientForms = ClientForms {
    heartbeat: Heartbeat::Event,
    refusal: RefusalForm::Text,
    reasoning: ReasoningChannel::Summary,
    failure_codes: &[(FailureClass::Truncated, "invalid_prompt")],
    wait_in_words: None,
};

/// A response of one answer.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) reader: Reader,
    pub(crate) response: ResponseWriter,
    pub(crate) out: Events,
}

impl Turn {
    pub(crate) fn chunk(&mut self, chunk: &[u8]) -> Flow {
        self.reader.chunk(chunk, &mut self.response, &mut self.out)
    }

    pub(crate) fn end(&mut self, end: End) {
        let end = self.reader.end(end, &mut self.response, &mut self.out);
        self.response.finish(end);
    }

    /// The terminal event; gives the object.
    pub(crate) fn terminal(&mut self) -> Vec<u8> {
        let mut object = Vec::new();
        self.response.object(1_700_000_001, true, &mut object);
        self.response.terminal(&object, &mut self.out);
        object
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

    /// No tools, no seal.
    pub(crate) fn plain() -> Self {
        Self {
            context: context(),
            echo: bridge::echo(&request()).unwrap(),
            setup: Setup::default(),
            forms: ClientForms::EXACT,
        }
    }

    pub(crate) fn response(&self) -> ResponseWriter {
        ResponseWriter::new(Ids::new([7; 24]), 1_700_000_000, self.echo.clone(), true).in_forms(self.forms)
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::new(self.context.clone(), self.setup.clone())
    }

    pub(crate) fn start(&self, out: Events) -> Turn {
        let mut turn = Turn { reader: self.reader(), response: self.response(), out };
        turn.response.open(&mut turn.out);
        turn
    }

    /// To the end: what was written, the object, the notes.
    pub(crate) fn play<T: AsRef<[u8]>>(&self, out: Events, chunks: &[T], end: End) -> (Events, Vec<u8>, Vec<Note>) {
        let mut turn = self.start(out);
        let over = chunks.iter().any(|chunk| turn.chunk(chunk.as_ref()) == Flow::Over);
        turn.end(if over { End::Done } else { end });
        let object = turn.terminal();
        (turn.out, object, turn.response.notes().to_vec())
    }

    /// Both roads: the stream keeps the grammar, and the object is the same without it.
    pub(crate) fn run<T: AsRef<[u8]>>(&self, chunks: &[T], end: End) -> Result<Ran, String> {
        let (sse, _, notes) = self.play(Events::sse(), chunks, end.clone());
        let stream = testkit::grammar::check(sse.bytes())?;
        let (silence, object, _) = self.play(Events::silent(), chunks, end);
        let object = self::object(&object);
        if object != stream.response || !silence.is_empty() {
            return Err(format!("not streamed: {object}\nstreamed: {}", stream.response));
        }
        Ok(Ran { stream, notes })
    }
}

/// Chunks (the `data` of each event) as a stream; `end` unless the chunks say `[DONE]` first.
pub(crate) fn chunks<T: AsRef<[u8]>>(chunks: &[T], end: End) -> Vec<u8> {
    Run::plain().play(Events::sse(), chunks, end).0.take()
}

/// The object alone.
pub(crate) fn whole<T: AsRef<[u8]>>(chunks: &[T], end: End) -> Value {
    object(&Run::plain().play(Events::silent(), chunks, end).1)
}

pub(crate) fn object(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

pub(crate) fn delta(delta: &Value) -> String {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}).to_string()
}

pub(crate) fn finish(reason: &str) -> String {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}).to_string()
}
