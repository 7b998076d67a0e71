//! Any lines as chunks: the stream keeps the grammar, and without a stream the object is the same.

use bridge::{AnswerContext, AnswerDialect, End, EofTolerance, Events, Flow, OfferedTool, OutputContract, Reader};
use bridge::{ResponseWriter, Setup, ThinkTags, ToolKind};
use std::sync::Arc;

/// The first byte chooses the settings; the lines after it are chunks.
pub(super) fn run(data: &[u8]) {
    let Some((&choice, lines)) = data.split_first() else { return };
    let (streamed, _) = answer(choice, lines, Events::sse());
    let stream = testkit::grammar::check(streamed.bytes()).unwrap_or_else(|problem| panic!("{problem}"));
    let (_, object) = answer(choice, lines, Events::silent());
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&object).unwrap(), stream.response);
}

/// The events, and the object.
fn answer(choice: u8, lines: &[u8], mut out: Events) -> (Events, Vec<u8>) {
    let echo = b",\"model\":\"m\"".to_vec().into();
    let mut response = ResponseWriter::new(wire::id::Ids::new([7; 24]), 1, echo, true);
    let mut reader = Reader::new(context(choice), setup(choice));
    response.open(&mut out);
    let over = lines.split(|byte| *byte == b'\n').any(|line| reader.chunk(line, &mut response, &mut out) == Flow::Over);
    let end = if over || choice & 8 > 0 { End::Done } else { End::Eof };
    let end = reader.end(end, &mut response, &mut out);
    response.finish(end);
    let mut object = Vec::new();
    response.object(2, true, &mut object);
    response.terminal(&object, &mut out);
    (out, object)
}

fn context(choice: u8) -> AnswerContext {
    let kinds = [
        ("f", ToolKind::Function),
        ("patch", ToolKind::Custom),
        ("shell", ToolKind::Shell),
        ("local_shell", ToolKind::LocalShell),
        ("apply_patch", ToolKind::ApplyPatch),
        ("tool_search", ToolKind::ToolSearch),
    ];
    let tools = kinds.map(|(name, kind)| OfferedTool {
        provider_name: name.to_owned(),
        kind,
        name: name.to_owned(),
        namespace: (choice & 16 > 0).then(|| "ns".to_owned()),
    });
    AnswerContext {
        tools: tools.to_vec(),
        reasoning_summary: choice & 1 > 0,
        logprobs: choice & 2 > 0,
        output: if choice & 4 > 0 { OutputContract::JsonObject } else { OutputContract::Text },
        ..AnswerContext::default()
    }
}

fn setup(choice: u8) -> Setup {
    let think_tags = ThinkTags::ALL[usize::from(choice >> 5) % ThinkTags::ALL.len()];
    let dialect = AnswerDialect { think_tags, eof: EofTolerance::Any, ..AnswerDialect::default() };
    Setup { dialect: Arc::new(dialect), ..Setup::default() }
}
