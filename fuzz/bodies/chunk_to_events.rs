//! Any lines as chunks: the stream keeps the grammar, and without a stream the object is the same.

use bridge::{AnswerDialect, End, EofTolerance, Flow, Framing, Machine, OfferedTool, OutputContract, Reading, Setup};
use bridge::{ThinkTags, ToolKind};
use std::sync::Arc;

/// The first byte chooses the settings; the lines behind it are chunks.
pub(super) fn run(data: &[u8]) {
    let Some((&choice, lines)) = data.split_first() else { return };
    let streamed = answer(choice, lines, Framing::Sse);
    let stream = testkit::grammar::check(&streamed).unwrap_or_else(|problem| panic!("{problem}"));
    let object = answer(choice, lines, Framing::Silent);
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&object).unwrap(), stream.response);
}

fn answer(choice: u8, lines: &[u8], framing: Framing) -> Vec<u8> {
    let mut machine = Machine::new(reading(choice), setup(choice), wire::id::Ids::new([7; 24]), 1, framing);
    let mut out = Vec::new();
    machine.open(&mut out);
    let over = lines.split(|byte| *byte == b'\n').any(|line| machine.chunk(line, &mut out) == Flow::Over);
    machine.end(if over || choice & 8 > 0 { End::Done } else { End::Eof }, &mut out);
    machine.terminal(2, true, &mut out);
    out
}

fn reading(choice: u8) -> Reading {
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
    Reading {
        echo: b",\"model\":\"m\"".to_vec().into(),
        tools: tools.to_vec(),
        reasoning_summary: choice & 1 > 0,
        logprobs: choice & 2 > 0,
        output: if choice & 4 > 0 { OutputContract::JsonObject } else { OutputContract::Text },
        ..Reading::default()
    }
}

fn setup(choice: u8) -> Setup {
    let think_tags = ThinkTags::ALL[usize::from(choice >> 5) % ThinkTags::ALL.len()];
    let dialect = AnswerDialect { think_tags, eof: EofTolerance::Any, ..AnswerDialect::default() };
    Setup { dialect: Arc::new(dialect), ..Setup::default() }
}
